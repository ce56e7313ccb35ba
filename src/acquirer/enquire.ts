import type { Limits } from '../limits.ts'
import type { Enquiries, Enquiry } from '../payments/enquiries.ts'
import type { Recorded, Reports } from '../payments/reports.ts'
import type { JobSource } from '../scheduler/scheduler.ts'
import { AcquirerError } from './acquirer.ts'
import type { AcquirerClient } from './client.ts'

/**
 * Asks the acquirer about an order, and records what it tells. Undefined when it knows of no payment that has ended.
 * Rejects with an AcquirerError.
 */
export async function enquire(
  { orderId, paymentLink }: Pick<Enquiry, 'orderId' | 'paymentLink'>,
  { client, reports, now }: { client: AcquirerClient; reports: Reports; now: () => Date },
): Promise<Recorded | undefined> {
  const told = await client.enquire(paymentLink)
  if (told === undefined) return undefined
  const report = { orderId, ...told, acquirer: { name: paymentLink.acquirer, id: paymentLink.id } }
  return reports.record(report, { reason: 'enquiry', now })
}

/** Closes the link of an order that was cancelled. Where that is refused, because it may be paid, asks whether it is. */
export async function closeLink(
  order: Pick<Enquiry, 'orderId' | 'paymentLink'>,
  { client, reports, now }: { client: AcquirerClient; reports: Reports; now: () => Date },
): Promise<void> {
  if ((await client.close(order.paymentLink)) !== 'refused') return
  await enquire(order, { client, reports, now }).catch((error) => {
    // The client has logged this fault. The question that follows the expiry is planned already.
    if (!(error instanceof AcquirerError)) throw error
  })
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
      // The client has logged this fault. The next question is planned already, unless this was the last one.
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
