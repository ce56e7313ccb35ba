import type { Logger } from 'pino'
import { createPaymentWatch } from './checkout/payment-watch.ts'
import type { Limits } from './limits.ts'
import type { Intents } from './payments/intents.ts'

/** What runs without a request, until `stop`. */
export function startWorkers({
  intents,
  log,
  now,
  limits,
}: {
  intents: Intents
  log: Logger
  now: () => Date
  limits: Limits
}) {
  const watch = createPaymentWatch({
    intents,
    now,
    limits: limits.pages,
    onError: (error) => log.warn({ error: (error as Error).message }, 'open pages were not looked up'),
  })
  return { watch, stop: () => watch.close() }
}
