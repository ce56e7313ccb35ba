import { EXPIRY_GRACE_MINUTES, isAbandoned } from '../../gateway/payments/outcome.ts'
import type { PaymentException } from '../../gateway/payments/read-exceptions.ts'
import type { Refund } from '../../gateway/refunds/refund.ts'
import { counted, toIndianRupees } from '../../platform/money.ts'
import { toIstTime } from '../../platform/time.ts'
import type { NotifiedMerchant, PaymentChange, PaymentHistory, SettledPayment } from './payment-history.ts'

/** One step in a payment's history, and its result if it has one. `by` is the party that reported or caused the step. */
export type Step = { at: Date; what: string; by: string | null; result?: 'success' | 'failure' | undefined }

/**
 * Returns a payment's history in chronological order. The texts are worded so that support staff can read them out on
 * the telephone.
 */
export function stepsOf(history: PaymentHistory, now: Date): Step[] {
  const { amount, createdAt, expiresAt, isUnreadable, changes, exceptions, refunds, webhooks, settlements } = history
  const ended = changes.find((change) => change.status === 'SUCCESS' || change.status === 'CANCELLED')?.changedAt ?? now
  const steps: Step[] = [
    { at: createdAt, what: `order of ${toIndianRupees(amount)} created`, by: 'merchant' },
    ...changes.map(ofChange),
    ...exceptions.flatMap(ofException),
    ...refunds.flatMap(ofRefund),
    ...webhooks.map(ofWebhook),
    ...settlements.map(ofSettlement),
  ]
  if (expiresAt <= ended) steps.push({ at: expiresAt, what: 'time to pay expired', by: null })
  if (!isUnreadable && isAbandoned(expiresAt, ended)) {
    const at = new Date(expiresAt.getTime() + EXPIRY_GRACE_MINUTES * 60_000)
    steps.push({ at, what: 'final status: checkPaymentStatus returns a failure from here on', by: null })
  }
  return steps.sort((a, b) => a.at.getTime() - b.at.getTime())
}

function ofChange(change: PaymentChange): Step {
  const { status, utr, paidAt, reason, toldBy: reportedBy, note, failureReason, failureCode, changedAt } = change
  const failure = failureCode ? `${failureReason} (${failureCode})` : failureReason
  const facts = [failure, utr && `UTR ${utr}`, paidAt && `at the bank ${toIstTime(paidAt)}`, note].filter(
    (fact) => fact,
  )
  const by = reportedBy ?? reason
  if (status === 'CANCELLED') return { at: changedAt, what: 'cancelled', by }
  const what = status === 'SUCCESS' ? 'paid' : `attempt failed: ${status}`
  return { at: changedAt, what: [what, ...facts].join(', '), by, result: status === 'SUCCESS' ? 'success' : 'failure' }
}

function ofException(exception: PaymentException): Step[] {
  const { id, kind, status, utr, amount, receivedAt, toldBy, note, resolution, resolvedBy, resolvedAt } = exception
  const facts = [status, utr && `UTR ${utr}`, amount !== null && toIndianRupees(amount), note].filter((fact) => fact)
  const stored = { at: receivedAt, what: `exception ${id}: ${[kind, ...facts].join(', ')}`, by: toldBy }
  if (resolvedAt === null) return [{ ...stored, what: `${stored.what}; still open`, result: 'failure' }]
  const what = `exception ${id} resolved: ${resolution}`
  return [stored, { at: resolvedAt, what, by: resolvedBy, result: 'success' }]
}

function ofRefund(refund: Refund): Step[] {
  const { ourRefundId: id, amount, note, sentAt, acquirer, status, reference, reason, endedAt, succeededAt } = refund
  const created = `refund ${id} of ${toIndianRupees(amount)} requested: ${note}`
  const open = reason ? `; still open: ${reason}` : '; still open'
  const steps: Step[] = [{ at: refund.createdAt, what: `${created}${endedAt ? '' : open}`, by: refund.createdBy }]
  if (sentAt) steps.push({ at: sentAt, what: `refund ${id} sent to ${acquirer}`, by: null })
  if (succeededAt) {
    const what = `refund ${id} SUCCESS${reference && `, reference ${reference}`}`
    const returned = `refund ${id} returned by the bank, reference ${refund.returnReference}: ${reason}`
    const success: Step = { at: succeededAt, what, by: null, result: 'success' }
    return [...steps, success, { at: endedAt as Date, what: returned, by: refund.returnedBy, result: 'failure' }]
  }
  const detail = status === 'SUCCESS' ? reference && `, reference ${reference}` : reason && `: ${reason}`
  const result = status === 'SUCCESS' ? 'success' : 'failure'
  if (endedAt) steps.push({ at: endedAt, what: `refund ${id} ${status}${detail || ''}`, by: null, result })
  return steps
}

function ofWebhook(event: NotifiedMerchant): Step {
  const { type, url, occurredAt, attempts, deliveredAt, dueAt, attemptedAt, outcome } = event
  const to = url === null ? 'the return-URL callback' : `${type} to ${url}`
  if (outcome === 'reported' && deliveredAt) {
    const what = 'merchant received SUCCESS from checkPaymentStatus: no more return-URL callbacks'
    return { at: deliveredAt, what, by: 'merchant', result: 'success' }
  }
  const notified = `merchant notified: ${to}, response ${outcome}`
  if (deliveredAt) return { at: deliveredAt, what: notified, by: 'webhook', result: 'success' }
  const tried = attempts > 0 ? `${counted(attempts, 'attempt')}, the last: ${outcome}` : 'no attempt yet'
  const next = dueAt ? `next at ${toIstTime(dueAt)}` : 'abandoned'
  const what = `merchant not notified: ${to}, ${tried}, ${next}`
  return { at: attemptedAt ?? occurredAt, what, by: 'webhook', result: attempts > 0 ? 'failure' : undefined }
}

function ofSettlement({ utr, amount, fee, tax, status, initiatedAt }: SettledPayment): Step {
  const stored = [fee !== null && `fee ${toIndianRupees(fee)}`, tax !== null && `tax ${toIndianRupees(tax)}`].filter(
    (part) => part,
  )
  const what = [`settled: ${status}, UTR ${utr}, ${toIndianRupees(amount)}`, ...stored].join(', ')
  return { at: initiatedAt, what, by: 'bank', result: status === 'SUCCESS' ? 'success' : undefined }
}
