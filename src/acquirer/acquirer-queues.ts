import { AcquirerError } from '../errors.ts'
import type { JobSource } from '../scheduler/scheduler.ts'

/** Work that is due at an acquirer. `findDue` returns merchants. `claimDue` returns work and plans its next attempt. */
type DueAtAcquirer<Due> = {
  findDue: (acquirer: string, limit: number, now: Date) => Promise<string[]>
  claimDue: (acquirer: string, mid: string, limit: number, now: Date) => Promise<Due[]>
}

/** The due jobs of an acquirer. Each merchant has a queue of its own, so that its backlog delays no other merchant. */
export function acquirerQueues<Due>(
  name: string,
  acquirer: string,
  { findDue, claimDue }: DueAtAcquirer<Due>,
  { dueAtOnce, now }: { dueAtOnce: number; now: () => Date },
  work: (due: Due) => Promise<unknown>,
): JobSource {
  const toQueue = (mid: string) => ({
    key: `${mid} ${name}`,
    group: name,
    async claim(most: number) {
      const claimed = await claimDue(acquirer, mid, most, now())
      return claimed.map((due) => () => work(due).then(() => true))
    },
  })
  return {
    name,
    atOnce: { ofQueue: dueAtOnce / 4, ofGroup: dueAtOnce },
    findQueues: async () => (await findDue(acquirer, dueAtOnce, now())).map(toQueue),
  }
}

/** Ignores an AcquirerError, which the client has logged already, so that the scheduler does not log it again. */
export function ignoreAcquirerError(error: unknown): undefined {
  if (!(error instanceof AcquirerError)) throw error
}
