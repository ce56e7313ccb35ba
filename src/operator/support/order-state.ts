import { type CustomerFacts, customerText, refundsOf } from '../../gateway/checkout/customer-text.ts'
import { pageState } from '../../gateway/checkout/page-state.ts'
import { LANGUAGES, type Language, textsFor } from '../../gateway/checkout/texts.ts'
import { FAILURE_REASONS } from '../../gateway/payments/failure-reasons.ts'
import { EXPIRY_GRACE_MINUTES, isAbandoned } from '../../gateway/payments/outcome.ts'
import { txnStatusOf } from '../../gateway/payments/payment-status.ts'
import { toIstDay, toIstText } from '../../platform/time.ts'
import type { PaymentChange, PaymentHistory } from './payment-history.ts'

type Order = Pick<PaymentHistory, 'status' | 'expiresAt' | 'isUnreadable' | 'changes'>

/** Returns an order's status as checkPaymentStatus returns it. */
export const orderStatus = (order: Omit<Order, 'changes'>, now: Date) => txnStatusOf(order, now)

/**
 * Returns an order's status as checkPaymentStatus returns it, its state in words for support staff, and its last failed
 * attempt unless the order is paid.
 */
export function orderState(order: Order, now: Date) {
  const status = orderStatus(order, now)
  const attempt = lastAttemptOf(order)
  const lastAttempt = attempt && { status: attempt.status, reason: attempt.failureReason, at: attempt.changedAt }
  return { status, state: describe(order, now).join(' · '), lastAttempt: lastAttempt ?? null }
}

const lastAttemptOf = ({ status, changes }: Order): PaymentChange | undefined =>
  status === 'SUCCESS'
    ? undefined
    : changes.findLast((change) => change.status === 'FAIL' || change.status === 'REJECT')

/** Returns the parts of the state, of which the first is one word. */
function describe(order: Order, now: Date): string[] {
  const { status, expiresAt, isUnreadable } = order
  if (status === 'SUCCESS') return ['Paid']
  if (status === 'CANCELLED') return ['Cancelled']
  if (isUnreadable) return ['Open', 'the acquirer’s response could not be read']
  const attempt = lastAttemptOf(order)
  const failure = attempt ? [`last attempt failed: ${reasonText(attempt.failureReason)}`] : []
  if (isAbandoned(expiresAt, now)) return [status === 'PENDING' ? 'Expired' : 'Failed', ...failure]
  if (now < expiresAt) return ['Open', ...failure, `can be paid until ${clockText(expiresAt, now)}`]
  const reportedUntil = new Date(expiresAt.getTime() + EXPIRY_GRACE_MINUTES * 60_000)
  return ['Expired', ...failure, `a payment may still be reported until ${clockText(reportedUntil, now)}`]
}

/** Formats a failure reason in words: `wrong_pin` becomes `wrong PIN`. */
const reasonText = (reason: string | null) => (reason ?? 'other').replaceAll('_', ' ').replace(/\bpin\b/, 'PIN')

/** Formats a time as `22:47` in IST, preceded by the day unless it is today. */
function clockText(moment: Date, now: Date): string {
  const minutes = toIstText(moment).slice(0, 16)
  return toIstDay(moment) === toIstDay(now) ? minutes.slice(11) : minutes
}

/** Returns what support says to a customer about an order, in each language of the pay page. */
export function customerTexts(history: PaymentHistory, now: Date): Record<Language, string> {
  const { amount, payeeName: name, utr, bankReference, changes, refunds, secondPayments } = history
  const payment = changes.find(({ status }) => status === 'SUCCESS')
  const facts: CustomerFacts = {
    amount,
    name,
    reference: bankReference ?? utr,
    paidAt: payment ? (payment.paidAt ?? payment.changedAt) : null,
    refunds: refundsOf(refunds, utr),
    secondPayments: secondPayments.map((second) => ({ payment: second, refunds: refundsOf(refunds, second.utr) })),
  }
  const state = pageState(stateFacts(history, facts), now)
  const texts = LANGUAGES.map((language) => [language, customerText(facts, state, textsFor(undefined, language))])
  return Object.fromEntries(texts)
}

/** Returns the facts from which the pay page derives its state. */
function stateFacts(history: PaymentHistory, { amount, refunds }: CustomerFacts) {
  const { status, exceptions } = history
  const attempt = status === 'FAIL' || status === 'REJECT' ? lastAttemptOf(history) : undefined
  const mismatch = exceptions.findLast(
    (one) => one.kind === 'amount differs' && one.status === 'SUCCESS' && one.resolution === null,
  )
  const returned = refunds.reduce((sum, one) => (one.status === 'SUCCESS' ? sum + one.amount : sum), 0)
  return {
    ...history,
    failureReason: FAILURE_REASONS.find((reason) => reason === attempt?.failureReason) ?? null,
    attemptedAt: attempt?.changedAt ?? null,
    mismatch: mismatch ? { amount: mismatch.amount ?? 0, utr: mismatch.utr } : null,
    refunded: returned >= amount,
  }
}
