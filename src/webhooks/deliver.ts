import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import type { Limits } from '../limits.ts'
import { startRepeating } from '../repeat.ts'
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

/**
 * Delivers what is due, until `stop`: a look each second finds the endpoints, and when a call ends the next delivery to its
 * endpoint is taken. Endpoints that fail get no more than half of the calls: each of theirs may take 15 s.
 */
export function startDeliveries(dependencies: Dependencies) {
  const { deliveries, log, metrics, now, limits } = dependencies
  const giveUp = new AbortController()
  // Each call listens to it.
  setMaxListeners(0, giveUp.signal)
  const { calleeOf, attemptOf } = createAttempts(dependencies, giveUp.signal)
  /** Calls under way, or about to begin, by endpoint; of all, and of those that fail. */
  const calls = new Map<string, number>()
  let all = 0
  let ofFailing = 0
  const underWay = new Set<Promise<void>>()
  /** Endpoints that are left to other instances, because this one cannot sign for them: it says so once in a while. */
  const unsignable = new LRUCache<string, true>({ max: limits.lookedAt, ttl: limits.visibilityMs })
  /** Since when the oldest delivery is due, or what is due is unknown. */
  let behindSince: Date | undefined
  const { isStopped, stop: stopLooking } = startRepeating(look, limits.lookIntervalMs)

  /** Resolves to the pause until the next one. */
  async function look(): Promise<number> {
    try {
      const due = await deliveries.findDue(limits.lookedAt, now())
      behindSince = due.map(({ dueAt }) => dueAt).reduce<Date | undefined>(earlier, undefined)
      for (const endpoint of due.filter(isSignable)) serve(endpoint)
    } catch (error) {
      behindSince ??= now()
      log.warn({ error: (error as Error).message }, 'webhooks that are due were not looked up')
    }
    metrics.oldestDue(behindSince ? Math.max(0, now().getTime() - behindSince.getTime()) / 1000 : 0)
    return limits.lookIntervalMs
  }

  function isSignable(endpoint: DueEndpoint): boolean {
    const key = keyOf(endpoint)
    if (unsignable.has(key)) return false
    if (calleeOf(endpoint)) return true
    unsignable.set(key, true)
    return false
  }

  /** Takes as many deliveries as calls may begin, and calls. */
  function serve(endpoint: DueEndpoint) {
    const { mid, endpointId, failing } = endpoint
    const free = Math.min(
      limits.callsOfEndpoint - (calls.get(keyOf(endpoint)) ?? 0),
      limits.callsAtOnce - all,
      failing ? limits.callsAtOnce / 2 - ofFailing : Number.POSITIVE_INFINITY,
    )
    if (isStopped() || free < 1) return
    count(endpoint, free)
    const dueAgainAt = new Date(now().getTime() + limits.visibilityMs)
    track(
      deliveries
        .take(mid, endpointId, free, now(), dueAgainAt)
        .catch((error): Delivery[] => {
          warn(endpoint, error)
          return []
        })
        .then((taken) => {
          count(endpoint, taken.length - free)
          for (const delivery of taken) track(deliver(endpoint, delivery))
        }),
    )
  }

  async function deliver(endpoint: DueEndpoint, delivery: Delivery): Promise<void> {
    let isStored = false
    try {
      const callee = calleeOf(delivery.endpoint)
      if (callee) isStored = await attempt(callee, delivery)
    } catch (error) {
      warn(endpoint, error as Error)
    }
    count(endpoint, -1)
    // What cannot be stored would be delivered again, and so would the next ones. While all calls are taken, others wait too.
    if (isStored && all < limits.callsAtOnce - 1) serve(endpoint)
  }

  /** Returns whether what came of it is stored. */
  async function attempt(callee: NonNullable<ReturnType<typeof calleeOf>>, delivery: Delivery): Promise<boolean> {
    const made = await attemptOf(callee, delivery)
    // Whether a call that was given up has arrived is unknown: it is made again.
    if (giveUp.signal.aborted) return false
    const failingLimit = new Date(now().getTime() - limits.failingMs)
    const reason = await deliveries.settle(made, { failingLimit, now: now() })
    if (reason) {
      const { mid, endpointId } = delivery.endpoint
      metrics.endpointSwitchedOff(reason)
      log.warn({ mid, endpoint: endpointId, reason }, 'a webhook was switched off')
    }
    return true
  }

  function count(endpoint: DueEndpoint, by: number) {
    const key = keyOf(endpoint)
    const left = (calls.get(key) ?? 0) + by
    if (left > 0) calls.set(key, left)
    else calls.delete(key)
    all += by
    if (endpoint.failing) ofFailing += by
  }

  function track(work: Promise<void>) {
    underWay.add(work)
    void work.finally(() => underWay.delete(work))
  }

  function warn({ mid, endpointId }: DueEndpoint, error: Error) {
    log.warn({ mid, endpointId, error: error.message }, 'webhooks were not delivered, or not counted as such')
  }

  async function untilNothingIsUnderWay() {
    while (underWay.size > 0) await Promise.all(underWay)
  }

  return {
    /** Begins no more calls, waits a moment for those that are under way, and gives them up: another instance makes them again. */
    async stop() {
      await stopLooking()
      await Promise.race([untilNothingIsUnderWay(), sleep(limits.stopMs, undefined, { ref: false })])
      giveUp.abort()
      await untilNothingIsUnderWay()
    },
  }
}

const earlier = (a: Date | undefined, b: Date): Date | undefined => (a === undefined || b < a ? b : a)

const keyOf = ({ mid, endpointId }: { mid: string; endpointId: string }) => `${mid} ${endpointId}`
