import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { LIMITS } from '../../src/limits.ts'
import { createDayCounts } from '../../src/operator/console/day-counts.ts'
import { NO_ORDERS } from '../../src/operator/monitoring/order-counts.ts'

const DAY_MS = 24 * 60 * 60_000
const NOW = new Date('2026-04-01T12:00:00Z')
const DAYS = Array.from({ length: 30 }, (_, ago) => new Date(NOW.getTime() - 12 * 60 * 60_000 - ago * DAY_MS))
const ALL = DAYS.map((_, ago) => ago)

/**
 * Counts for a stand-in database: a day N days ago has N short orders in its first hour, and an open long order for
 * each entry N of `openLong`.
 */
function stage({ tookMs = 0, limits = {}, fails = () => false as boolean, openLong = [] as number[] } = {}) {
  const requested: number[] = []
  const requestedLong: number[] = []
  let concurrency = 0
  let elapsed = 1
  const readDays = createDayCounts({
    countByHour: async (lifetime, { since, hours }) => {
      const ago = Math.floor((NOW.getTime() - since.getTime()) / DAY_MS)
      const isLong = lifetime === 'long'
      ;(isLong ? requestedLong : requested).push(ago)
      expect(++concurrency).toBe(1)
      await sleep(tookMs)
      concurrency--
      if (fails()) throw new Error('away')
      const ofFirstHour = isLong ? openLong.filter((day) => day === ago).length : ago
      const waiting = isLong ? ofFirstHour : 0
      return Array.from({ length: hours }, (_, hour) =>
        hour === 0 ? { ...NO_ORDERS, orders: ofFirstHour, waiting } : NO_ORDERS,
      )
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
  return { read, requested, requestedLong, advance }
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

  it('the operator dashboard counts only the long orders of an older day again while one of them is open', async () => {
    const openLong = [9, 9]
    const { read, requested, requestedLong, advance } = stage({ limits: { refreshSeconds: 2 }, openLong })
    expect((await read()).days).toEqual(ALL.map((ago) => (ago === 9 ? 11 : ago)))
    expect(requestedLong).toEqual(ALL)
    openLong.pop()
    advance(1_001)
    expect((await read()).days[9]).toBe(10)
    openLong.pop()
    advance(1_001)
    expect((await read()).days[9]).toBe(9)
    expect(requestedLong.slice(ALL.length)).toEqual([0, 1, 9, 0, 1, 9])
    advance(1_001)
    await read()
    expect(requestedLong.slice(-2)).toEqual([0, 1])
    expect(requested.slice(ALL.length)).toEqual([0, 1, 0, 1, 0, 1])
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
