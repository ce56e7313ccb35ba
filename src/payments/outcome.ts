import type { Intent } from './intent.ts'

/** What a payment can end in. PENDING is the state before, and expiry follows from the clock. */
export type FinalStatus = 'SUCCESS' | 'FAIL' | 'REJECT'
export type Status = 'PENDING' | FinalStatus

/** What the bank, or the operator in its stead, says of an order. `amount` is decimal text with two decimals. */
export type Report = {
  orderId: string
  status: FinalStatus
  /** Given with every SUCCESS. */
  utr: string | undefined
  amount: string
  paidAt: Date | undefined
}

export type ReportedIntent = Pick<Intent, 'mid' | 'orderId' | 'amount'> & {
  status: Status
  utr: string | null
  /** Whether the reported UTR paid another order of the same merchant. */
  utrOfAnother: boolean
}

export type ExceptionKind = 'unknown order' | 'amount differs' | 'UTR of another order' | 'double payment'

/** What the intent is after a report, which may be what it was, or why the operator has to look into it. */
export type Verdict = { becomes: Status } | { exception: ExceptionKind }

/**
 * The rules of contract C5. Success is never undone; FAIL and REJECT may become SUCCESS, since customers try again;
 * money that comes after expiry counts; a UTR pays one order.
 */
export function judge(intent: ReportedIntent | undefined, report: Report): Verdict {
  if (intent === undefined) return { exception: 'unknown order' }
  if (report.amount !== `${intent.amount}.00`) return { exception: 'amount differs' }
  if (report.status === 'SUCCESS') {
    if (intent.utrOfAnother) return { exception: 'UTR of another order' }
    if (intent.status !== 'SUCCESS') return { becomes: 'SUCCESS' }
    return report.utr === intent.utr ? { becomes: 'SUCCESS' } : { exception: 'double payment' }
  }
  return { becomes: intent.status === 'PENDING' ? report.status : intent.status }
}

/** How long after expiry the bank may still tell of a payment before we call it failed. */
const EXPIRY_GRACE_MINUTES = 10

/** Whether an unpaid intent is past the time in which the bank usually tells. */
export function isGivenUp(expiresAt: Date, now: Date): boolean {
  return now.getTime() >= expiresAt.getTime() + EXPIRY_GRACE_MINUTES * 60_000
}

const FINAL_MESSAGE = {
  SUCCESS: 'Payment successful',
  FAIL: 'Payment failed',
  REJECT: 'Payment rejected',
} satisfies Record<FinalStatus, string>

/** What a payment has ended in at `now`, with the words for it; undefined while it may still be paid. */
export function finalOutcome(
  { status, expiresAt }: { status: Status; expiresAt: Date },
  now: Date,
): { status: FinalStatus; msg: string } | undefined {
  if (status !== 'PENDING') return { status, msg: FINAL_MESSAGE[status] }
  return isGivenUp(expiresAt, now) ? { status: 'FAIL', msg: 'Payment intent expired' } : undefined
}
