import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { LIMITS } from '../../src/limits.ts'
import { createDayCounts } from '../../src/operator/console/day-counts.ts'
import { NO_ORDERS } from '../../src/operator/monitoring/order-counts.ts'

const DAY_MS = 24 * 60 * 60_000
const NOW = new Date('2026-04-01T12:00:00Z')
const DAYS = Array.from({ length: 30 }, (_, ago) => new Date(NOW.getTime() - 12 * 60 * 60_000 - ago * DAY_MS))
const ALL = DAYS.map((_, ago) => ago)

/** Counts for a stand-in database: a day N days ago has N orders in its first hour. */
function stage({ tookMs = 0, limits = {}, fails = () => false as boolean } = {}) {
  const requested: number[] = []
  let concurrency = 0
  let elapsed = 1
  const readDays = createDayCounts({
    countByHour: async ({ since, hours }) => {
      const ago = Math.floor((NOW.getTime() - since.getTime()) / DAY_MS)
      requested.push(ago)
      expect(++concurrency).toBe(1)
      await sleep(tookMs)
      concurrency--
      if (fails()) throw new Error('away')
      return Array.from({ length: hours }, (_, hour) => ({ ...NO_ORDERS, orders: hour === 0 ? ago : 0 }))
    },
    log: { warn: () => undefined } as never,
    now: () => NOW,
    elapsedMs: () => elapsed,
    // Long enough for a busy machine.
    limits: { ...LIMITS.operatorPage, waitMs: 30_000, ...limits },
  })
  const read = async () => {
    const { counts, failed } = await readDays(DAYS)
    return { days: counts.map((hours) => hours?.[0]?.orders), failed }
  }
  const advance = (ms: number) => {
    elapsed += ms
  }
  return { read, requested, advance }
}

describe('daily order counts of the operator dashboard', () => {
  it('the operator dashboard counts many orders in the background, newest day first, one statement at a time', async () => {
    const { read } = stage({ tookMs: 30, limits: { waitMs: 50 } })
    const { days: first } = await read()
    const known = first.indexOf(undefined)
    expect(known).toBeLessThan(10)
    expect(first).toEqual(ALL.map((ago) => (ago < known ? ago : undefined)))
    await Promise.all([read(), read(), read()])
    expect((await read()).days.indexOf(undefined)).toBeGreaterThan(known)
  })

  it('the operator dashboard recounts days only when a reader loads the page, and recounts recent days more often', async () => {
    const { read, requested, advance } = stage({ limits: { refreshSeconds: 2 } })
    expect((await read()).days).toEqual(ALL)
    await read()
    expect(requested).toEqual(ALL)
    advance(1_001)
    expect(requested).toEqual(ALL)
    expect((await read()).days).toEqual(ALL)
    // The day before yesterday began 60 hours ago, so all its orders are final.
    expect(requested.slice(ALL.length)).toEqual([0, 1])
  })

  it('the operator dashboard returns earlier counts during a recount or after a failed recount', async () => {
    let isAway = false
    const { read, advance } = stage({ limits: { refreshSeconds: 2 }, fails: () => isAway })
    await read()
    isAway = true
    advance(1_001)
    expect(await read()).toEqual({ days: ALL, failed: true })
    isAway = false
    expect(await read()).toEqual({ days: ALL, failed: false })
  })
})
