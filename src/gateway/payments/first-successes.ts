import { isDistributed } from '../../platform/db/distribution.ts'
import { DEADLOCK_DETECTED, hasState, LOCK_NOT_AVAILABLE } from '../../platform/db/outage.ts'
import type { Transactional } from '../../platform/db/pool.ts'
import { query } from '../../platform/db/query.ts'
import { type Columns, createSharedBatches, toColumns } from '../../platform/db/shared-batches.ts'
import { knownInstrument } from './instrument.ts'
import { judge, type PaymentReport, possibleTime } from './outcome.ts'
import { isReportedBy, markPaid, PAYMENT_COLUMNS, STORED_INTENT, type StoredIntent } from './reported-orders.ts'

/** Largest number of notifications in a batch. PostgreSQL needs a few milliseconds for such a batch. */
const BATCH_REPORTS = 50

/**
 * The clock is read before the orders are locked. A success less than this time before its order's final status is
 * therefore not stored in a batch, but judged again under the lock.
 */
const MARGIN_MS = 60_000

type Notified = { report: PaymentReport; now: () => Date }

/** The payment of an order, and the version of the order's row that was judged. */
type FirstPayment = { order: FoundOrder; report: PaymentReport; paidAt: Date | undefined; now: Date }

/**
 * Returns a function that stores a notification of a payment if this is the order's first payment without any doubt.
 * Returns the stored payment, otherwise undefined. Concurrent notifications share two statements, which do not wait
 * for locked orders, so that no acquirer account delays another. `check` throws if the sender no longer waits. Distributed
 * tables store no batch, because an array cannot be joined with a distributed table.
 */
export function createFirstSuccesses(db: Transactional) {
  let distributed: boolean | undefined

  async function storeBatch(batch: Notified[]): Promise<(FirstPayment | undefined)[]> {
    distributed ??= await isDistributed(db)
    if (distributed) return batch.map(() => undefined)
    const payments = judgeBatch(batch, await findOrders(db, batch))
    const paid = await pay(
      db,
      payments.filter((payment) => payment !== undefined),
    )
    return payments.map((payment) => (payment && paid.has(payment.order.orderId) ? payment : undefined))
  }

  const share = createSharedBatches(storeBatch, ({ report }) => report.acquirer?.name ?? '', BATCH_REPORTS)
  return async (report: PaymentReport, now: () => Date, check: () => void): Promise<FirstPayment | undefined> => {
    if (report.status !== 'SUCCESS' || report.utr === undefined) return undefined
    return share({ report, now }, check)
  }
}

/**
 * Returns the payment of each report that pays its order without any doubt. Of several reports about one order or one
 * UTR, only the first can pay in this batch, so that they are judged in the order of their arrival.
 */
function judgeBatch(batch: Notified[], orders: Map<number, FoundOrder>): (FirstPayment | undefined)[] {
  const seen = new Set<string>()
  return batch.map(({ report, now: readClock }, index) => {
    const order = orders.get(index + 1)
    if (order === undefined) return undefined
    const [ofOrder, ofUtr] = [`order ${order.orderId}`, `UTR ${order.mid} ${report.utr}`]
    const isRepeated = seen.has(ofOrder) || seen.has(ofUtr)
    seen.add(ofOrder).add(ofUtr)
    if (isRepeated || order.isUnreadable || order.isReferenceUsed) return undefined
    const now = readClock()
    const judged = judge({ ...order, ...NO_PAYMENTS }, report, 'notification', new Date(now.getTime() + MARGIN_MS))
    if (judged.verdict !== 'success' || judged.late) return undefined
    return { order, report, paidAt: possibleTime(report.paidAt, now, order.createdAt), now }
  })
}

/** The facts of an unpaid order if no payment has the reported UTR. */
const NO_PAYMENTS = { payments: [], isOfAnotherOrder: false, attemptKnown: false, attemptsFull: false }

/** `version` changes with each update of the order. */
type FoundOrder = StoredIntent & { isReferenceUsed: boolean; version: string }

/** Finds the order of each report by its place in the batch, which begins with 1. */
async function findOrders(db: Transactional, batch: Notified[]): Promise<Map<number, FoundOrder>> {
  const reports = batch.map(({ report }) => toReported(report))
  return new Map((await FIND_ORDERS(db, toColumns(reports))).map((row) => [row.place, row]))
}

const toReported = ({ orderId, utr, acquirer }: PaymentReport) => ({
  orderId,
  utr,
  acquirer: acquirer?.name,
  acquirerOrderId: acquirer?.id,
})

/**
 * Arrays are passed through subselects for the reason given in find-payment-status.ts. `union all` instead of `or`,
 * because PostgreSQL could otherwise read all payments once for the batch, as long as they are few.
 */
const FIND_ORDERS = query<FoundOrder & { place: number }, Columns<ReturnType<typeof toReported>>>(`
  select r.place::integer, i.xmin::text as version, ${STORED_INTENT},
         exists (
           select from payments where mid = i.mid and utr = r.utr
            union all
           select from payments where mid = i.mid and bank_reference = r.utr) as is_reference_used
    from unnest((select :orderId::text[]), (select :utr::text[]), (select :acquirer::text[]),
                (select :acquirerOrderId::text[])) with ordinality
           as r (order_id, utr, acquirer, acquirer_order_id, place)
    join payment_intents i on i.order_id = r.order_id
    left join acquirer_intents a on a.mid = i.mid and a.order_id = i.order_id
   where ${isReportedBy('r.acquirer', 'r.acquirer_order_id')}`)

/** Stores the payments of orders that have not changed since they were judged, and returns their orderIds. */
async function pay(db: Transactional, payments: FirstPayment[]): Promise<Set<string>> {
  if (payments.length === 0) return new Set()
  try {
    return new Set((await PAY_ORDERS(db, toColumns(payments.map(toRow)))).map(({ orderId }) => orderId))
  } catch (error) {
    // PostgreSQL has rolled the batch back, and each report is recorded alone.
    if (hasState(error, DEADLOCK_DETECTED, LOCK_NOT_AVAILABLE)) return new Set()
    throw error
  }
}

const toRow = ({ order: { mid, orderId, version, acquirer }, report, paidAt, now }: FirstPayment) => ({
  mid,
  orderId,
  version,
  utr: report.utr,
  paidAt,
  now,
  acquirer,
  id: report.names?.id,
  txnId: report.names?.txnId,
  instrument: knownInstrument(report),
})

/** Longest wait for another transaction that is storing the same UTR. All later batches wait too. */
const LOCK_TIMEOUT_MS = 100

/**
 * Skips orders that another transaction has locked, and limits the wait for UTRs, because a batch delays all accounts.
 * UTRs are stored in the order of their key, to avoid deadlocks between the batches of two instances.
 */
const PAY_ORDERS = query<{ orderId: string }, Columns<ReturnType<typeof toRow>>>(`
   with limited as materialized (
     select set_config('lock_timeout', '${LOCK_TIMEOUT_MS}ms', true)
   ), unchanged as materialized (
     select i.mid, r.utr, i.order_id, i.amount_paise, r.paid_at, r.received_at, 'first', r.acquirer, r.payment_id, r.txn_id,
            null, r.instrument, 'notification', null, null
       from limited,
            unnest((select :mid::text[]), (select :orderId::text[]), (select :version::xid[]), (select :utr::text[]),
                   (select :paidAt::timestamptz[]), (select :now::timestamptz[]), (select :acquirer::text[]),
                   (select :id::text[]), (select :txnId::text[]), (select :instrument::text[]))
              as r (mid, order_id, version, utr, paid_at, received_at, acquirer, payment_id, txn_id, instrument)
       join payment_intents i on i.mid = r.mid and i.order_id = r.order_id and i.xmin = r.version
      order by i.mid, r.utr collate "C"
        for no key update of i skip locked
   ), stored as (
     insert into payments (${PAYMENT_COLUMNS})
     select * from unchanged
         on conflict do nothing
     returning mid, order_id, utr, received_at
   ), ${markPaid({
     mid: 'c.mid',
     utr: 's.utr',
     receivedAt: 's.received_at',
     which: 'from stored s where i.mid = s.mid and i.order_id = s.order_id',
   })}
   select order_id from stored`)
