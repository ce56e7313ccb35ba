/** Reads of one partner that run at once: together they take at most a fifth of the connections of payments. */
const READS_AT_ONCE = 2
/** Reads of one partner that wait for their turn: at the usual few milliseconds each, the last one waits for under 0.5 s. */
const READS_WAITING = 100

type Lane = { running: number; waiting: (() => void)[] }

/**
 * Returns a function that runs the reads of one partner a few at a time, in the order in which they came. It resolves to
 * undefined, without having read, when too many of them wait already.
 */
export function createTurns() {
  const lanes = new Map<string, Lane>()

  return async function inTurn<T>(pid: string, read: () => Promise<T>): Promise<{ result: T } | undefined> {
    const lane = lanes.get(pid) ?? { running: 0, waiting: [] }
    lanes.set(pid, lane)
    if (lane.running < READS_AT_ONCE) lane.running++
    else if (lane.waiting.length < READS_WAITING) await new Promise<void>((begin) => lane.waiting.push(begin))
    else return undefined
    try {
      return { result: await read() }
    } finally {
      const next = lane.waiting.shift()
      if (next) next()
      else if (--lane.running === 0) lanes.delete(pid)
    }
  }
}
