import { createHash } from 'node:crypto'
import { fewInTime } from '../db/few-at-once.ts'
import { nodesOf } from '../db/nodes.ts'
import { type Database, inTransaction, type Queryable } from '../db/pool.ts'
import { unavailable } from '../errors.ts'
import { LIMITS, type Limits } from '../limits.ts'
import { type EventType, nextSequence, writeChanges, writeDeliveries } from './events.ts'
import { createOrderMerchants } from './order-merchants.ts'
import type { Contradiction, ExceptionKind, FinalStatus, Report, ReportedIntent } from './outcome.ts'

/** Who told us. */
export type ReportReason = 'notification' | 'enquiry' | 'day file' | 'operator' | 'sandbox'

/** Who told us, and when; of an operator also their name and note. */
export type Source = { reason: ReportReason; now: Date; toldBy?: string; note?: string | undefined }

/** Reports and what they were judged by. Those that are stored together are about different orders. */
type Success = { intent: ReportedIntent; report: Report; late: boolean }
type Attempt = { intent: ReportedIntent; report: Report; over: boolean }
type Contradicting = { intent: ReportedIntent | undefined; report: Report; kind: Contradiction }
type Kept = { intent: ReportedIntent | undefined; report: Report; kind: ExceptionKind }

/** An intent that was changed; `sequence` counts the changes that its merchant could be told of. */
type Changed = { orderId: string; sequence: number }

/** With the merchant of its order; undefined when there is no such order. */
export type LocatedReport = { report: Report; mid: string | undefined }

/** An intent and who made its link; `acquirerId` is the acquirer's own identifier of it. */
type StoredIntent = Omit<ReportedIntent, 'utrOfAnother' | 'attemptKnown' | 'attemptsFull'> & {
  acquirer: string
  acquirerId: string | null
}

/** What was told before. `UTR`: `name` has paid the order, or paid it twice. The others: a failed attempt, by its name or its UTR. */
type Fact = {
  fact: 'UTR' | 'attempt' | 'change'
  mid: string
  orderId: string
  status: string | null
  name: string | null
}

export type Reports = ReturnType<typeof createReports>

/**
 * Who counts. The first two are called once for each, not for its repeats; `onPayment` once it is stored. `onSurplusAttempt` is
 * called for repeats too, since nothing is stored by which they could be known.
 */
type Listeners = {
  onException: (kind: ExceptionKind) => void
  onPayment: (status: FinalStatus, reason: ReportReason, paise: number) => void
  onSurplusAttempt: () => void
}

const NOBODY: Listeners = {
  onException: () => undefined,
  onPayment: () => undefined,
  onSurplusAttempt: () => undefined,
}

/** Stores what the bank and the operator report: it changes intents, and what contradicts them is kept as an exception. */
export function createReports(
  db: Database,
  { onException, onPayment, onSurplusAttempt } = NOBODY,
  limits: Pick<Limits, 'reports' | 'unreadable'> = LIMITS,
) {
  const orderMerchants = createOrderMerchants(db, fewInTime(limits.reports, unavailable))
  const nodes = nodesOf(db)
  const places = fewInTime(limits.reports, unavailable)

  /** Runs `work` for `mid` when few others run. 503 when too many wait, or this one did for too long. */
  const inTurn = <T>(mid: string | undefined, work: () => Promise<T>) => nodes.askInPlace(places, mid, work)

  /** Of these merchants alone, where they are given. */
  async function lookUpMerchants(orderIds: readonly string[], mids: readonly string[] | undefined) {
    const { rows } = await db.query<{ orderId: string; mid: string }>(
      `select order_id as "orderId", mid
         from payment_intents
        where order_id = any ($1)${mids ? ' and mid = any ($2)' : ''}`,
      [orderIds, ...(mids ? [mids] : [])],
    )
    return new Map(rows.map(({ orderId, mid }) => [orderId, mid]))
  }

  return {
    keepUnreadable: reportsIn(db, false, onException, limits).keepUnreadable,
    onPayment,
    onSurplusAttempt,

    inTurn,

    /** The only merchant whose the order can be; undefined when it can be anyone's, and empty when it is nobody's. */
    async onlyMerchant(orderId: string): Promise<string | undefined> {
      const candidates = await orderMerchants.candidates([orderId])
      if (candidates === undefined) return undefined
      if (candidates.length < 2) return candidates[0] ?? ''
      const found = await orderMerchants.find(orderId, (mid) =>
        inTurn(mid, async () => (await lookUpMerchants([orderId], mid === undefined ? mid : [mid])).get(orderId)),
      )
      return found ?? ''
    },

    /**
     * The merchants of the orders, by orderId; unknown orders are left out. Neither ever changes. Only `mid` is looked at if it is
     * given.
     */
    findMerchants: async (orderIds: readonly string[], mid?: string): Promise<Map<string, string>> =>
      lookUpMerchants(orderIds, mid === undefined ? await orderMerchants.candidates(orderIds) : [mid]),

    /** Whether reports that share a transaction must be of one merchant, whose rows are on one of several servers. */
    areOfOneMerchant: nodes.isSpread,

    /**
     * Runs `work` in a transaction, while no other that was given one of these UTRs of the same merchants runs; without a UTR
     * there is nobody to wait for. The UTR of a paid order is in one table and that of a double payment in another, so no
     * constraint can keep one payment from being counted for two orders. Each UTR takes an entry in PostgreSQL's table of
     * locks, which by default has 6,400 for all connections.
     */
    async alone<T>(located: readonly LocatedReport[], work: (reports: ReportsIn) => Promise<T>): Promise<T> {
      const utrs = utrsOf(located)
      const isSpread = await nodes.isSpread()
      return inTransaction(db, async (client) => {
        if (utrs.length === 0) return work(reportsIn(client, isSpread, onException, limits))
        if (isSpread) await lockOnShard(client, located)
        else await client.query(`select pg_advisory_xact_lock(key) from ${LOCKS} keys`, [utrs])
        return work(reportsIn(client, isSpread, onException, limits))
      })
    },
  }
}

const utrsOf = (located: readonly LocatedReport[]) => located.flatMap(({ report }) => report.utr ?? [])

/** In the order of the keys: two that share UTRs would otherwise wait for each other for ever. */
const LOCKS = '(select distinct hashtextextended(utr, 0) as key from unnest($1::text[]) as utr order by key)'

/**
 * On the node that has the merchant's shard, because two instances may be connected to two nodes, which know nothing of each
 * other's locks. Citus sends the whole statement there for the one row of the order. An unknown order has none, and needs none:
 * it is only written down. `located` are of one merchant.
 */
async function lockOnShard(client: Queryable, located: readonly LocatedReport[]): Promise<void> {
  const [first] = located
  if (first?.mid === undefined) return
  await client.query(
    `select pg_advisory_xact_lock(key)::text
       from ${LOCKS} keys
       join payment_intents i on i.mid = $2 and i.order_id = $3`,
    [utrsOf(located), first.mid, first.report.orderId],
  )
}

type ReportsIn = ReturnType<typeof reportsIn>

/** Where the database is spread, the reports that share a statement are of one merchant, by whom Citus finds the shard. */
function reportsIn(
  db: Queryable,
  isSpread: boolean,
  onException: (kind: ExceptionKind) => void,
  { reports: { attemptsOfOrder }, unreadable: { kept, bytes } }: Pick<Limits, 'reports' | 'unreadable'>,
) {
  /**
   * Joins, to a list of values, the rows of `table` that meet `condition`. A subquery that PostgreSQL cannot take apart makes each
   * value one look-up in the index, whatever it expects of the table; Citus takes none, and finds a shard by the mid alone.
   */
  const lookUp = (table: string, alias: string, condition: string) =>
    isSpread
      ? `join ${table} ${alias} on ${condition} and ${alias}.mid = ($1::text[])[1]`
      : `cross join lateral (select * from ${table} ${alias} where ${condition} offset 0) ${alias}`

  const ofShard = isSpread ? ' and i.mid = ($1::text[])[1]' : ''

  async function keep(exceptions: readonly Kept[], source: Source): Promise<void> {
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
  }

  /** Tells the merchants of intents that were changed. */
  async function tell(
    type: EventType,
    txnStatus: string,
    reported: readonly (Success | Attempt)[],
    changed: readonly Changed[],
    { now }: Source,
  ): Promise<void> {
    const sequences = new Map(changed.map(({ orderId, sequence }) => [orderId, sequence]))
    const events = reported.map(({ intent: { mid, orderId }, report: { utr } }) => {
      return { mid, orderId, sequence: sequences.get(orderId) as number, txnStatus, utr, occurredAt: now }
    })
    await writeDeliveries(db, type, events)
  }

  /** Gives intents the status of a new attempt. */
  async function failIntents(attempts: readonly Attempt[], source: Source): Promise<void> {
    if (attempts.length === 0) return
    const { rows } = await db.query<Changed>(
      `update payment_intents i
          set status = a.status, event_sequence = ${nextSequence('i.')}
         from unnest($1::text[], $2::text[], $3::text[]) as a (mid, order_id, status)
        where i.mid = a.mid and i.order_id = a.order_id${ofShard}
       returning i.order_id as "orderId", i.event_sequence as sequence`,
      [
        attempts.map(({ intent }) => intent.mid),
        attempts.map(({ intent }) => intent.orderId),
        attempts.map(({ report }) => report.status),
      ],
    )
    await tell('payment.attempt_failed', 'PENDING', attempts, rows, source)
  }

  return {
    /**
     * What each report is judged by, in the order of the reports; undefined where there is no intent of its orderId, or it is
     * another acquirer's.
     */
    async findReported(reports: readonly LocatedReport[]): Promise<(ReportedIntent | undefined)[]> {
      const known = reports.filter(({ mid }) => mid !== undefined)
      if (known.length === 0) return reports.map(() => undefined)
      const mids = known.map(({ mid }) => mid)
      const orderIds = known.map(({ report }) => report.orderId)
      const { rows: intents } = await db.query<StoredIntent>(
        `select p.mid, p.order_id as "orderId", p.amount * 100 + p.paise as amount, p.status, upper(p.utr) as utr,
                p.expires_at as "expiresAt", coalesce(q.acquirer, 'direct') as acquirer, q.acquirer_id as "acquirerId"
           from unnest($1::text[], $2::text[]) as r (mid, order_id)
           ${lookUp('payment_intents', 'p', 'p.mid = r.mid and p.order_id = r.order_id')}
           left join acquirer_intents q on q.mid = p.mid and q.order_id = p.order_id`,
        [mids, orderIds],
      )
      // An instance of an earlier version writes UTRs as they were sent, and failed attempts into payment_changes.
      const { rows: facts } = await db.query<Fact>(
        `select 'UTR' as fact, o.mid, o.order_id as "orderId", null as status, o.utr as name
           from unnest($1::text[], $3::text[]) as r (mid, utr)
           ${lookUp('payment_intents', 'o', 'o.mid = r.mid and o.utr = r.utr')}
          union all
         -- The second payment of another order is to be refunded: it must not pay this one as well. No index leads from a UTR
         -- to its exceptions, so those of a merchant are read once, however many reports there are.
         select 'UTR', e.mid, e.order_id, null, e.utr
           from payment_exceptions e
          where e.mid = any ($4) and e.kind = 'double payment' and e.utr = any ($3)
          union all
         select 'attempt', a.mid, a.order_id, a.status, a.attempt
           from unnest($1::text[], $2::text[]) as r (mid, order_id)
           ${lookUp('payment_attempts', 'a', 'a.mid = r.mid and a.order_id = r.order_id')}
          union all
         select 'change', c.mid, c.order_id, c.status, upper(c.utr)
           from unnest($1::text[], $2::text[]) as r (mid, order_id)
           ${lookUp('payment_changes', 'c', 'c.mid = r.mid and c.order_id = r.order_id')}`,
        [mids, orderIds, known.map(({ report }) => report.utr), [...new Set(mids)]],
      )
      const told = new Set(facts.map(({ fact, orderId, status, name }) => keyOf(fact, orderId, status, name)))
      const paidBy = new Map<string, Set<string>>()
      const attempts = new Map<string, number>()
      for (const { fact, mid, orderId, name } of facts) {
        if (fact === 'attempt') attempts.set(orderId, (attempts.get(orderId) ?? 0) + 1)
        if (fact === 'UTR') paidBy.set(keyOf(mid, name), (paidBy.get(keyOf(mid, name)) ?? new Set()).add(orderId))
      }
      const found = new Map(intents.map((intent) => [intent.orderId, intent]))
      return reports.map(({ report }) => {
        const { orderId, status, utr } = report
        const stored = found.get(orderId)
        if (stored === undefined) return undefined
        const { acquirer, acquirerId, ...intent } = stored
        if (report.acquirer && report.acquirer.name !== acquirer) return undefined
        if (report.acquirer?.id !== undefined && report.acquirer.id !== acquirerId) return undefined
        const orders = utr === undefined ? undefined : paidBy.get(keyOf(intent.mid, utr))
        return {
          ...intent,
          utrOfAnother: orders !== undefined && [...orders].some((other) => other !== orderId),
          attemptKnown:
            status !== 'SUCCESS' &&
            (told.has(keyOf('attempt', orderId, status, nameAttempt(report))) ||
              told.has(keyOf('change', orderId, status, utr))),
          attemptsFull: (attempts.get(orderId) ?? 0) >= attemptsOfOrder,
        }
      })
    },

    /**
     * Marks intents as paid and writes that down, with the exceptions of late payments. In a transaction. Returns the
     * orderIds of those that it marked. The others were paid or cancelled meanwhile: look again and judge anew. A
     * UNIQUE_VIOLATION, which stores nothing, says that another order took a UTR.
     */
    async succeed(successes: readonly Success[], source: Source): Promise<Set<string>> {
      if (successes.length === 0) return new Set()
      const sorted = successes.toSorted(byOrder)
      const { rows } = await db.query<Changed>(
        `update payment_intents i
            set status = 'SUCCESS', utr = s.utr, event_sequence = ${nextSequence('i.')}
           from unnest($1::text[], $2::text[], $3::text[], $4::boolean[]) as s (mid, order_id, utr, late)
          where i.mid = s.mid and i.order_id = s.order_id${ofShard}
            and i.status <> 'SUCCESS' and (i.status <> 'CANCELLED' or s.late)
         returning i.order_id as "orderId", i.event_sequence as sequence`,
        [
          sorted.map(({ intent }) => intent.mid),
          sorted.map(({ intent }) => intent.orderId),
          sorted.map(({ report }) => report.utr),
          sorted.map(({ late }) => late),
        ],
      )
      const changed = new Set(rows.map(({ orderId }) => orderId))
      const paid = sorted.filter(({ intent }) => changed.has(intent.orderId))
      if (paid.length === 0) return new Set()
      await writeChanges(
        db,
        paid.map(({ intent: { mid, orderId }, report: { utr, paidAt } }) => ({ mid, orderId, utr, paidAt })),
        { status: 'SUCCESS', ...source },
      )
      await keep(
        paid.filter(({ late }) => late).map((one) => ({ ...one, kind: 'late payment' as const })),
        source,
      )
      await tell('payment.succeeded', 'SUCCESS', paid, rows, source)
      return changed
    },

    /**
     * Stores failed attempts, and makes each its intent's status unless the intent is `over`. In a transaction. The intents
     * are locked first, so that a success at the same time comes entirely before or entirely after it. Returns by orderId
     * whether the attempt is new; an intent that ended meanwhile is not among them.
     */
    async addAttempts(attempts: readonly Attempt[], source: Source): Promise<Map<string, boolean>> {
      if (attempts.length === 0) return new Map()
      const locked = await db.query<{ orderId: string; status: string }>(
        `select order_id as "orderId", status
           from payment_intents
          where mid = any ($1) and order_id = any ($2) and status <> 'SUCCESS'
          order by mid, order_id
            for no key update`,
        [attempts.map(({ intent }) => intent.mid), attempts.map(({ intent }) => intent.orderId)],
      )
      const statuses = new Map(locked.rows.map(({ orderId, status }) => [orderId, status]))
      const open = attempts.filter(({ intent, over }) => {
        const status = statuses.get(intent.orderId)
        return status !== undefined && (status !== 'CANCELLED' || over)
      })
      if (open.length === 0) return new Map()
      const added = await db.query<{ orderId: string }>(
        `insert into payment_attempts (mid, order_id, status, attempt, utr, paid_at, reason, reported_at)
         select *, $7, $8::timestamptz
           from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::timestamptz[])
         on conflict do nothing
         returning order_id as "orderId"`,
        [
          open.map(({ intent }) => intent.mid),
          open.map(({ intent }) => intent.orderId),
          open.map(({ report }) => report.status),
          open.map(({ report }) => nameAttempt(report)),
          open.map(({ report }) => report.utr),
          open.map(({ report }) => report.paidAt),
          source.reason,
          source.now,
        ],
      )
      const isNew = new Set(added.rows.map(({ orderId }) => orderId))
      await failIntents(
        open.filter(({ intent, over }) => isNew.has(intent.orderId) && !over),
        source,
      )
      return new Map(open.map(({ intent }) => [intent.orderId, isNew.has(intent.orderId)]))
    },

    /** Keeps exceptions for the operator. A repeat of the same facts is the same row. */
    keepExceptions: (exceptions: readonly Contradicting[], source: Source): Promise<void> => keep(exceptions, source),

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

const keyOf = (...parts: (string | null | undefined)[]) => parts.map((part) => part ?? '').join(' ')

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
