import { expect } from 'vitest'
import { statusCheckRulesOf } from '../../../src/gateway/acquirers/acquirers.ts'
import { checkAtAcquirer, createLinkCloser, statusCheckJobs } from '../../../src/gateway/acquirers/check-status.ts'
import type { AcquirerClient } from '../../../src/gateway/acquirers/client.ts'
import { createIntents } from '../../../src/gateway/payments/intents.ts'
import type { FinalStatus } from '../../../src/gateway/payments/outcome.ts'
import { createReports } from '../../../src/gateway/payments/reports.ts'
import { createStatusChecks } from '../../../src/gateway/payments/status-checks.ts'
import { expiryJobs } from '../../../src/gateway/webhooks/expiries.ts'
import { LIMITS } from '../../../src/limits.ts'
import type { JobSource } from '../../../src/platform/scheduler.ts'
import { createOrder } from '../../support/orders.ts'
import { runPendingJobs } from '../../support/pending-jobs.ts'
import { forEach } from '../../support/requests.ts'
import { post, STATUS } from '../../support/service.ts'
import { until } from '../../support/wait.ts'
import { newWebhook } from '../../support/webhooks.ts'
import { startInstance } from '../conformance/instance.ts'
import type { Bank, Booked } from './banks.ts'
import {
  type History,
  hasUtr,
  INSTANTS,
  OVER_SECONDS,
  type Payment,
  STATUS_CHECK_SECONDS,
  type Step,
} from './history.ts'

/** Concurrent histories and status checks per time, below the limit of calls to an acquirer. */
const CONCURRENCY = 32

/**
 * Result of an order: the status returned to the merchant, the response to each step, the stored rows, and the times
 * of status checks if the bank's notifications are not proof.
 */
export type End = { reported: string; responses: string[]; stored: string[]; checked: number[] }

/** Plays histories at an acquirer, each on its own order and all at the same times. */
export async function createPlayer(bank: Bank) {
  const { service, calls, faults } = bank
  const { clock, db, pools } = service
  const { now } = clock
  const merchant = await bank.newMerchant()
  await newWebhook(db, { mid: merchant.mid, url: 'https://shop.example/hook' }, now())
  const { clientOf, errors } = startInstance(bank)
  const client = (await clientOf(bank.name)) as AcquirerClient
  const [reports, intents] = [createReports(db), createIntents(pools, () => undefined)]
  const statusChecks = statusCheckJobs({
    statusChecks: createStatusChecks(db),
    clientOf,
    rulesOf: statusCheckRulesOf,
    reports,
    now,
    limits: LIMITS.acquirers,
  })
  const expiries = expiryJobs({ db, now, limits: LIMITS.webhooks })
  let played = 0

  return {
    async play(histories: readonly History[]): Promise<End[]> {
      const madeAt = now().getTime()
      const first = played
      played += histories.length
      const orders = await forEach(histories, CONCURRENCY, async (history, index) => {
        // An order has its own UTRs, which are the same at every acquirer.
        return {
          history,
          orderId: await createOrder(service, merchant),
          utrs: `H${first + index}`,
          responses: [] as string[],
          checked: [] as number[],
        }
      })
      for (const at of INSTANTS) {
        clock.set(new Date(madeAt + at * 1000).toISOString())
        if (at === OVER_SECONDS) await runPendingJobs(expiries)
        await forEach(orders, CONCURRENCY, async ({ history, ...order }) => {
          for (const step of history.steps) if (step.at === at) order.responses.push(await take(order, step))
        })
        // At other banks, on-demand status checks are skipped, because they would find payments before these are
        // reported.
        if (bank.drainChecked || STATUS_CHECK_SECONDS.includes(at)) await runStatusChecks(statusChecks)
        const checked = new Set(bank.drainChecked?.())
        for (const order of orders) if (checked.has(order.orderId)) order.checked.push(at)
        faults.length = 0
      }
      const ends = await endsOf(orders)
      // A failed last status check would be repeated later, about an order that the bank has deleted.
      await db.query('update acquirer_intents set status_check_at = null where status_check_at is not null')
      bank.forget()
      expect(service.log.splice(0).filter((line) => JSON.parse(line).level >= 50)).toEqual([])
      expect(errors).toEqual([])
      return ends
    },
  }

  type Order = { orderId: string; utrs: string }

  /** Runs a step. Returns the response, if there is one. */
  async function take({ orderId, utrs }: Order, step: Step): Promise<string> {
    const booked = (payment: Payment, rupees = 200): Booked => {
      const { status, number, begunAt, endedAt } = payment
      const utr = hasUtr(payment) ? utrs + payment.utr : payment.utr
      // Gives two attempts of the same time different times.
      const timeOf = (seconds: number) => new Date(now().getTime() + (seconds - step.at + number) * 1000)
      const times = { begunAt: timeOf(begunAt), endedAt: endedAt === undefined ? undefined : timeOf(endedAt) }
      return { number, status, utr, amount: rupees * 100, ...times }
    }
    switch (step.does) {
      case 'begin':
      case 'end':
        bank.book(orderId, booked(step.payment))
        return ''
      case 'tell':
        return sendReport(orderId, booked(step.payment, step.rupees), step.by)
      case 'ask':
        return checkStatus(orderId)
      case 'cancel':
        if (!step.isReached && calls.close) makeUnreachable(orderId, calls.close)
        return cancel(orderId, step)
      case 'question':
        if (!step.isReached) makeUnreachable(orderId, calls.checkStatus)
        return ''
    }
  }

  /** Makes this call fail for the order until the next time step. */
  function makeUnreachable(orderId: string, call: string) {
    faults.push({ call, fault: { status: 503 }, chance: 1, path: bank.pathOf(orderId) })
  }

  async function sendReport(orderId: string, payment: Booked, by: string): Promise<string> {
    if (by === 'day file') {
      const { status, utr, amount } = payment as Booked & { status: FinalStatus }
      const report = { orderId, status, utr: hasUtr({ utr }) ? utr : undefined, amount }
      return JSON.stringify(
        await reports.record({ ...report, paidAt: bank.timeOf(payment) }, { source: 'day file', now }),
      )
    }
    const secret = by === 'forged notification' ? 'of-somebody-else' : undefined
    const { body, headers } = bank.notificationOf(orderId, payment, secret)
    return String((await post(service.app, bank.path, body, undefined, headers)).status)
  }

  async function checkStatus(orderId: string): Promise<string> {
    const { body } = await post(service.app, STATUS, { mid: merchant.mid, order_id: orderId }, merchant.key)
    if (body.txnStatus === 'FAIL') {
      // Waits until the report of FAIL is stored, because it decides whether a payment of the transaction report is
      // late.
      await until('the report of FAIL is stored', async () => {
        const { rows } = await db.query(
          `select from payment_intents where order_id = $1 and (status = 'CANCELLED' or failure_reported_at is not null)`,
          [orderId],
        )
        return rows.length > 0
      })
    }
    return `${body.txnStatus} ${body.msg} ${body.data?.UTR ?? ''}`
  }

  /** Cancels like cancelPayment, but waits for the acquirer. */
  async function cancel(
    orderId: string,
    { isReached, isOver }: { isReached: boolean; isOver: boolean },
  ): Promise<string> {
    const payment = await intents.cancel(merchant.mid, orderId, now(), () => undefined)
    if (payment?.toClose) {
      const order = { orderId, paymentLink: payment.toClose }
      const clientOf = async () => client
      await createLinkCloser({ clientOf, reports, now, log: { error: () => undefined } })(order)
      // Checks the status, so that all banks know what Cashfree's rejection has already revealed.
      if (isReached && isOver && !bank.rejectsClose && !bank.drainChecked)
        await checkAtAcquirer(order, { client, reports, now })
    }
    return payment?.status ?? ''
  }

  async function endsOf(orders: (Order & Pick<End, 'responses' | 'checked'>)[]): Promise<End[]> {
    const selects = STORED.map(
      ([table, columns]) =>
        `select order_id as "orderId", concat_ws(' ', '${table}:', ${columns}) as line
           from ${table} where mid = $1 and order_id = any ($2)`,
    )
    const orderIds = orders.map(({ orderId }) => orderId)
    const { rows } = await db.query<{ orderId: string; line: string }>(`${selects.join(' union all ')} order by line`, [
      merchant.mid,
      orderIds,
    ])
    const stored = new Map(orderIds.map((orderId) => [orderId, [] as string[]]))
    for (const { orderId, line } of rows) stored.get(orderId)?.push(line)
    return forEach(orders, CONCURRENCY, async ({ orderId, responses, checked }) => {
      return { reported: await checkStatus(orderId), responses, checked, stored: stored.get(orderId) ?? [] }
    })
  }
}

/** Columns that must be the same at every acquirer. */
const STORED = [
  ['payment_intents', 'status, utr'],
  ['payments', 'kind, utr, amount_paise, source'],
  ['payment_attempts', 'status, utr, source'],
  ['payment_exceptions', 'kind, status, utr, amount_paise'],
  ['webhook_deliveries', 'sequence, type, txn_status, utr'],
  ['acquirer_intents', 'status_checks'],
] as const

/** Runs status checks until none is pending. */
async function runStatusChecks(statusChecks: JobSource): Promise<void> {
  const never = new AbortController().signal
  for (let queues = await statusChecks.findQueues(); queues.length > 0; queues = await statusChecks.findQueues()) {
    for (const queue of queues) {
      const works = await queue.claim(CONCURRENCY)
      await Promise.all(works.map((work) => work(never)))
    }
  }
}
