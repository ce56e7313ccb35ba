import { isDeepStrictEqual } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import { readOne, readSnapshot } from '../../src/books/reading/snapshot.ts'
import type { Database } from '../../src/platform/db/pool.ts'
import { query } from '../../src/platform/db/query.ts'
import { createTestConsole, newOperatorKey } from '../support/console.ts'
import { createTestDatabase } from '../support/database.ts'
import { opsAtNoon } from '../support/ops.ts'
import { storePaidOrder } from '../support/paid-orders.ts'
import { newMerchant } from '../support/service.ts'
import { istMoment } from './rows.ts'

const MERCHANTS = query<{ mid: string }, object>('select mid from merchants order by mid')

const OCTOBER = ['--month', '2026-10']
const TODAY = '2026-10-09'

let url: string
let db: Database
const { opsOn, jsonOn } = opsAtNoon(() => url)

/** Stores a settlement row of any amount, as no import accepts it. */
const settle = (mid: string, utr: string, day: string, paise: string, importedOn = day) =>
  db.query(
    `insert into settlements (mid, utr, amount_paise, bank_reference_number, status, initiated_at, created_at, recorded_at)
     values ($1, $2, $3, $4, 'SUCCESS', $5, $6, $6)`,
    [mid, utr, paise, `BRN${day}`, istMoment(day, '11:00:00'), istMoment(importedOn, '11:00:00')],
  )

const pay = (mid: string, utr: string) => storePaidOrder(db, { mid, utr, paidAt: istMoment('2026-10-05', '12:00:00') })

/** Stores a merchant with a settled payment. */
async function storeBalanced(mid: string) {
  await newMerchant(db, { mid })
  await pay(mid, `${mid}P1`)
  await settle(mid, `${mid}P1`, '2026-10-06', '20000')
}

/** Stores a merchant with a settled and an unsettled payment. */
async function storeHealthy(mid: string) {
  await storeBalanced(mid)
  await pay(mid, `${mid}P2`)
}

const BEYOND = 'the database returned the integer 12000000000000000, which is beyond 2^53'
const OVERFLOW = 'bigint out of range'
const SUM = 'the amounts add up to more than 90 lakh crore rupees'
/** Merchants by the cause that their report names. Their `mid`s are between those of the merchants A1 and E1. */
const CAUSES = { B1: BEYOND, C1: OVERFLOW, D1: SUM }
const ERRORS = Object.entries(CAUSES).map(([mid, error]) => ({ mid, error }))
const failureOf = (more: string) => `ops: B1 cannot be reconciled: ${BEYOND}; and ${more}\n`
/** D1 has payouts and discrepancies whose sums are in range, while the sum of all its movements is not. */
const ERRORS_OF_SUMS = ERRORS.slice(0, 2)

async function storeOdd() {
  await storeHealthy('A1')
  for (const mid of ['B1', 'C1', 'D1']) await newMerchant(db, { mid })
  for (const utr of ['B1', 'B2']) await settle('B1', utr, '2026-10-06', '6000000000000000')
  for (const utr of ['C1', 'C2']) await settle('C1', utr, '2026-10-06', '9000000000000000000')
  await settle('D1', 'D1', '2026-10-06', '6000000000000000')
  await settle('D1', 'D2', '2026-10-07', '6000000000000000')
  await storeHealthy('E1')
}

/** Runs a command that prints every healthy merchant and exits with 1. */
async function failing(more: string, ...args: string[]) {
  const { code, stdout, stderr } = await opsOn(TODAY, ...args)
  expect({ code, stderr }).toEqual({ code: 1, stderr: failureOf(more) })
  return stdout
}

const failingJson = async (more: string, ...args: string[]) => JSON.parse(await failing(more, ...args, '--json'))

describe('merchants whose facts cannot be reconciled', () => {
  beforeAll(async () => {
    ;({ url, db } = await createTestDatabase())
    await storeOdd()
  })

  it('reconcile prints one line with the cause for each of them, reports all other merchants, and exits with 1', async () => {
    const text = await failing('2 more merchants', 'reconcile', ...OCTOBER)
    expect(text.match(/^(?:[A-E]1|.* all merchants|2026-10-01).*$/gm)).toEqual([
      'A1, paid out payment by payment',
      ...ERRORS.map(({ mid, error }) => `${mid} cannot be reconciled: ${error}`),
      'E1, paid out payment by payment',
      'Customers paid, all merchants',
      'Acquirer settled, all merchants',
      '2026-10-01 to 2026-10-31 does not balance: 3 merchants not reconciled, 2 discrepancies',
    ])
    const { merchants, balances, total } = await failingJson('2 more merchants', 'reconcile', ...OCTOBER)
    expect(merchants).toMatchObject([{ mid: 'A1' }, ...ERRORS, { mid: 'E1', total: { differences: 1 } }])
    expect(merchants[1]).toEqual(ERRORS[0])
    expect([balances, total.paid]).toEqual([false, '800.00'])
    const csv = await failing('2 more merchants', 'reconcile', ...OCTOBER, '--csv')
    expect(csv.match(/^error,.*$/gm)).toEqual(
      ERRORS.map(({ mid, error }) =>
        expect.stringMatching(`^error,${mid},2026-10-01 to 2026-10-31,+"?${error.replace('^', '\\^')}"?$`),
      ),
    )
    expect(csv).toMatch(/^total,E1,.*\nend,.*,does not balance,/m)
  })

  it('reconcile does not balance if all other merchants balance', async () => {
    const { code, stdout } = await opsOn(TODAY, 'reconcile', '--from', '2026-10-07', '--to', '2026-10-07')
    expect([code, stdout.trimEnd().split('\n').at(-1)]).toEqual([
      1,
      '2026-10-07 does not balance: 3 merchants not reconciled',
    ])
  })

  it('reconcile differences lists the discrepancies of all other merchants, and their exact sum', async () => {
    const text = await failing('1 more merchant', 'reconcile', 'differences')
    expect(text.match(/^(?: {2})?[^:\n]+/gm)).toEqual([
      ...['A1', '  4 days', 'B1 cannot be reconciled', 'C1 cannot be reconciled', 'D1', '  3 days', '  2 days'],
      ...['E1', '  4 days', '4 open discrepancies, total -₹11,99,99,99,99,99,600.00'],
    ])
    const { differences, count } = await failingJson('1 more merchant', 'reconcile', 'differences')
    expect(differences).toMatchObject([
      ...[{ mid: 'A1', utr: 'A1P2' }, ...ERRORS_OF_SUMS],
      ...[{ mid: 'D1' }, { mid: 'D1' }, { mid: 'E1', utr: 'E1P2' }],
    ])
    expect(count).toBe(4)
    const csv = await failing('1 more merchant', 'reconcile', 'differences', '--csv')
    expect(csv).toMatch(/^C1,,,,,,,,,,,error: bigint out of range$/m)
  })

  it('reconcile payouts and journal contain the rows of all other merchants, and their exact sums', async () => {
    const days = ['--from', '2026-10-06', '--to', '2026-10-07']
    const { payouts, total } = await failingJson('1 more merchant', 'reconcile', 'payouts', ...days)
    expect(payouts).toMatchObject([
      ...[{ mid: 'A1', net: '200.00' }, ...ERRORS_OF_SUMS],
      ...[{ mid: 'D1' }, { mid: 'D1' }, { mid: 'E1', net: '200.00' }],
    ])
    expect(total.net).toBe('120000000000400.00')
    for (const open of [[], ['--open']])
      expect(await failing('1 more merchant', 'reconcile', 'payouts', ...days, ...open)).toMatch(
        / error: bigint out of range .* C1 /,
      )
    const { code, stdout } = await opsOn(TODAY, 'reconcile', 'journal', ...OCTOBER, '--csv')
    expect([
      code,
      stdout.replace(/P261006-[A-Z2-7]{16}/g, 'ID').match(/^(?:,,,,C1|2026-10-06,.*E1,unknown,Bank),.*$/gm),
    ]).toEqual([
      1,
      [',,,,C1,,error: bigint out of range,,', '2026-10-06,ID,BRN2026-10-06,,E1,unknown,Bank,200.00,0.00'],
    ])
  })

  it('reconcile resolve finds a discrepancy of another merchant, and names them if it finds none', async () => {
    const { differences } = await failingJson('1 more merchant', 'reconcile', 'differences')
    const resolve = (difference: string) =>
      opsOn(TODAY, 'reconcile', 'resolve', '--difference', difference, '--reason', 'paid by hand')
    expect(await resolve('261006aaaaaaaaaa')).toEqual({
      ...{ code: 1, stdout: '' },
      stderr: `ops: discrepancy 261006aaaaaaaaaa was not found, but ${failureOf('1 more merchant').slice(5)}`,
    })
    expect(await resolve(differences.at(-1).id)).toMatchObject({ code: 0, stderr: '' })
  })

  it('reconcile close closes no month, and names the first of them with the cause', async () => {
    const { code, stdout, stderr } = await opsOn('2026-11-05', 'reconcile', 'close', ...OCTOBER)
    expect([code, stdout, stderr.split('\n').at(-2)]).toEqual([
      ...[1, '', `ops: 2026-10 cannot be closed: B1 cannot be reconciled: ${BEYOND}`],
    ])
    expect(await jsonOn('2026-11-05', 'reconcile', 'closed')).toEqual([])
  })

  it('ops today reports that yesterday does not balance, with the open discrepancies of all other merchants', async () => {
    const { balance, arrivalErrors } = await jsonOn(TODAY, 'today')
    expect(balance).toMatchObject({ balances: false, open: { count: 1, oldest: '2026-10-05' } })
    expect(balance.errors).toHaveLength(3)
    expect(balance.errors).toEqual(expect.arrayContaining(ERRORS_OF_SUMS))
    // No bank statement of these merchants is imported.
    expect(arrivalErrors).toEqual([])
    const { code, stdout } = await opsOn(TODAY, 'today')
    expect(code).toBe(0)
    expect(stdout).toMatch(/^now +merchants +\w1 cannot be reconciled: .*; and 2 more merchants$/m)
    expect(stdout).toMatch(/^now +reconciliation +.* does not balance: 3 merchants not reconciled \(/m)
    expect(stdout).toMatch(/^today +discrepancies +1 open, total ₹200\.00, .*, without 3 merchants \(/m)
  })

  it('ops today counts the payouts of all other merchants to bank accounts with statements', async () => {
    await db.query(
      `insert into statement_imports (import_id, imported_at, imported_by, file, sha256, mids, covers_from, covers_to, stored)
       select n, '2026-10-08', 'asha', '-', '', array[mid], '2026-10-01', '2026-10-12', 0
         from unnest(array['C1', 'E1']) with ordinality as m (mid, n)`,
    )
    const { arrivals, arrivalErrors } = await jsonOn(TODAY, 'today')
    expect(arrivals).toEqual([{ arrival: 'not arrived', payouts: 1, net: '200.00' }])
    expect(arrivalErrors).toEqual([{ mid: 'C1', error: OVERFLOW }])
  })

  it('the console shows them among all other merchants, in pages and in CSV', async () => {
    const site = await createTestConsole({ databaseUrl: url })
    const key = await newOperatorKey(db)
    for (const page of ['reconcile?month=2026-10', 'reconcile-differences', 'reconcile-payouts?month=2026-10']) {
      for (const format of ['', page.includes('?') ? '&csv=on' : '?csv=on']) {
        const { status, body } = await site.get(`/${page}${format}`, key)
        expect([page, status]).toEqual([page, 200])
        for (const shown of ['A1', 'D1', OVERFLOW]) expect(body).toContain(shown)
      }
    }
  })
})

it('a closed month is the base of reports on all merchants but one whose later changes add up to more than 2^53', async () => {
  ;({ url, db } = await createTestDatabase())
  await storeHealthy('A1')
  await storeBalanced('B1')
  await jsonOn('2026-11-02', 'reconcile', 'close', ...OCTOBER)
  for (const utr of ['B8', 'B9']) await settle('B1', utr, '2026-10-07', '9000000000000000000', '2026-11-03')
  const report = await opsOn('2026-11-10', 'reconcile', '--month', '2026-11', '--json')
  expect([report.code, JSON.parse(report.stdout).merchants]).toMatchObject([
    1,
    [
      { mid: 'A1', total: { broughtForward: '200.00' } },
      { mid: 'B1', error: 'the database returned the integer -18000000000000020000, which is beyond 2^53' },
    ],
  ])
  const { code, stdout } = await opsOn('2026-11-10', 'reconcile', 'closed')
  expect([code, stdout.split('\n').slice(1)]).toEqual([1, ['  B1 cannot be reconciled: bigint out of range', '']])
})

it('reconcile reports a merchant that cannot be added to the totals of all merchants', async () => {
  ;({ url, db } = await createTestDatabase())
  for (const mid of ['A1', 'B1']) {
    await newMerchant(db, { mid })
    await settle(mid, mid, '2026-10-06', '6000000000000000')
  }
  await storeHealthy('C1')
  const { code, stdout } = await opsOn(TODAY, 'reconcile', ...OCTOBER, '--json')
  const { merchants, total } = JSON.parse(stdout)
  expect([code, merchants]).toMatchObject([1, [{ mid: 'A1' }, { mid: 'B1', error: SUM }, { mid: 'C1' }]])
  expect(total.settled).toBe('60000000000200.00')
})

describe('readOne', () => {
  /** Runs `text` for one merchant of a snapshot. A row is stored after the snapshot has begun. */
  const failAt = (text: string) =>
    readSnapshot(db, new Date(), async (snapshot) => {
      const count = () => MERCHANTS(snapshot.client, {})
      const before = await count()
      await newMerchant(db)
      const error = await readOne(snapshot, 'M1', () => snapshot.client.query(text))
      return { error, isSame: isDeepStrictEqual(await count(), before) }
    })

  it('returns the cause of an error in the facts of a merchant, and the snapshot stays the same', async () => {
    for (const [text, error] of [
      ['select 9223372036854775807 + 1', 'bigint out of range'],
      ['select 9007199254740993', 'the database returned the integer 9007199254740993, which is beyond 2^53'],
      ['select 1.5', 'the database returned a numeric: cast it to bigint or text'],
    ] as const)
      expect(await failAt(text)).toEqual({ error: { mid: 'M1', error }, isSame: true })
  })

  it('throws errors that concern every merchant', async () => {
    for (const [text, code] of [
      ['select pg_cancel_backend(pg_backend_pid())', '57014'],
      ['select pg_terminate_backend(pg_backend_pid())', '57P01'],
      ['select column_of_no_table', '42703'],
    ] as const)
      await expect(failAt(text)).rejects.toMatchObject({ code })
  })

  it('throws the first error if the connection is lost before the rollback', async () => {
    const lost = readSnapshot(db, new Date(), (snapshot) =>
      readOne(snapshot, 'M1', async () => {
        const { rows } = await snapshot.client.query('select pg_backend_pid() as pid')
        await db.query('select pg_terminate_backend($1)', [rows[0].pid])
        throw new Error('odd facts')
      }),
    )
    await expect(lost).rejects.toThrow('odd facts')
  })
})
