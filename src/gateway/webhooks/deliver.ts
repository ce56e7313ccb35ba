import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import type { Limits } from '../../limits.ts'
import { ownerOf, type SealingKeys, unsealAll } from '../../platform/encryption.ts'
import type { HttpClient } from '../../platform/outbound/http-client.ts'
import type { JobSource } from '../../platform/scheduler.ts'
import type { Attempt, Deliveries, Delivery, DueEndpoint, Endpoint } from './deliveries.ts'
import { isTaken, toMessage, toRequest } from './message.ts'
import { nextAttempt } from './schedule.ts'

export type WebhookMetrics = {
  delivery: (kind: 'webhook' | 'return call', outcome: 'delivered' | 'failed' | 'refused address') => void
  oldestDue: (seconds: number) => void
  endpointSwitchedOff: (reason: string) => void
}

type Dependencies = {
  deliveries: Deliveries
  http: HttpClient
  /** Open the secrets of webhooks; without a key no webhook can be signed. */
  sealingKeys: SealingKeys
  log: Pick<Logger, 'warn' | 'error'>
  metrics: WebhookMetrics
  now: () => Date
  limits: Limits['webhooks']
}

/** Delivers webhooks and return calls. Failing endpoints are a group of their own: each of their calls may take 15 s. */
export function dueDeliveries({ deliveries, http, sealingKeys, log, metrics, now, limits }: Dependencies): JobSource {
  /** Time value at which the oldest delivery became due, or at which the look for due deliveries began to fail. */
  let behindSince = Number.POSITIVE_INFINITY
  /** Endpoints logged because this instance cannot sign for them. Without the cache every look would log them again. */
  const logged = new LRUCache<string, true>({ max: limits.lookedAt, ttl: limits.visibilityMs })

  return {
    name: 'webhooks',
    atOnce: { ofQueue: limits.callsOfEndpoint, ofGroup: limits.callsAtOnce / 2 },
    async findQueues() {
      // Endpoints for which this instance cannot sign are left to other instances.
      const due = (await findDue()).filter((endpoint) => secretsOf(endpoint) !== undefined)
      return due.map((endpoint) => ({
        key: `${endpoint.mid} ${endpoint.endpointId}`,
        group: endpoint.failing ? 'failing webhooks' : 'webhooks',
        claim: async (most) => {
          const dueAgainAt = new Date(now().getTime() + limits.visibilityMs)
          const taken = await deliveries.take(endpoint, most, now(), dueAgainAt)
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

  /** Secrets that sign for the endpoint; undefined, with a line in the log, when they cannot be unsealed. */
  function secretsOf(endpoint: Endpoint): string[] | undefined {
    if (endpoint.kind === 'return call') return []
    const owner = ownerOf(endpoint)
    try {
      if (sealingKeys.length === 0) throw new Error('WEBHOOK_SEALING_KEY is not set')
      return unsealAll(sealingKeys, endpoint.secrets, owner)
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
   * Resolves to true when the outcome is stored. Without a stored outcome a delivery is made again, and the next
   * deliveries of the queue would be made again too: false keeps them from being claimed at once.
   */
  async function deliver(delivery: Delivery, signal: AbortSignal): Promise<boolean> {
    const secrets = secretsOf(delivery)
    if (!secrets) return false
    const made = await attempt(delivery, secrets, signal)
    // A cancelled call may not have arrived, so it is made again.
    if (signal.aborted) return false
    const reason = await deliveries.settle(made)
    if (reason) {
      const { mid, endpointId } = delivery
      metrics.endpointSwitchedOff(reason)
      log.warn({ mid, endpoint: endpointId, reason }, 'a webhook was switched off')
    }
    return true
  }

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
    // A shop redirects a return call even when its checkPaymentStatus failed, so an answer does not end the return
    // call. A refused address ends it, because a shop does not leave a private network within the days of the schedule.
    const isLast = kind === 'webhook' ? delivered : refused
    return {
      delivery,
      delivered,
      outcome: failed ? result.failure : String(result.status),
      // A thank-you page may contain the customer's name, so the answer to a return call is not stored.
      response: delivered && kind === 'return call' ? '' : result.text,
      at,
      next: isLast ? undefined : nextAttempt(delivery.attempts + 1, at, pauseSeconds, Math.random()),
    }
  }
}

/** Whether a return call succeeded. A redirect counts: a shop may redirect the call like a customer's browser. */
const isThanked = (status: number) => status >= 200 && status < 400
