import { utrOfId } from '../../platform/fields.ts'
import type { Paise } from '../../platform/money.ts'
import type { PaymentFailure } from './failure-reasons.ts'
import type { ReportedInstrument } from './instrument.ts'
import type { Intent } from './intent.ts'

/** The status of a payment, as the bank reports it. */
export type FinalStatus = 'SUCCESS' | 'FAIL' | 'REJECT'
/**
 * The stored status of an intent. With FAIL and REJECT, the last attempt failed, and the intent may still be paid.
 * CANCELLED means that the merchant has cancelled the order.
 */
export const STATUSES = ['PENDING', 'SUCCESS', 'FAIL', 'REJECT', 'CANCELLED'] as const
export type Status = (typeof STATUSES)[number]

/** SQL list of the statuses of unpaid intents, which may be paid until their status is final. */
export const OPEN_STATUSES = `('PENDING', 'FAIL', 'REJECT')`

/** A report of a payment by the bank, or by the operator on its behalf. */
export type PaymentReport = {
  orderId: string
  status: FinalStatus
  /** The bank's reference of the payment, in upper case. A SUCCESS has a `utr` or `names`. */
  utr: string | undefined
  /** Undefined only for a failed attempt whose report contains no amount. */
  amount: Paise | undefined
  paidAt: Date | undefined
  /**
   * The acquirer that sent the report. Only the order's own acquirer may report a payment. `id` is the acquirer's
   * identifier of the order.
   */
  acquirer?: { name: string; id?: string | undefined } | undefined
  names?: PaymentNames | undefined
  instrument?: ReportedInstrument | undefined
  /** Why the attempt failed; undefined if the report states no reason. */
  failure?: PaymentFailure | undefined
}

export type ReportSource = 'notification' | 'enquiry' | 'day file' | 'operator' | 'sandbox'

/** Identifiers of a payment at its acquirer. `id` identifies the payment; refunds refer to both. */
export type PaymentNames = { id: string; txnId?: string | undefined }

/**
 * A stored payment of an order. `utr` is the bank's reference, or the acquirer's `id` if the reference was unknown or
 * belonged to another payment. If `utr` is the `id`, `bankReference` is the bank's reference as soon as it
 * is known.
 */
export type StoredPayment = {
  utr: string
  bankReference: string | null
  id: string | null
  txnId: string | null
  instrument: string | null
  isSecond: boolean
}

/** The bank's reference of a stored payment; undefined while the reference is unknown. */
const referenceOf = ({ utr, bankReference, id }: StoredPayment) =>
  bankReference ?? (id !== null && utr === utrOfId(id) ? undefined : utr)

/**
 * Whether a report is about a stored payment: by the acquirer's id if both have an id, otherwise by UTR. An operator
 * may confirm a payment by the acquirer's id, so the reported or the stored UTR may be this id in the form of a UTR.
 */
function isOf({ utr, names }: Pick<PaymentReport, 'utr' | 'names'>, stored: StoredPayment): boolean {
  const [reportedId, storedId] = [names && utrOfId(names.id), stored.id === null ? undefined : utrOfId(stored.id)]
  if (reportedId !== undefined && storedId !== undefined) return reportedId === storedId
  return reportedId === stored.utr || (utr !== undefined && utr === storedId) || isReferenceOf(utr, stored)
}

/** Whether a stored payment has this bank reference. */
export const isReferenceOf = (utr: string | undefined, stored: Pick<StoredPayment, 'utr' | 'bankReference'>): boolean =>
  utr !== undefined && [stored.utr, stored.bankReference].includes(utr)

/**
 * Whether a report is certainly about another payment. If the report or the stored payment has no id, the references
 * are compared.
 */
function isOfAnother({ utr, names }: PaymentReport, stored: StoredPayment): boolean {
  if (names !== undefined && stored.id !== null) return true
  return utr !== undefined && referenceOf(stored) !== undefined
}

/** Returns the UTR of the payment that a failure is about: the payment that paid the order, or another attempt, if it has one. */
function failedUtr(report: PaymentReport, [paid]: readonly StoredPayment[]): string {
  const isOther = paid === undefined || (isOfAnother(report, paid) && !isOf(report, paid))
  return isOther ? (report.utr ?? '') : paid.utr
}

export type ReportedIntent = Pick<Intent, 'mid' | 'orderId' | 'amount' | 'expiresAt'> & {
  status: Status
  /** Whether the acquirer's last status response was unreadable. The order then stays open. */
  isUnreadable: boolean
  /** The order's payments; the payment that paid the order comes first. */
  payments: readonly StoredPayment[]
  /**
   * Whether the report is about a payment of another order of the same merchant: by the acquirer's id if the report has
   * an id, otherwise by UTR.
   */
  isOfAnotherOrder: boolean
  /** Whether a response or a webhook has reported to the merchant that the order has finally failed. */
  failureReported: boolean
  /** Whether this attempt was already reported as failed. */
  attemptKnown: boolean
  /** Whether the order has the largest number of failed attempts that is stored for an order. */
  attemptsFull: boolean
}

export type Contradiction = Extract<
  ExceptionKind,
  'unknown order' | 'amount differs' | 'UTR of another order' | 'double payment' | 'failure after success'
>

/** The kinds of exceptions, each with the operator's next step. */
export const NEXT_STEPS = {
  'unknown order':
    'If the customer paid, find the order by amount and time, then run ops payments confirm. Without an order, refund the payment at the bank.',
  'amount differs':
    "If the bank received this amount, return it at the bank, then run ops payments resolve --exception ID --reason 'returned at the bank, RRN …'.",
  'UTR of another order': 'Ask the bank which payment has the UTR.',
  'UTR of another merchant': 'Ask the bank which merchant the payment belongs to.',
  'double payment': 'The customer paid twice: refund the second payment.',
  'late payment': 'Ask the merchant whether it still fulfils the order. Otherwise, refund the payment.',
  'failure after success': 'Ask the bank whether it reversed the payment.',
  unreadable: 'Ask the acquirer to correct the format. If the exception has an order, check the payment.',
  'refund unsure':
    'If the acquirer’s dashboard lists the refund, mark it as done. Otherwise, send it again or mark it as failed.',
  'refund without an end': 'Ask the acquirer for the status, then mark the refund as done or as failed.',
  'refund failed after success': 'Ask the acquirer where the money is.',
  'refunded above what was paid':
    'Ask the acquirer whether the money was returned, and settle the amount with the merchant.',
  'refund differs': 'Ask the acquirer for the reason.',
  'unknown dispute':
    'Find the payment at the acquirer. If it paid an order, run ops payments confirm, then ops disputes add.',
  'dispute differs': 'Ask the acquirer which report is valid.',
  'refund of a disputed payment':
    'Send the refund’s reference to the acquirer as evidence, so that the amount is not returned twice.',
} as const
export type ExceptionKind = keyof typeof NEXT_STEPS
export const EXCEPTION_KINDS = Object.keys(NEXT_STEPS) as ExceptionKind[]

type Verdict =
  /** `late` means that the order's final status was already reported to the merchant. */
  | { verdict: 'success'; late: boolean }
  /**
   * `over` means that the order's final status was already reported to the merchant, so the attempt is stored only in
   * the history.
   */
  | { verdict: 'failed attempt'; over: boolean }
  /** A failed attempt beyond the largest number that is stored for an order. The attempt is only counted. */
  | { verdict: 'surplus attempt' }
  /** `of` is the stored payment that a repeated success is about; undefined if the payment cannot be identified. */
  | { verdict: 'repeat'; of?: StoredPayment | undefined }
  /** `utr` of a failure is that of the order's payment, unless the failure is certainly of another attempt. */
  | { verdict: 'exception'; kind: Exclude<Contradiction, 'double payment'>; utr?: string }
  /** A second payment of a paid order. `stored` is the stored payment if this payment was already reported. */
  | { verdict: 'second payment'; stored: StoredPayment | undefined }

/**
 * Judges a report about a payment. A success is never undone, and a late success is also valid. A failed attempt does
 * not close an order, because customers may try again. A UTR can pay only one order.
 */
export function judge(intent: ReportedIntent, report: PaymentReport, source: ReportSource, now: Date): Verdict {
  const over = isOver(intent, new Date(now.getTime() + STORING_LIMIT_MS))
  const amount = report.status === 'SUCCESS' ? report.amount : (report.amount ?? intent.amount)
  if (amount !== intent.amount) return { verdict: 'exception', kind: 'amount differs' }
  const isPaid = intent.status === 'SUCCESS'
  if (report.status === 'SUCCESS') {
    const stored = isPaid ? intent.payments.find((payment) => isOf(report, payment)) : undefined
    if (stored) return stored.isSecond ? { verdict: 'second payment', stored } : { verdict: 'repeat', of: stored }
    if (intent.isOfAnotherOrder) return { verdict: 'exception', kind: 'UTR of another order' }
    // A daily transaction report usually arrives after an order's final status, so its success is late only if the
    // failure was reported to the merchant.
    if (!isPaid) return { verdict: 'success', late: over && (source !== 'day file' || intent.failureReported) }
    const isSecond = intent.payments.every((payment) => isOfAnother(report, payment))
    return isSecond ? { verdict: 'second payment', stored: undefined } : { verdict: 'repeat' }
  }
  if (intent.attemptKnown) return { verdict: 'repeat' }
  // The operator decides about a failure after a success: either the bank has reversed the payment, or the reports are
  // out of order.
  if (isPaid) return { verdict: 'exception', kind: 'failure after success', utr: failedUtr(report, intent.payments) }
  return intent.attemptsFull ? { verdict: 'surplus attempt' } : { verdict: 'failed attempt', over }
}

/**
 * Longest time from judging a report to storing the report, including the difference between two instances' clocks. A
 * success in the last 15 s before an order's final status is treated as late: such a success could be stored just after
 * the final status was reported to the merchant.
 */
export const STORING_LIMIT_MS = 15_000

/** Milliseconds by which the acquirer's clock may be behind the service's clock. */
const CLOCK_TOLERANCE_MS = 5 * 60_000

/** A day before any order was created. */
const FIRST_DAY = new Date('2000-01-01T00:00:00Z')

/**
 * Returns `paidAt` if an order created at `createdAt` can have been paid at this time. If not, the ledger and the lists
 * show the time of the report. `createdAt` is omitted for an unknown order.
 */
export function possibleTime(paidAt: Date | undefined, now: Date, createdAt: Date = FIRST_DAY): Date | undefined {
  if (paidAt === undefined || paidAt > now) return undefined
  return paidAt.getTime() >= createdAt.getTime() - CLOCK_TOLERANCE_MS ? paidAt : undefined
}

/**
 * Minutes after the expiry during which the bank may still report a payment. After these minutes, the order has finally
 * failed.
 */
export const EXPIRY_GRACE_MINUTES = 10

export function isAbandoned(expiresAt: Date, now: Date): boolean {
  return expiresAt <= abandonedUntil(now)
}

/** Returns the latest expiry with which an unpaid intent has finally failed by `now`. */
export function abandonedUntil(now: Date): Date {
  return new Date(now.getTime() - EXPIRY_GRACE_MINUTES * 60_000)
}

/** The facts that determine the status that a merchant receives. */
export type Judged = Pick<ReportedIntent, 'status' | 'expiresAt' | 'isUnreadable'>

/**
 * Whether the status that checkPaymentStatus returns at `now` is final. No public client checks a final status again.
 */
export function isOver({ status, expiresAt, isUnreadable }: Judged, now: Date): boolean {
  return status === 'SUCCESS' || status === 'CANCELLED' || (!isUnreadable && isAbandoned(expiresAt, now))
}

/** SQL condition: like `isOver`, for an unpaid order `i` that is not cancelled. `now` is SQL. */
export const isOverSql = (now: string) =>
  `(i.expires_at <= ${now} - interval '${EXPIRY_GRACE_MINUTES} minutes' and i.unreadable_at is null)`

export const FINAL_STATUSES = ['SUCCESS', 'FAIL', 'REJECT'] as const satisfies readonly FinalStatus[]
