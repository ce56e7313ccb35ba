import type { Paise } from '../../platform/money.ts'
import type { BankDays, Days } from './bank-days.ts'
import type { ItemException, PayoutForm } from './judge-item.ts'
import type { PaidOn, SettledOn } from './judge-payouts.ts'
import type { MatchedDeductions, SuccessfulRefund } from './match-deductions.ts'

/**
 * A report of money that was not recorded as an order's payment, or of a payment that failed after its success. `day` is the
 * day stated by the bank, otherwise the day of the report.
 */
export type MoneyException = ItemException & { utr: string; day: string }

/** A payment without a settlement line whose failure after success an operator has resolved. */
export type FailedPayment = { utr: string; day: string; acquirer: string; amount: Paise }

/** A settlement line that names no known payment and changed from SUCCESS to FAILED. */
export type ReversedLine = { acquirer: string | null; day: string; utr: string; gross: Paise }

/** Payments of one day. `isDuplicate`: second payments of orders that were already paid. */
export type PaidGroup = PaidOn & { isDuplicate: boolean }

/** Facts about one merchant that do not depend on the period. */
export type MerchantFacts = {
  mid: string
  /** The IST day of the report. Its payouts are not judged, since the bank may still pay. */
  today: string
  bankDays: BankDays
  /** All successful refunds, oldest first. */
  refunds: readonly SuccessfulRefund[]
  /** The deductions in settlement files, matched with the refunds. */
  matched: MatchedDeductions
  exceptions: readonly MoneyException[]
  failed: readonly FailedPayment[]
}

/** Facts about one merchant's `days`, and about `window`, which also covers the payouts adjacent to them. */
export type Facts = MerchantFacts & {
  days: Days
  window: Days
  paid: readonly PaidGroup[]
  settled: readonly SettledOn[]
  reversed: readonly ReversedLine[]
  /** The form of payouts before the merchant's first settlement lines; undefined if lines within `window` decide the form. */
  formBefore: PayoutForm | undefined
}
