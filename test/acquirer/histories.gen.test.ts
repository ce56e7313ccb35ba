import fc from 'fast-check'
import { expect, it } from 'vitest'
import { isGenerated, runs } from '../support/generated.ts'
import { PATIENT_LIMITS } from '../support/service-with-bank.ts'
import { startCashfree, startPhonepe, startRazorpay, startSetu } from './histories/banks.ts'
import { asChecked, expected, type History, history, inWords, statusChecksPending } from './histories/history.ts'
import { createPlayer, type End } from './histories/play.ts'

/** Number of generated histories; the shares checked below refer to them. */
const HISTORIES = runs(10_000, 1_000)
/** Number of histories that `npm run test:generated` plays, different ones in each run; all 10,000 take 7 minutes. */
const PLAYED = 1_000
/**
 * Orders created at the same time that share the clock: fewer than the status checks that Cashfree allows per minute.
 */
const OF_BATCH = 150

const starters = [startSetu, startCashfree, startRazorpay, startPhonepe]
const players = await Promise.all(starters.map(async (start) => createPlayer(await start({ limits: PATIENT_LIMITS }))))

type Ends = { setu: End; cashfree: End; razorpay: End; phonepe: End }

/** Plays the histories at all four acquirers and returns how each ended. */
async function play(histories: History[]): Promise<Ends[]> {
  const played = await Promise.all(players.map((player) => player.play(histories)))
  return histories.map((_, index) => {
    const [setu, cashfree, razorpay, phonepe] = played.map((ends) => ends[index]) as [End, End, End, End]
    return { setu, cashfree, razorpay, phonepe }
  })
}

function expectSame(history: History, { setu, cashfree, razorpay, phonepe }: Ends): void {
  expect(cashfree).toEqual(setu)
  expect(razorpay).toEqual(setu)
  // The three could agree on a wrong result, so it is also compared with the expected one.
  expectEnd(setu, history)
  // PhonePe's notifications are not proof: its status is checked at other times, and only the bank's own records are
  // known.
  expectEnd(phonepe, asChecked(history, phonepe.checked))
  const paidAt = phonepe.reported.startsWith('SUCCESS') ? knownSince(history, phonepe) : Number.POSITIVE_INFINITY
  for (const at of statusChecksPending(history, phonepe.checked)) if (at < paidAt) expect(phonepe.checked).toContain(at)
}

function expectEnd({ reported, stored, responses }: End, history: History): void {
  const { isPaid, isLate, isDuplicate } = expected(history)
  const isStored = (kind: string) => stored.some((line) => line.startsWith(`payment_exceptions: ${kind}`))
  expect([reported.startsWith('SUCCESS'), isStored('late payment'), isStored('double payment')]).toEqual([
    isPaid,
    isLate,
    isDuplicate,
  ])
  expect(responses, 'a notification was unreadable').not.toContain('400')
}

/** Returns the time from which a PhonePe order is known to be paid, after which no status check follows. */
function knownSince({ steps }: History, { checked }: End): number {
  const moments = [...new Set([...steps.map(({ at }) => at), ...checked])].sort((a, b) => a - b)
  const isPaidAt = (until: number) => {
    const [past, checkedBefore] = [steps.filter(({ at }) => at <= until), checked.filter((at) => at <= until)]
    return expected(asChecked({ steps: past }, checkedBefore)).isPaid
  }
  return moments.find(isPaidAt) ?? Number.POSITIVE_INFINITY
}

it('the service stores the same data for a payment history at Setu, Cashfree and Razorpay, and at PhonePe stores the results of status checks', {
  timeout: 1_800_000,
}, async () => {
  const seed = isGenerated() ? Math.floor(Math.random() * 2 ** 31) : 1
  const histories = fc.sample(history, { seed, numRuns: HISTORIES })
  const known = histories.map(expected)
  for (const kind of ['isClosed', 'isLate', 'isDuplicate'] as const) {
    expect(known.filter((one) => one[kind]).length, kind).toBeGreaterThan(HISTORIES / 3)
  }

  const played = histories.slice(0, runs(PLAYED, 16))
  for (let from = 0; from < played.length; from += OF_BATCH) {
    const batch = played.slice(from, from + OF_BATCH)
    const ends = await play(batch)
    for (const [index, history] of batch.entries()) {
      try {
        expectSame(history, ends[index] as Ends)
      } catch (difference) {
        await shrink(seed, from + index)
        throw new Error(`The result differs only in the presence of other orders:${inWords(history)}`, {
          cause: difference,
        })
      }
    }
  }
})

/** Plays this one history alone, then shorter ones. Fails with the shortest that gives a different result. */
async function shrink(seed: number, number: number): Promise<void> {
  const alone = fc.asyncProperty(history, async (one) => {
    const [ends] = await play([one])
    expectSame(one, ends as Ends)
  })
  await fc.assert(alone, { seed, path: String(number), numRuns: 1 })
}
