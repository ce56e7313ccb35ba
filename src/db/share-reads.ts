/**
 * Returns a function that runs one read per key at a time. A request never joins a read that is already running, since that
 * may predate an import. All requests that arrive meanwhile share one follow-up read.
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
