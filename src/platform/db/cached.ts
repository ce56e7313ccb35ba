import { LRUCache } from 'lru-cache'
import type { Limits } from '../../limits.ts'

/**
 * Returns `lookUp` with a cache: one query per key within `cachedMs`, however many requests arrive. Errors are not
 * cached. `elapsedMs` is a monotonic clock.
 */
export function cached<T>(
  lookUp: (...key: string[]) => Promise<T>,
  { cachedMs, cachedKeys }: Limits['lookUps'],
  elapsedMs = () => performance.now(),
): (...key: string[]) => Promise<T> {
  // Results are wrapped in an object, because LRUCache does not cache undefined.
  const cache = new LRUCache<string, { result: T }, string[]>({
    max: cachedKeys,
    ttl: cachedMs,
    perf: { now: elapsedMs },
    // With 0, the cache reads its clock at each look-up. By default, the cache sets a timer for each millisecond in
    // which it has read the clock.
    ttlResolution: 0,
    // A look-up whose key is evicted before its result arrives still returns the result to waiting callers.
    ignoreFetchAbort: true,
    fetchMethod: async (_name, _stale, { context }) => ({ result: await lookUp(...context) }),
  })
  return async (...key) => {
    const name = key.join(' ')
    const known = cache.get(name) ?? (await cache.forceFetch(name, { context: key }))
    return known.result
  }
}
