import { addPaise, type Paise } from '../../platform/money.ts'
import type { BankDays, Days } from './bank-days.ts'
import type { SuccessfulRefund } from './match-deductions.ts'

/**
 * How the settlement lines of one bank day refer to payments: one line for each payment, or one line for the total of
 * many payments.
 */
export type PayoutForm = 'by payment' | 'by sums'

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
  /** Sum that lines of disputes have deducted; negative if it was returned. */
  disputed: Paise
  paidOut: number
  unnamedRows: number
  unnamed: Paise
}

/** A refund that no settlement line deducts; `amount` is in paise. */
export type UndeductedRefund = Pick<SuccessfulRefund, 'refundId' | 'acquirer' | 'day' | 'amount' | 'paidOn' | 'settled'>

/** A refund that the bank has returned. `isDeducted` is whether settlement lines deduct the refund. */
export type ReturnedRefund = UndeductedRefund & { returnedOn: string; isDeducted: boolean }

/** Identifies a payout: an acquirer, or null for files that name none, and a bank day. */
export type PayoutName = { acquirer: string | null; day: string }

export const payoutKey = ({ acquirer, day }: PayoutName) => `${day} ${acquirer ?? ''}`

/** The payout from one acquirer on one bank day. Amounts are in paise. */
export type JudgedPayout = PayoutName & {
  form: PayoutForm
  rows: number
  unnamedRows: number
  /** Number of payments in this payout that no settlement line dated up to the payout's day names. */
  left: number
  /** Sum of the payments in this payout that no settlement line names. */
  paid: Paise
  /**
   * The refunds that this payout deducts without a settlement line of their own. A returned refund that it pays out
   * again has a negative amount.
   */
  refunds: readonly UndeductedRefund[]
  /** Sum of `refunds`. */
  refunded: Paise
  /** Sum of the settlement lines that name no payment and no exception. */
  unnamed: Paise
}

/** First bank day on which files name each acquirer. Payouts of earlier days belong to no acquirer. */
export type NamedSince = ReadonlyMap<string, string>

export type PayoutFacts = {
  /** The payouts on the bank days after `from` until `to` are judged. `to` is a bank day. */
  window: Days
  namedSince: NamedSince
  /** Payments, settlement lines and refunds of exactly these payouts. */
  paid: readonly PaidOn[]
  settled: readonly SettledOn[]
  undeducted: readonly UndeductedRefund[]
  /**
   * All returned refunds, which are few: the forms of their payouts decide which lines of any day pay them out again.
   */
  returned: readonly ReturnedRefund[]
}

/**
 * Forms of payouts that the facts of a window do not decide, by `payoutKey`: of payouts outside the window, and on its
 * first bank day, of the acquirers whose first payout in the window has no lines.
 */
export type KnownForms = ReadonlyMap<string, PayoutForm>

/** Returns the payout on a bank day of the payments and settlement lines through this acquirer. */
export function payoutOf({ acquirer, day }: PayoutName, namedSince: NamedSince): PayoutName {
  const since = acquirer === null ? undefined : namedSince.get(acquirer)
  return { acquirer: since !== undefined && since <= day ? acquirer : null, day }
}

/**
 * Judges each acquirer's payouts by the acquirer's own settlement lines. A payout covers the payments since the
 * previous bank day. Lines dated on a bank holiday belong to the payout on the next bank day. Payments through an
 * acquirer belong to the acquirer's payouts from the first bank day on which a file names the acquirer.
 *
 * A payout without lines has the form of its acquirer's last payout with lines, otherwise of its acquirer's first,
 * otherwise of the first payout with lines through any acquirer.
 */
export function judgePayouts(facts: PayoutFacts, known: KnownForms, bankDays: BankDays) {
  const { window, namedSince, undeducted, returned } = facts
  const { payouts, lookUp } = decideForms(facts, bankDays)
  /** Returns the form of the payout of a payment or line; undefined if it is neither in the window nor known. */
  function formOf(acquirer: string | null, day: string): PayoutForm | undefined {
    const found = lookUp(acquirer, day)
    return typeof found === 'string' ? found : known.get(payoutKey(found))
  }
  function requireForm(acquirer: string | null, day: string): PayoutForm {
    const form = formOf(acquirer, day)
    if (form === undefined) throw new Error(`the form of the payout of ${day} by ${acquirer} is not among the facts`)
    return form
  }
  function addTo(day: string, refund: UndeductedRefund): void {
    const { acquirer, amount } = refund
    const payout = payoutAt(payouts, payoutOf({ acquirer, day: bankDays.nextBankDay(day) }, namedSince))
    payout.refunds.push(refund)
    payout.refunded = addPaise(payout.refunded, amount)
  }
  for (const refund of undeducted) {
    if (placeOf(refund, requireForm, bankDays) === 'total') addTo(refund.day, refund)
  }
  for (const refund of returned) {
    const payoutDay = bankDays.nextBankDay(refund.returnedOn)
    if (payoutDay <= window.from || payoutDay > window.to) continue
    if (placeOfReturn(refund, requireForm, bankDays) !== 'total') continue
    addTo(refund.returnedOn, { ...refund, amount: -refund.amount })
  }
  const judged = inOrder(payouts).map((one): JudgedPayout => ({ ...one, form: requireForm(one.acquirer, one.day) }))
  return { payouts: judged, formOf }
}

/** Returns the payouts whose forms `judgePayouts` requires in addition to the facts. */
export function undecidedPayouts(facts: PayoutFacts, bankDays: BankDays): PayoutName[] {
  const { payouts, lookUp } = decideForms(facts, bankDays)
  const returned = facts.returned.map(({ returnedOn, ...refund }) => ({ ...refund, day: returnedOn }))
  const required = [
    ...payouts.values(),
    ...[...facts.undeducted, ...facts.returned, ...returned].flatMap(({ acquirer, day, paidOn, settled }) =>
      (settled === null ? [day, paidOn] : [day]).map((of) => ({ acquirer, day: bankDays.nextBankDay(of) })),
    ),
  ]
  const undecided = new Map<string, PayoutName>()
  for (const { acquirer, day } of required) {
    const found = lookUp(acquirer, day)
    if (typeof found !== 'string') undecided.set(payoutKey(found), found)
  }
  return [...undecided.values()]
}

function decideForms(facts: PayoutFacts, bankDays: BankDays) {
  const { window, namedSince } = facts
  const payouts = groupPayouts(facts, bankDays)
  const firstDay = bankDays.nextBankDay(window.from)
  const forms = formsByAcquirer(payouts)
  /** Returns the form of the payout of a payment or line, or the payout whose form it has if these facts do not decide it. */
  function lookUp(acquirer: string | null, day: string): PayoutForm | PayoutName {
    const payout = payoutOf({ acquirer, day }, namedSince)
    if (day < firstDay || day > window.to) return payout
    const last = forms.get(payout.acquirer)?.findLast((one) => one.day <= day)
    return last?.form ?? { ...payout, day: firstDay }
  }
  return { payouts, lookUp }
}

/**
 * Returns where a refund that no settlement line deducts is included: a payment that was not paid out is smaller by it,
 * or the total of its own payout is, otherwise it is a discrepancy of its own. A payment that a total paid out, or that
 * has a line, is not owed any more, so its refund belongs to the refund's own payout.
 */
export function placeOf(
  { acquirer, day, paidOn, settled }: UndeductedRefund,
  formOf: (acquirer: string | null, day: string) => PayoutForm,
  { nextBankDay }: Pick<BankDays, 'nextBankDay'>,
): 'payment' | 'total' | 'own' {
  if (settled === null && formOf(acquirer, nextBankDay(paidOn)) === 'by payment') return 'payment'
  return formOf(acquirer, nextBankDay(day)) === 'by sums' ? 'total' : 'own'
}

/**
 * Returns where the return of a refund is included: the total of its payout is larger by it, or a settlement line pays
 * it out again. A refund that was not deducted cancels its return, and the bank owes nothing.
 */
export function placeOfReturn(
  refund: ReturnedRefund,
  formOf: (acquirer: string | null, day: string) => PayoutForm,
  bankDays: Pick<BankDays, 'nextBankDay'>,
): 'total' | 'line' | 'nowhere' {
  if (!refund.isDeducted && placeOf(refund, formOf, bankDays) === 'own') return 'nowhere'
  return formOf(refund.acquirer, bankDays.nextBankDay(refund.returnedOn)) === 'by sums' ? 'total' : 'line'
}

type Payout = Omit<JudgedPayout, 'form' | 'refunds'> & { refunds: UndeductedRefund[] }

const inOrder = (payouts: ReadonlyMap<string, Payout>) =>
  [...payouts].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, payout]) => payout)

function groupPayouts({ paid, settled, namedSince }: PayoutFacts, { bankDayFrom, nextBankDay }: BankDays) {
  const payouts = new Map<string, Payout>()
  const at = (acquirer: string | null, day: string) => payoutAt(payouts, payoutOf({ acquirer, day }, namedSince))
  for (const { acquirer, day, settledDay, count, paid: sum } of paid) {
    const payout = at(acquirer, nextBankDay(day))
    if (settledDay === null || bankDayFrom(settledDay) > payout.day) payout.left += count
    if (settledDay === null) payout.paid = addPaise(payout.paid, sum)
  }
  for (const { acquirer, day, paidOut, unnamedRows, unnamed } of settled) {
    const payout = at(acquirer, bankDayFrom(day))
    payout.rows += paidOut
    payout.unnamedRows += unnamedRows
    payout.unnamed = addPaise(payout.unnamed, unnamed)
  }
  return payouts
}

/** Returns the payout with this name. If it does not exist, adds it without payments and lines. */
function payoutAt(payouts: Map<string, Payout>, name: PayoutName): Payout {
  const payout = payouts.get(payoutKey(name)) ?? {
    ...name,
    ...{ rows: 0, unnamedRows: 0, left: 0, paid: 0, refunds: [], refunded: 0, unnamed: 0 },
  }
  payouts.set(payoutKey(name), payout)
  return payout
}

/** Returns the forms of the payouts with lines of each acquirer, oldest first. */
function formsByAcquirer(payouts: ReadonlyMap<string, Payout>) {
  const forms = new Map<string | null, { day: string; form: PayoutForm }[]>()
  for (const payout of inOrder(payouts)) {
    const form = formOfRows(payout)
    if (form === undefined) continue
    const ofAcquirer = forms.get(payout.acquirer) ?? []
    forms.set(payout.acquirer, [...ofAcquirer, { day: payout.day, form }])
  }
  return forms
}

/**
 * Returns the form of a payout according to its settlement lines, or undefined if the payout has no lines. A payout is
 * by payment if all its lines name payments, or if the lines that name a payment are at least as many as the payments
 * without a line.
 */
export function formOfRows({
  rows,
  unnamedRows,
  left,
}: Pick<Payout, 'rows' | 'unnamedRows' | 'left'>): PayoutForm | undefined {
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
    const ofAmount = one.refunds.filter(({ amount }) => amount === more)
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
