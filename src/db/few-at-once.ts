/** What items are waited for by, such as the node whose rows they need; undefined where there is only one. */
export type Key = string | undefined

/**
 * Returns a function that runs at most `limit` pieces of work at once; more of them wait, in the order of the calls. Of those with
 * the same `key` at most half as many run, so that they leave places for others; without a key all may.
 */
export function fewAtOnce(limit: number): <T>(work: () => Promise<T>, key?: Key) => Promise<T> {
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
 * The same, but work is refused, with what `refusal` makes, when `waiting` pieces run or wait, or half as many with its key, and when
 * it has waited for longer than `waitingMs`.
 */
export function fewInTime(
  { atOnce, waiting, waitingMs = Number.POSITIVE_INFINITY }: { atOnce: number; waiting: number; waitingMs?: number },
  refusal: () => Error,
): <T>(work: () => Promise<T>, key?: Key) => Promise<T> {
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

/** Counts what has a place: at most `limit`, and with the same key at most half as many; without a key there is no half. */
export function countShares(limit: number) {
  const ofKeys = new Map<Key, number>()
  let all = 0
  return {
    hasRoom: (key: Key): boolean => all < limit && (key === undefined || (ofKeys.get(key) ?? 0) < Math.ceil(limit / 2)),

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
