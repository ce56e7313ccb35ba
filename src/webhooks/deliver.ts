import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Limits } from '../limits.ts'
import { startRepeating } from '../repeat.ts'
import { type AttemptDependencies, createAttempts } from './attempt.ts'
import type { Attempt, Deliveries, Delivery, DueEndpoint, EndpointName, SwitchedOff } from './deliveries.ts'

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
 * Delivers what is due, until `stop`. An endpoint has a place while it is delivered to. When all places are taken, it gives its
 * own back after some deliveries, and endpoints that fail get no more than half of them: each of their calls may take 15 s.
 */
export function startDeliveries(dependencies: Dependencies) {
  const { deliveries, log, metrics, now, limits } = dependencies
  /** Endpoints that have a place, by name. */
  const serving = new Map<string, { failing: boolean; served: Promise<void> }>()
  /** Endpoints without a place, as the last look found them: those that fail come last, and who had a place lately. */
  let waiting: DueEndpoint[] = []
  /** When an endpoint had a place, by performance.now(). */
  const servedAt = new Map<string, number>()
  /** Until when an endpoint is left to other instances, because this one cannot sign for it; by performance.now(). */
  const unsignableUntil = new Map<string, number>()
  const giveUp = new AbortController()
  // Each call listens to it.
  setMaxListeners(0, giveUp.signal)
  const { calleeOf, attemptOf } = createAttempts(dependencies, giveUp.signal)
  /** Since when the oldest delivery is due, or what is due is unknown. */
  let behindSince: Date | undefined
  const { isStopped, stop: stopLooking } = startRepeating(look, limits.lookIntervalMs)

  /** Resolves to the pause until the next one. */
  async function look(): Promise<number> {
    try {
      const due = await deliveries.findDue(limits.lookedAt, now())
      behindSince = due.map(({ dueAt }) => dueAt).reduce<Date | undefined>(earlier, undefined)
      const time = performance.now()
      waiting = due
        .filter((one) => !one.elsewhere && !serving.has(endpointKey(one)) && isSignable(one, time))
        .sort((a, b) => Number(a.failing) - Number(b.failing) || lastServed(a) - lastServed(b))
      fillPlaces()
    } catch (error) {
      behindSince ??= now()
      log.warn({ error: (error as Error).message }, 'webhooks that are due were not looked up')
    }
    metrics.oldestDue(behindSince ? Math.max(0, now().getTime() - behindSince.getTime()) / 1000 : 0)
    return limits.lookIntervalMs
  }

  const lastServed = (endpoint: EndpointName) => servedAt.get(endpointKey(endpoint)) ?? 0

  function isSignable(endpoint: EndpointName, time: number): boolean {
    const key = endpointKey(endpoint)
    if ((unsignableUntil.get(key) ?? 0) > time) return false
    unsignableUntil.delete(key)
    return true
  }

  function fillPlaces() {
    while (!isStopped() && serving.size < limits.endpointsAtOnce) {
      const failing = [...serving.values()].filter((one) => one.failing).length
      const place = waiting.findIndex((one) => !one.failing || failing < limits.endpointsAtOnce / 2)
      const [next] = place === -1 ? [] : waiting.splice(place, 1)
      if (!next) return
      serve(next)
    }
  }

  function serve(endpoint: DueEndpoint) {
    const key = endpointKey(endpoint)
    const { mid, endpointId, failing } = endpoint
    const served = deliverTo(endpoint)
      .catch((error) =>
        log.warn({ mid, endpointId, error: error.message }, 'webhooks were not delivered, or not counted as such'),
      )
      .finally(() => {
        serving.delete(key)
        servedAt.delete(key)
        servedAt.set(key, performance.now())
        // The first one was set the longest ago.
        const [oldest] = servedAt.keys()
        if (oldest !== undefined && servedAt.size > limits.lookedAt) servedAt.delete(oldest)
        fillPlaces()
      })
    serving.set(key, { failing, served })
  }

  /** Delivers what is due to the endpoint, some at a time, until nothing is, or its place is needed. */
  async function deliverTo(name: DueEndpoint): Promise<void> {
    const calls = new Set<Promise<Attempt>>()
    /** Until its outcome is stored, by delivery. */
    const underWay = new Map<string, Promise<void>>()
    const store = storeTogether(name)
    let isOver = false
    let fault: unknown
    const isNeeded = () => waiting.some((one) => name.failing || !one.failing)
    try {
      while (!isStopped() && !isOver) {
        const endpoint = await deliveries.lease(name, leasedUntil(), now())
        if (!endpoint) break
        const callee = calleeOf(endpoint)
        // Another instance may have the key: while they are changed one after the other, only some can sign.
        if (!callee) {
          unsignableUntil.set(endpointKey(name), performance.now() + limits.leaseMs)
          break
        }
        // Those that end while this is read may still be read as due.
        const begun = new Set(underWay.keys())
        const due = await deliveries.findDueTo(name, limits.readAtOnce, now())
        const rest = due.filter((delivery) => !begun.has(deliveryKey(delivery)))
        if (rest.length === 0 && underWay.size === 0) break
        for (const delivery of rest) {
          while (calls.size >= limits.callsOfEndpoint) await Promise.race(calls)
          while (underWay.size >= limits.unstored) await Promise.race(underWay.values())
          if (isStopped() || isOver) break
          const call = attemptOf(callee, delivery).finally(() => calls.delete(call))
          calls.add(call)
          const stored = call
            .then(store)
            .then((ends) => {
              isOver ||= ends
            })
            .catch((error) => {
              // No more calls: what cannot be stored would be delivered again, and the lease is not prolonged.
              isOver = true
              fault = error
            })
            .finally(() => underWay.delete(deliveryKey(delivery)))
          underWay.set(deliveryKey(delivery), stored)
        }
        if (isNeeded()) break
        // What has become due meanwhile takes the places that are free beside a slow call.
        await Promise.race([...underWay.values(), sleep(limits.lookIntervalMs, undefined, { ref: false })])
      }
    } finally {
      // No call may be under way when the endpoint is served again, which it is soon after the database has failed.
      await Promise.all(underWay.values())
    }
    if (fault !== undefined) throw fault
    await deliveries.release(name)
  }

  /**
   * Returns a function that stores an attempt, together with those that end soon after it. It resolves to whether the endpoint
   * gets nothing more from this instance.
   */
  function storeTogether(endpoint: EndpointName) {
    let gathered: Attempt[] = []
    let following: Promise<boolean> | undefined
    let last: Promise<unknown> = Promise.resolve()

    return (attempt: Attempt): Promise<boolean> => {
      gathered.push(attempt)
      if (!following) {
        following = last
          .catch(() => undefined)
          .then(() => sleep(limits.gatherMs))
          .then(() => {
            const attempts = gathered
            gathered = []
            following = undefined
            return settle(endpoint, attempts)
          })
        last = following
      }
      return following
    }
  }

  async function settle(endpoint: EndpointName, attempts: Attempt[]): Promise<boolean> {
    // Whether a call that was given up has arrived is unknown: it is made again.
    if (giveUp.signal.aborted) return true
    const { switchedOff, over } = await deliveries.settle(endpoint, attempts, {
      leasedUntil: leasedUntil(),
      failingLimit: new Date(now().getTime() - limits.failingMs),
      gone: attempts.some(({ outcome }) => outcome === '410'),
      now: now(),
    })
    if (switchedOff) {
      metrics.endpointSwitchedOff(switchedOff)
      log.warn({ mid: endpoint.mid, endpoint: endpoint.endpointId, reason: switchedOff }, 'a webhook was switched off')
    }
    return over
  }

  const leasedUntil = () => new Date(now().getTime() + limits.leaseMs)

  return {
    /**
     * Begins no more calls, waits a moment for those that are under way, then gives them up and leaves the endpoints to other
     * instances, which make these calls again.
     */
    async stop() {
      await stopLooking()
      const ended = Promise.all([...serving.values()].map(({ served }) => served))
      await Promise.race([ended, sleep(limits.stopMs, undefined, { ref: false })])
      giveUp.abort()
      await ended
    },
  }
}

const earlier = (a: Date | undefined, b: Date): Date | undefined => (a === undefined || b < a ? b : a)

const endpointKey = ({ mid, endpointId }: EndpointName) => `${mid} ${endpointId}`

const deliveryKey = ({ orderId, sequence }: Delivery) => `${orderId} ${sequence}`
