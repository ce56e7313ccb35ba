import type { Kind } from '../due/clock.ts'
import type { Limits } from '../limits.ts'
import type { Enquiries, Enquiry } from '../payments/enquiries.ts'
import type { Recorded, Reports } from '../payments/reports.ts'
import { AcquirerFault } from './acquirer.ts'
import type { Issuer } from './issuer.ts'

/**
 * Asks the acquirer about an order, and records what it tells. Undefined when it knows of no payment that has ended.
 * Rejects with an AcquirerFault.
 */
export async function enquire(
  { orderId, issued }: Pick<Enquiry, 'orderId' | 'issued'>,
  { issuer, reports, now }: { issuer: Issuer; reports: Reports; now: () => Date },
): Promise<Recorded | undefined> {
  const told = await issuer.enquire(issued)
  if (told === undefined) return undefined
  const report = { orderId, ...told, acquirer: { name: issued.acquirer, id: issued.id } }
  return reports.record(report, { reason: 'enquiry', now })
}

/** Closes the link of an order that was cancelled. Where that is refused, because it may be paid, asks whether it is. */
export async function closeIssued(
  order: Pick<Enquiry, 'orderId' | 'issued'>,
  { issuer, reports, now }: { issuer: Issuer; reports: Reports; now: () => Date },
): Promise<void> {
  if ((await issuer.close(order.issued)) !== 'refused') return
  await enquire(order, { issuer, reports, now }).catch((error) => {
    // The issuer has logged this fault. The question that follows the expiry is planned already.
    if (!(error instanceof AcquirerFault)) throw error
  })
}

/** Questions about orders whose end has not been reported: to each acquirer by itself. */
export function dueEnquiries({
  enquiries,
  issuers,
  reports,
  now,
  limits: { dueAtOnce },
}: {
  enquiries: Pick<Enquiries, 'findDue' | 'takeDue'>
  issuers: ReadonlyMap<string, Issuer>
  reports: Reports
  now: () => Date
  limits: Pick<Limits['acquirers'], 'dueAtOnce'>
}): Kind[] {
  async function ask(enquiry: Enquiry, issuer: Issuer): Promise<boolean> {
    try {
      await enquire(enquiry, { issuer, reports, now })
    } catch (error) {
      // The issuer has logged this fault. The next question is planned already, unless this was the last one.
      if (!(error instanceof AcquirerFault)) throw error
    }
    return true
  }

  return [...issuers].map(([acquirer, issuer]) => ({
    name: `questions to ${acquirer}`,
    atOnce: { ofOwner: dueAtOnce / 4, ofGroup: dueAtOnce },
    async find() {
      return (await enquiries.findDue(acquirer, dueAtOnce, now())).map((mid) => ({
        key: `${mid} questions to ${acquirer}`,
        group: `questions to ${acquirer}`,
        async take(most: number) {
          const taken = await enquiries.takeDue(acquirer, mid, most, now())
          return taken.map((enquiry) => () => ask(enquiry, issuer))
        },
      }))
    },
  }))
}
