import type { Logger } from 'pino'
import type { Limits } from '../limits.ts'
import { startRepeating } from '../repeat.ts'
import type { Expiries } from './expiries.ts'

/** Writes the events of orders whose answer becomes final unpaid, until `stop`. */
export function startExpiries({
  expiries,
  log,
  now,
  limits,
}: {
  expiries: Pick<Expiries, 'sweep' | 'tell'>
  log: Pick<Logger, 'warn'>
  now: () => Date
  limits: Limits['webhooks']
}) {
  let sweptAt = Number.NEGATIVE_INFINITY
  const { isStopped, stop } = startRepeating(look, limits.lookIntervalMs)

  async function look(): Promise<number> {
    try {
      if (performance.now() - sweptAt >= limits.sweepIntervalMs) {
        const began = performance.now()
        // An order is written down once: what is final may be told only after the sweep has passed it.
        while (await expiries.sweep(now())) if (isStopped()) return limits.lookIntervalMs
        sweptAt = began
      }
      while ((await expiries.tell(limits.expiriesAtOnce, now())) === limits.expiriesAtOnce) if (isStopped()) break
    } catch (error) {
      log.warn({ error: (error as Error).message }, 'orders that have expired were not looked up')
    }
    return limits.lookIntervalMs
  }

  return { stop }
}
