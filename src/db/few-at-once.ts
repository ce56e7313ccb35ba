/** Returns a function that runs at most `limit` pieces of work at once; more of them wait, in the order of the calls. */
export function fewAtOnce(limit: number): <T>(work: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = []
  let running = 0

  return async (work) => {
    if (running < limit) running++
    else await new Promise<void>((begin) => waiting.push(begin))
    try {
      return await work()
    } finally {
      const next = waiting.shift()
      if (next) next()
      else running--
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
