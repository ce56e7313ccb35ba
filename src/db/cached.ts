import { LRUCache } from 'lru-cache'
import type { Limits } from '../limits.ts'

/**
 * Returns `lookUp` with a cache of a second, because every request asks: one query per key and second, however many requests
 * come. A failed look-up is not cached.
 */
export function cached<T>(
  lookUp: (...key: string[]) => Promise<T>,
  { cachedMs, cachedKeys }: Limits['lookUps'],
): (...key: string[]) => Promise<T> {
  // Results are wrapped in an object, since LRUCache would not cache undefined.
  const cache = new LRUCache<string, { result: T }, string[]>({
    max: cachedKeys,
    ttl: cachedMs,
    // A look-up that other keys push out of the cache still returns its result to those who wait for it.
    ignoreFetchAbort: true,
    fetchMethod: async (_name, _stale, { context }) => ({ result: await lookUp(...context) }),
  })
  return async (...key) => {
    const name = key.join(' ')
    const known = cache.get(name) ?? (await cache.forceFetch(name, { context: key }))
    return known.result
  }
}
