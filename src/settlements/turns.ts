import { fewAtOnce, type Key } from '../db/few-at-once.ts'
import type { Limits } from '../limits.ts'

/** The lists of one partner that are asked for and not yet taken, and its reads that are running or waiting. */
type Lane = { lists: number; reads: number; inTurn: ReturnType<typeof fewAtOnce> }

/** Limits the lists that one partner asks for at once, so that other partners and payments keep their connections. */
export function createTurns({ readsOfPartner, ofPartner }: Limits['lists']) {
  const lanes = new Map<string, Lane>()

  function laneOf(pid: string): Lane {
    const lane = lanes.get(pid) ?? { lists: 0, reads: 0, inTurn: fewAtOnce(readsOfPartner) }
    lanes.set(pid, lane)
    return lane
  }

  function forgetIfUnused(pid: string, lane: Lane) {
    if (lane.lists === 0 && lane.reads === 0) lanes.delete(pid)
  }

  return {
    /** Whether `pid` may ask for one more list. It counts until `over` aborts. */
    enter(pid: string, over: AbortSignal): boolean {
      if (over.aborted) return false
      const lane = laneOf(pid)
      // A read goes on after its client has left, so leaving must not make room for the next one.
      if (Math.max(lane.lists, lane.reads) >= ofPartner) return false
      lane.lists++
      over.addEventListener('abort', () => {
        lane.lists--
        forgetIfUnused(pid, lane)
      })
      return true
    },

    /**
     * Runs `read` when fewer than `readsOfPartner` reads of that partner are running, in the order of the calls; those of one
     * node of a spread database leave places for the others.
     */
    async inTurn<T>(pid: string, read: () => Promise<T>, node?: Key): Promise<T> {
      const lane = laneOf(pid)
      lane.reads++
      try {
        return await lane.inTurn(read, node)
      } finally {
        lane.reads--
        forgetIfUnused(pid, lane)
      }
    },
  }
}
