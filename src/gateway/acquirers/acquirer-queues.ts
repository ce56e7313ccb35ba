import { AcquirerError } from '../../errors.ts'
import type { JobSource, Queue } from '../../platform/scheduler.ts'
import type { DueMerchant } from '../payments/due-merchants.ts'
import type { AcquirerClient } from './client.ts'

/** Returns the client of an acquirer account; undefined if the account cannot do the work. */
export type ClientOf = (account: string) => Promise<AcquirerClient | undefined>

/** Jobs at acquirers. `findDue` finds them for all accounts at once. `claimDue` returns a merchant's jobs and schedules their next attempts. */
type DueAtAcquirers<Due> = {
  findDue: (now: Date) => Promise<DueMerchant[]>
  claimDue: (merchant: DueMerchant, limit: number, now: Date) => Promise<Due[]>
  work: (due: Due, client: AcquirerClient) => Promise<unknown>
}

/**
 * The due jobs of all accounts at acquirers. Each account is a group, in which each merchant has a queue of its own, so
 * that neither a dead acquirer nor a merchant's backlog delays others. The queues of merchants are claimed in turn.
 */
export function acquirerQueues<Due>(
  name: string,
  clientOf: ClientOf,
  { findDue, claimDue, work }: DueAtAcquirers<Due>,
  { dueAtOnce, now }: { dueAtOnce: number; now: () => Date },
): JobSource {
  let claims = 0
  /** The number of the last claim of each queue, by its key. A queue that empties and fills again does not come first each time. */
  const lastClaims = new Map<string, number>()
  const lastClaimOf = ({ key }: Pick<Queue, 'key'>) => lastClaims.get(key) ?? 0

  const queueOf = (merchant: DueMerchant, client: AcquirerClient): Queue => {
    const { acquirer, mid } = merchant
    const key = `${mid} ${name} ${acquirer}`
    return {
      key,
      group: `${name} ${acquirer}`,
      async claim(most) {
        lastClaims.set(key, ++claims)
        const claimed = await claimDue(merchant, most, now())
        return claimed.map((due) => () => work(due, client).then(() => true))
      },
    }
  }
  return {
    name,
    atOnce: { ofQueue: dueAtOnce / 4, ofGroup: dueAtOnce },
    async findQueues() {
      const queues: Queue[] = []
      for (const due of await findDue(now())) {
        const client = await clientOf(due.acquirer)
        if (client) queues.push(queueOf(due, client))
      }
      // The sort is stable: of queues that have not been claimed, the one that is due longest comes first.
      queues.sort((a, b) => lastClaimOf(a) - lastClaimOf(b))
      // A number below those of all waiting queues makes no difference.
      const lowest = queues[0] ? lastClaimOf(queues[0]) : Number.POSITIVE_INFINITY
      for (const [key, number] of lastClaims) if (number < lowest) lastClaims.delete(key)
      return queues
    },
  }
}

/** Ignores an AcquirerError, which the client has logged already, so that the scheduler does not log it again. */
export function ignoreAcquirerError(error: unknown): undefined {
  if (!(error instanceof AcquirerError)) throw error
}
