import { createHash } from 'node:crypto'
import { LIMITS, type Limits } from '../../limits.ts'
import { inTransaction, type Queryable, type Transactional } from '../../platform/db/pool.ts'
import { query } from '../../platform/db/query.ts'
import { utrOfId } from '../../platform/fields.ts'
import { createBoundedExceptions, type SavedException, saveException } from './exceptions.ts'
import type { FailureReason } from './failure-reasons.ts'
import { createFirstSuccesses } from './first-successes.ts'
import { type Instrument, knownInstrument } from './instrument.ts'
import { insertDeliveries } from './outbox.ts'
import {
  type Contradiction,
  type ExceptionKind,
  type FinalStatus,
  isReferenceOf,
  judge,
  type PaymentNames,
  type PaymentReport,
  possibleTime,
  type ReportSource,
  type StoredPayment,
} from './outcome.ts'
import { isReportedBy, markPaid, PAYMENT_COLUMNS, STORED_INTENT, type StoredIntent } from './reported-orders.ts'
import { writtenExpiries } from './reported-status.ts'
import { findReportedPayment, type PaymentKey, resolveByPayment, saveResolvedException } from './unknown-orders.ts'
import { endUnreadable, hasUnreadable, saveUnreadable } from './unreadable.ts'

/** Runs first in the transaction that stores a report, before it locks anything else. */
export type Barrier = (client: Queryable) => Promise<unknown>

/**
 * The source of a report, and the clock. `person` is the operator whose command records the report: the payment then
 * resolves exceptions `unknown order` in the operator's name. For other reports, a job resolves these exceptions. Reports
 * with the source `operator` also have `note`. `saves` selects the exceptions that are stored; by default all exceptions
 * are stored.
 */
export type Reporting = {
  source: ReportSource
  now: () => Date
  barrier?: Barrier | undefined
  person?: string | undefined
  note?: string | undefined
  saves?: (kind: Contradiction) => boolean
}

/**
 * The change that a report has made. A repeat or an `exception` makes no change. A `late` success is also stored as an
 * exception.
 */
export type Recorded = { changed: boolean; late: boolean } | { exception: Contradiction }

export type Reports = ReturnType<typeof createReports>

/**
 * Callbacks for metrics, called after the report is stored. Repeats do not call `onException`, `onPayment` and
 * `onFailure`. Repeats of a surplus attempt do call `onSurplusAttempt`, because surplus attempts are not stored and
 * cannot be recognized; for the same reason, repeats call `onException` while the acquirer account has reached its
 * limit of open exceptions. `onImpossibleTime` is called if a payment's time is ignored, and `onUnknownInstrument` if the
 * instrument of a new payment is reported in an unknown word.
 */
type Listeners = {
  onException: (kind: ExceptionKind, acquirerAccount: string) => void
  onPayment: (status: FinalStatus, source: ReportSource, paise: number) => void
  onFailure: (reason: FailureReason, acquirer: string) => void
  onSurplusAttempt: () => void
  onImpossibleTime: () => void
  onUnknownInstrument: (acquirer: string) => void
}

/** Largest number of bytes that are stored from an unreadable notification. Readable notifications are shorter. */
const UNREADABLE_BYTES = 2_048

/**
 * Creates the recorder of reports. A report changes its intent, or becomes an exception if it contradicts the
 * intent.
 */
export function createReports(
  db: Transactional,
  listeners: Partial<Listeners> = {},
  limits: Limits['reports'] = LIMITS.reports,
) {
  const saveBounded = createBoundedExceptions(limits)
  const storeFirst = createFirstSuccesses(db)

  /** Decides how a report changes the locked intent `stored` (undefined if the order is unknown), and stores the result. */
  async function store(
    db: Queryable,
    stored: StoredIntent | undefined,
    report: PaymentReport,
    received: Received,
  ): Promise<Stored> {
    const { source, now, attempt, person, note, saves, operator, reportedPayment } = received
    const acquirerAccount = accountOf(report, source)
    const amount = report.amount ?? stored?.amount ?? 0
    const exception = { ...report, amount, mid: stored?.mid ?? '', person, note, acquirerAccount }
    const save = async (kind: ExceptionKind, utr = report.utr) =>
      (await saveException(db, kind, { ...exception, utr }, now)) ? [kind] : []
    const reject = async (kind: Contradiction, utr?: string) => {
      if (saves?.(kind) === false) return { exception: kind }
      if (acquirerAccount === undefined) return { exception: kind, saved: await save(kind, utr) }
      const saved = await saveBounded(db, kind, { ...exception, utr: utr ?? report.utr, acquirerAccount }, now)
      return { exception: kind, saved: toCount(kind, saved) }
    }
    if (stored === undefined) {
      if (reportedPayment === undefined || saves?.('unknown order') === false) return reject('unknown order')
      const resolution = { by: operator ?? source, now, most: limits.unknownOrdersOfUtr }
      const saved = await saveResolvedException(db, exception, reportedPayment, resolution)
      return { exception: 'unknown order', saved: toCount('unknown order', saved) }
    }
    const intent = { ...stored, ...(await findFacts(db, stored, { report, attempt }, limits.attemptsOfOrder)) }
    const judged = judge(intent, report, source, now)
    switch (judged.verdict) {
      case 'repeat':
        if (judged.of) await learn(db, { ...judged.of, mid: intent.mid }, report, now)
        if (report.failure) await ADD_FAILURE(db, { ...report, ...report.failure, mid: intent.mid, attempt })
        return { changed: false, late: false, paymentUtr: judged.of?.utr }
      case 'surplus attempt':
        return { changed: false, late: false, isSurplus: true }
      case 'failed attempt': {
        const { orderId, status, utr, paidAt } = report
        const { reason, code } = report.failure ?? {}
        const { mid, acquirer, amount } = intent
        const { over } = judged
        const facts = { mid, orderId, status, attempt, utr, paidAt, source, now, over, reason, code }
        if ((await ADD_ATTEMPT(db, facts)).length === 0) return { changed: false, late: false }
        return { changed: true, late: false, paise: amount, failure: { reason: reason ?? 'other', acquirer } }
      }
      case 'success': {
        const { late } = judged
        const kind = late ? 'late' : 'first'
        const utr = await storePayment(db, intent, report, { ...received, kind })
        if (utr === undefined) return reject('UTR of another order')
        // A `late` success can follow an unreadable response that arrived when the order was already final: the order
        // then has the exception `unreadable`, but `isUnreadable` is false.
        if (intent.isUnreadable || late) await endUnreadable(db, intent, { by: person ?? source, now })
        const saved = [
          ...(isReferenceOfAnother(report, utr) ? await save('UTR of another order') : []),
          ...(late ? await save('late payment', utr) : []),
        ]
        return { changed: true, late, paise: intent.amount, saved, paymentUtr: utr, newPaymentAt: intent.acquirer }
      }
      case 'second payment': {
        if (judged.stored) {
          await learn(db, { ...judged.stored, mid: intent.mid }, report, now)
          return { ...(await reject('double payment', judged.stored.utr)), paymentUtr: judged.stored.utr }
        }
        if (saves?.('double payment') === false || intent.payments.length > limits.secondPaymentsOfOrder)
          return reject('double payment')
        const utr = await storePayment(db, intent, report, { ...received, kind: 'second' })
        if (utr === undefined) return reject('UTR of another order')
        return { ...(await reject('double payment', utr)), paymentUtr: utr, newPaymentAt: intent.acquirer }
      }
      case 'exception':
        return reject(judged.kind, judged.utr)
    }
  }

  return {
    /**
     * Stores a notification together with other notifications if it reports the first payment of its order without any
     * doubt. Returns whether it is stored; `record` records every other notification. `check` throws if the sender no
     * longer waits.
     */
    async recordFirst(report: PaymentReport, now: () => Date, check: () => void): Promise<boolean> {
      const payment = await storeFirst(report, now, check)
      if (payment === undefined) return false
      if (payment.paidAt !== report.paidAt) listeners.onImpossibleTime?.()
      listeners.onPayment?.('SUCCESS', 'notification', payment.order.amount)
      if (report.instrument === 'unknown') listeners.onUnknownInstrument?.(payment.order.acquirer)
      return true
    },

    /**
     * Judges a report and stores the result: a success, a failed attempt, an exception, or nothing. Locks the order's
     * row first, so that concurrent equal reports make one change and get the same response.
     */
    async record(report: PaymentReport, reporting: Reporting): Promise<Recorded> {
      const mid = await findMerchant(db, report.orderId)
      const { source, person: operator } = reporting
      const account = accountOf(report, source)
      const found = mid === undefined ? await findReportedPayment(db, report, account) : undefined
      const lockAndStore = async (client: Queryable) => {
        await reporting.barrier?.(client)
        const stored = mid === undefined ? undefined : await lockIntent(client, mid, report)
        // The clock is read under the lock, because a report that waited for the lock may be late after the wait.
        const now = reporting.now()
        const paidAt = possibleTime(report.paidAt, now, stored?.createdAt)
        const isOfOtherAccount = mid !== undefined && stored === undefined
        const reportedPayment = isOfOtherAccount ? await findReportedPayment(client, report, account) : found
        const person = source === 'operator' ? operator : undefined
        const received = { ...reporting, now, attempt: nameAttempt(report), person, operator, reportedPayment }
        const { paymentUtr: utr, ...result } = await store(client, stored, { ...report, paidAt }, received)
        if (operator !== undefined && mid !== undefined && utr !== undefined)
          await resolveByPayment(client, { mid, utr }, { by: operator, now })
        return { ...result, isImpossibleTime: paidAt !== report.paidAt, acquirerAccount: stored?.acquirer }
      }
      // A report about an unknown order stores at most one row unless its payment is stored, so a flood of such reports
      // from one signer needs no transactions.
      const isOneRow = mid === undefined && found === undefined && reporting.barrier === undefined
      const { saved, paise, failure, isSurplus, newPaymentAt, isImpossibleTime, acquirerAccount, ...recorded } =
        isOneRow ? await lockAndStore(db) : await inTransaction(db, lockAndStore)
      // The callbacks are called after the transaction, because a report that was rolled back has changed nothing.
      if (isSurplus) listeners.onSurplusAttempt?.()
      if (isImpossibleTime) listeners.onImpossibleTime?.()
      if (paise !== undefined) listeners.onPayment?.(report.status, reporting.source, paise)
      if (failure) listeners.onFailure?.(failure.reason, failure.acquirer)
      if (newPaymentAt && report.instrument === 'unknown') listeners.onUnknownInstrument?.(newPaymentAt)
      for (const kind of saved ?? [])
        listeners.onException?.(kind, acquirerAccount ?? report.acquirer?.name ?? 'direct')
      return recorded
    },

    /**
     * Marks an order as unreadable, so that it stays open, because a status response about the order could not
     * be read and may report a payment. `isBesidePayment` means that the same response also reports a readable payment,
     * so a second payment may be hidden.
     */
    async saveUnreadableStatus(
      { orderId, isBesidePayment }: { orderId: string; isBesidePayment: boolean },
      acquirerAccount: string,
      now: Date,
    ): Promise<void> {
      const mid = await findMerchant(db, orderId)
      if (mid === undefined) return
      const isNew = await saveUnreadable(db, { mid, orderId, isBesidePayment }, acquirerAccount, now)
      if (isNew) listeners.onException?.('unreadable', acquirerAccount)
    },

    /** Reverts `saveUnreadableStatus`, because a later status response was readable. */
    async endUnreadable(orderId: string, now: Date): Promise<void> {
      const mid = await findMerchant(db, orderId)
      if (mid === undefined || !(await hasUnreadable(db, { mid, orderId }))) return
      await inTransaction(db, (client) => endUnreadable(client, { mid, orderId }, { by: 'enquiry', now }))
    },

    /**
     * Stores the first bytes of an unreadable signed body, unless the acquirer account has reached its limit of open
     * exceptions.
     */
    async saveUnreadable(body: Buffer, acquirerAccount: string, now: Date): Promise<void> {
      const dedupKey = createHash('sha256').update(body).digest('hex')
      const facts = { mid: '', orderId: '', amount: 0, status: '', dedupKey, acquirerAccount } as const
      const unreadable = { ...facts, body: toPlainText(body, UNREADABLE_BYTES) }
      const saved = await saveBounded(db, 'unreadable', unreadable, now)
      for (const kind of toCount('unreadable', saved)) listeners.onException?.(kind, acquirerAccount)
    },
  }
}

/** Returns the kind of an exception for the metrics; an empty list if the exception was stored before. */
const toCount = (kind: ExceptionKind, saved: SavedException) => (saved === 'known' ? [] : [kind])

/**
 * A report's source and time. `now` is the moment under the lock. `attempt` identifies a failed attempt. `operator` runs
 * the command that records the report; `person` is set only if the operator is also its source. `reportedPayment` is
 * the stored payment that a report of an unknown order is about.
 */
type Received = Omit<Reporting, 'now'> & {
  now: Date
  attempt: string
  operator: string | undefined
  reportedPayment: PaymentKey | undefined
}

/** Returns the acquirer account that signed a report; undefined for a report of another source. */
const accountOf = ({ acquirer }: PaymentReport, source: ReportSource) =>
  source === 'notification' ? acquirer?.name : undefined

/**
 * The result, with facts for callbacks: `saved` are new exceptions, `paise` the amount of a new payment or attempt,
 * `failure` the failure of a new attempt, `newPaymentAt` the acquirer account of a new payment. `paymentUtr` is the UTR of the
 * stored payment that the report is about.
 */
type Stored = Recorded & {
  saved?: readonly ExceptionKind[]
  paise?: number | undefined
  failure?: { reason: FailureReason; acquirer: string }
  isSurplus?: true
  newPaymentAt?: string
  paymentUtr?: string | undefined
}

/** An intent, and whether another payment already has the reported reference as its UTR. */
type FoundIntent = StoredIntent & { isReferenceUsed: boolean }

/** Finds an order's merchant, which never changes. Returns undefined for an unknown order. */
export async function findMerchant(db: Queryable, orderId: string): Promise<string | undefined> {
  return (await FIND_MERCHANT(db, { orderId }))[0]?.mid
}

const FIND_MERCHANT = query<{ mid: string }, { orderId: string }>(
  'select mid from payment_intents where order_id = :orderId',
)

const INTENT = `
  select ${STORED_INTENT}
    from payment_intents i
    left join acquirer_intents a on a.mid = i.mid and a.order_id = i.order_id
   where i.mid = :mid and i.order_id = :orderId and ${isReportedBy(':acquirer', ':acquirerOrderId')}`

type Named = { mid: string; orderId: string; acquirer: string | undefined; acquirerOrderId: string | undefined }

const FIND_INTENT = query<StoredIntent, Named>(INTENT)
const LOCK_INTENT = query<StoredIntent, Named>(`${INTENT} for no key update of i`)

/** Returns a function that reads the intent with one of these statements. */
const reading =
  (statement: typeof FIND_INTENT) =>
  async (db: Queryable, mid: string, { orderId, acquirer }: PaymentReport): Promise<StoredIntent | undefined> =>
    (await statement(db, { mid, orderId, acquirer: acquirer?.name, acquirerOrderId: acquirer?.id }))[0]

/**
 * Returns the intent that a report is about. Returns undefined for an unknown order, and for a report by an acquirer other
 * than the order's own.
 */
export const findIntent = reading(FIND_INTENT)

/** Locks what `findIntent` returns. */
const lockIntent = reading(LOCK_INTENT)

/** What earlier reports would have stored or changed. */
export type EarlierReports = {
  /** Payments of an order, and payments of its merchant with a UTR or bank reference. */
  paymentsOf: (order: { mid: string; orderId: string }, utr: string | undefined) => readonly FoundPayment[]
  /** Failed attempts of an order, each with its status. */
  attemptsOf: (orderId: string) => readonly string[]
}

type JudgedReport = { report: PaymentReport; attempt: string; earlier?: EarlierReports }

export async function findFacts(
  db: Queryable,
  { mid, orderId, utr: paidBy, failureReported }: StoredIntent,
  { report: { status, utr, names }, attempt, earlier }: JudgedReport,
  attemptsOfOrder: number,
) {
  const findPayments = () => FIND_PAYMENTS_AND_END(db, { mid, orderId, paidBy, utr })
  if (status === 'SUCCESS') {
    const rows = await findPayments()
    const stored = rows.filter((row): row is FoundPayment => row.utr !== null)
    const all = [...stored, ...(earlier?.paymentsOf({ mid, orderId }, utr) ?? [])]
    const found = [...new Map(all.map((payment) => [payment.utr, payment])).values()]
    const ofAnother = found.filter((payment) => payment.orderId !== orderId)
    return {
      payments: found.filter((payment) => payment.orderId === orderId),
      isReferenceUsed: found.some((payment) => isReferenceOf(utr, payment)),
      isOfAnotherOrder: ofAnother.some(({ id }) => names === undefined || id === names.id),
      attemptKnown: false,
      attemptsFull: false,
      failureReported: failureReported || rows.length > stored.length,
    }
  }
  const [counted] = await COUNT_ATTEMPTS(db, { mid, orderId, status, attempt })
  const { known = false, stored = 0 } = counted ?? {}
  const ofOrder = (row: FoundPayment | IsEnd): row is FoundPayment => row.utr !== null && row.orderId === orderId
  const payments = paidBy === null ? [] : (await findPayments()).filter(ofOrder)
  const none = { payments, isReferenceUsed: false, isOfAnotherOrder: false, failureReported }
  const before = earlier?.attemptsOf(orderId) ?? []
  const attemptKnown = known || before.includes(`${status} ${attempt}`)
  return { ...none, attemptKnown, attemptsFull: stored + before.length >= attemptsOfOrder }
}

export type FoundPayment = StoredPayment & { orderId: string }
/** The row which indicates that the event payment.expired is stored. */
type IsEnd = { utr: null }

const PAYMENT = `
  select order_id, utr, bank_reference, acquirer_payment_id as id, acquirer_txn_id as txn_id, instrument,
         kind = 'second' as is_second
    from payments
   where mid = :mid`

type Paid = { mid: string; orderId: string; paidBy: string | null; utr: string | undefined }

/**
 * The payments of the order, which is paid by the UTR `paidBy`; payments of other orders with the reported UTR; and the
 * order's event payment.expired.
 */
const FIND_PAYMENTS_AND_END = query<FoundPayment | IsEnd, Paid>(`
  ${PAYMENT} and utr = :paidBy
   union all
  ${PAYMENT} and order_id = :orderId and kind = 'second'
   union all
  ${PAYMENT} and utr = :utr and order_id <> :orderId
   union all
  ${PAYMENT} and bank_reference = :utr and order_id <> :orderId
   union all
  select null, null, null, null, null, null, ended.* from (${writtenExpiries(':mid', ':orderId')}) ended`)

type Attempt = { mid: string; orderId: string; status: FinalStatus; attempt: string }

const COUNT_ATTEMPTS = query<{ known: boolean; stored: number }, Attempt>(`
  select coalesce(bool_or(status = :status and attempt = :attempt), false) as known, count(*) as stored
    from payment_attempts
   where mid = :mid and order_id = :orderId`)

/**
 * Stores a payment under its bank reference, or under the acquirer's id if another payment to the merchant has the
 * reference. Returns the UTR under which the payment is stored; undefined if reference and id are both used by other
 * payments.
 */
async function storePayment(
  db: Queryable,
  { mid, orderId, amount, acquirer, isReferenceUsed }: FoundIntent,
  report: PaymentReport,
  { kind, now, source, person, note }: Received & { kind: 'first' | 'late' | 'second' },
): Promise<string | undefined> {
  const { utr: reference, paidAt, names } = report
  const insert = kind === 'second' ? TAKE_UTR : PAY
  // Another order may store the same reference concurrently, so the primary key decides which one gets it.
  for (const utr of utrsFor({ utr: reference, names }, { isReferenceUsed })) {
    const bankReference = reference === utr ? undefined : reference
    const payment = { mid, utr, orderId, amount, paidAt, now, kind, acquirer, bankReference, source, person, note }
    const stored = await insert(db, { ...payment, ...names, instrument: knownInstrument(report) })
    if (stored.length === 1) return utr
  }
  return undefined
}

/** Returns the UTRs under which a payment may be stored: its bank reference if no other payment has it, and the acquirer's id. */
export const utrsFor = (
  { utr, names }: Pick<PaymentReport, 'utr' | 'names'>,
  { isReferenceUsed }: Pick<FoundIntent, 'isReferenceUsed'>,
): string[] => [isReferenceUsed ? [] : (utr ?? []), names ? utrOfId(names.id) : []].flat()

/** Whether the payment is stored as `stored` because another payment has the reported reference. */
const isReferenceOfAnother = ({ utr }: PaymentReport, stored: string) => utr !== undefined && utr !== stored

/** Adds facts to a stored payment that only a later report contains: the acquirer's ids, the bank's reference, and the instrument. */
async function learn(
  db: Queryable,
  stored: StoredPayment & PaymentKey,
  report: PaymentReport,
  now: Date,
): Promise<void> {
  const learned = learnedFrom(report, stored)
  if (Object.values(learned).every((fact) => fact === undefined)) return
  const { mid, utr } = stored
  await LEARN(db, { ...learned, mid, utr, referenceAt: learned.reference ? now : undefined, now })
}

type Learned = ReturnType<typeof learnedFrom> & PaymentKey & { referenceAt: Date | undefined; now: Date }

const LEARN = query<object, Learned>(`
  update payments
     set acquirer_payment_id = coalesce(acquirer_payment_id, :id), acquirer_txn_id = coalesce(acquirer_txn_id, :txnId),
         bank_reference = coalesce(bank_reference, :reference),
         bank_reference_at = coalesce(bank_reference_at, :referenceAt),
         instrument = coalesce(instrument, :instrument), learned_at = :now
   where mid = :mid and utr = :utr`)

/** Returns the facts of a report that the stored payment does not have. */
export function learnedFrom(report: PaymentReport, stored: StoredPayment) {
  const { utr, names } = report
  const id = stored.id === null ? names?.id : undefined
  const txnId = stored.txnId === null ? names?.txnId : undefined
  const isStoredById = stored.utr === utrOfId(stored.id ?? id ?? '')
  const reference = isStoredById && stored.bankReference === null && utr !== stored.utr ? utr : undefined
  return { id, txnId, reference, instrument: stored.instrument === null ? knownInstrument(report) : undefined }
}

/** SQL that yields a row unless another order has the UTR. */
const EXISTS = `
  inserted as (
    insert into payments (${PAYMENT_COLUMNS})
    values (:mid, :utr, :orderId, :amount, :paidAt, :now, :kind, :acquirer, :id, :txnId, :bankReference, :instrument,
            :source, :person, :note)
        on conflict do nothing
    returning order_id
  ), taken as (
    select order_id from inserted
     union
    select order_id from payments where mid = :mid and utr = :utr and order_id = :orderId
  )`

type NewPayment = Pick<StoredIntent, 'mid' | 'orderId' | 'amount' | 'acquirer'> &
  Pick<PaymentReport, 'paidAt'> &
  Pick<Received, 'now' | 'source' | 'person' | 'note'> &
  Partial<PaymentNames> & {
    utr: string
    kind: 'first' | 'late' | 'second'
    bankReference: string | undefined
    instrument: Instrument | undefined
  }

/**
 * Stores a second payment of the order. If two orders report a UTR concurrently, the primary key accepts only one of
 * the two payments.
 */
const TAKE_UTR = query<object, NewPayment>(`with ${EXISTS} select from taken`)

/** Stores the order's own payment, marks it as paid, and writes the webhook deliveries. */
const PAY = query<object, NewPayment>(`
  with ${EXISTS}, ${markPaid({
    mid: ':mid',
    utr: ':utr',
    receivedAt: ':now',
    which: 'where i.mid = :mid and i.order_id = :orderId and exists (select 1 from taken)',
  })}
  select from taken`)

type Failed = Attempt & { reason?: FailureReason | undefined; code?: string | undefined }

/**
 * Stores a failed attempt. Unless the order is final, the intent gets the attempt's status, and a webhook reports the
 * attempt with its UTR. The intent gets no UTR, because only a paid intent has a UTR.
 */
const ADD_ATTEMPT = query<
  object,
  Failed & Pick<PaymentReport, 'utr' | 'paidAt'> & { source: ReportSource; now: Date; over: boolean }
>(`
  with added as (
    insert into payment_attempts (mid, order_id, status, attempt, utr, paid_at, source, received_at, failure_reason,
                                  failure_code)
    values (:mid, :orderId, :status, :attempt, :utr, :paidAt, :source, :now, :reason, :code)
        on conflict do nothing
    returning order_id
  ), failed as (
    update payment_intents
       set status = :status, utr = null, event_sequence = event_sequence + 1
     where mid = :mid and order_id = :orderId and not :over::boolean and exists (select 1 from added)
    returning order_id, event_sequence as sequence, 'PENDING' as txn_status, :utr::text as utr,
              null::text as our_refund_id, :now::timestamptz as occurred_at, coalesce(:reason, 'other') as failure_reason
  ), delivered as (${insertDeliveries('payment.attempt_failed', ':mid', 'failed c')})
  select from added`)

/** Adds the failure reason to a stored failed attempt, unless it already has one. */
const ADD_FAILURE = query<object, Failed>(`
  update payment_attempts
     set failure_reason = :reason, failure_code = :code
   where mid = :mid and order_id = :orderId and status = :status and attempt = :attempt and failure_reason is null`)

/** Identifies a failed attempt within its order by the reported UTR and time, so that a repeat is recognized. */
export function nameAttempt({ utr, paidAt }: Pick<PaymentReport, 'utr' | 'paidAt'>): string {
  return [utr, paidAt?.toISOString()].filter((part) => part !== undefined).join(' ')
}

/** Returns the first part of `body` as text of at most `limitBytes` in UTF-8, without NUL, which PostgreSQL rejects. */
function toPlainText(body: Buffer, limitBytes: number): string {
  // The decoder is in stream mode, so that it omits a character that is cut off at the end.
  const begin = (bytes: Buffer) => new TextDecoder().decode(bytes.subarray(0, limitBytes), { stream: true })
  // The text is cut twice, because the decoder replaces each invalid byte with a character of three bytes.
  return begin(Buffer.from(begin(body).replaceAll('\0', '\ufffd')))
}
