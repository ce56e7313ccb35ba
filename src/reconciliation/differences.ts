import { createHash } from 'node:crypto'
import { dayText } from '../ist.ts'
import type { BankDays } from '../ledger/bank-days.ts'
import { toSumText } from '../money.ts'

export type DifferenceKind =
  | 'not settled'
  | 'settled twice'
  | 'fee differs'
  | 'amount differs'
  | 'no known payment'
  | 'sums differ'
  | 'taken back'
  | 'refund not deducted'

/**
 * A difference between payments and settlements: money that came in and was not paid out, or the reverse. Amounts are
 * in paise.
 */
export type Difference = {
  /** See differenceId. */
  id: string
  mid: string
  /**
   * Day (`YYYY-MM-DD`, IST) of the payment that is not settled; of the payout, when sums are compared; else of the
   * settlement.
   */
  day: string
  kind: DifferenceKind
  /** Our orderId; null where no order is known. */
  orderId: string | null
  /** UTR of the payment. */
  utr: string | null
  /** UTR of the settlement that differs. */
  settlementUtr: string | null
  paid: bigint | null
  /** Settled amount, with fee and tax. */
  settled: bigint | null
  /** What the bank owes the merchant by this; negative where it has paid too much. */
  owed: bigint
  /** In plain words. */
  cause: string
  /** The exception that explains a settlement of no known payment. */
  exceptionId: string | null
  /** How a person ended it, or that exception: with one, the difference is accounted for. */
  resolution: string | null
  /** How often a person has ended it. */
  entries: number
}

/** A difference before a person's word on it is known. */
export type Unnamed = Omit<Difference, 'id' | 'owed' | 'entries'>

/** A difference as the database finds it; its cause follows from it. */
export type FoundDifference = Omit<Unnamed, 'cause'> & {
  fee: bigint | null
  tax: bigint | null
  /** Another settlement of the same payment: the first one, or one that did not succeed. */
  otherUtr: string | null
  otherStatus: 'SUCCESS' | 'PENDING' | 'FAILED' | null
  otherDay: string | null
  exceptionKind: string | null
  /** When the settlement was initiated, to the microsecond, as PostgreSQL spells it. */
  initiatedAt: string | null
  /** Paise of the payment that went back, of which no row of the bank tells. */
  undeducted: bigint | null
  /** The refund to which a deduction belongs, or those that no row deducts. */
  refundId: string | null
  /** What carries the UTR at other merchants, in plain words. */
  elsewhere: string | null
}

/**
 * Names a difference by 16 hex digits: its day as yymmdd, and ten of a hash of what it is about. The same difference has the
 * same name in every report.
 */
export function differenceId({ mid, day, kind, utr, settlementUtr }: Omit<Unnamed, 'cause'>): string {
  const about = JSON.stringify([mid, day, kind, utr, settlementUtr])
  const hash = createHash('sha256').update(about).digest('hex').slice(0, 10)
  return `${day.replaceAll('-', '').slice(2)}${hash}`
}

/** The day of a difference by its name; undefined for a name that no difference has. */
export function dayOfDifference(id: string): string | undefined {
  const [, year, month, day] = /^(\d\d)(\d\d)(\d\d)[0-9a-f]{10}$/.exec(id) ?? []
  return dayText.safeParse(`20${year}-${month}-${day}`).data
}

/** A second settlement of a payment is too much as a whole. */
export const owedBy = ({ kind, paid, settled }: Pick<Difference, 'kind' | 'paid' | 'settled'>): bigint =>
  (kind === 'settled twice' ? 0n : (paid ?? 0n)) - (settled ?? 0n)

/** The cause of a difference, in words for a person who looks at the bank's file. */
export function causeOf(found: FoundDifference, { nextBankDay }: BankDays): string {
  const back = found.undeducted === null ? '' : `; ${toSumText(found.undeducted)} of it went back`
  const cause = `${ownCause(found, nextBankDay)}${back}`
  return found.elsewhere === null ? cause : `${cause}; ${found.elsewhere}`
}

function ownCause(found: FoundDifference, nextBankDay: BankDays['nextBankDay']): string {
  const { kind, day, orderId, fee, tax, otherUtr, otherStatus, otherDay, exceptionKind, exceptionId, refundId } = found
  switch (kind) {
    case 'not settled':
      if (exceptionKind) return `exception ${exceptionId}: ${exceptionKind}`
      if (otherUtr) return `settlement ${otherUtr} of ${otherDay} is ${otherStatus}`
      return `no settlement carries it; it was due on ${nextBankDay(day)}`
    case 'refund not deducted':
      return `refund ${refundId}: the payment was settled in full, and no row deducts what went back`
    case 'taken back':
      if (refundId !== null && found.paid === null) return `refund ${refundId} of a double payment`
      if (refundId !== null) return `refund ${refundId} is of another amount`
      if (otherUtr) return `settlement ${otherUtr} of ${otherDay} was SUCCESS and is FAILED`
      return orderId === null
        ? 'the bank has deducted it, and no order of this merchant carries its UTR'
        : 'the bank has deducted it from a payout: a refund or a chargeback'
    case 'settled twice':
      return `settlement ${otherUtr} of ${otherDay} has paid it before`
    case 'fee differs':
      return `the amount with fee ${toSumText(fee ?? 0n)} and tax ${toSumText(tax ?? 0n)} is not what was paid`
    case 'amount differs':
      return 'the amount is not what was paid, and the file states no fee and tax'
    case 'no known payment':
      if (exceptionKind === null) return 'no order and no exception of this merchant carries its UTR'
      if (orderId === null) return `exception ${exceptionId}: ${exceptionKind}`
      return `exception ${exceptionId}: ${exceptionKind}, of order ${orderId}`
    case 'sums differ':
      throw new Error('a difference of sums has its cause already')
  }
}
