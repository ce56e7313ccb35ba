import { createHash } from 'node:crypto'
import { fewAtOnce, limitUnderWay } from '../db/few-at-once.ts'
import { type Database, inTransaction, type Queryable } from '../db/pool.ts'
import { unavailable } from '../errors.ts'
import { LIMITS, type Limits } from '../limits.ts'
import { deliveriesOf } from './events.ts'
import type { Contradiction, ExceptionKind, FinalStatus, Report, ReportedIntent } from './outcome.ts'

/** Who told us. */
export type ReportReason = 'notification' | 'enquiry' | 'day file' | 'operator' | 'sandbox'

/** Who told us, and when; of an operator also their name and note. */
export type Source = { reason: ReportReason; now: Date; toldBy?: string; note?: string | undefined }

/** Reports and what they were judged by. Those that are stored together are about different orders. */
type Success = { intent: ReportedIntent; report: Report; late: boolean }
type Attempt = { intent: ReportedIntent; report: Report; over: boolean }
type Contradicting = { intent: ReportedIntent | undefined; report: Report; kind: Contradiction }

export type Reports = ReturnType<typeof createReports>

/** Who counts. Both are called once for each, not for its repeats; `onPayment` once it is stored. */
type Listeners = {
  onException: (kind: ExceptionKind) => void
  onPayment: (status: FinalStatus, reason: ReportReason, paise: number) => void
}

const NOBODY: Listeners = { onException: () => undefined, onPayment: () => undefined }

/** Stores what the bank and the operator report: it changes intents, and what contradicts them is kept as an exception. */
export function createReports(
  db: Database,
  { onException, onPayment } = NOBODY,
  { reports: { atOnce, waiting, waitingMs }, unreadable }: Pick<Limits, 'reports' | 'unreadable'> = LIMITS,
) {
  const inTurn = fewAtOnce(atOnce)
  const limited = limitUnderWay(waiting, unavailable)

  return {
    ...reportsIn(db, onException, unreadable),
    onPayment,

    /** Runs `work` when few others run, in the order of the calls. 503 when too many wait, or this one did for too long. */
    inTurn<T>(work: () => Promise<T>): Promise<T> {
      const latest = performance.now() + waitingMs
      const workInTime = () => {
        if (performance.now() > latest) throw unavailable()
        return work()
      }
      return limited(() => inTurn(workInTime))
    },

    /**
     * Runs `work` in a transaction, while no other that was given one of these UTRs runs; without a UTR there is nobody to
     * wait for. The UTR of a paid order is in one table and that of a double payment in another, so no constraint can keep
     * one payment from being counted for two orders. Each UTR takes an entry in PostgreSQL's table of locks, which by default
     * has 6,400 for all connections.
     */
    async alone<T>(utrs: readonly string[], work: (reports: ReportsIn) => Promise<T>): Promise<T> {
      if (utrs.length === 0) return work(reportsIn(db, onException, unreadable))
      return inTransaction(db, async (client) => {
        // In the order of the keys: two that share UTRs would otherwise wait for each other for ever.
        await client.query(
          `select pg_advisory_xact_lock(key)
             from (select distinct hashtextextended(utr, 0) as key from unnest($1::text[]) as utr order by key) keys`,
          [utrs],
        )
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
    /**
     * What each report is judged by, in the order of the reports; undefined where there is no intent of its orderId, or it is
     * another acquirer's.
     */
    async findReported(reports: readonly Report[]): Promise<(ReportedIntent | undefined)[]> {
      // An instance of an earlier version writes UTRs as they were sent, and failed attempts into payment_changes.
      const { rows } = await db.query<ReportedIntent & { place: number }>(
        `with reported as (
           select r.place, r.status as told, r.utr as told_utr, r.attempt, i.*
             from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[])
                  with ordinality as r (order_id, status, utr, attempt, acquirer, acquirer_id, place)
                  -- Limited to one, which it is anyway, so that each report is one look-up in the indexes.
            cross join lateral (
              select p.mid, p.order_id, p.amount * 100 + p.paise as amount, p.status, p.utr, p.expires_at
                from payment_intents p
                left join acquirer_intents q on q.mid = p.mid and q.order_id = p.order_id
               where p.order_id = r.order_id
                 and (r.acquirer is null or coalesce(q.acquirer, 'direct') = r.acquirer)
                 and (r.acquirer_id is null or q.acquirer_id = r.acquirer_id)
               limit 1) i
         ), double as materialized (
           -- Once for each merchant and not for each report, whatever the planner expects: no index leads from a UTR to its
           -- exceptions, and 1,000 reports of 100 merchants took 19 s.
           select m.mid, e.*
             from (select distinct mid from reported) m,
                  lateral (select utr, min(order_id) as first_order_id, max(order_id) as last_order_id
                             from payment_exceptions
                            where mid = m.mid and kind = 'double payment' and utr = any ($3)
                            group by utr) e
         )
         select r.place::integer, r.mid, r.order_id as "orderId", r.amount, r.status, upper(r.utr) as utr,
                r.expires_at as "expiresAt",
                exists (select from payment_intents o
                         where o.mid = r.mid and o.utr = r.told_utr and o.order_id <> r.order_id)
                  -- The second payment of another order is to be refunded: it must not pay this one as well.
                  or coalesce(r.order_id <> d.first_order_id or r.order_id <> d.last_order_id, false) as "utrOfAnother",
                -- One union, because PostgreSQL may read the whole table of attempts for an exists of its own.
                r.told <> 'SUCCESS' and exists (
                  select from payment_attempts a
                   where a.mid = r.mid and a.order_id = r.order_id and a.status = r.told and a.attempt = r.attempt
                  union all
                  select from payment_changes c
                   where c.mid = r.mid and c.order_id = r.order_id and c.status = r.told
                     and upper(c.utr) is not distinct from r.told_utr) as "attemptKnown"
           from reported r
           left join double d on d.mid = r.mid and d.utr = r.told_utr`,
        [
          reports.map(({ orderId }) => orderId),
          reports.map(({ status }) => status),
          reports.map(({ utr }) => utr),
          reports.map(nameAttempt),
          reports.map(({ acquirer }) => acquirer?.name),
          reports.map(({ acquirer }) => acquirer?.id),
        ],
      )
      const found = new Map(rows.map(({ place, ...intent }) => [place, intent]))
      return reports.map((_, index) => found.get(index + 1))
    },

    /**
     * Marks intents as paid and writes that down, with the exceptions of late payments, in one statement. Returns the
     * orderIds of those that it marked. The others were paid or cancelled meanwhile: look again and judge anew. A
     * UNIQUE_VIOLATION, which stores nothing, says that another order took a UTR.
     */
    async succeed(successes: readonly Success[], source: Source): Promise<Set<string>> {
      if (successes.length === 0) return new Set()
      const sorted = successes.toSorted(byOrder)
      const { rows } = await db.query<{ orderId: string; late: boolean }>(
        `with success as (
           select *
             from unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[], $5::numeric[], $6::boolean[])
                  as s (mid, order_id, utr, paid_at, amount, late)
         ), paid as (
           update payment_intents i
              set status = 'SUCCESS', utr = s.utr, event_sequence = i.event_sequence + 1
             from success s
            where i.mid = s.mid and i.order_id = s.order_id
              and i.status <> 'SUCCESS' and (i.status <> 'CANCELLED' or s.late)
           returning s.*, i.event_sequence, 'SUCCESS' as txn_status, $10::timestamptz as occurred_at
         ), told as (${deliveriesOf('paid', 'payment.succeeded')}
         ), change as (
           insert into payment_changes (mid, order_id, status, utr, paid_at, reason, told_by, note, changed_at)
           select mid, order_id, 'SUCCESS', utr, paid_at, $7, $8, $9, $10 from paid
         ), exception as (
           insert into payment_exceptions
             (mid, order_id, kind, utr, amount, status, paid_at, told_by, note, received_at)
           select mid, order_id, 'late payment', utr, amount, 'SUCCESS', paid_at, $8, $9, $10 from paid where late
         )
         select order_id as "orderId", late from paid`,
        [
          sorted.map(({ intent }) => intent.mid),
          sorted.map(({ intent }) => intent.orderId),
          sorted.map(({ report }) => report.utr),
          sorted.map(({ report }) => report.paidAt),
          sorted.map(({ report }) => report.amount),
          sorted.map(({ late }) => late),
          source.reason,
          source.toldBy,
          source.note,
          source.now,
        ],
      )
      for (const { late } of rows) if (late) onException('late payment')
      return new Set(rows.map(({ orderId }) => orderId))
    },

    /**
     * Stores failed attempts, and makes each its intent's status unless the intent is `over`, in one statement. The intents
     * are locked first, so that a success at the same time comes entirely before or entirely after it. Returns by orderId
     * whether the attempt is new; an intent that ended meanwhile is not among them.
     */
    async addAttempts(attempts: readonly Attempt[], source: Source): Promise<Map<string, boolean>> {
      if (attempts.length === 0) return new Map()
      const { rows } = await db.query<{ orderId: string; isNew: boolean }>(
        `with attempt as (
           select *
             from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::timestamptz[], $7::boolean[])
                  as a (mid, order_id, status, attempt, utr, paid_at, over)
         ), intent as (
           select a.*
             from payment_intents i
             join attempt a on i.mid = a.mid and i.order_id = a.order_id
            where i.status <> 'SUCCESS' and (i.status <> 'CANCELLED' or a.over)
            order by i.mid, i.order_id
              for no key update of i
         ), added as (
           insert into payment_attempts (mid, order_id, status, attempt, utr, paid_at, reason, reported_at)
           select mid, order_id, status, attempt, utr, paid_at, $8, $9 from intent
           on conflict do nothing
           returning mid, order_id
         ), changed as (
           update payment_intents i
              set status = a.status, event_sequence = i.event_sequence + 1
             from added n
             join attempt a on a.mid = n.mid and a.order_id = n.order_id
            where i.mid = n.mid and i.order_id = n.order_id and not a.over
           returning a.mid, a.order_id, a.utr, i.event_sequence, 'PENDING' as txn_status, $9::timestamptz as occurred_at
         ), told as (${deliveriesOf('changed', 'payment.attempt_failed')}
         )
         select order_id as "orderId", exists (select from added n where n.order_id = i.order_id) as "isNew"
           from intent i`,
        [
          attempts.map(({ intent }) => intent.mid),
          attempts.map(({ intent }) => intent.orderId),
          attempts.map(({ report }) => report.status),
          attempts.map(({ report }) => nameAttempt(report)),
          attempts.map(({ report }) => report.utr),
          attempts.map(({ report }) => report.paidAt),
          attempts.map(({ over }) => over),
          source.reason,
          source.now,
        ],
      )
      return new Map(rows.map(({ orderId, isNew }) => [orderId, isNew]))
    },

    /** Keeps exceptions for the operator. A repeat of the same facts is the same row. */
    async keepExceptions(exceptions: readonly Contradicting[], source: Source): Promise<void> {
      if (exceptions.length === 0) return
      const { rows } = await db.query<{ kind: ExceptionKind }>(
        `insert into payment_exceptions
           (mid, order_id, kind, utr, amount, status, paid_at, told_by, note, received_at)
         select *, $8, $9, $10::timestamptz
           from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::numeric[], $6::text[], $7::timestamptz[])
         on conflict do nothing
         returning kind`,
        [
          exceptions.map(({ intent }) => intent?.mid ?? ''),
          exceptions.map(({ report }) => report.orderId),
          exceptions.map(({ kind }) => kind),
          exceptions.map(({ report }) => report.utr ?? ''),
          exceptions.map(({ report }) => report.amount),
          exceptions.map(({ report }) => report.status),
          exceptions.map(({ report }) => report.paidAt),
          source.toldBy,
          source.note,
          source.now,
        ],
      )
      for (const { kind } of rows) onException(kind)
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
  }
}

/** Two that change the same intents meet on them in the same order. */
function byOrder({ intent: a }: Success, { intent: b }: Success): number {
  return compare(a.mid, b.mid) || compare(a.orderId, b.orderId)
}

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)

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
