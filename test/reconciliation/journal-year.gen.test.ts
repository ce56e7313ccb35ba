import { beforeAll, expect, it, vi } from 'vitest'
import { balancesBefore } from '../../src/books/closing/brought-forward.ts'
import { daysOfMonth } from '../../src/books/closing/closed-months.ts'
import { openDiscrepancies } from '../../src/books/closing/open-discrepancies.ts'
import { addDays } from '../../src/books/ledger/bank-days.ts'
import { groupBy } from '../../src/books/ledger/match-deductions.ts'
import { readMerchant } from '../../src/books/reading/merchant.ts'
import { isMerchantError, readSnapshot } from '../../src/books/reading/snapshot.ts'
import { type JournalLine, journalOf } from '../../src/books/reports/journal.ts'
import { enterResolution, WRITTEN_OFF_AS } from '../../src/books/reports/resolutions.ts'
import { statementOf } from '../../src/books/reports/statement.ts'
import type { Database } from '../../src/platform/db/pool.ts'
import { toPaise } from '../../src/platform/money.ts'
import { createTestDatabase } from '../support/database.ts'
import { readAll } from '../support/findings.ts'
import { isGenerated } from '../support/generated.ts'
import { runOps } from '../support/ops.ts'
import { daysIn, randomStory } from './random-story.ts'
import { istMoment } from './rows.ts'
import { storeStories } from './stored-story.ts'
import type { Story } from './story.ts'

/*
 * Merchants with up to three acquirer accounts, whose months are closed while files, payments, undos and resolutions still come
 * in late.
 */

const FIRST = '2026-04-01'
const LAST_PAID = isGenerated() ? '2027-03-31' : '2026-06-15'
const LAST_FILE = addDays(LAST_PAID, 20)
const END = addDays(LAST_PAID, 40)
const MONTHS = [...new Set(daysIn({ from: FIRST, to: LAST_PAID }).map((day) => day.slice(0, 7)))].slice(
  0,
  isGenerated() ? 12 : 2,
)
/** The day on which each month is closed; the next month begins while its payouts are not received. */
const CLOSED_ON = new Map(MONTHS.map((month, index) => [addDays(daysOfMonth(month).to, 2 + (index % 4)), month]))

let db: Database
let mids: string[]
/** The journal of each month as printed immediately after its close. */
const printed = new Map<string, JournalLine[]>()
const stored = new Map<string, Record<string, number>>()
const now = istMoment(END, '23:00:00')

async function journal(days: { from: string; to: string; mid?: string }, known = now): Promise<JournalLine[]> {
  const lines = await readAll(journalOf(db, { ...days, now: known, charges: 'supplier' }))
  return lines.map((line) => {
    if (isMerchantError(line)) throw new Error(line.error)
    return line
  })
}

type Balance = { mid: string | null; account: string; amount: number }

/** Adds amounts up by merchant and acquirer account, and leaves out sums of 0. */
function sumsOf(balances: Iterable<Balance>): Record<string, number> {
  const sums = new Map<string, number>()
  for (const { mid, account, amount } of balances) {
    const key = `${mid} ${account}`
    sums.set(key, (sums.get(key) ?? 0) + amount)
  }
  return Object.fromEntries([...sums].filter(([, sum]) => sum !== 0))
}

/** Returns the balances of the clearing ledgers. */
const clearingOf = (lines: readonly JournalLine[]) =>
  sumsOf(
    lines
      .filter(({ account, ledger }) => ledger === `UPI clearing ${account}`)
      .map(({ debit, credit, ...line }) => ({ ...line, amount: debit - credit })),
  )

/** Stories of merchants with all three acquirers. */
function storiesFrom(seed: number): Story[] {
  const stories: Story[] = []
  for (let at = seed; stories.length < (isGenerated() ? 3 : 2); at += 1) {
    const story = randomStory(at, { from: FIRST, to: LAST_PAID }, LAST_FILE)
    if (new Set(story.payments.map(({ acquirer }) => acquirer)).size === 3) stories.push(story)
  }
  return stories
}

beforeAll(async () => {
  const created = await createTestDatabase()
  db = created.db
  const seed = isGenerated() ? Date.now() % 100_000 : 7
  if (isGenerated()) console.log(`a year of seed ${seed}`)
  const stories = storiesFrom(seed)
  mids = stories.map(({ mid }) => mid)
  await storeStories(db, stories, { from: FIRST, to: END }, async (day) => {
    // An operator resolves discrepancies of all months, closed ones included.
    if (day.endsWith('4')) {
      const known = istMoment(day, '22:00:00')
      const open = await readAll(openDiscrepancies(db, { to: addDays(day, -20), now: known }))
      const found = open.flatMap((one) => (isMerchantError(one) ? [] : one.discrepancies))
      for (const [index, one] of found.filter((_, index) => index % 3 === 0).entries()) {
        const as = [...WRITTEN_OFF_AS, undefined][index % 5]
        await enterResolution(db, one, { reason: 'looked into', as, by: 'asha', now: known })
      }
    }
    const month = CLOSED_ON.get(day)
    if (month === undefined) return
    vi.useFakeTimers({ toFake: ['Date'], now: istMoment(day, '21:10:00') })
    const { code, stderr } = await runOps(created.url, ['reconcile', 'close', '--month', month])
    vi.useRealTimers()
    expect({ code, stderr }).toMatchObject({ code: 0 })
    printed.set(month, await journal(daysOfMonth(month), istMoment(day, '21:11:00')))
    const { rows } = await db.query(
      `select mid, account, balance_paise as amount from closed_balances where month = $1`,
      [month],
    )
    stored.set(month, sumsOf(rows))
  })
}, 900_000)

it('the journal of a closed month is the same after any number of later changes', async () => {
  for (const month of MONTHS) expect(await journal(daysOfMonth(month)), month).toEqual(printed.get(month))
})

it('the debits and credits of each voucher are equal, and its id names no other voucher', async () => {
  const lines = await journal({ from: FIRST, to: END })
  expect(lines.some(({ voucherId }) => /^[RPFX]L/.test(voucherId))).toBe(true)
  for (const [voucherId, own] of groupBy(lines, (line) => line.voucherId)) {
    expect(own.reduce((sum, { debit, credit }) => sum + debit - credit, 0)).toBe(0)
    const names = own.map(({ mid, account, date, originalDay, reference }) =>
      JSON.stringify([mid, account, date, originalDay, reference]),
    )
    expect(new Set(names).size, voucherId).toBe(1)
  }
})

it('the journals until each closed month add up to the balance that its close stored, by acquirer account', async () => {
  for (const month of MONTHS) {
    const { to } = daysOfMonth(month)
    const lines = await journal({ from: FIRST, to })
    expect(clearingOf(lines), month).toEqual(stored.get(month))
    const [{ figures }] = (await db.query('select figures from closed_months where month = $1', [month])).rows
    for (const mid of mids) {
      const own = Object.entries(stored.get(month) ?? {}).filter(([key]) => key.startsWith(`${mid} `))
      const sum = own.reduce((all, [, one]) => all + one, 0)
      expect(sum, `${mid} ${month}`).toBe(toPaise(figures[mid]?.carriedForward ?? '0.00'))
    }
  }
})

it('all postings add up to what is known now', async () => {
  const balances: Balance[] = []
  await readSnapshot(db, now, async (snapshot) => {
    for (const mid of mids) {
      const merchant = await readMerchant(snapshot, mid)
      const { accounts } = await balancesBefore(merchant, addDays(END, 1), undefined)
      balances.push(...[...accounts].map(([account, amount]) => ({ mid, account, amount })))
    }
  })
  expect(clearingOf(await journal({ from: FIRST, to: END }))).toEqual(sumsOf(balances))
})

it('a statement of any days opens with the closing balance of the days before, and lists the postings of the journal', async () => {
  for (const mid of mids) {
    let closing: Record<string, number> = {}
    let from = FIRST
    for (let length = 5; from <= END; length += 7) {
      const to = [addDays(from, length), END].sort()[0] as string
      const { accounts, lines } = await statementOf(db, { mid, from, to, now })
      const balancesAt = (side: 'opening' | 'closing') =>
        sumsOf(accounts.map((one) => ({ mid, ...one, amount: one[side] })))
      expect(balancesAt('opening'), `${mid} ${from}`).toEqual(closing)
      closing = balancesAt('closing')
      const posted = lines.flatMap(({ account, amount }) => (account === null ? [] : [{ mid, account, amount }]))
      expect(sumsOf(posted)).toEqual(clearingOf(await journal({ mid, from, to })))
      const balance = Object.values(closing).reduce((sum, one) => sum + one, 0)
      expect(lines.at(-1)).toMatchObject({ kind: 'closing', balance })
      from = addDays(to, 1)
    }
  }
})
