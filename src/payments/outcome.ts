import { toDecimalText } from '../money.ts'
import type { Intent } from './intent.ts'

/** The bank's status of one payment. */
export type FinalStatus = 'SUCCESS' | 'FAIL' | 'REJECT'
/**
 * The stored status of an intent. With FAIL and REJECT the last attempt failed, and the intent may still be paid. CANCELLED
 * means that the merchant has closed it.
 */
export type Status = 'PENDING' | FinalStatus | 'CANCELLED'

/** SQL: the statuses of an intent that may be paid until it is given up. */
export const OPEN_STATUSES = `('PENDING', 'FAIL', 'REJECT')`

/** A report of the bank, or of the operator for the bank. `amount` is decimal text with two decimals. */
export type PaymentReport = {
  orderId: string
  status: FinalStatus
  /** In upper case. Given with every SUCCESS. */
  utr: string | undefined
  amount: string
  paidAt: Date | undefined
  /** Set when only the order's own acquirer may report; `id` is that acquirer's identifier of the order, if it has one. */
  acquirer?: { name: string; id?: string | undefined } | undefined
  names?: PaymentNames | undefined
}

export type ReportSource = 'notification' | 'enquiry' | 'day file' | 'operator' | 'sandbox'

/** Identifiers of a payment at its acquirer, which refunds refer to. */
export type PaymentNames = { id: string; txnId?: string | undefined }

export type ReportedIntent = Pick<Intent, 'mid' | 'orderId' | 'amount' | 'expiresAt'> & {
  status: Status
  utr: string | null
  /** Whether the reported UTR paid another order of the same merchant. */
  utrOfAnother: boolean
  /** Whether an answer or a webhook has reported to the merchant that the order has failed for good. */
  failTold: boolean
  /** Whether this attempt was reported as failed before. */
  attemptKnown: boolean
  /** Whether the order has the most failed attempts that are stored. */
  attemptsFull: boolean
}

export type Contradiction = Extract<
  ExceptionKind,
  'unknown order' | 'amount differs' | 'UTR of another order' | 'double payment' | 'failure after success'
>

export const EXCEPTION_KINDS = [
  'unknown order',
  'amount differs',
  'UTR of another order',
  'UTR of another merchant',
  'double payment',
  'late payment',
  'failure after success',
  'unreadable',
  'refund unsure',
  'refund without an end',
  'refund failed after success',
  'refunded above what was paid',
  'refund differs',
] as const
export type ExceptionKind = (typeof EXCEPTION_KINDS)[number]

export type Verdict =
  /** `late` when the order's end was already reported to the merchant. */
  | { verdict: 'success'; late: boolean }
  /** `over` when the order's end was already reported to the merchant: the attempt then goes into the history only. */
  | { verdict: 'failed attempt'; over: boolean }
  /** A failed attempt of an order that has the most that are stored: it is only counted. */
  | { verdict: 'surplus attempt' }
  | { verdict: 'repeat' }
  | { verdict: 'exception'; kind: Contradiction }

/**
 * A success is never undone, and counts however late it comes. A failed attempt does not end an order, because customers try again. A
 * UTR pays one order.
 */
export function judge(intent: ReportedIntent, report: PaymentReport, source: ReportSource, now: Date): Verdict {
  const over = isOver(intent, new Date(now.getTime() + STORING_LIMIT_MS))
  if (report.amount !== toDecimalText(intent.amount)) return { verdict: 'exception', kind: 'amount differs' }
  const isPaid = intent.status === 'SUCCESS'
  if (report.status === 'SUCCESS') {
    if (intent.utrOfAnother) return { verdict: 'exception', kind: 'UTR of another order' }
    // A day file comes after every order's end, so its success is late only if the failure was reported to the merchant.
    if (!isPaid) return { verdict: 'success', late: over && (source !== 'day file' || intent.failTold) }
    return report.utr === intent.utr ? { verdict: 'repeat' } : { verdict: 'exception', kind: 'double payment' }
  }
  if (intent.attemptKnown) return { verdict: 'repeat' }
  // A failure after a success is left to a person: either the bank has taken the money back, or the reports are out of order.
  if (isPaid) return { verdict: 'exception', kind: 'failure after success' }
  return intent.attemptsFull ? { verdict: 'surplus attempt' } : { verdict: 'failed attempt', over }
}

/**
 * Longest time from judging a report to storing it, and the difference between two instances' clocks. A success in the last 15 s
 * before an order's end counts as late: otherwise it could be stored just after the end was reported to the merchant.
 */
export const STORING_LIMIT_MS = 15_000

/** How far the acquirer's clock may be behind ours. */
const CLOCK_TOLERANCE_MS = 5 * 60_000

/** A day before the first order. */
const FIRST_DAY = new Date('2000-01-01T00:00:00Z')

/**
 * Returns `paidAt` if an order created at `createdAt` can have been paid then. Otherwise the payment counts from its report, in the
 * books and in the lists alike. `createdAt` is left out for an unknown order.
 */
export function possibleTime(paidAt: Date | undefined, now: Date, createdAt: Date = FIRST_DAY): Date | undefined {
  if (paidAt === undefined || paidAt > now) return undefined
  return paidAt.getTime() >= createdAt.getTime() - CLOCK_TOLERANCE_MS ? paidAt : undefined
}

/** The longest time to pay that an operator can set. */
export const LONGEST_EXPIRY_MINUTES = 24 * 60

/** Time after expiry in which the bank may still report a payment before the order counts as failed. */
export const EXPIRY_GRACE_MINUTES = 10

export function isGivenUp(expiresAt: Date, now: Date): boolean {
  return expiresAt <= givenUpUntil(now)
}

/** Unpaid intents with an expiry up to the returned moment are given up at `now`. */
export function givenUpUntil(now: Date): Date {
  return new Date(now.getTime() - EXPIRY_GRACE_MINUTES * 60_000)
}

/** Whether checkPaymentStatus answers at `now` that the order has ended. No public client asks again after that. */
export function isOver({ status, expiresAt }: Pick<ReportedIntent, 'status' | 'expiresAt'>, now: Date): boolean {
  return status === 'SUCCESS' || status === 'CANCELLED' || isGivenUp(expiresAt, now)
}

export const FINAL_STATUSES = ['SUCCESS', 'FAIL', 'REJECT'] as const satisfies readonly FinalStatus[]
export const OPEN_MESSAGES = ['Payment pending', 'Last attempt failed; still open'] as const
export const FINAL_MESSAGES = [
  'Payment successful',
  'Payment failed',
  'Payment rejected',
  'Payment intent expired',
  'Payment cancelled',
] as const

/** The answer to the merchant: PENDING while the intent may still be paid. */
export type Outcome =
  | { txnStatus: 'PENDING'; msg: (typeof OPEN_MESSAGES)[number] }
  | { txnStatus: FinalStatus; msg: (typeof FINAL_MESSAGES)[number] }

export function outcome(intent: Pick<ReportedIntent, 'status' | 'expiresAt'>, now: Date): Outcome {
  const over = isOver(intent, now)
  switch (intent.status) {
    case 'SUCCESS':
      return { txnStatus: 'SUCCESS', msg: 'Payment successful' }
    case 'CANCELLED':
      return { txnStatus: 'FAIL', msg: 'Payment cancelled' }
    case 'PENDING':
      if (!over) return { txnStatus: 'PENDING', msg: 'Payment pending' }
      return { txnStatus: 'FAIL', msg: 'Payment intent expired' }
    case 'FAIL':
    case 'REJECT':
      if (!over) return { txnStatus: 'PENDING', msg: 'Last attempt failed; still open' }
      return { txnStatus: intent.status, msg: intent.status === 'FAIL' ? 'Payment failed' : 'Payment rejected' }
  }
}
