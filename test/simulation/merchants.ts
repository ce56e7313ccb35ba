import { randomUUID } from 'node:crypto'
import { disableEndpoint } from '../../src/gateway/webhooks/endpoints.ts'
import type { Database } from '../../src/platform/db/pool.ts'
import { RIGHTS } from '../../src/platform/rights.ts'
import { CANCEL, CREATE, FORM, form, intentFields, REFUND, REFUND_STATUS, STATUS } from '../support/requests.ts'
import { basic, type Key, newKey, newMerchant } from '../support/tenants.ts'
import type { Receiver } from '../support/webhook-receiver.ts'
import { newWebhook } from '../support/webhooks.ts'
import type { Banks } from './banks.ts'
import type { Account, MerchantPlan, OrderPlan, Plan, RefundPlan } from './plan.ts'
import type { World } from './world.ts'

/*
 * Merchants' servers, their customers, and the responses that both received. A merchant repeats a request without a response, because it
 * cannot know whether the request was stored.
 */

const PAYEES = [
  'demomerchantonline@ybl',
  'demomerchantonline@axl',
  'cf.demo*@icici',
  'rzr.demo*@icici',
  'chaipoint@examplebank',
]
/**
 * Seconds after the creation from which a payment without a notification may be known only by the acquirer's report, because an
 * acquirer may limit status checks to a few.
 */
const LAST_CHECK_SECONDS = 900 + 85
/** Path of the endpoints that no event may reach. */
export const DISABLED = '/disabled'
/** Attempts of a request without a response. */
const MOST_TRIES = 6
const HOUR_MS = 3_600_000

export type KnownRefund = { refundId: string; ourRefundId: string | undefined; orderId: string; statuses: string[] }

/** What a merchant knows about an order. */
export type KnownOrder = {
  plan: OrderPlan
  mid: string
  merchantOrderId: string
  orderId: string | undefined
  account: Account | undefined
  /** Every status that the merchant has read, in sequence. */
  statuses: string[]
  refunds: KnownRefund[]
}

export type Merchant = { plan: MerchantPlan; mid: string; key: Key }
export type Merchants = Awaited<ReturnType<typeof createMerchants>>

type Scene = { plan: Plan; world: World; banks: Banks; db: Database; receiver: Receiver }

export async function createMerchants({ plan, world, banks, db, receiver }: Scene) {
  const merchants: Merchant[] = []
  const orders: KnownOrder[] = []
  for (const one of plan.merchants) merchants.push(await addMerchant(one))

  return {
    all: merchants,
    orders,
    /** Plans what happens with an order. */
    plan: (order: OrderPlan) => world.plan(order.at, `order ${order.number}`, () => create(order)),
    readRefunds,
    readStatuses,
  }

  async function addMerchant(one: MerchantPlan): Promise<Merchant> {
    const mid = `M${one.number}`
    const linked = (account: Account | undefined) => (account && account !== 'direct' ? account : undefined)
    const [acquirer, fallbackAcquirer] = [linked(one.account), linked(one.fallback)]
    await newMerchant(db, {
      ...{ mid, payees: PAYEES },
      ...(acquirer && { acquirer, acquirerMerchantId: `A${one.number}` }),
      ...(fallbackAcquirer && { fallbackAcquirer, fallbackAcquirerMerchantId: `F${one.number}` }),
    })
    await newWebhook(db, { mid, url: `${receiver.url}/${mid}`, endpointId: `ep${one.number}` }, new Date())
    const { endpointId } = await newWebhook(db, { mid, url: receiver.url + DISABLED }, new Date())
    await disableEndpoint(db, { endpointId, now: new Date() })
    receiver.responses.set(`/${mid}`, (response) => {
      const isDown = one.down.some(({ from, to }) => world.now() >= from && world.now() < to)
      response.writeHead(isDown ? 503 : 200).end('')
    })
    return { plan: one, mid, key: await newKey(db, { mid }, RIGHTS) }
  }

  async function send({ mid, key }: Merchant, path: string, fields: Record<string, string>, idempotencyKey?: string) {
    const headers = {
      ...{ authorization: basic(key), 'content-type': FORM },
      ...(idempotencyKey && { 'idempotency-key': idempotencyKey }),
    }
    const response = await world.request({ method: 'POST', path, headers, body: form({ mid, ...fields }) })
    if (response?.status === 500) world.unexpected.push(`${path} received 500`)
    world.count(`requests ${path.split('/').at(-1)} ${response?.status ?? 'lost'}`)
    return response
  }

  async function create(plan: OrderPlan): Promise<void> {
    const merchant = merchants[plan.merchant] as Merchant
    const order: KnownOrder = {
      ...{ plan, mid: merchant.mid, merchantOrderId: `O${plan.number}`, orderId: undefined, account: undefined },
      ...{ statuses: [], refunds: [] },
    }
    orders.push(order)
    world.count('orders')
    if (plan.linkFault) banks.fault(merchant.plan.account, 'link', plan.linkFault as never)
    const canary = { customer_name: `Canary ${plan.number}`, customer_email: `canary${plan.number}@example.in` }
    const fields = intentFields(merchant.mid, {
      ...{ ...canary, amount: String(plan.paise / 100), order_id: order.merchantOrderId },
    })
    const key = merchant.plan.hasKeys ? randomUUID() : undefined
    await world.crashing(plan.crash, 'create', () => tryToCreate(order, merchant, { fields, key, tries: 1 }))
  }

  type Try = { fields: Record<string, string>; key: string | undefined; tries: number }

  async function tryToCreate(order: KnownOrder, merchant: Merchant, { fields, key, tries }: Try): Promise<void> {
    const response = await send(merchant, CREATE, fields, key)
    banks.fault(merchant.plan.account, 'link', undefined)
    const result = response?.status === 200 ? response.body.data.orderId : (response?.status ?? 'no response')
    world.write(`${order.mid} creates order ${order.plan.number}: ${result}`)
    if (response?.status === 200) return created(order, response.body.data)
    const isUnsure = response === undefined || response.status >= 500
    if (isUnsure && tries < MOST_TRIES) {
      const again = () => tryToCreate(order, merchant, { fields, key, tries: tries + 1 })
      world.plan(world.now() + 11_000, 'create again', again)
    }
    world.work(1, 60)
  }

  async function created(order: KnownOrder, { orderId, intent }: { orderId: string; intent: string }) {
    const { plan } = order
    const { rows } = await db.query('select acquirer from acquirer_intents where mid = $1 and order_id = $2', [
      order.mid,
      orderId,
    ])
    Object.assign(order, { orderId, account: (rows[0]?.acquirer as Account | undefined) ?? 'direct' })
    const asked = Number(new URLSearchParams(intent.split('?')[1]).get('am'))
    if (asked * 100 !== plan.paise) throw new Error(`a link of ${asked} rupees for ${plan.paise} paise`)
    const now = world.now()
    for (const attempt of plan.attempts)
      world.plan(now + attempt.after * 1000, 'customer', () =>
        world.crashing(plan.crash, 'pay', () => pay(order, attempt)),
      )
    for (const after of plan.polls) world.plan(now + after * 1000, 'poll', () => readStatus(order))
    if (plan.cancelAfter !== undefined) world.plan(now + plan.cancelAfter * 1000, 'cancel', () => cancel(order))
    for (const [index, refund] of plan.refunds.entries()) {
      const at = now + (plan.attempts.at(-1)?.after ?? 0) * 1000 + 120_000 + refund.after * HOUR_MS
      const ask = () => world.crashing(plan.crash, 'refund', () => askRefund(order, refund, index, 1))
      world.plan(at, 'refund', ask)
    }
    if (plan.crash?.during === 'jobs')
      world.plan(now + 992_000, 'crash of jobs', () => world.crashing(plan.crash, 'jobs', world.runJobs))
    world.work(2, 100, 995, 1_390, 1_510, 8_200)
  }

  async function pay(order: KnownOrder, attempt: OrderPlan['attempts'][number]): Promise<void> {
    const { plan, mid, orderId, account } = order as KnownOrder & { orderId: string; account: Account }
    if (attempt.checkFault) banks.fault(account, 'check', attempt.checkFault as never)
    const isUnchecked = attempt.after > LAST_CHECK_SECONDS || hasPaid(orderId)
    const facts = { account, orderId, mid, paise: plan.paise, isLate: plan.isSettledLate, isUnchecked }
    world.count(`attempts ${attempt.outcome}`)
    if (account === 'direct') {
      const { utr, received, requests } = banks.payDirectly(facts, attempt)
      const results = await Promise.all(requests.map((sent) => world.request({ method: 'POST', ...sent })))
      const statuses = results.map((result) => result?.status ?? 'no response').join()
      world.write(`order ${plan.number} ${attempt.outcome} ${utr} of ${received}, reported: ${statuses}`)
    } else {
      world.write(`order ${plan.number} at ${account}: ${attempt.outcome}: ${await banks.pay(facts, attempt)}`)
    }
    world.work(2, 30, 300)
  }

  function hasPaid(orderId: string): boolean {
    return banks.movements.some((one) => one.kind === 'payment' && one.orderId === orderId)
  }

  async function readStatus(order: KnownOrder): Promise<void> {
    if (order.orderId === undefined) return
    const merchant = merchants[order.plan.merchant] as Merchant
    const response = await send(merchant, STATUS, { order_id: order.orderId })
    if (response?.status === 200) order.statuses.push(response.body.txnStatus)
  }

  async function cancel(order: KnownOrder): Promise<void> {
    const response = await send(merchants[order.plan.merchant] as Merchant, CANCEL, {
      order_id: order.orderId as string,
    })
    world.write(`order ${order.plan.number} is cancelled: ${response?.status} ${response?.body?.txnStatus}`)
    world.work(2, 30)
  }

  async function askRefund(order: KnownOrder, refund: RefundPlan, index: number, tries: number): Promise<void> {
    const merchant = merchants[order.plan.merchant] as Merchant
    const refundId = `R${order.plan.number}-${index}`
    const amount = String(Math.max(Math.floor((order.plan.paise / 100) * refund.share), 1))
    if (refund.fault) banks.fault(order.account as Account, 'refund', refund.fault as never)
    const named = { order_id: order.orderId as string, refund_id: refundId, note: 'Returned' }
    const fields = refund.share === 1 ? named : { ...named, amount }
    const response = await send(merchant, REFUND, fields)
    world.write(`order ${order.plan.number} refund ${index}: ${response?.status} ${response?.body?.msg ?? ''}`)
    if (response?.status === 200) {
      const ourRefundId = response.body.data?.refundId
      order.refunds.push({ refundId, ourRefundId, orderId: order.orderId as string, statuses: [] })
      if (refund.isSentAgain) await sendAgain(merchant, fields, ourRefundId)
    } else if ((response === undefined || response.status >= 500) && tries < MOST_TRIES)
      world.plan(world.now() + 11_000, 'refund again', () => askRefund(order, refund, index, tries + 1))
    else await expectRejected(order, refundId, response?.status)
    world.work(1, 60, 300)
  }

  /** A request sent again receives the same refund. A change of a field is rejected, and so is an unknown order. */
  async function sendAgain(merchant: Merchant, fields: Record<string, string>, ourRefundId: string) {
    const cases: [Record<string, string>, number][] = [
      [{}, 200],
      [{ note: 'Damaged' }, 409],
      [{ amount: '500000' }, 409],
      [{ order_id: 'none' }, 404],
    ]
    for (const [change, expected] of cases) {
      const response = await send(merchant, REFUND, { ...fields, ...change })
      if (response === undefined || response.status === 503) continue
      const { status, body } = response
      if (status !== expected || (status === 200 && body.data.refundId !== ourRefundId))
        throw new Error(`refund ${fields.refund_id} with ${JSON.stringify(change)} received ${status} ${body.msg}`)
    }
  }

  /** A refund may be rejected if the order is not paid, or if a refund or a dispute of its payment exists. */
  async function expectRejected({ mid, orderId }: KnownOrder, refundId: string, status: number | undefined) {
    const { rows } = await db.query(
      `select exists (select from refunds where mid = $1 and refund_id = $3) as "isStored",
              status = 'SUCCESS'
                and not exists (select from disputes d where d.mid = i.mid and d.order_id = i.order_id)
                and not exists (select from refunds r where r.mid = i.mid and r.order_id = i.order_id and r.utr = i.utr)
                as "isWhole"
         from payment_intents i where mid = $1 and order_id = $2`,
      [mid, orderId, refundId],
    )
    if (rows[0].isStored) throw new Error(`the refund ${refundId} is stored, and its repeat received ${status}`)
    if (rows[0].isWhole) throw new Error(`the refund ${refundId} of a whole payment received ${status}`)
  }

  /** Every merchant reads the statuses of the refunds of these orders. */
  async function readRefunds(of: (order: KnownOrder) => boolean): Promise<void> {
    for (const order of orders.filter(of)) {
      const { plan, refunds } = order
      for (const refund of refunds) {
        const response = await send(merchants[plan.merchant] as Merchant, REFUND_STATUS, { refund_id: refund.refundId })
        const status = response?.body?.data?.txnStatus
        if (response?.status === 200) refund.statuses.push(String(status))
      }
    }
  }

  /** Every merchant reads the statuses of these orders. */
  async function readStatuses(of: (order: KnownOrder) => boolean): Promise<void> {
    for (const order of orders) if (of(order)) await readStatus(order)
  }
}
