import type { Database } from '../../platform/db/pool.ts'
import { plannedQuery, query } from '../../platform/db/query.ts'
import type { PaymentLink } from '../payments/intent.ts'
import type { PaymentNames } from '../payments/outcome.ts'
import { findPendingRefunds, type PendingMerchant } from '../payments/pending-merchants.ts'
import type { Refund, RefundName } from './refund.ts'

/**
 * Seconds from the sending of a refund to each status check until the refund is final: 1 minute, 10 minutes, 1 hour,
 * then every 6 hours for 5 days, then daily for 30 days. A refund that the acquirer does not know after 24 hours
 * becomes unsure.
 */
const QUERIES_AFTER_SECONDS = [
  60,
  600,
  3_600,
  ...Array.from({ length: 20 }, (_, number) => (number + 1) * 21_600),
  ...Array.from({ length: 30 }, (_, number) => (number + 6) * 86_400),
]

/** Longest pause between two attempts to send a refund. The pauses begin with 1 minute and double each time. */
const LONGEST_PAUSE_SECONDS = 3_600

/** A refund to send or to check. `paymentLink` is the link of the refund's order. */
export type PendingRefund = Pick<
  Refund,
  'mid' | 'orderId' | 'ourRefundId' | 'amount' | 'note' | 'utr' | 'acquirer' | 'createdAt' | 'sentAt' | 'acceptedAt'
> & {
  /** Whether the refunded payment is a second payment of its order. */
  isSecond: boolean
  /** Null until the payment's identifier at the acquirer is known. */
  payment: PaymentNames | null
  paymentLink: PaymentLink
}

export function createPendingRefunds(db: Database) {
  return {
    findPending: (now: Date) => findPendingRefunds(db, { now }),

    /**
     * Claims up to `limit` pending refunds of a merchant at an acquirer, oldest first. Each claimed refund is scheduled
     * for a later time, in case this instance is killed.
     */
    claimPending: ({ acquirer, mid }: PendingMerchant, limit: number, now: Date) =>
      CLAIM(db, { acquirer, mid, limit, now, pauses: QUERIES_AFTER_SECONDS }),

    /**
     * Marks a refund as sent, before the request is sent. Returns false if the refund must not be sent, because it
     * is final, it was sent before and `mayRepeat` is false, or a dispute was opened since its creation.
     */
    markSent: async ({ mid, ourRefundId }: RefundName, now: Date, mayRepeat: boolean) =>
      (await MARK_SENT(db, { mid, ourRefundId, now, mayRepeat })).length === 1,

    /** Removes the mark `sentAt` that the caller has set, after a call that has certainly changed nothing. */
    unmarkSent: ({ mid, ourRefundId }: RefundName, sentAt: Date) => UNMARK_SENT(db, { mid, ourRefundId, sentAt }),

    /** Stores the identifiers that the acquirer has assigned to a payment, unless other identifiers are stored. */
    savePaymentNames: ({ mid, utr }: Pick<Refund, 'mid' | 'utr'>, names: PaymentNames, now: Date) =>
      SAVE_PAYMENT_NAMES(db, { mid, utr, ...names, now }),
  }
}

export type PendingRefunds = ReturnType<typeof createPendingRefunds>

const CLAIM = plannedQuery<PendingRefund, PendingMerchant & { limit: number; now: Date; pauses: readonly number[] }>(`
  with due as materialized (
    select r.refund_id,
           case when r.status <> 'PENDING' then null
             when r.sent_at is null
             then :now::timestamptz
                  + make_interval(secs => least(60 * 2 ^ least(r.attempts, 10), ${LONGEST_PAUSE_SECONDS}))
             else (select min(r.sent_at + make_interval(secs => after)) from unnest(:pauses::integer[]) after
                    where r.sent_at + make_interval(secs => after) > :now) end as next
      from refunds r
     where r.mid = :mid and r.due_at <= :now and r.acquirer = :acquirer
     order by r.due_at
     limit :limit
       for update skip locked
  ), claimed as (
    update refunds r
       set due_at = due.next, attempts = least(r.attempts + 1, 32767)
      from due
     where r.mid = :mid and r.refund_id = due.refund_id
    returning r.*
  )
  select r.mid, r.order_id, r.our_refund_id, r.amount_paise as amount, r.note, r.utr,
         coalesce(p.kind = 'second', false) as is_second, r.acquirer, r.created_at, r.sent_at, r.accepted_at,
         case when p.acquirer_payment_id is not null
           then json_build_object('id', p.acquirer_payment_id, 'txnId', p.acquirer_txn_id) end as payment,
         json_build_object('acquirer', r.acquirer, 'merchantId', r.acquirer_merchant_id, 'id', a.acquirer_order_id,
                           'reference', a.reference, 'link', a.link) as payment_link
    from claimed r
    join acquirer_intents a on a.mid = :mid and a.order_id = r.order_id
    left join payments p on p.mid = :mid and p.utr = r.utr`)

const MARK_SENT = query<object, RefundName & { now: Date; mayRepeat: boolean }>(`
  update refunds
     set sent_at = coalesce(sent_at, :now)
   where mid = :mid and our_refund_id = :ourRefundId and status = 'PENDING' and (sent_at is null or :mayRepeat)
     and (sent_at is not null or not exists (
           select from disputes d
            where d.mid = :mid and d.utr = refunds.utr and d.status in ('open', 'under review')
              and d.recorded_at > refunds.created_at))
  returning 1`)

const UNMARK_SENT = query<object, RefundName & { sentAt: Date }>(`
  update refunds
     set sent_at = null
   where mid = :mid and our_refund_id = :ourRefundId and sent_at = :sentAt and status = 'PENDING'
     and accepted_at is null`)

const SAVE_PAYMENT_NAMES = query<object, Pick<Refund, 'mid' | 'utr'> & PaymentNames & { now: Date }>(`
  update payments
     set acquirer_payment_id = :id, acquirer_txn_id = :txnId, learned_at = :now
   where mid = :mid and utr = :utr and acquirer_txn_id is null and coalesce(acquirer_payment_id, :id) = :id`)

/**
 * Schedules an unsure refund for sending, once an operator has found that the bank has not processed it, and resolves
 * its exception. Returns no row for any other refund. If the acquirer does not know it afterwards either, another
 * exception is stored.
 */
export const retryRefund = query<object, RefundName & { person: string; now: Date }>(`
  with unsure as (
    select mid, exception_id
      from payment_exceptions
     where kind = 'refund unsure' and mid = :mid and our_refund_id = :ourRefundId
       and order_id = (select order_id from refunds where mid = :mid and our_refund_id = :ourRefundId)
  ), scheduled as (
    update refunds
       set sent_at = null, attempts = 0, reason = null, due_at = :now
     where mid = :mid and our_refund_id = :ourRefundId and status = 'PENDING' and due_at is null and accepted_at is null
       and exists (select from unsure)
    returning our_refund_id
  ), resolved as (
    insert into payment_resolutions (mid, exception_id, reason, resolved_by, resolved_at)
    select unsure.mid, exception_id, 'the refund is sent again', :person, :now
      from unsure, scheduled
    on conflict do nothing
  )
  select our_refund_id from scheduled`)
