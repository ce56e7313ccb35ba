import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { type Owner, startClock, type Work } from '../../src/due/clock.ts'
import { until } from '../support/wait.ts'

const LIMITS = { lookIntervalMs: 10, stopMs: 50 }
const AT_ONCE = { ofOwner: 4, ofGroup: 8 }

/** A clock over one kind of work, of which each owner has always more, with the looks that it made and its warnings. */
function startOver(owners: Owner[], find = async () => owners) {
  const warnings: string[] = []
  const looks = { count: 0 }
  const counted = async () => {
    looks.count++
    return find()
  }
  const log = { warn: (_facts: object, message: string) => void warnings.push(message) } as never
  const { stop } = startClock([{ name: 'work', find: counted, atOnce: AT_ONCE }], { log, limits: LIMITS })
  return { warnings, looks, stop }
}

/** An owner with endless work, and how much of it is and was under way. */
function ownerOf(work: Work, { key = 'owner', group = 'group' } = {}) {
  const seen = { underWay: 0, most: 0, begun: 0 }
  const counted: Work = async (signal) => {
    seen.begun++
    seen.most = Math.max(seen.most, ++seen.underWay)
    try {
      return await work(signal)
    } finally {
      seen.underWay--
    }
  }
  const owner: Owner = { key, group, take: async (most) => Array.from({ length: most }, () => counted) }
  return { seen, owner }
}

const hangs: Work = (signal) => new Promise((resolve) => signal.addEventListener('abort', () => resolve(false)))

it('the clock begins the next piece when one ends, and never has more under way than an owner may have', async () => {
  const { owner, seen } = ownerOf(() => sleep(2, true))
  const { stop, looks } = startOver([owner])
  await until('many were done', () => seen.begun > 100)
  expect(seen.begun).toBeGreaterThan(AT_ONCE.ofOwner * looks.count)
  await stop()
  expect(seen.most).toBe(AT_ONCE.ofOwner)
})

it('the clock keeps places for another group when one group is full', async () => {
  const slow = ['a', 'b', 'c'].map((key) => ownerOf(hangs, { key, group: 'slow' }))
  const quick = ownerOf(() => sleep(1, true), { key: 'd', group: 'quick' })
  const { stop } = startOver([...slow, quick].map(({ owner }) => owner))
  await until('the quick one is served', () => quick.seen.begun > 10)
  expect(slow.map(({ seen }) => seen.underWay)).toEqual([4, 4, 0])
  await stop()
})

it('the clock begins no more pieces of an owner once one is not stored as done', async () => {
  const { owner, seen } = ownerOf(async () => {
    throw new Error('the database is away')
  })
  let looked = false
  const { stop, looks, warnings } = startOver([], async () => {
    if (looked) return []
    looked = true
    return [owner]
  })
  await until('it has looked often', () => looks.count > 10)
  await stop()
  expect(seen.begun).toBe(AT_ONCE.ofOwner)
  expect(new Set(warnings)).toEqual(new Set(['what is due was not done, or not stored as done']))
})

it('the clock begins nothing new while nothing can be taken, and goes on looking', async () => {
  const { owner, seen } = ownerOf(hangs)
  let takes = 0
  const take: Owner['take'] = async (most) => {
    if (takes++ > 0) throw new Error('the database is away')
    return owner.take(Math.min(most, 2))
  }
  const { stop, looks } = startOver([{ ...owner, take }])
  await until('it has looked often', () => looks.count > 10)
  expect([seen.underWay, takes > 5]).toEqual([2, true])
  await stop()
})

it('the clock looks for due work again after a look that failed', async () => {
  const { stop, looks, warnings } = startOver([], async () => {
    throw new Error('the database is away')
  })
  await until('it has looked again', () => looks.count > 2)
  await stop()
  expect(warnings).toContain('what is due was not looked up')
})

it('the clock does one kind of work while the look of another kind hangs', async () => {
  const { owner, seen } = ownerOf(() => sleep(1, true))
  const log = { warn: () => undefined }
  let isOver: (owners: Owner[]) => void = () => undefined
  const endless = () => new Promise<Owner[]>((resolve) => (isOver = resolve))
  const kinds = [endless, async () => [owner]].map((find) => ({ name: 'work', find, atOnce: AT_ONCE }))
  const { stop } = startClock(kinds, { log, limits: LIMITS })
  await until('the other one is done', () => seen.begun > 0)
  const stopping = stop()
  isOver([])
  await stopping
})

it('the clock, when stopped, waits a while for what is under way, and begins nothing more', async () => {
  const long = ownerOf(hangs, { key: 'long' })
  const short = ownerOf(() => sleep(20, true), { key: 'short' })
  const { stop } = startOver([long.owner, short.owner])
  await until('both are under way', () => long.seen.underWay + short.seen.underWay === 8)
  await stop()
  const begun = short.seen.begun
  await sleep(50)
  expect([long.seen.underWay, short.seen.underWay, short.seen.begun]).toEqual([0, 0, begun])
})
