import { type Database, inTransaction } from '../db/pool.ts'
import type { ExceptionKind, PaymentNames } from '../payments/outcome.ts'
import { type EndedRefund, endRefund, keepRefundException, type RefundWord } from './end-refund.ts'
import { keepOwnRefund, type OwnRefund } from './own-refund.ts'

/**
 * Seconds from the sending of a refund to each question about it, while it has no end: 1 minute, 10 minutes, 1 hour, then
 * every 6 hours for 5 days, then once a day for 30 more. The one after 24 hours decides about a refund that the acquirer
 * does not know.
 */
const ASKED_AFTER_SECONDS = [
  ...[60, 600, 3_600, 86_400],
  ...Array.from({ length: 20 }, (_, number) => (number + 1) * 21_600),
  ...Array.from({ length: 30 }, (_, number) => (number + 6) * 86_400),
]

/** Pause after an attempt to send that did nothing: 1 minute, 2, 4, … up to an hour. */
const LONGEST_PAUSE_SECONDS = 3_600

/** A refund for which something has to be done now. The link is its order's. */
export type DueRefund = {
  mid: string
  orderId: string
  ourRefundId: string
  amount: number
  note: string
  utr: string
  /** Whether its order was paid by another payment before. */
  isSecond: boolean
  acquirer: string
  acquirerRefundId: string | null
  madeAt: Date
  sentAt: Date | null
  names: PaymentNames | null
  link: { acquirer: string; merchantId: string; id: string; reference: string; link: string }
}

type Which = { mid: string; ourRefundId: string }

const nobody = () => undefined

/**
 * Stores how far refunds are. Any number of instances share the work. `onException` is called once for each new exception.
 */
export function createProgress(db: Database, onException: (kind: ExceptionKind) => void = nobody) {
  async function tell(which: Which, word: RefundWord, now: Date): Promise<EndedRefund | undefined> {
    const told = await endRefund(db, which, word, now)
    if (told?.exception && told.isNew) onException(told.exception)
    return told
  }

  return {
    /** Judges a word about a refund and stores what follows; undefined for an unknown one. */
    tell,

    /** The same for a refund that an acquirer names, in either case, which has to be one of its own. */
    async tellOfNamed(named: { ourRefundId: string; acquirer: string }, word: RefundWord, now: Date) {
      const { rows } = await db.query<Which>(
        `select mid, our_refund_id as "ourRefundId" from refunds where our_refund_id = lower($1) and acquirer = $2`,
        [named.ourRefundId, named.acquirer],
      )
      return rows[0] && tell(rows[0], word, now)
    },

    /** The same for a refund that an acquirer has made by itself; undefined for one of an unknown payment. */
    async tellOfOwn(own: OwnRefund, now: Date): Promise<EndedRefund | undefined> {
      const which = await keepOwnRefund(db, own, now)
      return which && tell(which, own.word, now)
    },

    /** Up to `limit` merchants with a refund that is due at an acquirer, in random order: a long queue comes no earlier. */
    async findDue(acquirer: string, limit: number, now: Date): Promise<string[]> {
      const { rows } = await db.query<{ mid: string }>(
        `select m.mid
           from merchants m
          -- One look-up in the index for each merchant, however many wait: since PostgreSQL 16 this distinct stops at the first
          -- row, as a limit would, which Citus does not take here.
          cross join lateral (
            select distinct mid from refunds where mid = m.mid and acquirer = $1 and due_at <= $2) due
          order by random()
          limit $3`,
        [acquirer, now, limit],
      )
      return rows.map(({ mid }) => mid)
    },

    /**
     * Takes up to `limit` refunds of a merchant that are due at an acquirer, longest due first. Each is due again as if
     * nothing came of it, so a killed instance leaves nothing behind.
     */
    async takeDue(acquirer: string, mid: string, limit: number, now: Date): Promise<DueRefund[]> {
      const { rows } = await db.query<DueRefund>(
        // What is stored is reckoned by the select: Citus takes no interval in the `case` of an update.
        `with due as materialized (
           select r.refund_id,
                  case when r.sent_at is null
                    then $2::timestamptz + make_interval(secs => least(60 * 2 ^ least(r.attempts, 10), $6))
                    else (select min(r.sent_at + make_interval(secs => after)) from unnest($5::integer[]) after
                           where r.sent_at + make_interval(secs => after) > $2) end as next
             from refunds r
            where r.mid = $1 and r.due_at <= $2 and r.acquirer = $3
            order by r.due_at
            limit $4
              for update skip locked
         ), taken as (
           update refunds r
              set due_at = due.next, attempts = least(r.attempts + 1, 32767)
             from due
            where r.mid = $1 and r.refund_id = due.refund_id
           returning r.*
         )
         select r.mid, r.order_id as "orderId", r.our_refund_id as "ourRefundId", r.amount_paise as amount, r.note, r.utr,
                coalesce(p.kind = 'second', false) as "isSecond", r.acquirer,
                r.acquirer_refund_id as "acquirerRefundId", r.made_at as "madeAt", r.sent_at as "sentAt",
                case when p.acquirer_payment_id is not null and p.acquirer_txn_id is not null
                  then json_build_object('id', p.acquirer_payment_id, 'txnId', p.acquirer_txn_id) end as names,
                json_build_object('acquirer', r.acquirer, 'merchantId', r.acquirer_merchant_id, 'id', a.acquirer_id,
                                  'reference', a.reference, 'link', a.link) as link
           from taken r
           join acquirer_intents a on a.mid = $1 and a.order_id = r.order_id
           left join payments p on p.mid = $1 and p.utr = r.utr`,
        [mid, now, acquirer, limit, ASKED_AFTER_SECONDS, LONGEST_PAUSE_SECONDS],
      )
      return rows
    },

    /**
     * Marks a refund as sent, before a byte leaves. Whoever gets false must not send it: it has ended, or somebody has sent
     * it. With `mayRepeat` a refund that was sent may be sent again.
     */
    async mark({ mid, ourRefundId }: Which, now: Date, mayRepeat: boolean): Promise<boolean> {
      const { rowCount } = await db.query(
        `update refunds
            set sent_at = coalesce(sent_at, $3)
          where mid = $1 and our_refund_id = $2 and status = 'PENDING' and (sent_at is null or $4)`,
        [mid, ourRefundId, now, mayRepeat],
      )
      return rowCount === 1
    },

    /** Takes back the mark of `sentAt`, by whoever made it and knows that nothing was done. */
    async takeMarkBack({ mid, ourRefundId }: Which, sentAt: Date): Promise<void> {
      await db.query(
        `update refunds
            set sent_at = null
          where mid = $1 and our_refund_id = $2 and sent_at = $3 and status = 'PENDING' and acquirer_refund_id is null`,
        [mid, ourRefundId, sentAt],
      )
    },

    /** Keeps how the acquirer names a payment; the first word counts. */
    async keepNames({ mid, utr }: { mid: string; utr: string }, { id, txnId }: PaymentNames): Promise<void> {
      await db.query(
        `update payments
            set acquirer_payment_id = $3, acquirer_txn_id = $4
          where mid = $1 and utr = $2 and acquirer_txn_id is null and coalesce(acquirer_payment_id, $3) = $3`,
        [mid, utr, id, txnId],
      )
    },

    /**
     * Keeps that a person has to look after an open refund. Of an unsure one nothing is done any more until then; one that
     * the acquirer turns out to have is not unsure.
     */
    async needPerson(refund: DueRefund, kind: 'refund unsure' | 'refund without an end', now: Date): Promise<void> {
      const { mid, ourRefundId } = refund
      const isNew = await inTransaction(db, async (client) => {
        const { rowCount } = await client.query(
          kind === 'refund unsure'
            ? `update refunds set due_at = null, reason = 'the acquirer does not know it'
                where mid = $1 and our_refund_id = $2 and status = 'PENDING' and acquirer_refund_id is null`
            : `select from refunds where mid = $1 and our_refund_id = $2 and status = 'PENDING' for no key update`,
          [mid, ourRefundId],
        )
        return rowCount === 1 && keepRefundException(client, kind, refund, { by: 'enquiry' }, now)
      })
      if (isNew) onException(kind)
    },
  }
}

export type Progress = ReturnType<typeof createProgress>

/**
 * Lets an unsure refund be sent again, once a person has seen that the bank has not made it. Returns false for any other
 * refund. Its exception stays open until the refund ends.
 */
export async function retryRefund(db: Database, { mid, ourRefundId }: Which, now: Date): Promise<boolean> {
  const { rowCount } = await db.query(
    `update refunds r
        set sent_at = null, attempts = 0, reason = null, due_at = $3
      where r.mid = $1 and r.our_refund_id = $2 and r.status = 'PENDING' and r.due_at is null
        and r.acquirer_refund_id is null
        and exists (select from payment_exceptions e
                     where e.mid = r.mid and e.order_id = r.order_id and e.kind = 'refund unsure'
                       and e.digest = r.our_refund_id)`,
    [mid, ourRefundId, now],
  )
  return rowCount === 1
}
