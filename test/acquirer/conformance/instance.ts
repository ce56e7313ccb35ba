import { createAccounts, createAcquirers } from '../../../src/gateway/acquirers/acquirers.ts'
import { refundJobs } from '../../../src/gateway/acquirers/carry-out-refunds.ts'
import { checkAtAcquirer } from '../../../src/gateway/acquirers/check-status.ts'
import type { AcquirerClient } from '../../../src/gateway/acquirers/client.ts'
import { createReports } from '../../../src/gateway/payments/reports.ts'
import { createStatusChecks, type StatusCheck } from '../../../src/gateway/payments/status-checks.ts'
import { createPendingRefunds } from '../../../src/gateway/refunds/pending-refunds.ts'
import { createRefundUpdates } from '../../../src/gateway/refunds/record-update.ts'
import { LIMITS } from '../../../src/limits.ts'
import { createOutboundClient, type HttpClient } from '../../../src/platform/outbound/http-client.ts'
import { runAllPendingJobs } from '../../support/pending-jobs.ts'
import { allow } from '../../support/webhooks.ts'
import type { Stage } from './driver.ts'

/**
 * Starts the part of an instance that checks statuses and sends refunds at an acquirer, and collects its logged
 * errors. `through` wraps the HTTP client between instance and acquirer.
 */
export function startInstance(
  { service: { clock, db, pools }, settings, name }: Pick<Stage, 'service' | 'settings' | 'name'>,
  acquirerMs = 30_000,
  through = (http: HttpClient): HttpClient => http,
) {
  const errors: object[] = []
  const log = { warn: () => undefined, error: (facts: object) => void errors.push(facts) }
  const limits = { ...LIMITS.outbound, acquirerMs }
  const http = through(createOutboundClient({ allowedNetworks: allow(), limits, now: clock.now }))
  const { clientOf } = createAcquirers(createAccounts({ direct: [], ...settings }), http, {
    log: log as never,
    onCall: () => undefined,
    limits: LIMITS.acquirers,
    elapsedMs: clock.elapsedMs,
  })
  const refunds = refundJobs({
    pending: createPendingRefunds(pools.due),
    updates: createRefundUpdates(pools.due, { log: log as never }),
    clientOf,
    now: clock.now,
    limits: LIMITS.acquirers,
  })
  return {
    errors,
    clientOf,
    /** Runs all pending refund jobs. */
    look: () => runAllPendingJobs(refunds),

    /** Checks the status of an order, regardless of how many checks it has had, and records the result. */
    async checkStatus(orderId: string) {
      await db.query('update acquirer_intents set status_checks = 0 where order_id = $1', [orderId])
      const statusCheck = (await createStatusChecks(db).claim(orderId, 1, clock.now())) as StatusCheck
      return checkAtAcquirer(statusCheck, {
        client: (await clientOf(name)) as AcquirerClient,
        reports: createReports(db),
        now: clock.now,
      })
    },
  }
}
