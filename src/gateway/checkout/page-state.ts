import type { FailureReason } from '../payments/failure-reasons.ts'
import type { Checkout, PaymentState } from '../payments/intents.ts'
import { isOver } from '../payments/outcome.ts'

/**
 * What a customer may do after a failed attempt. `retry`: pay again immediately. `wait`: money may be in transit, so
 * the customer first confirms that it has not left the account. `stop`: the merchant cannot be paid at the moment.
 */
type Tone = 'retry' | 'wait' | 'stop'

/** Why a page with an attempt is not paid. `unconfirmed`: the acquirer's response about the attempt was unreadable. */
type AttemptReason = FailureReason | 'unconfirmed'

export const TONES: Record<AttemptReason, Tone> = {
  wrong_pin: 'retry',
  pin_tries_exceeded: 'retry',
  insufficient_funds: 'retry',
  limit_exceeded: 'retry',
  bank_unavailable: 'wait',
  declined_by_customer: 'retry',
  not_authorised_in_time: 'wait',
  risk_declined: 'retry',
  account_problem: 'retry',
  payee_not_allowed: 'stop',
  other: 'wait',
  unconfirmed: 'wait',
}

/**
 * The state that a pay page shows.
 * - open, attemptFailed: the intent can be paid. `offersToPay` is whether the page offers it. attemptFailed includes an
 *   attempt that may have succeeded, because the acquirer's response about it was unreadable.
 * - waiting: the customer has returned from an app, and no result was reported yet.
 * - amountMismatch: a payment of another amount was received, and the operator has not resolved it.
 * - closed: the merchant is disabled, but a payment may still be reported.
 * - timeUp: the intent has expired, but a payment may still be reported for some minutes.
 * - paid, refunded, failed, expired, cancelled: final. `refunded` means the whole amount.
 */
export type PageState =
  | { name: 'open' | 'waiting' | 'closed' | 'timeUp' | 'paid' | 'refunded' }
  | { name: 'attemptFailed'; reason: AttemptReason; tone: Tone; offersToPay: boolean }
  | { name: 'amountMismatch'; mismatch: NonNullable<Checkout['mismatch']> }
  | DeadEnd

/** A final state without a payment. */
export type DeadEnd = { name: 'expired' | 'cancelled' } | { name: 'failed'; reason: FailureReason }

/** What the customer has said by the links of the page. Times are those of the service's clock. */
export type Visit = {
  /** When the customer opened the app from which they have returned. */
  openedAppAt?: Date | undefined
  /** The time of the failed attempt of which the customer has confirmed that it has taken no money. */
  unpaidAttemptAt?: Date | undefined
}

export function pageState(checkout: PaymentState & { refunded?: boolean }, now: Date, visit: Visit = {}): PageState {
  const { status, expiresAt, mismatch, attemptedAt } = checkout
  if (status === 'SUCCESS') return { name: checkout.refunded ? 'refunded' : 'paid' }
  if (mismatch !== null) return { name: 'amountMismatch', mismatch }
  if (status === 'CANCELLED') return { name: 'cancelled' }
  const reason = status === 'PENDING' ? undefined : (checkout.failureReason ?? 'other')
  if (now >= expiresAt) {
    if (!isOver(checkout, now)) return { name: 'timeUp' }
    return reason === undefined ? { name: 'expired' } : { name: 'failed', reason }
  }
  if (checkout.merchantDisabled) return { name: 'closed' }
  const attempted = attemptedAt?.getTime() ?? 0
  // An attempt that was reported after the customer opened the app is the result that they wait for.
  if (visit.openedAppAt !== undefined && attempted < visit.openedAppAt.getTime()) return { name: 'waiting' }
  const attempt: AttemptReason | undefined = checkout.isUnreadable ? 'unconfirmed' : reason
  if (attempt === undefined) return { name: 'open' }
  const tone = TONES[attempt]
  const isConfirmed = visit.unpaidAttemptAt?.getTime() === attempted
  return {
    name: 'attemptFailed',
    reason: attempt,
    tone,
    offersToPay: tone === 'retry' || (tone === 'wait' && isConfirmed),
  }
}

const FINAL: readonly PageState['name'][] = ['paid', 'refunded', 'failed', 'expired', 'cancelled']

/** Whether nothing changes the state anymore, except for a late payment or a refund. */
export const isFinal = ({ name }: PageState): boolean => FINAL.includes(name)

/** Whether a page in this state offers a way to pay. */
export const offersToPay = (state: PageState): boolean =>
  state.name === 'open' || (state.name === 'attemptFailed' && state.offersToPay)

/** Whether the order can still be paid, whatever its page offers. */
export const isPayable = (
  { status, expiresAt, merchantDisabled }: Pick<Checkout, 'status' | 'expiresAt' | 'merchantDisabled'>,
  now: Date,
): boolean => status !== 'SUCCESS' && status !== 'CANCELLED' && now < expiresAt && !merchantDisabled

/**
 * Text that changes whenever an open page has to be drawn again: the state's name and, after a failed attempt, its
 * reason, which may be reported later, and its time, so that a second attempt that fails for the same reason is noticed
 * too. It does not depend on the visit.
 */
export function stateKey(checkout: PaymentState & { refunded?: boolean }, now: Date): string {
  const state = pageState(checkout, now)
  if (state.name !== 'attemptFailed') return state.name
  return `${state.name}-${state.reason}-${checkout.attemptedAt?.getTime()}`
}
