import type { Days } from '../ledger/bank-days.ts'
import type { Finding } from '../ledger/discrepancies.ts'
import type { Facts, MerchantFacts } from '../ledger/facts.ts'
import { type Item, judgeItem, type PayoutForm } from '../ledger/judge-item.ts'
import { type JudgedPayout, judgePayouts } from '../ledger/judge-payouts.ts'
import { compareSums } from './compare-sums.ts'
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
  const { matched, bankDays, days, refunds } = facts
  const undeducted = refunds.filter(({ refundId }) => !matched.rowOf.has(refundId) && !matched.netted.has(refundId))
  const { payouts, formOf } = judgePayouts(payoutFacts(facts, undeducted), bankDays)
  const judging = { ...matched, ...bankDays, isJudged: isJudgedBy(facts), formOf: knownFormOf }
  return {
    form: formOfPayouts(payouts, facts),
    byDay: sumUp(facts, undeducted, isAwaited),
    findings: compareSums(facts, payouts, undeducted),
    isMissed: ({ day, acquirer }) =>
      judging.isJudged(day) && knownFormOf(acquirer, bankDays.nextBankDay(day)) === 'by payment',
    judgeItems: (items) => items.flatMap((item) => judgeItem(item, judging)).filter(({ day }) => isWithin(days, day)),
  }

  /**
   * Returns the form of a payout. An item may have lines far outside the window, where the form is irrelevant, because
   * lines outside the window are not discrepancies of these days.
   */
  function knownFormOf(acquirer: string | null, bankDay: string): PayoutForm {
    const form = formOf(acquirer, bankDay)
    if (form === undefined && bankDay > facts.window.from && bankDay <= facts.window.to)
      throw new Error(`the payout of ${bankDay} by ${acquirer} is not among the facts of ${facts.mid}`)
    return form ?? 'by sums'
  }

  /**
   * Returns whether the payout of a payment is still awaited. A payout expected after the period is awaited, because a
   * later report judges the payout.
   */
  function isAwaited(acquirer: string | null, day: string): boolean {
    const pending = bankDays.nextBankDay(day)
    return pending > days.to || !judging.isJudged(day) || knownFormOf(acquirer, pending) === 'by payment'
  }
}

/**
 * Returns the discrepancies of items without regard to days and payout forms, to find the discrepancies that a resolved
 * exception explains.
 */
export function judgeWithoutPayouts(facts: MerchantFacts, items: readonly Item[]): Finding[] {
  const judging = { ...facts.matched, ...facts.bankDays, isJudged: isJudgedBy(facts), formOf: () => 'by sums' as const }
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

/**
 * Selects the facts that decide the payouts in the window. Subtracts payments whose failure an operator has resolved.
 */
function payoutFacts({ window, paid, settled, failed, formBefore }: Facts, undeducted: Facts['refunds']) {
  const failures = failed.map(({ acquirer, day, amount }) => {
    return { acquirer, day, settledDay: null, count: -1, paid: -amount }
  })
  return {
    paid: [...paid, ...failures].filter(({ day }) => isWithin(window, day)),
    // The payout on the window's first day also covers payments before the window, so the first day is excluded.
    settled: settled.filter(({ day }) => day > window.from),
    undeducted: undeducted.filter(({ day }) => isWithin(window, day)),
    formBefore,
  }
}

function formOfPayouts(payouts: readonly JudgedPayout[], { days: { from, to }, bankDays }: Facts): FileForm {
  const requested = payouts.filter(({ day }) => day >= from && day <= bankDays.nextBankDay(to))
  const [first = 'by sums', ...others] = new Set(requested.map(({ form }) => form))
  return others.length > 0 ? 'by payment and by sums' : first
}

function sumUp(
  { days, paid, settled, refunds }: Facts,
  undeducted: Facts['refunds'],
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
  for (const { paidOn: day, acquirer, amount, settled: line } of undeducted) {
    if (isWithin(days, day) && line === null && isAwaited(acquirer, day)) sumsAt(byDay, day).awaited -= amount
  }
  for (const { day, settledCount, gross, fee, tax, net } of settled) {
    if (isWithin(days, day)) addSums(sumsAt(byDay, day), { ...noSums(), settledCount, gross, fee, tax, net })
  }
  for (const { day, amount } of refunds) if (isWithin(days, day)) sumsAt(byDay, day).refunded += amount
  return byDay
}

/** Returns the sums of a day. If the day has no sums, creates sums of zero. */
export function sumsAt(byDay: Map<string, Sums>, day: string): Sums {
  const sums = byDay.get(day) ?? noSums()
  byDay.set(day, sums)
  return sums
}
