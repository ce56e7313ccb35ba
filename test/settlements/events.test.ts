import { beforeAll, describe, expect, it } from 'vitest'
import type { Database } from '../../src/platform/db/pool.ts'
import { createTestDatabase } from '../support/database.ts'
import { runOps } from '../support/ops.ts'
import { newMerchant, unique } from '../support/service.ts'

let url: string
let db: Database
let mid: string

beforeAll(async () => {
  ;({ url, db } = await createTestDatabase())
  ;({ mid } = await newMerchant(db))
})

const eventsOf = async (...utrs: string[]) => {
  const { rows } = await db.query('select event from settlements where utr = any ($1) order by utr', [utrs])
  return rows.map(({ event }) => event)
}

const importFile = (header: string, lines: string[], ...args: string[]) =>
  runOps(url, ['settlements', 'import', '-', ...args], [header, ...lines, ''].join('\n'))

const HEADER = 'mid,amount,utr,bank_reference_number,status,initiation_date,event'
const lineOf = (utr: string, amount: string, event: string) =>
  [mid, amount, utr, 'BRN1', 'SUCCESS', '2026-11-02 10:00:00', event].join()

describe('the event of a settlement line', () => {
  it.each([
    ['PAYMENT', 'payment'],
    ['Sale', 'payment'],
    ['REFUND', 'refund'],
    ['REFUND_REVERSAL', 'other'],
    ['Dispute', 'dispute'],
    ['CHARGEBACK', 'dispute'],
    ['PRE_ARBITRATION', 'dispute'],
    ['CHARGEBACK_REVERSE', 'dispute reversal'],
    ['dispute reversal', 'dispute reversal'],
    ['OTHER_ADJUSTMENT', 'other'],
    ['UPI Collect', null],
    ['Reversal', null],
    ['', null],
  ])('is read from the word "%s" as %s', async (word, event) => {
    const utr = unique('L').replace(/\W/g, '')
    expect(await importFile(HEADER, [lineOf(utr, '10', word)])).toMatchObject({ code: 0, stderr: '' })
    expect(await eventsOf(utr)).toEqual([event])
  })

  it('is read from the column of a layout', async () => {
    const columns = {
      amount: 'Net',
      utr: 'Ref',
      bank_reference_number: 'Payout',
      initiation_date: 'Day',
      event: 'Type',
    }
    const added = await runOps(url, [
      ...[
        'settlements',
        'layout',
        'add',
        '--name',
        'acme',
        '--mid',
        mid,
        '--date',
        'dd/mm/yyyy',
        '--status',
        'SUCCESS',
      ],
      ...Object.entries(columns).flatMap(([ours, theirs]) => ['--column', `${ours}=${theirs}`]),
    ])
    expect(added).toMatchObject({ code: 0 })
    const lines = ['-200.00,E91,BRN2,02/11/2026,Chargeback', '200.00,E92,BRN3,03/11/2026,Chargeback reversed']
    const imported = await importFile('Net,Ref,Payout,Day,Type', lines, '--layout', 'acme')
    expect(imported).toMatchObject({ code: 0, stderr: '' })
    expect(await eventsOf('E91', 'E92')).toEqual(['dispute', 'dispute reversal'])
  })

  it('is added by a later file, which can be undone, and never replaced', async () => {
    await importFile(HEADER, [lineOf('E81', '-50', '')])
    expect(JSON.parse((await importFile(HEADER, [lineOf('E81', '-50', 'DISPUTE')], '--json')).stdout)).toMatchObject({
      ...{ inserted: 0, updated: 1 },
    })
    expect(await eventsOf('E81')).toEqual(['dispute'])
    const { code, stderr } = await importFile(HEADER, [lineOf('E81', '-50', 'REFUND')])
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining('stored with another event') })
    const { rows } = await db.query('select max(import_id) as id from settlement_imports')
    expect(await runOps(url, ['settlements', 'undo', '--import', String(rows[0].id)])).toMatchObject({ code: 0 })
    expect(await eventsOf('E81')).toEqual([null])
  })
})
