import type { HttpClient } from '../../platform/outbound/http-client.ts'
import type { ReportedInstrument } from '../payments/instrument.ts'
import type { StatusCheckRules } from '../payments/status-check-times.ts'
import type { Merchant } from '../tenants/merchants.ts'
import type { AcquirerClient } from './client.ts'
import type { Notifications } from './notification.ts'

export type Acquirer<Settings> = {
  /** Names of the acquirer's environment variables, for messages to the operator. */
  variables: string
  /**
   * Returns why the acquirer cannot serve a merchant, as a message to the operator; undefined if the acquirer can serve
   * the merchant.
   */
  errorOf?: (merchant: AcquirerMerchant) => string | undefined
  /** Returns the longest time to pay that an account allows. Absent or undefined: HIGHEST_EXPIRY_MINUTES. */
  longestExpiryMinutes?: (settings: Settings) => number | undefined
  /**
   * When and how often the service may check a payment's status at the acquirer. Absent if the service itself creates
   * the links.
   */
  statusCheckRules?: StatusCheckRules
  /** Returns the reader of the acquirer's notifications; undefined unless the acquirer is set up. */
  notifications: (settings: Settings) => Notifications | undefined
  /**
   * Creates the client. Absent if the service itself creates the links. Returns undefined unless the acquirer is set
   * up. `elapsedMs` is a monotonic clock.
   */
  client?: (settings: Settings, http: HttpClient, elapsedMs: () => number) => AcquirerClient | undefined
  /**
   * Reads settlements from the acquirer's API. Absent if settlements come only as files. Returns undefined unless the
   * acquirer is set up.
   */
  settled?: (settings: Settings, http: HttpClient) => ReadSettled | undefined
}

export type AcquirerMerchant = Pick<Merchant, 'vpa'> & {
  acquirerMerchantId?: string | null | undefined
  expiryMinutes?: number | null | undefined
  maxExpiryMinutes?: number | undefined
}

/**
 * Reads an acquirer's settlements of the IST days `from` to `to` (`YYYY-MM-DD`, inclusive), page by page. Throws an
 * AcquirerError. `pause` resolves after `ms` milliseconds.
 */
export type ReadSettled = (
  days: { from: string; to: string },
  pause: (ms: number) => Promise<unknown>,
) => AsyncIterable<SettledEvent[]>

/** An amount that an acquirer adds to a payout or deducts from it. */
export type SettledEvent = {
  /** The acquirer's own name for the event type, shown to the operator. */
  kind: string
  /** In paise; negative for a deduction. */
  amount: number
  /** UTR of the payout; undefined until the payout is made. */
  payoutUtr: string | undefined
  /** When the payout was initiated, in the acquirer's format. */
  paidOutAt?: string | undefined
  /**
   * The event as a line of a settlement file; undefined unless the event is a payment, a deduction from a payment, or a
   * returned deduction.
   */
  line?: SettledLine | undefined
}

/** A settlement line with the acquirer's unchecked texts, which the import validates. `fee` and `tax` are in paise. */
export type SettledLine = {
  orderId: string | undefined
  /** Undefined for a payment's own line, which uses the payment's UTR. */
  utr?: string | undefined
  /**
   * The UTR under which an earlier import may have stored this line, before the acquirer replaced it with `utr`, or before
   * the payment was known.
   */
  earlierUtr?: string | undefined
  event: 'payment' | 'refund' | 'dispute' | 'dispute reversal' | 'other'
  /** The payment on this line: the acquirer's payment id and the bank reference. */
  payment: { id: string | undefined; utr: string | undefined }
  instrument: ReportedInstrument | undefined
  fee: number | undefined
  tax: number | undefined
  initiatedAt: string | undefined
  createdAt: string | undefined
}
