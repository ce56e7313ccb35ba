import { type Paise, toDecimalText } from '../../platform/money.ts'
import { toIstDay } from '../../platform/time.ts'
import { addDays, type BankDays, type Days } from '../ledger/bank-days.ts'
import type { Unnamed } from '../ledger/differences.ts'
import {
  type DifferingPayout,
  differingPayouts,
  type JudgedPayout,
  type UndeductedRefund,
} from '../ledger/judge-payouts.ts'
import type { ExceptionOfMoney, Ledger, TakenBackRow } from '../ledger/read-ledger.ts'

/**
 * The payouts of these days by sums that differ from the payments they are for, and the sums that the bank has taken back.
 * Payouts of the day that is known and later are not judged, since the bank may still pay. Exceptions and refunds whose amounts
 * make a difference are named as its likely cause.
 */
export async function compareSums(
  ledger: Ledger,
  payouts: readonly JudgedPayout[],
  undeducted: readonly UndeductedRefund[],
  { from, to }: Days,
): Promise<Unnamed[]> {
  const { bankDays, known, mid } = ledger
  const { bankDayFrom, nextBankDay, previousBankDay } = bankDays
  const bySums = payouts.filter(({ form, day }) => form === 'by sums' && day < toIstDay(known))
  const [first, last] = [bySums[0], bySums.at(-1)]
  if (first === undefined || last === undefined) return []
  const payoutOf = ({ account, day }: TakenBackRow) =>
    bySums.find((payout) => payout.account === account && payout.day === bankDayFrom(day))
  const rows = await ledger.takenBackRows({ from: addDays(previousBankDay(first.day), 1), to: last.day })
  const takenBack = rows.filter((row) => {
    const payout = payoutOf(row)
    // A sum that was paid once more on its day has taken nothing back.
    return payout !== undefined && payout.unnamed !== payout.leftPaid
  })
  const backOf = (payout: JudgedPayout) =>
    takenBack.filter((row) => payoutOf(row) === payout).reduce((sum, { gross }) => sum + gross, 0)
  const differing = differingPayouts(bySums, undeducted, backOf, bankDays)
  const none = { mid, orderId: null, utr: null, exceptionId: null, resolution: null }
  const { all } = await ledger.exceptions()
  const isAsked = ({ day }: { day: string }) => day >= from && day <= to
  const differences = differing.filter(isAsked).map((payout): Unnamed => {
    const { account, day, paid, settled } = payout
    const isOfPayout = (one: { day: string }) => nextBankDay(one.day) === day
    const likely = spellLikely(all.filter(isOfPayout), undeducted.filter(isOfPayout), settled - paid)
    const cause = `${causeOfSums(payout, bankDays)}${likely}`
    const of = { ...none, settlementUtr: null, ...(account !== null && { account }) }
    return { ...of, day, kind: 'payout total', paid, settled, cause }
  })
  const returned = takenBack.filter(isAsked).map(({ day, utr, gross }): Unnamed => {
    const of = { ...none, day, settlementUtr: utr, paid: gross, settled: null }
    return { ...of, kind: 'reversal', cause: 'the settlement was SUCCESS and is FAILED' }
  })
  return [...differences, ...returned]
}

function causeOfSums(
  { day, paid, refunded, settled, account }: DifferingPayout,
  { previousBankDay }: BankDays,
): string {
  const first = previousBankDay(day)
  const last = addDays(day, -1)
  const less = refunded === 0 ? '' : `, less refunds of ${toDecimalText(refunded)}`
  const days = `${first === last ? first : `${first} to ${last}`}${less}${account === null ? '' : ` by ${account}`}`
  if (settled === 0) return `nothing was settled of the payments of ${days}`
  const difference = settled > paid ? `${toDecimalText(settled - paid)} more` : `${toDecimalText(paid - settled)} less`
  return `${difference} than the payments of ${days}`
}

/**
 * `; likely exception 5f0c… (double payment of 200.00, open)`: the one exception or refund that makes the sum, else all of the
 * payout where they make it together; empty where neither does.
 */
function spellLikely(
  exceptions: readonly ExceptionOfMoney[],
  undeducted: readonly UndeductedRefund[],
  sum: Paise,
): string {
  const candidates = [
    ...exceptions.map(({ exceptionId, kind, amount, resolution }) => ({
      paise: kind === 'failure after success' ? -amount : amount,
      text: `exception ${exceptionId} (${kind} of ${toDecimalText(amount)}, ${resolution === null ? 'open' : 'resolved'})`,
    })),
    ...undeducted.map(({ refundId, amount }) => ({
      paise: amount,
      text: `refund ${refundId} (of ${toDecimalText(amount)}, not deducted)`,
    })),
  ]
  const exact = candidates.filter(({ paise }) => paise === sum)
  const isSum = candidates.reduce((total, { paise }) => total + paise, 0) === sum
  const likely = exact.length === 1 ? exact : isSum ? candidates : []
  return likely.length === 0 ? '' : `; likely ${likely.map(({ text }) => text).join(' and ')}`
}
