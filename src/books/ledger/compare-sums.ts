import { DISPUTE_DAYS } from '../../gateway/disputes/dispute.ts'
import { type Paise, toDecimalText } from '../../platform/money.ts'
import { addDays, type BankDays } from './bank-days.ts'
import type { Finding } from './discrepancies.ts'
import type { DisputedAmount, Facts, MoneyException, ReversedLine } from './facts.ts'
import {
  type DifferingPayout,
  differingPayouts,
  type JudgedPayout,
  payoutKey,
  payoutOf,
  type UndeductedRefund,
} from './judge-payouts.ts'

/**
 * Returns the payouts by totals on these days that differ from their payments, and the totals that the bank has
 * reversed. Skips payouts dated `today` or later, because the bank may still pay. The cause names exceptions and
 * refunds whose amounts explain the discrepancy.
 */
export function compareSums(
  { mid, days: { from, to }, today, bankDays, exceptions, disputes, reversed, namedSince }: Facts,
  payouts: readonly JudgedPayout[],
): Finding[] {
  const { bankDayFrom, nextBankDay } = bankDays
  const bySums = payouts.filter(({ form, day }) => form === 'by sums' && day < today)
  const totals = new Map(bySums.map((payout) => [payoutKey(payout), payout]))
  const totalOf = ({ acquirer, day }: ReversedLine) =>
    totals.get(payoutKey(payoutOf({ acquirer, day: bankDayFrom(day) }, namedSince)))
  const reversals = reversed.filter((line) => {
    const payout = totalOf(line)
    // If the bank paid the total again on the same day, the total is not reversed.
    return payout !== undefined && payout.unnamed !== payout.paid - payout.refunded
  })
  const backOf = (payout: JudgedPayout) =>
    reversals.filter((line) => totalOf(line) === payout).reduce((sum, { gross }) => sum + gross, 0)
  const none = { mid, orderId: null, utr: null, exceptionId: null, resolution: null }
  const isRequested = ({ day }: { day: string }) => day >= from && day <= to
  const differing = differingPayouts(bySums, backOf, bankDays).filter(isRequested)
  const discrepancies = differing.map((payout): Finding => {
    const { acquirer, day, paid, settled, refunds } = payout
    const ofDays = exceptions.filter((one) => nextBankDay(one.day) === day)
    const earlier = disputes.filter((one) => one.day <= day && one.day >= addDays(day, -DISPUTE_DAYS))
    const likely = formatLikely(ofDays, refunds, settled - paid) || formatDispute(earlier, settled - paid)
    const cause = `${causeOf(payout, bankDays)}${likely}`
    const found = { ...none, settlementUtr: null, day, kind: 'payout total' as const, paid, settled, cause }
    return acquirer === null ? found : { ...found, account: acquirer }
  })
  const returned = reversals.filter(isRequested).map(({ day, utr, gross }): Finding => {
    const cause = 'the settlement changed from SUCCESS to FAILED'
    return { ...none, day, settlementUtr: utr, paid: gross, settled: null, kind: 'reversal', cause }
  })
  return [...discrepancies, ...returned]
}

/** Formats the only dispute with the amount of the difference, which a total may deduct or, if it was won, return. */
function formatDispute(disputes: readonly DisputedAmount[], difference: Paise): string {
  const fitting = disputes.filter(
    ({ status, amount }) => (status === 'won' ? Math.abs(difference) : -difference) === amount,
  )
  const [one] = fitting
  if (one === undefined || fitting.length > 1) return ''
  const { disputeId, amount, status } = one
  return `; likely dispute ${disputeId} (of ${toDecimalText(amount)}, ${status}): resolve it --as chargeback`
}

function causeOf({ day, paid, refunded, settled, acquirer }: DifferingPayout, { previousBankDay }: BankDays): string {
  const first = previousBankDay(day)
  const last = addDays(day, -1)
  const back = refunded > 0 ? 'less refunds' : 'plus returned refunds'
  const less = refunded === 0 ? '' : `, ${back} of ${toDecimalText(Math.abs(refunded))}`
  const days = `${first === last ? first : `${first} to ${last}`}${less}${acquirer === null ? '' : ` through ${acquirer}`}`
  if (settled === 0) return `nothing was settled for the payments of ${days}`
  const difference = settled > paid ? `${toDecimalText(settled - paid)} more` : `${toDecimalText(paid - settled)} less`
  return `${difference} than the payments of ${days}`
}

/**
 * Formats the likely explanation, such as `; likely exception 5f0c… (amount differs of 200.00, open)`. The explanation
 * is the only exception or refund with the amount of the difference, otherwise all exceptions and refunds if they add
 * up to the difference. Returns an empty text if no exception or refund explains the difference.
 */
function formatLikely(
  exceptions: readonly MoneyException[],
  undeducted: readonly UndeductedRefund[],
  difference: Paise,
): string {
  const candidates = [
    ...exceptions.map(({ exceptionId, kind, amount, resolution }) => ({
      // The payments already include a recorded duplicate payment, so the duplicate payment can explain only a payout
      // that is too small.
      paise: kind === 'failure after success' || (kind === 'double payment' && difference < 0) ? -amount : amount,
      text: `exception ${exceptionId} (${kind} of ${toDecimalText(amount)}, ${resolution === null ? 'open' : 'resolved'})`,
    })),
    ...undeducted.map(({ refundId, amount }) => ({
      paise: amount,
      text: `refund ${refundId} (of ${toDecimalText(Math.abs(amount))}, ${amount > 0 ? 'not deducted' : 'returned, not paid out again'})`,
    })),
  ]
  const exact = candidates.filter(({ paise }) => paise === difference)
  const isSum = candidates.reduce((total, { paise }) => total + paise, 0) === difference
  const likely = exact.length === 1 ? exact : isSum ? candidates : []
  return likely.length === 0 ? '' : `; likely ${likely.map(({ text }) => text).join(' and ')}`
}
