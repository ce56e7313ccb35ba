import type { Logger } from 'pino'
import type { Config } from './config.ts'
import type { ClientOf } from './gateway/acquirers/acquirer-queues.ts'
import { enquiryRulesOf } from './gateway/acquirers/acquirers.ts'
import { dueRefunds } from './gateway/acquirers/carry-out-refunds.ts'
import { dueEnquiries } from './gateway/acquirers/enquire.ts'
import { createEnquiries } from './gateway/payments/enquiries.ts'
import type { Reports } from './gateway/payments/reports.ts'
import { dueComparisons } from './gateway/payments/utrs-of-other-merchants.ts'
import { createDueRefunds } from './gateway/refunds/due-refunds.ts'
import { createRefundUpdates, type RefundListeners } from './gateway/refunds/record-update.ts'
import { dueDeliveries } from './gateway/webhooks/deliver.ts'
import { createDeliveries } from './gateway/webhooks/deliveries.ts'
import { dueExpiries } from './gateway/webhooks/expiries.ts'
import type { Limits } from './limits.ts'
import type { Metrics } from './operator/monitoring/metrics.ts'
import type { Database } from './platform/db/pool.ts'
import type { HttpClient } from './platform/outbound/http-client.ts'
import { startScheduler } from './platform/scheduler.ts'

type Jobs = {
  /** The pool of jobs. */
  db: Database
  config: Pick<Config, 'webhooks'>
  clientOf: ClientOf
  http: HttpClient
  reports: Reports
  refundListeners: RefundListeners
  metrics: Metrics
  log: Logger
  now: () => Date
  limits: Limits
}

/** Starts the due jobs: webhooks, queries to acquirers, refunds, expiries, comparisons of UTRs. */
export function startJobs({ db, config, clientOf, http, reports, refundListeners, metrics, log, now, limits }: Jobs) {
  const { sealingKeys } = config.webhooks
  const deliveries = createDeliveries(db)
  const updates = createRefundUpdates(db, refundListeners)
  return startScheduler(
    [
      dueDeliveries({ deliveries, http, sealingKeys, metrics: metrics.webhooks, log, now, limits: limits.webhooks }),
      dueEnquiries({
        enquiries: createEnquiries(db),
        reports,
        clientOf,
        rulesOf: enquiryRulesOf,
        now,
        limits: limits.acquirers,
      }),
      dueRefunds({ due: createDueRefunds(db), updates, clientOf, now, limits: limits.acquirers }),
      dueExpiries({ db, now, limits: limits.webhooks }),
      dueComparisons(db, now, metrics.reports.onException),
    ],
    { log, limits: limits.webhooks },
  )
}
