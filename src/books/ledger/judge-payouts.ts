import type { Paise } from '../../platform/money.ts'
import type { BankDays, Days } from './bank-days.ts'
import type { PayoutForm } from './judge-item.ts'
import type { SuccessfulRefund } from './match-deductions.ts'

/**
 * Payments of one day through one acquirer, in paise. `settledDay` is the day of their first settlement line; null if no line
 * names them.
 */
export type PaidOn = { acquirer: string | null; day: string; settledDay: string | null; count: number; paid: Paise }

/**
 * Settlement lines of one day and acquirer, in paise. `gross` includes fee and tax, `net` does not. `paidOut` is the number of
 * lines that pay money out; `unnamedRows` of them name no payment and no exception, and `unnamed` is the gross sum of those.
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
  /** Number of payments due on this payout that no settlement line up to its day names. */
  left: number
  /** Sum of the payments due on this payout that no settlement line names. */
  paid: Paise
  /** Sum of the refunds since the previous bank day that no settlement line deducts. */
  refunded: Paise
  /** Sum of the settlement lines that name no payment. */
  unnamed: Paise
}

export type PayoutFacts = {
  paid: readonly PaidOn[]
  settled: readonly SettledOn[]
  undeducted: readonly UndeductedRefund[]
  /** The form of the payouts before these facts; undefined if the settlement lines of these facts decide it. */
  formBefore: PayoutForm | undefined
}

/**
 * Judges each acquirer's payouts by their own settlement lines. A payout covers the payments since the previous bank
 * day; lines dated on a bank holiday belong to the next bank day's payout.
 *
 * A payout is by payment if all its lines name payments, or if at least as many lines name a payment as payments have
 * no line. A payout without lines has the form of the payout before it, otherwise `formBefore`, otherwise that of its
 * acquirer's first payout with lines, otherwise that of any acquirer's. Payments through an acquirer belong to this
 * acquirer's payouts if any settlement line names the acquirer.
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
    /** Returns the form of a payout, or undefined if it has no payments, refunds or settlement lines. */
    formOf: (acquirer: string | null, day: string) => judged.get(keyOf(acquirer, day))?.form,
  }
}

/** Returns undefined for a payout without settlement lines. */
function formOfRows({ rows, unnamedRows, left }: Omit<JudgedPayout, 'form'>): PayoutForm | undefined {
  if (rows === 0) return undefined
  return unnamedRows === 0 || rows - unnamedRows >= Math.max(1, left) ? 'by payment' : 'by sums'
}

/**
 * A payout by totals with a discrepancy. `paid` is reduced by refunds, and `settled` includes reversed lines; both are in
 * paise.
 */
export type DifferingPayout = JudgedPayout & { settled: Paise }

/**
 * Returns the payouts by totals that differ from their payments less the refunds of the same days. No discrepancy remains if
 * the acquirer deducts refunds one payout late: the payout exceeds its payments by one refund, or by all of its refunds, and
 * the next payout falls short by the same amount. `reversed` returns the sum of a payout's lines that were paid out before they
 * failed.
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
 * Returns the days of the payments and settlement lines that decide the payouts from `from` to `to`, including those of the
 * adjacent bank days.
 */
export const daysOfPayouts = ({ from, to }: Days, { bankDayFrom, previousBankDay, nextBankDay }: BankDays): Days => ({
  from: previousBankDay(previousBankDay(bankDayFrom(from))),
  to: nextBankDay(to),
})
