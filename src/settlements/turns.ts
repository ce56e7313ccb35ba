/** Reads of one partner that run at once: a fifth of the connections that payments have by default. */
const READS_AT_ONCE = 2
/**
 * Lists of one partner that are asked for and not yet taken. At the usual few milliseconds a read, the last one waits for
 * under 0.5 s; and a partner who takes none of them leaves 25 MB in memory.
 */
const LISTS_AT_ONCE = 100

type Lane = { lists: number; reading: number; waiting: (() => void)[] }

/** Shares out the reads of lists, so that no partner takes those of others, or the connections of payments. */
export function createTurns() {
  const lanes = new Map<string, Lane>()

  return {
    /** Whether `pid` may ask for one more list. It counts until `over` aborts. */
    enter(pid: string, over: AbortSignal): boolean {
      const lane = lanes.get(pid) ?? { lists: 0, reading: 0, waiting: [] }
      if (lane.lists >= LISTS_AT_ONCE) return false
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
      if (lane.reading < READS_AT_ONCE) lane.reading++
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
