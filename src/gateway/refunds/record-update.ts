import type { Logger } from 'pino'
import { LIMITS, type Limits } from '../../limits.ts'
import { inTransaction, type Queryable, type Transactional } from '../../platform/db/pool.ts'
import { plannedQuery, query } from '../../platform/db/query.ts'
import { printableLine } from '../../platform/printable.ts'
import { createBoundedExceptions, saveException } from '../payments/exceptions.ts'
import { writeDeliveries } from '../payments/outbox.ts'
import type { ExceptionKind } from '../payments/outcome.ts'
import type { Barrier } from '../payments/reports.ts'
import { ABOVE, storeAcquirerRefund } from './acquirer-refund.ts'
import { REASON_CHARACTERS, type Refund, type RefundName, type RefundUpdate } from './refund.ts'
import { findRefund, isLeftToPerson } from './store.ts'

/**
 * The result of an update. `changed` is whether the refund has a new status, `isNew` whether the exception is new.
 * `rejected` is why a person cannot change the refund.
 */
type RecordedUpdate = { changed: boolean; refund: Refund; exception?: ExceptionKind; isNew?: boolean } & {
  rejected?: 'final' | 'checked by the service'
}

type RefundListeners = {
  /** Callback for metrics, called once for each new exception. */
  onException: (kind: ExceptionKind, acquirerAccount: string) => void
  /** The log, which gets an error for each unknown status. */
  log: Pick<Logger, 'error'>
}

/** The source of an update: `answer`, `enquiry`, `notification` or the operator's name. `now` is the time of the update. */
type Reporting = { source: string; now: Date }

/**
 * The source of an update, and the clock, which is read under the lock. A person cannot change a final refund, nor a
 * refund whose status the service checks.
 */
type Recording = Omit<Reporting, 'now'> & { by: 'person' | 'acquirer'; now: () => Date; barrier?: Barrier }

const UNKNOWN_STATUS = 'Unknown refund state. If it persists, contact the acquirer.'

export type RefundUpdates = ReturnType<typeof createRefundUpdates>

export function createRefundUpdates(
  db: Transactional,
  { onException, log }: Partial<RefundListeners> = {},
  limits: Limits['reports'] = LIMITS.reports,
) {
  const saveBounded = createBoundedExceptions(limits)

  /**
   * Judges an update and stores the result: the refund's final status, its webhook event, and exceptions that it
   * resolves or opens. A success is never undone. Locks the order's row first, so that concurrent equal updates change
   * the refund once. Returns undefined for an unknown refund.
   */
  async function record(
    name: RefundName,
    update: RefundUpdate,
    { source, by, now, barrier }: Recording,
  ): Promise<RecordedUpdate | undefined> {
    const recorded = await inTransaction(db, async (client): Promise<RecordedUpdate | undefined> => {
      await barrier?.(client)
      const refund = await lockRefund(client, name)
      if (refund === undefined) return undefined
      const rejected = by === 'person' ? await rejectionOf(client, refund) : undefined
      if (rejected) return { changed: false, refund, rejected }
      return judge(client, refund, update, { source, now: now() })
    })
    if (recorded?.exception && recorded.isNew) onException?.(recorded.exception, recorded.refund.acquirer)
    if (recorded && update.unknownStatus !== undefined) {
      const { acquirer, orderId, ourRefundId } = recorded.refund
      log?.error({ acquirer, source, ourRefundId, orderId, status: update.unknownStatus }, UNKNOWN_STATUS)
    }
    return recorded
  }

  return {
    record,

    /** Records a notification about a refund of the service, or about a refund that the acquirer has initiated. */
    async recordNotification(
      acquirer: string,
      update: RefundUpdate,
      now: Date,
    ): Promise<Partial<RecordedUpdate> | undefined> {
      const which = update.acquirerInitiated
        ? await storeAcquirerRefund({ db, saveBounded }, acquirer, update, now)
        : await findByAcquirer(db, acquirer, update.ourRefundId)
      if (which === undefined || !('above' in which))
        return which && record(which, update, { source: 'notification', by: 'acquirer', now: () => now })
      if (which.above === 'failed') return { changed: false }
      if (which.above !== 'known') onException?.(ABOVE, acquirer)
      return { changed: false, exception: ABOVE, isNew: which.above === 'new' }
    },

    /**
     * Schedules the status check of a refund after an unauthenticated notification: in 3 s, or in 60 s if the refund
     * was checked 20 times. Returns false for a refund that the acquirer does not have.
     */
    async scheduleSoon(acquirer: string, ourRefundId: string, now: Date): Promise<boolean> {
      const refund = await findByAcquirer(db, acquirer, ourRefundId)
      if (refund === undefined) return false
      const [soon, later] = [3_000, 60_000].map((ms) => new Date(now.getTime() + ms))
      await SCHEDULE_SOON(db, { ...refund, soon, later })
      return true
    },

    /**
     * Stores an exception, so that the operator decides about an open refund. An unsure refund is no longer sent or
     * checked. A refund that the acquirer is known to have cannot be unsure.
     */
    async needPerson(
      refund: ExceptionSubject & Pick<Refund, 'sentAt'>,
      kind: 'refund unsure' | 'refund without an end',
      now: Date,
    ): Promise<void> {
      // A refund that was sent again can become unsure again.
      const sentAt = kind === 'refund unsure' ? refund.sentAt : null
      const isNew = await inTransaction(db, async (client) => {
        const changed = await (kind === 'refund unsure' ? STOP : LOCK_OPEN)(client, refund)
        return changed.length === 1 && saveRefundException(client, kind, refund, { source: 'enquiry', sentAt, now })
      })
      if (isNew) onException?.(kind, refund.acquirer)
    },
  }
}

const SCHEDULE_SOON = query<object, RefundName & { soon: Date | undefined; later: Date | undefined }>(`
  update refunds
     set due_at = least(due_at, case when attempts < 20 then :soon::timestamptz else :later::timestamptz end)
   where mid = :mid and our_refund_id = :ourRefundId and sent_at is not null`)

const STOP = query<object, RefundName>(`
  update refunds set due_at = null, reason = 'the acquirer does not know it'
   where mid = :mid and our_refund_id = :ourRefundId and status = 'PENDING' and accepted_at is null
  returning 1`)

const LOCK_OPEN = query<object, RefundName>(`
  select from refunds where mid = :mid and our_refund_id = :ourRefundId and status = 'PENDING' for no key update`)

/** Finds a refund by the service's refund id, which an acquirer may return in upper or lower case. */
const findByAcquirer = async (db: Queryable, acquirer: string, ourRefundId = ''): Promise<RefundName | undefined> =>
  (await BY_ACQUIRER(db, { acquirer, ourRefundId }))[0]

const BY_ACQUIRER = query<RefundName, { acquirer: string; ourRefundId: string }>(
  'select mid, our_refund_id from refunds where our_refund_id = lower(:ourRefundId) and acquirer = :acquirer',
)

async function rejectionOf(db: Queryable, refund: Refund): Promise<RecordedUpdate['rejected']> {
  if (refund.endedAt !== null) return 'final'
  return (await isLeftToPerson(db, refund)) ? undefined : 'checked by the service'
}

async function judge(
  db: Queryable,
  refund: Refund,
  update: RefundUpdate,
  reporting: Reporting,
): Promise<RecordedUpdate> {
  const except = async (exception: ExceptionKind) => {
    const isNew = await saveRefundException(db, exception, refund, { ...reporting, reason: update.reason })
    return { changed: false, refund, exception, isNew }
  }
  if (differs(update, refund)) return except('refund differs')
  if (update.status === 'PENDING') {
    if (refund.status === 'PENDING') await saveAcceptance(db, refund, update, reporting)
    return { changed: false, refund }
  }
  if (update.status === refund.status || refund.succeededAt !== null) return { changed: false, refund }
  if (refund.status === 'SUCCESS') return except('refund failed after success')
  await endRefund(db, refund, update, reporting)
  const ended = { changed: true, refund: (await findRefund(db, refund.mid, refund)) as Refund }
  if (update.status === 'FAIL' || !(await isAboveWhatWasPaid(db, refund))) return ended
  return { ...(await except(ABOVE)), ...ended }
}

/**
 * Whether an update is about another refund. Identifiers are compared case-insensitively, because no acquirer promises
 * to preserve the case of the service's ids, and Setu's own ids are ULIDs, in which upper and lower case are
 * equivalent.
 */
function differs(update: RefundUpdate, refund: Refund): boolean {
  const isOther = (reported: string | undefined, known: string | null) =>
    reported !== undefined && reported.toLowerCase() !== known?.toLowerCase()
  return (
    (update.amount ?? refund.amount) !== refund.amount ||
    isOther(update.ourRefundId, refund.ourRefundId) ||
    isOther(update.orderId, refund.orderId) ||
    isOther(update.merchantId, refund.acquirerMerchantId) ||
    (refund.acquirerRefundId !== null && isOther(update.id, refund.acquirerRefundId))
  )
}

type ExceptionSubject = Pick<Refund, 'mid' | 'orderId' | 'utr' | 'amount' | 'ourRefundId' | 'acquirer'>

/** Stores an exception about a refund. Returns whether the exception is new. */
export const saveRefundException = (
  db: Queryable,
  kind: ExceptionKind,
  { mid, orderId, utr, amount, ourRefundId, acquirer }: ExceptionSubject,
  { source, reason, sentAt, now }: Reporting & { reason?: string | undefined; sentAt?: Date | null },
): Promise<boolean> => {
  const dedupKey = sentAt?.toISOString() ?? ''
  const subject = { mid, orderId, utr, amount, status: '', ourRefundId, dedupKey } as const
  const acquirerAccount = source === 'notification' ? acquirer : undefined
  return saveException(db, kind, { ...subject, person: source, note: reason, acquirerAccount }, now)
}

/**
 * Stores that the acquirer has the refund, and the acquirer's identifier as soon as a response contains it. From now on
 * the service only checks the refund's status, even if the refund was unsure before.
 */
async function saveAcceptance(
  db: Queryable,
  refund: Refund,
  { id }: RefundUpdate,
  { source, now }: Reporting,
): Promise<void> {
  if (refund.acceptedAt !== null && (id === undefined || refund.acquirerRefundId !== null)) return
  const { mid, ourRefundId } = refund
  await ACCEPT(db, { mid, ourRefundId, id, now, checkAt: new Date(now.getTime() + 60_000) })
  await endExceptions(db, { ...refund, kinds: ['refund unsure'], reason: 'the acquirer has it', source, now })
}

const ACCEPT = query<object, RefundName & { id: string | undefined; now: Date; checkAt: Date }>(`
  update refunds
     set acquirer_refund_id = coalesce(acquirer_refund_id, :id), accepted_at = coalesce(accepted_at, :now),
         sent_at = coalesce(sent_at, :now), due_at = least(due_at, :checkAt), reason = null
   where mid = :mid and our_refund_id = :ourRefundId`)

type EndedRefund = Pick<Refund, 'mid' | 'orderId' | 'utr' | 'ourRefundId' | 'exceptionId' | 'reference'>

/** Stores the final status of a refund, writes its event, and resolves exceptions. */
export async function endRefund(
  db: Queryable,
  refund: EndedRefund,
  update: Pick<RefundUpdate, 'status' | 'id' | 'reference' | 'reason'>,
  { source, now }: Reporting,
): Promise<void> {
  const { mid, orderId, utr, ourRefundId, exceptionId } = refund
  const { status, id } = update
  const isSuccess = status === 'SUCCESS'
  const reference = update.reference || refund.reference
  const failure = printableLine(update.reason ?? '', REASON_CHARACTERS)
  await END(db, { mid, ourRefundId, status, reference, failure, now, id })
  await saveEvent(db, { mid, orderId, ourRefundId, reference }, isSuccess ? 'SUCCESS' : 'FAIL', now)
  const reason = `the refund ${isSuccess ? 'succeeded' : 'failed'}${update.reference && `, reference ${update.reference}`}`
  const ended = isSuccess && exceptionId !== null ? exceptionId : undefined
  const kinds: ExceptionKind[] = ['refund unsure', 'refund without an end']
  if (!isSuccess) kinds.push('refund of a disputed payment')
  await endExceptions(db, { mid, orderId, ourRefundId, kinds, ended, reason, source, now })
  if (isSuccess) await resolveReturnedPayment(db, { mid, orderId, utr, reason, source, now })
}

type Ended = RefundName & Pick<RefundUpdate, 'status' | 'id'> & { reference: string | null; failure: string; now: Date }

/**
 * A failure's reason is retained if a success follows, because the webhook of the failure may not have been sent yet.
 */
const END = query<object, Ended>(`
  update refunds
     set status = :status, reference = :reference, ended_at = :now,
         reason = case when :status = 'FAIL' then :failure when status = 'FAIL' then reason end,
         acquirer_refund_id = coalesce(acquirer_refund_id, :id), due_at = null
   where mid = :mid and our_refund_id = :ourRefundId`)

/** Writes the webhook event of a refund's new status, with the order's next sequence number. */
async function saveEvent(
  db: Queryable,
  { mid, orderId, ourRefundId, reference }: Pick<Refund, 'mid' | 'orderId' | 'ourRefundId' | 'reference'>,
  txnStatus: 'SUCCESS' | 'FAIL',
  occurredAt: Date,
): Promise<void> {
  const sequence = await nextSequence(db, { mid, orderId })
  const event = { orderId, sequence, txnStatus, utr: reference, ourRefundId, occurredAt }
  await writeDeliveries(db, txnStatus === 'SUCCESS' ? 'refund.succeeded' : 'refund.failed', mid, [event])
}

/** Returns the number of the order's next event. The caller has locked the order. */
export async function nextSequence(db: Queryable, order: Pick<Refund, 'mid' | 'orderId'>): Promise<number> {
  const [next] = await NEXT_SEQUENCE(db, order)
  return (next as { sequence: number }).sequence
}

const NEXT_SEQUENCE = query<{ sequence: number }, Pick<Refund, 'mid' | 'orderId'>>(`
  update payment_intents set event_sequence = event_sequence + 1 where mid = :mid and order_id = :orderId
  returning event_sequence as sequence`)

/** Locks the refund's order, so that changes of its refunds wait for each other. Returns the refund under the lock. */
async function lockRefund(db: Queryable, name: RefundName): Promise<Refund | undefined> {
  await LOCK(db, name)
  return findRefund(db, name.mid, name)
}

const LOCK = query<object, RefundName>(`
  select from payment_intents
   where mid = :mid and order_id = (select order_id from refunds where mid = :mid and our_refund_id = :ourRefundId)
     for no key update`)

/**
 * Resolves the refund's own exceptions of `kinds`, and the exception `ended`, unless they are already
 * resolved.
 */
const endExceptions = plannedQuery<
  object,
  Pick<Refund, 'mid' | 'orderId' | 'ourRefundId'> &
    Reporting & { kinds: ExceptionKind[]; ended?: string | undefined; reason: string }
>(`
  insert into payment_resolutions (mid, exception_id, reason, resolved_by, resolved_at)
  select mid, exception_id, :reason, :source, :now::timestamptz
    from payment_exceptions
   where mid = :mid
     and ((order_id = :orderId and our_refund_id = :ourRefundId and kind = any (:kinds)) or exception_id = :ended)
      on conflict do nothing`)

/**
 * Resolves the exception of a late or double payment that was returned as a whole, by a lost dispute or by refunds, also
 * of the merchant, which name no exception.
 */
export const resolveReturnedPayment = query<
  object,
  Pick<Refund, 'mid' | 'orderId' | 'utr'> & Reporting & { reason: string }
>(`
  insert into payment_resolutions (mid, exception_id, reason, resolved_by, resolved_at)
  select mid, exception_id, :reason, :source, :now::timestamptz
    from payment_exceptions
   where mid = :mid and order_id = :orderId and kind in ('late payment', 'double payment') and utr = :utr
     and (select sum(amount_paise)
            from returned_amounts
           where mid = :mid and order_id = :orderId and utr = :utr and is_final)
         >= (select amount_paise from payments where mid = :mid and utr = :utr)
      on conflict do nothing`)

/** Whether the successful refunds and lost disputes of a payment exceed the amount that was paid. */
const isAboveWhatWasPaid = async (db: Queryable, refund: Refund): Promise<boolean> =>
  (await ABOVE_WHAT_WAS_PAID(db, refund)).length === 1

const ABOVE_WHAT_WAS_PAID = query<object, Pick<Refund, 'mid' | 'orderId' | 'utr'>>(`
  select from returned_amounts r
    join payments p on p.mid = r.mid and p.utr = r.utr
   where r.mid = :mid and r.order_id = :orderId and r.utr = :utr and r.is_final
   group by p.amount_paise
  having sum(r.amount_paise) > p.amount_paise`)

type RefundReturn = { reference: string; reason: string; returnedBy: string }

/**
 * Records that the bank has returned a refund of `direct`, so that the refund has failed and its amount can be refunded
 * again, and writes the merchant's event. The row of the refund stays SUCCESS: reports as of an earlier time include
 * the refund. Changes nothing, and returns `isReturned` false, unless the refund is of `direct` and successful.
 */
export function returnRefund(
  db: Transactional,
  name: RefundName,
  facts: RefundReturn,
  { now, barrier }: { now: () => Date; barrier: Barrier },
): Promise<{ refund: Refund; isReturned: boolean }> {
  return inTransaction(db, async (client) => {
    await barrier(client)
    const refund = (await lockRefund(client, name)) as Refund
    if (refund.acquirer !== 'direct' || refund.status !== 'SUCCESS') return { refund, isReturned: false }
    const { mid, ourRefundId } = refund
    const returnedAt = now()
    await ADD_RETURN(client, { mid, ourRefundId, ...facts, returnedAt })
    await saveEvent(client, refund, 'FAIL', returnedAt)
    return { refund: (await findRefund(client, mid, { ourRefundId })) as Refund, isReturned: true }
  })
}

const ADD_RETURN = query<object, RefundName & RefundReturn & { returnedAt: Date }>(`
  insert into refund_returns (mid, our_refund_id, reference, reason, returned_by, returned_at)
  values (:mid, :ourRefundId, :reference, :reason, :returnedBy, :returnedAt)`)
