import type { Logger } from 'pino'
import { LIMITS, type Limits } from '../../limits.ts'
import { inTransaction, type Queryable, type Transactional } from '../../platform/db/pool.ts'
import { query } from '../../platform/db/query.ts'
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
      await db.query(
        `update refunds
            set due_at = least(due_at, case when attempts < 20 then $3::timestamptz else $4::timestamptz end)
          where mid = $1 and our_refund_id = $2 and sent_at is not null`,
        [refund.mid, refund.ourRefundId, soon, later],
      )
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
      const { mid, ourRefundId } = refund
      // A refund that was sent again can become unsure again.
      const sentAt = kind === 'refund unsure' ? refund.sentAt : null
      const isNew = await inTransaction(db, async (client) => {
        const { rowCount } = await client.query(
          kind === 'refund unsure'
            ? `update refunds set due_at = null, reason = 'the acquirer does not know it'
                where mid = $1 and our_refund_id = $2 and status = 'PENDING' and accepted_at is null`
            : `select from refunds where mid = $1 and our_refund_id = $2 and status = 'PENDING' for no key update`,
          [mid, ourRefundId],
        )
        return rowCount === 1 && saveRefundException(client, kind, refund, { source: 'enquiry', sentAt, now })
      })
      if (isNew) onException?.(kind, refund.acquirer)
    },
  }
}

/** Finds a refund by the service's refund id, which an acquirer may return in upper or lower case. */
async function findByAcquirer(db: Queryable, acquirer: string, ourRefundId = ''): Promise<RefundName | undefined> {
  const { rows } = await db.query<RefundName>(
    `select mid, our_refund_id as "ourRefundId" from refunds where our_refund_id = lower($1) and acquirer = $2`,
    [ourRefundId, acquirer],
  )
  return rows[0]
}

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
  await db.query(
    `update refunds
        set acquirer_refund_id = coalesce(acquirer_refund_id, $3), accepted_at = coalesce(accepted_at, $4),
            sent_at = coalesce(sent_at, $4), due_at = least(due_at, $5), reason = null
      where mid = $1 and our_refund_id = $2`,
    [refund.mid, refund.ourRefundId, id, now, new Date(now.getTime() + 60_000)],
  )
  await endExceptions(db, refund, { kinds: ['refund unsure'], reason: 'the acquirer has it', source, now })
}

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
  await db.query(
    // A failure's reason is retained if a success follows, because the webhook of the failure may not have been sent
    // yet.
    `update refunds
        set status = $3, reference = $4, ended_at = $6,
            reason = case when $3 = 'FAIL' then $5 when status = 'FAIL' then reason end,
            acquirer_refund_id = coalesce(acquirer_refund_id, $7), due_at = null
      where mid = $1 and our_refund_id = $2`,
    [mid, ourRefundId, status, reference, printableLine(update.reason ?? '', REASON_CHARACTERS), now, id],
  )
  await saveEvent(db, { mid, orderId, ourRefundId, reference }, isSuccess ? 'SUCCESS' : 'FAIL', now)
  const reason = `the refund ${isSuccess ? 'succeeded' : 'failed'}${update.reference && `, reference ${update.reference}`}`
  const ended = isSuccess && exceptionId !== null ? exceptionId : undefined
  const kinds: ExceptionKind[] = ['refund unsure', 'refund without an end']
  if (!isSuccess) kinds.push('refund of a disputed payment')
  await endExceptions(db, refund, { kinds, ended, reason, source, now })
  if (isSuccess) await resolveReturnedPayment(db, { mid, orderId, utr, reason, source, now })
}

/** Writes the webhook event of a refund's new status, with the order's next sequence number. */
export async function saveEvent(
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
export async function nextSequence(db: Queryable, { mid, orderId }: Pick<Refund, 'mid' | 'orderId'>): Promise<number> {
  const { rows } = await db.query<{ sequence: number }>(
    `update payment_intents set event_sequence = event_sequence + 1 where mid = $1 and order_id = $2
     returning event_sequence as sequence`,
    [mid, orderId],
  )
  return (rows[0] as { sequence: number }).sequence
}

/** Locks the refund's order, so that changes of its refunds wait for each other. Returns the refund under the lock. */
export async function lockRefund(db: Queryable, { mid, ourRefundId }: RefundName): Promise<Refund | undefined> {
  await db.query(
    `select from payment_intents
      where mid = $1 and order_id = (select order_id from refunds where mid = $1 and our_refund_id = $2)
        for no key update`,
    [mid, ourRefundId],
  )
  return findRefund(db, mid, { ourRefundId })
}

/**
 * Resolves the refund's own exceptions of `kinds`, and the exception `ended`, unless these exceptions are already
 * resolved.
 */
async function endExceptions(
  db: Queryable,
  { mid, orderId, ourRefundId }: Pick<Refund, 'mid' | 'orderId' | 'ourRefundId'>,
  ends: Reporting & { kinds: ExceptionKind[]; ended?: string | undefined; reason: string },
): Promise<void> {
  await db.query(
    `insert into payment_resolutions (mid, exception_id, reason, resolved_by, resolved_at)
     select mid, exception_id, $6, $7, $8::timestamptz
       from payment_exceptions
      where mid = $1 and ((order_id = $2 and our_refund_id = $3 and kind = any ($4)) or exception_id = $5)
     on conflict do nothing`,
    [mid, orderId, ourRefundId, ends.kinds, ends.ended, ends.reason, ends.source, ends.now],
  )
}

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
async function isAboveWhatWasPaid(db: Queryable, { mid, orderId, utr }: Refund): Promise<boolean> {
  const { rowCount } = await db.query(
    `select from returned_amounts r
       join payments p on p.mid = r.mid and p.utr = r.utr
      where r.mid = $1 and r.order_id = $2 and r.utr = $3 and r.is_final
      group by p.amount_paise
     having sum(r.amount_paise) > p.amount_paise`,
    [mid, orderId, utr],
  )
  return rowCount === 1
}
