import type { Database } from '../db/pool.ts'
import { type Intent, orderIdsBegin } from '../payments/intent.ts'
import type { FinalStatus, Status } from '../payments/outcome.ts'
import type { ReportReason } from '../payments/reports.ts'
import { createExceptions, type PaymentException } from './exceptions.ts'

export type PaymentHistory = Pick<
  Intent,
  'mid' | 'orderId' | 'merchantOrderId' | 'amount' | 'note' | 'createdAt' | 'expiresAt'
> & {
  status: Status
  utr: string | null
  acquirer: string
  /** The acquirer's identifier, its link's `tr`, and how often it was asked: of three; null where we make the links. */
  acquirerId: string | null
  acquirerReference: string | null
  enquiries: number | null
  /** Failed attempts, the success, and that the merchant has cancelled it. */
  changes: PaymentChange[]
  exceptions: PaymentException[]
  webhooks: ToldMerchant[]
  settlements: SettledPayment[]
}

export type PaymentChange = {
  status: FinalStatus | 'CANCELLED'
  utr: string | null
  paidAt: Date | null
  reason: ReportReason | 'merchant'
  toldBy: string | null
  note: string | null
  changedAt: Date
}

/** An event of the order and where it was sent; `url` is null for a return call. */
export type ToldMerchant = {
  type: string
  url: string | null
  occurredAt: Date
  attempts: number
  deliveredAt: Date | null
  dueAt: Date | null
  attemptedAt: Date | null
  outcome: string | null
}

/** A settlement that carries the payment's UTR. Amounts are decimal text. */
export type SettledPayment = {
  mid: string
  utr: string
  paymentUtr: string | null
  amount: string
  fee: string | null
  tax: string | null
  status: string
  initiatedAt: Date
}

/** What a search is told of a payment: one of these. */
export type Sought =
  | { utr: string }
  | { orderId: string }
  | { merchantOrderId: string }
  /** In paise, of an intent that was made in this span. */
  | { amount: number; from: Date; until: Date }

/** Payments that one search shows. */
const FOUND_LIMIT = 100

/** What happened to a payment, from its intent to its settlement, without its customer. */
export function createPaymentHistory(db: Database) {
  return {
    /** All that is known of one intent; undefined when there is none. */
    async find(orderId: string): Promise<PaymentHistory | undefined> {
      const { rows } = await db.query<Omit<PaymentHistory, 'changes' | 'exceptions' | 'webhooks' | 'settlements'>>(
        `select i.mid, i.order_id as "orderId", i.merchant_order_id as "merchantOrderId",
                i.amount * 100 + i.paise as amount, i.note, i.status, i.utr,
                i.created_at as "createdAt", i.expires_at as "expiresAt", coalesce(a.acquirer, 'direct') as acquirer,
                a.acquirer_id as "acquirerId", a.reference as "acquirerReference", a.enquiries
           from payment_intents i
           left join acquirer_intents a on a.mid = i.mid and a.order_id = i.order_id
          where i.order_id = $1`,
        [orderId],
      )
      const [intent] = rows
      if (intent === undefined) return undefined
      const { mid } = intent
      const changes = await db.query<PaymentChange>(
        `select status, utr, paid_at as "paidAt", reason, told_by as "toldBy", note, changed_at as "changedAt"
           from payment_changes
          where mid = $1 and order_id = $2
         union all
         select status, utr, paid_at, reason, null, null, reported_at
           from payment_attempts
          where mid = $1 and order_id = $2
          order by "changedAt"`,
        [mid, orderId],
      )
      const exceptions = await createExceptions(db).ofOrder(mid, orderId)
      const webhooks = await db.query<ToldMerchant>(
        `select d.type, e.url, d.occurred_at as "occurredAt", d.attempts, d.delivered_at as "deliveredAt",
                d.due_at as "dueAt", d.attempted_at as "attemptedAt", d.outcome
           from webhook_endpoints e
           join webhook_deliveries d on d.mid = e.mid and d.endpoint_id = e.endpoint_id
          where e.mid = $1 and d.order_id = $2
          order by d.sequence, e.endpoint_id`,
        [mid, orderId],
      )
      const utrs = [intent.utr, ...exceptions.map(({ utr }) => utr)].filter((utr) => utr)
      const settlements = await settlementsOf(mid, utrs as string[])
      return { ...intent, changes: changes.rows, exceptions, webhooks: webhooks.rows, settlements }
    },

    /** The orderIds of what is sought, newest first, 100 at most, and whether there are more; of one merchant with `mid`. */
    async search(sought: Sought, mid?: string): Promise<{ orderIds: string[]; more: boolean }> {
      if ('orderId' in sought) return { orderIds: [sought.orderId], more: false }
      const { rows } = await ('utr' in sought
        ? db.query<{ orderId: string }>(
            // The merchants first, since the index of UTRs begins with the merchant.
            `select i.order_id as "orderId"
               from merchants m
               join payment_intents i on i.mid = m.mid
              where i.utr = $1 and ($2::text is null or m.mid = $2)
             union
             select order_id from payment_attempts where utr = $1 and ($2::text is null or mid = $2)
             union
             select order_id from payment_exceptions where utr = $1 and mid <> '' and ($2::text is null or mid = $2)
              order by 1 desc
              limit ${FOUND_LIMIT} + 1`,
            [sought.utr, mid],
          )
        : 'merchantOrderId' in sought
          ? db.query<{ orderId: string }>(
              `select i.order_id as "orderId"
                 from merchants m
                 join payment_intents i on i.mid = m.mid
                where i.merchant_order_id = $1 and ($2::text is null or m.mid = $2)
                order by 1 desc
                limit ${FOUND_LIMIT} + 1`,
              [sought.merchantOrderId, mid],
            )
          : db.query<{ orderId: string }>(
              `select order_id as "orderId"
                 from payment_intents
                where order_id >= $1 and order_id < $2 and amount * 100 + paise = $3
                  and ($4::text is null or mid = $4)
                order by 1 desc
                limit ${FOUND_LIMIT} + 1`,
              [orderIdsBegin(sought.from), orderIdsBegin(sought.until), sought.amount, mid],
            ))
      return { orderIds: rows.slice(0, FOUND_LIMIT).map(({ orderId }) => orderId), more: rows.length > FOUND_LIMIT }
    },

    settlementsOf,
  }

  /** The settlements that carry one of these UTRs; of any merchant where `mid` is undefined. */
  async function settlementsOf(mid: string | undefined, utrs: readonly string[]): Promise<SettledPayment[]> {
    if (utrs.length === 0) return []
    // The bank's file spells UTRs in upper or lower case, and they are kept so.
    const spellings = utrs.flatMap((utr) => [utr.toUpperCase(), utr.toLowerCase()])
    // Without an `or`, of which Citus would ask every shard.
    const ofOne = mid === undefined ? '' : ' and s.mid = $2'
    const columns = 's.mid, s.utr, s.payment_utr, s.amount, s.fee, s.tax, s.status, s.initiated_at'
    const { rows } = await db.query<SettledPayment>(
      // By an index each; an `or` of both would read all settlements.
      `select mid, utr, payment_utr as "paymentUtr", amount, fee, tax, status, initiated_at as "initiatedAt"
         from (
           select ${columns}
             from merchants m
             join settlements s on s.mid = m.mid
            where s.utr = any ($1)${ofOne}
           union
           select ${columns}
             from merchants m
             join settlements s on s.mid = m.mid
            where s.payment_utr = any ($1)${ofOne}) found
        order by initiated_at, utr`,
      [spellings, ...(mid === undefined ? [] : [mid])],
    )
    return rows
  }
}
