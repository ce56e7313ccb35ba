import { unpadded } from '../../platform/fields.ts'
import type { Paise } from '../../platform/money.ts'
import { addDays, type BankDays } from './bank-days.ts'

/** Money that went back to a customer; `amount` is in paise. `day` is of its success, `YYYY-MM-DD`, IST. */
export type SuccessfulRefund = {
  refundId: string
  orderId: string
  /** Of the payment, in upper case; `acquirer` and `paidOn` too. */
  utr: string
  acquirer: string
  paidOn: string
  amount: Paise
  day: string
  /** The bank's, in upper case; empty where none is known. */
  reference: string
  /** Of the payment, and of the row that has paid it out; null where none has. */
  paid: Paise
  settled: Paise | null
}

/** A row by which the bank takes money back; `gross` is in paise, and negative. */
export type Deduction = {
  utr: string
  /** The UTR of the payment that it carries, in upper case, or its own. */
  item: string
  day: string
  gross: Paise
  /** The row's own UTR and the bank's reference of the row, in upper case. */
  references: readonly string[]
  /** Whether it names a payment, known or not, or an exception. */
  isNamed: boolean
}

export type MatchedDeductions = {
  /** The row that deducts a refund, by its refundId. */
  rowOf: ReadonlyMap<string, Deduction>
  /** The refunds that a row deducts, by its UTR. */
  refundsOf: ReadonlyMap<string, readonly SuccessfulRefund[]>
  /** The refundIds of those by which the payment's own row is less: no other row deducts them. */
  netted: ReadonlySet<string>
}

/**
 * Finds the refunds that each row deducts. A row belongs to the refund whose reference it carries; else to the oldest refund
 * of its payment and amount, or to all refunds of its payment that add up to it. What is left may be netted: the payment's own
 * row is less by it. A row that names nothing belongs to the one refund of its amount, else to all refunds of one bank day, else
 * to all that are left; and only where one choice fits. Refunds and rows come oldest first.
 */
export function matchDeductions(
  refunds: readonly SuccessfulRefund[],
  rows: readonly Deduction[],
  { nextBankDay }: BankDays,
): MatchedDeductions {
  const rowOf = new Map<string, Deduction>()
  const refundsOf = new Map<string, readonly SuccessfulRefund[]>()
  const byReference = groupBy(refunds, ({ reference }) => unpadded(reference))
  const byPayment = groupBy(refunds, ({ utr }) => utr)
  const netted = new Set<string>()
  const left = (of: readonly SuccessfulRefund[] = []) =>
    of.filter(({ refundId }) => !rowOf.has(refundId) && !netted.has(refundId))
  const assign = (choose: (row: Deduction) => readonly SuccessfulRefund[]) => {
    for (const row of rows) {
      const chosen = refundsOf.has(row.utr) ? [] : choose(row)
      if (chosen.length === 0) continue
      refundsOf.set(row.utr, chosen)
      for (const { refundId } of chosen) rowOf.set(refundId, row)
    }
  }

  assign(({ references, gross }) => {
    const named = left(references.flatMap((one) => (one === '' ? [] : (byReference.get(unpadded(one)) ?? []))))
    return sumOf(named) === -gross ? named : named.slice(0, 1)
  })
  assign(({ item, gross }) =>
    left(byPayment.get(item))
      .filter(({ amount }) => amount === -gross)
      .slice(0, 1),
  )
  assign(({ item, gross }) => {
    const ofPayment = left(byPayment.get(item))
    return sumOf(ofPayment) === -gross ? ofPayment : []
  })
  for (const ofPayment of byPayment.values()) for (const { refundId } of nettedOf(left(ofPayment))) netted.add(refundId)
  // Our day of a refund may be the one after the bank's: its success is asked for every few hours.
  const openTo = ({ isNamed, day }: Deduction) =>
    isNamed ? [] : left(refunds).filter((refund) => refund.day <= addDays(day, 1))
  const exactTo = (row: Deduction) => openTo(row).filter(({ amount }) => amount === -row.gross)
  // Before all sums, which a refund with a row of its own would falsify.
  assign((row) => {
    const exact = exactTo(row)
    return exact.length === 1 ? exact : []
  })
  assign((row) => {
    if (exactTo(row).length > 0) return []
    const open = openTo(row)
    const ofBankDays = [...groupBy(open, (refund) => nextBankDay(refund.day)).values()]
    const fitting = ofBankDays.flatMap((refunds) => {
      // Of a payment that was never paid out there may be nothing to take back.
      const choices = [refunds, refunds.filter(({ settled }) => settled !== null)]
      return choices.filter((some) => sumOf(some) === -row.gross).slice(0, 1)
    })
    if (fitting.length > 0) return fitting.length === 1 ? (fitting[0] as SuccessfulRefund[]) : []
    return sumOf(open) === -row.gross ? open : []
  })
  return { rowOf, refundsOf, netted }
}

/** Of the refunds of one payment those by which it was paid out with less: the oldest ones, else the one of that amount. */
function nettedOf(refunds: readonly SuccessfulRefund[]): readonly SuccessfulRefund[] {
  const [first] = refunds
  if (first === undefined || first.settled === null) return []
  const less = first.paid - first.settled
  const oldest = refunds.map((_, index) => refunds.slice(0, index + 1)).find((some) => sumOf(some) === less)
  const ofAmount = refunds.filter(({ amount }) => amount === less)
  return oldest ?? (ofAmount.length === 1 ? ofAmount : [])
}

const sumOf = (refunds: readonly SuccessfulRefund[]) => refunds.reduce((sum, { amount }) => sum + amount, 0)

export function groupBy<T>(all: readonly T[], keyOf: (one: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const one of all) {
    const group = groups.get(keyOf(one))
    if (group === undefined) groups.set(keyOf(one), [one])
    else group.push(one)
  }
  return groups
}
