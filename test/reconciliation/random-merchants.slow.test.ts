import { expect, it, vi } from 'vitest'
import { balancesBefore } from '../../src/books/closing/brought-forward.ts'
import { readClosedBase } from '../../src/books/closing/closed-items.ts'
import { findOpen } from '../../src/books/closing/open-discrepancies.ts'
import { addDays, type Days } from '../../src/books/ledger/bank-days.ts'
import { type Discrepancy, inOrder } from '../../src/books/ledger/discrepancies.ts'
import { addSums, carriedBy, noSums } from '../../src/books/ledger/sums.ts'
import { readBook } from '../../src/books/reading/book.ts'
import { type MerchantSnapshot, readMerchant } from '../../src/books/reading/merchant.ts'
import { readSnapshot } from '../../src/books/reading/snapshot.ts'
import { openItems } from '../../src/books/reports/open-items.ts'
import type { Database } from '../../src/platform/db/pool.ts'
import { createTestDatabase } from '../support/database.ts'
import { readAll } from '../support/findings.ts'
import { runOps } from '../support/ops.ts'
import { daysIn, randomStory } from './random-story.ts'
import { istMoment } from './rows.ts'
import { storeStories } from './stored-story.ts'
import type { Story } from './story.ts'

const MERCHANTS = Number(process.env.RANDOM_MERCHANTS ?? 100)
const FIRST_SEED = Number(process.env.RANDOM_SEED ?? 1)
const PAID = { from: '2026-04-01', to: '2026-05-31' }
const MONTHS = [
  { from: '2026-04-01', to: '2026-04-30' },
  { from: '2026-05-01', to: '2026-05-31' },
  { from: '2026-06-01', to: '2026-06-30' },
]
const LAST_FILE = '2026-06-20'
/** Every payout is judged. */
const END = '2026-06-30'
const CLOSED_ON = new Map([
  ['2026-05-06', '2026-04'],
  ['2026-06-04', '2026-05'],
])

const owedBy = (found: readonly Discrepancy[]) => found.reduce((sum, { owed }) => sum + owed, 0)
const textOf = ({ id, owed, kind, day }: Discrepancy) => `${day} ${kind} ${id} ${owed}`

/** Returns the discrepancies of these days as text, and the balance after them. */
async function report(merchant: MerchantSnapshot, days: Days) {
  const { byDay, discrepancies } = await readBook(merchant, days)
  const total = noSums()
  for (const sums of byDay.values()) addSums(total, sums)
  const { sum: brought } = await balancesBefore(merchant, days.from)
  return { found: discrepancies.map(textOf).sort(), brought, carried: carriedBy(brought, total), discrepancies }
}

/** Checks the reports of one merchant that the database knows at `now`. */
async function check(db: Database, { mid }: Story, now: Date, offset: number): Promise<void> {
  await readSnapshot(db, now, async (snapshot) => {
    const merchant = await readMerchant(snapshot, mid)
    let carried = 0
    for (const days of MONTHS) {
      const month = await report(merchant, days)
      expect(month.brought, `${mid} ${days.from}: brought forward`).toBe(carried)
      carried = month.carried
      const weeks = daysIn(days).filter((_, index) => index % 7 === 0)
      const parts = weeks.map((from) => ({ from, to: [addDays(from, 6), days.to].sort()[0] as string }))
      const found: string[] = []
      for (const part of parts) found.push(...(await readBook(merchant, part)).discrepancies.map(textOf))
      expect(found.sort(), `${mid} ${days.from}: by week`).toEqual(month.found)
      for (const day of daysIn(days).filter((_, index) => (index + offset) % 5 === 0)) {
        const ofDay = (await readBook(merchant, { from: day, to: day })).discrepancies.map(textOf).sort()
        expect(ofDay, `${mid} ${day}`).toEqual(month.found.filter((one) => one.startsWith(day)))
      }
    }
    const whole: Discrepancy[] = []
    await findOpen(merchant, { closed: undefined, to: END }, (found) => whole.push(...found))
    expect(carried, `${mid}: carried forward`).toBe(owedBy(whole))
    const closed = await readClosedBase(snapshot, addDays(END, 1))
    const since: Discrepancy[] = []
    await findOpen(merchant, { closed, to: END }, (found) => since.push(...found))
    expect(since.sort(inOrder).map(textOf), `${mid}: since the close`).toEqual(whole.sort(inOrder).map(textOf))
    expect((await balancesBefore(merchant, addDays(END, 1), closed)).sum).toBe(carried)
  })
}

/** Checks that the open items at the end of a day add up to the balance that was known then. */
async function checkOpenItems(db: Database, { mid }: Story, asOf: string, now: Date): Promise<void> {
  const known = istMoment(asOf, '23:59:59')
  const items = await readAll(openItems(db, { asOf, known, now, mid }))
  const { sum: balance } = await readSnapshot(db, known, async (snapshot) =>
    balancesBefore(await readMerchant(snapshot, mid), addDays(asOf, 1)),
  )
  expect(
    items.reduce((sum, { amount }) => sum + amount, 0),
    `${mid}: open items as of ${asOf}`,
  ).toBe(balance)
}

it(`the ledger of ${MERCHANTS} random merchants adds up in every month, and days and weeks list what the month lists`, {
  timeout: 900_000,
}, async () => {
  const { db, url } = await createTestDatabase()
  const stories = Array.from({ length: MERCHANTS }, (_, index) => randomStory(FIRST_SEED + index, PAID, LAST_FILE))
  await storeStories(db, stories, { from: PAID.from, to: END }, async (day) => {
    const month = CLOSED_ON.get(day)
    if (month === undefined) return
    vi.useFakeTimers({ toFake: ['Date'], now: istMoment(day, '21:10:00') })
    const { code, stderr } = await runOps(url, ['reconcile', 'close', '--month', month])
    vi.useRealTimers()
    expect({ code, stderr }).toMatchObject({ code: 0 })
  })
  const now = istMoment(END, '23:00:00')
  for (const [index, story] of stories.entries()) {
    await check(db, story, now, index)
    const days = daysIn({ from: '2026-04-05', to: END })
    for (const asOf of days.filter((_, day) => (day + index) % 9 === 0)) await checkOpenItems(db, story, asOf, now)
  }
})
