import { setTimeout as sleep } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import type { OrderCounts } from '../books/day.ts'
import type { Limits } from '../limits.ts'

const HOURS = 24

/**
 * Orders by hour, counted when somebody asks and then remembered: day by day in the background, the newest first, one statement
 * at a time. 10,000,000 orders of 30 days took 14 s of statements on two busy cores.
 */
export function createDayCounts({
  countByHour,
  log,
  now,
  limits: { days, waitMs, recentMs, recentCountsMs, olderCountsMs },
}: {
  /** One for each hour from `since` on. */
  countByHour: (period: { since: Date; hours: number }, now: Date) => Promise<OrderCounts[]>
  log: Pick<Logger, 'warn'>
  now: () => Date
  limits: Limits['operatorPage']
}) {
  // Old counts are shown while they are counted anew.
  const remembered = new LRUCache<number, OrderCounts[]>({ max: 2 * days, allowStale: true, noDeleteOnStaleGet: true })
  let counting: Promise<void> | undefined
  let failed = false
  let stopped = false

  async function countAll(wanted: readonly Date[]): Promise<void> {
    try {
      for (const since of wanted) {
        if (stopped) return
        const moment = now()
        const ttl = moment.getTime() - since.getTime() < recentMs ? recentCountsMs : olderCountsMs
        remembered.set(since.getTime(), await countByHour({ since, hours: HOURS }, moment), { ttl })
      }
      failed = false
    } catch (error) {
      failed = true
      log.warn({ error: (error as Error).message }, 'orders were not counted for the operator’s page')
    }
  }

  return {
    /**
     * The orders of these Indian days, newest first, by hour; undefined in the place of those that are not counted yet. Waits
     * for them a moment. `failed` when counting failed, which is tried again at the next reading.
     */
    async read(wanted: readonly Date[]): Promise<{ counts: (OrderCounts[] | undefined)[]; failed: boolean }> {
      const old = wanted.filter((day) => !remembered.has(day.getTime()))
      if (old.length > 0) {
        counting ??= countAll(old).finally(() => {
          counting = undefined
        })
        await Promise.race([counting, sleep(waitMs)])
      }
      return { counts: wanted.map((day) => remembered.get(day.getTime())), failed }
    },

    /** Waits for the statement that is under way. */
    async stop() {
      stopped = true
      await counting
    },
  }
}
