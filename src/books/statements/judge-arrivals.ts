import { addPaise, type Paise } from '../../platform/money.ts'
import { addDays, type BankDays, type Days } from '../ledger/bank-days.ts'
import { groupBy, sumOf } from '../ledger/match-deductions.ts'

/**
 * The possible results of comparing a payout with bank statements. If the states at several bank accounts differ, the
 * first state in this list takes precedence. No report treats `perhaps` as received.
 */
export const ARRIVAL_STATES = [
  /** The bank credited the payout and debited it again. */
  'taken back',
  'arrived',
  'arrived twice',
  'amount differs',
  /** Credits on the expected days have the payout's amount but another reference, so the operator decides. */
  'perhaps',
  'not arrived',
  /** No statement covers the days on which the payout is expected. */
  'not known',
] as const

export type ArrivalState = (typeof ARRIVAL_STATES)[number]

/** A payout to search for in a statement. Its references are normalized. `expected` is its amount in paise. */
export type AwaitedPayout = { references: readonly string[]; day: string; expected: Paise }

/**
 * A statement line. Its references are normalized and include the reference that an operator has matched. `amount` is
 * in paise, and negative for a debit.
 */
export type BankLine = {
  importId: number
  line: number
  day: string
  amount: Paise
  references: readonly string[]
}

/**
 * The state of a payout according to the statements. `arrivedOn` and `statement` (import and line) describe the last
 * credit; for `perhaps`, `statement` lists every candidate. `credited` is the sum of all lines of the payout in paise,
 * and `difference` is `credited` minus the expected amount.
 */
export type Arrival = {
  arrival: ArrivalState
  arrivedOn: string | null
  credited: Paise | null
  difference: Paise | null
  statement: string | null
}

/** Number of bank days within which a bank account receives a transfer. */
const ARRIVES_WITHIN = 3

/**
 * Decides which payouts one bank account received. A line belongs to a payout only if the line contains the payout's
 * whole reference; the amount alone never suffices. The amount of a line that names several payouts is expected to be
 * the sum of these payouts. `coveredFor` returns the days on which the statements contain every line that may match the
 * payout.
 */
export function judgeArrivals<P extends AwaitedPayout>(
  payouts: readonly P[],
  lines: readonly BankLine[],
  coveredFor: (payout: P) => readonly Days[],
  { nextBankDay }: BankDays,
): Map<P, Arrival> {
  const byReference = groupBy(
    lines.flatMap((line) => line.references.map((reference) => ({ line, reference }))),
    ({ reference }) => reference,
  )
  const linesOf = new Map(
    payouts.map((payout) => {
      const named = payout.references.flatMap((reference) => byReference.get(reference) ?? [])
      return [payout, [...new Set(named.map(({ line }) => line))]]
    }),
  )
  const payoutsOf = new Map<BankLine, P[]>()
  for (const [payout, named] of linesOf)
    for (const line of named) payoutsOf.set(line, [...(payoutsOf.get(line) ?? []), payout])

  const unnamed = groupBy(
    lines.filter((line) => line.amount > 0 && !payoutsOf.has(line)),
    ({ amount }) => String(amount),
  )
  const isCovered = (from: string, to: string, covered: readonly Days[]): boolean =>
    from > to ||
    (covered.some((days) => days.from <= from && from <= days.to) && isCovered(addDays(from, 1), to, covered))

  function judge(payout: P): Arrival {
    const named = linesOf.get(payout) ?? []
    if (named.length > 0) return judgeLines(named, [...new Set(named.flatMap((line) => payoutsOf.get(line) ?? []))])
    const nothing = { arrivedOn: null, credited: null, difference: null, statement: null }
    // If deductions exceed the payments in a payout, the acquirer transfers nothing, so no credit is expected.
    if (payout.expected <= 0) return { ...nothing, arrival: 'not known' }
    const lastDay = Array.from({ length: ARRIVES_WITHIN }).reduce<string>(nextBankDay, payout.day)
    const ofAmount = unnamed.get(String(payout.expected)) ?? []
    const likely = ofAmount.filter(({ day }) => day >= payout.day && day <= lastDay)
    if (likely.length > 0) return { ...nothing, arrival: 'perhaps', statement: likely.map(placeOf).join(', ') }
    const isAbsent = isCovered(payout.day, lastDay, coveredFor(payout))
    return isAbsent
      ? { ...nothing, arrival: 'not arrived', difference: -payout.expected }
      : { ...nothing, arrival: 'not known' }
  }

  return new Map(payouts.map((payout) => [payout, judge(payout)]))
}

function judgeLines(lines: readonly BankLine[], payouts: readonly AwaitedPayout[]): Arrival {
  const expected = payouts.reduce((sum, one) => addPaise(sum, one.expected), 0)
  const credited = sumOf(lines)
  const credits = lines.filter(({ amount }) => amount > 0).sort((a, b) => (a.day < b.day ? -1 : 1))
  const last = credits.at(-1)
  const isTwice =
    credits.length > 1 && lines.length === credits.length && credits.every(({ amount }) => amount === expected)
  const arrival =
    credited === expected ? 'arrived' : credited === 0 ? 'taken back' : isTwice ? 'arrived twice' : 'amount differs'
  return {
    ...{ arrival, arrivedOn: last?.day ?? null, credited, difference: credited - expected },
    statement: last ? placeOf(last) : null,
  }
}

const placeOf = ({ importId, line }: BankLine) => `${importId} line ${line}`
