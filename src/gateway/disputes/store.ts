import type { Queryable } from '../../platform/db/pool.ts'
import { query } from '../../platform/db/query.ts'
import type { Paise } from '../../platform/money.ts'
import type { Dispute } from './dispute.ts'

export type DisputeKey = Pick<Dispute, 'mid' | 'acquirer' | 'disputeId'>

const DISPUTE = `
  select d.mid, d.acquirer, d.dispute_id, d.order_id, i.merchant_order_id, d.utr, d.amount_paise as amount, d.kind, d.reason_code,
         d.reason_text, d.respond_by, d.opened_at, d.status, d.updated_at
    from disputes d
    join payment_intents i on i.mid = d.mid and i.order_id = d.order_id`

const ONE = query<Dispute, DisputeKey>(
  `${DISPUTE} where d.mid = :mid and d.acquirer = :acquirer and d.dispute_id = :disputeId`,
)

export const findDispute = async (db: Queryable, key: DisputeKey): Promise<Dispute | undefined> =>
  (await ONE(db, key))[0]

type DisputeFilter = {
  mid?: string | undefined
  orderId?: string | undefined
  acquirer?: string | undefined
  disputeId?: string | undefined
  statuses?: readonly string[] | undefined
}

/** Returns the disputes that match the filters, by their opening, oldest first. */
export const listDisputes = query<Dispute, DisputeFilter>(`${DISPUTE}
   where (:mid::text is null or d.mid = :mid)
     and (:orderId::text is null or d.order_id = :orderId)
     and (:acquirer::text is null or d.acquirer = :acquirer)
     and (:disputeId::text is null or d.dispute_id = :disputeId)
     and (:statuses::text[] is null or d.status = any (:statuses))
   order by d.opened_at, d.mid, d.dispute_id`)

type DisputedPayment = { utr: string; acquirer: string; amount: Paise }

/** Returns the payment of an order that has this UTR; without one, the order's own payment. */
export const findPaymentOf = query<DisputedPayment, { mid: string; orderId: string; utr: string | undefined }>(`
  select utr, acquirer, amount_paise as amount
    from payments
   where mid = :mid and order_id = :orderId
     and case when :utr::text is null then kind <> 'second' else :utr in (utr, bank_reference) end`)

/** A stated state of a dispute, for its history. */
type DisputeState = { status: Dispute['status']; statedAt: Date | null; recordedAt: Date; reportedBy: string }

/** Returns the stated states of a dispute in the order of their reports. */
export const listStates = query<DisputeState, DisputeKey>(`
  select status, nullif(stated_at, '-infinity') as stated_at, recorded_at, reported_by
    from dispute_states
   where mid = :mid and acquirer = :acquirer and dispute_id = :disputeId
   order by recorded_at, stated_at`)
