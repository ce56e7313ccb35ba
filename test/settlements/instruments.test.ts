import { PassThrough } from 'node:stream'
import { beforeAll, describe, expect, it } from 'vitest'
import { importSettlements } from '../../src/books/settlements/import.ts'
import { type Database, inTransaction, type Queryable } from '../../src/platform/db/pool.ts'
import { newUtr } from '../support/acquirer.ts'
import { createTestDatabase } from '../support/database.ts'
import { asRole } from '../support/database-url.ts'
import { runOps } from '../support/ops.ts'
import { storePaidOrder } from '../support/paid-orders.ts'
import { newMerchant } from '../support/service.ts'

let url: string
let db: Database
let mid: string

beforeAll(async () => {
  ;({ url, db } = await createTestDatabase())
  ;({ mid } = await newMerchant(db))
})

const pay = async (of = mid, utr = newUtr()) => {
  await storePaidOrder(db, { mid: of, utr, paidAt: new Date('2026-11-01T10:00:00Z') })
  return utr
}

const HEADER = 'mid,amount,utr,bank_reference_number,status,initiation_date,payment_utr,instrument'
const lineOf = (utr: string, instrument: string, { own = utr, amount = '10', status = 'SUCCESS' } = {}) =>
  [mid, amount, own, 'BRN1', status, '2026-11-02 10:00:00', utr, instrument].join()
/** Imports lines as the console does. Returns the number of the import. */
async function imported(...lines: string[]): Promise<string> {
  const command = ['settlements', 'import', '-', '--json']
  const { code, stdout } = await runOps(asRole(url, 'upi_console'), command, [HEADER, ...lines, ''].join('\n'))
  expect(code).toBe(0)
  return String(JSON.parse(stdout).import)
}

async function instrumentOf(utr: string, of = mid) {
  const { rows } = await db.query('select instrument from payments where mid = $1 and utr = $2', [of, utr])
  return rows[0].instrument
}

/** The words for each instrument, separated by commas. */
const WORDS = {
  'bank account': 'bank account,BANK_ACCOUNT,Savings,CURRENT,account',
  'credit card': 'credit card,CREDIT,credit_card,RuPay Credit Card,UPI_CREDIT_CARD',
  wallet: 'wallet,WALLET,UPI_WALLET_FULFILMENT,ppi,upi_ppi,UPI_PPI_OFFLINE',
  'credit line': 'credit line,CREDIT_LINE,upi_credit_line',
  '': 'UPI,UPI_FULFILMENT,PG_CC_FULFILMENT,DEBIT_CARD,unknown,credit note,-,',
}

describe('the column instrument of a settlement file', () => {
  it('adds the instrument to the payment, in the words of any acquirer', async () => {
    const words = Object.entries(WORDS).flatMap(([instrument, all]) => all.split(',').map((word) => [word, instrument]))
    const utrs = await Promise.all(words.map(() => pay()))
    await imported(...words.map(([word = ''], index) => lineOf(utrs[index] as string, word)))
    const stored = await Promise.all(utrs.map(async (utr) => (await instrumentOf(utr)) ?? ''))
    expect(words.map(([word], index) => [word, stored[index]])).toEqual(words)
  })

  it.each([
    ['lines that agree, whatever a deduction states', 'wallet', ['wallet', 'ppi', 'UPI'], ['savings']],
    ['lines that contradict each other', null, ['wallet', 'savings'], []],
    ['a deduction', null, [], ['wallet']],
  ])('reads %s of a payment as %s', async (_what, instrument, words, deducted) => {
    const utr = await pay()
    await imported(
      ...words.map((word, index) => lineOf(utr, word, { own: `${utr}L${index}` })),
      ...deducted.map((word, index) => lineOf(utr, word, { own: `${utr}D${index}`, amount: '-1' })),
    )
    expect(await instrumentOf(utr)).toBe(instrument)
  })

  it('is not read from a line that failed or is pending', async () => {
    const utrs = await Promise.all(['FAILED', 'PENDING'].map(() => pay()))
    await imported(...['FAILED', 'PENDING'].map((status, index) => lineOf(utrs[index] as string, 'wallet', { status })))
    for (const utr of utrs) expect(await instrumentOf(utr)).toBeNull()
  })

  it('locks the payments of its lines only at the end of the import', async () => {
    const utr = await pay()
    const [first = '', ...batch] = [
      lineOf(utr, 'wallet'),
      ...Array.from({ length: 10_000 }, (_, at) => lineOf(`Z${at}`, '')),
    ]
    const csv = new PassThrough()
    csv.write([HEADER, first, ...batch, ''].join('\n'))
    let learned: Promise<unknown> | undefined
    const learn = (client: Queryable) =>
      client.query('update payments set learned_at = now() where mid = $1 and utr = $2', [mid, utr])
    const onProgress = () => {
      learned ??= inTransaction(db, async (client) => {
        await client.query(`set local lock_timeout = '2s'`)
        return (await learn(client)).rowCount
      })
        .catch(String)
        .finally(() => csv.end())
    }
    const importing = { now: new Date('2026-11-03T10:00:00Z'), person: 'test', file: 'payouts.csv', onProgress }
    await inTransaction(db, (client) => importSettlements(client, csv, importing))
    expect(await learned).toBe(1)
    expect(await instrumentOf(utr)).toBe('wallet')
  })

  it('is read from the column of a layout', async () => {
    const utr = await pay()
    const columns = 'amount=Net,utr=Ref,bank_reference_number=Payout,initiation_date=Day,instrument=Paid By'.split(',')
    const flags = ['--name', 'acme', '--mid', mid, '--date', 'dd/mm/yyyy', '--status', 'SUCCESS']
    const layout = ['settlements', 'layout', 'add', ...flags, ...columns.flatMap((column) => ['--column', column])]
    expect(await runOps(url, layout)).toMatchObject({ code: 0 })
    const csv = `Net,Ref,Payout,Day,Paid By\n200.00,${utr},BRN2,02/11/2026,RuPay Credit Card\n`
    expect(await runOps(url, ['settlements', 'import', '-', '--layout', 'acme'], csv)).toMatchObject({ code: 0 })
    expect(await instrumentOf(utr)).toBe('credit card')
  })

  it('adds the instrument once, to the payment of the line’s merchant only, and an undo leaves it', async () => {
    const utr = await pay()
    const other = await newMerchant(db)
    await pay(other.mid, utr)
    await imported(lineOf(utr, ''))
    const own = `${utr}L1`
    const undo = ['settlements', 'undo', '--import', await imported(lineOf(utr, 'wallet', { own }))]
    expect(await runOps(url, undo)).toMatchObject({ code: 0 })
    await imported(lineOf(utr, 'savings', { own }))
    expect([await instrumentOf(utr), await instrumentOf(utr, other.mid)]).toEqual(['wallet', null])
  })
})
