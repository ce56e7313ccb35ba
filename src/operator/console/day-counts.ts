import { setTimeout as sleep } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import type { Limits } from '../../limits.ts'
import { LONGEST_ORDER_MS, type OrderCounts } from '../monitoring/order-counts.ts'

const HOURS = 24
/** Time for which the counts of a day are cached once all orders of the day are final. */
const OLDER_COUNTS_MS = 6 * 60 * 60 * 1000

type Stage = {
  countByHour: (period: { since: Date; hours: number }, now: Date) => Promise<OrderCounts[]>
  log: Pick<Logger, 'warn'>
  now: () => Date
  /** Reads a monotonic clock in milliseconds. */
  elapsedMs?: () => number
  limits: Limits['operatorPage']
}

/**
 * Counts orders by hour when an operator opens the dashboard, and caches the counts. Counts days in the background,
 * newest first, one statement at a time, because the database needs seconds to count many orders.
 */
export function createDayCounts({ countByHour, log, now, elapsedMs = () => performance.now(), limits }: Stage) {
  // The cache returns stale counts until new counts are ready.
  const remembered = new LRUCache<number, OrderCounts[]>({
    max: 2 * limits.days,
    perf: { now: elapsedMs },
    ttlResolution: 0,
    allowStale: true,
    noDeleteOnStaleGet: true,
  })
  let counting: Promise<void> | undefined
  let failed = false

  async function countAll(days: readonly Date[]): Promise<void> {
    for (const since of days) {
      const moment = now()
      // Counts of recent days expire after half the refresh interval, so that each refresh shows new counts.
      const isRecent = moment.getTime() - since.getTime() < HOURS * 60 * 60_000 + LONGEST_ORDER_MS
      const ttl = isRecent ? limits.refreshSeconds * 500 : OLDER_COUNTS_MS
      remembered.set(since.getTime(), await countByHour({ since, hours: HOURS }, moment), { ttl })
    }
    failed = false
  }

  /**
   * Returns the orders by hour for each of `days` (IST), which must be sorted newest first. A day is undefined if its
   * orders are not counted within `waitMs`. `failed` is true if the last count failed; the next call counts again.
   */
  return async (days: readonly Date[]): Promise<{ counts: (OrderCounts[] | undefined)[]; failed: boolean }> => {
    const old = days.filter((day) => !remembered.has(day.getTime()))
    if (old.length > 0) {
      counting ??= countAll(old)
        .catch((error: Error) => {
          failed = true
          log.warn({ error: error.message }, 'Could not count orders for the operator dashboard')
        })
        .finally(() => {
          counting = undefined
        })
      await Promise.race([counting, sleep(limits.waitMs)])
    }
    return { counts: days.map((day) => remembered.get(day.getTime())), failed }
  }
}
