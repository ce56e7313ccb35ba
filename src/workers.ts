import type { Logger } from 'pino'
import { createPaymentWatch } from './checkout/payment-watch.ts'
import type { Intents } from './payments/intents.ts'

export type Workers = ReturnType<typeof startWorkers>

/** What runs without a request, until `stop`. */
export function startWorkers({ intents, log, now }: { intents: Intents; log: Logger; now: () => Date }) {
  const watch = createPaymentWatch({
    intents,
    now,
    onError: (error) => log.warn({ error: (error as Error).message }, 'open pages were not looked up'),
  })
  return { watch, stop: () => watch.close() }
}
