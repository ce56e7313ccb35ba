import { readFile } from 'node:fs/promises'
import { beforeAll, expect, it } from 'vitest'
import type { Database } from '../../src/platform/db/pool.ts'
import { toPaise } from '../../src/platform/money.ts'
import { createTestDatabase } from '../support/database.ts'
import { opsAtNoon } from '../support/ops.ts'
import { storePaidOrder } from '../support/paid-orders.ts'
import { importRows, istMoment } from './rows.ts'

let url: string
let db: Database
let guide: string

const { opsOn, jsonOn } = opsAtNoon(() => url)

/** Returns the cells of the rows of the guide's table below this heading. */
const rowsBelow = (heading: string) =>
  (guide.split(heading)[1] ?? '')
    .split('\n\n')[0]
    ?.split('\n')
    .slice(2)
    .map((line) =>
      line
        .split('|')
        .map((cell) => cell.trim())
        .slice(1, -1),
    ) ?? []

/** Stores what the guide's table of payments and its commands describe. */
beforeAll(async () => {
  ;({ url, db } = await createTestDatabase())
  guide = await readFile('src/docs/guides/operator/fees.md', 'utf8')
  const add = [
    'merchants',
    'add',
    '--mid',
    'M1',
    '--name',
    'Chai Point',
    '--vpa',
    'chaipoint@examplebank',
    '--mcc',
    '5814',
  ]
  await jsonOn('2026-04-01', ...add, '--dynamic-qr', 'link', '--acquirer', 'direct')
  const rates = guide.match(/^ops fees add .*$/gm) ?? []
  expect(rates).toHaveLength(3)
  for (const command of rates) await jsonOn('2026-04-01', ...command.split(' ').slice(1))
  const rows = rowsBelow('| paid on | instrument ')
  expect(rows).toHaveLength(6)
  for (const [index, [paidOn = '', instrument, amount = '', day = '', fee = '', tax = '']] of rows.entries()) {
    const utr = `52350487040${index}`
    await storePaidOrder(db, {
      mid: 'M1',
      utr,
      paidAt: istMoment(paidOn, '12:00:00'),
      rupees: Number(amount),
      acquirer: 'cashfree',
    })
    await db.query('update payments set instrument = $1 where utr = $2', [instrument, utr])
    const charged = { fee: toPaise(fee), tax: toPaise(tax) }
    const row = { mid: 'M1', utr, day, amount: toPaise(amount) - charged.fee - charged.tax, ...charged }
    await importRows(db, [row], istMoment(day, '20:00:00'), 'cashfree')
  }
})

it('the commands of the chapter print what the guide shows', async () => {
  const blocks = [...guide.matchAll(/```sh\nops (.*)\n```\n\n```text\n([^`]*)```/g)]
  expect(blocks).toHaveLength(3)
  for (const [, command = '', shown] of blocks) {
    const { stdout } = await opsOn('2026-11-05', ...command.split(' '))
    expect(
      stdout.replaceAll(/ +$/gm, '').replaceAll(/\b[0-9a-f]{32}\b/g, '019aa0b1c2d3e4f5a6b7c8d9e0f1a2b3'),
      command,
    ).toBe(shown)
  }
})

it('the ledger of the account is 0.00 after the invoices of the guide', async () => {
  const { postings } = await jsonOn('2026-11-30', 'reconcile', 'journal', '--from', '2026-09-01', '--to', '2026-11-30')
  const charged = (month: string) =>
    postings
      .filter(({ ledger, date }: Record<string, string>) => ledger === 'cashfree charges' && date?.startsWith(month))
      .reduce(
        (sum: number, { debit, credit }: Record<string, string>) => sum + toPaise(debit ?? '') - toPaise(credit ?? ''),
        0,
      )
  const entries = rowsBelow('| date | entry |')
  let balance = 0
  for (const [date = '', entry = '', debit = '', credit = '', shown = ''] of entries) {
    if (entry.startsWith('charges')) expect(toPaise(debit), entry).toBe(charged(date.slice(0, 7)))
    balance += toPaise(debit || '0') - toPaise(credit || '0')
    expect(balance, entry).toBe(toPaise(shown.replace('−', '-')))
  }
  expect([entries.length, balance]).toEqual([4, 0])
})
