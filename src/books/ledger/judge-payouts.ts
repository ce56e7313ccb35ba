import type { Paise } from '../../platform/money.ts'
import type { BankDays, Days } from './bank-days.ts'
import type { PayoutForm } from './judge-item.ts'
import type { SuccessfulRefund } from './match-deductions.ts'

/**
 * Payments on one day through one acquirer, in paise. `settledDay` is the day of the payments' first settlement line,
 * or null if no settlement line names the payments.
 */
export type PaidOn = { acquirer: string | null; day: string; settledDay: string | null; count: number; paid: Paise }

/**
 * Settlement lines of one day and acquirer, in paise. `gross` includes fee and tax, `net` does not. `paidOut` is the
 * number of lines that pay money out. `unnamedRows` is the number of these lines that name no payment and no exception,
 * and `unnamed` is the gross sum of the unnamed lines.
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

/** The payout from one acquirer on one bank day. Amounts are in paise. */
export type JudgedPayout = {
  acquirer: string | null
  day: string
  form: PayoutForm
  rows: number
  unnamedRows: number
  /** Number of payments in this payout that no settlement line dated up to the payout's day names. */
  left: number
  /** Sum of the payments in this payout that no settlement line names. */
  paid: Paise
  /** Sum of the refunds that were made since the previous bank day and that no settlement line deducts. */
  refunded: Paise
  /** Sum of the settlement lines that name no payment. */
  unnamed: Paise
}

export type PayoutFacts = {
  paid: readonly PaidOn[]
  settled: readonly SettledOn[]
  undeducted: readonly UndeductedRefund[]
  /**
   * Form of the payouts before the period of these facts; undefined if the settlement lines in these facts decide the
   * form.
   */
  formBefore: PayoutForm | undefined
}

/**
 * Judges each acquirer's payouts by the acquirer's own settlement lines. A payout covers the payments since the
 * previous bank day. Lines dated on a bank holiday belong to the payout on the next bank day.
 *
 * A payout is by payment if all its lines name payments, or if the lines that name a payment are at least as many as
 * the payments without a line. A payout without lines has the form of the payout before it, or `formBefore` if it is
 * the first one. Without `formBefore`, it has the form of its acquirer's first payout with lines, otherwise of the
 * first payout with lines through any acquirer. Payments through an acquirer belong to the acquirer's payouts if any
 * settlement line names the acquirer.
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
    /** Returns the form of a payout, or undefined if the payout has no payments, refunds or settlement lines. */
    formOf: (acquirer: string | null, day: string) => judged.get(keyOf(acquirer, day))?.form,
  }
}

/** Returns the form of a payout according to its settlement lines, or undefined if the payout has no lines. */
function formOfRows({ rows, unnamedRows, left }: Omit<JudgedPayout, 'form'>): PayoutForm | undefined {
  if (rows === 0) return undefined
  return unnamedRows === 0 || rows - unnamedRows >= Math.max(1, left) ? 'by payment' : 'by sums'
}

/**
 * A payout by totals with a discrepancy. `paid` is reduced by refunds, and `settled` includes reversed lines. Both
 * amounts are in paise.
 */
export type DifferingPayout = JudgedPayout & { settled: Paise }

/**
 * Returns the payouts by totals that differ from their payments minus the refunds of the same days. An acquirer that
 * deducts refunds one payout late causes no discrepancy: the payout is too large by one or all of its refunds, and the
 * next payout is too small by the same amount. `reversed` returns the sum of a payout's lines that were paid out and
 * then failed.
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

/**
 * Returns the days whose payments and settlement lines decide the payouts from `from` to `to`. The result includes the
 * days of the payouts on the adjacent bank days.
 */
export const daysOfPayouts = ({ from, to }: Days, { bankDayFrom, previousBankDay, nextBankDay }: BankDays): Days => ({
  from: previousBankDay(previousBankDay(bankDayFrom(from))),
  to: nextBankDay(to),
})
