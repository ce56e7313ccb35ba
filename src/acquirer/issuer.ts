import type { Logger } from 'pino'
import { unavailable } from '../errors.ts'
import type { Limits } from '../limits.ts'
import type { Intent, IssuedLink } from '../payments/intent.ts'
import type { FinalStatus } from '../payments/outcome.ts'

/** What an acquirer knows of a payment that has ended. `amount` is decimal text with two decimals. */
export type Told = { status: FinalStatus; utr: string | undefined; amount: string; paidAt: Date | undefined }

/** When a request has to be done, by `elapsedMs`. */
type Deadline = number

/** How an acquirer that makes its own links is asked. Each function rejects with an AcquirerFault. */
export type AcquirerCalls = {
  /** Makes a link for an intent of the acquirer's merchant `merchantId`. */
  prepare: (intent: Intent, merchantId: string, deadline: Deadline) => Promise<IssuedLink>
  /** Lets nobody pay by a link any more. */
  close: (link: IssuedLink, deadline: Deadline) => Promise<void>
  /** The last payment by a link; undefined when there is none, or it has not ended. */
  enquire: (link: IssuedLink, deadline: Deadline) => Promise<Told | undefined>
  /** Plays a customer who tries to pay by a link. Only an acquirer's sandbox does it. */
  playCustomer: (link: IssuedLink, attempt: PlayedAttempt, deadline: Deadline) => Promise<void>
}

/** What a played customer does: pays `amount`, in paise, to `payeeVpa`, or fails to. */
export type PlayedAttempt = { payeeVpa: string; amount: number; succeeds: boolean }

/**
 * Why an acquirer did not do what it was asked for: `refused` is a fault of its set-up, which the operator has to mend;
 * `bad answer` is one that must not be believed; `unavailable` passes by itself. `facts` go to the log.
 */
export class AcquirerFault extends Error {
  readonly outcome: 'refused' | 'bad answer' | 'unavailable'
  readonly facts: Record<string, unknown>

  constructor(outcome: AcquirerFault['outcome'], message: string, facts: Record<string, unknown> = {}) {
    super(message)
    this.name = 'AcquirerFault'
    this.outcome = outcome
    this.facts = facts
  }
}

export type CallOutcome = 'done' | 'crowded' | AcquirerFault['outcome']

type Call = keyof AcquirerCalls

export type Issuer = ReturnType<typeof createIssuer>

/** The calls of one acquirer, bounded in time and number, each logged if it fails, and counted. */
export function createIssuer(
  name: string,
  { prepare, close, enquire, playCustomer }: AcquirerCalls,
  {
    log,
    onCall,
    limits,
    elapsedMs,
  }: {
    log: Pick<Logger, 'warn' | 'error'>
    onCall: (acquirer: string, call: Call, outcome: CallOutcome) => void
    limits: Limits['acquirers']
    /** Milliseconds by a clock that nobody sets. */
    elapsedMs: () => number
  },
) {
  let underWay = 0

  async function ask<T>(call: Call, work: (deadline: Deadline) => Promise<T>, began = elapsedMs()): Promise<T> {
    // A question is counted before it is asked, and few are asked at once: refused here, one of three would be lost.
    if (underWay >= limits.callsUnderWay && call !== 'enquire') {
      onCall(name, call, 'crowded')
      throw new AcquirerFault('unavailable', `too many calls of ${name} are under way`)
    }
    underWay++
    try {
      const result = await work(began + limits.requestMs)
      onCall(name, call, 'done')
      return result
    } catch (error) {
      if (!(error instanceof AcquirerFault)) throw error
      onCall(name, call, error.outcome)
      const level = error.outcome === 'unavailable' ? 'warn' : 'error'
      log[level]({ acquirer: name, call, outcome: error.outcome, ...error.facts }, error.message)
      throw error
    } finally {
      underWay--
    }
  }

  /** Throws 503 where it fails, whatever the reason: the caller can do nothing but send it again. */
  async function askOrUnavailable<T>(...request: Parameters<typeof ask<T>>): Promise<T> {
    try {
      return await ask(...request)
    } catch (error) {
      throw error instanceof AcquirerFault ? unavailable() : error
    }
  }

  return {
    /**
     * For a request that `began` then, by `elapsedMs`: what it did before is part of its time. Otherwise the intent
     * could be stored after the caller has received 503.
     */
    prepare: (intent: Intent, merchantId: string, began: number): Promise<IssuedLink> =>
      askOrUnavailable('prepare', (deadline) => prepare(intent, merchantId, deadline), began),

    /** What becomes of it is told as any payment is. */
    playCustomer: (link: IssuedLink, attempt: PlayedAttempt): Promise<void> =>
      askOrUnavailable('playCustomer', (deadline) => playCustomer(link, attempt, deadline)),

    /** Once, and nobody waits for it: a link that stays open expires by itself. */
    close(link: IssuedLink): void {
      ask('close', (deadline) => close(link, deadline)).catch((error) => {
        if (!(error instanceof AcquirerFault)) throw error
      })
    },

    /** Rejects with an AcquirerFault. */
    enquire: (link: IssuedLink): Promise<Told | undefined> => ask('enquire', (deadline) => enquire(link, deadline)),
  }
}
