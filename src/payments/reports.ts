import { createHash } from 'node:crypto'
import { fewAtOnce } from '../db/few-at-once.ts'
import { type Database, inTransaction, type Queryable } from '../db/pool.ts'
import { hasState, UNIQUE_VIOLATION } from '../db/sqlstates.ts'
import { unavailable } from '../errors.ts'
import { LIMITS, type Limits } from '../limits.ts'
import type { Intent } from './intent.ts'
import type { ExceptionKind, FinalStatus, Report, ReportedIntent, Status } from './outcome.ts'

/** Who told us. */
export type ReportReason = 'notification' | 'enquiry' | 'day file' | 'operator' | 'sandbox'

/** Who told us, and when; of an operator also their name and note. */
export type Source = { reason: ReportReason; now: Date; toldBy?: string; note?: string | undefined }

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
  changes: {
    status: FinalStatus | 'CANCELLED'
    utr: string | null
    paidAt: Date | null
    reason: ReportReason | 'merchant'
    toldBy: string | null
    note: string | null
    changedAt: Date
  }[]
  exceptions: PaymentException[]
}

/** `mid` is empty when no intent is known. An unreadable notification has a `body` and nothing else. */
export type PaymentException = {
  mid: string
  orderId: string
  kind: ExceptionKind
  /** What was reported; empty where an earlier version of the service did not keep it. */
  status: FinalStatus | ''
  utr: string
  /** Decimal text. */
  amount: string | null
  paidAt: Date | null
  body: string | null
  toldBy: string | null
  note: string | null
  receivedAt: Date
}

export type Reports = ReturnType<typeof createReports>

/**
 * Stores what the bank and the operator report: it changes intents, and what contradicts them is kept as an exception.
 * `onException` is called once for each exception, not for its repeats.
 */
export function createReports(
  db: Database,
  onException: (kind: ExceptionKind) => void = () => undefined,
  { reports: { atOnce, waiting, waitingMs }, unreadable }: Pick<Limits, 'reports' | 'unreadable'> = LIMITS,
) {
  const inTurn = fewAtOnce(atOnce)
  let underWay = 0

  return {
    ...reportsIn(db, onException, unreadable),

    /** Runs `work` when few others run, in the order of the calls. 503 when too many wait, or this one did for too long. */
    async inTurn<T>(work: () => Promise<T>): Promise<T> {
      if (underWay >= waiting) throw unavailable()
      underWay++
      const latest = performance.now() + waitingMs
      try {
        return await inTurn(() => {
          if (performance.now() > latest) throw unavailable()
          return work()
        })
      } finally {
        underWay--
      }
    },

    /**
     * Runs `work` in a transaction, while no other that was given this UTR runs. The UTR of a paid order is in one table and
     * that of a double payment in another, so no constraint can keep one payment from being counted for two orders.
     */
    alone<T>(utr: string, work: (reports: ReportsIn) => Promise<T>): Promise<T> {
      return inTransaction(db, async (client) => {
        await client.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [utr])
        return work(reportsIn(client, onException, unreadable))
      })
    },
  }
}

type ReportsIn = ReturnType<typeof reportsIn>

function reportsIn(
  db: Queryable,
  onException: (kind: ExceptionKind) => void,
  { kept, bytes }: typeof LIMITS.unreadable,
) {
  return {
    /** What a report about our orderId is judged by; undefined when there is no such intent, or it is another acquirer's. */
    async findReported({ orderId, status, utr, paidAt, acquirer }: Report): Promise<ReportedIntent | undefined> {
      // An instance of an earlier version writes UTRs as they were sent, and failed attempts into payment_changes.
      const { rows } = await db.query<ReportedIntent>(
        `select i.mid, i.order_id as "orderId", i.amount, i.status, upper(i.utr) as utr, i.expires_at as "expiresAt",
                exists (select from payment_intents o where o.mid = i.mid and o.utr = $2 and o.order_id <> i.order_id)
                  -- The second payment of another order is to be refunded: it must not pay this one as well.
                  or exists (select from payment_exceptions e
                              where e.mid = i.mid and e.kind = 'double payment' and e.utr = $2
                                and e.order_id <> i.order_id) as "utrOfAnother",
                exists (select from payment_attempts a
                         where a.mid = i.mid and a.order_id = i.order_id and a.status = $3 and a.attempt = $4)
                  or exists (select from payment_changes c
                         where c.mid = i.mid and c.order_id = i.order_id and c.status = $3
                           and upper(c.utr) is not distinct from $2) as "attemptKnown"
           from payment_intents i
           left join acquirer_intents q on q.mid = i.mid and q.order_id = i.order_id
          where i.order_id = $1
            and ($5::text is null or coalesce(q.acquirer, 'direct') = $5)
            and ($6::text is null or q.acquirer_id = $6)`,
        [orderId, utr, status, nameAttempt({ utr, paidAt }), acquirer?.name, acquirer?.id],
      )
      return rows[0]
    },

    /**
     * Marks an intent as paid and writes that down, with the exception of a late payment, in one statement. False when it
     * was paid or cancelled meanwhile, or another order took the UTR: look again and judge anew.
     */
    async succeed(
      intent: ReportedIntent,
      report: Report,
      source: Source,
      { late }: { late: boolean },
    ): Promise<boolean> {
      try {
        const { rows } = await db.query<{ paid: number }>(
          `with paid as (
             update payment_intents
                set status = 'SUCCESS', utr = $3
              where mid = $1 and order_id = $2
                and status <> 'SUCCESS' and (status <> 'CANCELLED' or $10::boolean)
             returning mid, order_id
           ), change as (
             insert into payment_changes (mid, order_id, status, utr, paid_at, reason, told_by, note, changed_at)
             select mid, order_id, 'SUCCESS', $3, $4, $5, $6, $7, $8 from paid
           ), exception as (
             insert into payment_exceptions
               (mid, order_id, kind, utr, amount, status, paid_at, told_by, note, received_at)
             select mid, order_id, 'late payment', $3, $9, 'SUCCESS', $4, $6, $7, $8 from paid where $10::boolean
           )
           select count(*)::integer as paid from paid`,
          [
            intent.mid,
            intent.orderId,
            report.utr,
            report.paidAt,
            source.reason,
            source.toldBy,
            source.note,
            source.now,
            report.amount,
            late,
          ],
        )
        const isNew = rows[0]?.paid === 1
        if (isNew && late) onException('late payment')
        return isNew
      } catch (error) {
        if (hasState(error, UNIQUE_VIOLATION)) return false
        throw error
      }
    },

    /**
     * Stores a failed attempt, and makes it the intent's status unless the intent is `over`, in one statement. The intent is
     * locked first, so that a success at the same time comes entirely before or entirely after it.
     */
    async addAttempt(
      intent: ReportedIntent,
      report: Report,
      source: Source,
      { over }: { over: boolean },
    ): Promise<'new' | 'known' | 'ended meanwhile'> {
      const { rows } = await db.query<{ locked: number; added: number }>(
        `with intent as (
           select mid, order_id
             from payment_intents
            where mid = $1 and order_id = $2
              and status <> 'SUCCESS' and (status <> 'CANCELLED' or $9::boolean)
              for no key update
         ), attempt as (
           insert into payment_attempts (mid, order_id, status, attempt, utr, paid_at, reason, reported_at)
           select mid, order_id, $3, $4, $5, $6, $7, $8 from intent
           on conflict do nothing
           returning status
         ), changed as (
           update payment_intents i
              set status = a.status
             from attempt a
            where i.mid = $1 and i.order_id = $2 and not $9::boolean
         )
         select (select count(*) from intent)::integer as locked, (select count(*) from attempt)::integer as added`,
        [
          intent.mid,
          intent.orderId,
          report.status,
          nameAttempt(report),
          report.utr,
          report.paidAt,
          source.reason,
          source.now,
          over,
        ],
      )
      if (rows[0]?.locked !== 1) return 'ended meanwhile'
      return rows[0].added === 1 ? 'new' : 'known'
    },

    /** Keeps an exception for the operator. A repeat of the same facts is the same row. */
    async keepException(mid: string, kind: ExceptionKind, report: Report, source: Source): Promise<void> {
      const { rowCount } = await db.query(
        `insert into payment_exceptions
           (mid, order_id, kind, utr, amount, status, paid_at, told_by, note, received_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
         on conflict do nothing`,
        [
          mid,
          report.orderId,
          kind,
          report.utr ?? '',
          report.amount,
          report.status,
          report.paidAt,
          source.toldBy,
          source.note,
          source.now,
        ],
      )
      if (rowCount === 1) onException(kind)
    },

    /**
     * Keeps the beginning of a signed body that could not be read, while there is room for it. When several come at once,
     * a few more than the limit may be kept.
     */
    async keepUnreadable(body: Buffer, now: Date): Promise<void> {
      const { rows } = await db.query<{ room: boolean; kept: number }>(
        `with stock as (
           select count(*) < $1::integer as room
             from payment_exceptions
            where mid = '' and order_id = '' and kind = 'unreadable'
         ), kept as (
           insert into payment_exceptions (mid, order_id, kind, utr, amount, status, digest, body, received_at)
           select '', '', 'unreadable', '', 0, '', $2, $3, $4 from stock where room
           on conflict do nothing
           returning 1
         )
         select room, (select count(*) from kept)::integer as kept from stock`,
        [kept, createHash('sha256').update(body).digest('hex'), toPlainText(body, bytes), now],
      )
      if (rows[0]?.kept === 1 || rows[0]?.room === false) onException('unreadable')
    },

    /** All that is known of one intent, without its customer; undefined when there is none. */
    async findHistory(orderId: string): Promise<PaymentHistory | undefined> {
      const { rows } = await db.query<Omit<PaymentHistory, 'changes' | 'exceptions'>>(
        `select i.mid, i.order_id as "orderId", i.merchant_order_id as "merchantOrderId", i.amount, i.note, i.status, i.utr,
                i.created_at as "createdAt", i.expires_at as "expiresAt", coalesce(a.acquirer, 'direct') as acquirer,
                a.acquirer_id as "acquirerId", a.reference as "acquirerReference", a.enquiries
           from payment_intents i
           left join acquirer_intents a on a.mid = i.mid and a.order_id = i.order_id
          where i.order_id = $1`,
        [orderId],
      )
      const [intent] = rows
      if (intent === undefined) return undefined
      const changes = await db.query<PaymentHistory['changes'][number]>(
        `select status, utr, paid_at as "paidAt", reason, told_by as "toldBy", note, changed_at as "changedAt"
           from payment_changes
          where mid = $1 and order_id = $2
         union all
         select status, utr, paid_at, reason, null, null, reported_at
           from payment_attempts
          where mid = $1 and order_id = $2
          order by "changedAt"`,
        [intent.mid, orderId],
      )
      const exceptions = await db.query<PaymentException>(
        `select ${EXCEPTION} from payment_exceptions where mid = $1 and order_id = $2 order by received_at`,
        [intent.mid, orderId],
      )
      return { ...intent, changes: changes.rows, exceptions: exceptions.rows }
    },

    /** Every exception ever kept, oldest first. */
    async listExceptions(): Promise<PaymentException[]> {
      const { rows } = await db.query<PaymentException>(
        `select ${EXCEPTION} from payment_exceptions order by received_at, mid, order_id`,
      )
      return rows
    },
  }
}

const EXCEPTION = `
  mid, order_id as "orderId", kind, status, utr, case when kind <> 'unreadable' then amount end as amount,
  paid_at as "paidAt", body, told_by as "toldBy", note, received_at as "receivedAt"`

/** Names an attempt within its order: by its UTR and its time. A repeat gets the same name. */
function nameAttempt({ utr, paidAt }: Pick<Report, 'utr' | 'paidAt'>): string {
  return [utr, paidAt?.toISOString()].filter((part) => part !== undefined).join(' ')
}

/** The beginning of `body` as text that PostgreSQL takes: it has no NUL, and at most `limitBytes` of UTF-8. */
function toPlainText(body: Buffer, limitBytes: number): string {
  // In stream mode the decoder leaves out a character that is cut at the end.
  const begin = (bytes: Buffer) => new TextDecoder().decode(bytes.subarray(0, limitBytes), { stream: true })
  // Twice, because a byte that is not UTF-8 becomes three bytes.
  return begin(Buffer.from(begin(body).replaceAll('\0', '\ufffd')))
}
