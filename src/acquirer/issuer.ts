import type { Logger } from 'pino'
import { unavailable } from '../errors.ts'
import type { Limits } from '../limits.ts'
import type { Intent, IssuedLink } from '../payments/intent.ts'
import { type AcquirerCalls, AcquirerFault, type PlayedAttempt } from './acquirer.ts'

export type CallOutcome = 'done' | 'crowded' | AcquirerFault['outcome']

export type IssuerOptions = {
  log: Pick<Logger, 'warn' | 'error'>
  onCall: (acquirer: string, call: keyof AcquirerCalls, outcome: CallOutcome) => void
  limits: Limits['acquirers']
  /** Milliseconds by a clock that nobody sets. */
  elapsedMs: () => number
}

export type Issuer = ReturnType<typeof createIssuer>

/** The calls of one acquirer, bounded in time and number, each logged if it fails, and counted. */
export function createIssuer(name: string, calls: AcquirerCalls, { log, onCall, limits, elapsedMs }: IssuerOptions) {
  let underWay = 0

  async function ask<T>(call: keyof AcquirerCalls, work: (signal: AbortSignal) => Promise<T>, began = elapsedMs()) {
    // A question is counted before it is asked, and few are asked at once: refused here, one of three would be lost.
    if (underWay >= limits.callsUnderWay && call !== 'enquire') {
      onCall(name, call, 'crowded')
      throw new AcquirerFault('unavailable', `too many calls of ${name} are under way`)
    }
    underWay++
    try {
      const leftMs = began + limits.requestMs - elapsedMs()
      const result = await work(AbortSignal.timeout(Math.max(0, Math.ceil(leftMs))))
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

  return {
    /**
     * For a request that `began` then, by `elapsedMs`: what it did before is part of its time. Otherwise the intent
     * could be stored after the caller has received 503.
     */
    prepare: (intent: Intent, merchantId: string, began: number) =>
      ask('prepare', (signal) => calls.prepare(intent, merchantId, signal), began).catch(orUnavailable),

    /** What becomes of it is told as any payment is. */
    playCustomer: (link: IssuedLink, attempt: PlayedAttempt) =>
      ask('playCustomer', (signal) => calls.playCustomer(link, attempt, signal)).catch(orUnavailable),

    /** Once, and nobody waits for it: a link that stays open expires by itself. */
    close(link: IssuedLink): void {
      ask('close', (signal) => calls.close(link, signal)).catch((error) => {
        if (!(error instanceof AcquirerFault)) throw error
      })
    },

    /** Rejects with an AcquirerFault. */
    enquire: (link: IssuedLink) => ask('enquire', (signal) => calls.enquire(link, signal)),
  }
}

/** 503, whatever the reason: the caller can do nothing but send it again. */
function orUnavailable(error: unknown): never {
  throw error instanceof AcquirerFault ? unavailable() : error
}
