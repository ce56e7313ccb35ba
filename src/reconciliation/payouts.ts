import { addDays, type BankDays } from '../ledger/bank-days.ts'
import { toSumText } from '../money.ts'
import type { Unnamed } from './differences.ts'
import type { ExceptionOfMoney, MerchantBooks, PaidOn, SettledOn, TakenBackRow } from './merchant-books.ts'
import type { Days } from './paid-and-settled.ts'
import { type RefundedOn, refundedDays } from './refunded.ts'

/** How the rows of one bank day speak of payments: each names its own, or one row is the sum of many. */
export type DayForm = 'by payment' | 'by sums'

/** The payout of one bank day. `rest` are the payments due on it that no settlement carries by name. */
type Payout = {
  settledDays: string[]
  rows: number
  /** Rows that name a payment; at least so many. */
  named: number
  rest: number
  restPaid: bigint
  /** What went back since the bank day before it, and no row deducts. */
  refunded: bigint
  form?: DayForm
  /** Sum of the rows that name nothing; known of a payout by sums. */
  unnamed: bigint
}

export type Payouts = Awaited<ReturnType<typeof judgePayouts>>

/**
 * Judges the payouts of the bank days from `from` to `to`, each by its own rows, and reads what was paid and settled around
 * them. A payout is for the payments since the bank day before it; a settlement on a day when banks are closed counts for
 * the next bank day. A payout is by payment when all its rows name payments, or at least as many as the payments that they
 * leave out. One without rows has the form of the payout before it. `namesPayments` is false when no row has to be compared
 * by itself.
 */
export async function judgePayouts(books: MerchantBooks, { from, to }: Days, bankDays: BankDays) {
  const { bankDayFrom, nextBankDay, previousBankDay } = bankDays
  const first = previousBankDay(bankDayFrom(from))
  const last = nextBankDay(to)
  const settled = await books.settledDays({ from: addDays(first, 1), to: last })
  const hasRows = settled.some(({ day, paidOut }) => paidOut > 0 && bankDayFrom(day) === bankDayFrom(from))
  // The form comes first, because the payments that are read last are kept for `findDifferences`.
  let form: DayForm = hasRows ? 'by payment' : await formBefore(books, addDays(first, 1), bankDays)
  const paid = await books.paidDays({ from: first, to: addDays(last, -1) })
  const refunds = await refundedDays(books, { from: first, to: addDays(last, -1) })
  const payouts = gather(paid, settled, refunds, bankDays)
  const doubtful = [...payouts.values()].filter(({ rows, named, rest }) => rows > 0 && named < Math.max(1, rest))
  await judgeByRows(books, doubtful)
  for (const [, payout] of [...payouts].sort(byDay)) {
    payout.form ??= payout.rows > 0 ? 'by payment' : form
    form = payout.form
  }
  const formOf = (day: string) => payouts.get(day)?.form ?? 'by sums'
  const namesPayments =
    [...payouts.values()].some(({ named }) => named > 0) || settled.some((on) => on.settledCount > on.paidOut)
  return { paid, settled, refunds, payouts, formOf, namesPayments }
}

function gather(
  paid: PaidOn[],
  settled: SettledOn[],
  refunds: RefundedOn[],
  { bankDayFrom, nextBankDay }: BankDays,
): Map<string, Payout> {
  const payouts = new Map<string, Payout>()
  const nothing = { rows: 0, named: 0, rest: 0, restPaid: 0n, refunded: 0n, unnamed: 0n }
  const at = (day: string) => {
    const payout = payouts.get(day) ?? { settledDays: [], ...nothing }
    payouts.set(day, payout)
    return payout
  }
  const carriedOn = new Map<string | null, number>()
  for (const { day, settledDay, count, paid: sum } of paid) {
    const due = at(nextBankDay(day))
    carriedOn.set(settledDay, (carriedOn.get(settledDay) ?? 0) + count)
    if (settledDay !== null) continue
    due.rest += count
    due.restPaid += sum
  }
  for (const { day, undeducted } of refunds) at(nextBankDay(day)).refunded += undeducted
  for (const { day, paidOut, named } of settled) {
    const payout = at(bankDayFrom(day))
    payout.settledDays.push(day)
    payout.rows += paidOut
    payout.named += Math.max(named, carriedOn.get(day) ?? 0)
  }
  return payouts
}

/** Judges payouts by looking up what each row names. */
async function judgeByRows(books: MerchantBooks, payouts: readonly Payout[]): Promise<void> {
  const unnamed = await books.unnamedDays(payouts.flatMap(({ settledDays }) => settledDays))
  const rowsOf = new Map(unnamed.map(({ day, rows }) => [day, rows]))
  const grossOf = new Map(unnamed.map(({ day, gross }) => [day, gross]))
  for (const payout of payouts) {
    const rows = payout.settledDays.reduce((sum, day) => sum + (rowsOf.get(day) ?? 0), 0)
    payout.named = payout.rows - rows
    payout.unnamed = payout.settledDays.reduce((sum, day) => sum + (grossOf.get(day) ?? 0n), 0n)
    payout.form = rows === 0 || payout.named >= Math.max(1, payout.rest) ? 'by payment' : 'by sums'
  }
}

/** The form of the last payout with rows before `day`, else of the first after it; sums where there is none. */
async function formBefore(books: MerchantBooks, day: string, bankDays: BankDays): Promise<DayForm> {
  const nearest = await books.nearestSettledDay(day)
  if (nearest === undefined) return 'by sums'
  const payoutDay = bankDays.bankDayFrom(nearest)
  const before = bankDays.previousBankDay(payoutDay)
  const paid = await books.paidDays({ from: before, to: addDays(payoutDay, -1) })
  const settled = await books.settledDays({ from: addDays(before, 1), to: payoutDay })
  const payout = gather(paid, settled, [], bankDays).get(payoutDay) as Payout
  await judgeByRows(books, [payout])
  return payout.form as DayForm
}

const byDay = ([a]: [string, unknown], [b]: [string, unknown]) => (a < b ? -1 : 1)

/**
 * The payouts from `from` to `to` by sums that differ from the payments they are for, less the refunds of the same days; and
 * the sums that the bank has taken back. Payouts of `today` and later are not judged, since the bank may still pay.
 * Exceptions and refunds whose amounts make a difference are named as its likely cause.
 */
export async function compareSums(
  books: MerchantBooks,
  { payouts }: Payouts,
  { from, to, today }: Days & { today: string },
  bankDays: BankDays,
): Promise<Unnamed[]> {
  const { previousBankDay, bankDayFrom, nextBankDay } = bankDays
  const first = addDays(previousBankDay(bankDayFrom(from)), 1)
  const takenBack = (await books.takenBackRows({ from: first, to })).filter(({ day }) => {
    const payout = payouts.get(bankDayFrom(day))
    // A sum that was paid once more on its day has taken nothing back.
    return payout?.form === 'by sums' && payout.unnamed !== payout.restPaid
  })
  const backOn = (payout: string) =>
    takenBack.reduce((sum, { day, gross }) => (bankDayFrom(day) === payout ? sum + gross : sum), 0n)
  const differing = [...payouts]
    .map(([day, { restPaid, refunded, unnamed, ...payout }]) => {
      return { ...payout, day, paid: restPaid - refunded, refunded, settled: unnamed + backOn(day) }
    })
    .filter(({ day, form, paid, settled }) => form === 'by sums' && paid !== settled && day >= from && day <= to)
    .filter(({ day }) => day < today)
  const exceptions =
    differing.length === 0 ? [] : await books.exceptionsOfMoney({ from: previousBankDay(from), to: addDays(to, 1) })
  const none = { mid: books.mid, orderId: null, exceptionId: null, resolution: null }
  const differences: Unnamed[] = differing.map(({ day, paid, refunded, settled }) => {
    const ofPayout = exceptions.filter((one) => nextBankDay(one.day) === day)
    const likely = spellLikely(ofPayout, settled - paid)
    const cause = `${causeOfSums(day, { paid, refunded, settled }, bankDays)}${likely}`
    return { ...none, day, kind: 'sums differ', utr: null, settlementUtr: null, paid, settled, cause }
  })
  const returned = takenBack.filter(({ day }) => day >= from).map((row) => ({ ...none, ...spellTakenBack(row) }))
  return [...differences, ...returned].sort((a, b) => (a.day < b.day ? -1 : 1))
}

const spellTakenBack = ({ day, utr, gross }: TakenBackRow) => ({
  ...{ day, kind: 'taken back' as const, utr: null, settlementUtr: utr, paid: gross, settled: null },
  cause: 'the settlement was SUCCESS and is FAILED',
})

function causeOfSums(
  day: string,
  { paid, refunded, settled }: { paid: bigint; refunded: bigint; settled: bigint },
  { previousBankDay }: BankDays,
): string {
  const first = previousBankDay(day)
  const last = addDays(day, -1)
  const less = refunded === 0n ? '' : `, less refunds of ${toSumText(refunded)}`
  const days = `${first === last ? first : `${first} to ${last}`}${less}`
  if (settled === 0n) return `nothing was settled of the payments of ${days}`
  const difference = settled > paid ? `${toSumText(settled - paid)} more` : `${toSumText(paid - settled)} less`
  return `${difference} than the payments of ${days}`
}

/** `; likely exception 5f0c… (double payment of 200.00, open)`; empty when no exceptions and refunds make the sum. */
function spellLikely(exceptions: readonly ExceptionOfMoney[], sum: bigint): string {
  const likely = addingUpTo(exceptions, sum)
  if (likely.length === 0) return ''
  const spell = ({ id, kind, paise, resolved }: ExceptionOfMoney) => {
    const amount = toSumText(paise < 0n ? -paise : paise)
    if (kind === 'refund') return `refund ${id} (of ${amount}${paise > 0n ? ', not deducted' : ''})`
    return `exception ${id} (${kind} of ${amount}, ${resolved ? 'resolved' : 'open'})`
  }
  return `; likely ${likely.map(spell).join(' and ')}`
}

/** Sums of exceptions that are tried: about twelve exceptions in every combination. */
const SUMS_TRIED = 4_096

/** Exceptions whose amounts together are `sum`: of several such the first found; none when there are none. */
function addingUpTo(exceptions: readonly ExceptionOfMoney[], sum: bigint): readonly ExceptionOfMoney[] {
  const made = new Map<bigint, readonly ExceptionOfMoney[]>([[0n, []]])
  for (const one of exceptions) {
    for (const [before, those] of [...made]) {
      if (!made.has(before + one.paise)) made.set(before + one.paise, [...those, one])
    }
    if (made.has(sum) || made.size > SUMS_TRIED) break
  }
  return made.get(sum) ?? []
}
