import type { Days } from './bank-days.ts'
import { compareSums } from './compare-sums.ts'
import type { Finding } from './discrepancies.ts'
import type { Facts, MerchantFacts } from './facts.ts'
import { type Item, judgeItem } from './judge-item.ts'
import {
  type JudgedPayout,
  judgePayouts,
  type KnownForms,
  type PayoutFacts,
  type PayoutForm,
  payoutKey,
  payoutOf,
  type ReturnedRefund,
} from './judge-payouts.ts'
import type { SuccessfulRefund } from './match-deductions.ts'
import { addSums, noSums, type Sums } from './sums.ts'

/** How the settlement lines of a period refer to payments. */
export type FileForm = PayoutForm | 'by payment and by sums'

/** The judged days of a merchant before operator entries are applied. */
export type JudgedDays = {
  form: FileForm
  /** The sums of each day with movements. */
  byDay: Map<string, Sums>
  /** Payouts by totals with a discrepancy. */
  findings: Finding[]
  /** Returns whether a payment without any other movement is a discrepancy. */
  isMissed: (payment: { day: string; acquirer: string | null }) => boolean
  /** Returns the discrepancies of these items that fall on the judged days. */
  judgeItems: (items: readonly Item[]) => Finding[]
}

/** Judges the facts of a period. The function is pure: it reads no database, so that tests can pass any facts. */
export function judge(facts: Facts): JudgedDays {
  const { matched, bankDays, days } = facts
  const { payouts, formOf } = judgePayouts(payoutFacts(facts), facts.knownForms, bankDays)
  // An item may have movements far outside the window, where the form is irrelevant, because such movements are no
  // discrepancies of these days.
  const anyFormOf = (acquirer: string | null, bankDay: string) => formOf(acquirer, bankDay) ?? 'by sums'
  const judging = { ...matched, ...bankDays, isJudged: isJudgedBy(facts), formOf: anyFormOf }
  return {
    form: formOfPayouts(payouts, facts),
    byDay: sumUp(facts, isAwaited),
    findings: compareSums(facts, payouts),
    isMissed: ({ day, acquirer }) =>
      judging.isJudged(day) && anyFormOf(acquirer, bankDays.nextBankDay(day)) === 'by payment',
    judgeItems: (items) => items.flatMap((item) => judgeItem(item, judging)).filter(({ day }) => isWithin(days, day)),
  }

  /**
   * Returns whether the payout of a payment is still awaited. A payout expected after the period is awaited, because a
   * later report judges the payout.
   */
  function isAwaited(acquirer: string | null, day: string): boolean {
    const pending = bankDays.nextBankDay(day)
    return pending > days.to || !judging.isJudged(day) || anyFormOf(acquirer, pending) === 'by payment'
  }
}

/**
 * Returns the discrepancies of items without regard to days, to find the discrepancies that a resolved exception
 * explains. `forms` has the payouts of the payments that failed after their success; other forms are irrelevant.
 */
export function judgeExplained(facts: MerchantFacts, forms: KnownForms, items: readonly Item[]): Finding[] {
  const formOf = (acquirer: string | null, day: string): PayoutForm =>
    forms.get(payoutKey(payoutOf({ acquirer, day }, facts.namedSince))) ?? 'by sums'
  const judging = { ...facts.matched, ...facts.bankDays, isJudged: isJudgedBy(facts), formOf }
  return items.flatMap((item) => judgeItem(item, judging))
}

const isWithin = ({ from, to }: Days, day: string) => day >= from && day <= to

/**
 * Returns whether a day is judged. A day is judged only after the bank day on which the day's payments are paid out.
 */
const isJudgedBy =
  ({ bankDays, today }: MerchantFacts) =>
  (day: string) =>
    bankDays.nextBankDay(day) < today

/** Returns the refunds that no settlement line deducts. */
export const undeductedOf = ({ refunds, matched }: MerchantFacts): SuccessfulRefund[] =>
  refunds.filter(({ refundId }) => !matched.rowOf.has(refundId) && !matched.netted.has(refundId))

/** Returns the refunds that the bank has returned. */
const returnedOf = ({ refunds, matched }: MerchantFacts): ReturnedRefund[] =>
  refunds.flatMap((refund) => {
    const { refundId, returnedOn } = refund
    if (returnedOn === null) return []
    return [{ ...refund, returnedOn, isDeducted: matched.rowOf.has(refundId) || matched.netted.has(refundId) }]
  })

/**
 * Selects the facts that decide the payouts in the window. Subtracts payments whose failure an operator has resolved.
 */
export function payoutFacts(facts: Omit<Facts, 'knownForms'>): PayoutFacts {
  const { window, paid, settled, failed, namedSince, bankDays } = facts
  const failures = failed.map(({ acquirer, day, amount }) => {
    return { acquirer, day, settledDay: null, count: -1, paid: -amount }
  })
  const isPaidOut = ({ day }: { day: string }) => day >= window.from && bankDays.nextBankDay(day) <= window.to
  return {
    window,
    namedSince,
    paid: [...paid, ...failures].filter(isPaidOut),
    // The payout on the window's first day also covers payments before the window, so the first day is excluded.
    settled: settled.filter(({ day }) => day > window.from),
    undeducted: undeductedOf(facts).filter(isPaidOut),
    returned: returnedOf(facts),
  }
}

function formOfPayouts(payouts: readonly JudgedPayout[], { days: { from, to }, bankDays }: Facts): FileForm {
  const requested = payouts.filter(({ day }) => day >= from && day <= bankDays.nextBankDay(to))
  const [first = 'by sums', ...others] = new Set(requested.map(({ form }) => form))
  return others.length > 0 ? 'by payment and by sums' : first
}

function sumUp(
  { days, paid, settled, ...facts }: Facts,
  isAwaited: (acquirer: string | null, day: string) => boolean,
): Map<string, Sums> {
  const byDay = new Map<string, Sums>()
  for (const { day, settledDay, acquirer, count, paid: sum, isDuplicate } of paid) {
    if (!isWithin(days, day)) continue
    const sums = sumsAt(byDay, day)
    if (isDuplicate) sums.duplicates += sum
    else {
      sums.paidCount += count
      sums.paid += sum
    }
    if (settledDay === null && isAwaited(acquirer, day)) sums.awaited += sum
  }
  // A refund before the settlement reduces the awaited amount, because the bank pays out only the remaining amount.
  for (const { paidOn: day, acquirer, amount, settled: line, returnedOn } of undeductedOf(facts)) {
    if (line !== null || !isAwaited(acquirer, day)) continue
    if (isWithin(days, day)) sumsAt(byDay, day).awaited -= amount
    if (returnedOn !== null && isWithin(days, returnedOn)) sumsAt(byDay, returnedOn).awaited += amount
  }
  for (const { day, settledCount, gross, fee, tax, net, disputed } of settled) {
    if (isWithin(days, day)) addSums(sumsAt(byDay, day), { ...noSums(), settledCount, gross, fee, tax, net, disputed })
  }
  for (const { day, amount, returnedOn } of facts.refunds) {
    if (isWithin(days, day)) sumsAt(byDay, day).refunded += amount
    if (returnedOn !== null && isWithin(days, returnedOn)) sumsAt(byDay, returnedOn).refunded -= amount
  }
  return byDay
}

/** Returns the sums of a day. If the day has no sums, creates sums of zero. */
export function sumsAt(byDay: Map<string, Sums>, day: string): Sums {
  const sums = byDay.get(day) ?? noSums()
  byDay.set(day, sums)
  return sums
}
