import { AcquirerError } from '../errors.ts'
import type { JobSource } from '../scheduler/scheduler.ts'
import type { AcquirerClient } from './client.ts'

/** Returns the clients of all accounts, by account: accounts may be added at any time. */
export type Clients = () => Promise<ReadonlyMap<string, AcquirerClient>>

/** Work that is due at an account. `findDue` returns merchants. `claimDue` returns work and plans its next attempt. */
type DueAtAcquirer<Due> = {
  findDue: (account: string, limit: number, now: Date) => Promise<string[]>
  claimDue: (account: string, mid: string, limit: number, now: Date) => Promise<Due[]>
}

/**
 * The due jobs of all accounts at acquirers. Each account is a group, in which each merchant has a queue of its own, so
 * that neither a dead acquirer nor a merchant's backlog delays others.
 */
export function acquirerQueues<Due>(
  name: string,
  clients: Clients,
  { findDue, claimDue }: DueAtAcquirer<Due>,
  { dueAtOnce, now }: { dueAtOnce: number; now: () => Date },
  work: (due: Due, client: AcquirerClient) => Promise<unknown>,
): JobSource {
  const queueOf = (account: string, client: AcquirerClient, mid: string) => ({
    key: `${mid} ${name} ${account}`,
    group: `${name} ${account}`,
    async claim(most: number) {
      const claimed = await claimDue(account, mid, most, now())
      return claimed.map((due) => () => work(due, client).then(() => true))
    },
  })
  return {
    name,
    atOnce: { ofQueue: dueAtOnce / 4, ofGroup: dueAtOnce },
    async findQueues(isStopped) {
      const queues = []
      for (const [account, client] of await clients()) {
        if (isStopped?.()) break
        const mids = await findDue(account, dueAtOnce, now())
        queues.push(...mids.map((mid) => queueOf(account, client, mid)))
      }
      return queues
    },
  }
}

/** Ignores an AcquirerError, which the client has logged already, so that the scheduler does not log it again. */
export function ignoreAcquirerError(error: unknown): undefined {
  if (!(error instanceof AcquirerError)) throw error
}
