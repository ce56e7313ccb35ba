import type { KeyObject } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import type { Limits } from '../limits.ts'
import type { Metrics } from '../metrics.ts'
import type { HttpClient } from '../outbound/http-client.ts'
import type { JobSource } from '../scheduler/scheduler.ts'
import type { Attempt, Deliveries, Delivery, DueEndpoint, Endpoint } from './deliveries.ts'
import { isTaken, toMessage, toRequest } from './message.ts'
import { nextAttempt } from './schedule.ts'
import { ownerOf, unsealAll } from './sealing.ts'

type Dependencies = {
  deliveries: Deliveries
  http: HttpClient
  /** What the secrets of webhooks are sealed by; without it none can be signed. */
  sealingKey: KeyObject | undefined
  log: Pick<Logger, 'warn' | 'error'>
  metrics: Metrics['webhooks']
  now: () => Date
  limits: Limits['webhooks']
}

/**
 * The delivery of webhooks and return calls. Failing endpoints are a group of their own, because each call of one may
 * take 15 s.
 */
export function dueDeliveries({ deliveries, http, sealingKey, log, metrics, now, limits }: Dependencies): JobSource {
  /** Time value since which the oldest delivery is due, or since which it is unknown what is due. */
  let behindSince = Number.POSITIVE_INFINITY
  /** Endpoints that were logged because this instance cannot sign for them: it looks at them each second. */
  const logged = new LRUCache<string, true>({ max: limits.lookedAt, ttl: limits.visibilityMs })

  return {
    name: 'webhooks',
    atOnce: { ofQueue: limits.callsOfEndpoint, ofGroup: limits.callsAtOnce / 2 },
    async findQueues() {
      // An endpoint for which this instance cannot sign is left to the others.
      const due = (await findDue()).filter((endpoint) => secretsOf(endpoint) !== undefined)
      return due.map((endpoint) => ({
        key: `${endpoint.mid} ${endpoint.endpointId}`,
        group: endpoint.failing ? 'failing webhooks' : 'webhooks',
        claim: async (most) => {
          const dueAgainAt = new Date(now().getTime() + limits.visibilityMs)
          const taken = await deliveries.take(endpoint.mid, endpoint.endpointId, most, now(), dueAgainAt)
          return taken.map((delivery) => (signal) => deliver(delivery, signal))
        },
      }))
    },
  }

  async function findDue(): Promise<DueEndpoint[]> {
    try {
      const due = await deliveries.findDue(limits.lookedAt, now())
      behindSince = Math.min(...due.map(({ dueAt }) => dueAt.getTime()))
      return due
    } catch (error) {
      behindSince = Math.min(behindSince, now().getTime())
      throw error
    } finally {
      metrics.oldestDue(Math.max(0, now().getTime() - behindSince) / 1000)
    }
  }

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

  /**
   * Delivers once and resolves to true when the outcome is stored. A delivery whose outcome cannot be stored is made
   * again, and so would the next ones be: false keeps them from being taken at once.
   */
  async function deliver(delivery: Delivery, signal: AbortSignal): Promise<boolean> {
    const secrets = secretsOf(delivery)
    if (!secrets) return false
    const made = await attempt(delivery, secrets, signal)
    // A cancelled call is made again, because it is unknown whether it has arrived.
    if (signal.aborted) return false
    const reason = await deliveries.settle(made)
    if (reason) {
      const { mid, endpointId } = delivery
      metrics.endpointSwitchedOff(reason)
      log.warn({ mid, endpoint: endpointId, reason }, 'a webhook was switched off')
    }
    return true
  }

  /** Calls the endpoint once, counts what came of it, and says when to call again. */
  async function attempt(delivery: Delivery, secrets: string[], signal: AbortSignal): Promise<Attempt> {
    const { kind, url } = delivery
    const request = kind === 'webhook' ? toRequest(toMessage(delivery), { url, secrets, sentAt: now() }) : { kind, url }
    const result = await http.request({ ...request, signal })
    const at = now()
    const failed = 'failure' in result
    const delivered = !failed && (kind === 'webhook' ? isTaken(result.status) : isThanked(result.status))
    const refused = failed && result.failure === 'not allowed'
    metrics.delivery(kind, delivered ? 'delivered' : refused ? 'refused address' : 'failed')
    const mayAskForPause = !failed && (result.status === 429 || result.status === 503)
    const pauseSeconds = mayAskForPause ? result.retryAfterSeconds : undefined
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
}

/** Whether a shop has answered a return call as it answers its customer's browser, which it may redirect. */
const isThanked = (status: number) => status >= 200 && status < 400
