import { parse } from 'csv-parse/sync'
import { daysOfMonth } from '../../src/books/closing/closed-months.ts'
import { addDays } from '../../src/books/ledger/bank-days.ts'
import type { Database } from '../../src/platform/db/pool.ts'
import { toPaise } from '../../src/platform/money.ts'
import { toIstDay } from '../../src/platform/time.ts'
import type { Receiver } from '../support/webhook-receiver.ts'
import type { Banks, Movement } from './banks.ts'
import { DISABLED, type Merchants } from './merchants.ts'
import { type Document, dayOf, type Operators } from './operators.ts'
import type { Plan } from './plan.ts'
import type { World } from './world.ts'

/*
 * What must hold whatever happens. The invariants compare what the service has stored, what merchants have received and what reports
 * show with what the bank has moved. Each returns the violations.
 */

export type Scene = {
  plan: Plan
  world: World
  banks: Banks
  merchants: Merchants
  operators: Operators
  db: Database
  receiver: Receiver
}

const FINAL = ['SUCCESS', 'FAIL', 'REJECT']

/** Invariants at a quiet moment: everything that the bank moved until yesterday is reported. */
export async function checkQuietly(scene: Scene): Promise<string[]> {
  return [
    ...(await ordersAgree(scene)),
    ...(await statusesOnlyGrow(scene)),
    ...(await lateIsLate(scene)),
    ...(await refundsAgree(scene)),
    ...(await exceptionsHaveCauses(scene)),
    ...(await noExceptionIsObsolete(scene)),
    ...nothingLeaks(scene),
    ...scene.world.unexpected.map((error) => `an instance logs ${error}`),
    ...scene.banks.violations().map((violation) => `an acquirer rejects ${violation}`),
  ]
}

export async function checkAtEnd(scene: Scene): Promise<string[]> {
  return [
    ...(await checkQuietly(scene)),
    ...(await eventsHaveArrived(scene)),
    ...(await booksAgree(scene)),
    ...(await scene.operators.resolveDifferences()),
    ...(await nothingIsOpen(scene)),
  ]
}

/** (a) An order is paid if and only if the bank has its money. */
async function ordersAgree({ db, banks, merchants, operators, world }: Scene): Promise<string[]> {
  const { rows } = await db.query<{ mid: string; orderId: string; status: string }>(
    'select mid, order_id as "orderId", status from payment_intents',
  )
  const statuses = new Map(rows.map(({ orderId, status }) => [orderId, status]))
  const isOlder = ({ day, isUnchecked, unconfirmed }: Movement) =>
    !unconfirmed && day < (isUnchecked ? operators.reportedUntil() : world.today())
  const paid = new Set(
    banks.movements.filter((one) => one.kind === 'payment' && isOlder(one)).map(({ orderId }) => orderId),
  )
  const broken = [...paid].flatMap((orderId) =>
    statuses.get(orderId) === 'SUCCESS' ? [] : [`the bank has money of ${orderId}, which is ${statuses.get(orderId)}`],
  )
  const all = new Set(banks.movements.filter(({ kind }) => kind === 'payment').map(({ orderId }) => orderId))
  for (const [orderId, status] of statuses) {
    if (status === 'SUCCESS' && !all.has(orderId)) broken.push(`${orderId} is paid, and the bank has no money of it`)
  }
  const lost = merchants.orders.filter(({ orderId }) => orderId !== undefined && !statuses.has(orderId))
  return [...broken, ...lost.map(({ orderId }) => `a merchant received the order ${orderId}, which is not stored`)]
}

/** Changes of a final status in what somebody has read, such as `FAIL SUCCESS`. */
function changesIn(statuses: readonly string[]): string[] {
  const final = statuses.slice(
    Math.max(
      statuses.findIndex((status) => FINAL.includes(status)),
      0,
    ),
  )
  return final.flatMap((status, index) => {
    const before = final[index - 1]
    return before === undefined || before === 'PENDING' || before === status ? [] : [`${before} ${status}`]
  })
}

/** (a) What a merchant reads of an order: SUCCESS never changes, and another final status only to SUCCESS, as a late payment. */
async function statusesOnlyGrow({ db, merchants }: Scene): Promise<string[]> {
  const { rows } = await db.query<{ orderId: string }>(
    `select order_id as "orderId" from payment_exceptions where kind = 'late payment'`,
  )
  const late = new Set(rows.map(({ orderId }) => orderId))
  return merchants.orders.flatMap(({ orderId = '', statuses }) => {
    const changes = changesIn(statuses)
    const isRight = changes.every((change) => /^(FAIL|REJECT) SUCCESS$/.test(change)) && changes.length <= 1
    if (!isRight) return [`a merchant has read of ${orderId}: ${statuses.join(', ')}`]
    return changes.length === 0 || late.has(orderId) ? [] : [`${orderId} was paid late without an exception`]
  })
}

/** (a) An order is paid late if and only if its status was final when the service learned of the payment. */
async function lateIsLate({ db }: Scene): Promise<string[]> {
  const { rows } = await db.query<{ orderId: string; isLate: boolean }>(
    `select i.order_id as "orderId", e.order_id is not null as "isLate"
       from payment_intents i
       join payments p on p.mid = i.mid and p.order_id = i.order_id and p.utr = i.utr
       left join payment_exceptions e on e.mid = i.mid and e.order_id = i.order_id and e.kind = 'late payment'
      where case when e.order_id is null
                 then p.received_at > least(i.expires_at + interval '11 minutes', i.cancelled_at)
                 else p.received_at <= i.expires_at and i.cancelled_at is null end`,
  )
  return rows.map(
    ({ orderId, isLate }) => `${orderId} was paid ${isLate ? 'in time with' : 'late without'} an exception`,
  )
}

type StoredRefund = {
  id: string
  amount: number
  status: string
  /** When the service recorded that the money moved, and that the bank returned it. */
  succeededAt: Date | null
  returnedAt: Date | null
}

async function storedRefunds(db: Database): Promise<Map<string, StoredRefund>> {
  const { rows } = await db.query<StoredRefund>(
    `select our_refund_id as id, amount_paise::int as amount, status,
            coalesce(succeeded_at, case when status = 'SUCCESS' then ended_at end) as "succeededAt", returned_at as "returnedAt"
       from current_refunds where created_by <> 'acquirer'`,
  )
  return new Map(rows.map((refund) => [refund.id, refund]))
}

/** (c) No refund twice, none above its payment, none that one side has and the other has not. */
async function refundsAgree({ db, banks, merchants }: Scene): Promise<string[]> {
  const stored = await storedRefunds(db)
  const moved = banks.movements.filter(({ kind }) => kind === 'refund')
  const sums = new Map<string, number>()
  const broken: string[] = []
  const returned = new Set(moved.filter(({ paise }) => paise > 0).map(({ id }) => id))
  for (const { id, paise, orderId, utr, mid } of moved) {
    const refund = stored.get(id)
    if (returned.has(id)) {
      if (refund?.status !== 'FAIL') broken.push(`the refund ${id} was returned, and is ${refund?.status}`)
      continue
    }
    if (refund === undefined) broken.push(`the bank carried out the refund ${id} of ${orderId}, which is not stored`)
    else if (-paise !== refund.amount) broken.push(`the refund ${id} of ${refund.amount} moved ${-paise}`)
    else if (refund.status === 'FAIL') broken.push(`the refund ${id} has failed, and the bank carried it out`)
    sums.set(`${mid} ${utr}`, (sums.get(`${mid} ${utr}`) ?? 0) - paise)
  }
  for (const id of new Set(moved.map((one) => one.id)))
    if (moved.filter((one) => one.id === id && one.paise < 0).length > 1)
      broken.push(`the bank carried out the refund ${id} twice`)
  for (const one of banks.movements.filter(({ kind }) => kind === 'payment')) {
    const refunded = sums.get(`${one.mid} ${one.utr}`) ?? 0
    if (refunded > one.paise) broken.push(`${refunded} of ${one.paise} of the payment ${one.utr} are refunded`)
  }
  const done = new Set(moved.map(({ id }) => id))
  for (const { id, status } of stored.values())
    if (status === 'SUCCESS' && !done.has(id))
      broken.push(`the refund ${id} is stored as done, and the bank has not carried it out`)
  const requested = merchants.orders.flatMap(({ refunds }) => refunds)
  for (const { ourRefundId = '', statuses } of requested) {
    if (!stored.has(ourRefundId)) broken.push(`a merchant received the refund ${ourRefundId}, which is not stored`)
    for (const change of changesIn(statuses))
      if (change !== 'FAIL SUCCESS' && !(change === 'SUCCESS FAIL' && returned.has(ourRefundId)))
        broken.push(`a merchant has read of the refund ${ourRefundId}: ${statuses.join(', ')}`)
  }
  return broken
}

/** (f) An exception names what happened. No customers of the world pay with one UTR, and no acquirer refunds more than it was sent. */
async function exceptionsHaveCauses({ db, banks }: Scene): Promise<string[]> {
  const { rows } = await db.query<{ kind: string; orderId: string; isPaid: boolean }>(
    `select kind, order_id as "orderId",
            exists (select from payments p
                     where p.mid = e.mid and p.order_id = e.order_id and p.received_at <= e.received_at) as "isPaid"
       from payment_exceptions e
      where kind in ('double payment', 'failure after success', 'UTR of another order', 'UTR of another merchant',
                     'refunded above what was paid', 'refund failed after success', 'refund differs', 'unknown dispute',
                     'dispute differs')`,
  )
  const paid = banks.movements.filter(({ kind }) => kind === 'payment').map(({ orderId }) => orderId)
  return rows.flatMap(({ kind, orderId, isPaid }) => {
    const isPaidTwice = paid.indexOf(orderId) !== paid.lastIndexOf(orderId)
    const isRight = kind === 'double payment' ? isPaidTwice : kind === 'failure after success' && isPaid
    return isRight ? [] : [`the exception ${kind} of ${orderId} has no cause`]
  })
}

/** (f) No exception is open whose cause is gone. */
export async function noExceptionIsObsolete({ db }: Scene): Promise<string[]> {
  const { rows } = await db.query<{ kind: string; orderId: string }>(
    `select e.kind, e.order_id as "orderId"
       from payment_exceptions e
      where not exists (select from payment_resolutions r where r.mid = e.mid and r.exception_id = e.exception_id)
        and (   (e.kind = 'unknown order' and exists (select from payments p where p.utr = e.utr))
             or (e.kind in ('refund unsure', 'refund without an end') and exists
                  (select from refunds f where f.mid = e.mid and f.our_refund_id = e.our_refund_id and f.status <> 'PENDING'))
             or (e.kind = 'double payment' and exists
                  (select from refunds f where f.mid = e.mid and f.exception_id = e.exception_id and f.status = 'SUCCESS')))`,
  )
  return rows.map(({ kind, orderId }) => `the exception ${kind} of ${orderId} is open, and its cause is gone`)
}

/** (g) No customer data in the log. */
function nothingLeaks({ world }: Scene): string[] {
  const found = world.log.splice(0).filter((line) => /canary/i.test(line))
  return found.slice(0, 3).map((line) => `customer data in the log: ${line.slice(0, 200)}`)
}

/** (d) Each event reached its receiver, and each paid order and each refund with a final status has one. */
async function eventsHaveArrived({ db, receiver, merchants }: Scene): Promise<string[]> {
  const { rows } = await db.query<{ mid: string; orderId: string; sequence: number; delivered: boolean }>(
    `select mid, order_id as "orderId", sequence, delivered_at is not null as delivered from webhook_deliveries
      where endpoint_id <> 'return-call' order by mid, order_id, sequence`,
  )
  if (receiver.to(DISABLED).length > 0) return ['an event reached a disabled endpoint']
  const received = merchants.all.flatMap(({ mid }) => receiver.to(`/${mid}`))
  const arrived = new Set(
    received.flatMap(({ path, body }) => {
      const { data } = JSON.parse(body)
      return [`${path} ${data.orderId} ${data.sequence}`]
    }),
  )
  const broken: string[] = []
  for (const { mid, orderId, sequence, delivered } of rows) {
    if (!delivered) broken.push(`event ${sequence} of ${orderId} is not delivered`)
    if (!arrived.has(`/${mid} ${orderId} ${sequence}`))
      broken.push(`event ${sequence} of ${orderId} did not reach its receiver`)
  }
  const { rows: silent } = await db.query<{ id: string }>(
    `select order_id as id from payment_intents i
      where status = 'SUCCESS' and not exists (select from webhook_deliveries d
              where d.mid = i.mid and d.order_id = i.order_id and d.type = 'payment.succeeded' and d.txn_status = 'SUCCESS')
      union all
     select order_id from payment_intents i
      where status <> 'SUCCESS' and not exists (select from webhook_deliveries d
              where d.mid = i.mid and d.order_id = i.order_id and d.type in ('payment.expired', 'payment.cancelled'))
      union all
     select order_id from payment_attempts a join payment_intents i using (mid, order_id)
      where a.received_at < i.expires_at and a.received_at < coalesce(i.cancelled_at, i.expires_at)
        and not exists (select from webhook_deliveries d
              where d.mid = a.mid and d.order_id = a.order_id and d.type = 'payment.attempt_failed')
      union all
     select our_refund_id from refunds r
      where status <> 'PENDING' and created_by <> 'acquirer' and not exists (select from webhook_deliveries d
              where d.mid = r.mid and d.our_refund_id = r.our_refund_id and d.type like 'refund.%')`,
  )
  for (const { id } of silent) broken.push(`no event tells of the final status of ${id}`)
  for (const one of received) if (/canary/i.test(one.body)) broken.push('customer data in a webhook')
  return broken
}

/** Adds a month's postings to the clearing ledgers of each merchant, in paise. Returns debits less credits of all ledgers. */
function post(journal: string, clearing: Map<string, number>): number {
  const records: Record<string, string>[] = parse(journal, { bom: true, columns: true })
  let sum = 0
  for (const { mid = '', ledger = '', debit = '', credit = '' } of records) {
    const paise = toPaise(debit) - toPaise(credit)
    sum += paise
    if (ledger.startsWith('UPI clearing')) clearing.set(mid, (clearing.get(mid) ?? 0) + paise)
  }
  return sum
}

const isDisputed = ({ kind }: Movement) => kind.startsWith('dispute')

/** All days of the world, in the longest periods that a report accepts. */
function periodsOf(world: World): string[][] {
  const today = world.today()
  const periods: string[][] = []
  for (let from = dayOf(0); from <= today; from = addDays(from, 366)) {
    const to = addDays(from, 365)
    periods.push(['--from', from, '--to', to < today ? to : today])
  }
  return periods
}

/** (b), (e) The reports add up to what the bank moved, at each close and at the end. */
async function booksAgree({ db, banks, operators, merchants, world }: Scene): Promise<string[]> {
  const broken: string[] = []
  const refunds = await storedRefunds(db)
  /** A refund belongs to the day on which the service learned of it. */
  const knownOn = ({ kind, id, day, paise }: Movement) => {
    const refund = kind === 'refund' ? refunds.get(id) : undefined
    const at = paise < 0 ? refund?.succeededAt : refund?.returnedAt
    return at ? toIstDay(at) : day
  }
  const clearing = new Map<string, number>()
  for (const { month, figures, journal, asOf } of operators.closes) {
    const { to } = daysOfMonth(month)
    if (post(journal, clearing) !== 0) broken.push(`the debits and credits of ${month} differ`)
    for (const { mid } of merchants.all) {
      // A dispute is booked when the acquirer deducts it, so it is never carried forward.
      const own = banks.movements.filter((one) => one.mid === mid && !isDisputed(one))
      const received = own.filter((one) => knownOn(one) <= to).reduce((sum, { paise }) => sum + paise, 0)
      const settled = own.filter(({ settledOn = '9' }) => settledOn <= to).reduce((sum, { paise }) => sum + paise, 0)
      const carried = toPaise(figures.figures[mid]?.carriedForward ?? '0.00')
      if (carried !== received - settled)
        broken.push(`${month}: ${mid} carries ${carried} forward, and the bank owes ${received - settled}`)
      if ((clearing.get(mid) ?? 0) !== carried)
        broken.push(`${month}: ${mid} carries ${carried} forward, and the journals post ${clearing.get(mid)}`)
    }
    if ((await operators.ops('reconcile', 'journal', '--month', month, '--csv')) !== journal)
      broken.push(`the journal of ${month} has changed`)
    for (const [command, printed] of Object.entries(asOf))
      if ((await operators.ops(...command.split(' '))) !== printed) broken.push(`ops ${command} has changed`)
  }
  const reports: Document[] = []
  for (const days of periodsOf(world)) reports.push(await operators.json('reconcile', ...days))
  for (const { mid } of merchants.all) {
    const own = banks.movements.filter((one) => one.mid === mid)
    const sumOf = (of: (one: Movement) => boolean) => own.filter(of).reduce((sum, { paise }) => sum + paise, 0)
    const reported = reports.map(({ merchants }) => merchants.find((one: Document) => one.mid === mid))
    const total = (name: string) =>
      reported.reduce((sum, merchant) => sum + toPaise(merchant?.total?.[name] ?? merchant?.[name] ?? '0.00'), 0)
    const expected = {
      'paid and duplicates': sumOf(({ kind }) => kind === 'payment'),
      refunded: -sumOf(({ kind }) => kind === 'refund'),
      disputed: -sumOf((one) => isDisputed(one) && one.settledOn !== undefined),
      settled: sumOf(({ settledOn }) => settledOn !== undefined),
    }
    const shown = {
      'paid and duplicates': total('paid') + total('duplicates'),
      ...{ refunded: total('refunded'), disputed: total('disputed'), settled: total('settled') },
    }
    if (JSON.stringify(shown) !== JSON.stringify(expected))
      broken.push(`${mid}: the report shows ${JSON.stringify(shown)}, and the bank moved ${JSON.stringify(expected)}`)
  }
  return broken
}

/** (e), (f) At the end of the world nothing is open: 0.00, no discrepancy, no exception, no refund, no payout. */
async function nothingIsOpen({ operators, world }: Scene): Promise<string[]> {
  const broken: string[] = []
  const differences: Document = await operators.json('reconcile', 'differences')
  for (const one of differences.differences ?? []) broken.push(`the discrepancy ${JSON.stringify(one)} is open`)
  const periods = periodsOf(world)
  for (const days of periods) {
    const { payouts = [] }: Document = await operators.json('reconcile', 'payouts', ...days)
    for (const { arrival, bankReference, day } of payouts)
      if (!/^arrived$/.test(arrival)) broken.push(`the payout ${bankReference} of ${day}: ${arrival}`)
  }
  const exceptions: Document = await operators.json('payments', 'exceptions', '--open')
  for (const { kind, orderId } of exceptions) broken.push(`the exception ${kind} of ${orderId} is open`)
  const refunds: Document = await operators.json('refunds', 'list', '--open')
  for (const { refundId } of refunds) broken.push(`the refund ${refundId} is open`)
  const { merchants: reported }: Document = await operators.json('reconcile', ...(periods.at(-1) ?? []))
  for (const { mid, total } of reported)
    if (total?.carriedForward !== '0.00') broken.push(`${mid} ends with ${total?.carriedForward}`)
  return broken
}
