import type { Logger } from 'pino'
import { unavailable } from '../errors.ts'
import type { Limits } from '../limits.ts'
import type { Intent, PaymentLink } from '../payments/intent.ts'
import {
  type AcquirerCalls,
  AcquirerError,
  type LinkMerchant,
  type PlayedAttempt,
  type RefundOrder,
  type RefundTold,
} from './acquirer.ts'
import { undone } from './json-request.ts'
import { STRANGE_REFUND } from './notification.ts'

export type CallOutcome = 'done' | 'crowded' | AcquirerError['outcome']

type CallName = Exclude<keyof AcquirerCalls, 'repeatsRefunds'>

export type AcquirerClientOptions = {
  log: Pick<Logger, 'warn' | 'error'>
  onCall: (acquirer: string, call: CallName, outcome: CallOutcome) => void
  limits: Limits['acquirers']
  /** A monotonic clock in milliseconds. */
  elapsedMs: () => number
}

export type AcquirerClient = ReturnType<typeof createAcquirerClient>

/** The calls of one acquirer, bounded in time and number, each logged if it fails, and counted. */
export function createAcquirerClient(
  name: string,
  calls: AcquirerCalls,
  { log, onCall, limits, elapsedMs }: AcquirerClientOptions,
) {
  let underWay = 0

  async function bounded<T>(call: CallName, work: (signal: AbortSignal) => Promise<T>, began = elapsedMs()) {
    // Enquiries are never refused here. Few are made at once, and each is counted before it is asked, so that a refusal
    // would use up one of an order's three.
    if (underWay >= limits.callsUnderWay && call !== 'enquire') {
      onCall(name, call, 'crowded')
      throw undone(new AcquirerError('unavailable', `too many calls of ${name} are under way`))
    }
    underWay++
    try {
      const leftMs = began + limits.requestMs - elapsedMs()
      const result = await work(AbortSignal.timeout(Math.max(0, Math.ceil(leftMs))))
      onCall(name, call, 'done')
      return result
    } catch (error) {
      if (!(error instanceof AcquirerError)) throw error
      onCall(name, call, error.outcome)
      const level = error.outcome === 'unavailable' ? 'warn' : 'error'
      log[level]({ acquirer: name, call, outcome: error.outcome, ...error.facts }, error.message)
      throw error
    } finally {
      underWay--
    }
  }

  /** What was told of a refund; a state that we do not know is logged. */
  async function requestRefund(call: 'refund' | 'findRefund', order: RefundOrder): Promise<RefundTold | undefined> {
    const told = await bounded(call, async (signal) => calls[call]?.(order, signal))
    if (told?.strangeStatus !== undefined) {
      const { ourRefundId, orderId } = order
      log.error({ acquirer: name, call, ourRefundId, orderId, status: told.strangeStatus }, STRANGE_REFUND)
    }
    return told
  }

  return {
    /** Sends and finds refunds, and rejects with an AcquirerError; undefined where only a person can send money back. */
    refunds: calls.refund && {
      mayRepeat: calls.repeatsRefunds === true,
      send: (order: RefundOrder) => requestRefund('refund', order),
      find: (order: RefundOrder) => requestRefund('findRefund', order),
    },

    /**
     * Makes a link for a request that began at `began`, by `elapsedMs`. The time limit counts from there: otherwise the
     * intent could be stored after the caller has received 503.
     */
    prepare: (intent: Intent, merchant: LinkMerchant, began: number) =>
      bounded('prepare', (signal) => calls.prepare(intent, merchant, signal), began).catch(orUnavailable),

    /**
     * Plays a customer in the acquirer's sandbox. The result comes as for any payment: by a notification or an enquiry.
     */
    playCustomer: (link: PaymentLink, attempt: PlayedAttempt) =>
      bounded('playCustomer', (signal) => calls.playCustomer(link, attempt, signal)).catch(orUnavailable),

    /** Closes a link, without a second try: a link that stays open expires by itself. Resolves as `calls.close` does. */
    close: (link: PaymentLink) =>
      bounded('close', (signal) => calls.close(link, signal)).catch((error) => {
        if (!(error instanceof AcquirerError)) throw error
      }),

    /** Rejects with an AcquirerError. */
    enquire: (link: PaymentLink) => bounded('enquire', (signal) => calls.enquire(link, signal)),
  }
}

/** Throws 503 for every AcquirerError: the caller can only send the request again. Other errors pass unchanged. */
function orUnavailable(error: unknown): never {
  throw error instanceof AcquirerError ? unavailable() : error
}
