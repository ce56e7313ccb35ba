import { Readable } from 'node:stream'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { closeMonth } from '../../src/books/closing/closed-months.ts'
import { findDiscrepancy } from '../../src/books/reports/reconcile.ts'
import { enterResolution } from '../../src/books/reports/resolutions.ts'
import { importSettlements } from '../../src/books/settlements/import.ts'
import { undoImport } from '../../src/books/settlements/imports.ts'
import { orderIdsBegin } from '../../src/gateway/payments/intent.ts'
import { type Database, inTransaction } from '../../src/platform/db/pool.ts'
import { createTestDatabase } from '../support/database.ts'
import { type Finding, findingsOf } from '../support/findings.ts'
import { opsAtNoon, runOps, runOpsOnTerminal } from '../support/ops.ts'
import { newMerchant } from '../support/service.ts'
import { until } from '../support/wait.ts'
import { importRows, istMoment, type Row, storeReports } from './rows.ts'

const OCTOBER = ['--from', '2026-10-01', '--to', '2026-10-31']
const NOVEMBER = ['--from', '2026-11-01', '--to', '2026-11-30']
const PAUSE = 'ops: waiting 15 s until the service has stored all earlier reports …\n'

type Difference = Extract<Finding, { type: 'difference' }>

let url: string
let db: Database
let mid: string
let count = 0

// Each test needs its own database, since a month can be closed only once.
beforeEach(async () => {
  ;({ url, db } = await createTestDatabase())
  ;({ mid } = await newMerchant(db))
})

const FILE_OF = (mid: string) =>
  Buffer.from(
    `mid,amount,utr,bank_reference_number,status,initiation_date\n${mid},200,U1,BRN1,SUCCESS,2026-10-06T11:00:00+05:30\n`,
  )

const at = (day: string) => istMoment(day, '12:00:00')

const { opsOn, jsonOn } = opsAtNoon(() => url, ['reconcile'])

const bookOn = async (day: string, days: string[]) => (await jsonOn(day, ...days, '--mid', mid)).merchants[0]

/** Stores a payment of ₹200 that was reported on `reportedOn`. */
async function pay(utr: string, day: string, { reportedOn = day, source = 'notification' } = {}): Promise<string> {
  count += 1
  const [paidAt, reportedAt] = [at(day), at(reportedOn)]
  const orderId = orderIdsBegin(paidAt) + String(count).padStart(20, '0')
  await storeReports(db, {
    intents: [[mid, orderId, 200, 0, paidAt, 'SUCCESS', utr]],
    payments: [[mid, utr, orderId, 200_00, paidAt, reportedAt, 'first', source]],
    exceptions: [],
  })
  return orderId
}

const settle = (day: string, utr: string, more: Partial<Row> & { importedOn?: string } = {}) =>
  importRows(db, [{ mid, amount: 200_00, utr, day, ...more }], at(more.importedOn ?? day))

/** Stores a successful refund of a payment, under the `refundId` R and its UTR. */
const refund = (utr: string, day: string, amount = 200_00) =>
  db.query(
    `insert into refunds (mid, refund_id, our_refund_id, order_id, utr, amount_paise, note, acquirer, created_by, created_at, status,
                          ended_at)
     select mid, 'R' || utr, 'R' || utr, order_id, utr, $3, 'cold', 'direct', 'asha', $4, 'SUCCESS', $4 from payments
      where mid = $1 and utr = $2`,
    [mid, utr, amount, at(day)],
  )

async function except(kind: string, utr: string, day: string, { owner = mid, orderId = 'gone' } = {}): Promise<string> {
  await storeReports(db, {
    ...{ intents: [], payments: [] },
    exceptions: [[owner, orderId, kind, utr, '200.00', at(day)]],
  })
  const { rows } = await db.query(
    'select exception_id as id from payment_exceptions where mid = $1 and utr = $2 order by received_at desc limit 1',
    [owner, utr],
  )
  return rows[0].id
}

const resolveException = (exceptionId: string, day: string, owner = mid) =>
  db.query(`insert into payment_resolutions values ($1, $2, 'refunded', 'asha', $3)`, [owner, exceptionId, at(day)])

const undo = (importId: number, day: string) =>
  inTransaction(db, (client) => undoImport(client, importId, { now: at(day), person: 'asha' }))

/** Returns October's balance carried forward, after checking that November starts with it. */
async function carried(day: string): Promise<string> {
  const october = await bookOn(day, OCTOBER)
  const november = await bookOn(day, NOVEMBER)
  const carriedForward = october?.total.carriedForward ?? '0.00'
  expect(november?.total.broughtForward ?? '0.00').toBe(carriedForward)
  return carriedForward
}

describe('a closed month', () => {
  it('reconcile close closes a month with discrepancies and prints a warning', async () => {
    await settle('2026-10-06', 'C1')
    const { code, stderr } = await opsOn('2026-11-02', 'close', '--month', '2026-10')
    expect({ code, stderr }).toEqual({
      ...{ code: 0, stderr: `${PAUSE}ops: warning: 2026-10 was closed with 1 discrepancy\n` },
    })
  })

  it('reconcile close requires confirmation of the figures on a terminal, and without a terminal requires --yes only for an empty month', async () => {
    await settle('2026-10-06', 'C1', { importedOn: '2026-10-06' })
    const close = (month: string, response?: string, ...more: string[]) => {
      vi.useFakeTimers({ toFake: ['Date'], now: at('2026-11-02') })
      const args = ['reconcile', 'close', '--month', month, ...more]
      return (response === undefined ? runOps(url, args) : runOpsOnTerminal(url, args, response)).finally(
        vi.useRealTimers,
      )
    }
    const months = async () =>
      (await db.query('select month from closed_months order by month')).rows.map((row) => row.month)

    const empty = await close('2026-08')
    expect(empty).toMatchObject({ code: 1, stdout: '' })
    expect(empty.stderr).toBe(
      `${PAUSE}ops: 2026-08 has no payments and no imports: check the month, or add --yes to close it anyway\n`,
    )
    const rejected = await close('2026-08', 'n\n')
    expect(rejected.stderr).toMatch(
      /^merchant .*\nclose 2026-08, which has no payments and no imports, with these figures\? \(y\/N\) ops: cancelled/ms,
    )
    const shown = await close('2026-10', '\n')
    expect(shown).toMatchObject({ code: 1, stdout: '' })
    expect(shown.stderr).toMatch(new RegExp(`^merchant +settled .*\\n${mid} +₹200\\.00 `, 'm'))
    expect(shown.stderr).toMatch(/^close 2026-10 with these figures\? \(y\/N\) ops: cancelled: nothing was changed$/m)
    expect(await months()).toEqual([])

    expect((await close('2026-08', undefined, '--yes')).code).toBe(0)
    // An import suffices as evidence that the service was in use.
    await settle('2026-07-06', 'C0', { importedOn: '2026-09-06' })
    expect(await close('2026-10', 'y\n')).toMatchObject({
      ...{
        code: 1,
        stderr: 'ops: 2026-10 cannot be closed: close months in order, next ops reconcile close --month 2026-09\n',
      },
    })
    expect((await close('2026-09')).code).toBe(0)
    expect(await close('2026-07', 'y\n')).toMatchObject({
      ...{
        code: 1,
        stderr: 'ops: 2026-07 cannot be closed: close months in order, next ops reconcile close --month 2026-10\n',
      },
    })
    expect((await close('2026-10', 'y\n')).code).toBe(0)
    // The month is closed already, so nothing needs confirmation.
    expect(await close('2026-10', '')).toMatchObject({ code: 0, stderr: expect.not.stringContaining('(y/N)') })
    expect(await months()).toEqual(['2026-08', '2026-09', '2026-10'])
  })

  it('reconcile does not change the figures of a closed month, and lists each ledger row that has changed since the close', async () => {
    await settle('2026-10-06', 'C1', { paymentUtr: 'CP1' })
    await pay('CP1', '2026-10-05')
    await pay('CP2', '2026-10-14')
    const exceptionId = await except('amount differs', 'CX', '2026-10-15')
    await settle('2026-10-16', 'CX')
    const closed = await jsonOn('2026-11-05', 'close', '--month', '2026-10')
    expect(closed).toMatchObject({
      ...{ month: '2026-10', sha256: expect.stringMatching(/^[0-9a-f]{64}$/) },
      figures: {
        [mid]: { paid: '400.00', settled: '400.00', resolved: '0.00', carriedForward: '0.00', differences: 2 },
      },
    })
    expect((await bookOn('2026-11-05', OCTOBER)).changed).toBeNull()

    const changesOn = async (day: string) => {
      const { changed } = await bookOn(day, OCTOBER)
      await carried(day)
      expect(await jsonOn(day, 'close', '--month', '2026-10')).toEqual(closed)
      if (changed === null) return null
      return {
        figures: changed.figures.map(({ figure, was, is }: Record<string, string>) => `${figure} ${was} → ${is}`),
        rows: changed.rows.map(
          (row: Record<string, string>) => `${row.change} ${row.kind} ${row.reference} ${row.amount}`,
        ),
      }
    }
    const imported = await settle('2026-10-20', 'C9', { amount: 50_00, paymentUtr: 'CP9', importedOn: '2026-11-06' })
    expect(await changesOn('2026-11-06')).toEqual({
      figures: [
        ...['settlements 2 → 3', 'settled 400.00 → 450.00', 'net 400.00 → 450.00'],
        ...['carriedForward 0.00 → -50.00', 'differences 2 → 3'],
      ],
      rows: ['recorded settlement C9 -50.00'],
    })
    const [row] = (await bookOn('2026-11-06', OCTOBER)).changed.rows
    expect(row).toMatchObject({ day: '2026-10-20', importId: imported, exceptionId: null })
    await undo(imported, '2026-11-07')
    expect(await changesOn('2026-11-07')).toBeNull()
    const orderId = await pay('CP3', '2026-10-12', { reportedOn: '2026-11-08', source: 'day file' })
    const figures = ['payments 2 → 3', 'paid 400.00 → 600.00']
    const rows = ['recorded payment CP3 200.00']
    const reported = { figures: [...figures, 'carriedForward 0.00 → 200.00', 'differences 2 → 3'], rows }
    expect(await changesOn('2026-11-08')).toEqual(reported)
    const unsettled = (await bookOn('2026-11-09', OCTOBER)).differences.find(
      (one: { utr: string }) => one.utr === 'CP2',
    )
    await jsonOn('2026-11-09', 'resolve', '--difference', unsettled.id, '--reason', 'paid by hand')
    rows.push(`recorded resolution ${unsettled.id} -200.00`)
    expect(await changesOn('2026-11-09')).toEqual({ figures: [...figures, 'resolved 0.00 → -200.00'], rows })
    await resolveException(exceptionId, '2026-11-10')
    rows.push('resolved amount differs CX 200.00')
    const ofException = ['carriedForward 0.00 → 200.00', 'differences 2 → 1', 'openExceptions 1 → 0']
    expect(await changesOn('2026-11-10')).toEqual({ figures: [...figures, ...ofException], rows })
    // Only the exact days of a closed month are compared, and the text output shows the change as well.
    expect((await bookOn('2026-11-17', ['--from', '2026-10-01', '--to', '2026-10-30'])).changed).toBeNull()
    const text = (await opsOn('2026-11-17', ...OCTOBER, '--mid', mid)).stdout
    expect(text).toMatch(
      /^ {2}closed by .* at 2026-11-05 12:00:00 IST; since then: payments 2 → 3, .*openExceptions 1 → 0$/m,
    )
    expect(text).toContain(
      `    2026-11-08 12:00:00 IST recorded: payment CP3 of 2026-10-12, order ${orderId}, 200.00\n`,
    )
    expect(text).toMatch(
      new RegExp(
        `^ {4}2026-11-10 .* IST resolved: amount differs CX of 2026-10-15, .*200.00, exception ${exceptionId}$`,
        'm',
      ),
    )
    const months = await opsOn('2026-11-17', 'close', '--month', '2026-11')
    expect(months).toMatchObject({ code: 2, stderr: expect.stringContaining('--month must be in the past') })
  })

  it('reconcile ignores figures of a closed month that an earlier version stored and the current version does not compute', async () => {
    await pay('OLD1', '2026-10-05')
    await settle('2026-10-06', 'OLD1')
    const { total } = await bookOn('2026-11-05', OCTOBER)
    const closing = { month: '2026-10', closedAt: at('2026-11-05'), closedBy: 'asha' }
    const { stored } = await closeMonth(db, {
      ...closing,
      figures: { [mid]: { ...total, fromDailyReport: 7, open: '1.00' } },
    })
    expect(stored.figures[mid]).toMatchObject({ fromDailyReport: 7, open: '1.00' })
    expect((await bookOn('2026-11-17', OCTOBER)).changed).toBeNull()
  })

  it('reconcile names refunds and replaced rows recorded after a close, or otherwise payments that became due, as the cause of a change', async () => {
    await pay('R1', '2026-10-05')
    await settle('2026-10-06', 'R1')
    await pay('R2', '2026-10-31')
    await jsonOn('2026-11-01', 'close', '--month', '2026-10')
    const changes = async (day: string) => (await bookOn(day, OCTOBER)).changed
    expect(await changes('2026-11-01')).toBeNull()
    // Saturday's payment is due on Monday and judged from Tuesday on.
    expect(await changes('2026-11-03')).toMatchObject({ figures: [{ figure: 'differences' }], rows: [] })
    expect((await opsOn('2026-11-03', ...OCTOBER, '--mid', mid)).stdout).toContain(
      '; no row was recorded or replaced: payments became due or bank holidays changed\n',
    )
    await refund('R2', '2026-10-31')
    const imported = await settle('2026-10-06', 'R1', { status: 'FAILED', importedOn: '2026-11-06' })
    await db
      .query(`update settlement_versions set replaced_at = $2 where mid = $1`, [mid, at('2026-11-06')])
      .catch(() => undefined)
    const { rows } = await changes('2026-11-30')
    expect(rows).toMatchObject([{ change: 'replaced', kind: 'settlement', reference: 'R1', importId: imported }])
  })

  it('reconcile lists a duplicate payment recorded after a close as a duplicate payment', async () => {
    const orderId = await pay('DU1', '2026-10-05')
    await settle('2026-10-06', 'DU1')
    await jsonOn('2026-11-05', 'close', '--month', '2026-10')
    const received = [at('2026-10-07'), at('2026-11-08')]
    const intents: [] = []
    const payments = [[mid, 'DU2', orderId, 200_00, ...received, 'second', 'day file']]
    await storeReports(db, { intents, payments, exceptions: [] })
    const { rows } = (await bookOn('2026-11-09', OCTOBER)).changed
    expect(rows).toMatchObject([{ kind: 'duplicate payment', reference: 'DU2', amount: '200.00' }])
  })

  it('reconcile closed lists each closed month with its hash and the changes of each merchant since the close', async () => {
    expect((await opsOn('2026-12-02', 'closed')).stdout).toBe('No closed months.\n')
    await settle('2026-10-06', 'C1', { paymentUtr: 'CP1' })
    await pay('CP1', '2026-10-05')
    const october = await jsonOn('2026-11-05', 'close', '--month', '2026-10')
    const november = await jsonOn('2026-12-02', 'close', '--month', '2026-11', '--yes')
    const [first, second] = [october, november].map(({ figures: _, warnings: __, accounts: ___, ...closed }) => closed)
    expect(await jsonOn('2026-12-02', 'closed')).toEqual([
      { ...second, changed: [] },
      { ...first, changed: [] },
    ])
    const imported = await settle('2026-10-20', 'C9', { amount: 50_00, importedOn: '2026-12-03' })
    const [, changed] = await jsonOn('2026-12-04', 'closed')
    expect(changed.changed).toEqual([
      {
        mid,
        figures: expect.arrayContaining([{ figure: 'settled', was: '200.00', is: '250.00' }]),
        rows: [expect.objectContaining({ change: 'recorded', reference: 'C9', amount: '-50.00', importId: imported })],
      },
    ])
    const lines = (await opsOn('2026-12-04', 'closed')).stdout.split('\n')
    expect(lines[0]).toMatch(/^2026-11 was closed by .* at 2026-12-02 .* IST, sha256 [0-9a-f]{64}$/)
    expect(lines.at(-3)).toMatch(`  ${mid}: settlements 1 → 2, settled 200.00 → 250.00, `)
    expect(lines.at(-2)).toMatch(/ recorded: settlement C9 of 2026-10-20, -50\.00, import \d+$/)
  })

  it('--month selects the first to last day of a month in reports and in the list of resolutions', async () => {
    await settle('2026-10-06', 'C1')
    const book = await jsonOn('2026-11-02', '--month', '2026-10')
    expect(book).toEqual(await jsonOn('2026-11-02', ...OCTOBER))
    expect([book.from, book.to]).toEqual(['2026-10-01', '2026-10-31'])
    await jsonOn('2026-11-02', 'resolve', '--difference', book.merchants[0].differences[0].id, '--reason', 'known')
    expect(await jsonOn('2026-11-02', 'resolutions', '--month', '2026-11')).toHaveLength(1)
    expect(await jsonOn('2026-11-02', 'resolutions', '--month', '2026-10')).toEqual([])
    expect((await jsonOn('2026-11-02', 'payouts', '--month', '2026-10')).payouts).toHaveLength(1)
    for (const rejected of [
      [...OCTOBER, '--month', '2026-10'],
      ['--month', '2026-00'],
      ['--payout', 'C1', '--month', '2026-10'],
      [],
    ]) {
      expect(await opsOn('2026-11-02', ...rejected)).toMatchObject({ code: 2, stdout: '' })
    }
  })

  it('reconcile lists a merchant without any remaining row in a closed month, and the changed figures of all merchants', async () => {
    const imported = await settle('2026-10-06', 'N1')
    await jsonOn('2026-11-02', 'close', '--month', '2026-10')
    await undo(imported, '2026-11-03')
    const { merchants, changed } = await jsonOn('2026-11-04', ...OCTOBER)
    expect(merchants).toMatchObject([
      { mid, days: [], changed: { rows: [{ change: 'replaced', importId: imported }], figures: expect.any(Array) } },
    ])
    const settled = { figure: 'settled', was: '200.00', is: '0.00' }
    expect(merchants[0].changed.figures).toContainEqual(settled)
    expect(changed).toContainEqual(settled)
    expect((await opsOn('2026-11-04', ...OCTOBER)).stdout).toContain(
      'All merchants, since the month was closed: settlements 1 → 0',
    )
  })

  it('reconcile reopens a payout by totals if a settlement line imported after the close names a payment in the payout', async () => {
    await pay('L1', '2026-10-05')
    await settle('2026-10-06', 'LS1')
    await pay('L9', '2026-10-20')
    await jsonOn('2026-11-02', 'close', '--month', '2026-10')
    await settle('2026-11-03', 'L2', { paymentUtr: 'L1' })
    const { differences } = await jsonOn('2026-11-10', 'differences')
    expect(differences.map((one: Record<string, unknown>) => [one.day, one.kind, one.owed])).toEqual([
      ['2026-10-06', 'payout total', '-200.00'],
      ['2026-10-21', 'payout total', '200.00'],
    ])
  })

  it('reconcile reopens the other payments of a payout if a settlement line of the payout is imported after the close', async () => {
    // Monday's payout covers the payments from Friday to Sunday.
    await pay('N1', '2026-10-09')
    await pay('N2', '2026-10-11')
    await settle('2026-10-12', 'NS1', { amount: 400_00 })
    await settle('2026-10-21', 'NX', { paymentUtr: 'NX1' })
    await jsonOn('2026-11-02', 'close', '--month', '2026-10')
    await settle('2026-10-12', 'NN1', { paymentUtr: 'N1', importedOn: '2026-11-03' })
    const { differences } = await jsonOn('2026-11-10', 'differences')
    expect(differences.map((one: Record<string, unknown>) => [one.day, one.kind, one.owed])).toEqual([
      ['2026-10-11', 'missing settlement', '200.00'],
      ['2026-10-12', 'unknown payment', '-400.00'],
      ['2026-10-21', 'unknown payment', '-200.00'],
    ])
  })

  it("reconcile differences lists the open discrepancies of all months with age and the merchant's order_id, and prints the sum", async () => {
    const orderId = await pay('O1', '2026-10-05')
    await db.query(`update payment_intents set merchant_order_id = 'A-17' where order_id = $1`, [orderId])
    await settle('2026-10-06', 'O2', { paymentUtr: 'OX' })
    await pay('O3', '2026-11-12')
    await settle('2026-11-13', 'O3', { amount: 150_00, paymentUtr: 'O3' })
    await jsonOn('2026-11-05', 'close', '--month', '2026-10')
    const found = await jsonOn('2026-11-20', 'differences')
    const report = found.differences.map(({ day, ageDays, kind, owed, merchantOrderId }: Record<string, unknown>) => [
      ...[day, ageDays, kind, owed],
      typeof merchantOrderId,
    ])
    expect({ ...found, differences: report }).toEqual({
      differences: [
        ['2026-10-05', 46, 'missing settlement', '200.00', 'string'],
        ['2026-10-06', 45, 'unknown payment', '-200.00', 'object'],
        ['2026-11-13', 7, 'amount mismatch', '50.00', 'string'],
      ],
      unlisted: [],
      count: 3,
      owed: '50.00',
      payouts: [],
    })
    const { count } = await jsonOn('2026-11-20', 'differences', '--older-than', '30', '--mid', mid)
    expect(count).toBe(2)
    const [, , third] = found.differences
    await jsonOn('2026-11-20', 'resolve', '--difference', third.id, '--reason', 'paid by hand')
    const { stdout } = await opsOn('2026-11-21', 'differences')
    expect(stdout).toMatch(
      /^ {2}47 days: 2026-10-05 missing settlement \w+: order \w+, order_id A-17, UTR .+\n.+\n\n2 open discrepancies, total ₹0\.00\n$/m,
    )
    expect((await opsOn('2026-11-21', 'differences', '--csv')).stdout.split('\n')).toHaveLength(4)
    expect((await opsOn('2026-10-05', 'differences')).stdout).toBe('No open discrepancies.\n')
  })

  it('reconcile close waits for a running import and includes the import', async () => {
    await pay('U1', '2026-10-05')
    const client = await db.connect()
    await client.query('begin')
    await importSettlements(client, Readable.from([FILE_OF(mid)]), { now: at('2026-11-02'), person: 'asha', file: '-' })
    const closing = jsonOn('2026-11-02', 'close', '--month', '2026-10')
    await until('the closing waited for the import', async () => {
      const { rows } = await db.query(
        `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
      )
      return rows.length > 0
    })
    await client.query('commit')
    client.release()
    expect((await closing).figures[mid]).toMatchObject({ paid: '200.00', settled: '200.00', carriedForward: '0.00' })
    expect((await bookOn('2026-11-03', OCTOBER)).changed).toBe(null)
  })

  it('reconcile updates the balance carried forward for a later exception that explains a settlement of the closed month', async () => {
    await settle('2026-10-06', 'DX')
    await settle('2026-10-07', 'DY')
    await settle('2026-10-07', 'D0', { paymentUtr: 'DP0' })
    await pay('DP0', '2026-10-06')
    await jsonOn('2026-11-05', 'close', '--month', '2026-10')
    expect(await carried('2026-11-06')).toBe('-400.00')
    await resolveException(await except('amount differs', 'DX', '2026-11-07'), '2026-11-08')
    expect(await carried('2026-11-09')).toBe('-200.00')
    const unknown = await except('unknown order', 'DY', '2026-11-10', { owner: '' })
    await resolveException(unknown, '2026-11-11', '')
    expect(await carried('2026-11-12')).toBe('0.00')
    const changed = expect.objectContaining({ change: 'resolved', exceptionId: unknown })
    expect((await bookOn('2026-11-12', OCTOBER)).changed.rows).toContainEqual(changed)
    // A second exception for the same money is open, although the first was resolved.
    await except('UTR of another order', 'DX', '2026-11-13')
    expect(await carried('2026-11-14')).toBe('-200.00')
  })

  it('reconcile updates the balance carried forward for a later settlement of a payment that had failed', async () => {
    await settle('2026-10-06', 'E0', { paymentUtr: 'EP0' })
    await pay('EP0', '2026-10-05')
    const orderId = await pay('EP1', '2026-10-06')
    await resolveException(await except('failure after success', 'EP1', '2026-10-07', { orderId }), '2026-10-08')
    await jsonOn('2026-11-05', 'close', '--month', '2026-10')
    expect(await carried('2026-11-06')).toBe('0.00')
    await settle('2026-11-09', 'E1', { paymentUtr: 'EP1' })
    expect(await carried('2026-11-10')).toBe('200.00')
    expect((await bookOn('2026-11-10', NOVEMBER)).total.carriedForward).toBe('0.00')
  })

  it('reconcile updates the balance carried forward for a payout that becomes due after the close', async () => {
    await settle('2026-10-06', 'F0', { paymentUtr: 'FP0' })
    await pay('FP0', '2026-10-05')
    const orderId = await pay('FP1', '2026-10-31')
    await resolveException(await except('failure after success', 'FP1', '2026-10-31', { orderId }), '2026-11-01')
    await jsonOn('2026-11-01', 'close', '--month', '2026-10')
    expect(await carried('2026-11-01')).toBe('200.00')
    expect(await carried('2026-11-03')).toBe('0.00')
  })

  it('reconcile updates the balance carried forward when the only settlement of a month, already resolved, is undone', async () => {
    const imported = await settle('2026-10-06', 'G1', { paymentUtr: 'GP1' })
    const [difference] = (await bookOn('2026-10-08', OCTOBER)).differences
    await jsonOn('2026-10-08', 'resolve', '--difference', difference.id, '--reason', 'of last year')
    expect(await carried('2026-10-09')).toBe('0.00')
    await undo(imported, '2026-10-10')
    expect(await carried('2026-11-11')).toBe('200.00')
  })
})

describe('movements dated after a closed month', () => {
  /** Returns the changes in October, whose number of discrepancies differs, as of `day`. */
  async function changesOn(day: string, was: number, is: number) {
    const { figures, rows } = (await bookOn(day, OCTOBER)).changed
    expect(figures).toEqual([{ figure: 'differences', was, is }])
    return rows.map((row: Record<string, string>) => `${row.change} ${row.kind} ${row.reference} of ${row.day}`)
  }

  /** Settles a payment of October by its UTR, so that payouts without lines are by payment. */
  async function settlePayment() {
    await pay('LP0', '2026-10-05')
    await settle('2026-10-06', 'L0', { paymentUtr: 'LP0' })
  }

  const close = (day = '2026-11-05') => jsonOn(day, 'close', '--month', '2026-10')

  it('reconcile closed lists a later refund of an unsettled payment that changes the discrepancies of a closed month', async () => {
    await settlePayment()
    const orderId = await pay('LP1', '2026-10-14')
    await pay('LP2', '2026-10-15')
    await close()
    // Part of the discrepancy is refunded, so that no figure differs.
    await refund('LP2', '2026-11-06', 50_00)
    expect((await bookOn('2026-11-07', OCTOBER)).changed).toBeNull()
    await refund('LP1', '2026-11-10')
    await refund('LP0', '2026-11-10')
    expect(await changesOn('2026-11-11', 2, 1)).toEqual([
      'recorded refund RLP2 of 2026-11-06',
      'recorded refund RLP1 of 2026-11-10',
    ])
    const text = (await opsOn('2026-11-11', 'closed')).stdout
    expect(text).toContain(`  ${mid}: differences 2 → 1\n`)
    expect(text).toContain(
      `    2026-11-10 12:00:00 IST recorded: refund RLP1 of 2026-11-10, order ${orderId}, -200.00\n`,
    )
  })

  it('reconcile lists a later settlement line of a payment that was unsettled when the month was closed, and no other later line', async () => {
    await settlePayment()
    await pay('LP1', '2026-10-14')
    await pay('LP2', '2026-10-31')
    await pay('LP3', '2026-11-01')
    await close('2026-11-02')
    await settle('2026-11-02', 'L2', { paymentUtr: 'LP2' })
    await settle('2026-11-02', 'L3', { paymentUtr: 'LP3' })
    await pay('LP4', '2026-11-04')
    await settle('2026-11-05', 'L4', { paymentUtr: 'LP4' })
    const imported = await settle('2026-11-05', 'L1', { paymentUtr: 'LP1' })
    expect(await changesOn('2026-11-11', 1, 0)).toEqual(['recorded settlement L1 of 2026-11-05'])
    await undo(imported, '2026-11-12')
    expect((await bookOn('2026-11-12', OCTOBER)).changed).toBeNull()
  })

  it('reconcile lists the undo of a later settlement line that was known when the month was closed', async () => {
    await settlePayment()
    await pay('LP1', '2026-10-14')
    const imported = await settle('2026-11-03', 'L1', { paymentUtr: 'LP1' })
    await close()
    await undo(imported, '2026-11-12')
    expect(await changesOn('2026-11-12', 0, 1)).toEqual(['replaced settlement L1 of 2026-11-03'])
  })

  it('reconcile lists a later refund that reopens a resolved discrepancy of a closed month', async () => {
    await settlePayment()
    await pay('LP1', '2026-10-14')
    const [unsettled] = (await bookOn('2026-10-20', OCTOBER)).differences
    await jsonOn('2026-10-20', 'resolve', '--difference', unsettled.id, '--reason', 'paid by hand')
    await close()
    await refund('LP1', '2026-11-10')
    expect(await changesOn('2026-11-11', 0, 1)).toEqual(['recorded refund RLP1 of 2026-11-10'])
  })

  it('reconcile lists a later deduction of a refund of a closed month that names neither refund nor payment', async () => {
    await settlePayment()
    await refund('LP0', '2026-10-20')
    await close()
    await settle('2026-11-09', 'L9', { amount: -200_00 })
    expect(await changesOn('2026-11-11', 1, 0)).toEqual(['recorded deduction L9 of 2026-11-09'])
  })

  it('reconcile lists a later line that changes the form of the last payout of a closed month', async () => {
    await settlePayment()
    await pay('LP1', '2026-10-31')
    await close()
    await settle('2026-11-02', 'L9', { importedOn: '2026-11-10' })
    expect(await changesOn('2026-11-11', 1, 0)).toEqual(['recorded settlement L9 of 2026-11-02'])
  })

  it('reconcile lists a later line that names a payment of a payout by totals of a closed month', async () => {
    await pay('LP1', '2026-10-05')
    await settle('2026-10-06', 'L1')
    await close()
    await settle('2026-11-03', 'L2', { paymentUtr: 'LP1', importedOn: '2026-11-06' })
    await pay('LP2', '2026-11-04')
    await settle('2026-11-05', 'L3', { importedOn: '2026-11-06' })
    expect(await changesOn('2026-11-11', 0, 1)).toEqual(['recorded settlement L2 of 2026-11-03'])
  })
})

describe('a resolved discrepancy', () => {
  const differencesOn = async (day: string): Promise<Record<string, string | null>[]> =>
    (await bookOn(day, OCTOBER))?.differences ?? []

  it('reconcile reopens a resolved discrepancy whose amount changes with the remaining amount, and accepts another resolution', async () => {
    const orderId = await pay('HP1', '2026-10-05')
    await settle('2026-10-06', 'H0', { paymentUtr: 'HP0' })
    const short = await settle('2026-10-06', 'H1', { paymentUtr: 'HP1', amount: 190_00, fee: 1_00 })
    const ended = async (reason: string, day: string) => {
      const open = (await differencesOn(day)).find((one) => one.orderId === orderId)
      return jsonOn(day, 'resolve', '--difference', open?.id as string, '--reason', reason)
    }
    expect(await ended('the bank kept it', '2026-10-08')).toMatchObject({ kind: 'fee mismatch', owed: '9.00' })
    expect((await bookOn('2026-10-08', OCTOBER)).total).toMatchObject({ resolved: '-9.00', differences: 1 })
    // Undoes the file and imports it again with a lower amount.
    await undo(short, '2026-10-09')
    const again = await settle('2026-10-06', 'H1', {
      paymentUtr: 'HP1',
      amount: 180_00,
      fee: 1_00,
      importedOn: '2026-10-09',
    })
    expect(await differencesOn('2026-10-09')).toContainEqual(
      expect.objectContaining({
        ...{
          kind: 'fee mismatch',
          orderId,
          paid: '200.00',
          settled: '181.00',
          owed: '10.00',
          resolution: null,
          entries: 1,
        },
        cause: expect.stringMatching(/; 9\.00 of it was resolved: the bank kept it$/),
      }),
    )
    expect(await ended('the rest too', '2026-10-09')).toMatchObject({ owed: '10.00' })
    expect((await bookOn('2026-10-09', OCTOBER)).total).toMatchObject({ resolved: '-19.00', differences: 1 })
    // Undoes the file and imports it a third time with the full amount.
    await undo(again, '2026-10-10')
    await settle('2026-10-06', 'H1', { paymentUtr: 'HP1', amount: 199_00, fee: 1_00, importedOn: '2026-10-10' })
    const [gone] = (await differencesOn('2026-10-10')).filter((one) => one.orderId === orderId)
    expect(gone).toMatchObject({ owed: '-19.00', paid: null, settled: null, resolution: null, entries: 2 })
    expect(gone?.cause).toBe('the discrepancy no longer exists; 19.00 of it was resolved: the rest too')
    expect(await ended('it has come', '2026-10-11')).toMatchObject({ owed: '-19.00' })
    expect((await differencesOn('2026-10-11')).filter((one) => one.orderId === orderId)).toEqual([])
    const { total } = await bookOn('2026-10-11', OCTOBER)
    // The remaining discrepancy is the settlement of an unknown payment.
    expect(total).toMatchObject({ resolved: '0.00', differences: 1, carriedForward: '-200.00' })
  })

  it('reconcile resolve stores the accounting term, and the list of resolutions and the report show the term', async () => {
    const orderId = await pay('R1', '2026-10-05')
    await settle('2026-10-06', 'R0', { paymentUtr: 'RP0' })
    const open = await differencesOn('2026-10-08')
    const idOf = (kind: string) => open.find((one) => one.kind === kind)?.id as string
    const resolve = (kind: string, as: string) =>
      opsOn(
        '2026-10-08',
        'resolve',
        '--difference',
        idOf(kind),
        '--reason',
        `seen: ${kind}`,
        '--as',
        as,
        '--by',
        'asha',
      )
    expect((await resolve('missing settlement', 'theft')).stderr).toContain(
      '--as must be chargeback, charge, write-off, bank-error',
    )
    expect((await resolve('missing settlement', 'write-off')).stdout).toContain('200.00, resolved as write-off.\n')
    expect((await resolve('unknown payment', 'bank-error')).code).toBe(0)
    const resolutions = await jsonOn('2026-10-09', 'resolutions', '--mid', mid)
    const common = { mid, resolvedBy: 'asha', resolvedAt: at('2026-10-08').toISOString() }
    expect(resolutions).toEqual([
      {
        ...{
          ...common,
          day: '2026-10-05',
          kind: 'missing settlement',
          differenceId: idOf('missing settlement'),
          orderId,
        },
        ...{ merchantOrderId: orderId, as: 'write-off', amount: '-200.00', reason: 'seen: missing settlement' },
      },
      {
        ...{ ...common, day: '2026-10-06', kind: 'unknown payment', differenceId: idOf('unknown payment') },
        ...{
          orderId: null,
          merchantOrderId: null,
          as: 'bank-error',
          amount: '200.00',
          reason: 'seen: unknown payment',
        },
      },
    ])
    expect(await jsonOn('2026-10-09', 'resolutions', '--from', '2026-10-09', '--to', '2026-10-09')).toEqual([])
    const csv = (await opsOn('2026-10-09', 'resolutions', '--csv')).stdout.split('\n')
    expect(csv[0]).toBe(
      'resolved_at,resolved_by,mid,day,kind,difference_id,order_id,merchant_order_id,as,amount,reason',
    )
    expect(csv[1]).toContain(',write-off,-200.00,seen: missing settlement')
    expect((await bookOn('2026-10-09', OCTOBER)).total).toMatchObject({
      ...{ resolved: '0.00', resolvedPlus: '200.00', resolvedMinus: '-200.00', carriedForward: '0.00' },
    })
  })

  it('reconcile resolve succeeds once when several operators resolve one discrepancy concurrently', async () => {
    await settle('2026-10-06', 'I1', { paymentUtr: 'IP1' })
    const [open] = await differencesOn('2026-10-08')
    vi.useFakeTimers({ toFake: ['Date'], now: at('2026-10-08') })
    const resolve = (by: string) =>
      runOps(url, ['reconcile', 'resolve', '--difference', open?.id as string, '--reason', by, '--by', by])
    const outcomes = await Promise.all(['asha', 'ravi', 'meera'].map(resolve))
    vi.useRealTimers()
    expect(outcomes.map(({ code }) => code).sort()).toEqual([0, 1, 1])
    for (const { code, stderr } of outcomes) {
      if (code === 1)
        expect(stderr).toMatch(/^ops: (another operator has just resolved|discrepancy \w+ was already resolved)/)
    }
    const { rows } = await db.query(
      'select entry, amount_paise::text as amount from difference_resolutions where mid = $1',
      [mid],
    )
    expect(rows).toEqual([{ entry: 1, amount: '20000' }])
    // The second of two operators who found the same discrepancy finds its entry number used.
    await settle('2026-10-07', 'I2', { paymentUtr: 'IP2' })
    const [, second] = await differencesOn('2026-10-08')
    const found = (await findDiscrepancy(db, second?.id as string, at('2026-10-08'))) as Difference
    const enter = (by: string) => enterResolution(db, found, { reason: by, by, now: at('2026-10-08') })
    expect((await Promise.all([enter('asha'), enter('ravi')])).sort()).toEqual([false, true])
  })
})

describe('the form of a payout', () => {
  const kindsOf = async (from: string, to = from) => {
    const kinds: string[] = []
    for (const one of await findingsOf(db, { from, to, mid, now: at('2026-12-15') })) {
      if (one.type === 'difference') kinds.push(`${one.day} ${one.kind}`)
    }
    return kinds
  }

  it('reconcile gives a payout without lines the form of the previous payout, even if the previous payout is outside the reported days', async () => {
    // A payout by totals in which one line names a payment.
    for (const utr of ['J1', 'J2', 'J3']) await pay(utr, '2026-10-05')
    await importRows(
      db,
      [
        { mid, amount: 200_00, utr: 'JN1', day: '2026-10-06', paymentUtr: 'J1' },
        { mid, amount: 400_00, utr: 'JS1', day: '2026-10-06' },
      ],
      at('2026-10-06'),
    )
    await pay('J4', '2026-10-06')
    await pay('J5', '2026-10-08')
    await settle('2026-10-09', 'JN5', { paymentUtr: 'J5' })
    await pay('J6', '2026-10-09')
    const whole = await kindsOf('2026-10-01', '2026-10-31')
    expect(whole).toEqual(['2026-10-07 payout total', '2026-10-09 missing settlement'])
    expect(await kindsOf('2026-10-07')).toEqual(['2026-10-07 payout total'])
    expect(await kindsOf('2026-10-09')).toEqual(['2026-10-09 missing settlement'])
    // The payout before the requested days has changed to by payment.
    expect(await kindsOf('2026-10-12')).toEqual([])
    expect(await kindsOf('2026-10-10', '2026-10-12')).toEqual([])
  })

  it('reconcile gives a payout without lines the same form in every report, even after a total that names most payments', async () => {
    for (const utr of ['Q1', 'Q2']) await pay(utr, '2026-10-05')
    await pay('Q3', '2026-10-06')
    await pay('Q4', '2026-10-09')
    await importRows(
      db,
      [
        { mid, amount: 200_00, utr: 'QN1', day: '2026-10-06', paymentUtr: 'Q1' },
        { mid, amount: 200_00, utr: 'QS1', day: '2026-10-06' },
      ],
      at('2026-10-06'),
    )
    const whole = await kindsOf('2026-10-01', '2026-10-31')
    expect(whole).toContain('2026-10-09 missing settlement')
    expect(await kindsOf('2026-10-09')).toEqual(['2026-10-09 missing settlement'])
    expect(await kindsOf('2026-10-12')).toEqual([])
  })

  it('reconcile judges a payout after the reported days with all payments that the payout covers', async () => {
    // Monday's payout for Friday to Sunday is a total plus one line that names a payment.
    for (const [utr, day] of Object.entries({
      K1: '2026-10-09',
      K2: '2026-10-09',
      K3: '2026-10-10',
      K4: '2026-10-11',
    })) {
      await pay(utr, day)
    }
    await importRows(
      db,
      [
        { mid, amount: 200_00, utr: 'KN1', day: '2026-10-12', paymentUtr: 'K1' },
        { mid, amount: 600_00, utr: 'KS1', day: '2026-10-12' },
      ],
      at('2026-10-12'),
    )
    for (const to of ['2026-10-09', '2026-10-10', '2026-10-11', '2026-10-12']) {
      expect(await kindsOf('2026-10-09', to)).toEqual([])
    }
  })
})

it('reconcile does not report a settlement that was SUCCESS only in an undone file as a reversal', async () => {
  await pay('MP1', '2026-10-05')
  await pay('MP2', '2026-10-05')
  await settle('2026-10-06', 'MN2', { paymentUtr: 'MP2' })
  await undo(await settle('2026-10-06', 'MN1', { paymentUtr: 'MP1' }), '2026-10-07')
  await settle('2026-10-06', 'MN1', { paymentUtr: 'MP1', status: 'FAILED', importedOn: '2026-10-07' })
  const book = await bookOn('2026-10-08', OCTOBER)
  expect(book.differences).toMatchObject([
    { kind: 'missing settlement', cause: 'settlement MN1 of 2026-10-06 is FAILED' },
  ])
})

it('a report as of a day ignores payments, exceptions, imports and undos from later days', async () => {
  const neighbour = await newMerchant(db)
  await pay('LP0', '2026-10-01')
  await pay('LP2', '2026-10-01')
  const wrong = await settle('2026-10-02', 'LN2', { mid: neighbour.mid, paymentUtr: 'LP2' })
  await settle('2026-10-06', 'LP1')
  await settle('2026-10-08', 'LX')
  await settle('2026-10-02', 'LN0', { paymentUtr: 'LP0' })
  const read = async () => {
    const requested = { from: '2026-10-01', to: '2026-10-08', mid, now: at('2026-10-09') }
    return findingsOf(db, requested)
  }
  const created = await read()
  await pay('LP1', '2026-10-05', { reportedOn: '2026-10-10', source: 'day file' })
  await except('double payment', 'LX', '2026-10-10')
  await undo(wrong, '2026-10-10')
  await settle('2026-10-02', 'LN2', { paymentUtr: 'LP2', importedOn: '2026-10-10' })
  expect(await read()).toEqual(created)
})

it('a report as of a past day ignores bank holidays that were entered later', async () => {
  await settle('2026-10-06', 'NN0', { paymentUtr: 'NP0' })
  await pay('NP0', '2026-10-05')
  await pay('NP1', '2026-10-06')
  // Tuesday's payment was due on Wednesday, until that day was entered as a bank holiday.
  const read = async () => (await bookOn('2026-10-12', [...OCTOBER, '--as-of', '2026-10-08'])).differences
  const created = await read()
  expect(created).toMatchObject([{ kind: 'missing settlement', utr: 'NP1' }])
  await db.query(`insert into bank_holiday_changes values ('2026-10-07', 1, 'closed', 'Asha', $1)`, [at('2026-10-09')])
  expect(await read()).toEqual(created)
  const { differences } = (await jsonOn('2026-10-12', ...OCTOBER, '--as-of', '2026-10-09', '--mid', mid)).merchants[0]
  expect(differences).toMatchObject([{ cause: 'no settlement line has its UTR; its payout was due on 2026-10-08' }])
})
