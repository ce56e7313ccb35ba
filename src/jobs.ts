import { statusCheckRulesOf } from './gateway/acquirers/acquirers.ts'
import { refundJobs } from './gateway/acquirers/carry-out-refunds.ts'
import { disputeCheckJobs } from './gateway/acquirers/check-disputes.ts'
import { statusCheckJobs } from './gateway/acquirers/check-status.ts'
import { createPendingDisputes } from './gateway/disputes/pending-disputes.ts'
import { createDisputes } from './gateway/disputes/record-dispute.ts'
import { CHECKS_ARE_PENDING, DISPUTES_ARE_PENDING, REFUNDS_ARE_PENDING } from './gateway/payments/pending-merchants.ts'
import { createStatusChecks } from './gateway/payments/status-checks.ts'
import { comparisonJobs } from './gateway/payments/utrs-of-other-merchants.ts'
import { createPendingRefunds } from './gateway/refunds/pending-refunds.ts'
import { createRefundUpdates } from './gateway/refunds/record-update.ts'
import { deliveryJobs } from './gateway/webhooks/deliver.ts'
import { createDeliveries, DELIVERIES_ARE_PENDING } from './gateway/webhooks/deliveries.ts'
import { EXPIRIES_ARE_PENDING, expiryJobs } from './gateway/webhooks/expiries.ts'
import { isDistributed } from './platform/db/distribution.ts'
import type { Queryable } from './platform/db/pool.ts'
import { prepared } from './platform/db/prepared.ts'
import { type JobSource, startScheduler } from './platform/scheduler.ts'
import type { Services } from './services.ts'

/** `deliveries` is an SQL condition at the time $1. The columns are the sources' names. */
const pendingSources = (deliveries: string) => `
  select ${deliveries} as "webhooks",
         coalesce(${CHECKS_ARE_PENDING}, false) as "status checks at acquirers",
         coalesce(${REFUNDS_ARE_PENDING}, false) as "refunds at acquirers",
         coalesce(${DISPUTES_ARE_PENDING}, false) as "disputes at acquirers",
         coalesce(${EXPIRIES_ARE_PENDING}, false) as "expired orders"`

const FIND_PENDING = prepared(pendingSources(DELIVERIES_ARE_PENDING))
/** Citus rejects a recursive statement without a mid, so webhooks are searched at each poll. */
const FIND_PENDING_ON_CITUS = prepared(pendingSources('true'))

/** Returns a function that finds the sources that may have pending jobs. */
export function createFindPending(db: Queryable, now: () => Date) {
  let distributed: boolean | undefined
  return async () => {
    distributed ??= await isDistributed(db)
    const statement = distributed ? FIND_PENDING_ON_CITUS : FIND_PENDING
    const { rows } = await db.query<{ [source: string]: boolean }>(statement(now()))
    return rows[0] ?? {}
  }
}

/** Returns the sources of all scheduled jobs: webhooks, status checks, refunds, disputes, expiries and comparisons of UTRs. */
export function createSources(services: Services): JobSource[] {
  const { pools, config, clientOf, http, reports, refundListeners, metrics, log, now, limits } = services
  const db = pools.due
  const { encryptionKeys } = config.webhooks
  const statusChecks = createStatusChecks(db)
  const updates = createRefundUpdates(db, refundListeners)
  return [
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
    disputeCheckJobs({
      pending: createPendingDisputes(db),
      disputes: createDisputes(db, refundListeners, limits.reports),
      clientOf,
      now,
    }),
    services.disputeReader.source,
    expiryJobs({ db, now, limits: limits.webhooks }),
    comparisonJobs(db, now, metrics.reports.onException),
  ]
}

/** Starts all scheduled jobs. */
export function startJobs(services: Services) {
  const { pools, log, now, limits } = services
  const findPending = createFindPending(pools.due, now)
  return startScheduler(createSources(services), { findPending, log, limits: limits.webhooks })
}
