import { AcquirerError } from '../errors.ts'
import type { JobSource } from '../scheduler/scheduler.ts'

/** The due jobs of one acquirer: each merchant has its own queue, so that one merchant's backlog delays no other. */
export const acquirerQueues = <Due>({
  name,
  atOnce,
  findMerchants,
  claim,
  work,
}: {
  name: string
  atOnce: number
  findMerchants: () => Promise<string[]>
  claim: (mid: string, most: number) => Promise<Due[]>
  work: (due: Due) => Promise<unknown>
}): JobSource => ({
  name,
  atOnce: { ofQueue: atOnce / 4, ofGroup: atOnce },
  async findQueues() {
    return (await findMerchants()).map((mid) => ({
      key: `${mid} ${name}`,
      group: name,
      async claim(most) {
        const claimed = await claim(mid, most)
        return claimed.map((due) => async () => {
          await work(due)
          return true
        })
      },
    }))
  },
})

/** Returns undefined for an AcquirerError. The client has logged the error, and the claim has planned the next attempt. */
export function ignoreAcquirerError(error: unknown): undefined {
  if (!(error instanceof AcquirerError)) throw error
}
