import { LRUCache } from 'lru-cache'
import type { Limits } from '../limits.ts'

/**
 * Returns `lookUp` with a short memory, because every request asks: one query per key and second, however many requests
 * come. A failed look-up is not remembered.
 */
export function rememberBriefly<T>(
  lookUp: (...key: string[]) => Promise<T>,
  { rememberedMs, remembered }: Limits['lookUps'],
): (...key: string[]) => Promise<T> {
  // In an object, since undefined would not be remembered.
  const cache = new LRUCache<string, { result: T }, string[]>({
    max: remembered,
    ttl: rememberedMs,
    // A look-up whose place is taken by others is still the result of who waits for it.
    ignoreFetchAbort: true,
    fetchMethod: async (_name, _stale, { context }) => ({ result: await lookUp(...context) }),
  })
  return async (...key) => {
    const name = key.join(' ')
    const known = cache.get(name) ?? (await cache.forceFetch(name, { context: key }))
    return known.result
  }
}
