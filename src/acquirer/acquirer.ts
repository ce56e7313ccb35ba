import type { HttpClient, HttpRequest } from '../outbound/http-client.ts'
import type { Intent, PaymentLink } from '../payments/intent.ts'
import type { FinalStatus, PaymentNames } from '../payments/outcome.ts'
import type { RefundWord } from '../refunds/end-refund.ts'
import type { Merchant } from '../tenants/merchants.ts'
import type { Notifications } from './notification.ts'

/** An acquirer: which merchants may have it, and how to reach it. `Settings` holds what the operator has set up. */
export type Acquirer<Settings> = {
  /** Names of the variables that set it up, to tell the operator. */
  variables: string
  /** Why it cannot serve a merchant, for the operator; undefined when it can. */
  faultOf: (merchant: Payee) => string | undefined
  /** Its notifications; undefined unless it is set up. */
  notifications: (settings: Settings) => Notifications | undefined
  /** Calls of an acquirer that makes its own links; undefined unless it is set up. `elapsedMs` is a monotonic clock. */
  calls?: (settings: Settings, http: HttpClient, elapsedMs: () => number) => AcquirerCalls | undefined
  /** What it has settled; undefined unless it is set up. Absent where only the bank's file tells that. */
  settled?: (settings: Settings, http: HttpClient) => ReadSettled | undefined
}

/** What an account has to know of the service; commands have none. */
export type Service = { production: boolean; publicUrl: string }

export type Payee = Pick<Merchant, 'vpa'> & { acquirerMerchantId?: string | null | undefined }

/** Sends a request whose `body` is JSON to an acquirer. Rejects with an AcquirerError when no whole answer comes. */
export type JsonRequest = (
  request: Pick<HttpRequest, 'method' | 'url' | 'headers' | 'limit' | 'signal'> & { body?: unknown },
) => Promise<JsonAnswer>

/** `body` is undefined if it is not JSON. `requestId` is the acquirer's name for the request, which its support asks for. */
export type JsonAnswer = { status: number; body: unknown; requestId: string | undefined }

/**
 * Calls of an acquirer that makes its own links. Each ends at `signal` at the latest, and rejects with an
 * AcquirerError.
 */
export type AcquirerCalls = {
  /** Makes a link for an intent. It was read by `readPaymentLink`. */
  prepare: (intent: Intent, merchant: LinkMerchant, signal: AbortSignal) => Promise<Prepared>
  /** Lets nobody pay by a link any more. Resolves to `refused` where the acquirer may have refused because it is paid. */
  close: (link: PaymentLink, signal: AbortSignal) => Promise<'refused' | undefined>
  /** The last payment by a link; undefined when there is none, or it has not ended. */
  enquire: (link: PaymentLink, signal: AbortSignal) => Promise<Told | undefined>
  /** Plays a customer who tries to pay by a link. Only an acquirer's sandbox does it. */
  playCustomer: (link: PaymentLink, attempt: PlayedAttempt, signal: AbortSignal) => Promise<void>
  /** Sends a refund. Undefined where only a person can send money back. */
  refund?: (order: RefundOrder, signal: AbortSignal) => Promise<RefundTold>
  /** What has become of a refund; undefined when the acquirer does not have it. */
  findRefund?: (order: RefundOrder, signal: AbortSignal) => Promise<RefundTold | undefined>
  /** Whether the acquirer knows a repeat by our name for the refund. Otherwise each is sent at most once. */
  repeatsRefunds?: boolean
}

/** A merchant for whom an acquirer makes links: its identifier there, and the payees that a link may have. */
export type LinkMerchant = { id: string; payees: readonly string[] }

/** `payeeVpa` is the link's `pa`. */
export type Prepared = { paymentLink: PaymentLink; payeeVpa: string }

/**
 * What an acquirer knows of a payment that has ended. `amount` is decimal text with two decimals, `names` how it calls the
 * payment.
 */
export type Told = {
  status: FinalStatus
  utr: string | undefined
  amount: string
  paidAt: Date | undefined
  names?: PaymentNames | undefined
}

/** A refund to send or to ask for. `amount` is in paise, `utr` the payment's. */
export type RefundOrder = {
  ourRefundId: string
  orderId: string
  amount: number
  note: string
  utr: string
  /** Whether its order was paid by another payment before. */
  isSecond: boolean
  link: PaymentLink
  /** Undefined until they are known. */
  names: PaymentNames | undefined
}

/** What an acquirer says of a refund. */
export type RefundTold = Omit<RefundWord, 'by'> & {
  /** A word for its state that we do not know; `status` is PENDING then. */
  strangeStatus?: string | undefined
  /** How the acquirer names the payment, where that was not known before. */
  names?: PaymentNames | undefined
}

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

/** What a played customer does: pays `amount`, in paise, to `payeeVpa`, or fails to. */
export type PlayedAttempt = { payeeVpa: string; amount: number; succeeds: boolean }

/**
 * Why an acquirer did not do what it was asked for: `refused` is a fault of its set-up, which the operator has to mend;
 * `bad answer` is one that must not be believed; `unavailable` passes by itself. `facts` go to the log.
 */
export class AcquirerError extends Error {
  readonly outcome: 'refused' | 'bad answer' | 'unavailable'
  readonly facts: Record<string, unknown>
  /** True when it is proven that what was asked for was not done, and will not be. */
  isUndone = false

  constructor(outcome: AcquirerError['outcome'], message: string, facts: Record<string, unknown> = {}) {
    super(message)
    this.name = 'AcquirerError'
    this.outcome = outcome
    this.facts = facts
  }
}
