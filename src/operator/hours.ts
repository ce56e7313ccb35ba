import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { OrderCounts } from '../books/day.ts'
import type { Limits } from '../limits.ts'

const HOUR_MS = 60 * 60_000

/** What was counted of an hour, and when, by performance.now(). */
type Counted = { counts: OrderCounts; at: number; usedForMs: number }

/**
 * Orders by hour, counted when somebody asks and then remembered. The counting goes on in the background, by one short statement
 * at a time, the newest hours first: 10,000,000 orders of 30 days took 14 s of statements on two busy cores, and no statement takes longer than its
 * hours do.
 */
export function createHourCounts({
  countByHour,
  log,
  now,
  limits,
}: {
  /** One for each hour from `since` on. */
  countByHour: (period: { since: Date; hours: number }, now: Date) => Promise<OrderCounts[]>
  log: Pick<Logger, 'warn'>
  now: () => Date
  limits: Limits['operatorPage']
}) {
  /** By the hour's first moment. */
  const remembered = new Map<number, Counted>()
  /** Hours to count, newest first. */
  let queue: number[] = []
  let counting: Promise<void> | undefined
  let hoursAtOnce = 1
  /** When the last statement failed, by performance.now(); undefined when it did not. */
  let failedAt: number | undefined
  let stopped = false

  const isOlder = (counted: Counted | undefined, times: number) =>
    counted === undefined || performance.now() - counted.at >= times * counted.usedForMs

  async function countQueue(): Promise<void> {
    try {
      while (queue.length > 0 && !stopped) {
        const began = performance.now()
        await countFirst(takeFirst())
        failedAt = undefined
        const tookMs = performance.now() - began
        if (tookMs < limits.statementMs / 2) hoursAtOnce *= 2
        if (tookMs > limits.statementMs) hoursAtOnce = Math.max(1, Math.floor(hoursAtOnce / 2))
        await sleep(Math.min(tookMs, limits.longestPauseMs), undefined, { ref: false })
      }
    } catch (error) {
      queue = []
      // Most likely so many were too many.
      hoursAtOnce = 1
      failedAt = performance.now()
      log.warn({ error: (error as Error).message }, 'orders were not counted for the operator’s page')
    }
  }

  /** The newest hours of the queue that follow one another. */
  function takeFirst(): { since: Date; hours: number } {
    const last = queue[0] ?? 0
    let hours = 1
    while (hours < hoursAtOnce && queue[hours] === last - hours * HOUR_MS) hours++
    queue = queue.slice(hours)
    return { since: new Date(last - (hours - 1) * HOUR_MS), hours }
  }

  async function countFirst(period: { since: Date; hours: number }): Promise<void> {
    const moment = now()
    const counted = await countByHour(period, moment)
    for (const [index, counts] of counted.entries()) {
      const hour = period.since.getTime() + index * HOUR_MS
      const isRecent = moment.getTime() - hour < limits.recentMs
      const usedForMs = isRecent ? limits.recentCountsMs : limits.olderCountsMs
      remembered.set(hour, { counts, at: performance.now(), usedForMs })
    }
  }

  return {
    /**
     * The orders of these hours, newest first, each named by its first moment; undefined in the place of those that are not
     * counted yet. Waits for them a moment. `failed` when counting failed, and goes on only after a pause.
     */
    async read(hours: readonly Date[]): Promise<{ counts: (OrderCounts | undefined)[]; failed: boolean }> {
      const wanted = hours.map((hour) => hour.getTime())
      const isWanted = new Set(wanted)
      for (const hour of remembered.keys()) if (!isWanted.has(hour)) remembered.delete(hour)
      queue = wanted.filter((hour) => isOlder(remembered.get(hour), 1))
      const pauses = failedAt !== undefined && performance.now() - failedAt < limits.failurePauseMs
      if (queue.length > 0 && !pauses) {
        counting ??= countQueue().finally(() => {
          counting = undefined
        })
        await Promise.race([counting, sleep(limits.waitMs)])
      }
      const counts = wanted.map((hour) => {
        const counted = remembered.get(hour)
        return isOlder(counted, limits.shownTimes) ? undefined : counted?.counts
      })
      return { counts, failed: failedAt !== undefined }
    },

    /** Waits for the statement that is under way. */
    async stop() {
      stopped = true
      await counting
    },
  }
}
