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
  { orderId, paymentLink }: LinkedOrder,
  { client, reports, now }: Recording & { client: AcquirerClient },
): Promise<Recorded | undefined> {
  const report = await client.getPayment({ orderId, paymentLink })
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
      if ((await client?.closeLink(order.paymentLink)) !== 'refused') return
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

/** Returns a job source for each acquirer, which queries the payments of orders whose outcome was not reported. */
export function dueEnquiries({ enquiries, clients, limits: { dueAtOnce }, ...recording }: DueEnquiries): JobSource[] {
  return [...clients].map(([acquirer, client]) =>
    acquirerQueues(`questions to ${acquirer}`, acquirer, enquiries, { dueAtOnce, now: recording.now }, (enquiry) =>
      enquire(enquiry, { client, ...recording }).catch(ignoreAcquirerError),
    ),
  )
}

type DueEnquiries = Recording & {
  enquiries: Pick<Enquiries, 'findDue' | 'claimDue'>
  clients: Clients
  limits: Pick<Limits['acquirers'], 'dueAtOnce'>
}
