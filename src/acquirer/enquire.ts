import type { Logger } from 'pino'
import { AcquirerError } from '../errors.ts'
import type { Limits } from '../limits.ts'
import type { Enquiries } from '../payments/enquiries.ts'
import type { Recorded, Reports } from '../payments/reports.ts'
import type { JobSource } from '../scheduler/scheduler.ts'
import { acquirerQueues, ignoreAcquirerError } from './acquirer-queues.ts'
import type { AcquirerClient, LinkedOrder } from './client.ts'

type Recording = { reports: Reports; now: () => Date }
type Clients = ReadonlyMap<string, AcquirerClient>

/**
 * Queries the payment of an order at its acquirer, and records the report. Undefined if the acquirer knows no payment
 * that has ended. Rejects with an AcquirerError.
 */
export async function enquire(
  order: LinkedOrder,
  { client, reports, now }: Recording & { client: AcquirerClient },
): Promise<Recorded | undefined> {
  const report = await client.getPayment(order)
  return report && reports.record(report, { source: 'enquiry', now })
}

/**
 * Returns a function that closes the link of a cancelled order. If the acquirer refuses, the order may be paid, so its
 * payment is queried. No answer waits for the closing.
 */
export function createLinkCloser({
  clients,
  log,
  ...recording
}: Recording & { clients: Clients; log: Pick<Logger, 'error'> }) {
  return async (order: LinkedOrder): Promise<void> => {
    const client = clients.get(order.paymentLink.acquirer)
    try {
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
 * Returns a job source for each acquirer, which queries the payments of orders whose outcome was not reported. All
 * instances share the acquirer's limit of queries in a minute, so the database counts those of the last minute at each
 * look. Instances that look at the same moment may exceed the limit by the enquiries that each then has under way.
 */
export function dueEnquiries({ enquiries, clients, limits, ...recording }: DueEnquiries): JobSource[] {
  return [...clients].map(([acquirer, client]) => {
    const { most, perMinute } = client.enquiryRules
    let left = Number.POSITIVE_INFINITY
    const due = {
      async findDue(...look: Parameters<typeof enquiries.findDue>) {
        if (perMinute !== undefined) left = perMinute - (await enquiries.countOfLastMinute(acquirer, recording.now()))
        return enquiries.findDue(...look)
      },
      async claimDue(_: string, mid: string, limit: number, now: Date) {
        const reserved = Math.max(0, Math.min(limit, left))
        left -= reserved
        const claimed = reserved > 0 ? await enquiries.claimDue(acquirer, mid, reserved, now, most) : []
        left += reserved - claimed.length
        return claimed
      },
    }
    return acquirerQueues(`questions to ${acquirer}`, acquirer, due, { ...limits, now: recording.now }, (enquiry) =>
      enquire(enquiry, { client, ...recording }).catch(async (error) => {
        ignoreAcquirerError(error)
        // With 429 the acquirer has not looked at the order, so the enquiry is not counted.
        if (error.facts.status === 429) await enquiries.giveBack(enquiry, recording.now())
      }),
    )
  })
}

type DueEnquiries = Recording & {
  enquiries: Pick<Enquiries, 'findDue' | 'countOfLastMinute' | 'claimDue' | 'giveBack'>
  clients: Clients
  limits: Pick<Limits['acquirers'], 'dueAtOnce'>
}
