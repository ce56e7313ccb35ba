import { orderIdsBegin } from '../../gateway/payments/intent.ts'
import { overdueBefore } from '../../gateway/refunds/store.ts'
import { batchesOf } from '../../platform/db/batches.ts'
import { prepared } from '../../platform/db/prepared.ts'
import type { Paise } from '../../platform/money.ts'
import type { Days } from '../ledger/bank-days.ts'
import type { DifferenceKind } from '../ledger/differences.ts'
import type { Ledger } from '../ledger/read-ledger.ts'
import { boundsOf, textOf } from '../ledger/sql.ts'

/** What a person has entered to end a difference of the ledger; `amount` is what it adds to what the bank owes, in paise. */
export type Entry = {
  differenceId: string
  day: string
  kind: DifferenceKind
  orderId: string | null
  utr: string | null
  settlementUtr: string | null
  amount: Paise
  reason: string
}

export async function readEntries({ client, mid, known }: Ledger, { from, to }: Days): Promise<Entry[]> {
  const { rows } = await client.query<Entry>(ENTRIES(mid, known, from, to))
  return rows
}

const ENTRIES = prepared(`
  select difference_id as "differenceId", ${textOf('day')} as day, kind, order_id as "orderId", utr,
         settlement_utr as "settlementUtr", amount_paise as amount, reason
    from difference_resolutions
   where mid = $1 and resolved_at <= $2 and day >= $3 and day <= $4 and kind <> 'short payout'
   order by day, difference_id, entry`)

/**
 * A report that waits for a person. `mid` is empty where no order is known. `amount` is in paise, and null for an
 * unreadable notification.
 */
export type OpenException = {
  mid: string
  exceptionId: string
  kind: string
  orderId: string
  utr: string
  amount: Paise | null
  receivedAt: Date
}

/** Open exceptions that came on these days, or are of an order that was made on them. */
export async function* openExceptions({ client, mid, known }: Ledger, days: Days): AsyncGenerator<OpenException> {
  const [begin, end] = boundsOf(days)
  const query = OPEN_EXCEPTIONS(mid, known, begin, end, orderIdsBegin(begin), orderIdsBegin(end))
  for await (const rows of batchesOf<OpenException>(client, query)) {
    yield* rows
  }
}

const OPEN_EXCEPTIONS = prepared(`
  select mid, exception_id as "exceptionId", kind, order_id as "orderId", utr,
         case when kind <> 'unreadable' then amount_paise end as amount, received_at as "receivedAt"
    from payment_exceptions e
   where mid = $1 and received_at <= $2
     and (received_at >= $3 and received_at < $4 or mid <> '' and order_id >= $5 and order_id < $6)
     and not exists (
           select from payment_resolutions r
            where r.mid = e.mid and r.exception_id = e.exception_id and r.resolved_at <= $2)
   order by received_at, order_id, exception_id`)

/** A refund that is open after T+5 days; `amount` is in paise. */
export type OverdueRefund = {
  mid: string
  refundId: string
  orderId: string
  acquirer: string
  amount: Paise
  madeAt: Date
}

/** Refunds made until the end of these days that were open after T+5 days, as it was known. */
export async function overdueRefunds({ client, mid, known }: Ledger, days: Days): Promise<OverdueRefund[]> {
  const query = OVERDUE_REFUNDS(mid, known, overdueBefore(known), boundsOf(days)[1])
  const { rows } = await client.query<OverdueRefund>(query)
  return rows
}

const OVERDUE_REFUNDS = prepared(`
  select mid, our_refund_id as "refundId", order_id as "orderId", acquirer, amount_paise as amount,
         created_at as "madeAt"
    from refunds
   where mid = $1 and created_at < least($3::timestamptz, $4) and (ended_at is null or ended_at > $2)
   order by created_at, our_refund_id`)
