import type { Limits } from '../limits.ts'

type Lane = { lists: number; reading: number; waiting: (() => void)[] }

/** Shares out the reads of lists, so that no partner takes those of others, or the connections of payments. */
export function createTurns({ readsOfPartner, ofPartner }: Limits['lists']) {
  const lanes = new Map<string, Lane>()

  return {
    /** Whether `pid` may ask for one more list. It counts until `over` aborts. */
    enter(pid: string, over: AbortSignal): boolean {
      const lane = lanes.get(pid) ?? { lists: 0, reading: 0, waiting: [] }
      if (lane.lists >= ofPartner) return false
      // It would never abort again.
      if (over.aborted) return true
      lane.lists++
      lanes.set(pid, lane)
      over.addEventListener('abort', () => {
        if (--lane.lists === 0) lanes.delete(pid)
      })
      return true
    },

    /** Runs `read` for a partner who has entered, in the order in which they came. */
    async inTurn<T>(pid: string, read: () => Promise<T>): Promise<T> {
      const lane = lanes.get(pid)
      if (lane === undefined) return read()
      if (lane.reading < readsOfPartner) lane.reading++
      else await new Promise<void>((begin) => lane.waiting.push(begin))
      try {
        return await read()
      } finally {
        const next = lane.waiting.shift()
        if (next) next()
        else lane.reading--
      }
    },
  }
}
