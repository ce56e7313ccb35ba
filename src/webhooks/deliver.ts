import type { Logger } from 'pino'
import type { Kind } from '../due/clock.ts'
import type { Limits } from '../limits.ts'
import { type AttemptDependencies, createAttempts } from './attempt.ts'
import type { Deliveries, Delivery, DueEndpoint, SwitchedOff } from './deliveries.ts'

type Dependencies = AttemptDependencies & {
  deliveries: Deliveries
  log: Pick<Logger, 'warn'>
  metrics: {
    oldestDue: (seconds: number) => void
    endpointSwitchedOff: (reason: SwitchedOff) => void
  }
  limits: Limits['webhooks']
}

/** Webhooks and return calls. Endpoints that fail are a group of their own: each of their calls may take 15 s. */
export function dueDeliveries(dependencies: Dependencies): Kind {
  const { deliveries, log, metrics, now, limits } = dependencies
  const { secretsOf, attemptOf } = createAttempts(dependencies)
  /** Since when, as a time value, the oldest delivery is due, or what is due is unknown. */
  let behindSince = Number.POSITIVE_INFINITY

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

  async function take({ mid, endpointId }: DueEndpoint, most: number): Promise<Delivery[]> {
    const dueAgainAt = new Date(now().getTime() + limits.visibilityMs)
    return deliveries.take(mid, endpointId, most, now(), dueAgainAt)
  }

  /** Returns whether what came of it is stored. What cannot be stored is delivered again, and so would the next ones be. */
  async function deliver(delivery: Delivery, signal: AbortSignal): Promise<boolean> {
    const secrets = secretsOf(delivery)
    if (!secrets) return false
    const made = await attemptOf(delivery, secrets, signal)
    // Whether a call that was given up has arrived is unknown: it is made again.
    if (signal.aborted) return false
    const reason = await deliveries.settle(made)
    if (reason) {
      const { mid, endpointId } = delivery
      metrics.endpointSwitchedOff(reason)
      log.warn({ mid, endpoint: endpointId, reason }, 'a webhook was switched off')
    }
    return true
  }

  return {
    name: 'webhooks',
    atOnce: { ofOwner: limits.callsOfEndpoint, ofGroup: limits.callsAtOnce / 2 },
    async find() {
      // An endpoint for which this instance cannot sign is left to the others.
      const due = (await findDue()).filter((endpoint) => secretsOf(endpoint) !== undefined)
      return due.map((endpoint) => ({
        key: `${endpoint.mid} ${endpoint.endpointId}`,
        group: endpoint.failing ? 'failing webhooks' : 'webhooks',
        take: async (most) => {
          const taken = await take(endpoint, most)
          return taken.map((delivery) => (signal) => deliver(delivery, signal))
        },
      }))
    },
  }
}
