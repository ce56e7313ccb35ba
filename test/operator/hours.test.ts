import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { NO_ORDERS, type OrderCounts } from '../../src/books/day.ts'
import { LIMITS } from '../../src/limits.ts'
import { createHourCounts } from '../../src/operator/hours.ts'
import { until } from '../support/wait.ts'

const HOUR_MS = 60 * 60_000
const NOW = new Date('2026-04-01T12:00:00Z')
const HOURS = Array.from({ length: 100 }, (_, ago) => new Date(NOW.getTime() - ago * HOUR_MS))

/** Each hour's orders are the number of its place. */
function stage({ tookMs = 0, limits = {}, fails = () => false as boolean } = {}) {
  const statements: number[] = []
  let atOnce = 0
  let mostAtOnce = 0
  const warnings: unknown[] = []
  const hours = createHourCounts({
    countByHour: async ({ since, hours }): Promise<OrderCounts[]> => {
      statements.push(hours)
      mostAtOnce = Math.max(mostAtOnce, ++atOnce)
      await sleep(tookMs * hours)
      atOnce--
      if (fails()) throw new Error('away')
      const place = (NOW.getTime() - since.getTime()) / HOUR_MS
      return Array.from({ length: hours }, (_, hour) => ({ ...NO_ORDERS, orders: place - hour }))
    },
    log: { warn: (...line: unknown[]) => void warnings.push(line) } as never,
    now: () => NOW,
    limits: { ...LIMITS.operatorPage, ...limits },
  })
  const read = async () => (await hours.read(HOURS)).counts.map((counts) => counts?.orders)
  return { read, hours, statements, warnings, most: () => mostAtOnce }
}

const ALL = HOURS.map((_, place) => place)

describe('the orders by hour', () => {
  it('are there at once when they are few, by few statements', async () => {
    const { read, statements } = stage()
    expect(await read()).toEqual(ALL)
    expect(statements.reduce((sum, hours) => sum + hours, 0)).toBe(100)
    expect(statements.length).toBeLessThan(10)
  })

  it('are counted in the background when they are many: the newest first, and none of them keeps a reader waiting', async () => {
    const { read, hours, statements, most } = stage({ tookMs: 30, limits: { statementMs: 20, waitMs: 50 } })
    const first = await read()
    const known = first.indexOf(undefined)
    expect(known).toBeLessThan(10)
    expect(first).toEqual(ALL.map((place) => (place < known ? place : undefined)))
    await Promise.all([read(), read(), read()])
    expect((await read()).indexOf(undefined)).toBeGreaterThan(known)
    // One statement at a time, however many read, and no longer ones.
    expect([most(), Math.max(...statements)]).toEqual([1, 1])
    await hours.stop()
    const sent = statements.length
    await sleep(100)
    expect(statements).toHaveLength(sent)
  })

  it('are counted anew only when they are old: recent ones soon, older ones later, and nothing while nobody asks', async () => {
    const { read, statements } = stage({
      limits: { recentMs: 10 * HOUR_MS, recentCountsMs: 100, olderCountsMs: 60_000 },
    })
    await read()
    const sent = statements.length
    await read()
    expect(statements).toHaveLength(sent)
    await sleep(150)
    expect(statements).toHaveLength(sent)
    expect(await read()).toEqual(ALL)
    expect(statements.slice(sent).reduce((sum, hours) => sum + hours, 0)).toBe(10)
  })

  it('are shown while they are counted anew, but not when they are very old', async () => {
    let isAway = false
    const { read, warnings } = stage({
      limits: { recentMs: 10 * HOUR_MS, recentCountsMs: 50, olderCountsMs: 60_000, failurePauseMs: 0 },
      fails: () => isAway,
    })
    await read()
    isAway = true
    await sleep(60)
    expect(await read()).toEqual(ALL)
    expect(warnings).toHaveLength(1)
    await sleep(500)
    expect(await read()).toEqual(ALL.map((place) => (place < 10 ? undefined : place)))
    isAway = false
    expect(await read()).toEqual(ALL)
  })

  it('are asked for one by one after a failure, so that what is too much at once is counted in the end', async () => {
    const { read, statements } = stage({ limits: { failurePauseMs: 0 }, fails: () => (statements.at(-1) ?? 0) > 8 })
    await until('all are counted', async () => !(await read()).includes(undefined))
    expect(statements.filter((hours) => hours > 8).length).toBeLessThan(10)
  })

  it('are not asked for again until half a minute after a failure, and it is said', async () => {
    let isAway = true
    const { hours, statements } = stage({ limits: { failurePauseMs: 200 }, fails: () => isAway })
    for (let i = 0; i < 3; i++) expect(await hours.read(HOURS)).toMatchObject({ failed: true })
    expect(statements).toHaveLength(1)
    isAway = false
    await sleep(220)
    expect(await hours.read(HOURS)).toMatchObject({ failed: false, counts: HOURS.map(() => expect.anything()) })
    expect(LIMITS.operatorPage.failurePauseMs).toBe(30_000)
  })
})
