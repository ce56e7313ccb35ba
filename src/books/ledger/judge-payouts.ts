import type { Paise } from '../../platform/money.ts'
import type { BankDays, Days } from './bank-days.ts'
import type { PayoutForm } from './judge-item.ts'
import type { SuccessfulRefund } from './match-deductions.ts'

/** Payments of one day by one acquirer, in paise, whose first settlement line is of `settledDay`; null where no line names them. */
export type PaidOn = { acquirer: string | null; day: string; settledDay: string | null; count: number; paid: Paise }

/**
 * Settlement lines of one day and acquirer, in paise. `gross` is with fee and tax, `net` without. Of the `paidOut` lines that pay
 * something out, `unnamedRows` name no payment, known or not, and no exception: `unnamed` is their gross.
 */
export type SettledOn = {
  acquirer: string | null
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

/** A refund that no settlement line deducts; `amount` is in paise. */
export type UndeductedRefund = Pick<SuccessfulRefund, 'refundId' | 'acquirer' | 'day' | 'amount'>

/** The payout of one bank day by one acquirer. Amounts are in paise. */
export type JudgedPayout = {
  acquirer: string | null
  day: string
  form: PayoutForm
  rows: number
  unnamedRows: number
  /** The number of payments due on it that no line of the day or before names. */
  left: number
  /** Payments due on it that no line names. */
  paid: Paise
  /** Refunds since the bank day before it that no line deducts. */
  refunded: Paise
  /** The total of the lines that name nothing. */
  unnamed: Paise
}

export type PayoutFacts = {
  paid: readonly PaidOn[]
  settled: readonly SettledOn[]
  undeducted: readonly UndeductedRefund[]
  /** The form of the payout before them. */
  formBefore: PayoutForm | undefined
}

/**
 * Judges the payouts of each acquirer, each by its own lines. A payout is for the payments since the bank day before it; a
 * settlement on a day when banks are closed is part of the next bank day's. A payout is by payment when all its lines name payments,
 * or at least as many as the payments that they leave out. One without lines has the form of the payout before it, else
 * `formBefore`, else that of its acquirer's first payout with lines, or of any acquirer's. Where lines name their acquirer,
 * payments by that acquirer belong to its payouts.
 */
export function judgePayouts(
  { paid, settled, undeducted, formBefore }: PayoutFacts,
  { bankDayFrom, nextBankDay }: BankDays,
) {
  const payouts = new Map<string, Omit<JudgedPayout, 'form'>>()
  const named = new Set(settled.map(({ acquirer }) => acquirer))
  const payerOf = (acquirer: string | null) => (named.has(acquirer) ? acquirer : null)
  const keyOf = (acquirer: string | null, day: string) => `${day} ${payerOf(acquirer) ?? ''}`
  const at = (acquirer: string | null, day: string) => {
    const nothing = { rows: 0, unnamedRows: 0, left: 0, paid: 0, refunded: 0, unnamed: 0 }
    const payout = payouts.get(keyOf(acquirer, day)) ?? { acquirer: payerOf(acquirer), day, ...nothing }
    payouts.set(keyOf(acquirer, day), payout)
    return payout
  }
  for (const { acquirer, day, settledDay, count, paid: sum } of paid) {
    const payout = at(acquirer, nextBankDay(day))
    if (settledDay === null || bankDayFrom(settledDay) > payout.day) payout.left += count
    if (settledDay === null) payout.paid += sum
  }
  for (const { acquirer, day, amount } of undeducted) at(acquirer, nextBankDay(day)).refunded += amount
  for (const { acquirer, day, paidOut, unnamedRows, unnamed } of settled) {
    const payout = at(acquirer, bankDayFrom(day))
    payout.rows += paidOut
    payout.unnamedRows += unnamedRows
    payout.unnamed += unnamed
  }
  const forms = new Map<string | null, PayoutForm>()
  const inOrder = [...payouts].sort(([a], [b]) => (a < b ? -1 : 1))
  const firstForm = (some: typeof inOrder) => some.map(([, payout]) => formOfRows(payout)).find((form) => form)
  const formWithout = (acquirer: string | null) =>
    formBefore ?? firstForm(inOrder.filter(([, one]) => one.acquirer === acquirer)) ?? firstForm(inOrder) ?? 'by sums'
  const judged = new Map(
    inOrder.map(([key, payout]): [string, JudgedPayout] => {
      const form = formOfRows(payout) ?? forms.get(payout.acquirer) ?? formWithout(payout.acquirer)
      forms.set(payout.acquirer, form)
      return [key, { ...payout, form }]
    }),
  )
  return {
    payouts: [...judged.values()],
    /** The form of a payout; undefined for one without payments, refunds and lines. */
    formOf: (acquirer: string | null, day: string) => judged.get(keyOf(acquirer, day))?.form,
  }
}

/** Undefined for a payout without lines. */
function formOfRows({ rows, unnamedRows, left }: Omit<JudgedPayout, 'form'>): PayoutForm | undefined {
  if (rows === 0) return undefined
  return unnamedRows === 0 || rows - unnamedRows >= Math.max(1, left) ? 'by payment' : 'by sums'
}

/** A payout by totals that is not what it has to be: `paid` is less refunds, `settled` with reversed lines, in paise. */
export type DifferingPayout = JudgedPayout & { settled: Paise }

/**
 * The payouts by totals that differ from the payments they are for, less the refunds of the same days. A payout is right, too,
 * where it is more by refunds that the next payout of its acquirer is less by: by one refund of that amount, or by all of them.
 * `reversed` is the total that was paid out in a payout before it failed.
 */
export function differingPayouts(
  payouts: readonly JudgedPayout[],
  undeducted: readonly UndeductedRefund[],
  reversed: (payout: JudgedPayout) => Paise,
  { nextBankDay }: BankDays,
): DifferingPayout[] {
  const differing = payouts.flatMap((payout): DifferingPayout[] => {
    const { form, unnamed, refunded } = payout
    const [settled, paid] = [unnamed + reversed(payout), payout.paid - refunded]
    return form === 'by payment' || settled === paid ? [] : [{ ...payout, paid, settled }]
  })
  const netted = new Set<DifferingPayout>()
  for (const one of differing) {
    const more = one.settled - one.paid
    const next = differing.find(({ acquirer, day }) => acquirer === one.acquirer && day === nextBankDay(one.day))
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
