import { beforeAll, expect, it, vi } from 'vitest'
import { createLedger } from '../../src/books/ledger/read-ledger.ts'
import { readClosedBase } from '../../src/books/reconciliation/closed-items.ts'
import { openDifferences, openOfMerchant } from '../../src/books/reconciliation/open-differences.ts'
import { inSnapshot } from '../../src/books/reconciliation/reconcile.ts'
import { undoImport } from '../../src/books/settlements/imports.ts'
import { type Database, inTransaction } from '../../src/platform/db/pool.ts'
import { createTestDatabase } from '../support/database.ts'
import { isGenerated } from '../support/generated.ts'
import { runOps } from '../support/ops.ts'
import { importRows, istMoment, MERCHANTS, makeMonths, resolveSome, storeMonths } from './months.ts'

let url: string
let db: Database

beforeAll(async () => {
  ;({ url, db } = await createTestDatabase())
})

/** Days of files, the day on which each is undone, and the day on which it comes again. */
const LATE = [
  ['2026-01-16', '2026-02-05', '2026-02-12'],
  ['2026-01-21', '2026-02-07', undefined],
  ['2026-02-18', '2026-03-09', '2026-03-12'],
  ['2026-01-23', '2026-03-13', '2026-03-19'],
] as const

const asText = (found: unknown) =>
  JSON.stringify(found, (_, value) => (typeof value === 'bigint' ? String(value) : value))

async function opsAt(moment: Date, ...args: string[]) {
  vi.useFakeTimers({ toFake: ['Date'], now: moment })
  try {
    return await runOps(url, ['reconcile', ...args])
  } finally {
    vi.useRealTimers()
  }
}

/** What is open until `to`, and what is brought forward to the day after, of each merchant; read from the first day on. */
async function readFromTheFirstDay(to: string, after: string, now: Date) {
  const read = inSnapshot(db, now, async function* (snapshot) {
    const open: unknown[] = []
    const sums: Record<string, string> = {}
    for (const { mid } of MERCHANTS) {
      const ledger = createLedger(snapshot, mid)
      for await (const { cause: _, ...one } of openOfMerchant(ledger, undefined, to)) open.push(one)
      sums[mid] = String(await ledger.sumBefore(after))
    }
    yield { open, sums, base: await readClosedBase(snapshot.client, now, after) }
  })
  const { value } = await read.next()
  await read.return(undefined)
  return value as { open: unknown[]; sums: Record<string, string>; base: { month: string } | undefined }
}

/** The same, read from the end of the last closed month on. */
async function readFromTheClose(to: string, after: string, now: Date) {
  const open: unknown[] = []
  for await (const { cause: _, merchantOrderId: __, ...one } of openDifferences(db, { to, now })) open.push(one)
  const read = inSnapshot(db, now, async function* (snapshot) {
    const closed = await readClosedBase(snapshot.client, now, after)
    const sums: Record<string, string> = {}
    for (const { mid } of MERCHANTS) {
      sums[mid] = String(await createLedger({ ...snapshot, closed }, mid).sumBefore(after))
    }
    yield sums
  })
  const { value } = await read.next()
  await read.return(undefined)
  return { open, sums: value }
}

it('what is open and what is brought forward are the same, read from the last closed month or from the first day', {
  timeout: 900_000,
}, async () => {
  const { ledgers, facts: all } = makeMonths(800, isGenerated() ? Date.now() % 100_000 : 11)
  // January, which is closed, and half of the late files.
  const facts = new Map([...all].filter(([day]) => isGenerated() || day <= '2026-02-14'))
  const imports = new Map<string, number>()
  const undoneFiles = new Set<string>()
  const rowsOf = (day: string) => facts.get(day)?.rows ?? []
  let number = 0
  const bases: (string | undefined)[] = []
  await storeMonths(db, { ledgers, facts }, async (day, imported) => {
    number += 1
    const moment = (time: string) => istMoment(day, time)
    if (day === '2026-02-01' || day === '2026-03-03') {
      const closed = await opsAt(moment('21:10:00'), 'close', '--month', day === '2026-02-01' ? '2026-01' : '2026-02')
      expect(closed.code).toBe(0)
    }
    if (imported !== undefined) imports.set(day, imported)
    // A file of a closed month is undone, and comes again with other amounts or not at all.
    for (const [of, undoneOn, againOn] of LATE) {
      if (day === undoneOn) {
        const undo = { now: moment('21:30:00'), person: 'asha' }
        const undone = await inTransaction(db, (client) => undoImport(client, imports.get(of) as number, undo))
        // Refused where a later file has changed one of its rows.
        if ('removed' in undone) undoneFiles.add(of)
      }
      const again = rowsOf(of).map((row) => ({ ...row, amount: row.amount - 1, fee: row.fee && row.fee + 3 }))
      if (day === againOn && undoneFiles.has(of)) await importRows(db, again, moment('21:40:00'))
    }
    if (number % 6 === 0) {
      await resolveSome(db, { from: '2026-01-01', to: day, now: moment('22:00:00') }, number)
    }
    if (number === 40) {
      // It was no holiday: two payouts are now judged where there was one.
      await db.query(`insert into bank_holiday_changes values ('2026-01-14', 2, null, 'Asha', $1)`, [
        moment('22:40:00'),
      ])
    }
    if (number % 5 !== 0) return
    const now = moment('23:59:59.999')
    const { base, ...whole } = await readFromTheFirstDay(day, day, now)
    bases.push(base?.month)
    const since = await readFromTheClose(day, day, now)
    expect(since.sums, day).toEqual(whole.sums)
    expect(since.open.map(asText), day).toEqual(whole.open.map(asText))
  })
  expect(new Set(bases)).toEqual(new Set([undefined, '2026-01', ...(isGenerated() ? ['2026-02'] : [])]))
  expect(undoneFiles.size).toBeGreaterThan(0)
  // What was carried forward consists of these items.
  const { rows } = await db.query(
    `select i.mid, sum(i.balance_paise)::text as sum, m.closed_at as "closedAt" from closed_items i
       join closed_months m using (month) where month = '2026-01' group by 1, 3 order by 1`,
  )
  for (const { mid, sum, closedAt } of rows) {
    const { rows: moved } = await db.query(
      `select sum(amount_paise)::text as sum from ledger
        where mid = $1 and day <= '2026-01-31' and recorded_at <= $2 and replaced_at > $2`,
      [mid, closedAt],
    )
    expect(moved).toEqual([{ sum }])
  }
})
