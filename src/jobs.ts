import type { Logger } from 'pino'
import type { ClientOf } from './acquirer/acquirer-queues.ts'
import { enquiryRulesOf } from './acquirer/acquirers.ts'
import { dueRefunds } from './acquirer/carry-out-refunds.ts'
import { dueEnquiries } from './acquirer/enquire.ts'
import type { Config } from './config.ts'
import type { Database } from './db/pool.ts'
import type { Limits } from './limits.ts'
import type { Metrics } from './metrics.ts'
import type { HttpClient } from './outbound/http-client.ts'
import { createEnquiries } from './payments/enquiries.ts'
import type { Reports } from './payments/reports.ts'
import { dueComparisons } from './payments/utrs-of-other-merchants.ts'
import { createDueRefunds } from './refunds/due-refunds.ts'
import { createRefundUpdates, type RefundListeners } from './refunds/record-update.ts'
import { startScheduler } from './scheduler/scheduler.ts'
import { dueDeliveries } from './webhooks/deliver.ts'
import { createDeliveries } from './webhooks/deliveries.ts'
import { dueExpiries } from './webhooks/expiries.ts'

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
