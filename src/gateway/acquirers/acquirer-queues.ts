import { AcquirerError } from '../../errors.ts'
import type { JobSource, Queue } from '../../platform/scheduler.ts'
import type { PendingMerchant } from '../payments/pending-merchants.ts'
import type { AcquirerClient } from './client.ts'

/** Returns the client of an acquirer account; undefined if the account cannot run the job. */
export type ClientOf = (account: string) => Promise<AcquirerClient | undefined>

/**
 * Pending jobs at acquirers. `findPending` finds the pending jobs of all accounts in one query. `claimPending` returns
 * a merchant's pending jobs and schedules the next attempt of each job.
 */
type PendingAtAcquirers<Pending> = {
  findPending: (now: Date) => Promise<PendingMerchant[]>
  claimPending: (merchant: PendingMerchant, limit: number, now: Date) => Promise<Pending[]>
  work: (pending: Pending, client: AcquirerClient) => Promise<unknown>
  /** Whether the next job of a queue waits for the next poll. */
  isPaced?: boolean
}

/**
 * The job source of all acquirer accounts. Each account is a group with one queue per merchant, so that neither an
 * unavailable acquirer nor one merchant's backlog delays other merchants. The least recently claimed queue is claimed
 * first.
 */
export function acquirerQueues<Pending>(
  name: string,
  clientOf: ClientOf,
  { findPending, claimPending, work, isPaced = false }: PendingAtAcquirers<Pending>,
  { concurrentJobs, now }: { concurrentJobs: number; now: () => Date },
): JobSource {
  let claims = 0
  /**
   * Sequence number of each queue's last claim, by queue key. The number is retained when a queue becomes empty, so
   * that a queue that fills again does not jump ahead.
   */
  const lastClaims = new Map<string, number>()
  const lastClaimOf = ({ key }: Pick<Queue, 'key'>) => lastClaims.get(key) ?? 0

  const queueOf = (merchant: PendingMerchant, client: AcquirerClient): Queue => {
    const { acquirer, mid } = merchant
    const key = `${mid} ${name} ${acquirer}`
    return {
      key,
      group: `${name} ${acquirer}`,
      async claim(most) {
        lastClaims.set(key, ++claims)
        const claimed = await claimPending(merchant, most, now())
        return claimed.map((pending) => () => work(pending, client).then(() => !isPaced))
      },
    }
  }
  return {
    name,
    concurrency: { ofQueue: Math.max(1, concurrentJobs / 4), ofGroup: concurrentJobs },
    async findQueues({ isPending = true } = {}) {
      const queues: Queue[] = []
      for (const pending of isPending ? await findPending(now()) : []) {
        const client = await clientOf(pending.acquirer)
        if (client) queues.push(queueOf(pending, client))
      }
      // The sort is stable: among queues that were never claimed, the queue with the oldest pending job comes first.
      queues.sort((a, b) => lastClaimOf(a) - lastClaimOf(b))
      // Deletes entries below the lowest number of a waiting queue, because they no longer affect the order.
      const lowest = queues[0] ? lastClaimOf(queues[0]) : Number.POSITIVE_INFINITY
      for (const [key, number] of lastClaims) if (number < lowest) lastClaims.delete(key)
      return queues
    },
  }
}

/** Ignores an AcquirerError, so that the scheduler does not log an error that the client has already logged. */
export function ignoreAcquirerError(error: unknown): undefined {
  if (!(error instanceof AcquirerError)) throw error
}
