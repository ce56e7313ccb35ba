import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { importSettlements } from '../../src/books/settlements/import.ts'
import { listImports, undoImport } from '../../src/books/settlements/imports.ts'
import { type Database, inTransaction } from '../../src/platform/db/pool.ts'
import { toIstDay } from '../../src/platform/time.ts'
import { createTestDatabase } from '../support/database.ts'
import { runOps } from '../support/ops.ts'
import { newMerchant } from '../support/service.ts'

const COLUMNS = 'mid,utr,status,fee,tax,payment_utr,amount,bank_reference_number,initiation_date'
const NOW = new Date('2026-02-01T00:00:00Z')
const LATER = new Date('2026-02-02T00:00:00Z')

let url: string
let db: Database
let mid: string

beforeAll(async () => {
  ;({ url, db } = await createTestDatabase())
  // Opens the pool's connections, so that concurrent calls start at the same time.
  await Promise.all(Array.from({ length: 5 }, () => db.query('select pg_sleep(0.1)')))
})
beforeEach(async () => {
  await db.query('truncate settlements, settlement_versions, settlement_imports, settlement_import_bases')
  ;({ mid } = await newMerchant(db))
})

type Line = { status?: string; fee?: string; tax?: string; payment?: string; amount?: string }

const line = (utr: string, { status = 'SUCCESS', fee, tax, payment, amount = '10.00' }: Line = {}) =>
  [mid, utr, status, fee, tax, payment, amount, 'B1', '2026-01-01 09:00:00'].join(',')

const file = (...lines: string[]) => [COLUMNS, ...lines, ''].join('\n')

async function load(csv: string, now = NOW) {
  const importing = { now, person: 'asha', file: 'day.csv' }
  const imported = await inTransaction(db, (client) => importSettlements(client, Readable.from([csv]), importing))
  const { amount: _, insertedAmount: __, matched: ___, ...counts } = imported
  return counts
}

const undo = (importId: number, person = 'ravi', now = LATER) =>
  inTransaction(db, (client) => undoImport(client, importId, { now, person }))

const ops = (...args: string[]) => runOps(url, ['settlements', ...args])

const fault = (text: string) => ({ code: 1, stdout: '', stderr: `ops: ${text}\n` })

/** Returns the columns of all stored settlements that differ between these tests. */
async function stored() {
  const { rows } = await db.query<Record<string, unknown>>(
    `select utr, (amount_paise * 0.01)::text as amount, status, (fee_paise * 0.01)::text as fee, (tax_paise * 0.01)::text as tax, payment_utr as payment, import_id as import
       from settlements order by utr`,
  )
  return rows
}

describe('ops settlements imports and undo', () => {
  it.each([
    ['in one batch', 901, '100000000000'],
    ['in two batches', 19_000, '8876543210'],
  ])('settlements import rejects a file whose amounts %s add up to more than 2^53 paise', async (_, rows, amount) => {
    const lines = Array.from({ length: rows }, (_, index) => line(`BIG${index}`, { amount }))
    await expect(load(file(...lines))).rejects.toMatchObject({
      errors: [{ line: 1, text: expect.stringContaining('check which column is read as the amount') }],
    })
    expect(await ops('imports')).toMatchObject({ stdout: 'No settlement imports.\n' })
  })

  it('settlements imports lists every accepted import with its file, even an import without new rows', async () => {
    expect(await ops('imports')).toMatchObject({ stdout: 'No settlement imports.\n' })
    const name = `settlements-of-${mid}.csv`
    const csv = file(line('U1'))
    writeFileSync(join(tmpdir(), name), csv)
    const importAs = (path: string, input = '') => runOps(url, ['settlements', 'import', path, '--by', 'asha'], input)
    const text = 'Import 1: 1 inserted, ₹10.00, 0 unchanged, 0 updated.\n'
    expect(await importAs(join(tmpdir(), name))).toEqual({ code: 0, stdout: text, stderr: '' })
    expect((await importAs('-', csv)).code).toBe(0)
    expect((await importAs('-', file(line('U1', { amount: '11' })))).code).toBe(1)
    expect((await importAs('-', `${COLUMNS}\n`)).code).toBe(0)
    await db.query(
      `insert into settlement_imports (import_id, imported_at, imported_by, file, sha256, inserted, unchanged, updated)
       values (4, now(), 'without bases', '', '', 1, 0, 0)`,
    )
    const undone = await ops('undo', '--import', '2', '--by', 'ravi', '--json')
    expect(undone).toEqual({ code: 0, stdout: '{"import":2,"removed":0,"restored":0}\n', stderr: '' })

    const sha256 = createHash('sha256').update(csv).digest('hex')
    const at = expect.stringMatching(/Z$/)
    const none = {
      at,
      person: 'asha',
      file: '-',
      inserted: 0,
      unchanged: 0,
      updated: 0,
      matched: 0,
      amount: '0.00',
      insertedAmount: '0.00',
      undoneAt: null,
      undoneBy: null,
    }
    expect(JSON.parse((await ops('imports', '--json')).stdout)).toEqual([
      { ...none, import: 1, file: name, sha256, inserted: 1, amount: '10.00', insertedAmount: '10.00' },
      { ...none, import: 2, sha256, unchanged: 1, amount: '10.00', undoneAt: at, undoneBy: 'ravi' },
      { ...none, import: 3, sha256: createHash('sha256').update(`${COLUMNS}\n`).digest('hex') },
      expect.objectContaining({ import: 4, amount: null, insertedAmount: null }),
    ])
    expect((await ops('imports')).stdout).toMatch(
      /^import +at +person +file +rows +matched +amount +undone +sha256\n1 +\S+ \S+ IST +asha +settlements-of-\w+\.csv +1 +0 +₹10\.00 +- +[0-9a-f]{64}\n2 +\S+ \S+ IST +asha +- +1 +0 +₹10\.00 +\S+ \S+ IST by ravi +[0-9a-f]{64}\n3 /,
    )
    const audit = JSON.parse((await runOps(url, ['audit', '--json'])).stdout)
    expect(audit.at(-1)).toMatchObject({
      ...{ person: 'ravi', command: 'settlements undo', arguments: { import: '2' } },
      ...{ outcome: 'done', detail: { removed: 0, restored: 0 } },
    })
  })

  it('settlements undo rejects an import whose settlements a later import repeats or changes, unless the later import stored nothing', async () => {
    await load(file(line('U1', { status: 'PENDING' }), line('U2')))
    await load(file(line('U2'), line('U3')))
    await load(file(line('U1')))
    await load(file(line('U1')))
    await load(file(line('U4')))
    const rejected = (importId: number, text: string) =>
      ops('undo', '--import', String(importId)).then((outcome) => expect(outcome).toEqual(fault(text)))
    await rejected(1, 'imports 2, 3 repeated or changed settlements of import 1: undo import 3 first')
    // Import 4 repeats settlements that import 3 changed, but it changed nothing itself.
    expect(await undo(3)).toEqual({ removed: 0, restored: 1 })
    expect(await undo(4)).toEqual({ removed: 0, restored: 0 })
    await rejected(1, 'import 2 repeated or changed settlements of import 1: undo import 2 first')
    expect(await undo(2)).toEqual({ removed: 1, restored: 0 })
    expect(await undo(1)).toEqual({ removed: 2, restored: 0 })
    expect((await stored()).map(({ utr, import: of }) => [utr, of])).toEqual([['U4', 5]])
    await rejected(1, 'import 1 was already undone by ravi at 2026-02-02 05:30:00 IST')
    await rejected(7, 'import 7 does not exist: see ops settlements imports')
    const { code, stderr } = await ops('undo', '--import', '1.5')
    expect({ code, stderr: stderr.split('\n')[0] }).toEqual({
      ...{ code: 2, stderr: 'ops: --import must be the number of an import, as listed by ops settlements imports' },
    })
  })
})

it("settlements import stores every version of a settlement, so that reports can read the settlement's state at any past time", async () => {
  const at = (day: number) => new Date(Date.UTC(2026, 1, day))
  const known = async (moment: Date) => {
    const { rows } = await db.query<{ row: string[] }>(
      `select array[utr, status, (fee_paise * 0.01)::text, (amount_paise * 0.01)::text] as row
         from (select utr, status, fee_paise, amount_paise, recorded_at from settlements
               union all
               select utr, status, fee_paise, amount_paise, recorded_at from settlement_versions where replaced_at > $1) versions
        where recorded_at is null or recorded_at <= $1
        order by utr`,
      [moment],
    )
    return rows.map(({ row }) => row.join(' '))
  }
  await db.query(
    `insert into settlements (mid, utr, amount_paise, bank_reference_number, status, initiated_at, created_at)
     values ($1, 'OLD', 1000, 'B1', 'PENDING', '2026-01-01 09:00:00+05:30', '2026-01-01')`,
    [mid],
  )
  const reported = [line('OLD', { fee: '1.00' }), line('U1'), line('U2'), line('U2', { amount: '-5.00' })]
  const steps = [
    async () => undefined,
    () => load(file(line('U1', { status: 'PENDING' })), at(1)),
    () => load(file(...reported), at(2)),
    () => undo(2, 'ravi', at(3)),
    () => load(file(...reported), at(4)),
    () => load(file(line('U2', { status: 'FAILED' })), at(5)),
    // The clock of this import is behind.
    () => load(file(line('U2', { status: 'FAILED', fee: '2.00' })), at(4)),
  ]
  for (const step of steps) await step()
  const first = ['OLD PENDING  10.00', 'U1 PENDING  10.00']
  const second = ['OLD SUCCESS 1.00 10.00', 'U1 SUCCESS  10.00', 'U2 SUCCESS  10.00', 'U2R1 SUCCESS  -5.00']
  const last = second.with(2, 'U2 FAILED 2.00 10.00')
  const expected = [first.slice(0, 1), first, second, first, second, last, last]
  for (const [day, rows] of expected.entries()) {
    expect(await known(at(day)), `on day ${day}`).toEqual(rows)
    expect(await known(new Date(at(day + 1).getTime() - 1)), `at the end of day ${day}`).toEqual(rows)
  }
  await undo(5, 'ravi', at(7))
  await undo(4, 'ravi', at(8))
  await undo(3, 'ravi', at(9))
  await undo(1, 'ravi', at(10))
  expect([await known(at(6)), await known(at(8)), await known(at(9)), await known(at(10))]).toEqual([
    ...[last, second, first, first.slice(0, 1)],
  ])
})

describe('ops settlements import', () => {
  const typed = (csv: string, ...args: string[]) => runOps(url, ['settlements', 'import', '-', ...args], csv)
  const csv = () =>
    file(line('U1', { amount: '1234567.00' }), line('U2', { amount: '1.05' }), line('ARN', { amount: '-200' }))

  it('settlements import prints the sum of the new rows and of the whole file, exact to the paisa', async () => {
    await typed(csv())
    const more = csv() + ['A', 'B', 'C'].map((utr) => `${line(utr, { amount: '90000000000.01' })}\n`).join('')
    const { stdout } = await typed(more, '--json')
    expect(JSON.parse(stdout)).toEqual({
      ...{ import: 2, inserted: 3, unchanged: 3, updated: 0, matched: 0, warnings: [] },
      ...{ insertedAmount: '270000000000.03', amount: '270001234368.08' },
    })
    expect((await ops('imports')).stdout).toMatch(/ 3 +0 +₹12,34,368\.05 .*\n.* 6 +0 +₹2,70,00,12,34,368\.08 /)
  })

  it.each([
    [['--rows', '3', '--total', '12,34,368.05'], 0, 'Import 1: 3 inserted, ₹12,34,368.05, 0 unchanged, 0 updated.\n'],
    [['--rows', '3'], 0, expect.anything()],
    [['--total', '1234368.05'], 0, expect.anything()],
    [
      ['--rows', '4'],
      1,
      'the file has 3 rows, not 4; correct --rows or --total, or download the file from the bank again',
    ],
    [
      ['--total=-1234368.05'],
      1,
      'the file has ₹12,34,368.05, not -₹12,34,368.05; correct --rows or --total, or download the file from the bank again',
    ],
    [
      ['--rows', '2', '--total', '1234368.0'],
      1,
      'the file has 3 rows, not 2 and ₹12,34,368.05, not ₹12,34,368.00; correct --rows or --total, or download the file from the bank again',
    ],
    [['--rows', '3.0'], 2, '--rows must be a number of rows'],
    [['--total', '12,5'], 2, '--total must be rupees such as 1234567.00 or 12,34,567.00'],
  ])('settlements import with %j exits with %i and prints the matching message', async (args, code, text) => {
    const outcome = await typed(csv(), ...args)
    expect(outcome.code).toBe(code)
    if (code === 0) expect(outcome).toEqual({ code, stdout: text, stderr: '' })
    else expect(outcome.stderr.split('\n')[0]).toBe(`ops: ${code === 1 ? 'nothing was imported: ' : ''}${text}`)
    expect(await stored()).toHaveLength(code === 0 ? 3 : 0)
  })

  it.each(['direct', 'setu', 'cashfree', 'setu:acme', 'setu:A_b-1'])(
    'settlements import --acquirer %s stores the acquirer account exactly as typed',
    async (account) => {
      expect(await typed(csv(), '--acquirer', account)).toMatchObject({ code: 0 })
      const { rows } = await db.query('select distinct account from settlements')
      expect(rows).toEqual([{ account }])
    },
  )

  it.each(['', 'paytm', 'Setu', 'setu:', ':acme', 'setu:a b', 'setu:a:b', `setu:${'a'.repeat(65)}`])(
    'settlements import rejects --acquirer %j and lists the accepted values',
    async (account) => {
      const { code, stderr } = await typed(csv(), `--acquirer=${account}`)
      expect({ code, stderr: stderr.split('\n')[0] }).toEqual({
        code: 2,
        stderr:
          'ops: --acquirer must be one of direct, setu, cashfree, phonepe, razorpay, optionally followed by :ACCOUNT; the account must be 1 to 64 characters of A-Z a-z 0-9 _ -',
      })
      expect(await stored()).toEqual([])
    },
  )

  it('settlements import accepts a file whose last line has no line end, and warns that the file may be truncated', async () => {
    const cut = csv().slice(0, -1)
    expect(await typed(cut)).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(
        /^ops: warning: line 4, the last one, has no line end: .* with --rows and --total\n$/,
      ),
    })
    expect(JSON.parse((await typed(cut, '--json')).stdout)).toMatchObject({
      unchanged: 3,
      warnings: [expect.stringMatching(/^line 4/)],
    })
  })
})

describe('undoing an import', () => {
  it('settlements undo deletes the rows that the import inserted and restores the rows that the import changed', async () => {
    // A row that no import stored.
    await db.query(
      `insert into settlements (mid, utr, amount_paise, bank_reference_number, status, initiated_at, created_at)
       values ($1, 'OLD', 1000, 'B1', 'PENDING', '2026-01-01 09:00:00+05:30', '2026-01-01')`,
      [mid],
    )
    await load(file(line('U1', { status: 'PENDING', fee: '1' })))
    const before = await stored()
    // One import changes each settlement twice.
    const changes = [
      line('U1', { status: 'PENDING', tax: '2' }),
      line('U1', { payment: 'P1' }),
      line('OLD', { fee: '1' }),
      line('NEW', { status: 'PENDING' }),
      line('NEW', { fee: '3' }),
    ]
    expect(await load(file(...changes))).toEqual({ import: 2, inserted: 1, unchanged: 0, updated: 4 })
    expect(await undo(2)).toEqual({ removed: 1, restored: 2 })
    expect(await stored()).toEqual(before)
    // States that import 2 replaced, and states that its undo removed.
    const { rows } = await db.query(
      'select undone, count(*)::int from settlement_versions group by undone order by undone',
    )
    expect(rows).toEqual([
      { undone: false, count: 2 },
      { undone: true, count: 3 },
    ])
    // An undone file may be imported again.
    expect(await load(file(...changes))).toEqual({ import: 3, inserted: 1, unchanged: 0, updated: 4 })
  })

  it('settlements undo restores the previous acquirer account and value date, and stores the removed state as a version', async () => {
    const csv = file(line('U1', { status: 'PENDING' }), line('U2'), line('U3'))
    const accounts = async (table: string, columns = '') => {
      const { rows } = await db.query<{ row: string }>(
        `select concat_ws(' ', utr, account, value_date${columns}) as row from ${table} order by recorded_at, utr`,
      )
      return rows.map(({ row }) => row)
    }
    const importAs = (account: string) =>
      runOps(url, ['settlements', 'import', '-', '--acquirer', account], csv.replace('PENDING', 'SUCCESS'))
    await load(csv)
    const day = toIstDay(new Date())
    expect((await importAs('setu:acme')).stdout).toBe('Import 2: 0 inserted, 0 unchanged, 3 updated.\n')
    expect(await accounts('settlements')).toEqual([`U1 setu:acme ${day}`, 'U2 setu:acme', 'U3 setu:acme'])
    expect(await undo(2)).toEqual({ removed: 0, restored: 3 })
    expect(await accounts('settlements')).toEqual(['U1', 'U2', 'U3'])
    expect(await accounts('settlement_versions', ', undone')).toEqual([
      ...['U1 f', 'U2 f', 'U3 f', `U1 setu:acme ${day} t`, 'U2 setu:acme t', 'U3 setu:acme t'],
    ])
    expect((await importAs('cashfree')).stdout).toBe('Import 3: 0 inserted, 0 unchanged, 3 updated.\n')
    expect(await accounts('settlements')).toEqual([`U1 cashfree ${day}`, 'U2 cashfree', 'U3 cashfree'])
  })

  it('settlements undo succeeds once among concurrent calls, and reports to the other calls when and by whom the import was undone', async () => {
    await load(file(line('U1')))
    const results = await Promise.all(['a', 'b', 'c', 'd'].map((person) => undo(1, person)))
    const { undoneBy } = (await listImports(db, {}))[0] ?? {}
    expect(results.filter((result) => 'removed' in result)).toEqual([{ removed: 1, restored: 0 }])
    const errors = results.filter((result) => 'rejected' in result)
    expect(errors).toEqual(Array(3).fill({ rejected: 'undone', at: LATER, by: undoneBy }))
  })

  it('settlements undo runs wholly before or wholly after a concurrent import of the same rows', async () => {
    const rows = Array.from({ length: 2_000 }, (_, index) => line(`U${index}`))
    await load(file(...rows))
    const [undone, again] = await Promise.all([undo(1), load(file(...rows))])
    expect(undone).toEqual({ removed: rows.length, restored: 0 })
    const isBefore = again.inserted > 0
    const counts = isBefore ? { inserted: rows.length, unchanged: 0 } : { inserted: 0, unchanged: rows.length }
    expect(again).toEqual({ import: 2, ...counts, updated: 0 })
    expect(await stored()).toHaveLength(isBefore ? rows.length : 0)
  })
})
