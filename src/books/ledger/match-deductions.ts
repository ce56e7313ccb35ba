import { unpadded } from '../../platform/fields.ts'
import { addPaise, type Paise } from '../../platform/money.ts'
import { addDays, type BankDays } from './bank-days.ts'

/**
 * A refund that succeeded, even if the bank has returned its money since. `amount` is in paise. `day` is the IST day on
 * which the refund succeeded, `YYYY-MM-DD`.
 */
export type SuccessfulRefund = {
  refundId: string
  orderId: string
  /** UTR of the refunded payment, in upper case. */
  utr: string
  /** Acquirer of the refunded payment. */
  acquirer: string
  /** Day of the refunded payment. */
  paidOn: string
  amount: Paise
  day: string
  /** The IST day on which the bank returned the refund; null if it did not. */
  returnedOn: string | null
  /** The bank's reference for the refund in upper case; empty if unknown. */
  reference: string
  /** Amount of the refunded payment. */
  paid: Paise
  /** Gross amount of the line that settled the refunded payment; null if no line settled the payment. */
  settled: Paise | null
}

/** A settlement line that deducts money. `gross` is in paise and negative. */
export type Deduction = {
  utr: string
  /** UTR in upper case: the UTR of the payment that the line names, otherwise the line's own UTR. */
  item: string
  day: string
  gross: Paise
  /** The line's own UTR and its bank reference, in upper case. */
  references: readonly string[]
  /** Whether the line names a payment, known or unknown, or an exception. */
  isNamed: boolean
}

export type MatchedDeductions = {
  /** The settlement line that deducts each refund, by `refundId`. */
  rowOf: ReadonlyMap<string, Deduction>
  /** The refunds that each settlement line deducts, by the line's UTR. */
  refundsOf: ReadonlyMap<string, readonly SuccessfulRefund[]>
  /**
   * `refundId`s of netted refunds. The settlement line of the payment is smaller by the refund, and no separate line
   * deducts the refund.
   */
  netted: ReadonlySet<string>
}

/**
 * Matches deductions with refunds; both are sorted oldest first. A deduction is matched by its refund reference,
 * otherwise with the oldest refund that has its payment and amount, otherwise with all refunds of its payment that add
 * up to its amount. Remaining refunds may be netted: the settlement line of the payment is smaller by the refunds.
 *
 * A deduction that names no payment or exception is matched with the only refund of its amount, otherwise with all
 * refunds on one bank day, otherwise with all remaining refunds. A match requires that exactly one choice fits.
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
  // Accepts refunds recorded up to one day after the deduction, because the service checks the status of a refund only
  // every few hours.
  const openTo = ({ isNamed, day }: Deduction) =>
    isNamed ? [] : left(refunds).filter((refund) => refund.day <= addDays(day, 1))
  const exactTo = (row: Deduction) => openTo(row).filter(({ amount }) => amount === -row.gross)
  // Exact amounts are matched before sums, because a refund with a settlement line of its own would distort every sum.
  assign((row) => {
    const exact = exactTo(row)
    return exact.length === 1 ? exact : []
  })
  assign((row) => {
    if (exactTo(row).length > 0) return []
    const open = openTo(row)
    const ofBankDays = [...groupBy(open, (refund) => nextBankDay(refund.day)).values()]
    const fitting = ofBankDays.flatMap((refunds) => {
      // The second choice excludes refunds of unsettled payments, because the bank has nothing to deduct for a payment
      // that it never paid out.
      const choices = [refunds, refunds.filter(({ settled }) => settled !== null)]
      return choices.filter((some) => sumOf(some) === -row.gross).slice(0, 1)
    })
    if (fitting.length > 0) return fitting.length === 1 ? (fitting[0] as SuccessfulRefund[]) : []
    return sumOf(open) === -row.gross ? open : []
  })
  return { rowOf, refundsOf, netted }
}

/**
 * Returns the refunds by which a payment's settlement line is smaller: the oldest refunds that add up to the
 * difference, otherwise the only refund with the amount of the difference.
 */
function nettedOf(refunds: readonly SuccessfulRefund[]): readonly SuccessfulRefund[] {
  const [first] = refunds
  if (first === undefined || first.settled === null) return []
  const less = first.paid - first.settled
  const oldest = refunds.map((_, index) => refunds.slice(0, index + 1)).find((some) => sumOf(some) === less)
  const ofAmount = refunds.filter(({ amount }) => amount === less)
  return oldest ?? (ofAmount.length === 1 ? ofAmount : [])
}

export const sumOf = (all: readonly { amount: Paise }[] = []): Paise =>
  all.reduce((sum, { amount }) => addPaise(sum, amount), 0)

export function groupBy<T>(all: readonly T[], keyOf: (one: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const one of all) {
    const group = groups.get(keyOf(one))
    if (group === undefined) groups.set(keyOf(one), [one])
    else group.push(one)
  }
  return groups
}
