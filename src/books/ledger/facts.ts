import type { Paise } from '../../platform/money.ts'
import type { BankDays, Days } from './bank-days.ts'
import type { ItemException, PayoutForm } from './judge-item.ts'
import type { PaidOn, SettledOn } from './judge-payouts.ts'
import type { MatchedDeductions, SuccessfulRefund } from './match-deductions.ts'

/** A report of money that was not taken for a payment, or that a payment has failed after all. `day` is the bank's, else ours. */
export type MoneyException = ItemException & { utr: string; day: string }

/** A payment that no settlement line carries, and whose failure after success an operator has resolved. */
export type FailedPayment = { utr: string; day: string; acquirer: string; amount: Paise }

/** A settlement line of no known payment that was SUCCESS and is FAILED. */
export type ReversedLine = { acquirer: string | null; day: string; utr: string; gross: Paise }

/** Payments of one day. `isDuplicate`: of orders that were paid before. */
export type PaidGroup = PaidOn & { isDuplicate: boolean }

/** What is known of one merchant, whatever the days. */
export type MerchantFacts = {
  mid: string
  /** The day of India as of which the books are read. The bank may still pay on it. */
  today: string
  bankDays: BankDays
  /** All refunds that succeeded, oldest first. */
  refunds: readonly SuccessfulRefund[]
  /** The lines that deduct them. */
  matched: MatchedDeductions
  exceptions: readonly MoneyException[]
  failed: readonly FailedPayment[]
}

/** What is known of a merchant's days `days`, and of `window`, the days of the payouts around them. */
export type Facts = MerchantFacts & {
  days: Days
  window: Days
  paid: readonly PaidGroup[]
  settled: readonly SettledOn[]
  reversed: readonly ReversedLine[]
  /** The form of the payouts before the merchant's first lines; undefined where the window's own lines decide. */
  formBefore: PayoutForm | undefined
}
