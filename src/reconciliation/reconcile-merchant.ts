import { addDays, type BankDays } from '../ledger/bank-days.ts'
import { toSumText } from '../money.ts'
import { type Difference, differenceId, owedBy, type Unnamed } from './differences.ts'
import { findDifferences } from './find-differences.ts'
import type { Entry, MerchantBooks, OpenException } from './merchant-books.ts'
import type { Days } from './paid-and-settled.ts'
import { compareSums, type DayForm, judgePayouts, type Payouts } from './payouts.ts'
import { type OverdueRefund, overdueRefunds } from './refunded.ts'
import { addSums, type Balance, carriedBy, noSums, type Sums, type Totals, totalsFrom } from './sums.ts'

/** What the books say of one merchant, in this order. */
export type MerchantFinding =
  /** Exceptions of no known order come under an empty `mid`. */
  | { type: 'merchant'; mid: string; file: DayForm | 'by payment and by sums' }
  | ({ type: 'difference' } & Difference)
  | ({ type: 'exception' } & OpenException)
  /** One that is older than T+5 days. It moves no money, so the books balance with it. */
  | ({ type: 'refund' } & OverdueRefund)
  | ({ type: 'day'; mid: string; day: string } & Sums & Balance)
  | { type: 'total'; mid: string; sums: Totals }

/** `today` is not judged yet: the bank may still pay. */
export type ReportedDays = Days & { today: string; bankDays: BankDays }

/**
 * Compares one merchant's payments with his settlements. `brought` is what the bank owes him before the days. Nothing is
 * yielded for a merchant with nothing to report.
 */
export async function* reconcileMerchant(
  books: MerchantBooks,
  days: ReportedDays,
  brought: bigint,
): AsyncGenerator<MerchantFinding> {
  const { from, to, today, bankDays } = days
  const payouts = await judgePayouts(books, days, bankDays)
  const byDay = sumsByDay(payouts, days)
  const entries = await books.entries(days)
  for (const { day, amount } of entries) at(byDay, day).resolved += amount
  const sums = await compareSums(books, payouts, days, bankDays)
  const byPayment = {
    overdueDays: payouts.paid.flatMap(({ day }) =>
      isJudged(day) && isByPayment(bankDays.nextBankDay(day)) ? [day] : [],
    ),
    settledDays: payouts.settled.flatMap(({ day }) => (isByPayment(bankDays.bankDayFrom(day)) ? [day] : [])),
    refundDays: payouts.refunds.flatMap(({ day, undeducted }) =>
      undeducted > 0n && isJudged(day) && isByPayment(bankDays.nextBankDay(day)) ? [day] : [],
    ),
  }
  const isNamed = byPayment.overdueDays.length + byPayment.refundDays.length > 0 || payouts.namesPayments
  const rows = isNamed ? findDifferences(books, days, byPayment, bankDays) : []
  const found = nameEach(books.mid, inOrder(sums, rows), entries)
  const merchant = { type: 'merchant', mid: books.mid, file: spellForms(payouts, days) } as const
  const total = totalsFrom(brought)
  let told = false
  for await (const finding of eachOf(found, books.openExceptions(days), await overdueRefunds(books, days))) {
    if (!told) yield merchant
    told = true
    if (finding.type === 'exception') total.openExceptions += 1
    else if (finding.type === 'difference' && finding.resolution === null) at(byDay, finding.day).differences += 1
    // What no entry has ended was accounted for by the resolution of its exception.
    else if (finding.type === 'difference') at(byDay, finding.day).resolved -= finding.owed
    yield finding
  }
  if (!told && byDay.size === 0 && brought === 0n) return
  if (!told) yield merchant
  for (const [day, daySums] of [...byDay].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const carried = carriedBy(total.carried, daySums)
    addSums(total, daySums)
    yield { type: 'day', mid: books.mid, day, ...daySums, brought: total.carried, carried }
    total.carried = carried
  }
  yield { type: 'total', mid: books.mid, sums: total }

  function isByPayment(day: string) {
    return payouts.formOf(day) === 'by payment'
  }
  function isJudged(day: string) {
    return day >= from && day <= to && bankDays.nextBankDay(day) < today
  }
}

/** What was paid and settled on each of the days that have anything. */
function sumsByDay({ paid, settled, refunds, formOf }: Payouts, { from, to, today, bankDays }: ReportedDays) {
  const byDay = new Map<string, Sums>()
  // Payments whose payout comes after `to` count as open: that payout is judged with its own days.
  const judgedUntil = to < today ? addDays(to, 1) : today
  for (const { day, settledDay, count, paid: sum, fromDayFile } of paid) {
    if (day < from || day > to) continue
    const sums = at(byDay, day)
    const due = bankDays.nextBankDay(day)
    sums.paidCount += count
    sums.paid += sum
    sums.fromDayFile += fromDayFile
    if (settledDay === null && (formOf(due) === 'by payment' || due >= judgedUntil)) sums.open += sum
  }
  for (const { day, paidOut: _, named: __, ...sums } of settled) {
    if (day >= from && day <= to) Object.assign(at(byDay, day), sums)
  }
  for (const { day, refunded } of refunds) {
    if (day >= from && day <= to) at(byDay, day).refunded += refunded
  }
  return byDay
}

/** The sums of a day, which begin with nothing. */
function at(byDay: Map<string, Sums>, day: string): Sums {
  const sums = byDay.get(day) ?? noSums()
  byDay.set(day, sums)
  return sums
}

function spellForms({ payouts, formOf }: Payouts, { from, to, bankDays }: ReportedDays) {
  const inDays = [...payouts.keys()].filter((day) => day >= from && day <= bankDays.nextBankDay(to))
  const [first = formOf(from), ...others] = new Set(inDays.map(formOf))
  return others.length > 0 ? 'by payment and by sums' : first
}

/** Merges differences of sums, which are few, with those of payments. Both are sorted by day. */
async function* inOrder(sums: Unnamed[], byPayment: AsyncIterable<Unnamed> | Unnamed[]): AsyncGenerator<Unnamed> {
  const waiting = [...sums]
  for await (const one of byPayment) {
    while (waiting[0] !== undefined && waiting[0].day <= one.day) yield waiting.shift() as Unnamed
    yield one
  }
  yield* waiting
}

/**
 * Names each difference, and says how a person has ended it. One that has changed since, or is none any more, is open
 * again with what remains, since an entry is never taken back.
 */
async function* nameEach(
  mid: string,
  found: AsyncIterable<Unnamed>,
  entries: readonly Entry[],
): AsyncGenerator<Difference> {
  const entered = new Map<string, Entry[]>()
  for (const entry of entries) entered.set(entry.differenceId, [...(entered.get(entry.differenceId) ?? []), entry])
  for await (const one of found) {
    const id = differenceId(one)
    const difference = { ...one, id, owed: owedBy(one), entries: 0 }
    const ended = entered.get(id)
    entered.delete(id)
    yield ended ? endedBy(ended, difference) : difference
  }
  for (const [id, ended] of entered) {
    const { day, kind, orderId, utr, settlementUtr } = ended[0] as Entry
    const nothing = { paid: null, settled: null, owed: 0n, exceptionId: null, resolution: null, entries: 0 }
    const gone = { id, mid, day, kind, orderId, utr, settlementUtr, ...nothing, cause: 'it is no difference any more' }
    const left = endedBy(ended, gone)
    if (left.resolution === null) yield left
  }
}

function endedBy(entries: readonly Entry[], difference: Difference): Difference {
  const ended = entries.reduce((sum, { amount }) => sum + amount, 0n)
  const owed = difference.owed + ended
  const { reason } = entries.at(-1) as Entry
  const known = { ...difference, owed, entries: entries.length }
  if (owed === 0n) return { ...known, resolution: reason }
  const before = `${toSumText(-ended)} of it was resolved: ${reason}`
  return { ...known, cause: `${difference.cause}; ${before}` }
}

async function* eachOf(
  differences: AsyncIterable<Difference>,
  exceptions: AsyncIterable<OpenException>,
  refunds: readonly OverdueRefund[],
): AsyncGenerator<Extract<MerchantFinding, { type: 'difference' | 'exception' | 'refund' }>> {
  for await (const difference of differences) yield { type: 'difference', ...difference }
  for await (const exception of exceptions) yield { type: 'exception', ...exception }
  yield* refunds.map((refund) => ({ type: 'refund' as const, ...refund }))
}
