import type { Logger } from 'pino'
import type { Limits } from '../limits.ts'
import type { Enquiries, Enquiry } from '../payments/enquiries.ts'
import type { Recorded, Reports } from '../payments/reports.ts'
import { startRepeating } from '../repeat.ts'
import { AcquirerFault } from './acquirer.ts'
import type { Issuer } from './issuer.ts'

/**
 * Asks the acquirer about an order, and records what it tells. Undefined when it knows of no payment that has ended.
 * Rejects with an AcquirerFault.
 */
export async function enquire(
  { orderId, issued }: Enquiry,
  { issuer, reports, now }: { issuer: Issuer; reports: Reports; now: () => Date },
): Promise<Recorded | undefined> {
  const told = await issuer.enquire(issued)
  if (told === undefined) return undefined
  const report = { orderId, ...told, acquirer: { name: issued.acquirer, id: issued.id } }
  return reports.record(report, { reason: 'enquiry', now })
}

/** Asks about every order whose question is due, until `stop`, which waits for the questions that are under way. */
export function startEnquiries({
  enquiries,
  issuers,
  reports,
  log,
  now,
  limits: { enquiriesAtOnce, enquiryPauseMs },
}: {
  enquiries: Pick<Enquiries, 'takeDue' | 'nextDue'>
  issuers: ReadonlyMap<string, Issuer>
  reports: Reports
  log: Pick<Logger, 'warn'>
  now: () => Date
  limits: Limits['acquirers']
}) {
  const names = [...issuers.keys()]
  if (names.length === 0) return { stop: async () => undefined }
  const { stop } = startRepeating(look, MIN_PAUSE_MS)

  async function look(): Promise<number> {
    let pauseMs = enquiryPauseMs
    try {
      const due = await enquiries.takeDue(names, enquiriesAtOnce, now())
      await Promise.all(due.map(ask))
      const next = await enquiries.nextDue(names)
      if (next) pauseMs = Math.min(pauseMs, Math.max(MIN_PAUSE_MS, next.getTime() - now().getTime()))
    } catch (error) {
      log.warn({ error: (error as Error).message }, 'acquirers were not asked about open payments')
    }
    return pauseMs
  }

  /** Never rejects: `stop` waits for all questions, also when one of them fails. */
  async function ask(enquiry: Enquiry): Promise<void> {
    const { orderId, issued } = enquiry
    const issuer = issuers.get(issued.acquirer)
    try {
      if (issuer) await enquire(enquiry, { issuer, reports, now })
    } catch (error) {
      // An AcquirerFault was logged where it was made. The next question is planned already, or this was the last one.
      if (error instanceof AcquirerFault) return
      const facts = { acquirer: issued.acquirer, orderId, error: (error as Error).message }
      log.warn(facts, 'what an acquirer told of a payment was not recorded')
    }
  }

  return { stop }
}

/** Between two looks, also when more is due: acquirers ask not to be asked in batches. */
const MIN_PAUSE_MS = 250
