import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Database, inTransaction } from '../../src/db/pool.ts'
import { importSettlements } from '../../src/settlements/import.ts'
import { listImports, undoImport } from '../../src/settlements/imports.ts'
import { createTestDatabase, testPool } from '../support/database.ts'
import { runOps } from '../support/ops.ts'
import { newMerchant } from '../support/service.ts'

const COLUMNS = 'mid,utr,status,fee,tax,payment_utr,amount,bank_reference_number,initiation_date'
const NOW = new Date('2026-02-01T00:00:00Z')
const LATER = new Date('2026-02-02T00:00:00Z')

let url: string
let db: Database
let drop: () => Promise<void>
let mid: string

beforeAll(async () => {
  ;({ url, drop } = await createTestDatabase())
  db = testPool(url, 5)
  // Its connections are open, so that what begins at once runs at once.
  await Promise.all(Array.from({ length: 5 }, () => db.query('select pg_sleep(0.1)')))
})
afterAll(async () => {
  await db.end()
  await drop()
})
beforeEach(async () => {
  await db.query('truncate settlements, settlement_updates, settlement_imports, settlement_import_bases')
  ;({ mid } = await newMerchant(db))
})

type Line = { status?: string; fee?: string; tax?: string; payment?: string; amount?: string }

const line = (utr: string, { status = 'SUCCESS', fee, tax, payment, amount = '10.00' }: Line = {}) =>
  [mid, utr, status, fee, tax, payment, amount, 'B1', '2026-01-01 09:00:00'].join(',')

const file = (...lines: string[]) => [COLUMNS, ...lines, ''].join('\n')

const load = (csv: string) =>
  inTransaction(db, (client) =>
    importSettlements(client, Readable.from([csv]), { now: NOW, person: 'asha', file: 'day.csv' }),
  )

const undo = (importId: number, person = 'ravi') =>
  inTransaction(db, (client) => undoImport(client, importId, { now: LATER, person }))

const ops = (...args: string[]) => runOps(url, ['settlements', ...args])

const fault = (text: string) => ({ code: 1, stdout: '', stderr: `ops: ${text}\n` })

/** The whole table but what every row of these tests has. */
async function stored() {
  const { rows } = await db.query<Record<string, unknown>>(
    `select utr, amount::text, status, fee::text, tax::text, payment_utr as payment, import_id as import
       from settlements order by utr`,
  )
  return rows
}

describe('ops settlements imports and undo', () => {
  it('list every import with its file, even one that brought nothing new, but no refused one', async () => {
    expect(await ops('imports')).toMatchObject({ stdout: 'nothing was imported yet\n' })
    const name = `settlements-of-${mid}.csv`
    const csv = file(line('U1'))
    writeFileSync(join(tmpdir(), name), csv)
    const importAs = (path: string, input = '') => runOps(url, ['settlements', 'import', path, '--by', 'asha'], input)
    const text = '1 inserted, 0 unchanged, 0 updated: import 1\n'
    expect(await importAs(join(tmpdir(), name))).toEqual({ code: 0, stdout: text, stderr: '' })
    expect((await importAs('-', csv)).code).toBe(0)
    expect((await importAs('-', file(line('U1', { amount: '11' })))).code).toBe(1)
    expect((await importAs('-', COLUMNS)).code).toBe(0)
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
      undoneAt: null,
      undoneBy: null,
    }
    expect(JSON.parse((await ops('imports', '--json')).stdout)).toEqual([
      { ...none, import: 1, file: name, sha256, inserted: 1 },
      { ...none, import: 2, sha256, unchanged: 1, undoneAt: at, undoneBy: 'ravi' },
      { ...none, import: 3, sha256: createHash('sha256').update(COLUMNS).digest('hex') },
    ])
    expect((await ops('imports')).stdout).toMatch(
      /^import +at +person +file +rows +undone +sha256\n1 +\S+ \S+ IST +asha +settlements-of-\w+\.csv +1 +- +[0-9a-f]{64}\n2 +\S+ \S+ IST +asha +- +1 +\S+ \S+ IST by ravi +[0-9a-f]{64}\n3 /,
    )
    const audit = JSON.parse((await runOps(url, ['audit', '--json'])).stdout)
    expect(audit.at(-1)).toMatchObject({
      ...{ person: 'ravi', command: 'settlements undo', arguments: { import: '2' } },
      ...{ outcome: 'done', detail: { removed: 0, restored: 0 } },
    })
  })

  it('refuse to undo an import that a later one repeats or changes, and name the later one', async () => {
    await load(file(line('U1', { status: 'PENDING' }), line('U2')))
    await load(file(line('U2'), line('U3')))
    await load(file(line('U1')))
    await load(file(line('U1')))
    await load(file(line('U4')))
    const refused = (importId: number, text: string) =>
      ops('undo', '--import', String(importId)).then((outcome) => expect(outcome).toEqual(fault(text)))
    await refused(1, 'imports 2, 3 repeated or changed settlements of import 1: undo first 3')
    // What it changed is repeated.
    await refused(3, 'import 4 repeated or changed settlements of import 3: undo first 4')
    expect(await undo(4)).toEqual({ removed: 0, restored: 0 })
    expect(await undo(3)).toEqual({ removed: 0, restored: 1 })
    await refused(1, 'import 2 repeated or changed settlements of import 1: undo first 2')
    expect(await undo(2)).toEqual({ removed: 1, restored: 0 })
    expect(await undo(1)).toEqual({ removed: 2, restored: 0 })
    expect((await stored()).map(({ utr, import: of }) => [utr, of])).toEqual([['U4', 5]])
    await refused(1, 'import 1 was undone already, at 2026-02-02 05:30:00 IST by ravi')
    await refused(7, 'there is no import 7: see ops settlements imports')
    const { code, stderr } = await ops('undo', '--import', '1.5')
    expect({ code, stderr: stderr.split('\n')[0] }).toEqual({
      ...{ code: 2, stderr: 'ops: --import must be the number of an import, as ops settlements imports shows it' },
    })
  })
})

describe('undoing an import', () => {
  it('leaves the table as it was before: new rows are gone, and those that it changed are what they were', async () => {
    // Of a version that did not number its imports.
    await db.query(
      `insert into settlements (mid, utr, amount, bank_reference_number, status, initiated_at, created_at)
       values ($1, 'OLD', 10, 'B1', 'PENDING', '2026-01-01 09:00:00+05:30', '2026-01-01')`,
      [mid],
    )
    await load(file(line('U1', { status: 'PENDING', fee: '1' })))
    const before = await stored()
    // Each settlement is changed twice by the one import.
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
    expect((await db.query('select from settlement_updates')).rowCount).toBe(0)
    // And may be imported again.
    expect(await load(file(...changes))).toEqual({ import: 3, inserted: 1, unchanged: 0, updated: 4 })
  })

  it('happens once: of several at once one undoes it, and the others are told when and by whom', async () => {
    await load(file(line('U1')))
    const results = await Promise.all(['a', 'b', 'c', 'd'].map((person) => undo(1, person)))
    const { undoneBy } = (await listImports(db))[0] ?? {}
    expect(results.filter((result) => 'removed' in result)).toEqual([{ removed: 1, restored: 0 }])
    const refusals = results.filter((result) => 'refused' in result)
    expect(refusals).toEqual(Array(3).fill({ refused: 'undone', at: LATER, by: undoneBy }))
  })

  it('happens wholly before or wholly after a simultaneous import of the same rows', async () => {
    const rows = Array.from({ length: 11_000 }, (_, index) => line(`U${index}`))
    await load(file(...rows))
    const [undone, again] = await Promise.all([undo(1), load(file(...rows))])
    expect(await stored()).toHaveLength(rows.length)
    if ('refused' in undone) {
      expect(undone).toEqual({ refused: 'built on', builtOn: [2] })
      expect(again).toEqual({ import: 2, inserted: 0, unchanged: rows.length, updated: 0 })
    } else {
      expect(undone).toEqual({ removed: rows.length, restored: 0 })
      expect(again).toEqual({ import: 2, inserted: rows.length, unchanged: 0, updated: 0 })
    }
  })
})
