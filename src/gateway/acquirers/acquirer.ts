import type { HttpClient } from '../../platform/outbound/http-client.ts'
import type { EnquiryRules } from '../payments/enquiry-times.ts'
import type { Merchant } from '../tenants/merchants.ts'
import type { AcquirerClient } from './client.ts'
import type { Notifications } from './notification.ts'

export type Acquirer<Settings> = {
  /** Names of the environment variables with the acquirer's settings, for messages to the operator. */
  variables: string
  /** The reason why the acquirer cannot serve a merchant, as a text for the operator; undefined when there is none. */
  faultOf?: (merchant: AcquirerMerchant) => string | undefined
  /** When and how often the acquirer may be queried about payments. Absent if we make the links. */
  enquiryRules?: EnquiryRules
  /** The acquirer's notifications; undefined unless the acquirer is set up. */
  notifications: (settings: Settings) => Notifications | undefined
  /** Absent if we make the links. Returns undefined unless the acquirer is set up. `elapsedMs` is a monotonic clock. */
  client?: (settings: Settings, http: HttpClient, elapsedMs: () => number) => AcquirerClient | undefined
  /** Absent if only a file of the bank reports settlements. Returns undefined unless the acquirer is set up. */
  settled?: (settings: Settings, http: HttpClient) => ReadSettled | undefined
}

export type AcquirerMerchant = Pick<Merchant, 'vpa'> & {
  acquirerMerchantId?: string | null | undefined
  expiryMinutes?: number | null | undefined
}

/**
 * Reads an acquirer's settlements of the days `from` to `to` (`YYYY-MM-DD`, IST, both included), page by page. Throws
 * an AcquirerError. `pause` resolves after `ms` milliseconds.
 */
export type ReadSettled = (
  days: { from: string; to: string },
  pause: (ms: number) => Promise<unknown>,
) => AsyncIterable<SettledEvent[]>

/** Money that an acquirer adds to a payout, or deducts from it. */
export type SettledEvent = {
  /** The acquirer's own name for the kind of event, shown to the operator. */
  kind: string
  /** The amount in paise; negative for a deduction. */
  amount: number
  /** The UTR of the payout; undefined until the money is paid out. */
  payoutUtr: string | undefined
  /** When the payout was initiated, in the acquirer's form. */
  paidOutAt?: string | undefined
  /** The event as a line of a settlement file; undefined unless the event is a payment or takes a payment back. */
  line?: SettledLine | undefined
}

/** A settlement line, with the acquirer's texts unchecked: the import checks them. `fee` and `tax` are in paise. */
type SettledLine = {
  orderId: string | undefined
  /** Undefined for the line of a payment itself, whose UTR is that of the payment. */
  utr?: string | undefined
  /** An older UTR of this line: an earlier import may have stored the line under it, before the acquirer changed it to `utr`. */
  earlierUtr?: string | undefined
  /** The payment that the line is about: the acquirer's id and the bank's reference. */
  payment: { id: string | undefined; utr: string | undefined }
  fee: number | undefined
  tax: number | undefined
  initiatedAt: string | undefined
  createdAt: string | undefined
}
