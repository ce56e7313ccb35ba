import { statusCheckRulesOf } from './gateway/acquirers/acquirers.ts'
import { refundJobs } from './gateway/acquirers/carry-out-refunds.ts'
import { statusCheckJobs } from './gateway/acquirers/check-status.ts'
import { createStatusChecks } from './gateway/payments/status-checks.ts'
import { comparisonJobs } from './gateway/payments/utrs-of-other-merchants.ts'
import { createPendingRefunds } from './gateway/refunds/pending-refunds.ts'
import { createRefundUpdates } from './gateway/refunds/record-update.ts'
import { deliveryJobs } from './gateway/webhooks/deliver.ts'
import { createDeliveries } from './gateway/webhooks/deliveries.ts'
import { expiryJobs } from './gateway/webhooks/expiries.ts'
import { startScheduler } from './platform/scheduler.ts'
import type { Services } from './services.ts'

/** Starts all scheduled jobs: webhooks, status checks, refunds, expiries and comparisons of UTRs. */
export function startJobs(services: Services) {
  const { pools, config, clientOf, http, reports, refundListeners, metrics, log, now, limits } = services
  const db = pools.due
  const { encryptionKeys } = config.webhooks
  const statusChecks = createStatusChecks(db)
  const updates = createRefundUpdates(db, refundListeners)
  return startScheduler(
    [
      deliveryJobs({
        deliveries: createDeliveries(db),
        http,
        encryptionKeys,
        metrics: metrics.webhooks,
        log,
        now,
        limits: limits.webhooks,
      }),
      statusCheckJobs({ statusChecks, reports, clientOf, rulesOf: statusCheckRulesOf, now, limits: limits.acquirers }),
      refundJobs({ pending: createPendingRefunds(db), updates, clientOf, now, limits: limits.acquirers }),
      expiryJobs({ db, now, limits: limits.webhooks }),
      comparisonJobs(db, now, metrics.reports.onException),
    ],
    { log, limits: limits.webhooks },
  )
}
