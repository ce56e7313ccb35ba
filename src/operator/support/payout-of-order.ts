import { addDays, type Days } from '../../books/ledger/bank-days.ts'
import type { Discrepancy } from '../../books/ledger/discrepancies.ts'
import { isMerchantError } from '../../books/reading/snapshot.ts'
import { type ArrivedPayout, listArrivals } from '../../books/reports/arrivals.ts'
import { isEnd, reconcile } from '../../books/reports/reconcile.ts'
import type { ArrivalState } from '../../books/statements/judge-arrivals.ts'
import type { Database } from '../../platform/db/pool.ts'
import { type Paise, toIndianRupees } from '../../platform/money.ts'
import { toIstDay } from '../../platform/time.ts'
import { receivedText } from '../texts.ts'
import type { PaymentHistory, SettledPayment } from './payment-history.ts'

/**
 * Where an order's payment is: in which payout, and whether the bank account received the payout; otherwise the day on
 * which the payment is to be paid out. `discrepancy` is the open one of the payment, or of the total that contains it.
 */
export type PayoutOfOrder = {
  bankReference: string | null
  /** IST day of the settlement line, or of the total that contains the payment; null while it is not paid out. */
  day: string | null
  arrival: ArrivalState | null
  /** The day on which the payment was due, if the day has passed without a line or total; otherwise null. */
  overdueSince: string | null
  discrepancy: { id: string; kind: string; day: string; owed: Paise; cause: string } | null
}

/** Reads the payout of an order's payment; null for an unpaid order. */
export async function payoutOfOrder(db: Database, history: PaymentHistory, now: Date): Promise<PayoutOfOrder | null> {
  const { mid, orderId, settlementDueOn: dueOn, settlements } = history
  const payment = history.changes.find(({ status }) => status === 'SUCCESS')
  if (payment === undefined || dueOn === null) return null
  const line = settlements.findLast((one) => one.status === 'SUCCESS' && isOf(one, history))
  const day = line ? toIstDay(line.initiatedAt) : null
  const yesterday = addDays(toIstDay(now), -1)
  const isDue = dueOn <= yesterday
  const days = { from: toIstDay(payment.paidAt ?? payment.changedAt), to: day ?? (isDue ? dueOn : yesterday) }
  const open = days.from <= days.to ? await openDiscrepancies(db, { ...days, mid, now }) : []
  const own = open.find((one) => one.orderId === orderId)
  const isOverdue = own?.kind === 'missing settlement'
  const isInTotal = !line && !isOverdue && isDue
  const paidOutOn = day ?? (isInTotal ? dueOn : null)
  const payouts = paidOutOn === null ? [] : await readPayouts(db, { from: paidOutOn, to: paidOutOn, mid, now })
  // Without a line, only the sole payout of its day certainly contains the payment.
  const [sole, another] = payouts
  const payout = line ? payouts.find((one) => one.bankReference === line.bankReference) : another ? undefined : sole
  const found = own ?? (isInTotal ? open.find((one) => one.kind === 'payout total' && one.day === dueOn) : undefined)
  return {
    bankReference: line?.bankReference ?? payout?.bankReference ?? null,
    day: paidOutOn,
    arrival: payout?.arrival ?? null,
    overdueSince: isOverdue ? dueOn : null,
    discrepancy: found
      ? { id: found.id, kind: found.kind, day: found.day, owed: found.owed, cause: found.cause }
      : null,
  }
}

/** Whether a settlement line pays out the order's payment. */
const isOf = ({ utr, paymentUtr }: SettledPayment, history: PaymentHistory) =>
  [history.utr, history.bankReference].some((own) => own !== null && own === (paymentUtr ?? utr).toUpperCase())

type OfMerchant = Days & { mid: string; now: Date }

async function openDiscrepancies(db: Database, requested: OfMerchant): Promise<Discrepancy[]> {
  const found: Discrepancy[] = []
  for await (const one of reconcile(db, requested)) {
    if (isMerchantError(one) || isEnd(one)) continue
    found.push(...one.discrepancies.filter(({ resolution }) => resolution === null))
  }
  return found
}

async function readPayouts(db: Database, requested: OfMerchant): Promise<ArrivedPayout[]> {
  const payouts: ArrivedPayout[] = []
  for await (const one of listArrivals(db, requested)) if (!isMerchantError(one)) payouts.push(one)
  return payouts
}

/** Describes the payout for people, such as `AXISCN1 of 2026-11-27, received`; null for an unpaid order. */
export function payoutText(payout: PayoutOfOrder | null, dueOn: string | null): string | null {
  if (payout === null) return null
  const { bankReference, day, arrival, overdueSince } = payout
  if (day !== null) {
    const name = bankReference === null ? `total of ${day}` : `${bankReference} of ${day}`
    return [name, arrival && receivedText(arrival)].filter((part) => part).join(', ')
  }
  return overdueSince === null ? `expected on ${dueOn}` : `overdue since ${overdueSince}`
}

/** Describes a discrepancy for people, such as `missing settlement of ₹200.00: the bank has not paid out the payment`. */
export const discrepancyText = ({ kind, owed, cause }: NonNullable<PayoutOfOrder['discrepancy']>) =>
  `${kind} of ${toIndianRupees(owed)}: ${cause}`
