import type { Logger } from 'pino'
import type { Limits } from '../limits.ts'
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
  let timer: NodeJS.Timeout | undefined
  let looking = Promise.resolve()
  let stopped = false

  async function look(): Promise<void> {
    try {
      if (performance.now() - sweptAt >= limits.sweepIntervalMs) {
        const began = performance.now()
        // An order is written down once: what is final may be told only after the sweep has passed it.
        while (await expiries.sweep(now())) if (stopped) return
        sweptAt = began
      }
      while ((await expiries.tell(limits.expiriesAtOnce, now())) === limits.expiriesAtOnce) if (stopped) return
    } catch (error) {
      log.warn({ error: (error as Error).message }, 'orders that have expired were not looked up')
    }
    schedule()
  }

  function schedule() {
    if (stopped) return
    timer = setTimeout(() => {
      looking = look()
    }, limits.lookIntervalMs)
  }

  schedule()
  return {
    async stop() {
      stopped = true
      clearTimeout(timer)
      await looking
    },
  }
}
