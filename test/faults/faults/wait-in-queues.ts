import { setTimeout as sleep } from 'node:timers/promises'
import { createRefund } from '../../../src/gateway/refunds/create-refund.ts'
import { createHttpClient } from '../../support/http-client.ts'
import { createdOrderId, createRequest, forEach, sendWithRetries } from '../../support/requests.ts'
import { type NewMerchant, newMerchant, unique } from '../../support/tenants.ts'
import { until } from '../../support/wait.ts'
import { type AnyBank, BANKS } from '../bank.ts'
import { type Stage, setScene, startService } from '../stage.ts'
import type { Finding } from '../verdict.ts'

const RUNS = 20
/** Pending jobs of two Setu merchants before each run. */
const QUEUE = 300
/** Paid orders of both merchants. A payment has at most 100 refunds, and a slow machine processes more between two runs. */
const PAID = 100
const SLOW_MS = 1_000
const LOOK_MS = 1_000
const CONCURRENCY = 8
/** Limits for another merchant of the same acquirer; for another acquirer every run must stay within the first. */
const LIMITS_MS = { median: 3_000, most: 10_000 }
/** A refund of ₹1. */
const PAISE = 100

/** The call of a status check of an open order. */
const STATUS_CHECKS = { setu: 'last', cashfree: 'findOrder' } as const
type Acquirer = keyof typeof STATUS_CHECKS

/**
 * Another merchant without a queue of its own, with one paid order, whose payment is refunded, and one unpaid order, whose
 * status is checked.
 */
type Other = { mid: string; orderId: string; unpaidId: string; bank: AnyBank; acquirer: Acquirer; acquirerId: string }

/**
 * Measures how long refunds and status checks of other merchants wait behind two merchants with long queues, at a Setu
 * that is slow or hangs.
 */
export async function waitInQueues({ postgres }: Stage): Promise<Finding[]> {
  const { url, db } = await setScene(postgres, 'queues')
  const setu = await BANKS.setu(db)
  const cashfree = await BANKS.cashfree(db)
  const service = await startService(url, { RATE_LIMIT_PER_SECOND: '1000000', ...setu.settings, ...cashfree.settings })
  for (const { bank, path } of [setu, cashfree]) bank.notifyUrl = service.url + path
  const client = createHttpClient()
  const newOfSetu = () => newMerchant(db, { acquirer: 'setu', acquirerMerchantId: unique('01') })
  const strangers = [await newOfSetu(), await newOfSetu()]
  const queue = await forEach(
    Array.from({ length: QUEUE + PAID }, (_, number) => strangers[number % 2] as NewMerchant),
    CONCURRENCY,
    async (merchant) => ({ mid: merchant.mid, orderId: await create(merchant) }),
  )
  // The paid orders' ₹1 refunds are the queue of refunds, the other orders that of status checks.
  const paid = queue.splice(0, PAID)
  for (const { orderId } of paid) await setu.bank.pay(orderId)
  const others = [await newOther(setu, 'setu', setu.merchant), await newOther(cashfree, 'cashfree', cashfree.merchant)]

  const notes: string[] = []
  const broken: string[] = []
  for (const [name, fault] of [
    [`responds after ${SLOW_MS / 1_000} s`, { afterMs: SLOW_MS }],
    ['hangs', 'no response'],
  ] as const) {
    setFaults(setu.bank, ['refund', 'refundsOfPayment', 'last'], fault)
    setFaults(cashfree.bank, ['refund', 'findRefund', 'findOrder'], { afterMs: SLOW_MS })
    for (const [what, fill, send] of [
      ['refunds', fillRefunds, sendRefund],
      ['questions', fillStatusChecks, sendStatusCheck],
    ] as const) {
      const waits = await measure(fill, send)
      for (const [number, { acquirer }] of others.entries())
        judge(acquirer, `${what} of ${acquirer} while Setu ${name}`, waits[number])
    }
  }
  client.close()
  await service.stop()
  for (const { bank } of [setu, cashfree]) {
    if (bank.violations.length > 0) broken.push(`every request follows the documents: ${bank.violations[0]}`)
    await bank.goAway()
  }
  await db.end()
  return [{ fault: `behind ${QUEUE} jobs of two merchants, ${RUNS} runs`, notes, broken }]

  /** Returns how many milliseconds the calls of each other merchant waited behind a filled queue. */
  async function measure(fill: () => Promise<void>, send: (other: Other) => Promise<number>): Promise<number[][]> {
    await rest()
    const waits = others.map((): number[] => [])
    for (let run = 0; run < RUNS; run++) {
      await fill()
      // At a random time between two polls.
      await sleep(Math.random() * LOOK_MS)
      await Promise.all(others.map(async (other, number) => waits[number]?.push(await send(other))))
    }
    return waits
  }

  function judge(acquirer: Acquirer, what: string, waits: number[] = []) {
    const sorted = waits.toSorted((a, b) => a - b)
    const [median = 0, most = 0] = [sorted[RUNS / 2], sorted.at(-1)]
    const said = `${what}: ${seconds(median)} at the median, ${seconds(most)} at most`
    notes.push(said)
    const limit = acquirer === 'setu' ? LIMITS_MS.most : LIMITS_MS.median
    if (median > LIMITS_MS.median || most > limit)
      broken.push(`no merchant waits for another merchant's queue: ${said}`)
  }

  async function create(merchant: NewMerchant): Promise<string> {
    const response = await sendWithRetries(client, service.url, createRequest(merchant, { order_id: unique('O') }))
    const orderId = createdOrderId(response)
    if (orderId === undefined) throw new Error(`a create returned ${response.status}: ${response.text}`)
    return orderId
  }

  async function newOther({ bank }: { bank: AnyBank }, acquirer: Acquirer, merchant: NewMerchant): Promise<Other> {
    const orderId = await create(merchant)
    await bank.pay(orderId)
    const unpaidId = await create(merchant)
    const { rows } = await db.query('select acquirer_order_id as id from acquirer_intents where order_id = $1', [
      unpaidId,
    ])
    return { mid: merchant.mid, orderId, unpaidId, bank, acquirer, acquirerId: rows[0].id }
  }

  /** Waits until no job is pending or in progress. */
  async function rest() {
    await db.query('update refunds set due_at = null')
    await db.query('update acquirer_intents set status_check_at = null')
    await sleep(5_000)
  }

  async function refund({ mid, orderId }: { mid: string; orderId: string }) {
    const checked = { mid, orderId, refundId: unique('R'), amount: PAISE, note: 'sold out', createdBy: 'merchant' }
    const created = await createRefund(db, checked, new Date())
    if (!('refund' in created)) throw new Error(`a refund was rejected: ${created.rejected}`)
    return created.refund
  }

  /** Replaces the refunds processed in the meantime. */
  async function fillRefunds() {
    const { rows } = await db.query('select count(*)::integer as waiting from refunds where due_at <= now()')
    const missing = Array.from({ length: QUEUE - rows[0].waiting }, (_, number) => paid[number % paid.length])
    await forEach(missing, CONCURRENCY, async (order) => order && refund(order))
  }

  async function sendRefund(other: Other): Promise<number> {
    const { ourRefundId } = await refund(other)
    return untilCalled(other, 'refund', ourRefundId)
  }

  async function fillStatusChecks() {
    await db.query(
      `update acquirer_intents set status_checks = 0, status_check_at = now() - interval '1 hour' where order_id = any ($1)`,
      [queue.map(({ orderId }) => orderId)],
    )
  }

  async function sendStatusCheck(other: Other): Promise<number> {
    const { acquirer, unpaidId, acquirerId } = other
    await db.query('update acquirer_intents set status_checks = 0, status_check_at = now() where order_id = $1', [
      unpaidId,
    ])
    return untilCalled(other, STATUS_CHECKS[acquirer], acquirerId)
  }
}

const seconds = (milliseconds: number) => `${(milliseconds / 1_000).toFixed(1)} s`

function setFaults(bank: AnyBank, calls: string[], fault: { afterMs: number } | 'no response') {
  Object.assign(bank, { faults: calls.map((call) => ({ call, fault, chance: 1 })) })
}

/** Returns the milliseconds until the bank receives a call with `name`. */
async function untilCalled({ bank }: Other, call: string, name: string): Promise<number> {
  const begin = performance.now()
  const before = bank.requests.length
  const isOurs = (one: { call: string; path: string; body: unknown }) =>
    one.call === call && `${one.path} ${JSON.stringify(one.body)}`.includes(name)
  await until(`${call} of ${name} is sent`, () => bank.requests.slice(before).some(isOurs), { timeoutMs: 60_000 })
  return performance.now() - begin
}
