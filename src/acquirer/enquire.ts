import { AcquirerError } from '../errors.ts'
import type { Limits } from '../limits.ts'
import type { Enquiries, Enquiry } from '../payments/enquiries.ts'
import type { Recorded, Reports } from '../payments/reports.ts'
import type { JobSource } from '../scheduler/scheduler.ts'
import type { AcquirerClient, LinkedOrder } from './client.ts'

type Enquiring = { client: AcquirerClient; reports: Reports; now: () => Date }

/**
 * Asks the acquirer about an order, and records the payment that it reports. Undefined when the acquirer knows of no payment that
 * has ended. Rejects with an AcquirerError.
 */
export async function enquire(
  { orderId, paymentLink }: LinkedOrder,
  { client, reports, now }: Enquiring,
): Promise<Recorded | undefined> {
  const report = await client.getPayment({ orderId, paymentLink })
  return report && reports.record(report, { source: 'enquiry', now })
}

/** Closes the link of an order that was cancelled. Where the acquirer refuses, the order may be paid: asks for the payment. */
export async function closeLink(order: LinkedOrder, enquiring: Enquiring): Promise<void> {
  try {
    if ((await enquiring.client.closeLink(order.paymentLink)) === 'refused') await enquire(order, enquiring)
  } catch (error) {
    // The client has logged this error. A link that stays open expires by itself, and a question follows the expiry.
    if (!(error instanceof AcquirerError)) throw error
  }
}

/** Questions about orders whose end has not been reported: to each acquirer by itself. */
export function dueEnquiries({
  enquiries,
  clients,
  reports,
  now,
  limits: { dueAtOnce },
}: {
  enquiries: Pick<Enquiries, 'findDue' | 'takeDue'>
  clients: ReadonlyMap<string, AcquirerClient>
  reports: Reports
  now: () => Date
  limits: Pick<Limits['acquirers'], 'dueAtOnce'>
}): JobSource[] {
  async function ask(enquiry: Enquiry, client: AcquirerClient): Promise<boolean> {
    try {
      await enquire(enquiry, { client, reports, now })
    } catch (error) {
      // The client has logged this error. The next question is planned already, unless this was the last one.
      if (!(error instanceof AcquirerError)) throw error
    }
    return true
  }

  return [...clients].map(([acquirer, client]) => ({
    name: `questions to ${acquirer}`,
    atOnce: { ofQueue: dueAtOnce / 4, ofGroup: dueAtOnce },
    async findQueues() {
      return (await enquiries.findDue(acquirer, dueAtOnce, now())).map((mid) => ({
        key: `${mid} questions to ${acquirer}`,
        group: `questions to ${acquirer}`,
        async claim(most: number) {
          const taken = await enquiries.takeDue(acquirer, mid, most, now())
          return taken.map((enquiry) => () => ask(enquiry, client))
        },
      }))
    },
  }))
}
