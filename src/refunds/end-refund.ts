import { type Database, inTransaction, type Queryable } from '../db/pool.ts'
import { toDecimalText } from '../money.ts'
import { nextSequence, writeDeliveries } from '../payments/events.ts'
import type { ExceptionKind } from '../payments/outcome.ts'
import { printable } from '../printable.ts'
import { findRefund } from './make-refund.ts'
import { REASON_CHARACTERS, type Refund, type RefundStatus } from './refund.ts'

/** What is told of a refund. PENDING says that the acquirer has it. By what is undefined it is not judged. */
export type RefundWord = {
  status: RefundStatus
  /** In paise. */
  amount?: number | undefined
  ourRefundId?: string | undefined
  orderId?: string | undefined
  /** The acquirer's own names for the merchant and for the refund. */
  merchantId?: string | undefined
  id?: string | undefined
  /** The bank's; may be empty. */
  reference: string
  reason?: string | undefined
  /** Who tells: `notification`, `enquiry`, or the operator's name. */
  by: string
}

/** `changed` is whether the refund's status is another one now; `isNew` is false for an exception that was known. */
export type EndedRefund = { changed: boolean; refund: Refund; exception?: ExceptionKind; isNew?: boolean }

/**
 * Judges every word about a refund and stores what follows: the end, its event, the exceptions that it ends or makes.
 * Undefined for an unknown refund. A success is never undone; any number of the same words at once change it once, because
 * the row of its order is locked first.
 */
export function endRefund(
  db: Database,
  which: { mid: string; ourRefundId: string },
  word: RefundWord,
  now: Date,
): Promise<EndedRefund | undefined> {
  const { mid, ourRefundId } = which
  return inTransaction(db, async (client) => {
    await client.query(
      `select from payment_intents
        where mid = $1 and order_id = (select order_id from refunds where mid = $1 and our_refund_id = $2)
          for no key update`,
      [mid, ourRefundId],
    )
    const refund = await findRefund(client, mid, { ourRefundId })
    if (refund === undefined) return undefined
    const refuse = async (exception: ExceptionKind) => {
      const isNew = await keepRefundException(client, exception, refund, word, now)
      return { changed: false, refund, exception, isNew }
    }
    if (differs(word, refund)) return refuse('refund differs')
    if (word.status === 'PENDING') {
      if (refund.status === 'PENDING') await keepArrival(client, refund, word, now)
      return { changed: false, refund }
    }
    if (word.status === refund.status) return { changed: false, refund }
    if (refund.status === 'SUCCESS') return refuse('refund failed after success')
    await storeEnd(client, refund, word, now)
    const ended = { changed: true, refund: (await findRefund(client, mid, { ourRefundId })) as Refund }
    if (word.status === 'FAIL' || !(await isAboveWhatWasPaid(client, refund))) return ended
    const exception = 'refunded above what was paid'
    return { ...ended, exception, isNew: await keepRefundException(client, exception, refund, word, now) }
  })
}

/**
 * Whether a word, of an answer or a notification alike, is about another refund. Names are compared without regard to case: no
 * acquirer promises to keep that of ours, and Setu's own names, which are ULIDs, have none.
 */
function differs(word: RefundWord, refund: Refund): boolean {
  const isOther = (told: string | undefined, known: string | null) =>
    told !== undefined && told.toLowerCase() !== known?.toLowerCase()
  return (
    (word.amount ?? refund.amount) !== refund.amount ||
    isOther(word.ourRefundId, refund.ourRefundId) ||
    isOther(word.orderId, refund.orderId) ||
    isOther(word.merchantId, refund.acquirerMerchantId) ||
    (refund.acquirerRefundId !== null && isOther(word.id, refund.acquirerRefundId))
  )
}

/** Keeps an exception of a refund for the operator. Returns whether it is new. */
export async function keepRefundException(
  db: Queryable,
  kind: ExceptionKind,
  { mid, orderId, utr, amount, ourRefundId }: Pick<Refund, 'mid' | 'orderId' | 'utr' | 'amount' | 'ourRefundId'>,
  { by, reason }: { by: string; reason?: string | undefined },
  now: Date,
): Promise<boolean> {
  const { rowCount } = await db.query(
    `insert into payment_exceptions (mid, order_id, kind, utr, amount, status, digest, told_by, note, received_at)
     values ($1, $2, $3, $4, $5, '', $6, $7, $8, $9)
     on conflict do nothing`,
    [mid, orderId, kind, utr, toDecimalText(amount), ourRefundId, by, reason, now],
  )
  return rowCount === 1
}

/** Keeps that the acquirer has the refund: it is only asked about from then on, also if it was unsure. */
async function keepArrival(db: Queryable, refund: Refund, { id, by }: RefundWord, now: Date): Promise<void> {
  if (id === undefined || refund.acquirerRefundId !== null) return
  await db.query(
    `update refunds
        set acquirer_refund_id = $3, sent_at = coalesce(sent_at, $4), due_at = least(due_at, $5), reason = null
      where mid = $1 and our_refund_id = $2`,
    [refund.mid, refund.ourRefundId, id, now, new Date(now.getTime() + 60_000)],
  )
  await endExceptions(db, refund, { kinds: ['refund unsure'], reason: 'the acquirer has it', by, now })
}

async function storeEnd(db: Queryable, refund: Refund, word: RefundWord, now: Date): Promise<void> {
  const { mid, orderId, ourRefundId, exceptionId } = refund
  const { status, reference, id, by } = word
  const isSuccess = status === 'SUCCESS'
  await db.query(
    // The reason of a failure stays when a success follows: the webhook of the failure may still have to be sent.
    `update refunds
        set status = $3, reference = $4, ended_at = $6,
            reason = case when $3 = 'FAIL' then $5 when status = 'FAIL' then reason end,
            acquirer_refund_id = coalesce(acquirer_refund_id, $7), due_at = null
      where mid = $1 and our_refund_id = $2`,
    [mid, ourRefundId, status, reference || refund.reference, printable(word.reason ?? '', REASON_CHARACTERS), now, id],
  )
  const { rows } = await db.query<{ sequence: number }>(
    `update payment_intents set event_sequence = ${nextSequence()} where mid = $1 and order_id = $2
     returning event_sequence as sequence`,
    [mid, orderId],
  )
  const { sequence } = rows[0] as { sequence: number }
  const event = {
    orderId,
    sequence,
    txnStatus: status,
    utr: reference || refund.reference,
    ourRefundId,
    occurredAt: now,
  }
  await writeDeliveries(db, isSuccess ? 'refund.succeeded' : 'refund.failed', mid, [event])
  const reason = `the refund ${isSuccess ? 'succeeded' : 'failed'}${reference && `, reference ${reference}`}`
  const ended = isSuccess && exceptionId !== null ? exceptionId : undefined
  await endExceptions(db, refund, { kinds: ['refund unsure', 'refund without an end'], ended, reason, by, now })
}

/** Ends the refund's own exceptions of these kinds, and `ended`, which it was made for. The first word counts. */
async function endExceptions(
  db: Queryable,
  { mid, orderId, ourRefundId }: Refund,
  ends: { kinds: ExceptionKind[]; ended?: string | undefined; reason: string; by: string; now: Date },
): Promise<void> {
  await db.query(
    `insert into payment_resolutions (mid, exception_id, reason, resolved_by, resolved_at)
     select mid, exception_id, $6, $7, $8::timestamptz
       from payment_exceptions
      where mid = $1 and ((order_id = $2 and digest = $3 and kind = any ($4)) or exception_id = $5)
     on conflict do nothing`,
    [mid, orderId, ourRefundId, ends.kinds, ends.ended, ends.reason, ends.by, ends.now],
  )
}

/** Whether more of the refund's payment has gone back than was paid. */
async function isAboveWhatWasPaid(db: Queryable, { mid, orderId, utr }: Refund): Promise<boolean> {
  const { rowCount } = await db.query(
    `select from refunds r
       join payments p on p.mid = r.mid and p.utr = r.utr
      where r.mid = $1 and r.order_id = $2 and r.utr = $3 and r.status = 'SUCCESS'
      group by p.amount_paise
     having sum(r.amount_paise) > p.amount_paise`,
    [mid, orderId, utr],
  )
  return rowCount === 1
}
