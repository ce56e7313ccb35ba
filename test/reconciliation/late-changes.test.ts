import { beforeAll, describe, expect, it } from 'vitest'
import { findOpen } from '../../src/books/closing/open-discrepancies.ts'
import type { Discrepancy } from '../../src/books/ledger/discrepancies.ts'
import { readMerchant } from '../../src/books/reading/merchant.ts'
import { readSnapshot } from '../../src/books/reading/snapshot.ts'
import { type JournalLine, journalOf } from '../../src/books/reports/journal.ts'
import { enterResolution } from '../../src/books/reports/resolutions.ts'
import { undoImport } from '../../src/books/settlements/imports.ts'
import { importMatches } from '../../src/books/settlements/match-references.ts'
import { createDisputes } from '../../src/gateway/disputes/record-dispute.ts'
import { type Database, inTransaction } from '../../src/platform/db/pool.ts'
import { createTestDatabase } from '../support/database.ts'
import { readAll } from '../support/findings.ts'
import { opsAtNoon } from '../support/ops.ts'
import { storePaidOrder } from '../support/paid-orders.ts'
import { newMerchant } from '../support/service.ts'
import { importRows, istMoment, type Row } from './rows.ts'

const at = (day: string, time = '12:00:00') => istMoment(day, time)
const CLOSED_ON = '2026-11-04'
const CLOSED_AT = at(CLOSED_ON)
const MOMENTS = {
  'in the second before the close': new Date(CLOSED_AT.getTime() - 1_000),
  'in the second after the close': new Date(CLOSED_AT.getTime() + 1_000),
  'weeks after the close': at('2026-11-20'),
}
const IMPORTED_AT = at('2026-10-06', '20:00:00')
const OCTOBER = { from: '2026-10-01', to: '2026-10-31' }
const NOVEMBER = { from: '2026-11-01', to: '2026-11-30' }

type Merchant = { db: Database; mid: string; number: string; fileId: number; orderId: string; exceptionId: string }
type Change = (merchant: Merchant, now: Date) => Promise<unknown>

const importAt = ({ db, mid }: Pick<Merchant, 'db' | 'mid'>, row: Partial<Row> & { utr: string }, now: Date) =>
  importRows(db, [{ mid, amount: 200_00, day: '2026-10-06', ...row }], now, 'setu:acme')

const matchAt = ({ db }: Merchant, now: Date) =>
  inTransaction(db, (client) => importMatches(client, { now, person: 'asha' }))

/** Each change concerns October, but for the return of a refund, which is a movement of its own day. */
const CHANGES: Record<string, Change> = {
  'an undo': ({ db, fileId }, now) =>
    inTransaction(db, (client) => undoImport(client, fileId, { now, person: 'asha' })),
  'a fee that becomes known': (merchant, now) =>
    importAt(merchant, { utr: `S${merchant.number}`, fee: 4_00, tax: 72 }, now),
  'a line that failed': (merchant, now) => importAt(merchant, { utr: `S${merchant.number}`, status: 'FAILED' }, now),
  'a resolution': async ({ db, mid }, now) => {
    const found: Discrepancy[] = []
    await readSnapshot(db, now, async (snapshot) => {
      const merchant = await readMerchant(snapshot, mid)
      await findOpen(merchant, { closed: undefined, to: OCTOBER.to }, (open) => found.push(...open))
    })
    const missing = found.find(({ kind }) => kind === 'missing settlement') as Discrepancy
    await enterResolution(db, missing, { reason: 'lost', as: 'chargeback', by: 'asha', now })
  },
  'a resolved exception': ({ db, mid, exceptionId }, now) =>
    db.query(`insert into payment_resolutions values ($1, $2, 'refunded by hand', 'asha', $3)`, [
      mid,
      exceptionId,
      now,
    ]),
  'a bank reference': async (merchant, now) => {
    const { db, mid, number } = merchant
    await db.query(`update payments set bank_reference = $3, bank_reference_at = $4 where mid = $1 and utr = $2`, [
      mid,
      `B${number}`,
      `52350487${number}`,
      now,
    ])
    await matchAt(merchant, now)
  },
  'a payment of an unknown line': async (merchant, now) => {
    const { db, mid, number } = merchant
    await storePaidOrder(db, {
      mid,
      utr: `U${number}`,
      paidAt: at('2026-10-05'),
      reportedAt: now,
      acquirer: 'cashfree',
    })
    await matchAt(merchant, now)
  },
  'a dispute of a deduction, and its loss': async ({ db, number, orderId }, now) => {
    const report = { id: `D${number}`, orderId, statedAt: at('2026-10-20'), status: 'lost', amount: 50_00 } as const
    await createDisputes(db).record('setu:acme', report, { source: 'asha', now: () => now })
  },
  'a returned refund': ({ db, mid }, now) =>
    db.query(`insert into refund_returns values ($1, $1 || 'R', 'RET1', 'account closed', 'asha', $2)`, [mid, now]),
}

const CASES = Object.keys(CHANGES).flatMap((change) => Object.keys(MOMENTS).map((moment) => ({ change, moment })))

/**
 * Stores an October for each case: a paid order, one without a line, and lines that a later report or payment will
 * name. A file of several merchants has the lines, but for the file that will be undone.
 */
async function storeOctobers(db: Database): Promise<Merchant[]> {
  const merchants: Merchant[] = []
  for (const [index, { change }] of CASES.entries()) {
    const { mid } = await newMerchant(db)
    const number = String(1_000 + index)
    const pay = (utr: string, day: string, acquirer = 'setu:acme') =>
      storePaidOrder(db, { mid, utr, paidAt: at(day), acquirer })
    const orderId = await pay(`S${number}`, '2026-10-05')
    await pay(`M${number}`, '2026-10-12')
    await pay(`B${number}`, '2026-10-05', 'cashfree')
    const fileId = change === 'an undo' ? await importAt({ db, mid }, { utr: `Z${number}` }, IMPORTED_AT) : 0
    const { rows } = await db.query(
      `insert into payment_exceptions (status, mid, order_id, kind, utr, amount_paise, paid_at, received_at)
       values ('SUCCESS', $1, $2, 'double payment', $3, 20000, $4, $4) returning exception_id`,
      [mid, orderId, `X${number}`, at('2026-10-05')],
    )
    await db.query(
      `insert into refunds (mid, refund_id, our_refund_id, order_id, utr, amount_paise, note, acquirer, created_by, created_at, status, ended_at)
       values ($1, 'R', $1 || 'R', $2, $3, 5000, '', 'direct', 'merchant', $4, 'SUCCESS', $4)`,
      [mid, orderId, `S${number}`, at('2026-10-07')],
    )
    merchants.push({ db, mid, number, fileId, orderId, exceptionId: rows[0].exception_id })
  }
  const common = { amount: 200_00, day: '2026-10-06' }
  const lines = merchants.flatMap(({ mid, number, fileId }) => [
    ...['S', 'X', '52350487', ...(fileId === 0 ? ['Z'] : [])].map((name) => ({ ...common, mid, utr: name + number })),
    { ...common, mid, utr: `E${number}`, event: 'DISPUTE', paymentUtr: `S${number}`, amount: -50_00 },
  ])
  await importRows(db, lines, IMPORTED_AT, 'setu:acme')
  await importRows(
    db,
    merchants.map(({ mid, number }) => ({ ...common, mid, utr: `U${number}` })),
    IMPORTED_AT,
  )
  return merchants
}

const NOW = at('2026-12-10')

let url: string
let db: Database
/** A database with the same facts and changes, whose months are never closed. */
let unclosed: Database
const mids = new Map<string, Record<'closed' | 'unclosed', string>>()
const keyOf = ({ change, moment }: { change: string; moment: string }) => `${change} ${moment}`
const { opsOn } = opsAtNoon(() => url, ['reconcile'])
let printed: { october: string; november: string }

const printOctober = async (day: string) => (await opsOn(day, 'journal', '--month', '2026-10', '--csv')).stdout
const printNovember = async (day: string) => (await opsOn(day, 'journal', '--month', '2026-11', '--csv')).stdout

beforeAll(async () => {
  const created = await createTestDatabase()
  ;({ url, db } = created)
  unclosed = (await createTestDatabase()).db
  const [merchants, same] = [await storeOctobers(db), await storeOctobers(unclosed)]
  const pairs = CASES.map((one, index) => ({ one, merchants: [merchants[index], same[index]] as Merchant[] }))
  for (const { one, merchants } of pairs)
    mids.set(keyOf(one), { closed: merchants[0]?.mid as string, unclosed: merchants[1]?.mid as string })
  const changeAll = async (isIncluded: (moment: Date) => boolean) => {
    for (const { one, merchants } of pairs) {
      const moment = MOMENTS[one.moment as keyof typeof MOMENTS]
      if (isIncluded(moment)) for (const merchant of merchants) await CHANGES[one.change]?.(merchant, moment)
    }
  }
  const close = async (day: string, month: string) =>
    expect(await opsOn(day, 'close', '--month', month)).toMatchObject({ code: 0 })
  await changeAll((moment) => moment <= CLOSED_AT)
  await close(CLOSED_ON, '2026-10')
  const { rows } = await db.query('select closed_at from closed_months')
  expect(rows).toEqual([{ closed_at: CLOSED_AT }])
  const october = await printOctober(CLOSED_ON)
  await changeAll((moment) => moment > CLOSED_AT)
  await close('2026-12-03', '2026-11')
  printed = { october, november: await printNovember('2026-12-03') }
}, 120_000)

const journal = async (of: Database, days: { from: string; to: string }, mid: string): Promise<JournalLine[]> =>
  (await readAll(journalOf(of, { ...days, mid, now: NOW, charges: 'split' }))) as JournalLine[]

/** Returns the balance of each ledger. */
function balancesOf(lines: readonly JournalLine[]): Record<string, number> {
  const sums: Record<string, number> = {}
  for (const { ledger, debit, credit } of lines) sums[ledger] = (sums[ledger] ?? 0) + debit - credit
  return Object.fromEntries(
    Object.entries(sums)
      .filter(([, sum]) => sum !== 0)
      .sort(),
  )
}

it('ops reconcile journal prints the same bytes of a closed month after each change', async () => {
  expect(printed.october.split('\n').length).toBeGreaterThan(CASES.length * 10)
  for (const day of ['2026-11-21', '2026-12-10']) expect(await printOctober(day)).toBe(printed.october)
  expect(await printNovember('2026-12-10')).toBe(printed.november)
})

describe.each(CASES)('$change that is recorded $moment', (one) => {
  const isLate = MOMENTS[one.moment as keyof typeof MOMENTS] > CLOSED_AT && one.change !== 'a returned refund'

  it('is posted once, in the first month that was open then', async () => {
    const { closed, unclosed: same } = mids.get(keyOf(one)) as Record<'closed' | 'unclosed', string>
    const [october, november] = [await journal(db, OCTOBER, closed), await journal(db, NOVEMBER, closed)]
    const late = november.filter(({ originalDay }) => originalDay !== null)
    expect(october.filter(({ originalDay }) => originalDay !== null)).toEqual([])
    expect(late.length > 0).toBe(isLate)
    for (const { date, originalDay, voucherId } of late) {
      expect([date, voucherId]).toEqual(['2026-11-30', expect.stringMatching(/^[RPFDX]L261130-[A-Z2-7]{16}$/)])
      expect(originalDay).toMatch(/^2026-10-/)
    }
    const both = await journal(unclosed, { from: OCTOBER.from, to: NOVEMBER.to }, same)
    expect(balancesOf([...october, ...november])).toEqual(balancesOf(both))
    if (!isLate) {
      expect(balancesOf(october)).toEqual(balancesOf(await journal(unclosed, OCTOBER, same)))
    }
    expect(await journal(db, { from: '2026-12-01', to: '2026-12-31' }, closed)).toEqual([])
  })
})
