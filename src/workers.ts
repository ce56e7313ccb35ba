import type { Logger } from 'pino'
import { startEnquiries } from './acquirer/enquire.ts'
import type { Issuer } from './acquirer/issuer.ts'
import { createPaymentWatch } from './checkout/payment-watch.ts'
import type { Limits } from './limits.ts'
import type { Enquiries } from './payments/enquiries.ts'
import type { Intents } from './payments/intents.ts'
import type { Reports } from './payments/reports.ts'
import { startDeliveries } from './webhooks/deliver.ts'
import { startExpiries } from './webhooks/expire.ts'
import type { Expiries } from './webhooks/expiries.ts'

/** What runs without a request, until `stop`. */
export function startWorkers({
  intents,
  enquiries,
  reports,
  issuers,
  webhooks,
  log,
  now,
  limits,
}: {
  intents: Intents
  enquiries: Enquiries
  reports: Reports
  issuers: ReadonlyMap<string, Issuer>
  webhooks: Pick<Parameters<typeof startDeliveries>[0], 'deliveries' | 'call' | 'sealingKey' | 'metrics'> & {
    expiries: Expiries
  }
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
  const delivering = startDeliveries({ ...webhooks, log, now, limits: limits.webhooks })
  const expiring = startExpiries({ expiries: webhooks.expiries, log, now, limits: limits.webhooks })
  return {
    watch,
    async stop() {
      watch.close()
      await Promise.all([asking.stop(), delivering.stop(), expiring.stop()])
    },
  }
}
