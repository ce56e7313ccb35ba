import { type Intent, orderIdsBegin } from '../../gateway/payments/intent.ts'
import type { FinalStatus, ReportSource, Status } from '../../gateway/payments/outcome.ts'
import { createExceptions, type PaymentException } from '../../gateway/payments/read-exceptions.ts'
import type { Refund } from '../../gateway/refunds/refund.ts'
import { listRefunds } from '../../gateway/refunds/store.ts'
import type { Database } from '../../platform/db/pool.ts'
import { formsOf, unpadded, utrOfId } from '../../platform/fields.ts'
import type { Paise } from '../../platform/money.ts'
import { CARRIED_UTR } from '../ledger/sql.ts'

export type PaymentHistory = Pick<
  Intent,
  'mid' | 'orderId' | 'merchantOrderId' | 'amount' | 'note' | 'createdAt' | 'expiresAt'
> & {
  status: Status
  /** Whether the order stays open because the acquirer's last status response could not be read. */
  isUnreadable: boolean
  utr: string | null
  /** The bank's reference of the order's payment; null before a payment, and while only the acquirer's id is known. */
  bankReference: string | null
  acquirer: string
  /**
   * The acquirer's identifier, the `tr` of its link, and how many enquiries were made; null where we make the
   * links.
   */
  acquirerId: string | null
  acquirerReference: string | null
  enquiries: number | null
  /** Failed attempts, the success, and that the merchant has cancelled it. */
  changes: PaymentChange[]
  exceptions: PaymentException[]
  refunds: Refund[]
  webhooks: ToldMerchant[]
  settlements: SettledPayment[]
}

export type PaymentChange = {
  status: FinalStatus | 'CANCELLED'
  utr: string | null
  paidAt: Date | null
  reason: ReportSource | 'merchant'
  toldBy: string | null
  note: string | null
  /** Why a failed attempt failed, and the bank's code; null if nobody has said so. */
  failureReason: string | null
  failureCode: string | null
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

/** A settlement that carries the payment's UTR. */
export type SettledPayment = {
  mid: string
  utr: string
  paymentUtr: string | null
  amount: Paise
  fee: Paise | null
  tax: Paise | null
  status: string
  initiatedAt: Date
}

/** Key of a search: one of these. */
export type Sought =
  | { utr: string }
  | { orderId: string }
  | { merchantOrderId: string }
  /** Amount of an order made, a payment or an exception from `from` until before `until`. */
  | { amount: Paise; from: Date; until: Date }

/** Payments that one search shows. */
const FOUND_LIMIT = 100

/** What happened to a payment, from its intent to its settlement, without its customer. */
export function createPaymentHistory(db: Database) {
  return {
    /** All that is known of one intent; undefined when there is none. */
    async find(orderId: string): Promise<PaymentHistory | undefined> {
      const { rows } = await db.query<
        Omit<PaymentHistory, 'changes' | 'exceptions' | 'refunds' | 'webhooks' | 'settlements'> & {
          paymentId: string | null
        }
      >(
        `select i.mid, i.order_id as "orderId", i.merchant_order_id as "merchantOrderId",
                i.amount_paise as amount, i.note, i.status,
                i.unreadable_at is not null as "isUnreadable", i.utr, p.bank_reference as "bankReference",
                p.acquirer_payment_id as "paymentId",
                i.created_at as "createdAt", i.expires_at as "expiresAt", coalesce(a.acquirer, 'direct') as acquirer,
                a.acquirer_order_id as "acquirerId", a.reference as "acquirerReference", a.status_checks as enquiries
           from payment_intents i
           left join acquirer_intents a on a.mid = i.mid and a.order_id = i.order_id
           left join payments p on p.mid = i.mid and p.utr = i.utr
          where i.order_id = $1`,
        [orderId],
      )
      if (rows[0] === undefined) return undefined
      const { paymentId, ...found } = rows[0]
      const isReference = paymentId === null || found.utr !== utrOfId(paymentId)
      const intent = { ...found, bankReference: found.bankReference ?? (isReference ? found.utr : null) }
      const { mid } = intent
      const changes = await db.query<PaymentChange>(
        `select 'SUCCESS' as status, utr, paid_at as "paidAt", source as reason, reported_by as "toldBy", note,
                null as "failureReason", null as "failureCode", received_at as "changedAt"
           from payments
          where mid = $1 and utr = $3 and order_id = $2 and kind <> 'second'
         union all
         select status, utr, paid_at, source, null, null, failure_reason, failure_code, received_at
           from payment_attempts
          where mid = $1 and order_id = $2
         union all
         select 'CANCELLED', null, null, 'merchant', null, null, null, null, cancelled_at
           from payment_intents
          where mid = $1 and order_id = $2 and cancelled_at is not null
          order by "changedAt"`,
        [mid, orderId, intent.utr],
      )
      const exceptions = await createExceptions(db).ofOrder(mid, orderId)
      const refunds = await listRefunds(db, { mid, orderId })
      const webhooks = await db.query<ToldMerchant>(
        `select d.type, e.url, d.occurred_at as "occurredAt", d.attempts, d.delivered_at as "deliveredAt",
                d.due_at as "dueAt", d.attempted_at as "attemptedAt", d.outcome
           from webhook_endpoints e
           join webhook_deliveries d on d.mid = e.mid and d.endpoint_id = e.endpoint_id
          where e.mid = $1 and d.order_id = $2
          order by d.sequence, e.endpoint_id`,
        [mid, orderId],
      )
      const told = [...exceptions.map(({ utr }) => utr), ...refunds.map(({ reference }) => reference)]
      const utrs = [intent.utr, intent.bankReference, ...told].filter((utr) => utr)
      const settlements = await settlementsOf(utrs as string[], mid)
      return { ...intent, changes: changes.rows, exceptions, refunds, webhooks: webhooks.rows, settlements }
    },

    /**
     * Finds orderIds, newest first, 100 at most; `more` says whether there are more. With `mid` only those of that
     * merchant.
     */
    async search(sought: Sought, mid?: string): Promise<{ orderIds: string[]; more: boolean }> {
      if ('orderId' in sought) return { orderIds: [sought.orderId], more: false }
      const { orders, values } = ordersOf(sought)
      const { rows } = await db.query<{ orderId: string }>(
        `select order_id as "orderId"
           from (${orders}) found
          where $1::text is null or mid = $1
          order by order_id desc
          limit ${FOUND_LIMIT} + 1`,
        [mid, ...values],
      )
      return { orderIds: rows.slice(0, FOUND_LIMIT).map(({ orderId }) => orderId), more: rows.length > FOUND_LIMIT }
    },

    settlementsOf,
  }

  /** The settlements that carry one of these UTRs; of any merchant where `mid` is undefined. */
  async function settlementsOf(utrs: readonly string[], mid?: string): Promise<SettledPayment[]> {
    const { rows } = await db.query<SettledPayment>(
      `select mid, utr, payment_utr as "paymentUtr", amount_paise as amount, fee_paise as fee, tax_paise as tax, status, initiated_at as "initiatedAt"
         from settlements
        where ${CARRIED_UTR} = any ($1) and ($2::text is null or mid = $2)
        order by initiated_at, mid, utr`,
      [utrs.flatMap((utr) => formsOf(unpadded(utr.toUpperCase()))), mid],
    )
    return rows
  }
}

/** The merchants come first, since the tables' indexes begin with the merchant. */
const OF_MERCHANTS = 'select i.mid, i.order_id from merchants m join payment_intents i on i.mid = m.mid where'

/** A query of `mid` and `order_id`, and its values from $2 on. */
function ordersOf(sought: Exclude<Sought, { orderId: string }>): { orders: string; values: unknown[] } {
  if ('merchantOrderId' in sought) {
    return { orders: `${OF_MERCHANTS} i.merchant_order_id = $2`, values: [sought.merchantOrderId] }
  }
  if ('utr' in sought) {
    const orders = `${OF_MERCHANTS} i.utr = $2
      union select p.mid, p.order_id from merchants m join payments p on p.mid = m.mid where p.bank_reference = $2
      union select mid, order_id from payment_attempts where utr = $2
      union select mid, order_id from payment_exceptions where utr = $2 and mid <> ''`
    return { orders, values: [sought.utr] }
  }
  const { amount, from, until } = sought
  return {
    orders: `select mid, order_id
               from payment_intents
              where order_id >= $2 and order_id < $3 and amount_paise = $4
      -- A payment counts on the day of the bank, else on the day on which we heard of it.
      union select p.mid, p.order_id
              from merchants m
              join payments p on p.mid = m.mid
             where p.amount_paise = $4 and coalesce(p.paid_at, p.received_at) >= $5 and coalesce(p.paid_at, p.received_at) < $6
      union select mid, order_id
              from payment_exceptions
             where mid <> '' and amount_paise = $4 and coalesce(paid_at, received_at) >= $5
               and coalesce(paid_at, received_at) < $6`,
    values: [orderIdsBegin(from), orderIdsBegin(until), amount, from, until],
  }
}
