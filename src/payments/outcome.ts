import { toDecimalText } from '../money.ts'
import type { Intent } from './intent.ts'

/** What the bank says of one payment. */
export type FinalStatus = 'SUCCESS' | 'FAIL' | 'REJECT'
/**
 * The stored status of an intent. With FAIL and REJECT the last attempt failed, and the intent may still be paid. CANCELLED
 * means that the merchant has closed it.
 */
export type Status = 'PENDING' | FinalStatus | 'CANCELLED'

/** The statuses of an intent that may still be paid, until it is given up. In SQL. */
export const OPEN_STATUSES = `('PENDING', 'FAIL', 'REJECT')`

/** A payment of an order, as the bank reports it, or the operator for the bank. `amount` is decimal text with two decimals. */
export type PaymentReport = {
  orderId: string
  status: FinalStatus
  /** In upper case. Given with every SUCCESS. */
  utr: string | undefined
  amount: string
  paidAt: Date | undefined
  /** The acquirer that reports, if only the order's own acquirer may; `id` is its own identifier of the order, if it has one. */
  acquirer?: { name: string; id?: string | undefined } | undefined
  names?: PaymentNames | undefined
}

/** Who reports a payment. */
export type ReportSource = 'notification' | 'enquiry' | 'day file' | 'operator' | 'sandbox'

/** The names of a payment at its acquirer, by which the acquirer takes and reports refunds. */
export type PaymentNames = { id: string; txnId?: string | undefined }

export type ReportedIntent = Pick<Intent, 'mid' | 'orderId' | 'amount' | 'expiresAt'> & {
  status: Status
  utr: string | null
  /** Whether the reported UTR paid another order of the same merchant. */
  utrOfAnother: boolean
  /** Whether an answer or a webhook has told the merchant that this order has failed for good. */
  failTold: boolean
  /** Whether this very attempt was reported as failed before. */
  attemptKnown: boolean
  /** True when as many failed attempts of this order are stored as any order may have. */
  attemptsFull: boolean
}

/** How a report may contradict what we know. */
export type Contradiction = Extract<
  ExceptionKind,
  'unknown order' | 'amount differs' | 'UTR of another order' | 'double payment' | 'failure after success'
>

/** What the operator has to look into. */
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

/** What follows from a report. */
export type Verdict =
  /** The order is paid; `late` when the merchant had already been told that it is not. */
  | { verdict: 'success'; late: boolean }
  /** One more attempt failed. If the merchant was already told the end (`over`), it goes into the history only. */
  | { verdict: 'failed attempt'; over: boolean }
  /** One more failed attempt of an order that has the most that are stored: it is only counted. */
  | { verdict: 'surplus attempt' }
  | { verdict: 'repeat' }
  | { verdict: 'exception'; kind: Contradiction }

/**
 * The rules by which a report is judged. A success is never undone, and counts however late it comes. A failed attempt does
 * not end an order, because customers try again. A UTR pays one order.
 */
export function judge(intent: ReportedIntent, report: PaymentReport, source: ReportSource, now: Date): Verdict {
  const over = isOver(intent, new Date(now.getTime() + STORING_LIMIT_MS))
  if (report.amount !== toDecimalText(intent.amount)) return { verdict: 'exception', kind: 'amount differs' }
  const isPaid = intent.status === 'SUCCESS'
  if (report.status === 'SUCCESS') {
    if (intent.utrOfAnother) return { verdict: 'exception', kind: 'UTR of another order' }
    // A day file comes after the end of every order, so its success is late only for a merchant who was told of the failure.
    if (!isPaid) return { verdict: 'success', late: over && (source !== 'day file' || intent.failTold) }
    return report.utr === intent.utr ? { verdict: 'repeat' } : { verdict: 'exception', kind: 'double payment' }
  }
  if (intent.attemptKnown) return { verdict: 'repeat' }
  // A failure after a success is left to a person: the bank may have taken the money back, or the reports may have come
  // in the wrong order.
  if (isPaid) return { verdict: 'exception', kind: 'failure after success' }
  return intent.attemptsFull ? { verdict: 'surplus attempt' } : { verdict: 'failed attempt', over }
}

/**
 * Covers the time from judging a report to storing it, and the difference between the clocks of two instances. The last
 * 15 s before the end already count as late: otherwise a success could be judged in time, and stored just after the
 * merchant was told the end.
 */
export const STORING_LIMIT_MS = 15_000

/** How far the acquirer's clock may be behind ours. */
const CLOCK_TOLERANCE_MS = 5 * 60_000

/** No order is older. */
const FIRST_DAY = new Date('2000-01-01T00:00:00Z')

/**
 * `paidAt` if an order created at `createdAt` can have been paid then, else undefined: such a payment counts from the
 * moment at which we heard of it, in the books and in the lists alike. For an unknown order `createdAt` is left out.
 */
export function possibleTime(paidAt: Date | undefined, now: Date, createdAt: Date = FIRST_DAY): Date | undefined {
  if (paidAt === undefined || paidAt > now) return undefined
  return paidAt.getTime() >= createdAt.getTime() - CLOCK_TOLERANCE_MS ? paidAt : undefined
}

/** The longest time to pay that an operator can set. */
export const LONGEST_EXPIRY_MINUTES = 24 * 60

/** How long after expiry the bank may still tell of a payment before we call it failed. */
export const EXPIRY_GRACE_MINUTES = 10

/** Whether the time in which the bank usually reports is over. */
export function isGivenUp(expiresAt: Date, now: Date): boolean {
  return expiresAt <= givenUpUntil(now)
}

/** Unpaid intents that expired at this moment or earlier are given up at `now`. */
export function givenUpUntil(now: Date): Date {
  return new Date(now.getTime() - EXPIRY_GRACE_MINUTES * 60_000)
}

/** True when a merchant who asks at `now` is told that the order has ended. No public client asks again after that. */
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

/** What the merchant is told: PENDING while the intent may still be paid. */
export type Outcome =
  | { txnStatus: 'PENDING'; msg: (typeof OPEN_MESSAGES)[number] }
  | { txnStatus: FinalStatus; msg: (typeof FINAL_MESSAGES)[number] }

/** What the merchant is told of an intent at `now`. */
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
