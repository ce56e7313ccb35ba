import type { Queryable } from '../../platform/db/pool.ts'
import { plannedQuery, query } from '../../platform/db/query.ts'
import { UTR_OF_ID } from '../../platform/fields.ts'
import { type ExceptionSubject, type SavedException, saveException } from './exceptions.ts'
import type { PaymentReport } from './outcome.ts'

/**
 * An exception `unknown order` is resolved when its payment is stored: the payment whose UTR, bank reference or
 * acquirer payment id is the exception's UTR. If the exception has no UTR, it is the payment of its orderId and
 * amount. A notification is only about payments through the acquirer account that signed it.
 */

export type PaymentKey = { mid: string; utr: string }

/** `by` is the operator or the source of the record that resolves an exception. */
type Resolution = { by: string; now: Date }

/** An open exception whose payment is stored, and the payment's order and source. The source resolves the exception. */
type Explained = { exceptionId: string; orderId: string; source: string }

/**
 * Returns the stored payment that a report of an unknown order is about. `acquirerAccount` is the account that signed
 * the report; undefined for other sources.
 */
export async function findReportedPayment(
  db: Queryable,
  { orderId, utr, amount }: PaymentReport,
  acquirerAccount: string | undefined,
): Promise<PaymentKey | undefined> {
  const [found] = await REPORTED_PAYMENT(db, { orderId, utr, amount, acquirerAccount })
  return found
}

const REPORTED_PAYMENT = query<
  PaymentKey,
  Pick<PaymentReport, 'orderId' | 'utr' | 'amount'> & { acquirerAccount: string | undefined }
>(`
  select mid, utr
    from (select mid, utr, acquirer, received_at from payments where utr = :utr
           union all
          select mid, utr, acquirer, received_at from payments where bank_reference = :utr
           union all
          select mid, utr, acquirer, received_at from payments where ${UTR_OF_ID('acquirer_payment_id')} = :utr
           union all
          select p.mid, p.utr, p.acquirer, p.received_at
            from payment_intents i
            join payments p on p.mid = i.mid and p.utr = i.utr
           where :utr::text is null and i.order_id = :orderId and i.amount_paise = :amount) reported
   where :acquirerAccount::text is null or acquirer = :acquirerAccount
   order by received_at, mid
   limit 1`)

/**
 * Stores an exception whose payment is stored, and its resolution, in the caller's transaction. Stores at most `most`
 * exceptions with the same UTR, because a signer may name any number of orders.
 */
export async function saveResolvedException(
  db: Queryable,
  subject: ExceptionSubject,
  payment: PaymentKey,
  { most, ...resolution }: Resolution & { most: number },
): Promise<SavedException> {
  if (subject.utr !== undefined && (await COUNT(db, { utr: subject.utr, most })).length >= most) return 'no room'
  const isNew = await saveException(db, 'unknown order', subject, resolution.now)
  await resolveByPayment(db, payment, resolution)
  return isNew ? 'new' : 'known'
}

const COUNT = query<object, { utr: string; most: number }>(`
  select from payment_exceptions where mid = '' and kind = 'unknown order' and utr = :utr limit :most`)

/** Resolves the open exceptions that a stored payment explains. */
export async function resolveByPayment(db: Queryable, payment: PaymentKey, { by, now }: Resolution): Promise<void> {
  const explained = await EXPLAINED_BY_PAYMENT(db, payment)
  await resolve(
    db,
    explained.map((one) => ({ ...one, source: by })),
    now,
  )
}

/**
 * Resolves the open exceptions that payments explain which were stored, or whose identifiers were learned, from `from`
 * until before `until`.
 */
export async function resolveByPaymentsOf(
  db: Queryable,
  period: { from: Date; until: Date },
  now: Date,
): Promise<void> {
  await resolve(db, await EXPLAINED_BY_PERIOD(db, period), now)
}

async function resolve(db: Queryable, explained: readonly Explained[], now: Date): Promise<void> {
  if (explained.length > 0) await RESOLVE(db, { explained: JSON.stringify(explained), now })
}

/** The sorted rows prevent a deadlock of two instances that resolve the same exceptions. */
const RESOLVE = query<object, { explained: string; now: Date }>(`
  insert into payment_resolutions (mid, exception_id, reason, resolved_by, resolved_at, order_id)
  select '', "exceptionId", 'the payment is recorded for order ' || "orderId", source, :now, "orderId"
    from json_to_recordset(:explained) as e ("exceptionId" text, "orderId" text, source text)
   order by "exceptionId"
      on conflict do nothing`)

/**
 * The service may name no operator: if an operator's command stored the payment, a notification of the unknown order was
 * stored meanwhile.
 */
const SOURCE = `case when source in ('operator', 'day file') then 'notification' else source end as source`

/** SQL of the open exceptions that payments explain. `condition` is the SQL condition that selects the payments. */
const explainedBy = (condition: string) => `
  -- Materialized, because Citus joins no distributed tables by other columns than mid.
  with stored as materialized (
    select mid, order_id, amount_paise, acquirer, source, received_at, utr, bank_reference,
           ${UTR_OF_ID('acquirer_payment_id')} as payment_id
      from payments
     where ${condition}
  )
  select distinct on (exception_id) exception_id, order_id, ${SOURCE}
    from (select e.exception_id, e.acquirer_account, s.order_id, s.acquirer, s.source, s.received_at, s.mid
            from (select mid, order_id, acquirer, source, received_at, unnest(array[utr, bank_reference, payment_id]) as name
                    from stored) s
            join payment_exceptions e on e.mid = '' and e.kind = 'unknown order' and e.utr = s.name collate "default"
           where e.utr <> ''
           union all
          select e.exception_id, e.acquirer_account, s.order_id, s.acquirer, s.source, s.received_at, s.mid
            from stored s
            join payment_exceptions e on e.mid = '' and e.kind = 'unknown order' and e.utr = ''
             and e.order_id = s.order_id and e.amount_paise = s.amount_paise) reported
   where (acquirer_account is null or acquirer_account = acquirer)
     and not exists (select from payment_resolutions r where r.mid = '' and r.exception_id = reported.exception_id)
   order by exception_id, received_at, mid`

const EXPLAINED_BY_PAYMENT = query<Explained, PaymentKey>(explainedBy('mid = :mid and utr = :utr'))

const EXPLAINED_BY_PERIOD = plannedQuery<Explained, { from: Date; until: Date }>(
  explainedBy('received_at >= :from and received_at < :until or learned_at >= :from and learned_at < :until'),
)
