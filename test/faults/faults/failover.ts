import { randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { CallFault } from '../../support/bank-faults.ts'
import type { CashfreeCall, FakeCashfree } from '../../support/cashfree-bank.ts'
import { groupBy } from '../../support/group-by.ts'
import { createHttpClient, type HttpResponse, tally } from '../../support/http-client.ts'
import { createRequest, forEach, withFields } from '../../support/requests.ts'
import type { FakeSetu, SetuCall } from '../../support/setu-bank.ts'
import { type NewMerchant, newMerchant } from '../../support/tenants.ts'
import { openBank, openCashfree } from '../bank.ts'
import { type Stage, setScene, startService } from '../stage.ts'
import { type Finding, ms } from '../verdict.ts'

const CREATES_PER_SECOND = 15
const CASE_MS = 2_000
/** The two acquirers have 5 s; the rest is for a busy machine. */
const RESPONSE_LIMIT_MS = 6_000
const KILLS = 25
/** Lifetime of a service until it is killed. */
const SERVING_MS = [200, 1_200] as const
/** Pause before a merchant repeats an order that got 503 or no response. */
const RETRY_MS = 1_000
/** One in this many orders is sent twice concurrently. */
const CLICKED_TWICE = 5
const CONCURRENT_REPEATS = 16
/** Maximum duration of closing a link. */
const CLOSING_MS = 3_000

const SLOW = { afterMs: 3_000 }

type Faults = [call: SetuCall | CashfreeCall, fault: CallFault, chance?: number][]

/** Behaviour of a merchant's first acquirer. Without faults it rejects connections. */
type Case = {
  first: 'setu' | 'cashfree'
  does: string
  faults?: Faults
  /** Whether the first acquirer may have an open link, so that the order gets 503 if it was called. */
  isUnsure?: true
}

const CASES: Case[] = [
  { first: 'setu', does: 'rejects connections' },
  { first: 'setu', does: 'responds with 400', faults: [['createDqr', { status: 400 }]] },
  { first: 'setu', does: 'responds with 429', faults: [['createDqr', { status: 429 }]] },
  { first: 'setu', does: 'responds after 3 s', faults: [['createDqr', SLOW]], isUnsure: true },
  {
    first: 'setu',
    does: 'accepts the call without a response',
    faults: [['createDqr', 'no response']],
    isUnsure: true,
  },
  { first: 'cashfree', does: 'rejects connections' },
  { first: 'cashfree', does: 'responds with 400', faults: [['createOrder', { status: 400 }]] },
  { first: 'cashfree', does: 'responds with 429', faults: [['openSession', { status: 429 }]] },
  { first: 'cashfree', does: 'responds after 3 s', faults: [['createOrder', SLOW]] },
  { first: 'cashfree', does: 'creates the link without a response', faults: [['openSession', 'no response']] },
  {
    first: 'cashfree',
    does: 'creates the link without a response and closes nothing',
    faults: [
      ['openSession', 'no response'],
      ['terminate', { status: 500 }],
    ],
    isUnsure: true,
  },
]

const NO_FAULTS: Record<Case['first'], Faults> = { setu: [], cashfree: [] }

/** Faults of both acquirers while the service is killed. */
const HALF_BROKEN: Record<Case['first'], Faults> = {
  setu: [
    ['createDqr', { status: 400 }, 0.2],
    ['createDqr', { status: 429 }, 0.1],
    ['createDqr', SLOW, 0.1],
    ['createDqr', 'no response', 0.1],
  ],
  cashfree: [
    ['createOrder', { status: 400 }, 0.1],
    ['createOrder', SLOW, 0.1],
    ['openSession', { status: 500 }, 0.2],
    ['openSession', 'no response', 0.2],
  ],
}

/**
 * The response to a merchant who reached the service. `endedAt` is a value of performance.now(), `closes` whether
 * Cashfree closed links then.
 */
type Attempt = Pick<HttpResponse, 'status' | 'tookMs'> & { endedAt: number; closes: boolean }

/** A merchant's order, by its order_id; `links` are those shown to the customer. */
type Bought = { name: string; merchant: NewMerchant; clicks: number; attempts: Attempt[]; links: Set<string> }

/** A link in a bank's records. `name` is the merchant's order_id, `orderId` the service's. */
type BankLink = { bank: Case['first']; name: string; orderId: string; link: string; isOpen: boolean }

/**
 * Merchants with two acquirers: the first one fails in each way, then both fail partially while the service is killed.
 */
export async function nextAcquirer({ postgres }: Stage): Promise<Finding[]> {
  const { url, db } = await setScene(postgres, 'fallback_acquirer')
  const [setu, cashfree] = [await openBank(db), await openCashfree(db)]
  const banks = { setu: setu.bank, cashfree: cashfree.bank }
  const merchants = { setu: await newMerchantOf('setu', 'cashfree'), cashfree: await newMerchantOf('cashfree', 'setu') }
  const client = createHttpClient()
  const bought: Bought[] = []
  const kills: number[] = []
  const notes: string[] = []
  const broken: string[] = []
  let service = await start()
  for (const one of CASES) await tryCase(one)
  await tryKills()
  // Every merchant repeats its orders without faults.
  await forEach(bought, CONCURRENT_REPEATS, send)
  await judgeBooks()
  client.close()
  await service.stop()
  await Promise.all([setu.bank.goAway(), cashfree.bank.goAway()])
  await db.end()
  return [{ fault: `one of two acquirers fails, ${KILLS} kills`, notes, broken }]

  function newMerchantOf(acquirer: string, fallbackAcquirer: string) {
    const ids = {
      acquirerMerchantId: '01ARZ3NDEKTSV4RRFFQ69G5FAV',
      fallbackAcquirerMerchantId: '01ARZ3NDEKTSV4RRFFQ69G5FAV',
    }
    return newMerchant(db, { payees: ['chaipoint@examplebank', 'cf.*@icici'], acquirer, fallbackAcquirer, ...ids })
  }

  function start() {
    return startService(url, { ...setu.settings, ...cashfree.settings })
  }

  function failBy(faults: Record<Case['first'], Faults>) {
    const toFaults = ([call, fault, chance = 1]: Faults[number]) => ({ call, fault, chance })
    setu.bank.faults = faults.setu.map(toFaults) as FakeSetu['faults']
    cashfree.bank.faults = faults.cashfree.map(toFaults) as FakeCashfree['faults']
  }

  async function tryCase({ first, does, faults, isUnsure }: Case) {
    if (faults) failBy({ ...NO_FAULTS, [first]: faults })
    else await banks[first].goAway()
    const [before, requestsBefore] = [bought.length, banks[first].requests.length]
    const until = performance.now() + CASE_MS
    await buy([merchants[first]], () => performance.now() < until, send)
    failBy(NO_FAULTS)
    await banks[first].comeBack()
    const checked = new Set(banks[first].requests.slice(requestsBefore).map(({ body }) => noteIn(body)))
    const orders = bought.slice(before)
    const wrong = orders.filter(({ name, attempts: [attempt] }) => {
      return attempt?.status !== (isUnsure && checked.has(name) ? 503 : 200)
    })
    const attempts = orders.flatMap((order) => order.attempts)
    const p99Ms = quantile(
      attempts.map(({ tookMs }) => tookMs),
      0.99,
    )
    const what = `${first} ${does}`
    notes.push(`${what}: ${tally(attempts)}, p99 ${ms(p99Ms)}`)
    if (wrong.length > 0) broken.push(`${what}: 200 unless it may have created a link: ${wrong.length} orders differ`)
    if (p99Ms >= RESPONSE_LIMIT_MS)
      broken.push(`${what}: responses within ${RESPONSE_LIMIT_MS} ms: p99 is ${ms(p99Ms)}`)
    // A new service tries the first acquirer first.
    await service.stop()
    service = await start()
  }

  async function tryKills() {
    const before = bought.length
    failBy(HALF_BROKEN)
    const shops = buy([merchants.setu, merchants.cashfree], () => kills.length < KILLS, sendUntilAccepted)
    while (kills.length < KILLS) {
      await sleep(randomInt(...SERVING_MS))
      await service.killHard()
      kills.push(performance.now())
      service = await start()
    }
    failBy(NO_FAULTS)
    await shops
    const attempts = bought.slice(before).flatMap((order) => order.attempts)
    notes.push(`${KILLS} kills while both fail partially: ${bought.length - before} orders, ${tally(attempts)}`)
  }

  /** Sends orders at a steady rate for alternating merchants, until `goesOn` is false and all have responses. */
  async function buy(of: readonly NewMerchant[], goesOn: () => boolean, work: (order: Bought) => Promise<unknown>) {
    const underWay: Promise<unknown>[] = []
    for (let number = 0; goesOn(); number++) {
      const merchant = of[number % of.length] as NewMerchant
      const order = { name: `order-${bought.length}`, merchant, clicks: 1, attempts: [], links: new Set<string>() }
      bought.push(order)
      underWay.push(work(order))
      await sleep(1_000 / CREATES_PER_SECOND)
    }
    await Promise.all(underWay)
  }

  /** Returns whether a link was shown. */
  async function send({ name, merchant, attempts, links }: Bought): Promise<boolean> {
    const request = createRequest(merchant, { order_id: name, note: name })
    const closes = !cashfree.bank.faults.some(({ call }) => call === 'terminate')
    const { status, tookMs, text, fault } = await client.send(service.url, withFields(request, {}, name))
    if (fault?.includes('ECONNREFUSED')) return false
    attempts.push({ status, tookMs, endedAt: performance.now(), closes })
    if (status === 200) links.add(JSON.parse(text).data.intent)
    else if (status !== 503 && status !== undefined) broken.push(`${name} got ${status}: ${text}`)
    return status === 200
  }

  async function sendUntilAccepted(order: Bought) {
    order.clicks = randomInt(CLICKED_TWICE) === 0 ? 2 : 1
    const click = async () => {
      while (!(await send(order))) await sleep(RETRY_MS)
    }
    await Promise.all(Array.from({ length: order.clicks }, click))
  }

  /** Compares the records of both banks with the database and with the links shown to customers. */
  async function judgeBooks() {
    const { rows } = await db.query<Stored>(
      `select i.mid, i.merchant_order_id as name, i.order_id as "orderId", a.link, a.acquirer, a.by_fallback as "byFallback"
         from payment_intents i
         left join acquirer_intents a on a.mid = i.mid and a.order_id = i.order_id`,
    )
    const created = bankLinks(banks)
    const open = created.filter(({ isOpen }) => isOpen)
    const shown = new Set(bought.flatMap(({ links }) => [...links]))
    const differ = bought.filter(({ name, links }) => {
      const stored = rows.filter((row) => row.name === name)
      return links.size !== 1 || stored.length !== 1 || !links.has(stored[0]?.link ?? '')
    })
    const ofShown = open.filter(({ link }) => shown.has(link))
    const unseen = open.filter(({ link }) => !shown.has(link))
    const wrongMaker = rows.filter(({ mid, acquirer, byFallback, link }) => {
      const isFirst = merchants[acquirer].mid === mid
      return byFallback === isFirst || !created.some((one) => one.bank === acquirer && one.link === link)
    })
    const twice = groupBy(open, ({ orderId }) => orderId).filter((links) => links.length > 1)
    const left = bought.filter((order) =>
      (['setu', 'cashfree'] as const).some((bank) => {
        const links = unseen.filter((one) => one.bank === bank && one.name === order.name)
        return links.length > order.attempts.filter(leavesOpen(bank, order)).length
      }),
    )
    const violations = [...setu.bank.violations, ...cashfree.bank.violations]
    const promises: [boolean, string][] = [
      [differ.length === 0, `every order has one link, the stored one: ${differ.length} differ`],
      [ofShown.length === bought.length, `every shown link can be paid: ${ofShown.length} of ${bought.length}`],
      [twice.length === 0, `no order has open links at both acquirers: ${twice.length} have`],
      [
        left.length === 0,
        `links that were never shown are closed, unless a call or the service was cut off: ${left.length} are not`,
      ],
      [wrongMaker.length === 0, `the acquirer of each link is stored: ${wrongMaker.length} differ`],
      [violations.length === 0, `every request follows the acquirer's documents: ${violations[0]}`],
    ]
    notes.push(
      `${created.length} links of ${bought.length} orders: ${ofShown.length} shown, ${created.length - open.length} closed, ${unseen.length} end by their expiry`,
    )
    broken.push(...promises.flatMap(([holds, promise]) => (holds ? [] : promise)))
  }

  /** Whether an attempt may have left a link open that was never shown. */
  function leavesOpen(bank: Case['first'], { clicks }: Bought) {
    return ({ status, endedAt, closes }: Attempt): boolean => {
      // The service closes unused links after the response, which a kill may prevent.
      const isCut = kills.some((kill) => kill > endedAt && kill < endedAt + CLOSING_MS)
      // Without a response from Setu the service has no id of the link to close.
      if (status === 503) return bank === 'setu' || !closes || isCut
      return status === undefined || (clicks > 1 && isCut)
    }
  }
}

type Stored = Omit<BankLink, 'bank' | 'isOpen'> & { mid: string; acquirer: Case['first']; byFallback: boolean }

const quantile = (values: readonly number[], share: number) =>
  values.toSorted((a, b) => a - b)[Math.ceil(values.length * share) - 1] ?? 0

/** The merchant's order_id in a request to a bank. */
function noteIn(body: unknown): string | undefined {
  const { transactionNote, order_note } = (body ?? {}) as { transactionNote?: string; order_note?: string }
  return transactionNote ?? order_note
}

function bankLinks({ setu, cashfree }: { setu: FakeSetu; cashfree: FakeCashfree }): BankLink[] {
  const ofSetu = [...setu.qrs.values()].map(({ transactionNote, referenceId, intentLink, status }): BankLink => {
    return { bank: 'setu', name: transactionNote, orderId: referenceId, link: intentLink, isOpen: status === 'active' }
  })
  const ofCashfree = [...cashfree.orders.values()].flatMap((order) =>
    order.links.map((link): BankLink => {
      const isOpen = cashfree.statusOf(order) === 'ACTIVE'
      return { bank: 'cashfree', name: order.sent.order_note ?? '', orderId: order.orderId, link, isOpen }
    }),
  )
  return [...ofSetu, ...ofCashfree]
}
