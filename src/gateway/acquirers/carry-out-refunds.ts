import { AcquirerError } from '../../errors.ts'
import type { Limits } from '../../limits.ts'
import type { JobSource } from '../../platform/scheduler.ts'
import { HOUR_MS } from '../../platform/time.ts'
import type { PendingRefund, PendingRefunds } from '../refunds/pending-refunds.ts'
import type { RefundUpdates } from '../refunds/record-update.ts'
import type { RefundUpdate } from '../refunds/refund.ts'
import { acquirerQueues, type ClientOf, ignoreAcquirerError } from './acquirer-queues.ts'
import type { AcquirerClient, Refunds } from './client.ts'

/** Time after which the operator has to decide about a sent refund that the acquirer still does not list. */
const UNSURE_AFTER_MS = 24 * HOUR_MS
const WITHOUT_AN_END_AFTER_MS = 5 * 24 * HOUR_MS

type Dependencies = {
  pending: PendingRefunds
  updates: RefundUpdates
  clientOf: ClientOf
  now: () => Date
  limits: Pick<Limits['acquirers'], 'concurrentJobs'>
}

/** The job source that sends new refunds and checks the status of refunds in progress. */
export function refundJobs({ pending, updates, clientOf, now, limits: { concurrentJobs } }: Dependencies): JobSource {
  async function carryOut(refund: PendingRefund, client: Refunds): Promise<void> {
    const isToSend = refund.acceptedAt === null && (refund.sentAt === null || client.repeatsRefunds === true)
    await (isToSend ? send(refund, client) : checkStatus(refund, client)).catch(ignoreAcquirerError)
    if (now().getTime() - refund.createdAt.getTime() >= WITHOUT_AN_END_AFTER_MS) {
      await updates.needPerson(refund, 'refund without an end', now())
    }
  }

  async function send(refund: PendingRefund, client: Refunds): Promise<void> {
    const sentAt = now()
    if (!(await pending.markSent(refund, sentAt, client.repeatsRefunds === true))) return
    try {
      await record(refund, await client.refund(refund), 'answer')
    } catch (error) {
      if (error instanceof AcquirerError && error.isUndone) await pending.unmarkSent(refund, sentAt)
      throw error
    }
  }

  async function checkStatus(refund: PendingRefund, client: Refunds): Promise<void> {
    const update = await client.getRefund(refund)
    if (update) return record(refund, update, 'enquiry')
    const { sentAt, acceptedAt } = refund
    const isUnsure = acceptedAt === null && sentAt && now().getTime() - sentAt.getTime() >= UNSURE_AFTER_MS
    if (isUnsure) await updates.needPerson(refund, 'refund unsure', now())
  }

  async function record(refund: PendingRefund, update: RefundUpdate, source: string): Promise<void> {
    await updates.record(refund, update, { source, by: 'acquirer', now })
    if (update.payment && update.payment !== refund.payment)
      await pending.savePaymentNames(refund, update.payment, now())
  }

  const refunding: ClientOf = async (account) => {
    const client = await clientOf(account)
    return client?.refund && client
  }
  const work = (refund: PendingRefund, client: AcquirerClient) => carryOut(refund, client as Refunds)
  return acquirerQueues('refunds at acquirers', refunding, { ...pending, work }, { concurrentJobs, now })
}
