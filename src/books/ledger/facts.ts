import type { Paise } from '../../platform/money.ts'
import type { BankDays, Days } from './bank-days.ts'
import type { ItemException } from './judge-item.ts'
import type { KnownForms, NamedSince, PaidOn, SettledOn } from './judge-payouts.ts'
import type { MatchedDeductions, SuccessfulRefund } from './match-deductions.ts'

/**
 * An exception about money that is not recorded as an order's payment, or about a payment that failed after its
 * success. `day` is the day that the bank stated, or the day of the report if the bank stated none.
 */
export type MoneyException = ItemException & { utr: string; day: string }

/** A payment that failed after its success and has no settlement line. An operator has resolved the failure. */
export type FailedPayment = { utr: string; day: string; acquirer: string; amount: Paise }

/** A dispute, of the whole payment if its amount is unknown; `day` is the IST day of its opening. */
export type DisputedAmount = { disputeId: string; status: string; day: string; amount: Paise }

/** A settlement line that names no known payment and whose status changed from SUCCESS to FAILED. */
export type ReversedLine = { acquirer: string | null; day: string; utr: string; gross: Paise }

/**
 * Payments on one day. `isDuplicate` is true for second payments, which were made for orders that were already paid.
 */
export type PaidGroup = PaidOn & { isDuplicate: boolean }

/** Facts about one merchant that are the same for every period. */
export type MerchantFacts = {
  mid: string
  /** The IST day of the report. Payouts on this day are not judged, because the bank may still pay. */
  today: string
  bankDays: BankDays
  /** All refunds of the merchant that succeeded, oldest first. */
  refunds: readonly SuccessfulRefund[]
  /** The deductions in settlement files, matched with the refunds. */
  matched: MatchedDeductions
  exceptions: readonly MoneyException[]
  failed: readonly FailedPayment[]
  disputes: readonly DisputedAmount[]
  namedSince: NamedSince
}

/** Facts about one merchant for `days`, and for `window`, which also covers the adjacent payouts. */
export type Facts = MerchantFacts & {
  days: Days
  window: Days
  paid: readonly PaidGroup[]
  settled: readonly SettledOn[]
  reversed: readonly ReversedLine[]
  /** Forms of the payouts that the facts of `window` do not decide. */
  knownForms: KnownForms
}
