import type { Limits } from '../limits.ts'

type Lane = { lists: number; reading: number; waiting: (() => void)[] }

/** Limits the lists that one partner asks for at once, so that other partners and payments keep their connections. */
export function createTurns({ readsOfPartner, ofPartner }: Limits['lists']) {
  const lanes = new Map<string, Lane>()

  function laneOf(pid: string): Lane {
    const lane = lanes.get(pid) ?? { lists: 0, reading: 0, waiting: [] }
    lanes.set(pid, lane)
    return lane
  }

  function forgetIfUnused(pid: string, lane: Lane) {
    if (lane.lists === 0 && lane.reading === 0) lanes.delete(pid)
  }

  return {
    /** Whether `pid` may ask for one more list. It counts until `over` aborts. */
    enter(pid: string, over: AbortSignal): boolean {
      const lane = laneOf(pid)
      // A read goes on when its client has left, so that leaving must not make room for the next one.
      if (over.aborted || Math.max(lane.lists, lane.reading + lane.waiting.length) >= ofPartner) return false
      lane.lists++
      over.addEventListener('abort', () => {
        lane.lists--
        forgetIfUnused(pid, lane)
      })
      return true
    },

    /** Runs `read` when fewer than `readsOfPartner` reads of that partner are running, in the order of the calls. */
    async inTurn<T>(pid: string, read: () => Promise<T>): Promise<T> {
      const lane = laneOf(pid)
      if (lane.reading < readsOfPartner) lane.reading++
      else await new Promise<void>((begin) => lane.waiting.push(begin))
      try {
        return await read()
      } finally {
        const next = lane.waiting.shift()
        if (next) next()
        else lane.reading--
        forgetIfUnused(pid, lane)
      }
    },
  }
}
