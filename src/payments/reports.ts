import { createHash } from 'node:crypto'
import { type Database, inTransaction, type Queryable } from '../db/pool.ts'
import { LIMITS, type Limits } from '../limits.ts'
import { nextSequence, writeChange, writeDeliveries } from './events.ts'
import {
  type Contradiction,
  type ExceptionKind,
  type FinalStatus,
  judge,
  type Report,
  type ReportedIntent,
} from './outcome.ts'

/** Who told us. */
export type ReportReason = 'notification' | 'enquiry' | 'day file' | 'operator' | 'sandbox'

/**
 * Who reports, and the clock; of an operator also their name and note. `keeps` says which exceptions are kept: all by default.
 */
export type Reporting = {
  reason: ReportReason
  now: () => Date
  toldBy?: string
  note?: string | undefined
  keeps?: (kind: Contradiction) => boolean
}

/**
 * What a report has changed. `changed` is false for a repeat; with `late` the success is also kept as an exception. `exception`
 * says why nothing was changed.
 */
export type Recorded = { changed: boolean; late: boolean } | { exception: Contradiction }

export type Reports = ReturnType<typeof createReports>

/**
 * Who counts. The first two are called once for each, not for its repeats. `onSurplusAttempt` is called for repeats too, since
 * nothing is stored by which they could be known. All are called once it is stored.
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
  { reports: { attemptsOfOrder }, unreadable: { kept, bytes } }: Pick<Limits, 'reports' | 'unreadable'> = LIMITS,
) {
  /** Stores what follows from a report of an intent that is locked. */
  async function store(client: Queryable, intent: LockedIntent, report: Report, source: Source): Promise<Stored> {
    const { mid, amount } = intent
    const payment = () => onPayment(report.status, source.reason, amount)
    const judged = judge(intent, report, source.now)
    switch (judged.verdict) {
      case 'repeat':
        return UNCHANGED
      case 'surplus attempt':
        return { ...UNCHANGED, told: [onSurplusAttempt] }
      case 'failed attempt': {
        if (!(await addAttempt(client, intent, report, source))) return UNCHANGED
        if (!judged.over) await failIntent(client, intent, report, source)
        return { changed: true, late: false, told: [payment] }
      }
      case 'success': {
        const kind = judged.late ? 'late' : 'first'
        const isOurs = await takeUtr(client, intent, report, kind, source)
        if (!isOurs) return refuse(client, 'UTR of another order', mid, report, source)
        await succeed(client, intent, report, source)
        const late = judged.late ? await keep(client, 'late payment', mid, report, source) : []
        return { changed: true, late: judged.late, told: [payment, ...late] }
      }
      case 'exception': {
        const counts = judged.kind === 'double payment' && isKept(judged.kind, source)
        const isOurs = !counts || (await takeUtr(client, intent, report, 'second', source))
        return refuse(client, isOurs ? judged.kind : 'UTR of another order', mid, report, source)
      }
    }
  }

  async function refuse(
    client: Queryable,
    kind: Contradiction,
    mid: string,
    report: Report,
    source: Source,
  ): Promise<Stored> {
    return { exception: kind, told: isKept(kind, source) ? await keep(client, kind, mid, report, source) : [] }
  }

  /** Keeps an exception for the operator. Whom to tell of it: nobody of a repeat, which is the same row. */
  async function keep(client: Queryable, kind: ExceptionKind, mid: string, report: Report, source: Source) {
    return (await keepException(client, kind, mid, report, source)) ? [() => onException(kind)] : []
  }

  return {
    /**
     * Judges a report and stores what follows: a success, a failed attempt, an exception, or nothing. Any number of the same
     * reports at once make one change and get the same answer. The row of its order is locked first, so that each report is
     * judged by what the one before has stored.
     */
    async record(report: Report, reporting: Reporting): Promise<Recorded> {
      const mid = await findMerchant(db, report.orderId)
      const { told, ...recorded } = await inTransaction(db, async (client) => {
        const stored = mid === undefined ? undefined : await lockIntent(client, mid, report)
        // After the lock: a report that has waited for it must not be judged by the time before it.
        const source = { ...reporting, now: reporting.now() }
        if (stored === undefined) return refuse(client, 'unknown order', '', report, source)
        const intent = { ...stored, ...(await findFacts(client, stored, report, attemptsOfOrder)) }
        return store(client, intent, report, source)
      })
      // Not before it is stored: what is rolled back was not.
      for (const tell of told) tell()
      return recorded
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

type Source = Omit<Reporting, 'now'> & { now: Date }

const isKept = (kind: Contradiction, { keeps = () => true }: Source) => keeps(kind)

/** What was stored, and who is to be told of it then. */
type Stored = Recorded & { told: (() => void)[] }

const UNCHANGED = { changed: false, late: false, told: [] }

type LockedIntent = StoredIntent & ReportedIntent

/** An intent as it is stored, and who made its link. */
type StoredIntent = Omit<ReportedIntent, 'utrOfAnother' | 'attemptKnown' | 'attemptsFull'> & { acquirer: string }

/** The merchant of an order, which never changes. */
async function findMerchant(db: Queryable, orderId: string): Promise<string | undefined> {
  const { rows } = await db.query<{ mid: string }>('select mid from payment_intents where order_id = $1', [orderId])
  return rows[0]?.mid
}

/** Undefined where the order is another acquirer's. */
async function lockIntent(
  db: Queryable,
  mid: string,
  { orderId, acquirer: told }: Report,
): Promise<StoredIntent | undefined> {
  const { rows } = await db.query<StoredIntent & { acquirerId: string | null }>(
    `select i.mid, i.order_id as "orderId", i.amount * 100 + i.paise as amount, i.status, upper(i.utr) as utr,
            i.expires_at as "expiresAt", coalesce(a.acquirer, 'direct') as acquirer, a.acquirer_id as "acquirerId"
       from payment_intents i
       left join acquirer_intents a on a.mid = i.mid and a.order_id = i.order_id
      where i.mid = $1 and i.order_id = $2
        for no key update of i`,
    [mid, orderId],
  )
  const [stored] = rows
  if (stored === undefined) return undefined
  const { acquirerId, ...intent } = stored
  if (told && told.name !== intent.acquirer) return undefined
  return told?.id !== undefined && told.id !== acquirerId ? undefined : intent
}

/** What else a report is judged by. An instance of the version before writes UTRs into the intents alone. */
async function findFacts(
  db: Queryable,
  { mid, orderId }: StoredIntent,
  report: Report,
  attemptsOfOrder: number,
): Promise<Pick<ReportedIntent, 'utrOfAnother' | 'attemptKnown' | 'attemptsFull'>> {
  const { status, utr } = report
  if (status === 'SUCCESS') {
    const { rows } = await db.query(
      `select from payments where mid = $1 and utr = $2 and order_id <> $3
        union all
       select from payment_intents where mid = $1 and utr = $2 and order_id <> $3`,
      [mid, utr, orderId],
    )
    return { utrOfAnother: rows.length > 0, attemptKnown: false, attemptsFull: false }
  }
  // The first version kept the first attempt of each status in payment_changes.
  const { rows } = await db.query<{ known: boolean; stored: number }>(
    `select coalesce(bool_or(status = $3 and attempt = $4), false)
              or exists (select from payment_changes
                          where mid = $1 and order_id = $2 and status = $3 and upper(utr) is not distinct from $5) as known,
            count(*)::integer as stored
       from payment_attempts
      where mid = $1 and order_id = $2`,
    [mid, orderId, status, nameAttempt(report), utr],
  )
  const { known = false, stored = 0 } = rows[0] ?? {}
  return { utrOfAnother: false, attemptKnown: known, attemptsFull: stored >= attemptsOfOrder }
}

/** Whether the UTR is this order's: of another one that has it, or gets it at the same time, the key lets this row not in. */
async function takeUtr(
  db: Queryable,
  { mid, orderId, amount, acquirer }: StoredIntent,
  { utr, paidAt }: Report,
  kind: 'first' | 'late' | 'second',
  { now }: Source,
): Promise<boolean> {
  const { rowCount } = await db.query(
    `insert into payments (mid, utr, order_id, amount_paise, paid_at, heard_at, kind, acquirer)
     values ($1, $2, $3, $4, $5, $6, $7, $8)
     on conflict do nothing`,
    [mid, utr, orderId, amount, paidAt, now, kind, acquirer],
  )
  if (rowCount === 1) return true
  const { rowCount: own } = await db.query('select from payments where mid = $1 and utr = $2 and order_id = $3', [
    mid,
    utr,
    orderId,
  ])
  return own === 1
}

/** Marks an intent as paid, writes that down and tells the merchant. */
async function succeed(db: Queryable, intent: StoredIntent, { utr, paidAt }: Report, source: Source): Promise<void> {
  const { mid, orderId } = intent
  const sequence = await setStatus(db, intent, 'SUCCESS', utr)
  await writeChange(db, { mid, orderId, utr, paidAt }, { status: 'SUCCESS', ...source })
  const event = { orderId, sequence, txnStatus: 'SUCCESS', utr, occurredAt: source.now }
  await writeDeliveries(db, 'payment.succeeded', mid, [event])
}

/** Returns the number of the change. Only a paid intent has a UTR. */
async function setStatus(
  db: Queryable,
  { mid, orderId }: StoredIntent,
  status: FinalStatus,
  utr?: string,
): Promise<number> {
  const { rows } = await db.query<{ sequence: number }>(
    `update payment_intents
        set status = $3, utr = $4, event_sequence = ${nextSequence()}
      where mid = $1 and order_id = $2
     returning event_sequence as sequence`,
    [mid, orderId, status, utr],
  )
  return (rows[0] as { sequence: number }).sequence
}

/** Whether the attempt is new. */
async function addAttempt(
  db: Queryable,
  { mid, orderId }: StoredIntent,
  report: Report,
  { reason, now }: Source,
): Promise<boolean> {
  const { rowCount } = await db.query(
    `insert into payment_attempts (mid, order_id, status, attempt, utr, paid_at, reason, reported_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8)
     on conflict do nothing`,
    [mid, orderId, report.status, nameAttempt(report), report.utr, report.paidAt, reason, now],
  )
  return rowCount === 1
}

/** Gives an intent the status of a new attempt, and tells the merchant. */
async function failIntent(
  db: Queryable,
  intent: StoredIntent,
  { status, utr }: Report,
  { now }: Source,
): Promise<void> {
  const { mid, orderId } = intent
  const sequence = await setStatus(db, intent, status)
  const event = { orderId, sequence, txnStatus: 'PENDING', utr, occurredAt: now }
  await writeDeliveries(db, 'payment.attempt_failed', mid, [event])
}

/** Keeps an exception for the operator. Returns whether it is new: a repeat of the same facts is the same row. */
async function keepException(
  db: Queryable,
  kind: ExceptionKind,
  mid: string,
  { orderId, utr, amount, status, paidAt }: Report,
  { toldBy, note, now }: Source,
): Promise<boolean> {
  const { rowCount } = await db.query(
    `insert into payment_exceptions (mid, order_id, kind, utr, amount, status, paid_at, told_by, note, received_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
     on conflict do nothing`,
    [mid, orderId, kind, utr ?? '', amount, status, paidAt, toldBy, note, now],
  )
  return rowCount === 1
}

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
