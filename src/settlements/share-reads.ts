/**
 * Answers a function that runs one read per key at a time. Whoever asks for the same meanwhile shares the next one, so
 * that nobody gets an answer that was begun before the question: what was imported before it is in it.
 */
export function shareReads<T>(): (key: string, read: () => Promise<T>) => Promise<T> {
  const running = new Map<string, Promise<T>>()
  const next = new Map<string, Promise<T>>()

  function start(key: string, read: () => Promise<T>): Promise<T> {
    const answer = read().finally(() => running.delete(key))
    running.set(key, answer)
    return answer
  }

  return (key, read) => {
    const current = running.get(key)
    if (current === undefined) return start(key, read)
    const shared = next.get(key)
    if (shared !== undefined) return shared
    const begin = () => {
      next.delete(key)
      return start(key, read)
    }
    const following = current.then(begin, begin)
    next.set(key, following)
    return following
  }
}
