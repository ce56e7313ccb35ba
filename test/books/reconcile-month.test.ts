import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Database } from '../../src/db/pool.ts'
import { toDecimalText } from '../../src/money.ts'
import { createTestDatabase, testPool } from '../support/database.ts'
import { isSlow, runs } from '../support/generated.ts'
import { runOps } from '../support/ops.ts'
import { runToEnd, TYPESCRIPT } from '../support/processes.ts'
import { type Expected, type ExpectedDay, MONTH, storeMonth, sumOf } from './month.ts'

const PAYMENTS = runs(200_000, 6_000)
/** The command itself takes about 20 MB, and every payment as a difference is 20 MB of text. */
const HEAP_MB = 32

type Named = Record<string, string | null>
type Book = { mid: string; file: string; differences: Named[]; exceptions: Named[]; days: Named[]; total: Named }

let url: string
let db: Database
let drop: () => Promise<void>
let expected: Map<string, Expected>

beforeAll(async () => {
  ;({ url, drop } = await createTestDatabase())
  db = testPool(url, 2)
  expected = await storeMonth(db, PAYMENTS)
}, 180_000)
afterAll(async () => {
  await db.end()
  await drop()
})

const ops = (...args: string[]) => runOps(url, ['reconcile', '--from', MONTH.from, '--to', MONTH.to, ...args])

const inRupees = ({ payments, fromDayFile, settlements, differences, ...paise }: ExpectedDay) => ({
  ...{ payments, fromDayFile, settlements, differences },
  ...Object.fromEntries(Object.entries(paise).map(([name, sum]) => [name, toDecimalText(sum)])),
})

const sumText = (paise: number) => (paise < 0 ? `-${toDecimalText(-paise)}` : toDecimalText(paise))

/** The figures that follow from the others: what stands in the bank statement, and what the bank owes before and after. */
const withBalance = (brought: number, sums: ExpectedDay) => ({
  ...inRupees(sums),
  ...{ net: toDecimalText(sums.settled - sums.fee - sums.tax), refunded: '0.00', resolved: '0.00' },
  ...{ broughtForward: sumText(brought), carriedForward: sumText(brought + sums.paid - sums.settled) },
})

const daysOf = ({ days }: Expected) => {
  let brought = 0
  return [...days].sort().map(([day, sums]) => {
    const spelt = { day, ...withBalance(brought, sums) }
    brought += sums.paid - sums.settled
    return spelt
  })
}

const totalOf = (says: Expected[]) => ({
  ...withBalance(0, sumOf(says.flatMap(({ days }) => [...days.values()]))),
  openExceptions: says.flatMap(({ exceptions }) => exceptions).length,
})

describe('the report of a month of three merchants', () => {
  it('names every planted difference with its cause and no other, and has the generator’s sums', async () => {
    const startedAt = performance.now()
    const { code, stdout, stderr } = await ops('--json')
    if (isSlow()) console.log(`${PAYMENTS} payments were reconciled in ${Math.round(performance.now() - startedAt)} ms`)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const { merchants, ...rest } = JSON.parse(stdout)
    const total = totalOf([...expected.values()])
    expect(rest).toEqual({ ...MONTH, balances: false, newestImport: null, total })
    expect((merchants as Book[]).map(({ mid, file }) => [mid, file])).toEqual([
      ['M_NAMED', 'by payment'],
      ['M_OWN', 'by payment'],
      ['M_SUMS', 'by sums'],
    ])
    for (const book of merchants as Book[]) {
      const says = expected.get(book.mid) as Expected
      const differences = book.differences.map(({ exceptionId, cause, ...one }) => {
        const { day, kind, orderId, utr, settlementUtr, paid, settled } = one
        // The name of an exception is made by the database.
        const why = cause?.replace(/^exception [0-9a-f]{12}/, '')
        return [day, kind, orderId, utr, settlementUtr, paid, settled, why].join(' ')
      })
      expect(differences.sort()).toEqual(says.differences)
      const exceptions = book.exceptions.map(({ kind, orderId, utr, amount }) => [kind, orderId, utr, amount].join(' '))
      expect(exceptions.sort()).toEqual(says.exceptions)
      expect(book.days).toEqual(daysOf(says))
      expect(book.total).toEqual(totalOf([says]))
    }
  }, 120_000)

  it('says the same of one merchant alone, also as a table and as CSV', async () => {
    const { differences, exceptions, days } = expected.get('M_SUMS') as Expected
    const text = (await ops('--mid', 'M_SUMS')).stdout.split('\n')
    expect(text[0]).toBe('M_SUMS, settled by sums')
    expect(text.at(-2)).toBe(
      `2026-01-01 to 2026-01-31 does not balance: 2 differences, ${exceptions.length} open exceptions`,
    )
    expect(text[1]).toMatch(
      /^ {2}2026-01-12 sums differ 260112[0-9a-f]{10}: paid \d+\.\d\d, settled 0\.00: nothing was settled of the payments of 2026-01-09 to 2026-01-11$/,
    )
    const csv = (await ops('--mid', 'M_SUMS', '--csv')).stdout.trimEnd().split('\n')
    const types = csv.map((line) => line.split(',')[0])
    const count = (type: string) => types.filter((one) => one === type).length
    expect([count('difference'), count('exception'), count('day')]).toEqual([
      ...[differences.length, exceptions.length, days.size],
    ])
    expect(types.slice(-2)).toEqual(['total', 'end'])
    expect(new Set(csv.map((line) => line.split(',').length))).toEqual(new Set([csv[0]?.split(',').length]))
  }, 120_000)
})

it.runIf(isSlow())(
  'the report of a month without settlements is made in a heap that could not hold it',
  {
    timeout: 240_000,
  },
  async () => {
    // One remains, which names a payment.
    await db.query(`delete from settlements where mid <> 'M_NAMED' or utr <> 'NNAMED1'`)
    const args = [`--max-old-space-size=${HEAP_MB}`, ...TYPESCRIPT, 'src/cli/ops.ts']
    const month = ['reconcile', '--from', MONTH.from, '--to', MONTH.to]
    const env = { ...process.env, DATABASE_URL: url }
    const { stdout } = await runToEnd(process.execPath, [...args, ...month], { env })
    const paid = expected.get('M_NAMED')?.days.values() ?? []
    expect(stdout.split(' not settled ').length).toBeGreaterThan(sumOf(paid).payments * 0.97)
    expect(stdout.trimEnd().split('\n').at(-1)).toContain('does not balance')
  },
)
