import type { KeyObject } from 'node:crypto'
import type { Logger } from 'pino'
import type { Answer, Caller, Failure } from '../outside/call.ts'
import type { Attempt, Delivery, Endpoint } from './deliveries.ts'
import { isTaken, toCall, toMessage } from './message.ts'
import { nextAttempt } from './schedule.ts'
import { ownerOf, unsealAll } from './sealing.ts'

/** What is counted: why an attempt has ended. */
export type DeliveryOutcome = 'delivered' | 'failed' | 'refused address'

/** An endpoint, and what it takes to call it. */
type Callee = { endpoint: Endpoint; secrets: string[] }

export type AttemptDependencies = {
  call: Caller
  /** What the secrets of webhooks are sealed by; without it none can be signed. */
  sealingKey: KeyObject | undefined
  log: Pick<Logger, 'error'>
  metrics: { delivery: (kind: Endpoint['kind'], outcome: DeliveryOutcome) => void }
  now: () => Date
}

/** Attempts to deliver, each on its own. `signal` gives up the calls that are under way. */
export function createAttempts({ call, sealingKey, log, metrics, now }: AttemptDependencies, signal: AbortSignal) {
  /** Undefined, and logged, when its webhooks cannot be signed. */
  function calleeOf(endpoint: Endpoint): Callee | undefined {
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

  /** Calls the endpoint once, counts what came of it, and says when to call again. */
  async function attemptOf({ endpoint, secrets }: Callee, delivery: Delivery): Promise<Attempt> {
    const { kind } = endpoint
    const result = kind === 'webhook' ? await post(endpoint.url, secrets, delivery) : await get(delivery)
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

  function post(url: string, secrets: string[], delivery: Delivery): Promise<Answer | Failure> {
    return call({ ...toCall(toMessage(delivery), { url, secrets, sentAt: now() }), signal })
  }

  function get({ redirectUrl }: Delivery): Promise<Answer | Failure> {
    return call({ kind: 'return call', url: redirectUrl, signal })
  }

  return { calleeOf, attemptOf }
}

/** Whether a shop has answered a return call as it answers its customer's browser, which it may redirect. */
const isThanked = (status: number) => status >= 200 && status < 400
