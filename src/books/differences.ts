import { toSumText } from '../money.ts'
import { addDays, bankDayFrom, nextBankDay, previousBankDay } from './bank-days.ts'

export type DifferenceKind =
  | 'not settled'
  | 'settled twice'
  | 'fee differs'
  | 'amount differs'
  | 'no known payment'
  | 'sums differ'

/**
 * A difference between payments and settlements: money that came in and was not paid out, or the reverse. Amounts are
 * in paise.
 */
export type Difference = {
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
  /** In plain words. */
  cause: string
  /** The exception that explains a settlement of no known payment. */
  exceptionId: string | null
  /** Resolution of that exception: with one, the difference is accounted for. */
  resolution: string | null
}

/** A difference as the database finds it; its cause follows from it. */
export type FoundDifference = Omit<Difference, 'cause'> & {
  fee: bigint | null
  tax: bigint | null
  /** Another settlement of the same payment: the first one, or one that did not succeed. */
  otherUtr: string | null
  otherStatus: 'SUCCESS' | 'PENDING' | 'FAILED' | null
  otherDay: string | null
  exceptionKind: string | null
  /** When the settlement was initiated, to the microsecond, as PostgreSQL spells it. */
  initiatedAt: string | null
}

/** The cause of a difference, in words for a person who looks at the bank's file. */
export function causeOf(found: FoundDifference): string {
  const { kind, day, orderId, fee, tax, otherUtr, otherStatus, otherDay, exceptionKind, exceptionId } = found
  switch (kind) {
    case 'not settled':
      if (exceptionKind) return `exception ${exceptionId}: ${exceptionKind}`
      if (otherUtr) return `settlement ${otherUtr} of ${otherDay} is ${otherStatus}`
      return `no settlement carries it; it was due on ${nextBankDay(day)}`
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

/**
 * The first days that count for the payouts from the bank day `from` on. A payout is for the payments since the bank
 * day before it. A settlement on a day when banks are closed counts for the next bank day.
 */
export function daysOfPayouts(from: string): { firstPaid: string; firstSettled: string } {
  const before = previousBankDay(bankDayFrom(from))
  return { firstPaid: before, firstSettled: addDays(before, 1) }
}

/**
 * The payouts from `from` to `to` whose sum differs from the payments they are for. Payouts of `today` and later are
 * not judged, since the bank may still pay.
 */
export function comparePayouts(
  mid: string,
  paid: readonly { day: string; paid: bigint }[],
  settled: readonly { day: string; gross: bigint }[],
  { from, to, today }: { from: string; to: string; today: string },
): Difference[] {
  const payouts = new Map<string, { paid: bigint; settled: bigint }>()
  const at = (day: string) => {
    const payout = payouts.get(day) ?? { paid: 0n, settled: 0n }
    payouts.set(day, payout)
    return payout
  }
  for (const { day, paid: sum } of paid) at(nextBankDay(day)).paid += sum
  for (const { day, gross } of settled) at(bankDayFrom(day)).settled += gross
  return [...payouts]
    .filter(([day, sums]) => day >= from && day <= to && day < today && sums.paid !== sums.settled)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([day, sums]) => ({
      mid,
      day,
      kind: 'sums differ',
      orderId: null,
      utr: null,
      settlementUtr: null,
      ...sums,
      cause: causeOfSums(day, sums),
      exceptionId: null,
      resolution: null,
    }))
}

function causeOfSums(day: string, { paid, settled }: { paid: bigint; settled: bigint }): string {
  const first = previousBankDay(day)
  const last = addDays(day, -1)
  const days = first === last ? first : `${first} to ${last}`
  if (settled === 0n) return `nothing was settled of the payments of ${days}`
  const difference = settled > paid ? `${toSumText(settled - paid)} more` : `${toSumText(paid - settled)} less`
  return `${difference} than the payments of ${days}`
}

/** Whether the payments of `day` may still be settled in time. */
export const isNotYetDue = (day: string, today: string): boolean => nextBankDay(day) >= today

/** The last day whose payments are overdue `today`. */
export const lastOverdueDay = (today: string): string => addDays(previousBankDay(today), -1)
