import type { Deadline } from './time-limits.ts'

/**
 * Returns a function that runs changes of one key one after the other, and changes of different keys at once. Of many
 * requests for one order only the first therefore waits for the row's lock and holds a connection of the pool. A change
 * whose deadline has passed when its turn comes is not begun. `work` passes `claim` to its transaction.
 */
export function createTurns() {
  const last = new Map<string, Promise<unknown>>()

  return function inTurn<T>(
    key: string,
    { check, claim }: Deadline,
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

export type InTurn = ReturnType<typeof createTurns>
