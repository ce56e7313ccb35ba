import type { Logger } from 'pino'
import { AcquirerError } from '../../errors.ts'
import type { Limits } from '../../limits.ts'
import type { Intent, PaymentLink } from '../payments/intent.ts'
import type { PaymentReport } from '../payments/outcome.ts'
import type { DueRefund } from '../refunds/due-refunds.ts'
import type { RefundUpdate } from '../refunds/refund.ts'
import { type AccountKind, accountKind, splitAccountName } from './accounts.ts'
import { undone } from './json-request.ts'

/**
 * The client of an acquirer that makes its own links. `signal` aborts a call; a call without a signal has the time
 * limit of `withLimits`. A call that fails or is aborted rejects with an AcquirerError.
 */
export type AcquirerClient = {
  /**
   * Makes a link for an intent, checked by `readPaymentLink`. The merchant's `id` is its identifier at the acquirer;
   * the link pays one of `payees`, which is its `payeeVpa`. The error of a failed call has `isUndone` if certainly no link
   * was made, and `unsureLink` if a link may have been made that can be closed.
   */
  createLink: (
    intent: Intent,
    merchant: { id: string; payees: readonly string[] },
    signal?: AbortSignal,
  ) => Promise<{ paymentLink: PaymentLink; payeeVpa: string }>
  /**
   * Closes a link, so that nobody can pay by it. Resolves to `paid` if the acquirer refuses because the order may be paid,
   * and to `unknown` while a payment is under way that may still succeed, or if the acquirer cannot close links.
   */
  closeLink: (link: PaymentLink, signal?: AbortSignal) => Promise<'closed' | 'paid' | 'unknown'>
  /**
   * All successful payments of an order, otherwise its last failed one; none while a payment is pending. Of an order that is
   * open, a failed payment may be left out, if a query for successes alone is cheaper. Rejects with an AcquirerError that
   * has `isUnreadable` if the response is about this order, and its state is unknown, or it is paid in an unknown form.
   */
  getPayments: (order: LinkedOrder, signal?: AbortSignal) => Promise<PaymentReport[]>
  /** Simulates a payment of `amount` (in paise) by a link. Only the sandbox of an acquirer supports this call. */
  simulate: (
    link: PaymentLink,
    attempt: { payeeVpa: string; amount: number; succeeds: boolean },
    signal?: AbortSignal,
  ) => Promise<void>
  /** Sends a refund. Absent if only a person can send money back at this acquirer. */
  refund?: (order: RefundOrder, signal?: AbortSignal) => Promise<RefundUpdate>
  /** The state of a refund; undefined when the acquirer does not have the refund. */
  getRefund?: (order: RefundOrder, signal?: AbortSignal) => Promise<RefundUpdate | undefined>
  /** Resolves if the acquirer accepts the account's credentials. Changes nothing at the acquirer. */
  check: (signal?: AbortSignal) => Promise<void>
  /** Whether the acquirer recognises a repeated refund by its `ourRefundId`. If not, a refund is sent at most once. */
  repeatsRefunds?: boolean | undefined
}

/** The parts of a client: `links.ts` and `refunds.ts` of an acquirer's folder. */
export type Links = Pick<AcquirerClient, 'createLink' | 'closeLink'>
export type Refunds = Pick<Required<AcquirerClient>, 'refund' | 'getRefund'> & Pick<AcquirerClient, 'repeatsRefunds'>

/** `isOpen` is whether the order's time to pay has certainly not ended. */
export type LinkedOrder = { orderId: string; paymentLink: PaymentLink; isOpen?: boolean }

/** A refund to send or to query. `amount` is in paise, `utr` is that of the refunded payment. */
export type RefundOrder = Omit<DueRefund, 'mid' | 'acquirer' | 'acquirerRefundId' | 'createdAt' | 'sentAt'>

/** Names of calls in metrics. */
type CallName = Exclude<keyof AcquirerClient, 'repeatsRefunds' | 'getPayments'> | 'getPayment'

type CallOutcome = 'done' | 'crowded' | AcquirerError['outcome']

/** The client of an account with its limits. */
export type LimitedClient = AcquirerClient & {
  /** Whether the account has not failed to answer lately. */
  isReachable: () => boolean
}

/** A client that may be asked for a merchant's link, with the merchant's identifier there. */
export type Linker = {
  client: Links
  merchantId: string
  /** Whether the account is the merchant's next one. */
  isFallback: boolean
  /** What the account is, and the merchant's first one. */
  kind: AccountKind
  firstKind: AccountKind
}

export type ClientOptions = {
  log: Pick<Logger, 'warn' | 'error'>
  onCall: (account: AccountLabels, call: CallName, outcome: CallOutcome) => void
  /** A monotonic clock. */
  elapsedMs: () => number
  limits: Pick<Limits['acquirers'], 'callsUnderWay' | 'requestMs' | 'unreachedMs'>
}

/** An account in metrics: its acquirer and its kind, because a metric must not have a label for each account. */
export type AccountLabels = { acquirer: string; account: AccountKind }

type NamedAccount = { name: string; disabledAt: Date | null }

export const labelsOf = ({ name, disabledAt }: NamedAccount): AccountLabels => ({
  acquirer: splitAccountName(name).acquirer,
  account: accountKind(name, disabledAt !== null),
})

/**
 * Returns the client of an account with limits of a call's time and of the number of simultaneous calls. Failed
 * calls are logged.
 */
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
    // getPayment is never rejected here, because the refused query would count as one of the few that an order has.
    if (underWay >= limits.callsUnderWay && callName !== 'getPayment') {
      onCall(labels, callName, 'crowded')
      throw undone(new AcquirerError('unavailable', `too many calls of ${name} are under way`))
    }
    underWay++
    try {
      const result = await send(signal)
      reachableAgainMs = 0
      onCall(labels, callName, 'done')
      return result
    } catch (error) {
      if (!(error instanceof AcquirerError)) throw error
      reachableAgainMs = error.isUnanswered ? elapsedMs() + limits.unreachedMs : 0
      onCall(labels, callName, error.outcome)
      const level = error.outcome === 'unavailable' ? 'warn' : 'error'
      log[level]({ acquirer: name, call: callName, outcome: error.outcome, ...error.facts }, error.message)
      throw error
    } finally {
      underWay--
    }
  }

  const { refund, getRefund, repeatsRefunds } = client
  return {
    createLink: (intent, merchant, until) =>
      call('createLink', (signal) => client.createLink(intent, merchant, signal), until),
    closeLink: (link, until) => call('closeLink', (signal) => client.closeLink(link, signal), until),
    getPayments: (order, until) => call('getPayment', (signal) => client.getPayments(order, signal), until),
    simulate: (link, attempt, until) => call('simulate', (signal) => client.simulate(link, attempt, signal), until),
    ...(refund && { refund: (order, until) => call('refund', (signal) => refund(order, signal), until) }),
    ...(getRefund && { getRefund: (order, until) => call('getRefund', (signal) => getRefund(order, signal), until) }),
    check: (until) => call('check', (signal) => client.check(signal), until),
    repeatsRefunds,
    isReachable: () => elapsedMs() >= reachableAgainMs,
  }
}
