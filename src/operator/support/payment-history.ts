import { createBankDays } from '../../books/ledger/bank-days.ts'
import { holidaysOf } from '../../books/ledger/bank-holidays.ts'
import type { Dispute } from '../../gateway/disputes/dispute.ts'
import { listDisputes } from '../../gateway/disputes/store.ts'
import type { Instrument } from '../../gateway/payments/instrument.ts'
import { type Intent, orderIdsBegin } from '../../gateway/payments/intent.ts'
import type { FinalStatus, ReportSource, Status } from '../../gateway/payments/outcome.ts'
import { listSecondPayments, type SecondPayment } from '../../gateway/payments/pay-page-facts.ts'
import { createExceptions, type PaymentException } from '../../gateway/payments/read-exceptions.ts'
import { findPayment } from '../../gateway/refunds/create-refund.ts'
import type { Refund } from '../../gateway/refunds/refund.ts'
import { listRefunds } from '../../gateway/refunds/store.ts'
import type { Database } from '../../platform/db/pool.ts'
import { plannedQuery, query } from '../../platform/db/query.ts'
import { formsOf, unpadded, utrOfId } from '../../platform/fields.ts'
import type { Paise } from '../../platform/money.ts'
import { toIstDay } from '../../platform/time.ts'

export type PaymentHistory = Pick<
  Intent,
  'mid' | 'orderId' | 'merchantOrderId' | 'amount' | 'note' | 'createdAt' | 'expiresAt'
> & {
  status: Status
  /** Whether the order stays PENDING because the service could not read the acquirer's last status response. */
  isUnreadable: boolean
  utr: string | null
  /** The bank's time of the order's payment, or the time of its report; null if the order is unpaid. */
  paidAt: Date | null
  /**
   * The bank's reference for the order's payment; null if the order is unpaid, or if only the acquirer's payment id is
   * known.
   */
  bankReference: string | null
  /** The payee's name when the order was created, which the customer's app shows. */
  payeeName: string
  merchantDisabled: boolean
  /** The payments of a paid order besides its own. */
  secondPayments: SecondPayment[]
  /** The part of the order's payment that can still be refunded; 0 if the order is unpaid. */
  refundable: Paise
  acquirer: string
  /** The acquirer's order id; null if the service builds the links itself. */
  acquirerId: string | null
  /** The acquirer's id of the order's payment; null if the order is unpaid or the acquirer has no payment ids. */
  acquirerPaymentId: string | null
  /** The instrument that the customer paid with; null if unknown. */
  instrument: Instrument | null
  /** The `tr` in the acquirer's link; null if the service builds the links itself. */
  acquirerReference: string | null
  /** Number of status checks; null if the service builds the links itself. */
  enquiries: number | null
  /** Failed attempts, the successful payment, and the cancellation by the merchant. */
  changes: PaymentChange[]
  exceptions: PaymentException[]
  refunds: Refund[]
  disputes: Dispute[]
  webhooks: NotifiedMerchant[]
  settlements: SettledPayment[]
  /** The IST day, `YYYY-MM-DD`, on which the bank pays out the order's payment (T+1); null if the order is unpaid. */
  settlementDueOn: string | null
}

export type PaymentChange = {
  status: FinalStatus | 'CANCELLED'
  utr: string | null
  paidAt: Date | null
  reason: ReportSource | 'merchant'
  toldBy: string | null
  note: string | null
  /** Failure reason of the attempt; null if no reason was reported. */
  failureReason: string | null
  /** The bank's code for the failure of the attempt. */
  failureCode: string | null
  changedAt: Date
}

/** A webhook event for the order, and the endpoint that receives the event. `url` is null for a return-URL callback. */
export type NotifiedMerchant = {
  /** The delivery's id in commands. */
  id: string
  type: string
  url: string | null
  occurredAt: Date
  attempts: number
  deliveredAt: Date | null
  dueAt: Date | null
  attemptedAt: Date | null
  outcome: string | null
}

/** A settlement line with the payment's UTR. */
export type SettledPayment = {
  mid: string
  utr: string
  paymentUtr: string | null
  bankReference: string
  amount: Paise
  fee: Paise | null
  tax: Paise | null
  status: string
  initiatedAt: Date
}

/** Criteria for a search of payments. */
export type Criteria =
  | { utr: string }
  | { orderId: string }
  | { merchantOrderId: string }
  /** Matches the acquirer's payment id. */
  | { paymentId: string }
  /**
   * Matches orders created, payments made and exceptions reported from `from` until before `until`, with any amount if
   * `amount` is undefined.
   */
  | { amount: Paise | undefined; from: Date; until: Date }

/**
 * An order that a search has found. `foundBy` is the report with the requested UTR if neither the order nor its payment
 * has the UTR.
 */
export type FoundOrder = Order & { foundBy: string | null }

/** Largest number of payments that one search returns. */
const FOUND_LIMIT = 100

/** Reads the history of a payment from the creation of its order to its settlement, without customer data. */
export function createPaymentHistory(db: Database, now: Date) {
  // Read once for all payments of a search, and not before a payment needs it.
  let holidays: ReturnType<typeof holidaysOf> | undefined

  async function dueOn({ paidAt, changedAt }: PaymentChange): Promise<string> {
    holidays ??= holidaysOf(db, now)
    return createBankDays(await holidays).nextBankDay(toIstDay(paidAt ?? changedAt))
  }

  return {
    /** Returns the history of one order, or undefined if the order does not exist. */
    async find(orderId: string): Promise<PaymentHistory | undefined> {
      const [intent] = await readOrders(db, [orderId])
      if (intent === undefined) return undefined
      const { mid } = intent
      const refundable = (await findPayment(db, { mid, orderId }))?.left ?? 0
      const changes = await readChanges(db, { mid, orderId, utr: intent.utr })
      const exceptions = await createExceptions(db).ofOrder(mid, orderId)
      const refunds = await listRefunds(db, { mid, orderId })
      const disputes = await listDisputes(db, { mid, orderId })
      const webhooks = await readWebhooks(db, { mid, orderId })
      const reported = [...exceptions.map(({ utr }) => utr), ...refunds.map(({ reference }) => reference)]
      const utrs = [intent.utr, intent.bankReference, ...reported].filter((utr) => utr)
      const settlements = await settlementsOf(utrs as string[], mid)
      const secondPayments = intent.status === 'SUCCESS' ? await listSecondPayments(db, intent) : []
      const payment = changes.find(({ status }) => status === 'SUCCESS')
      const settlementDueOn = payment ? await dueOn(payment) : null
      const ofPayment = { refundable, secondPayments, settlements, settlementDueOn }
      return { ...intent, ...ofPayment, changes, exceptions, refunds, disputes, webhooks }
    },

    /**
     * Returns up to 100 orders, newest first. A search of a day returns paid orders first, by the time of the payment.
     * `more` is true if further orders match. `mid` limits the search to one merchant.
     */
    async search(criteria: Criteria, mid?: string): Promise<{ orders: FoundOrder[]; more: boolean }> {
      const found = await readFound(db, criteria, mid)
      const listed = found.slice(0, FOUND_LIMIT)
      const orders = new Map(
        (
          await readOrders(
            db,
            listed.map(({ orderId }) => orderId),
          )
        ).map((one) => [one.orderId, one]),
      )
      const ofMerchant = listed.flatMap(({ orderId, paidAt = null, foundBy = null }) => {
        const order = orders.get(orderId)
        if (order === undefined || (mid ?? order.mid) !== order.mid) return []
        return { ...order, paidAt: paidAt ?? order.paidAt, foundBy }
      })
      return { orders: ofMerchant, more: found.length > FOUND_LIMIT }
    },

    settlementsOf,
  }

  /** Returns the settlement lines with one of these UTRs. `mid` limits the result to one merchant. */
  function settlementsOf(utrs: readonly string[], mid?: string): Promise<SettledPayment[]> {
    return readSettlements(db, { mid, utrs: utrs.flatMap((utr) => formsOf(unpadded(utr.toUpperCase()))) })
  }
}

/** The facts of one order without the records of other tables. */
type Order = Omit<
  PaymentHistory,
  | 'changes'
  | 'exceptions'
  | 'refunds'
  | 'disputes'
  | 'webhooks'
  | 'settlements'
  | 'secondPayments'
  | 'refundable'
  | 'settlementDueOn'
>

async function readOrders(db: Database, orderIds: readonly string[]): Promise<Order[]> {
  return (await readIntents(db, { orderIds })).map((order) => {
    const { acquirerPaymentId: paymentId, utr } = order
    const isReference = paymentId === null || utr !== utrOfId(paymentId)
    return { ...order, bankReference: order.bankReference ?? (isReference ? utr : null) }
  })
}

const readIntents = query<Order, { orderIds: readonly string[] }>(`
  select i.mid, i.order_id, i.merchant_order_id, i.amount_paise as amount, i.note, i.status,
         i.unreadable_at is not null as is_unreadable, i.utr, coalesce(p.paid_at, p.received_at) as paid_at, p.bank_reference,
         p.acquirer_payment_id, p.instrument, i.created_at,
         i.expires_at, coalesce(a.acquirer, 'direct') as acquirer, a.acquirer_order_id as acquirer_id,
         a.reference as acquirer_reference, a.status_checks as enquiries, i.payee_name, m.disabled_at is not null as merchant_disabled
    from payment_intents i
    join merchants m on m.mid = i.mid
    left join acquirer_intents a on a.mid = i.mid and a.order_id = i.order_id
    left join payments p on p.mid = i.mid and p.utr = i.utr
   where i.order_id = any (:orderIds)`)

const readChanges = query<PaymentChange, { mid: string; orderId: string; utr: string | null }>(`
  select 'SUCCESS' as status, utr, paid_at, source as reason, reported_by as told_by, note, null as failure_reason, null as failure_code,
         received_at as changed_at
    from payments
   where mid = :mid and utr = :utr and order_id = :orderId and kind <> 'second'
  union all
  select status, utr, paid_at, source, null, null, failure_reason, failure_code, received_at
    from payment_attempts
   where mid = :mid and order_id = :orderId
  union all
  select 'CANCELLED', null, null, 'merchant', null, null, null, null, cancelled_at
    from payment_intents
   where mid = :mid and order_id = :orderId and cancelled_at is not null
   order by changed_at`)

const readWebhooks = query<NotifiedMerchant, { mid: string; orderId: string }>(`
  select concat_ws('.', d.endpoint_id, d.order_id, d.sequence) as id, d.type, e.url, d.occurred_at, d.attempts, d.delivered_at, d.due_at, d.attempted_at, d.outcome
    from webhook_endpoints e
    join webhook_deliveries d on d.mid = e.mid and d.endpoint_id = e.endpoint_id
   where e.mid = :mid and d.order_id = :orderId
   order by d.sequence, e.endpoint_id`)

const readSettlements = plannedQuery<SettledPayment, { mid: string | undefined; utrs: string[] }>(`
  select mid, utr, payment_utr, bank_reference_number as bank_reference, amount_paise as amount, fee_paise as fee, tax_paise as tax, status, initiated_at
    from settlements
   where upper(coalesce(payment_utr, utr)) = any (:utrs) and (:mid::text is null or mid = :mid)
   order by initiated_at, mid, utr`)

/** Reads one order more than `FOUND_LIMIT`, to detect whether further orders match. */
async function readFound(db: Database, criteria: Criteria, mid: string | undefined): Promise<Found[]> {
  const limit = FOUND_LIMIT + 1
  if ('orderId' in criteria) return [criteria]
  if ('merchantOrderId' in criteria) return ofMerchantOrderId(db, { ...criteria, mid, limit })
  if ('paymentId' in criteria) return ofPaymentId(db, { ...criteria, mid, limit })
  if ('utr' in criteria) return ofUtr(db, { ...criteria, mid, limit })
  const { from, until } = criteria
  return ofDay(db, { ...criteria, mid, limit, firstId: orderIdsBegin(from), endId: orderIdsBegin(until) })
}

type Found = { orderId: string; paidAt?: Date | null; foundBy?: string | null }
type Limits = { mid: string | undefined; limit: number }

// Starts from `merchants`, because the indexes of the other tables begin with `mid`.

const ofMerchantOrderId = plannedQuery<Found, { merchantOrderId: string } & Limits>(`
  select i.order_id
    from merchants m
    join payment_intents i on i.mid = m.mid
   where i.merchant_order_id = :merchantOrderId and (:mid::text is null or i.mid = :mid)
   order by i.order_id desc
   limit :limit`)

const ofPaymentId = plannedQuery<Found, { paymentId: string } & Limits>(`
  select order_id
    from payments
   where acquirer_payment_id = :paymentId and (:mid::text is null or mid = :mid)
   order by order_id desc
   limit :limit`)

const ofUtr = plannedQuery<Found, { utr: string } & Limits>(`
  select order_id, case when bool_and(found_by is not null) then string_agg(distinct found_by, ', ') end as found_by
    from (select mid, order_id, null as found_by from payments where utr = :utr and kind <> 'second'
           union all
          select p.mid, p.order_id, null from merchants m join payments p on p.mid = m.mid where p.bank_reference = :utr
           union all
          select mid, order_id, 'its failed attempt' from payment_attempts where utr = :utr
           union all
          select mid, order_id, 'its exception: ' || kind from payment_exceptions where utr = :utr and mid <> '') found
   where :mid::text is null or mid = :mid
   group by order_id
   order by order_id desc
   limit :limit`)

/**
 * Matches a payment on the bank's payment day, or on the day of its report if the payment day is unknown. No payment is
 * dated after its report, so PostgreSQL may read the payments received since `from`: a day's 1,000,000 payments of 1,000
 * merchants take 0.4 s, by `payments_paid_idx` 4 s. PostgreSQL selects that index for a day long ago.
 */
const ofDay = plannedQuery<
  Found,
  { amount: Paise | undefined; from: Date; until: Date; firstId: string; endId: string } & Limits
>(`
  select order_id, max(at) as paid_at
    from ((select p.order_id, coalesce(p.paid_at, p.received_at) as at
             from merchants m
             join payments p on p.mid = m.mid
            where (:amount::bigint is null or p.amount_paise = :amount) and p.received_at >= :from and coalesce(p.paid_at, p.received_at) >= :from
              and coalesce(p.paid_at, p.received_at) < :until and (:mid::text is null or p.mid = :mid)
            order by at desc
            limit :limit)
           union all
          (select order_id, null
             from payment_intents
            where order_id >= :firstId and order_id < :endId and (:amount::bigint is null or amount_paise = :amount) and (:mid::text is null or mid = :mid)
            order by order_id desc
            limit :limit)
           union all
          (select order_id, null
             from payment_exceptions
            where mid <> '' and (:amount::bigint is null or amount_paise = :amount) and coalesce(paid_at, received_at) >= :from
              and coalesce(paid_at, received_at) < :until and (:mid::text is null or mid = :mid)
            order by order_id desc
            limit :limit)) found
   group by order_id
   order by paid_at desc nulls last, order_id desc
   limit :limit`)
