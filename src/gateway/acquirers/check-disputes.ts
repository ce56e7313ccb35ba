import { LRUCache } from 'lru-cache'
import type { JobSource } from '../../platform/scheduler.ts'
import { DAY_MS } from '../../platform/time.ts'
import { DISPUTE_DAYS } from '../disputes/dispute.ts'
import type { PendingDispute, PendingDisputes } from '../disputes/pending-disputes.ts'
import type { Disputes } from '../disputes/record-dispute.ts'
import { acquirerQueues, type ClientOf, ignoreAcquirerError } from './acquirer-queues.ts'
import type { AcquirerClient } from './client.ts'

/** Pause between the reads of an account's list after notifications. */
const LIST_PAUSE_MS = 60_000
/** The first reads of a new process are spread over this time. */
const FIRST_READS_MS = 10 * 60_000
/** Longest time to read the list of an account, page by page. */
const LIST_MS = 60_000

type NotifierOf = (account: string) => Promise<{ isDisabled: boolean } | undefined>
type ListDisputes = NonNullable<AcquirerClient['listDisputes']>
type Dependencies = { disputes: Pick<Disputes, 'record'>; clientOf: ClientOf; now: () => Date }

/**
 * The job source that checks the status of each dispute once a day, at acquirers that return a single dispute. An instance
 * sends one check of an account per poll, at most 60 per minute.
 */
export function disputeCheckJobs({
  pending,
  disputes,
  clientOf,
  now,
}: Dependencies & { pending: PendingDisputes }): JobSource {
  async function work({ acquirer, disputeId, orderId }: PendingDispute, client: AcquirerClient): Promise<void> {
    if (client.getDispute === undefined) return
    const readAt = now()
    const report = await client.getDispute({ id: disputeId, orderId }).catch(ignoreAcquirerError)
    if (report) await disputes.record(acquirer, report, { source: 'enquiry', now, readAt })
  }
  const queued = { ...pending, work, isPaced: true }
  return acquirerQueues('disputes at acquirers', clientOf, queued, { concurrentJobs: 1, now })
}

export type DisputeReader = ReturnType<typeof createDisputeReader>

/**
 * Reads the disputes of acquirers that list them by time: once a day, and soon after a notification. Each instance reads
 * the lists, because a repeated report changes nothing. `namesOf` returns the names of all acquirer accounts. A disabled
 * account stores no exception for an unknown payment.
 */
export function createDisputeReader({
  disputes,
  clientOf,
  notifierOf,
  namesOf,
  now,
}: Dependencies & { notifierOf: NotifierOf; namesOf: () => Promise<readonly string[]> }) {
  /** Time in milliseconds since 1970 of each account's next and last read. */
  const reads = new LRUCache<string, { nextMs: number; lastMs: number }>({ max: 10_000 })
  const readsOf = (account: string) => {
    const planned = reads.get(account) ?? { nextMs: now().getTime() + Math.random() * FIRST_READS_MS, lastMs: 0 }
    reads.set(account, planned)
    return planned
  }

  async function read(account: string, list: ListDisputes, signal: AbortSignal): Promise<void> {
    const to = now()
    const days = { from: new Date(to.getTime() - DISPUTE_DAYS * DAY_MS), to }
    const reports =
      (await list(days, AbortSignal.any([signal, AbortSignal.timeout(LIST_MS)])).catch(ignoreAcquirerError)) ?? []
    const isDisabled = (await notifierOf(account))?.isDisabled ?? false
    const reporting = { source: 'enquiry', now, isDisabled, readAt: to }
    for (const report of reports) if (!signal.aborted) await disputes.record(account, report, reporting)
  }

  /** Schedules a read of the account's list, at least LIST_PAUSE_MS after its last read. */
  function readSoon(account: string): void {
    const planned = readsOf(account)
    planned.nextMs = Math.min(planned.nextMs, Math.max(now().getTime(), planned.lastMs + LIST_PAUSE_MS))
  }

  return {
    readSoon,

    source: {
      name: 'lists of disputes',
      concurrency: { ofQueue: 1, ofGroup: 2 },
      async findQueues() {
        const due = (await namesOf()).filter((account) => readsOf(account).nextMs <= now().getTime())
        const queues = due.map(async (account) => {
          const list = (await clientOf(account))?.listDisputes
          if (list === undefined) return []
          const claim = async () => {
            const lastMs = now().getTime()
            reads.set(account, { lastMs, nextMs: lastMs + DAY_MS })
            // An error of the database, unlike one of the acquirer, is no reason to wait for a day.
            const retry = (error: unknown) => {
              readSoon(account)
              throw error
            }
            return [(signal: AbortSignal) => read(account, list, signal).then(() => false, retry)]
          }
          return [{ key: `disputes ${account}`, group: 'lists of disputes', claim }]
        })
        return (await Promise.all(queues)).flat()
      },
    } satisfies JobSource,
  }
}
