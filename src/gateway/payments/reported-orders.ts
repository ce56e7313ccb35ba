import { query } from '../../platform/db/query.ts'
import { insertDeliveries } from './outbox.ts'
import type { ReportedIntent } from './outcome.ts'
import { FAILURE_REPORTED } from './reported-status.ts'

/**
 * Locks an order's row. The lock is a separate statement, so that the next statement sees the changes of the transaction
 * that held the lock before.
 */
export const lockOrder = query<object, { mid: string; orderId: string }>(
  'select from payment_intents where mid = :mid and order_id = :orderId for no key update',
)

/** The stored facts of an order that a report is about, without its payments and attempts. */
export type StoredIntent = Omit<ReportedIntent, 'payments' | 'isOfAnotherOrder' | 'attemptKnown' | 'attemptsFull'> & {
  utr: string | null
  acquirer: string
  createdAt: Date
}

/** SQL columns of `StoredIntent`, of the order `i` and its acquirer's link `a`. */
export const STORED_INTENT = `
          i.mid, i.order_id, i.amount_paise as amount, i.status, i.utr, i.unreadable_at is not null as is_unreadable,
          i.created_at, i.expires_at, ${FAILURE_REPORTED} as failure_reported, coalesce(a.acquirer, 'direct') as acquirer`

/**
 * SQL condition: the acquirer and its identifier of the order are those of the order, or the report names none. The
 * arguments are SQL.
 */
export const isReportedBy = (acquirer: string, acquirerOrderId: string) => `
          (${acquirer}::text is null or coalesce(a.acquirer, 'direct') = ${acquirer})
      and (${acquirerOrderId}::text is null or a.acquirer_order_id = ${acquirerOrderId})`

/** SQL columns of a payment as its report stores it. */
export const PAYMENT_COLUMNS = `mid, utr, order_id, amount_paise, paid_at, received_at, kind, acquirer, acquirer_payment_id, acquirer_txn_id,
      bank_reference, instrument, source, reported_by, note`

/**
 * SQL of two parts of a `with` that mark orders `i` as paid, and write their webhook deliveries. The fields are SQL, and
 * `which` selects the orders.
 */
export const markPaid = ({ mid, utr, receivedAt, which }: Record<'mid' | 'utr' | 'receivedAt' | 'which', string>) => `
   paid as (
     update payment_intents i
        set status = 'SUCCESS', utr = ${utr}, event_sequence = event_sequence + 1
      ${which}
     returning i.mid, i.order_id, i.event_sequence as sequence, i.status as txn_status, i.utr,
               null::text as our_refund_id, ${receivedAt}::timestamptz as occurred_at, null::text as failure_reason
   ), delivered as (${insertDeliveries('payment.succeeded', mid, 'paid c')})`
