import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Database, inTransaction } from '../../src/db/pool.ts'
import { importSettlements } from '../../src/settlements/import.ts'
import { listImports, undoImport } from '../../src/settlements/imports.ts'
import { createSettlements } from '../../src/settlements/settlements.ts'
import { createTestDatabase, testPool } from '../support/database.ts'
import { runOps } from '../support/ops.ts'
import { newMerchant } from '../support/service.ts'

const COLUMNS = 'mid,amount,utr,bank_reference_number,status,initiation_date,fee,tax,payment_utr'
const NOW = new Date('2026-02-01T00:00:00Z')
const LATER = new Date('2026-02-02T00:00:00Z')

let url: string
let db: Database
let drop: () => Promise<void>
let mid: string

beforeAll(async () => {
  ;({ url, drop } = await createTestDatabase())
  db = testPool(url, 5)
})
afterAll(async () => {
  await db.end()
  await drop()
})
beforeEach(async () => {
  await db.query('truncate settlements, settlement_updates, settlement_imports, settlement_import_bases')
  ;({ mid } = await newMerchant(db))
})

type Line = { amount?: string; bank?: string; status?: string; fee?: string; tax?: string; payment?: string }

const line = (utr: string, { amount = '10.00', bank = 'B1', status = 'SUCCESS', fee, tax, payment }: Line = {}) =>
  [mid, amount, utr, bank, status, '2026-01-01 09:00:00', fee ?? '', tax ?? '', payment ?? ''].join(',')

const file = (...lines: string[]) => [COLUMNS, ...lines, ''].join('\n')

const load = (csv: string, name = 'day.csv') =>
  inTransaction(db, (client) =>
    importSettlements(client, Readable.from([csv]), { now: NOW, person: 'asha', file: name }),
  )

const undo = (importId: number, person = 'ravi') =>
  inTransaction(db, (client) => undoImport(client, importId, { now: LATER, person }))

/** The whole table but what every row of these tests has. */
async function stored() {
  const { rows } = await db.query<Record<string, unknown>>(
    `select utr, amount::text, status, fee::text, tax::text, payment_utr as payment, import_id as import
       from settlements order by utr`,
  )
  return rows
}

const row = (utr: string, values: Record<string, unknown>) => ({
  ...{ utr, amount: '10.00', status: 'SUCCESS', fee: null, tax: null, payment: null, import: 1 },
  ...values,
})

describe('fee, tax and payment_utr', () => {
  it('are kept to the last digit', async () => {
    await load(file(line('U1', { fee: '4', tax: '0.72', payment: 'hdfc01' })))
    expect(await stored()).toEqual([row('U1', { fee: '4.00', tax: '0.72', payment: 'HDFC01' })])
  })

  it('are filled in by a file that says more, once, and a file that says less changes nothing', async () => {
    await load(file(line('U1'), line('U2', { status: 'PENDING', fee: '1' })))
    const more = file(line('U1', { fee: '4.00', tax: '0', payment: 'P1' }), line('U2', { tax: '0.18' }))
    expect(await load(more)).toEqual({ import: 2, inserted: 0, unchanged: 0, updated: 2 })
    expect(await load(more)).toEqual({ import: 3, inserted: 0, unchanged: 2, updated: 0 })
    expect(await load(file(line('U1'), line('U2')))).toEqual({ import: 4, inserted: 0, unchanged: 2, updated: 0 })
    expect(await stored()).toEqual([
      row('U1', { fee: '4.00', tax: '0.00', payment: 'P1', import: 2 }),
      row('U2', { fee: '1.00', tax: '0.18', import: 2 }),
    ])
  })

  it('that differ from what is known are faults of their line, also within one file', async () => {
    await load(file(line('U1', { fee: '4', tax: '1', payment: 'P1' }), line('U2')))
    const contradicting = load(
      file(
        line('U1', { fee: '4.01' }),
        line('U1', { amount: '9', tax: '2', payment: 'P2' }),
        line('U2', { fee: '1' }),
        line('U2', { fee: '2' }),
      ),
    )
    await expect(contradicting).rejects.toMatchObject({
      faults: [
        { line: 2, text: 'this mid and utr are known with another fee' },
        {
          line: 3,
          text: 'this mid and utr are known with another amount and tax and payment_utr: each row needs a utr of its own',
        },
        { line: 5, text: 'this mid and utr are known with another fee' },
      ],
    })
  })

  it('of the payments of one payout need a utr for each row, as the fault says', async () => {
    const both = load(file(line('OUT1', { payment: 'P1' }), line('OUT1', { payment: 'P2' })))
    const fault = 'this mid and utr are known with another payment_utr: each row needs a utr of its own'
    await expect(both).rejects.toMatchObject({ faults: [{ line: 3, text: fault }] })
  })

  it('of several lines about one settlement are put together in the order of the file', async () => {
    const lines = [
      line('U1', { status: 'PENDING' }),
      line('U1', { status: 'PENDING', fee: '4' }),
      line('U1', { tax: '1' }),
      line('U1', { payment: 'P1' }),
    ]
    expect(await load(file(...lines))).toEqual({ import: 1, inserted: 1, unchanged: 0, updated: 3 })
    expect(await stored()).toEqual([row('U1', { fee: '4.00', tax: '1.00', payment: 'P1' })])
  })

  it('change nothing in the list that partners read', async () => {
    await load(file(line('U1', { fee: '4', tax: '0.72', payment: 'P1' })))
    const list = await createSettlements(db).shortList(mid, new Date('2026-01-01'), new Date('2026-01-02'))
    expect(list?.map((settlement) => Object.keys(settlement))).toEqual([
      ['amount', 'utr', 'bankReferenceNumber', 'status', 'mid', 'initiatedAt', 'createdAt'],
    ])
  })
})

describe('every import', () => {
  it('is written down with its file, also when nothing is new; a refused one is not', async () => {
    const csv = file(line('U1'))
    const sha256 = createHash('sha256').update(csv).digest('hex')
    await load(csv)
    await load(csv, '-')
    await expect(load(file(line('U1', { amount: '11' })))).rejects.toThrow('1 bad line')
    await load(COLUMNS)
    const one = { at: NOW, person: 'asha', file: 'day.csv', sha256, undoneAt: null, undoneBy: null }
    expect(await listImports(db)).toEqual([
      { ...one, importId: 1, inserted: 1, unchanged: 0, updated: 0 },
      { ...one, importId: 2, file: '-', inserted: 0, unchanged: 1, updated: 0 },
      {
        ...{ ...one, importId: 3, inserted: 0, unchanged: 0, updated: 0 },
        sha256: createHash('sha256').update(COLUMNS).digest('hex'),
      },
    ])
  })

  it('has a number of its own, whoever imports at the same time', async () => {
    const imports = await Promise.all(['A', 'B', 'C', 'D'].map((utr) => load(file(line(utr)))))
    expect(imports.map((one) => one.import).sort()).toEqual([1, 2, 3, 4])
    expect((await listImports(db)).map(({ importId }) => importId)).toEqual([1, 2, 3, 4])
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

  it('is refused while a later import that repeats or changes its rows stands, and names it', async () => {
    await load(file(line('U1', { status: 'PENDING' }), line('U2')))
    await load(file(line('U2'), line('U3')))
    await load(file(line('U1')))
    await load(file(line('U4')))
    expect(await undo(1)).toEqual({ refused: 'built on', builtOn: [2, 3] })
    expect(await undo(3)).toEqual({ removed: 0, restored: 1 })
    expect(await undo(1)).toEqual({ refused: 'built on', builtOn: [2] })
    expect(await undo(2)).toEqual({ removed: 1, restored: 0 })
    expect(await undo(1)).toEqual({ removed: 2, restored: 0 })
    expect(await stored()).toEqual([row('U4', { import: 4 })])
  })

  it('is refused while one stands that repeats what it changed', async () => {
    await load(file(line('U1', { status: 'PENDING' })))
    await load(file(line('U1')))
    await load(file(line('U1')))
    expect(await undo(2)).toEqual({ refused: 'built on', builtOn: [3] })
    expect(await undo(1)).toEqual({ refused: 'built on', builtOn: [2] })
  })

  it('happens once: of several at once one undoes it, and the others are told when and by whom', async () => {
    await load(file(line('U1')))
    const results = await Promise.all(['a', 'b', 'c', 'd'].map((person) => undo(1, person)))
    const { undoneBy } = (await listImports(db))[0] ?? {}
    expect(results.filter((result) => 'removed' in result)).toEqual([{ removed: 1, restored: 0 }])
    const refusals = results.filter((result) => 'refused' in result)
    expect(refusals).toEqual(Array(3).fill({ refused: 'undone', at: LATER, by: undoneBy }))
  })

  it('at the same time as an import that repeats it: one of the two comes first, and the other sees its whole change', async () => {
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

  it('leaves a partner who is reading a long list with the list as it was', async () => {
    const count = 5_000
    await load(file(...Array.from({ length: count }, (_, index) => line(`U${index}`))))
    const { list } = createSettlements(db)
    const batches = list(mid, new Date('2026-01-01'), new Date('2026-01-02'), new AbortController().signal)
    let rows = (await batches.next()).value?.length ?? 0
    expect(await undo(1)).toEqual({ removed: count, restored: 0 })
    for await (const batch of batches) rows += batch.length
    expect(rows).toBe(count)
    expect(await stored()).toEqual([])
  })
})

describe('the commands', () => {
  const fault = (text: string) => ({ code: 1, stdout: '', stderr: `ops: ${text}\n` })

  it('list the imports, and undo one with its trace in the audit', async () => {
    expect(await runOps(url, ['settlements', 'imports'])).toMatchObject({ stdout: 'nothing was imported yet\n' })
    const path = join(tmpdir(), `settlements-of-${mid}.csv`)
    writeFileSync(path, file(line('U1')))
    const imported = await runOps(url, ['settlements', 'import', path, '--by', 'asha'])
    expect(imported).toEqual({ code: 0, stdout: '1 inserted, 0 unchanged, 0 updated: import 1\n', stderr: '' })
    const undone = await runOps(url, ['settlements', 'undo', '--import', '1', '--by', 'ravi', '--json'])
    expect(undone).toEqual({ code: 0, stdout: '{"import":1,"removed":1,"restored":0}\n', stderr: '' })
    const listed = JSON.parse((await runOps(url, ['settlements', 'imports', '--json'])).stdout)
    expect(listed).toEqual([
      {
        ...{ import: 1, at: expect.stringMatching(/Z$/), person: 'asha', file: `settlements-of-${mid}.csv` },
        ...{ sha256: expect.stringMatching(/^[0-9a-f]{64}$/), inserted: 1, unchanged: 0, updated: 0 },
        ...{ undoneAt: expect.stringMatching(/Z$/), undoneBy: 'ravi' },
      },
    ])
    const { stdout } = await runOps(url, ['settlements', 'imports'])
    expect(stdout).toMatch(
      /^import +at +person +file +rows +undone +sha256\n1 +\S+Z +asha +settlements-of-\w+\.csv +1 +\S+Z by ravi +[0-9a-f]{64}\n$/,
    )
    const audit = JSON.parse((await runOps(url, ['audit', '--json'])).stdout)
    expect(audit.at(-1)).toMatchObject({
      ...{ person: 'ravi', command: 'settlements undo', arguments: { import: '1' } },
      ...{ outcome: 'done', detail: { removed: 1, restored: 0 } },
    })
  })

  it('keep no control characters of the name of a file, which a terminal would obey', async () => {
    const path = join(tmpdir(), `\u001b[2J\u202e${mid}\n.csv`)
    writeFileSync(path, file(line('U1')))
    expect(await runOps(url, ['settlements', 'import', path, '--by', 'asha'])).toMatchObject({ code: 0 })
    expect((await listImports(db)).map((one) => one.file)).toEqual([`\ufffd[2J\ufffd${mid}\ufffd.csv`])
  })

  it('say why an import cannot be undone', async () => {
    const ops = (importId: string) => runOps(url, ['settlements', 'undo', '--import', importId])
    await load(file(line('U1')))
    await load(file(line('U1')))
    await load(file(line('U1')))
    await undo(3)
    expect(await ops('7')).toEqual(fault('there is no import 7: see ops settlements imports'))
    expect(await ops('3')).toEqual(fault('import 3 was undone already, at 2026-02-02T00:00:00.000Z by ravi'))
    expect(await ops('1')).toEqual(fault('import 2 repeated or changed settlements of import 1: undo first 2'))
    await load(file(line('U1')))
    expect(await ops('1')).toEqual(fault('imports 2, 4 repeated or changed settlements of import 1: undo first 4'))
    const { code, stderr } = await ops('1.5')
    expect({ code, stderr: stderr.split('\n')[0] }).toEqual({
      ...{ code: 2, stderr: 'ops: --import must be the number of an import, as ops settlements imports shows it' },
    })
  })
})
