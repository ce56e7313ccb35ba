import type { HttpClient } from '../outbound/http-client.ts'
import type { Merchant } from '../tenants/merchants.ts'
import type { AcquirerClient } from './client.ts'
import type { Notifications } from './notification.ts'

/** An acquirer: which merchants may have it, and how to reach it. `Settings` holds what the operator has set up. */
export type Acquirer<Settings> = {
  /** Names of the variables that set it up, to tell the operator. */
  variables: string
  /** Why it cannot serve a merchant, for the operator; undefined when it can. */
  faultOf?: (merchant: AcquirerMerchant) => string | undefined
  /** Its notifications; undefined unless it is set up. */
  notifications: (settings: Settings) => Notifications | undefined
  /** The client of an acquirer that makes its own links; undefined unless it is set up. `elapsedMs` is a monotonic clock. */
  client?: (settings: Settings, http: HttpClient, elapsedMs: () => number) => AcquirerClient | undefined
  /** What it has settled; undefined unless it is set up. Absent where only the bank's file tells that. */
  settled?: (settings: Settings, http: HttpClient) => ReadSettled | undefined
}

export type AcquirerMerchant = Pick<Merchant, 'vpa'> & { acquirerMerchantId?: string | null | undefined }

/**
 * Reads what an acquirer has settled on the days `from` to `to` (`YYYY-MM-DD`, IST, both included), page by page. `pause`
 * resolves after so many milliseconds. Throws an AcquirerError.
 */
export type ReadSettled = (
  days: { from: string; to: string },
  pause: (ms: number) => Promise<unknown>,
) => AsyncIterable<SettledEvent[]>

/** Money that an acquirer puts into a payout, or takes out of it. */
export type SettledEvent = {
  /** The acquirer's word for what it is. */
  kind: string
  /** In paise; negative where it is taken out. */
  amount: number
  /** The line of a settlement file that it makes; undefined unless it is a payment, or takes one back. */
  line?: SettledLine | undefined
}

/** Texts are as the acquirer wrote them: the import checks them. `fee` and `tax` are in paise. */
export type SettledLine = {
  orderId: string | undefined
  utr: string | undefined
  /** By which it may be stored already, since the acquirer told its `utr` later. */
  earlierUtr?: string | undefined
  paymentUtr: string | undefined
  /** Undefined until it is paid out. */
  payoutUtr: string | undefined
  fee: number | undefined
  tax: number | undefined
  initiatedAt: string | undefined
  createdAt: string | undefined
}
