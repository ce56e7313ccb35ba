import { Readable } from 'node:stream'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { importSettlements } from '../../src/books/settlements/import.ts'
import { createReports } from '../../src/gateway/payments/reports.ts'
import { type Database, inTransaction } from '../../src/platform/db/pool.ts'
import { newUtr } from '../support/acquirer.ts'
import { createTestDatabase } from '../support/database.ts'
import { runOps } from '../support/ops.ts'
import { storePaidOrder } from '../support/paid-orders.ts'
import { newMerchant, unique } from '../support/service.ts'
import { until } from '../support/wait.ts'

// Rows of 6 October settle payments of 5 October. One payment is stored under the acquirer's id, and its row has the RRN.

const OCTOBER = ['--from', '2026-10-01', '--to', '2026-10-31']
const HEADER = 'mid,amount,utr,bank_reference_number,status,initiation_date,payment_utr'

let url: string
let db: Database
let mid: string

// Each test needs its own database, because imports are numbered and match rows of all merchants.
beforeEach(async () => {
  ;({ url, db } = await createTestDatabase())
  ;({ mid } = await newMerchant(db))
})

const at = (day: string) => new Date(`${day}T12:00:00+05:30`)

async function opsOn(day: string, args: string[], input = '') {
  vi.useFakeTimers({ toFake: ['Date'], now: at(day) })
  try {
    return await runOps(url, args, input)
  } finally {
    vi.useRealTimers()
  }
}

async function jsonOn(day: string, args: string[], input?: string) {
  const { code, stdout, stderr } = await opsOn(day, [...args, '--json'], input)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return JSON.parse(stdout)
}

type Line = { utr: string; of?: string; amount?: string; status?: string; paymentUtr?: string }

const csv = (...lines: Line[]) =>
  [
    HEADER,
    ...lines.map(({ utr, of = mid, amount = '200.00', status = 'SUCCESS', paymentUtr = '' }) =>
      [of, amount, utr, 'BRN', status, '2026-10-06 11:00:00', paymentUtr].join(),
    ),
    '',
  ].join('\n')

const importOn = (day: string, ...lines: Line[]) => jsonOn(day, ['settlements', 'import', '-'], csv(...lines))

type Paid = { orderId: string; id: string; utr: string }

/** Stores a paid order whose bank reference is unknown, so that the payment's UTR is the acquirer's payment id. */
async function payWithoutReference(of = mid): Promise<Paid> {
  const id = unique('OM')
  const utr = id.replaceAll(/[_-]/g, '').toUpperCase()
  const orderId = await storePaidOrder(db, { mid: of, utr, paidAt: at('2026-10-05') })
  await db.query('update payments set acquirer_payment_id = $3 where mid = $1 and utr = $2', [of, utr, id])
  return { orderId, id, utr }
}

/** Records a repeated notification of the payment, which contains its bank reference. */
const notifyOn = (day: string, { orderId, id }: Paid, rrn: string) => {
  const report = { orderId, status: 'SUCCESS' as const, utr: rrn, amount: 200_00, paidAt: at('2026-10-05') }
  return createReports(db).record({ ...report, names: { id } }, { source: 'notification', now: () => at(day) })
}

const reportOn = (day: string, ...payments: [Paid, string][]) =>
  jsonOn(
    day,
    ['payments', 'import', '-'],
    [
      'order_id,status,utr,amount,paid_at,acquirer_payment_id',
      ...payments.map(([{ orderId, id }, rrn]) => `${orderId},SUCCESS,${rrn},200.00,2026-10-05 12:00:00,${id}`),
      '',
    ].join('\n'),
  )

/** A payment without a bank reference, and the import of a row with its RRN beside a row of another payment. */
async function settledByRrn() {
  const [paid, rrn, other] = [await payWithoutReference(), newUtr(), newUtr()]
  await storePaidOrder(db, { mid, utr: other, paidAt: at('2026-10-05') })
  expect(await importOn('2026-10-06', { utr: rrn }, { utr: other })).toMatchObject({ import: 1, inserted: 2 })
  return { paid, rrn }
}

/** Returns the payments' UTRs of the merchant's rows by the rows' UTRs. */
async function paymentsOfRows(of = mid) {
  const { rows } = await db.query<{ utr: string; payment: string | null }>(
    'select utr, payment_utr as payment from settlements where mid = $1',
    [of],
  )
  return Object.fromEntries(rows.map(({ utr, payment }) => [utr, payment]))
}

/** Returns kind, UTR and cause of each discrepancy in October. */
async function discrepanciesOn(day: string, ...flags: string[]): Promise<string[]> {
  const { merchants } = await jsonOn(day, ['reconcile', ...OCTOBER, '--mid', mid, ...flags])
  return merchants.flatMap(({ differences }: { differences: Record<string, string>[] }) =>
    differences.map(({ kind, utr, cause }) => `${kind} ${utr}: ${cause}`),
  )
}

const unmatched = ({ utr }: Paid, rrn: string) => [
  `missing settlement ${utr}: no settlement line has its UTR; its payout was due on 2026-10-06`,
  `unknown payment ${rrn}: no order and no exception of this merchant has its UTR`,
]
const matching = ({ utr }: Paid, rrn: string) => [
  `missing settlement ${utr}: settlement ${rrn} has its bank reference: import any settlement file`,
  `unknown payment ${rrn}: payment ${utr} has this bank reference: import any settlement file`,
]

describe('a bank reference that becomes known after the settlement row', () => {
  it('settlements import of any file matches the row with the payment that a notification named, and settlements undo restores both discrepancies', async () => {
    const { paid, rrn } = await settledByRrn()
    expect(await discrepanciesOn('2026-10-08')).toEqual(unmatched(paid, rrn))
    await notifyOn('2026-10-09', paid, rrn)
    expect(await discrepanciesOn('2026-10-10')).toEqual(matching(paid, rrn))
    expect(await discrepanciesOn('2026-10-10', '--as-of', '2026-10-08')).toEqual(unmatched(paid, rrn))

    const { mid: of } = await newMerchant(db)
    const imported = await opsOn('2026-10-11', ['settlements', 'import', '-'], csv({ of, utr: newUtr() }))
    expect(imported.stdout).toBe('Import 2: 1 inserted, ₹200.00, 0 unchanged, 0 updated, 1 matched with payments.\n')
    expect(await paymentsOfRows()).toMatchObject({ [rrn]: paid.utr })
    expect(await discrepanciesOn('2026-10-12')).toEqual([])
    expect(await discrepanciesOn('2026-10-12', '--as-of', '2026-10-10')).toEqual(matching(paid, rrn))
    expect(await discrepanciesOn('2026-10-12', '--as-of', '2026-10-08')).toEqual(unmatched(paid, rrn))

    expect((await opsOn('2026-10-12', ['settlements', 'undo', '--import', '1'])).stderr).toBe(
      'ops: import 2 repeated or changed settlements of import 1: undo import 2 first\n',
    )
    const undone = await jsonOn('2026-10-12', ['settlements', 'undo', '--import', '2'])
    expect(undone).toEqual({ import: 2, removed: 1, restored: 1 })
    expect(await discrepanciesOn('2026-10-13')).toEqual(matching(paid, rrn))
    // The import after the undo matches the row again, although the reference has been known for long.
    expect(await importOn('2026-10-13', { of, utr: newUtr() })).toMatchObject({ import: 3, inserted: 1, matched: 1 })
    expect(await discrepanciesOn('2026-10-14')).toEqual([])
    expect(await importOn('2026-10-14', { of, utr: newUtr() })).toMatchObject({ import: 4, matched: 0 })
  })

  it('payments import matches the row with the payment that the report named, as an import of its own', async () => {
    const { paid, rrn } = await settledByRrn()
    expect(await reportOn('2026-10-08', [paid, rrn])).toMatchObject({
      ...{ recorded: 0, unchanged: 1, matched: 1, settlementImport: 2 },
    })
    expect(await discrepanciesOn('2026-10-09')).toEqual([])
    expect(await discrepanciesOn('2026-10-09', '--as-of', '2026-10-07')).toEqual(unmatched(paid, rrn))
    const imports = await jsonOn('2026-10-09', ['settlements', 'imports'])
    expect(imports[1]).toEqual({
      ...{ import: 2, at: at('2026-10-08').toISOString(), person: imports[0].person, file: 'payments import' },
      ...{ sha256: null, inserted: 0, unchanged: 0, updated: 0, matched: 1, amount: '0.00', insertedAmount: '0.00' },
      ...{ undoneAt: null, undoneBy: null },
    })
    const { stdout } = await opsOn('2026-10-09', ['reconcile', ...OCTOBER, '--mid', mid])
    expect(stdout).toContain('Newest settlement file: import 1 of')
    expect(await jsonOn('2026-10-09', ['today'])).toMatchObject({ settlementImport: { file: '-' } })
    expect(await jsonOn('2026-10-09', ['settlements', 'undo', '--import', '2'])).toMatchObject({ restored: 1 })
    expect(await discrepanciesOn('2026-10-09')).toEqual(matching(paid, rrn))
  })

  it('payments import prints the number of matched rows, and creates no import if it matches none', async () => {
    const { paid, rrn } = await settledByRrn()
    const report = `order_id,status,utr,amount,paid_at,acquirer_payment_id\n${paid.orderId},SUCCESS,${rrn},200.00,2026-10-05 12:00:00,${paid.id}\n`
    const recorded = '0 payments recorded, 1 unchanged; exceptions: none'
    expect((await opsOn('2026-10-08', ['payments', 'import', '-'], report)).stdout).toBe(
      `${recorded}; 1 settlement row matched with payments, settlement import 2.\n`,
    )
    expect((await opsOn('2026-10-09', ['payments', 'import', '-'], report)).stdout).toBe(`${recorded}.\n`)
    expect(await reportOn('2026-10-09', [paid, rrn])).toMatchObject({ matched: 0, settlementImport: null })
    expect(await jsonOn('2026-10-09', ['settlements', 'imports'])).toHaveLength(2)
  })

  it('payments import waits for a running settlement import, and matches the rows of that import', async () => {
    const [paid, rrn] = [await payWithoutReference(), newUtr()]
    const importing = { now: at('2026-10-06'), person: 'asha', file: 'day.csv' }
    let recording: Promise<unknown> = Promise.resolve()
    await inTransaction(db, async (client) => {
      await importSettlements(client, Readable.from([csv({ utr: rrn })]), importing)
      recording = reportOn('2026-10-08', [paid, rrn])
      await until('payments import waits for the lock', async () => {
        const waiting = `select from pg_locks where relation = 'settlements'::regclass and not granted`
        return (await db.query(waiting)).rowCount === 1
      })
    })
    expect(await recording).toMatchObject({ matched: 1, settlementImport: 2 })
    expect(await paymentsOfRows()).toEqual({ [rrn]: paid.utr })
  })

  it('reconcile closed names the import that matched a row of a closed month', async () => {
    const { paid, rrn } = await settledByRrn()
    await opsOn('2026-11-02', ['reconcile', 'close', '--month', '2026-10'])
    await reportOn('2026-11-03', [paid, rrn])
    const [month] = await jsonOn('2026-11-04', ['reconcile', 'closed'])
    const [{ figures, rows }] = month.changed
    expect(figures).toEqual([{ figure: 'differences', was: 2, is: 0 }])
    expect(rows).toMatchObject([
      { change: 'recorded', kind: 'settlement', reference: rrn, amount: '-200.00', importId: 2 },
      { change: 'replaced', kind: 'settlement', reference: rrn, amount: '-200.00', importId: 2 },
    ])
  })

  it('settlements import matches the row in its own import, and reports the row as unchanged', async () => {
    const { paid, rrn } = await settledByRrn()
    await notifyOn('2026-10-07', paid, rrn)
    expect(await importOn('2026-10-08', { utr: rrn })).toMatchObject({ unchanged: 1, updated: 0, matched: 1 })
    expect(await jsonOn('2026-10-08', ['settlements', 'undo', '--import', '2'])).toMatchObject({ restored: 1 })
    expect(await discrepanciesOn('2026-10-09')).toEqual(matching(paid, rrn))
  })

  it('settlements import --dry-run counts the rows that the import would match, and matches none', async () => {
    const { paid, rrn } = await settledByRrn()
    await notifyOn('2026-10-07', paid, rrn)
    const typed = ['settlements', 'import', '--dry-run', '-']
    expect(await jsonOn('2026-10-08', typed, csv({ utr: rrn }))).toMatchObject({ matched: 1, dryRun: true })
    expect(await discrepanciesOn('2026-10-08')).toEqual(matching(paid, rrn))
  })

  it('settlements import matches deductions, padded RRNs, rows of any status, and rows whose payment_utr is the RRN', async () => {
    const [first, second, third] = [
      await payWithoutReference(),
      await payWithoutReference(),
      await payWithoutReference(),
    ]
    const rrns = [newUtr(), newUtr(), newUtr()] as const
    const lines: Line[] = [
      { utr: rrns[0] },
      { utr: rrns[0], amount: '-50.00' },
      { utr: `0000${rrns[1]}`, status: 'PENDING' },
      { utr: 'ROW3', paymentUtr: rrns[2], status: 'FAILED' },
    ]
    await importOn('2026-10-06', ...lines)
    for (const [index, paid] of [first, second, third].entries())
      await notifyOn('2026-10-07', paid, rrns[index] as string)
    expect(await importOn('2026-10-08', { utr: newUtr() })).toMatchObject({ matched: 4 })
    expect(await paymentsOfRows()).toMatchObject({
      ...{ [rrns[0]]: first.utr, [`${rrns[0]}R1`]: first.utr },
      ...{ [`0000${rrns[1]}`]: second.utr, ROW3: third.utr },
    })
    const [pending] = lines.slice(2)
    expect(await importOn('2026-10-09', { ...(pending as Line), status: 'SUCCESS' })).toMatchObject({ updated: 1 })
  })

  it.each(['before', 'after'])(
    'settlements import gives a deduction that repeats the RRN a UTR of its own if the RRN became known %s the rows',
    async (when) => {
      const [paid, rrn] = [await payWithoutReference(), newUtr()]
      const lines = [{ utr: rrn }, { utr: rrn, amount: '-50.00' }]
      if (when === 'before') await notifyOn('2026-10-05', paid, rrn)
      expect(await importOn('2026-10-06', ...lines)).toMatchObject({ inserted: 2 })
      await notifyOn('2026-10-07', paid, rrn)
      expect(await importOn('2026-10-08', ...lines)).toMatchObject({ inserted: 0, unchanged: 2, updated: 0 })
      expect(await paymentsOfRows()).toEqual({ [rrn]: paid.utr, [`${rrn}R1`]: paid.utr })
    },
  )

  it.each(['of two payments', 'that is the UTR of another payment', 'of another merchant’s payment'])(
    'a bank reference %s matches no row, and no cause names it',
    async (which) => {
      const { paid, rrn } = await settledByRrn()
      if (which === 'of another merchant’s payment') {
        const { mid: of } = await newMerchant(db)
        await notifyOn('2026-10-07', await payWithoutReference(of), rrn)
      } else {
        if (which === 'of two payments') await notifyOn('2026-10-07', await payWithoutReference(), rrn)
        else await storePaidOrder(db, { mid, utr: rrn, paidAt: at('2026-10-05') })
        await notifyOn('2026-10-07', paid, rrn)
      }
      const before = await discrepanciesOn('2026-10-08')
      expect(before.join()).not.toContain('import any settlement file')
      expect(await importOn('2026-10-08', { utr: newUtr() })).toMatchObject({ matched: 0 })
      expect(await paymentsOfRows()).toMatchObject({ [rrn]: null })
      expect(await reportOn('2026-10-08')).toMatchObject({ matched: 0, settlementImport: null })
    },
  )

  it('a notification adds the bank reference together with the acquirer’s payment id to a payment that an operator confirmed by this id', async () => {
    const { paid, rrn } = await settledByRrn()
    await db.query('update payments set acquirer_payment_id = null where utr = $1', [paid.utr])
    await notifyOn('2026-10-09', paid, rrn)
    expect(await importOn('2026-10-10', { utr: newUtr() })).toMatchObject({ matched: 1 })
    expect(await discrepanciesOn('2026-10-10')).toEqual([expect.stringMatching(/^unknown payment /)])
  })
})
