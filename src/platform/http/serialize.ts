import type { Deadline } from './time-limits.ts'

/**
 * Returns a function that serializes changes per key; changes of different keys run concurrently. Therefore only the
 * first of many requests for one order waits for the row lock and occupies a connection from the pool. A waiting change
 * is not started after its deadline. `work` passes `claim` to its transaction.
 */
export function createSerializer() {
  const last = new Map<string, Promise<unknown>>()

  return function serializeByKey<T>(
    key: string,
    { check, claim }: Pick<Deadline, 'check' | 'claim'>,
    work: (claim: () => void) => Promise<T>,
  ): Promise<T> {
    const result = (last.get(key) ?? Promise.resolve()).then(() => {
      check()
      return work(claim)
    })
    const end = result
      .catch(() => undefined)
      .then(() => {
        if (last.get(key) === end) last.delete(key)
      })
    last.set(key, end)
    return result
  }
}

export type SerializeByKey = ReturnType<typeof createSerializer>
