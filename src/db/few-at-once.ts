/** What work needs, such as the node that has its rows; undefined where nothing is told apart. */
export type Key = string | undefined

/** The key of work that needs all that is told apart: it hangs where any of it does. */
export const ALL = 'all'

/** Runs work when it has a place. */
export type Places = <T>(work: () => Promise<T>, key?: Key) => Promise<T>

/** So that what hangs, one key's work and that of `ALL`, leaves places for the others. */
function shareOf(key: Key, limit: number): number {
  if (key === undefined) return limit
  return key === ALL ? Math.ceil(limit / 4) : Math.ceil(limit / 2)
}

/**
 * Returns a function that runs at most `limit` pieces of work at once; more of them wait, in the order of the calls. Of those with
 * the same `key` at most half as many run, and of those with `ALL` a quarter; without a key all may.
 */
export function fewAtOnce(limit: number): Places {
  const turns = queueByKey<() => void>(limit)

  return async (work, key) => {
    let hasBegun = false
    const turn = new Promise<void>((begin) => {
      turns.add(() => {
        hasBegun = true
        begin()
      }, key)
    })
    turns.take()?.item()
    if (!hasBegun) await turn
    try {
      return await work()
    } finally {
      turns.giveBack(key)
      turns.take()?.item()
    }
  }
}

/**
 * The same, but work is refused, with what `refusal` makes, when `waiting` pieces run or wait, or its key's share of that, and when it
 * has waited for longer than `waitingMs`.
 */
export function fewInTime(
  { atOnce, waiting, waitingMs = Number.POSITIVE_INFINITY }: { atOnce: number; waiting: number; waitingMs?: number },
  refusal: () => Error,
): Places {
  const inTurn = fewAtOnce(atOnce)
  const underWay = countShares(waiting)

  return async (work, key) => {
    if (!underWay.hasRoom(key)) throw refusal()
    const latest = performance.now() + waitingMs
    const workInTime = () => {
      if (performance.now() > latest) throw refusal()
      return work()
    }
    underWay.add(1, key)
    try {
      return await inTurn(workInTime, key)
    } finally {
      underWay.add(-1, key)
    }
  }
}

/**
 * Returns a function that runs `work` unless `limit` pieces of work with the same key are under way, which includes those
 * that wait for their turn: then it rejects with what `refusal` makes.
 */
export function limitUnderWay(
  limit: number,
  refusal: () => Error,
): <T>(work: () => Promise<T>, key?: string) => Promise<T> {
  const underWay = new Map<string, number>()

  return async (work, key = '') => {
    const others = underWay.get(key) ?? 0
    if (others >= limit) throw refusal()
    underWay.set(key, others + 1)
    try {
      return await work()
    } finally {
      const left = (underWay.get(key) ?? 1) - 1
      if (left > 0) underWay.set(key, left)
      else underWay.delete(key)
    }
  }
}

/** Counts what has a place: at most `limit`, and of each key its share. */
export function countShares(limit: number) {
  const ofKeys = new Map<Key, number>()
  let all = 0
  return {
    hasRoom: (key: Key): boolean => all < limit && (ofKeys.get(key) ?? 0) < shareOf(key, limit),

    add(count: number, key: Key): void {
      all += count
      const ofKey = (ofKeys.get(key) ?? 0) + count
      if (ofKey > 0) ofKeys.set(key, ofKey)
      else ofKeys.delete(key)
    },
  }
}

/** Who gets the next of `limit` places, which `countShares` counts. Keys take turns, and of one key the first comes first. */
export function queueByKey<T>(limit: number) {
  /** In the order of their turns. */
  const waiting = new Map<Key, T[]>()
  const places = countShares(limit)

  function nextKey(): { key: Key } | undefined {
    for (const key of waiting.keys()) if (places.hasRoom(key)) return { key }
    return undefined
  }

  return {
    add(item: T, key: Key): void {
      const queue = waiting.get(key)
      if (queue) queue.push(item)
      else waiting.set(key, [item])
    },

    /** Whether somebody waits for whom there is a place. */
    isReady: (): boolean => nextKey() !== undefined,

    /** The next item. It has a place until `giveBack`. */
    take(): { item: T; key: Key } | undefined {
      const next = nextKey()
      if (next === undefined) return undefined
      const { key } = next
      const queue = waiting.get(key) as T[]
      waiting.delete(key)
      const item = queue.shift() as T
      if (queue.length > 0) waiting.set(key, queue)
      places.add(1, key)
      return { item, key }
    },

    giveBack: (key: Key): void => places.add(-1, key),
  }
}
