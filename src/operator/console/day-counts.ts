import { setTimeout as sleep } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import type { Limits } from '../../limits.ts'
import {
  add,
  type Lifetime,
  LONGEST_ORDER_MS,
  NO_ORDERS,
  type OrderCounts,
  type Period,
} from '../monitoring/order-counts.ts'

const HOURS = 24
/** Time for which the counts of a day are cached once all orders of the day are final. */
const OLDER_COUNTS_MS = 6 * 60 * 60 * 1000

const LIFETIMES: readonly Lifetime[] = ['short', 'long']

const keyOf = (lifetime: Lifetime, day: Date) => `${lifetime} ${day.getTime()}`

type Stage = {
  countByHour: (lifetime: Lifetime, period: Period, now: Date) => Promise<OrderCounts[]>
  log: Pick<Logger, 'warn'>
  now: () => Date
  /** Reads a monotonic clock in milliseconds. */
  elapsedMs?: () => number
  limits: Limits['operatorPage']
}

/**
 * Counts orders by hour when an operator opens the dashboard, and caches the counts. Counts days in the background,
 * newest first, one statement at a time, because the database needs seconds to count many orders. Long orders are
 * counted apart, so that a day with an open long order is not counted as a whole again.
 */
export function createDayCounts({ countByHour, log, now, elapsedMs = () => performance.now(), limits }: Stage) {
  // The cache returns stale counts until new counts are ready.
  const remembered = new LRUCache<string, OrderCounts[]>({
    max: 2 * LIFETIMES.length * limits.days,
    perf: { now: elapsedMs },
    ttlResolution: 0,
    allowStale: true,
    noDeleteOnStaleGet: true,
  })
  let counting: Promise<void> | undefined
  let failed = false

  async function countAll(due: readonly { lifetime: Lifetime; since: Date }[]): Promise<void> {
    for (const { lifetime, since } of due) {
      const moment = now()
      const counts = await countByHour(lifetime, { since, hours: HOURS }, moment)
      const isRecent = moment.getTime() - since.getTime() < HOURS * 60 * 60_000 + LONGEST_ORDER_MS
      const isFinal = !isRecent && (lifetime === 'short' || counts.every(({ waiting }) => waiting === 0))
      // Counts that may change expire after half the refresh interval, so that each refresh shows new counts.
      remembered.set(keyOf(lifetime, since), counts, { ttl: isFinal ? OLDER_COUNTS_MS : limits.refreshSeconds * 500 })
    }
    failed = false
  }

  /** Returns the counts of all orders of a day by hour; undefined if a count is missing. */
  function countsOf(day: Date): OrderCounts[] | undefined {
    const [short, long] = LIFETIMES.map((lifetime) => remembered.get(keyOf(lifetime, day)))
    return long && short?.map((counts, hour) => add(counts, long[hour] ?? NO_ORDERS))
  }

  /**
   * Returns the orders by hour for each of `days` (IST), which must be sorted newest first. A day is undefined if its
   * orders are not counted within `waitMs`. `failed` is true if the last count failed; the next call counts again.
   */
  return async (days: readonly Date[]): Promise<{ counts: (OrderCounts[] | undefined)[]; failed: boolean }> => {
    const due = days
      .flatMap((since) => LIFETIMES.map((lifetime) => ({ lifetime, since })))
      .filter(({ lifetime, since }) => !remembered.has(keyOf(lifetime, since)))
    if (due.length > 0) {
      counting ??= countAll(due)
        .catch((error: Error) => {
          failed = true
          log.warn({ error: error.message }, 'Could not count orders for the operator dashboard')
        })
        .finally(() => {
          counting = undefined
        })
      await Promise.race([counting, sleep(limits.waitMs)])
    }
    return { counts: days.map(countsOf), failed }
  }
}
