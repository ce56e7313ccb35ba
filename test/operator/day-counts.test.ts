import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { NO_ORDERS } from '../../src/books/day.ts'
import { LIMITS } from '../../src/limits.ts'
import { createDayCounts } from '../../src/operator/day-counts.ts'

const DAY_MS = 24 * 60 * 60_000
const NOW = new Date('2026-04-01T12:00:00Z')
const DAYS = Array.from({ length: 30 }, (_, ago) => new Date(NOW.getTime() - 12 * 60 * 60_000 - ago * DAY_MS))

/** Each day has one order in its first hour for each day that it is ago. */
function stage({ tookMs = 0, limits = {}, fails = () => false as boolean } = {}) {
  const asked: number[] = []
  let atOnce = 0
  let most = 0
  const warnings: unknown[] = []
  const days = createDayCounts({
    countByHour: async ({ since, hours }) => {
      const ago = Math.floor((NOW.getTime() - since.getTime()) / DAY_MS)
      asked.push(ago)
      most = Math.max(most, ++atOnce)
      await sleep(tookMs)
      atOnce--
      if (fails()) throw new Error('away')
      return Array.from({ length: hours }, (_, hour) => ({ ...NO_ORDERS, orders: hour === 0 ? ago : 0 }))
    },
    log: { warn: (...line: unknown[]) => void warnings.push(line) } as never,
    now: () => NOW,
    limits: { ...LIMITS.operatorPage, ...limits },
  })
  const read = async () => (await days.read(DAYS)).counts.map((hours) => hours?.[0]?.orders)
  return { read, days, asked, warnings, most: () => most }
}

const ALL = DAYS.map((_, ago) => ago)

describe('the orders of the last days', () => {
  it('are there at once when they are few, a statement for each day', async () => {
    const { read, asked } = stage()
    expect(await read()).toEqual(ALL)
    expect(asked).toEqual(ALL)
  })

  it('are counted in the background when they are many: the newest first, one statement at a time', async () => {
    const { read, days, asked, most } = stage({ tookMs: 30, limits: { waitMs: 50 } })
    const first = await read()
    const known = first.indexOf(undefined)
    expect(known).toBeLessThan(10)
    expect(first).toEqual(ALL.map((ago) => (ago < known ? ago : undefined)))
    await Promise.all([read(), read(), read()])
    expect((await read()).indexOf(undefined)).toBeGreaterThan(known)
    expect(most()).toBe(1)
    await days.stop()
    const sent = asked.length
    await sleep(100)
    expect(asked).toHaveLength(sent)
  })

  it('are counted anew only when they are old: recent ones soon, older ones later, and nothing while nobody asks', async () => {
    const { read, asked } = stage({ limits: { recentMs: 2 * DAY_MS, recentCountsMs: 100, olderCountsMs: 60_000 } })
    await read()
    await read()
    expect(asked).toEqual(ALL)
    await sleep(150)
    expect(asked).toEqual(ALL)
    expect(await read()).toEqual(ALL)
    expect(asked.slice(ALL.length)).toEqual([0, 1])
  })

  it('are shown while they are counted anew, also when that fails, which is said', async () => {
    let isAway = false
    const { read, days, warnings } = stage({ limits: { recentCountsMs: 20 }, fails: () => isAway })
    await read()
    isAway = true
    await sleep(50)
    expect(await read()).toEqual(ALL)
    expect(await days.read(DAYS)).toMatchObject({ failed: true })
    expect(warnings).toHaveLength(2)
    isAway = false
    expect(await days.read(DAYS)).toMatchObject({ failed: false })
  })
})
