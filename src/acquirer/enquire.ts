import type { Kind } from '../due/clock.ts'
import type { Enquiries, Enquiry } from '../payments/enquiries.ts'
import type { Recorded, Reports } from '../payments/reports.ts'
import { AcquirerFault } from './acquirer.ts'
import type { Issuer } from './issuer.ts'

/** Questions about payments that are asked at once: acquirers ask for few, and never in batches. */
const AT_ONCE = 4

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

/** Questions to acquirers about orders whose end has not been reported. */
export function dueEnquiries({
  enquiries,
  issuers,
  reports,
  now,
}: {
  enquiries: Pick<Enquiries, 'findDue' | 'takeDue'>
  issuers: ReadonlyMap<string, Issuer>
  reports: Reports
  now: () => Date
}): Kind {
  const names = [...issuers.keys()]

  async function ask(enquiry: Enquiry): Promise<boolean> {
    const issuer = issuers.get(enquiry.issued.acquirer)
    try {
      if (issuer) await enquire(enquiry, { issuer, reports, now })
    } catch (error) {
      // The issuer has logged this fault. The next question is planned already, unless this was the last one.
      if (!(error instanceof AcquirerFault)) throw error
    }
    return true
  }

  return {
    name: 'questions to acquirers',
    atOnce: { ofOwner: AT_ONCE, ofGroup: AT_ONCE },
    async find() {
      const mids = names.length > 0 ? await enquiries.findDue(names, AT_ONCE, now()) : []
      return mids.map((mid) => ({
        key: `${mid} questions`,
        group: 'questions',
        take: async (most) => (await enquiries.takeDue(names, mid, most, now())).map((one) => () => ask(one)),
      }))
    },
  }
}
