import type { Logger } from 'pino'
import { AcquirerError } from '../../errors.ts'
import type { Limits } from '../../limits.ts'
import type { JobSource } from '../../platform/scheduler.ts'
import type { PaymentReport } from '../payments/outcome.ts'
import type { PendingMerchant } from '../payments/pending-merchants.ts'
import type { Barrier, Recorded, Reports } from '../payments/reports.ts'
import type { StatusCheckRules } from '../payments/status-check-times.ts'
import type { StatusCheck, StatusChecks } from '../payments/status-checks.ts'
import { acquirerQueues, type ClientOf, ignoreAcquirerError } from './acquirer-queues.ts'
import type { AcquirerClient, LinkedOrder } from './client.ts'
import { UnreadableStatus } from './json-request.ts'

type Recording = { reports: Reports; now: () => Date; person?: string | undefined }

/**
 * Checks an order's payments at its acquirer and records them. Returns undefined if no payment has a final status;
 * otherwise the result of the first payment that changed something, or of the last payment if no payment changed
 * anything. After an unreadable response, the order stays open. A failed call rejects with an AcquirerError. `person` is
 * the operator who checks the status; undefined for a scheduled check.
 */
export async function checkAtAcquirer(
  order: LinkedOrder,
  { client, reports, now, person, barrier }: Recording & { client: AcquirerClient; barrier?: Barrier },
): Promise<Recorded | undefined> {
  const recordAll = async (payments: readonly PaymentReport[]) => {
    const recorded: Recorded[] = []
    for (const payment of payments)
      recorded.push(await reports.record(payment, { source: 'enquiry', now, person, barrier }))
    return recorded
  }
  const { orderId, paymentLink } = order
  const payments = await client.getPayments(order).catch(async (error) => {
    if (error instanceof UnreadableStatus) {
      const isBesidePayment = (await recordAll(error.readable)).length > 0
      await reports.saveUnreadableStatus({ orderId, isBesidePayment }, paymentLink.acquirer, now())
    }
    throw error
  })
  const recorded = await recordAll(payments)
  const isOfOrder = recorded.every((one) => !('exception' in one) || one.exception !== 'unknown order')
  if (isOfOrder) await reports.endUnreadable(orderId, now())
  return recorded.find((one) => 'exception' in one || one.changed) ?? recorded.at(-1)
}

/**
 * Whether the acquirer may have processed a failed status check. A 429 or a failed login means that the acquirer did
 * not process the check.
 */
export const reachedAcquirer = ({ facts, isUndone }: AcquirerError) => facts.status !== 429 && !isUndone

/**
 * Returns a function that closes the link of a cancelled order. If the acquirer rejects the call, the order may be
 * paid, so the payment's status is checked. Responses to merchants do not wait for this function.
 */
export function createLinkCloser({
  clientOf,
  log,
  ...recording
}: Recording & { clientOf: (account: string) => Promise<AcquirerClient | undefined>; log: Pick<Logger, 'error'> }) {
  return async (order: LinkedOrder): Promise<void> => {
    try {
      const client = await clientOf(order.paymentLink.acquirer)
      if ((await client?.closeLink(order.paymentLink)) !== 'paid') return
      await checkAtAcquirer(order, { client: client as AcquirerClient, ...recording })
    } catch (err) {
      // The error is ignored, because the client has logged it, a link that stays open expires by itself, and a status
      // check follows.
      if (err instanceof AcquirerError) return
      log.error(
        { err, orderId: order.orderId },
        'the payment status of a cancelled order could not be stored: the next status check repeats it',
      )
    }
  }
}

/**
 * The job source of scheduled status checks. All instances share an account's limit per minute, so each run counts the
 * checks of the last minute in the database. Concurrent runs of several instances may exceed the limit by the number of
 * checks that are in progress on the other instances.
 */
export function statusCheckJobs({ statusChecks, clientOf, rulesOf, limits, ...recording }: StatusCheckJobs): JobSource {
  /** Number of status checks that each account may still send in this run. */
  const left = new Map<string, number>()
  const queued = {
    async findPending(now: Date) {
      const pending = await statusChecks.findPending(now)
      const limits = new Map(pending.map(({ acquirer }) => [acquirer, rulesOf(acquirer)?.perMinute]))
      const limited = [...limits].flatMap(([account, perMinute]) => (perMinute ? [{ account, perMinute }] : []))
      if (limited.length === 0) return pending
      const accounts = limited.map(({ account }) => account)
      const counts = await statusChecks.countOfLastMinute(accounts, now)
      for (const { account, perMinute } of limited) left.set(account, perMinute - (counts.get(account) ?? 0))
      return pending
    },
    async claimPending(merchant: PendingMerchant, limit: number, now: Date) {
      const account = merchant.acquirer
      const free = left.get(account) ?? Number.POSITIVE_INFINITY
      const reserved = Math.max(0, Math.min(limit, free))
      left.set(account, free - reserved)
      const most = rulesOf(account)?.most ?? 0
      const claimed = reserved > 0 ? await statusChecks.claimPending(merchant, reserved, now, most) : []
      left.set(account, (left.get(account) ?? 0) + reserved - claimed.length)
      return claimed
    },
    work: (statusCheck: StatusCheck, client: AcquirerClient) =>
      checkAtAcquirer(statusCheck, { client, ...recording }).catch(async (error) => {
        ignoreAcquirerError(error)
        const isChecked = reachedAcquirer(error)
        if (isChecked && error.outcome === 'refused') return
        const most = rulesOf(statusCheck.paymentLink.acquirer)?.most ?? 0
        await statusChecks.repeat(statusCheck, { isChecked, isUnreadable: error.isUnreadable, most }, recording.now())
      }),
  }
  return acquirerQueues('status checks at acquirers', clientOf, queued, { ...limits, now: recording.now })
}

type StatusCheckJobs = Recording & {
  statusChecks: Pick<StatusChecks, 'findPending' | 'countOfLastMinute' | 'claimPending' | 'repeat'>
  clientOf: ClientOf
  rulesOf: (account: string) => Pick<StatusCheckRules, 'most' | 'perMinute'> | undefined
  limits: Pick<Limits['acquirers'], 'concurrentJobs'>
}
