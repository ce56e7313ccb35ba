import type { KeyObject } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Limits } from '../limits.ts'
import type { Answer, createCaller, Failure } from './call.ts'
import type { Attempt, Deliveries, Delivery, EndpointName, LeasedEndpoint, SwitchedOff } from './deliveries.ts'
import type { Expiries } from './expiries.ts'
import { toMessage } from './message.ts'
import { nextAttempt } from './schedule.ts'
import { ownerOf, unsealAll } from './sealing.ts'
import { signatureHeaders } from './signature.ts'

/** What is counted: why an attempt has ended. */
export type DeliveryOutcome = 'delivered' | 'failed' | 'refused address'

type Dependencies = {
  deliveries: Deliveries
  expiries: Expiries
  call: ReturnType<typeof createCaller>
  /** What the secrets of webhooks are sealed by; without it none can be signed. */
  sealingKey: KeyObject | undefined
  log: Pick<Logger, 'warn' | 'error'>
  metrics: {
    delivery: (kind: LeasedEndpoint['kind'], outcome: DeliveryOutcome) => void
    oldestDue: (seconds: number) => void
    endpointSwitchedOff: (reason: SwitchedOff) => void
  }
  now: () => Date
  limits: Limits['webhooks']
}

/** An endpoint, and what it takes to call it. */
type Callee = { endpoint: LeasedEndpoint; secrets: string[] }

/** Delivers what is due, and writes the events of orders that expire, until `stop`. */
export function startDeliveries({ deliveries, expiries, call, sealingKey, log, metrics, now, limits }: Dependencies) {
  /** Endpoints that this instance delivers to, by name. */
  const serving = new Map<string, Promise<void>>()
  /** Endpoints whose webhooks this instance cannot sign, and the moment of performance.now() from which it tries again. */
  const unsigned = new Map<string, number>()
  let sweptAt = Number.NEGATIVE_INFINITY
  let timer: NodeJS.Timeout | undefined
  let looking = Promise.resolve()
  let stopped = false

  async function look(): Promise<void> {
    try {
      await tellExpired()
      const moment = now()
      const due = await deliveries.findDue(limits.endpointsAtOnce, moment)
      const oldest = Math.min(moment.getTime(), ...due.map(({ dueAt }) => dueAt.getTime()))
      metrics.oldestDue((moment.getTime() - oldest) / 1000)
      for (const { elsewhere, ...endpoint } of due) if (!elsewhere) serve(endpoint)
    } catch (error) {
      log.warn({ error: (error as Error).message }, 'webhooks that are due were not looked up')
    }
    schedule()
  }

  async function tellExpired(): Promise<void> {
    if (performance.now() - sweptAt >= limits.sweepIntervalMs) {
      const began = performance.now()
      // An order is written down once: what is final may be told only after the sweep has passed it.
      while (await expiries.sweep(now())) if (stopped) return
      sweptAt = began
    }
    while ((await expiries.tell(limits.expiriesAtOnce, now())) === limits.expiriesAtOnce) if (stopped) return
  }

  function serve(endpoint: EndpointName) {
    const name = keyOf(endpoint)
    if (stopped || serving.has(name) || serving.size >= limits.endpointsAtOnce) return
    if (performance.now() < (unsigned.get(name) ?? 0)) return
    unsigned.delete(name)
    const served = deliverAll(endpoint)
      .catch((error) =>
        log.warn({ ...endpoint, error: error.message }, 'webhooks were not delivered, or not counted as such'),
      )
      .finally(() => serving.delete(name))
    serving.set(name, served)
  }

  /** Delivers what is due to the endpoint, some at a time, until nothing is. */
  async function deliverAll(name: EndpointName): Promise<void> {
    const underWay = new Map<string, Promise<void>>()
    const settle = settleTogether(name)
    const faults: unknown[] = []
    let isOver = false
    try {
      while (!stopped && !isOver) {
        const endpoint = await deliveries.lease(name, leasedUntil(), now())
        if (!endpoint) break
        const callee = calleeOf(endpoint)
        // Another instance may have the key: while they are changed one after the other, only some can sign.
        if (!callee) {
          unsigned.set(keyOf(name), performance.now() + limits.leaseMs)
          break
        }
        // Those that end while this is read may still be read as due.
        const begun = new Set(underWay.keys())
        const due = await deliveries.findDueTo(name, limits.readAtOnce, now())
        const rest = due.filter((delivery) => !begun.has(nameOf(delivery)))
        if (rest.length === 0 && underWay.size === 0) break
        for (const delivery of rest) {
          while (underWay.size >= limits.callsOfEndpoint) await Promise.race(underWay.values())
          if (stopped || isOver) break
          // Its outcome is stored before another one takes its place, together with others of that moment.
          const done = attemptOf(callee, delivery)
            .then(settle)
            // Nor is another one begun: what cannot be stored would be delivered again, and the lease is not prolonged.
            .catch((fault) => faults.push(fault))
            .then((ends) => {
              isOver ||= Boolean(ends)
            })
            .finally(() => underWay.delete(nameOf(delivery)))
          underWay.set(nameOf(delivery), done)
        }
        // What has become due meanwhile takes the places that are free beside a slow call.
        await Promise.race([...underWay.values(), sleep(limits.lookIntervalMs, undefined, { ref: false })])
      }
    } finally {
      // No call may be under way when the endpoint is served again, which it is soon after the database has failed.
      await Promise.all(underWay.values())
    }
    if (faults.length > 0) throw faults[0]
    await deliveries.release(name)
  }

  /** Undefined, and logged, when its webhooks cannot be signed. */
  function calleeOf(endpoint: LeasedEndpoint): Callee | undefined {
    if (endpoint.kind === 'return call') return { endpoint, secrets: [] }
    const { mid, endpointId, secrets } = endpoint
    try {
      if (!sealingKey) throw new Error('WEBHOOK_SEALING_KEY is not set')
      return { endpoint, secrets: unsealAll(sealingKey, secrets, ownerOf(endpoint)) }
    } catch (error) {
      log.error(
        { mid, endpoint: endpointId, error: (error as Error).message },
        'a webhook waits, because its secret cannot be unsealed: set WEBHOOK_SEALING_KEY to the key that it was added with',
      )
      return undefined
    }
  }

  async function attemptOf({ endpoint, secrets }: Callee, delivery: Delivery): Promise<Attempt> {
    const result = endpoint.kind === 'webhook' ? await post(endpoint.url, secrets, delivery) : await get(delivery)
    const at = now()
    const failed = 'failure' in result
    const delivered = !failed && isTaken(endpoint.kind, result.status)
    const refused = failed && result.failure === 'not allowed'
    metrics.delivery(endpoint.kind, delivered ? 'delivered' : refused ? 'refused address' : 'failed')
    return {
      delivery,
      delivered,
      outcome: failed ? result.failure : String(result.status),
      answer: result.text,
      at,
      next: delivered
        ? undefined
        : nextAttempt(delivery.attempts + 1, at, failed ? undefined : result.retryAfterSeconds, Math.random()),
    }
  }

  function post(url: string, secrets: string[], delivery: Delivery): Promise<Answer | Failure> {
    const { id, body } = toMessage(delivery)
    const headers = { 'content-type': 'application/json', ...signatureHeaders({ id, sentAt: now(), body, secrets }) }
    return call({ method: 'POST', url, headers, body, plainHttp: false })
  }

  function get({ redirectUrl }: Delivery): Promise<Answer | Failure> {
    return call({ method: 'GET', url: redirectUrl, plainHttp: true })
  }

  /** Returns a function that stores an attempt, with those that came while the one before was being stored. */
  function settleTogether(endpoint: EndpointName) {
    let waiting: Attempt[] = []
    let following: Promise<SwitchedOff | undefined> | undefined
    let last: Promise<unknown> = Promise.resolve()

    return (attempt: Attempt): Promise<SwitchedOff | undefined> => {
      waiting.push(attempt)
      if (!following) {
        following = last
          .catch(() => undefined)
          .then(() => {
            const attempts = waiting
            waiting = []
            following = undefined
            return store(endpoint, attempts)
          })
        last = following
      }
      return following
    }
  }

  async function store(endpoint: EndpointName, attempts: Attempt[]): Promise<SwitchedOff | undefined> {
    const reason = await deliveries.settle(endpoint, attempts, {
      leasedUntil: leasedUntil(),
      failingLimit: new Date(now().getTime() - limits.failingMs),
      gone: attempts.some(({ outcome }) => outcome === '410'),
      now: now(),
    })
    if (reason) {
      metrics.endpointSwitchedOff(reason)
      log.warn({ mid: endpoint.mid, endpoint: endpoint.endpointId, reason }, 'a webhook was switched off')
    }
    return reason
  }

  const leasedUntil = () => new Date(now().getTime() + limits.leaseMs)

  function schedule() {
    if (stopped) return
    timer = setTimeout(() => {
      looking = look()
    }, limits.lookIntervalMs)
  }

  schedule()
  return {
    /** Begins no more calls, and waits a moment for those that are under way. What they delivered after it is repeated. */
    async stop() {
      stopped = true
      clearTimeout(timer)
      await looking
      const underWay = [...serving.values()]
      await Promise.race([Promise.all(underWay), sleep(limits.stopMs, undefined, { ref: false })])
    },
  }
}

const keyOf = ({ mid, endpointId }: EndpointName) => `${mid} ${endpointId}`

const nameOf = ({ orderId, sequence }: Delivery) => `${orderId} ${sequence}`

/** A redirect may be the shop's thanks for a return call. A webhook's receiver has to say 2xx. */
function isTaken(kind: LeasedEndpoint['kind'], status: number): boolean {
  return status >= 200 && status < (kind === 'webhook' ? 300 : 400)
}
