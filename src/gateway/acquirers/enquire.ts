import type { Logger } from 'pino'
import { AcquirerError } from '../../errors.ts'
import type { Limits } from '../../limits.ts'
import type { JobSource } from '../../platform/scheduler.ts'
import type { DueMerchant } from '../payments/due-merchants.ts'
import type { Enquiries, Enquiry } from '../payments/enquiries.ts'
import type { EnquiryRules } from '../payments/enquiry-times.ts'
import type { PaymentReport } from '../payments/outcome.ts'
import type { Recorded, Reports } from '../payments/reports.ts'
import { acquirerQueues, type ClientOf, ignoreAcquirerError } from './acquirer-queues.ts'
import type { AcquirerClient, LinkedOrder } from './client.ts'
import { UnreadableStatus } from './json-request.ts'

type Recording = { reports: Reports; now: () => Date }

/**
 * Checks the status of an order's payments at its acquirer, and records them. Undefined if the acquirer knows no payment
 * that has ended; otherwise the result of the first one that has changed something, or of the last one. A response that
 * cannot be read keeps the order open. Rejects with an AcquirerError.
 */
export async function enquire(
  order: LinkedOrder,
  { client, reports, now }: Recording & { client: AcquirerClient },
): Promise<Recorded | undefined> {
  const recordAll = async (payments: readonly PaymentReport[]) => {
    const recorded: Recorded[] = []
    for (const payment of payments) recorded.push(await reports.record(payment, { source: 'enquiry', now }))
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

/** Whether the acquirer has perhaps looked at the order of an enquiry that failed: not with 429, nor without a log-in. */
export const wasAsked = ({ facts, isUndone }: AcquirerError) => facts.status !== 429 && !isUndone

/**
 * Returns a function that closes the link of a cancelled order. If the acquirer refuses, the order may be paid, so its
 * payment is queried. No answer waits for the closing.
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
      await enquire(order, { client: client as AcquirerClient, ...recording })
    } catch (err) {
      // The client has logged the AcquirerError. A link that stays open expires by itself, then its payment is queried.
      if (err instanceof AcquirerError) return
      log.error(
        { err, orderId: order.orderId },
        'whether a cancelled order is paid could not be stored: it is asked again',
      )
    }
  }
}

/**
 * The job source that queries the payments of orders whose outcome was not reported. All instances share an account's
 * limit of queries in a minute, so the database counts those of the last minute at each look. Instances that look at the
 * same moment may exceed the limit by the enquiries that each then has under way.
 */
export function dueEnquiries({ enquiries, clientOf, rulesOf, limits, ...recording }: DueEnquiries): JobSource {
  /** How many queries each account has left until the next look. */
  const left = new Map<string, number>()
  const due = {
    async findDue(now: Date) {
      const due = await enquiries.findDue(now)
      const limits = new Map(due.map(({ acquirer }) => [acquirer, rulesOf(acquirer)?.perMinute]))
      const limited = [...limits].flatMap(([account, perMinute]) => (perMinute ? [{ account, perMinute }] : []))
      if (limited.length === 0) return due
      const accounts = limited.map(({ account }) => account)
      const counts = await enquiries.countOfLastMinute(accounts, now)
      for (const { account, perMinute } of limited) left.set(account, perMinute - (counts.get(account) ?? 0))
      return due
    },
    async claimDue(merchant: DueMerchant, limit: number, now: Date) {
      const account = merchant.acquirer
      const free = left.get(account) ?? Number.POSITIVE_INFINITY
      const reserved = Math.max(0, Math.min(limit, free))
      left.set(account, free - reserved)
      const most = rulesOf(account)?.most ?? 0
      const claimed = reserved > 0 ? await enquiries.claimDue(merchant, reserved, now, most) : []
      left.set(account, (left.get(account) ?? 0) + reserved - claimed.length)
      return claimed
    },
    work: (enquiry: Enquiry, client: AcquirerClient) =>
      enquire(enquiry, { client, ...recording }).catch(async (error) => {
        ignoreAcquirerError(error)
        const isAsked = wasAsked(error)
        if (isAsked && error.outcome === 'refused') return
        const most = rulesOf(enquiry.paymentLink.acquirer)?.most ?? 0
        await enquiries.repeat(enquiry, { isAsked, isUnreadable: error.isUnreadable, most }, recording.now())
      }),
  }
  return acquirerQueues('questions to acquirers', clientOf, due, { ...limits, now: recording.now })
}

type DueEnquiries = Recording & {
  enquiries: Pick<Enquiries, 'findDue' | 'countOfLastMinute' | 'claimDue' | 'repeat'>
  clientOf: ClientOf
  rulesOf: (account: string) => Pick<EnquiryRules, 'most' | 'perMinute'> | undefined
  limits: Pick<Limits['acquirers'], 'dueAtOnce'>
}
