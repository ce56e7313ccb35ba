import fc from 'fast-check'
import { beforeAll, expect, it } from 'vitest'
import { runs } from '../support/generated.ts'
import { startCashfree, startSetu } from './histories/banks.ts'
import { expected, type History, history, inWords } from './histories/history.ts'
import { createPlayer, type End } from './histories/play.ts'

/** That are made: the shares below are of these. */
const HISTORIES = 10_000
/** Played by `npm run test:slow`, others in each run; all 10,000 take 4 minutes. */
const PLAYED = 1_000
/** Orders that are made at one moment, and share the clock: fewer than Cashfree may be queried about in a minute. */
const OF_BATCH = 150

const LIMITS = {
  outbound: { acquirerMs: 30_000 },
  acquirers: { requestMs: 30_000 },
  // The histories say when something is due.
  webhooks: { lookIntervalMs: 3_600_000 },
}

let players: Awaited<ReturnType<typeof createPlayer>>[]
beforeAll(async () => {
  const banks = [await startSetu({ limits: LIMITS }), await startCashfree({ limits: LIMITS })]
  players = await Promise.all(banks.map(createPlayer))
})

type Ends = { setu: End; cashfree: End }

/** What has become of each history. */
async function play(histories: History[]): Promise<Ends[]> {
  const [setu = [], cashfree = []] = await Promise.all(players.map((player) => player.play(histories)))
  return histories.map((_, index) => ({ setu: setu[index] as End, cashfree: cashfree[index] as End }))
}

function expectSame(history: History, { setu, cashfree }: Ends): void {
  expect(cashfree).toEqual(setu)
  // Both could be wrong.
  const { isPaid, isLate, isDouble } = expected(history)
  const isKept = (kind: string) => setu.stored.some((line) => line.startsWith(`payment_exceptions: ${kind}`))
  expect([setu.told.startsWith('SUCCESS'), isKept('late payment'), isKept('double payment')]).toEqual([
    isPaid,
    isLate,
    isDouble,
  ])
  expect(setu.answers, 'a notification that could not be read').not.toContain('400')
}

it('every history of an order ends in the same data at Setu and Cashfree', { timeout: 1_800_000 }, async () => {
  const seed = Math.floor(Math.random() * 2 ** 31)
  const histories = fc.sample(history, { seed, numRuns: HISTORIES })
  const known = histories.map(expected)
  for (const kind of ['isClosed', 'isLate', 'isDouble'] as const) {
    expect(known.filter((one) => one[kind]).length, kind).toBeGreaterThan(HISTORIES / 3)
  }

  const played = histories.slice(0, runs(PLAYED, 40))
  for (let from = 0; from < played.length; from += OF_BATCH) {
    const batch = played.slice(from, from + OF_BATCH)
    const ends = await play(batch)
    for (const [index, history] of batch.entries()) {
      try {
        expectSame(history, ends[index] as Ends)
      } catch (difference) {
        await shrink(seed, from + index)
        throw new Error(`It differs only among other orders:${inWords(history)}`, { cause: difference })
      }
    }
  }
})

/** Plays the history of this number alone, and shorter ones. Fails with the shortest that ends differently. */
async function shrink(seed: number, number: number): Promise<void> {
  const alone = fc.asyncProperty(history, async (one) => {
    const [ends] = await play([one])
    expectSame(one, ends as Ends)
  })
  await fc.assert(alone, { seed, path: String(number), numRuns: 1 })
}
