import { LIMITS, type Limits } from '../../limits.ts'
import { inTransaction, type Queryable, type Transactional } from '../../platform/db/pool.ts'
import { query } from '../../platform/db/query.ts'
import { type Paise, toDecimalText, toPlainText } from '../../platform/money.ts'
import { printableLine } from '../../platform/printable.ts'
import { createBoundedExceptions, saveException } from '../payments/exceptions.ts'
import { type EventType, writeDeliveries } from '../payments/outbox.ts'
import type { ExceptionKind } from '../payments/outcome.ts'
import { lockOrder } from '../payments/reported-orders.ts'
import { type Barrier, findMerchant } from '../payments/reports.ts'
import { endRefund, nextSequence, resolveReturnedPayment } from '../refunds/record-update.ts'
import { REASON_CHARACTERS, type Refund } from '../refunds/refund.ts'
import { type Dispute, type DisputeReport, isFinal, isInFavour, stateOf } from './dispute.ts'
import { type DisputeKey, findDispute } from './store.ts'

/** Largest number of stored disputes of a payment, and of states of a dispute before its final one. */
const MOST_OF_PAYMENT = 20
const MOST_STATES = 100
/** An order's events are numbered up to 32,767, so the limit leaves numbers for its refunds. */
const MOST_EVENTS = 10_000

/** Milliseconds by which the acquirer's clock may be ahead of the service's clock. */
const CLOCK_TOLERANCE_MS = 5 * 60_000
export const CHECK_PAUSE_MS = 24 * 60 * 60_000

/**
 * The source of a report: `notification`, `enquiry` for a status check, or the operator's name. The clock is read under
 * the lock. A disabled account stores no exception for an unknown payment. `readAt` is the time before a status check.
 */
type Reporting = { source: string; now: () => Date; barrier?: Barrier; isDisabled?: boolean; readAt?: Date }

/** The stored dispute, and whether the report changed it; or why it was not stored. */
type RecordedDispute = { dispute: Dispute; changed: boolean } | { exception: DisputeException }
type DisputeException = Extract<ExceptionKind, 'unknown dispute' | 'dispute differs'>

export type Disputes = ReturnType<typeof createDisputes>

export function createDisputes(
  db: Transactional,
  { onException }: { onException?: (kind: ExceptionKind, acquirerAccount: string) => void } = {},
  limits: Limits['reports'] = LIMITS.reports,
) {
  const saveBounded = createBoundedExceptions(limits)

  return {
    /**
     * Stores a report of a dispute by the acquirer account `acquirer`: the dispute, its state, the exceptions and
     * refunds that it concerns, and its event. Locks the order's row first, so that refunds of the payment and equal
     * reports wait for each other.
     */
    async record(acquirer: string, report: DisputeReport, reporting: Reporting): Promise<RecordedDispute> {
      const found: { kind: ExceptionKind; isNew: boolean }[] = []
      const mid = await findMerchant(db, report.orderId)
      const recorded = await inTransaction(db, async (client): Promise<RecordedDispute> => {
        found.length = 0
        await reporting.barrier?.(client)
        const payment = mid === undefined ? undefined : await lockPayment(client, { ...report, mid, acquirer })
        const at = { ...reporting, now: reporting.now() }
        const except = async (exception: DisputeException, of: { mid: string; utr?: string }) => {
          const facts = { ...of, orderId: report.orderId, amount: report.amount ?? 0, status: '' } as const
          const note = printableLine(`dispute ${report.id}: ${report.status}`, REASON_CHARACTERS)
          const subject = { ...facts, dedupKey: `${report.id} ${report.status}`, person: at.source, note }
          const saved = await saveBounded(client, exception, { ...subject, acquirerAccount: acquirer }, at.now)
          found.push({ kind: exception, isNew: saved !== 'known' })
          return { exception }
        }
        if (payment === undefined)
          return reporting.isDisabled ? { exception: 'unknown dispute' } : except('unknown dispute', { mid: '' })
        const key = { mid: payment.mid, acquirer, disputeId: report.id }
        const before = await findDispute(client, key)
        if (differs(before, report, payment)) return except('dispute differs', payment)
        const dispute = await store(client, { key, payment, before }, report, at)
        const kinds = await applyToRefunds(client, { dispute, before, paid: payment.paid }, at)
        found.push(...kinds.map((kind) => ({ kind, isNew: true })))
        const changed =
          before?.status !== dispute.status ||
          before.amount !== dispute.amount ||
          before.respondBy?.getTime() !== dispute.respondBy?.getTime()
        if (changed)
          await saveEvent(client, dispute, before === undefined ? 'dispute.opened' : 'dispute.updated', at.now)
        return { dispute, changed }
      })
      for (const { kind, isNew } of found) if (isNew) onException?.(kind, acquirer)
      return recorded
    },
  }
}

type DisputedPayment = { mid: string; utr: string; paid: Paise; disputes: number; states: number; events: number }

/** Whether a report contradicts the stored dispute `before`, or is one too many. A first final state always has room. */
function differs(before: Dispute | undefined, report: DisputeReport, payment: DisputedPayment): boolean {
  const hasManyEvents = payment.events >= MOST_EVENTS
  if (before === undefined) return payment.disputes >= MOST_OF_PAYMENT || hasManyEvents
  const hasVerdict = isFinal(before.status)
  const isOtherVerdict = hasVerdict && isFinal(report.status) && before.status !== report.status
  const isFull = payment.states >= MOST_STATES || hasManyEvents
  return before.utr !== payment.utr || isOtherVerdict || (isFull && (hasVerdict || !isFinal(report.status)))
}

/**
 * Locks the order of a dispute. Returns the disputed payment; undefined if no payment of the order is known, or if
 * another acquirer account received it.
 */
async function lockPayment(db: Queryable, report: DisputeReport & { mid: string; acquirer: string }) {
  const { mid, orderId } = report
  await lockOrder(db, { mid, orderId })
  const { id, paymentId, utr, acquirer } = report
  const [payment] = await PAYMENT(db, { id, mid, orderId, acquirer, paymentId, utr })
  return payment
}

/** Nulls are sorted last, so that a payment with the reported identifier takes precedence. */
const PAYMENT = query<
  DisputedPayment,
  Pick<DisputeReport, 'id' | 'orderId' | 'paymentId' | 'utr'> & { mid: string; acquirer: string }
>(`
  select mid, utr, amount_paise as paid,
         (select count(*) from disputes d where d.mid = :mid and d.utr = p.utr) as disputes,
         (select count(*) from dispute_states s where s.mid = :mid and s.acquirer = :acquirer and s.dispute_id = :id) as states,
         (select event_sequence from payment_intents i where i.mid = :mid and i.order_id = :orderId) as events
    from payments p
   where mid = :mid and order_id = :orderId and acquirer = :acquirer
     and case when :paymentId::text is not null and acquirer_payment_id is not null then acquirer_payment_id = :paymentId
              when :utr::text is not null then :utr in (utr, bank_reference)
              else kind <> 'second' end
   order by acquirer_payment_id
   limit 1`)

type Storing = { key: DisputeKey; payment: DisputedPayment; before: Dispute | undefined }
type At = Omit<Reporting, 'now'> & { now: Date }

/** Stores the facts and the state of a report. Returns the dispute with its resulting state. */
async function store(
  db: Queryable,
  { key, payment, before }: Storing,
  report: DisputeReport,
  { source, now, readAt = now }: At,
): Promise<Dispute> {
  const isPossible = report.statedAt !== undefined && report.statedAt.getTime() <= now.getTime() + CLOCK_TOLERANCE_MS
  // Only a notification may be late: a status check and an operator state what is valid now. A time ahead of the clock
  // becomes now, so that a later status check, whose time is then possible, corrects the state.
  const isUndated = report.statedAt === undefined && source === 'notification'
  const statedAt = isPossible ? report.statedAt : isUndated ? undefined : readAt
  const isRepeat = !isPossible && report.status === before?.status
  const status = stateOf([...(await STATES(db, key)), { status: report.status, statedAt }])
  const checkAt = key.acquirer === 'direct' || isFinal(status) ? null : new Date(now.getTime() + CHECK_PAUSE_MS)
  await STORE(db, {
    ...{ ...report, ...key, utr: payment.utr, reportedAt: statedAt },
    ...(before && isFinal(before.status) && SERVICE_SOURCES.includes(source) && { amount: undefined }),
    ...{ now, status, checkAt },
  })
  if (!isRepeat) await ADD_STATE(db, { ...key, status: report.status, statedAt, now, source })
  await RESOLVE_UNKNOWN(db, { ...key, source, now })
  return (await findDispute(db, key)) as Dispute
}

/** The sources of the service, which cannot set the amount of a final dispute. */
const SERVICE_SOURCES = ['notification', 'enquiry']

const STATES = query<{ status: Dispute['status']; statedAt: Date | undefined }, DisputeKey>(`
  select status, nullif(stated_at, '-infinity') as stated_at
    from dispute_states
   where mid = :mid and acquirer = :acquirer and dispute_id = :disputeId`)

/** An older report, or one without a time, adds facts that are not known yet, and replaces none. `also` is a condition. */
const replaced = (column: string, also = '') =>
  `${column} = case when ${also} excluded.reported_at >= d.reported_at then coalesce(excluded.${column}, d.${column})
                else coalesce(d.${column}, excluded.${column}) end`

const STORE = query<
  object,
  DisputeKey & DisputeReport & { now: Date; reportedAt: Date | undefined; checkAt: Date | null }
>(`
  insert into disputes as d
    (mid, acquirer, dispute_id, order_id, utr, amount_paise, kind, reason_code, reason_text, respond_by, opened_at, recorded_at,
     reported_at, status, updated_at, check_at)
  values (:mid, :acquirer, :disputeId, :orderId, :utr, :amount, :kind, :reasonCode, :reasonText, :respondBy,
          least(:openedAt::timestamptz, :now), :now, coalesce(:reportedAt::timestamptz, '-infinity'), :status, :now, :checkAt)
      on conflict (mid, acquirer, dispute_id) do update
     set ${replaced('amount_paise', `d.status in ('open', 'under review') and`)},
         ${['kind', 'reason_code', 'reason_text', 'respond_by'].map((column) => replaced(column)).join(', ')},
         reported_at = greatest(d.reported_at, excluded.reported_at), status = excluded.status,
         updated_at = case when d.status = excluded.status then d.updated_at else excluded.updated_at end,
         check_at = case when excluded.check_at is not null then d.check_at end`)

const ADD_STATE = query<
  object,
  DisputeKey & { status: Dispute['status']; statedAt: Date | undefined; now: Date; source: string }
>(`
  insert into dispute_states (mid, acquirer, dispute_id, status, stated_at, recorded_at, reported_by)
  values (:mid, :acquirer, :disputeId, :status, coalesce(:statedAt::timestamptz, '-infinity'), :now, :source)
      on conflict do nothing`)

type Resolving = DisputeKey & { source: string; now: Date }

/** Resolves the exceptions of reports that arrived before the payment was known. */
const RESOLVE_UNKNOWN = query<object, Resolving>(`
  insert into payment_resolutions (mid, exception_id, reason, resolved_by, resolved_at)
  select mid, exception_id, 'the dispute is stored', :source, :now::timestamptz
    from payment_exceptions
   where mid = '' and acquirer_account = :acquirer and kind = 'unknown dispute' and split_part(dedup_key, ' ', 1) = :disputeId
      on conflict do nothing`)

/**
 * Ends the unsent refunds of a payment when its dispute is stored, because the bank may return the money. Stores an
 * exception for each refund that continues, with the amount that may be returned twice, also for refunds created later
 * despite the dispute. Resolves these exceptions if the merchant keeps the money.
 */
async function applyToRefunds(
  db: Queryable,
  { dispute, before, paid }: { dispute: Dispute; before: Dispute | undefined; paid: Paise },
  { source, now }: At,
): Promise<ExceptionKind[]> {
  const { mid, orderId, utr, disputeId, status } = dispute
  if (isInFavour(status)) {
    await RESOLVE_REFUNDS(db, { ...dispute, source, now })
    return []
  }
  if (status === 'lost' || status === 'accepted') {
    const reason = `dispute ${disputeId} is ${status}`
    await resolveReturnedPayment(db, { mid, orderId, utr, reason, source, now })
  }
  const refunds = await REFUNDS(db, { ...dispute, isNew: before === undefined })
  const unsent = refunds.filter(({ isUnsent }) => isUnsent)
  const end = { status: 'FAIL', reference: '', reason: DISPUTED } as const
  for (const refund of unsent) await endRefund(db, refund, end, { source, now })
  const others = refunds.filter((refund) => !unsent.includes(refund))
  const [{ returned } = { returned: 0 }] = others.length === 0 ? [] : await RETURNED(db, dispute)
  const twice = Math.max(0, returned + (dispute.amount ?? paid) - paid)
  const kind = 'refund of a disputed payment'
  const kinds: ExceptionKind[] = []
  // A refund may fail, which resolves its exception, and succeed after all, so a verdict stores an exception of its own.
  const dedupKey = `${disputeId} ${isFinal(status) ? 'lost' : 'open'}`
  for (const { ourRefundId, amount, isOpen, named } of others) {
    const most = Math.min(amount, twice)
    if (named >= most && (named > 0 || before !== undefined || !isOpen)) continue
    const note = `dispute ${disputeId}: ${toDecimalText(most)} may be returned twice`
    const subject = { mid, orderId, utr, amount: most, status: '', ourRefundId } as const
    if (await saveException(db, kind, { ...subject, dedupKey, person: source, note }, now)) kinds.push(kind)
  }
  return kinds
}

/** The reason of a refund that was not sent, because its payment is disputed. */
const DISPUTED = 'The payment is disputed'

type RefundOfPayment = Refund & { isUnsent: boolean; isOpen: boolean; named: Paise }

/**
 * The refunds of a payment that have not failed, locked, because the service marks a refund as sent without the order's
 * lock. An acquirer's own refund, a refund of `direct`, and a refund created despite the dispute count as sent. `named` is the
 * amount that open exceptions name.
 */
const REFUNDS = query<RefundOfPayment, Dispute & { isNew: boolean }>(`
  select mid, our_refund_id, order_id, utr, amount_paise as amount, reference, exception_id, status = 'PENDING' as is_open,
         status = 'PENDING' and sent_at is null and accepted_at is null and acquirer <> 'direct' and (:isNew or created_at < (
           select recorded_at from disputes d
            where d.mid = :mid and d.acquirer = :acquirer and d.dispute_id = :disputeId)) as is_unsent,
         coalesce((
           select max(e.amount_paise)
             from payment_exceptions e
            where e.mid = :mid and e.order_id = :orderId and e.kind = 'refund of a disputed payment'
              and e.our_refund_id = r.our_refund_id and split_part(e.dedup_key, ' ', 1) = :disputeId
              and not exists (select from payment_resolutions s where s.mid = :mid and s.exception_id = e.exception_id)), 0) as named
    from refunds r
   where mid = :mid and order_id = :orderId and utr = :utr and status <> 'FAIL'
     and not exists (select from refund_returns t where t.mid = :mid and t.our_refund_id = r.our_refund_id)
   order by created_at, our_refund_id
     for update of r`)

/** Sums what left or may leave the payment beside this dispute. */
const RETURNED = query<{ returned: Paise }, Pick<Dispute, 'mid' | 'orderId' | 'utr' | 'acquirer' | 'disputeId'>>(`
  select (coalesce(sum(r.amount_paise), 0) - coalesce((
           select coalesce(d.amount_paise, p.amount_paise)
             from disputes d
             join payments p on p.mid = :mid and p.utr = :utr
            where d.mid = :mid and d.acquirer = :acquirer and d.dispute_id = :disputeId and d.status in ('lost', 'accepted')), 0)
         )::bigint as returned
    from returned_amounts r
   where r.mid = :mid and r.order_id = :orderId and r.utr = :utr`)

const RESOLVE_REFUNDS = query<object, Resolving & { orderId: string; status: string }>(`
  insert into payment_resolutions (mid, exception_id, reason, resolved_by, resolved_at)
  select mid, exception_id, 'the dispute is ' || :status, :source, :now::timestamptz
    from payment_exceptions
   where mid = :mid and order_id = :orderId and kind = 'refund of a disputed payment'
     and split_part(dedup_key, ' ', 1) = :disputeId
      on conflict do nothing`)

/** Writes the event of a dispute, with the order's next sequence number. Its data are stored as they are sent. */
async function saveEvent(db: Queryable, dispute: Dispute, type: EventType, occurredAt: Date): Promise<void> {
  const { mid, orderId, utr } = dispute
  const sequence = await nextSequence(db, dispute)
  const data = JSON.stringify({ ...toEventData(dispute), sequence })
  await writeDeliveries(db, type, mid, [{ orderId, sequence, txnStatus: 'SUCCESS', utr, occurredAt, data }])
}

/** Formats a status for merchants, such as `UNDER_REVIEW`. */
const toWireStatus = (status: Dispute['status']) => status.toUpperCase().replace(' ', '_')

const toEventData = ({ mid, orderId, merchantOrderId, utr, disputeId, amount, status, ...rest }: Dispute) => ({
  mid,
  orderId,
  order_id: merchantOrderId,
  UTR: utr,
  dispute_id: disputeId,
  amount: amount === null ? '' : toPlainText(amount),
  status: toWireStatus(status),
  reason_text: rest.reasonText ?? '',
  respond_by: rest.respondBy?.toISOString() ?? '',
})
