import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import type { Limits } from '../../limits.ts'
import { contextOf, decryptAll, type EncryptionKeys } from '../../platform/encryption.ts'
import type { HttpClient } from '../../platform/outbound/http-client.ts'
import type { JobSource } from '../../platform/scheduler.ts'
import type { Attempt, Deliveries, Delivery, Endpoint, PendingEndpoint } from './deliveries.ts'
import { isAccepted, toMessage, toRequest } from './message.ts'

/** Pauses after failed attempts. The pauses spread ten attempts over a little more than three days. */
const PAUSES_SECONDS = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400]

/**
 * Pauses vary by up to 10 % in either direction, so that an endpoint that was unavailable does not receive all retries
 * at the same time.
 */
const SPREAD = 0.1

type WebhookMetrics = {
  delivery: (kind: 'webhook' | 'return call', outcome: 'delivered' | 'failed' | 'refused address') => void
  oldestPending: (seconds: number) => void
  endpointSwitchedOff: (reason: string) => void
}

type Dependencies = {
  deliveries: Deliveries
  http: HttpClient
  /** Keys that decrypt webhook secrets. Without a key, the service cannot sign webhooks. */
  encryptionKeys: EncryptionKeys
  log: Pick<Logger, 'warn' | 'error'>
  metrics: WebhookMetrics
  now: () => Date
  limits: Limits['webhooks']
}

/**
 * Delivers webhooks and return-URL callbacks. Failing endpoints form a separate group, because each call to a failing
 * endpoint may take 15 s.
 */
export function deliveryJobs({ deliveries, http, encryptionKeys, log, metrics, now, limits }: Dependencies): JobSource {
  /**
   * Time in milliseconds since 1970 from which the oldest delivery has been pending, or from which pending deliveries
   * could not be read.
   */
  let behindSince = Number.POSITIVE_INFINITY
  /**
   * Endpoints for which this instance cannot sign and has already logged the error. Without this cache, every poll
   * would log the error again.
   */
  const logged = new LRUCache<string, true>({ max: limits.lookedAt, ttl: limits.visibilityMs })

  return {
    name: 'webhooks',
    concurrency: { ofQueue: limits.callsOfEndpoint, ofGroup: limits.concurrentCalls / 2 },
    async findQueues({ isPending = true } = {}) {
      // Omits endpoints for which this instance cannot sign, because other instances may be able to deliver to them.
      const due = (await findPending(isPending)).filter((endpoint) => secretsOf(endpoint) !== undefined)
      return due.map((endpoint) => ({
        key: `${endpoint.mid} ${endpoint.endpointId}`,
        group: endpoint.failing ? 'failing webhooks' : 'webhooks',
        claim: async (most) => {
          const dueAgainAt = new Date(now().getTime() + limits.visibilityMs)
          const taken = await deliveries.claim(endpoint, most, now(), dueAgainAt)
          return taken.map((delivery) => (signal) => deliver(delivery, signal))
        },
      }))
    },
  }

  async function findPending(isPending: boolean): Promise<PendingEndpoint[]> {
    try {
      const due = isPending ? await deliveries.findPending(limits.lookedAt, now()) : []
      behindSince = Math.min(...due.map(({ dueAt }) => dueAt.getTime()))
      return due
    } catch (error) {
      behindSince = Math.min(behindSince, now().getTime())
      throw error
    } finally {
      metrics.oldestPending(Math.max(0, now().getTime() - behindSince) / 1000)
    }
  }

  /**
   * Returns the secrets that sign for the endpoint. If the secrets cannot be decrypted, logs the error and returns
   * undefined.
   */
  function secretsOf(endpoint: Endpoint): string[] | undefined {
    if (endpoint.kind === 'return call') return []
    const owner = contextOf(endpoint)
    try {
      if (encryptionKeys.length === 0) throw new Error('WEBHOOK_SEALING_KEY is not set')
      return decryptAll(encryptionKeys, endpoint.secrets, owner)
    } catch (error) {
      if (!logged.has(owner)) {
        log.error(
          { mid: endpoint.mid, endpoint: endpoint.endpointId, error: (error as Error).message },
          "webhooks are not delivered, because the endpoint's secret cannot be decrypted: set WEBHOOK_SEALING_KEY to the key that encrypted it",
        )
      }
      logged.set(owner, true)
      return undefined
    }
  }

  /**
   * Resolves to true if the outcome is stored. If the outcome is not stored, resolves to false, so that this delivery
   * and the next deliveries in the queue are not immediately claimed and sent again.
   */
  async function deliver(delivery: Delivery, signal: AbortSignal): Promise<boolean> {
    const secrets = secretsOf(delivery)
    if (!secrets) return false
    const created = await attempt(delivery, secrets, signal)
    // A cancelled call may not have arrived, so its delivery is sent again.
    if (signal.aborted) return false
    const reason = await deliveries.settle(created)
    if (reason) {
      const { mid, endpointId } = delivery
      metrics.endpointSwitchedOff(reason)
      log.warn({ mid, endpoint: endpointId, reason }, 'a webhook endpoint was disabled')
    }
    return true
  }

  async function attempt(delivery: Delivery, secrets: string[], signal: AbortSignal): Promise<Attempt> {
    const { kind, url } = delivery
    const request = kind === 'webhook' ? toRequest(toMessage(delivery), { url, secrets, sentAt: now() }) : { kind, url }
    const result = await http.request({ ...request, signal })
    const at = now()
    const failed = 'failure' in result
    const delivered = !failed && (kind === 'webhook' ? isAccepted(result.status) : isThanked(result.status))
    const rejected = failed && result.failure === 'not allowed'
    metrics.delivery(kind, delivered ? 'delivered' : rejected ? 'refused address' : 'failed')
    const mayRequestPause = !failed && (result.status === 429 || result.status === 503)
    const pauseSeconds = mayRequestPause ? result.retryAfterSeconds : undefined
    // A store redirects a return-URL callback even if the store's own call to checkPaymentStatus failed, so no response
    // stops the retries. An address that is not allowed stops the retries, because a store does not move from a private
    // to a public network within the days of the schedule.
    const isLast = kind === 'webhook' ? delivered : rejected
    return {
      delivery,
      delivered,
      outcome: failed ? result.failure : String(result.status),
      // The response to a return-URL callback is not stored, because a thank-you page may contain the customer's name.
      response: delivered && kind === 'return call' ? '' : result.text,
      at,
      next: isLast ? undefined : nextAttempt(delivery.attempts + 1, at, pauseSeconds, Math.random()),
    }
  }
}

/**
 * Whether a return-URL callback succeeded. A redirect is a success: a store may redirect the callback like a
 * customer's browser.
 */
const isThanked = (status: number) => status >= 200 && status < 400

/**
 * Returns the time of the next attempt after `failed` failed attempts, the latest of which was at `at`; undefined after
 * the last attempt. A longer Retry-After takes precedence. `random` is a number from 0 to 1.
 */
function nextAttempt(
  failed: number,
  at: Date,
  retryAfterSeconds: number | undefined,
  random: number,
): Date | undefined {
  const pause = PAUSES_SECONDS[failed - 1]
  if (pause === undefined) return undefined
  const spread = pause * (1 + SPREAD * (2 * random - 1))
  return new Date(at.getTime() + Math.max(spread, retryAfterSeconds ?? 0) * 1000)
}
