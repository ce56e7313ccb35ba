import { setTimeout as sleep } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import type { Limits } from '../limits.ts'
import { LONGEST_ORDER_MS, type OrderCounts } from '../reconciliation/day.ts'

const HOURS = 24
/** Counts of days whose orders have all ended are used for this time, those of recent days for half a refresh. */
const OLDER_COUNTS_MS = 6 * 60 * 60 * 1000

type Stage = {
  countByHour: (period: { since: Date; hours: number }, now: Date) => Promise<OrderCounts[]>
  log: Pick<Logger, 'warn'>
  now: () => Date
  limits: Limits['operatorPage']
}

/**
 * Counts orders by hour when somebody opens the page, and caches the counts. Days are counted in the background,
 * newest first, one statement at a time: many orders take seconds of the database.
 */
export function createDayCounts({ countByHour, log, now, limits }: Stage) {
  // Stale counts are shown while new ones are made.
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
      // Half a refresh, so that each refresh of the page shows new counts.
      const isRecent = moment.getTime() - since.getTime() < HOURS * 60 * 60_000 + LONGEST_ORDER_MS
      const ttl = isRecent ? limits.refreshSeconds * 500 : OLDER_COUNTS_MS
      remembered.set(since.getTime(), await countByHour({ since, hours: HOURS }, moment), { ttl })
    }
    failed = false
  }

  /**
   * Returns the orders by hour of Indian days, which must come newest first. A day is undefined that is not counted
   * after `waitMs`. `failed` means that counting failed; the next call counts again.
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
