import type { Logger } from 'pino'
import { startEnquiries } from './acquirer/enquire.ts'
import type { Issuer } from './acquirer/issuer.ts'
import { createPaymentWatch } from './checkout/payment-watch.ts'
import type { Limits } from './limits.ts'
import type { Enquiries } from './payments/enquiries.ts'
import type { Intents } from './payments/intents.ts'
import type { Reports } from './payments/reports.ts'

/** What runs without a request, until `stop`. */
export function startWorkers({
  intents,
  enquiries,
  reports,
  issuers,
  log,
  now,
  limits,
}: {
  intents: Intents
  enquiries: Enquiries
  reports: Reports
  issuers: ReadonlyMap<string, Issuer>
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
  const asking = startEnquiries({ enquiries, issuers, reports, log, now, limits: limits.acquirers })
  return {
    watch,
    async stop() {
      watch.close()
      await asking.stop()
    },
  }
}
