import type { Logger } from 'pino'
import { AcquirerError } from '../../errors.ts'
import type { Limits } from '../../limits.ts'
import type { DisputeReport } from '../disputes/dispute.ts'
import type { Intent, PaymentLink } from '../payments/intent.ts'
import type { PaymentReport } from '../payments/outcome.ts'
import type { PendingRefund } from '../refunds/pending-refunds.ts'
import type { RefundUpdate } from '../refunds/refund.ts'
import { type AccountKind, accountKind, splitAccountName } from './accounts.ts'
import { undone } from './json-request.ts'

/**
 * The client of an acquirer that creates its own links. `signal` aborts a call; without a signal, the time limit of
 * `withLimits` applies. A failed or aborted call rejects with an AcquirerError.
 */
export type AcquirerClient = {
  /**
   * Creates a link for an intent and checks the link with `readPaymentLink`. `id` is the merchant's identifier at the
   * acquirer. The link pays one of `payees`, returned as `payeeVpa`. A rejection has `isUndone` if certainly no link
   * was created, and `unsureLink` if the call may have created one that the service can close.
   */
  createLink: (
    intent: Intent,
    merchant: { id: string; payees: readonly string[] },
    signal?: AbortSignal,
  ) => Promise<{ paymentLink: PaymentLink; payeeVpa: string }>
  /**
   * Closes a link, so that customers can no longer pay with the link. Resolves to `paid` if the acquirer rejects the
   * call because the order may be paid, and to `unknown` while a payment in progress may still succeed or if the
   * acquirer cannot close links.
   */
  closeLink: (link: PaymentLink, signal?: AbortSignal) => Promise<'closed' | 'paid' | 'unknown'>
  /**
   * Returns all successful payments of an order, otherwise the order's last failed payment. The result is empty while a
   * payment is pending. For an open order, a failed payment may be omitted if checking for success alone is cheaper.
   * Rejects with an AcquirerError. The error has `isUnreadable` if the response is about this order but reports an
   * unknown state, or a payment in an unknown format.
   */
  getPayments: (order: LinkedOrder, signal?: AbortSignal) => Promise<PaymentReport[]>
  /** Simulates a payment of `amount` paise for a link. Only an acquirer's sandbox supports this call. */
  simulate: (
    link: PaymentLink,
    attempt: { payeeVpa: string; amount: number; succeeds: boolean },
    signal?: AbortSignal,
  ) => Promise<void>
  /** Sends a refund. Absent if only the operator can send refunds at this acquirer. */
  refund?: (order: RefundOrder, signal?: AbortSignal) => Promise<RefundUpdate>
  /** Returns the status of a refund; undefined if the acquirer does not have the refund. */
  getRefund?: (order: RefundOrder, signal?: AbortSignal) => Promise<RefundUpdate | undefined>
  /** Returns the state of a dispute; undefined if the acquirer does not have the dispute. Absent without such a call. */
  getDispute?: (dispute: { id: string; orderId: string }, signal?: AbortSignal) => Promise<DisputeReport | undefined>
  /** Returns all disputes of the account in a period. Absent if the acquirer does not list disputes by time. */
  listDisputes?: (period: { from: Date; to: Date }, signal?: AbortSignal) => Promise<DisputeReport[]>
  /** Resolves if the acquirer accepts the account's credentials. The call changes nothing at the acquirer. */
  check: (signal?: AbortSignal) => Promise<void>
  /**
   * Whether the acquirer recognises a repeated refund by its `ourRefundId`. If the acquirer does not, the service sends
   * each refund at most once.
   */
  repeatsRefunds?: boolean | undefined
}

/** The parts of a client, one per file in an acquirer's folder: `links.ts` and `refunds.ts`. */
export type Links = Pick<AcquirerClient, 'createLink' | 'closeLink'>
export type Refunds = Pick<Required<AcquirerClient>, 'refund' | 'getRefund'> & Pick<AcquirerClient, 'repeatsRefunds'>

/** `isOpen` is true only if the order has certainly not expired. */
export type LinkedOrder = { orderId: string; paymentLink: PaymentLink; isOpen?: boolean }

/** A refund to send or check. `amount` is in paise; `utr` belongs to the refunded payment. */
export type RefundOrder = Omit<PendingRefund, 'mid' | 'acquirer' | 'createdAt' | 'sentAt' | 'acceptedAt'>

/** Values of the metric label `call`. */
type CallName = Exclude<keyof AcquirerClient, 'repeatsRefunds' | 'getPayments'> | 'getPayment'

type CallOutcome = 'done' | 'crowded' | AcquirerError['outcome']

/** The client of an acquirer account, with limits on the duration and number of concurrent calls. */
export type LimitedClient = AcquirerClient & {
  /** False for a while after the account failed to respond. */
  isReachable: () => boolean
}

/** A client that can create a merchant's link, with the merchant's identifier at that acquirer. */
export type Linker = {
  client: Links
  merchantId: string
  /** Whether this is the merchant's fallback account. */
  isFallback: boolean
  /** Kind of this account, for metrics. */
  kind: AccountKind
  /** Kind of the merchant's first account, for metrics. */
  firstKind: AccountKind
}

export type ClientOptions = {
  log: Pick<Logger, 'warn' | 'error'>
  onCall: (account: AccountLabels, call: CallName, outcome: CallOutcome) => void
  /** A monotonic clock. */
  elapsedMs: () => number
  limits: Pick<Limits['acquirers'], 'callsUnderWay' | 'requestMs' | 'unreachedMs'>
}

/**
 * Metric labels of an account: its acquirer and its kind. One value per account would make the number of time series
 * unbounded.
 */
export type AccountLabels = { acquirer: string; account: AccountKind }

type NamedAccount = { name: string; disabledAt: Date | null }

export const labelsOf = ({ name, disabledAt }: NamedAccount): AccountLabels => ({
  acquirer: splitAccountName(name).acquirer,
  account: accountKind(name, disabledAt !== null),
})

/** Wraps an account's client with limits on the duration and number of concurrent calls, and logs failed calls. */
export function withLimits(
  account: NamedAccount,
  client: AcquirerClient,
  { log, onCall, elapsedMs, limits }: ClientOptions,
): LimitedClient {
  const { name } = account
  const labels = labelsOf(account)
  let underWay = 0
  let reachableAgainMs = 0

  async function call<T>(
    callName: CallName,
    send: (signal: AbortSignal) => Promise<T>,
    signal = AbortSignal.timeout(limits.requestMs),
  ): Promise<T> {
    // A status check is never rejected here, because a rejected check would use up one of the few checks that an order
    // has.
    if (underWay >= limits.callsUnderWay && callName !== 'getPayment') {
      onCall(labels, callName, 'crowded')
      throw undone(new AcquirerError('unavailable', `the limit of concurrent calls to ${name} is reached`))
    }
    underWay++
    try {
      const result = await send(signal)
      reachableAgainMs = 0
      onCall(labels, callName, 'done')
      return result
    } catch (error) {
      if (!(error instanceof AcquirerError)) throw error
      reachableAgainMs = error.hasNoResponse ? elapsedMs() + limits.unreachedMs : 0
      onCall(labels, callName, error.outcome)
      const level = error.outcome === 'unavailable' ? 'warn' : 'error'
      log[level]({ acquirer: name, call: callName, outcome: error.outcome, ...error.facts }, error.message)
      throw error
    } finally {
      underWay--
    }
  }

  const { refund, getRefund, getDispute, listDisputes, repeatsRefunds } = client
  return {
    createLink: (intent, merchant, until) =>
      call('createLink', (signal) => client.createLink(intent, merchant, signal), until),
    closeLink: (link, until) => call('closeLink', (signal) => client.closeLink(link, signal), until),
    getPayments: (order, until) => call('getPayment', (signal) => client.getPayments(order, signal), until),
    simulate: (link, attempt, until) => call('simulate', (signal) => client.simulate(link, attempt, signal), until),
    ...(refund && { refund: (order, until) => call('refund', (signal) => refund(order, signal), until) }),
    ...(getRefund && { getRefund: (order, until) => call('getRefund', (signal) => getRefund(order, signal), until) }),
    ...(getDispute && { getDispute: (one, until) => call('getDispute', (signal) => getDispute(one, signal), until) }),
    ...(listDisputes && {
      listDisputes: (period, until) => call('listDisputes', (signal) => listDisputes(period, signal), until),
    }),
    check: (until) => call('check', (signal) => client.check(signal), until),
    repeatsRefunds,
    isReachable: () => elapsedMs() >= reachableAgainMs,
  }
}
