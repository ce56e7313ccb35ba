import type { KeyObject } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import type { Limits } from '../limits.ts'
import type { Caller } from '../outside/call.ts'
import type { Attempt, Delivery, Endpoint } from './deliveries.ts'
import { isTaken, toCall, toMessage } from './message.ts'
import { nextAttempt } from './schedule.ts'
import { ownerOf, unsealAll } from './sealing.ts'

/** What is counted: why an attempt has ended. */
type DeliveryOutcome = 'delivered' | 'failed' | 'refused address'

export type AttemptDependencies = {
  call: Caller
  /** What the secrets of webhooks are sealed by; without it none can be signed. */
  sealingKey: KeyObject | undefined
  log: Pick<Logger, 'error'>
  metrics: { delivery: (kind: Endpoint['kind'], outcome: DeliveryOutcome) => void }
  now: () => Date
  limits: Pick<Limits['webhooks'], 'lookedAt' | 'visibilityMs'>
}

/** Attempts to deliver, each on its own. */
export function createAttempts({ call, sealingKey, log, metrics, now, limits }: AttemptDependencies) {
  /** Endpoints that were logged because this instance cannot sign for them: it looks at them each second. */
  const logged = new LRUCache<string, true>({ max: limits.lookedAt, ttl: limits.visibilityMs })

  /** The secrets that sign for the endpoint, none of a return call; undefined, and logged, when they cannot be unsealed. */
  function secretsOf(endpoint: Endpoint): string[] | undefined {
    if (endpoint.kind === 'return call') return []
    const owner = ownerOf(endpoint)
    try {
      if (!sealingKey) throw new Error('WEBHOOK_SEALING_KEY is not set')
      return unsealAll(sealingKey, endpoint.secrets, owner)
    } catch (error) {
      if (!logged.has(owner)) {
        log.error(
          { mid: endpoint.mid, endpoint: endpoint.endpointId, error: (error as Error).message },
          'a webhook waits, because its secret cannot be unsealed: set WEBHOOK_SEALING_KEY to the key that it was added with',
        )
      }
      logged.set(owner, true)
      return undefined
    }
  }

  /** Calls the endpoint once, counts what came of it, and says when to call again. */
  async function attemptOf(delivery: Delivery, secrets: string[], signal: AbortSignal): Promise<Attempt> {
    const { kind, url } = delivery
    const request = kind === 'webhook' ? toCall(toMessage(delivery), { url, secrets, sentAt: now() }) : { kind, url }
    const result = await call({ ...request, signal })
    const at = now()
    const failed = 'failure' in result
    const delivered = !failed && (kind === 'webhook' ? isTaken(result.status) : isThanked(result.status))
    const refused = failed && result.failure === 'not allowed'
    metrics.delivery(kind, delivered ? 'delivered' : refused ? 'refused address' : 'failed')
    const pauseSeconds =
      !failed && (result.status === 429 || result.status === 503) ? result.retryAfterSeconds : undefined
    // A shop answers a return call by a redirect also when it could not ask for the payment: only checkPaymentStatus ends it.
    // It does not move out of a private network within three days.
    const isLast = kind === 'webhook' ? delivered : refused
    return {
      delivery,
      delivered,
      outcome: failed ? result.failure : String(result.status),
      // The body of a return call is not kept: a thank-you page may contain the customer's name.
      answer: delivered && kind === 'return call' ? '' : result.text,
      at,
      next: isLast ? undefined : nextAttempt(delivery.attempts + 1, at, pauseSeconds, Math.random()),
    }
  }

  return { secretsOf, attemptOf }
}

/** Whether a shop has answered a return call as it answers its customer's browser, which it may redirect. */
const isThanked = (status: number) => status >= 200 && status < 400
