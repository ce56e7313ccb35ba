import type { Paise } from '../../platform/money.ts'
import type { BankDays, Days } from './bank-days.ts'
import type { PayoutForm } from './judge-item.ts'
import type { SuccessfulRefund } from './match-deductions.ts'

/** Payments of one day to one account, in paise, whose first settlement is of `settledDay`; null where no settlement carries them. */
export type PaidOn = { account: string | null; day: string; settledDay: string | null; count: number; paid: Paise }

/**
 * Settlements of one day and account, in paise. `gross` is with fee and tax, `net` without. Of the `paidOut` rows that pay something
 * out `unnamedRows` name no payment, known or not, and no exception: `unnamed` is their gross.
 */
export type SettledOn = {
  account: string | null
  day: string
  settledCount: number
  gross: Paise
  fee: Paise
  tax: Paise
  net: Paise
  paidOut: number
  unnamedRows: number
  unnamed: Paise
}

/** A refund that no row of the bank deducts; `amount` is in paise. */
export type UndeductedRefund = Pick<SuccessfulRefund, 'refundId' | 'account' | 'day' | 'amount'>

/** What the payout of one bank day to one account has to be, and is. Amounts are in paise. */
export type JudgedPayout = {
  account: string | null
  day: string
  form: PayoutForm
  rows: number
  unnamedRows: number
  /** The payments due on it that no settlement of the day or before carries by name. */
  left: number
  /** What of them no settlement carries until now. */
  leftPaid: Paise
  /** What went back since the bank day before it, and no row deducts. */
  refunded: Paise
  /** What rows that name nothing have paid out. */
  unnamed: Paise
}

export type Payouts = ReturnType<typeof judgePayouts>

/**
 * Judges the payouts of each account, each by its own rows. A payout is for the payments since the bank day before it; a
 * settlement on a day when banks are closed counts for the next bank day. A payout is by payment when all its rows name payments,
 * or at least as many as the payments that they leave out. One without rows has the form of the payout of its
 * account before it, else of the first one with rows; `by sums` where none has any. Where rows name their account, payments to that account belong to its payouts.
 */
export function judgePayouts(
  {
    paid,
    settled,
    undeducted,
  }: { paid: readonly PaidOn[]; settled: readonly SettledOn[]; undeducted: readonly UndeductedRefund[] },
  { bankDayFrom, nextBankDay }: BankDays,
) {
  const payouts = new Map<string, Omit<JudgedPayout, 'form'> & { form?: PayoutForm }>()
  const named = new Set(settled.map(({ account }) => account))
  const accountOf = (account: string | null) => (named.has(account) ? account : null)
  const keyOf = (account: string | null, day: string) => `${day} ${account ?? ''}`
  const at = (account: string | null, day: string) => {
    const key = keyOf(account, day)
    const nothing = { rows: 0, unnamedRows: 0, left: 0, leftPaid: 0, refunded: 0, unnamed: 0 }
    const payout = payouts.get(key) ?? { account, day, ...nothing }
    payouts.set(key, payout)
    return payout
  }
  for (const { account, day, settledDay, count, paid: sum } of paid) {
    const payout = at(accountOf(account), nextBankDay(day))
    if (settledDay !== null && bankDayFrom(settledDay) <= payout.day) continue
    payout.left += count
    if (settledDay === null) payout.leftPaid += sum
  }
  for (const { account, day, amount } of undeducted) at(accountOf(account), nextBankDay(day)).refunded += amount
  for (const { account, day, paidOut, unnamedRows, unnamed } of settled) {
    const payout = at(account, bankDayFrom(day))
    payout.rows += paidOut
    payout.unnamedRows += unnamedRows
    payout.unnamed += unnamed
  }
  const inOrder = [...payouts].sort(([a], [b]) => (a < b ? -1 : 1))
  const withRows = inOrder.map(([, payout]) => payout).filter(({ rows }) => rows > 0)
  const firstForm = (account: string | null) => {
    const first = withRows.find((payout) => payout.account === account) ?? withRows[0]
    return (first && formOfRows(first)) ?? 'by sums'
  }
  const formsBefore = new Map<string | null, PayoutForm>()
  const judged = inOrder.map(([key, payout]): [string, JudgedPayout] => {
    const form = formOfRows(payout) ?? formsBefore.get(payout.account) ?? firstForm(payout.account)
    formsBefore.set(payout.account, form)
    return [key, { ...payout, form }]
  })
  const byKey = new Map(judged)
  return {
    payouts: [...byKey.values()],
    formOf: (account: string | null, day: string): PayoutForm =>
      byKey.get(keyOf(accountOf(account), day))?.form ?? 'by sums',
  }
}

/** Undefined for a payout without rows. */
function formOfRows({ rows, unnamedRows, left }: Omit<JudgedPayout, 'form'>): PayoutForm | undefined {
  if (rows === 0) return undefined
  return unnamedRows === 0 || rows - unnamedRows >= Math.max(1, left) ? 'by payment' : 'by sums'
}

/** A payout by sums that is not what it has to be; amounts are in paise. */
export type DifferingPayout = JudgedPayout & { paid: Paise; settled: Paise }

/**
 * The payouts by sums that differ from the payments they are for, less the refunds of the same days. A payment that a later
 * settlement names belongs to no sum. A payout is right, too, where it is more by refunds that the next payout of its account is less
 * by: by one refund of that amount, or by all of them. `takenBack` is the sum that was paid out in a payout before it failed.
 */
export function differingPayouts(
  payouts: readonly JudgedPayout[],
  undeducted: readonly UndeductedRefund[],
  takenBack: (payout: JudgedPayout) => Paise,
  { nextBankDay }: BankDays,
): DifferingPayout[] {
  const differing = payouts.flatMap((payout): DifferingPayout[] => {
    const { form, unnamed, leftPaid, refunded } = payout
    const [settled, paid] = [unnamed + takenBack(payout), leftPaid - refunded]
    return form === 'by payment' || settled === paid ? [] : [{ ...payout, paid, settled }]
  })
  const netted = new Set<DifferingPayout>()
  for (const one of differing) {
    const more = one.settled - one.paid
    const next = differing.find(({ account, day }) => account === one.account && day === nextBankDay(one.day))
    if (more <= 0 || next === undefined || next.paid - next.settled !== more) continue
    const ofAmount = undeducted.filter(({ day, amount }) => nextBankDay(day) === one.day && amount === more)
    if (one.refunded === more || ofAmount.length === 1) netted.add(one).add(next)
  }
  return differing.filter((one) => !netted.has(one))
}

/** The days of the payments and settlements that decide the payouts of `from` to `to`, and those of the bank days before and after. */
export const daysOfPayouts = ({ from, to }: Days, { bankDayFrom, previousBankDay, nextBankDay }: BankDays): Days => ({
  from: previousBankDay(previousBankDay(bankDayFrom(from))),
  to: nextBankDay(to),
})
