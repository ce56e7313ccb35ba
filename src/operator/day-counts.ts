import { setTimeout as sleep } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import { LONGEST_ORDER_MS, type OrderCounts } from '../books/day.ts'
import type { Limits } from '../limits.ts'

const HOURS = 24
/** How long the counts of days are used on which every order has ended; those of recent days half a refresh. */
const OLDER_COUNTS_MS = 6 * 60 * 60 * 1000

type Stage = {
  /** Returns the counts of each hour from `since` on. */
  countByHour: (period: { since: Date; hours: number }, now: Date) => Promise<OrderCounts[]>
  log: Pick<Logger, 'warn'>
  now: () => Date
  limits: Limits['operatorPage']
}

/**
 * Counts orders by hour when somebody asks, and remembers the counts. Days are counted in the background, newest first,
 * one statement at a time: 10,000,000 orders of 30 days took 14 s of statements on two busy cores.
 */
export function createDayCounts({ countByHour, log, now, limits }: Stage) {
  // Old counts are shown while they are counted anew.
  const remembered = new LRUCache<number, OrderCounts[]>({
    max: 2 * limits.days,
    allowStale: true,
    noDeleteOnStaleGet: true,
  })
  let counting: Promise<void> | undefined
  let failed = false

  async function countAll(days: readonly Date[]): Promise<void> {
    for (const since of days) {
      const moment = now()
      // Counts of recent days are kept for half a refresh, so that each refresh of the page shows new ones.
      const isRecent = moment.getTime() - since.getTime() < HOURS * 60 * 60_000 + LONGEST_ORDER_MS
      const ttl = isRecent ? limits.refreshSeconds * 500 : OLDER_COUNTS_MS
      remembered.set(since.getTime(), await countByHour({ since, hours: HOURS }, moment), { ttl })
    }
    failed = false
  }

  /**
   * Returns the orders by hour of these Indian days, which must come newest first; undefined for each day that is not
   * counted yet after a wait of `waitMs`. `failed` is true when counting failed; the next call counts again.
   */
  return async (days: readonly Date[]): Promise<{ counts: (OrderCounts[] | undefined)[]; failed: boolean }> => {
    const old = days.filter((day) => !remembered.has(day.getTime()))
    if (old.length > 0) {
      counting ??= countAll(old)
        .catch((error: Error) => {
          failed = true
          log.warn({ error: error.message }, 'orders were not counted for the operator’s page')
        })
        .finally(() => {
          counting = undefined
        })
      await Promise.race([counting, sleep(limits.waitMs)])
    }
    return { counts: days.map((day) => remembered.get(day.getTime())), failed }
  }
}
