import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Database } from '../../src/platform/db/pool.ts'
import { newUtr } from '../support/acquirer.ts'
import { createTestDatabase } from '../support/database.ts'
import { runOps } from '../support/ops.ts'
import { storePaidOrder } from '../support/paid-orders.ts'
import { newMerchant } from '../support/service.ts'

let url: string
let db: Database
let mid: string

beforeAll(async () => {
  ;({ url, db } = await createTestDatabase())
  const columns = ['day=Date', 'reference=Narration', 'debit=Debit', 'credit=Credit', 'balance=Balance']
  const flags = columns.map((column) => `--column=${column}`)
  await runOps(url, ['statements', 'layout', 'add', '--name', 'bank', '--date', 'dd/mm/yyyy', ...flags])
})
beforeEach(async () => {
  ;({ mid } = await newMerchant(db))
})

const row = (utr: string, amount = '10') => `${mid},${amount},${utr},B1,SUCCESS,2026-10-05 10:00:00`
const fileOf = (...rows: string[]) =>
  ['mid,amount,utr,bank_reference_number,status,initiation_date', ...rows, ''].join('\n')
const importFile = (csv: string, ...flags: string[]) => runOps(url, ['settlements', 'import', '-', ...flags], csv)

/** Everything that an import stores, with the audit. */
async function stored() {
  const tables = 'settlements settlement_versions settlement_imports statement_imports statement_lines audit_commands'
  const rows = tables.split(' ').map((table) => db.query(`select count(*)::integer, '${table}' as of from ${table}`))
  return (await Promise.all(rows)).map((one) => one.rows[0])
}

describe('settlements import --dry-run', () => {
  it('prints the result of the import with the settlements of unknown payments, and stores nothing', async () => {
    const [paid, settled] = [newUtr(), newUtr()]
    await storePaidOrder(db, { mid, utr: paid, paidAt: new Date() })
    await importFile(fileOf(row(settled)))
    const before = await stored()
    const csv = fileOf(row(paid), row(newUtr(), '20.50'), row(newUtr(), '-1.50'), row(settled))
    const { code, stdout, stderr } = await importFile(csv, '--dry-run', '--rows', '4')
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(
      /^Import \d+: 3 inserted, ₹29\.00, 1 unchanged, 0 updated, 1 unknown\.\n\nDry run: nothing was stored\.\n$/,
    )
    expect(JSON.parse((await importFile(csv, '--dry-run', '--json')).stdout)).toMatchObject({
      dryRun: true,
      inserted: 3,
      insertedAmount: '29.00',
      unknown: 1,
    })
    expect(await stored()).toEqual(before)
    // The import stores what the dry run announced.
    expect((await importFile(csv)).stdout).toBe(stdout.replace(/, 1 unknown[\s\S]*/, '.\n'))
  })

  it.each([
    ['an invalid line', () => fileOf(row('U-1')), []],
    ['an unexpected number of rows', () => fileOf(row(newUtr())), ['--rows', '2']],
  ])('reports %s as the import does', async (_name, file, flags) => {
    const csv = file()
    const before = await stored()
    const { code, stderr } = await importFile(csv, '--dry-run', ...flags)
    expect(await stored()).toEqual(before)
    expect([code, stderr]).toEqual([1, (await importFile(csv, ...flags)).stderr])
  })
})

it('statements import --dry-run prints the result of the import and its warnings, and stores nothing', async () => {
  const csv = 'Date,Narration,Debit,Credit,Balance\n05/10/2026,NEFT-YESIG63220270133,,10.00,20.00\n'
  const args = ['statements', 'import', '-', '--layout', 'bank', '--mid', mid, '--from', '2026-10-01', '--to']
  const before = await stored()
  const dry = await runOps(url, [...args, '2026-10-31', '--dry-run'], csv)
  expect(await stored()).toEqual(before)
  const real = await runOps(url, [...args, '2026-10-31'], csv)
  expect(dry).toEqual({ ...real, stdout: `${real.stdout}\nDry run: nothing was stored.\n` })
})

it('undo --dry-run prints what undoing would remove and restore, and stores nothing', async () => {
  await importFile(fileOf(row(newUtr())))
  const csv = 'Date,Narration,Debit,Credit,Balance\n05/10/2026,NEFT-YESIG63220270134,,10.00,20.00\n'
  const days = ['--from', '2026-10-01', '--to', '2026-10-31']
  await runOps(url, ['statements', 'import', '-', '--layout', 'bank', '--mid', mid, ...days], csv)
  for (const [kind, flag] of [
    ['settlements', '--import'],
    ['statements', '--statement'],
  ] as const) {
    const { stdout: list } = await runOps(url, [kind, kind === 'settlements' ? 'imports' : 'list', '--json'])
    const { import: importId, statement } = JSON.parse(list).at(-1)
    const undo = [kind, 'undo', flag, String(importId ?? statement)]
    const before = await stored()
    const { code, stdout } = await runOps(url, [...undo, '--dry-run'])
    expect([code, await stored()]).toEqual([0, before])
    expect(stdout).toMatch(/undone: 1 (line )?removed/)
    expect(stdout).toBe(`${(await runOps(url, undo)).stdout}\nDry run: nothing was stored.\n`)
  }
})
