import pg from 'pg'
import { beforeAll, beforeEach, describe, expect, inject, it, vi } from 'vitest'
import { discrepancyId } from '../../src/books/ledger/discrepancies.ts'
import { reconcile } from '../../src/books/reports/reconcile.ts'
import { resolveByPayment } from '../../src/gateway/payments/unknown-orders.ts'
import type { Database } from '../../src/platform/db/pool.ts'
import { admitRoles } from '../support/citus.ts'
import { createTestDatabase } from '../support/database.ts'
import { type Finding, findingsOf } from '../support/findings.ts'
import { ON_CITUS } from '../support/installed-postgres.ts'
import { runOps } from '../support/ops.ts'
import { storePaidOrder } from '../support/paid-orders.ts'
import { newMerchant, unique } from '../support/service.ts'

/** A Monday. The Friday before is a bank day; the Saturday is the second of its month. */
const MONDAY = '2026-11-16'
const at = (day: string, time = '12:00:00') => new Date(`${day}T${time}+05:30`)

let url: string
let db: Database
let mid: string

beforeAll(async () => {
  ;({ url, db } = await createTestDatabase())
})
beforeEach(async () => {
  ;({ mid } = await newMerchant(db))
})

/** Stores a paid order of ₹200, created at the time of payment or at `madeAt`. */
const pay = (
  utr: string,
  paidAt: Date,
  { owner = mid, ...rest }: { madeAt?: Date; reportedAt?: Date; owner?: string } = {},
) => storePaidOrder(db, { mid: owner, utr, paidAt, ...rest })

type Settling = { amount?: string; fee?: string; tax?: string; paymentUtr?: string; status?: string }

async function settle(utr: string, initiatedAt: Date, { amount = '200', status = 'SUCCESS', ...rest }: Settling = {}) {
  await db.query(
    `insert into settlements
       (mid, utr, amount_paise, fee_paise, tax_paise, payment_utr, bank_reference_number, status, initiated_at, created_at)
     values ($1, $2, $3::numeric * 100, $4::numeric * 100, $5::numeric * 100, $6, 'BRN', $7, $8, $8)`,
    [mid, utr, amount, rest.fee, rest.tax, rest.paymentUtr, status, initiatedAt],
  )
}

async function except(kind: string, utr: string, orderId: string, receivedAt: Date, owner = mid): Promise<string> {
  const { rows } = await db.query<{ id: string }>(
    `insert into payment_exceptions (mid, order_id, kind, utr, amount_paise, status, paid_at, received_at)
     values ($1, $2, $3, $4, 20000, 'SUCCESS', $5, $5)
     returning exception_id as id`,
    [owner, orderId, kind, utr, receivedAt],
  )
  return (rows[0] as { id: string }).id
}

async function resolve(exceptionId: string, owner = mid): Promise<void> {
  await db.query(`insert into payment_resolutions values ($1, $2, 'refunded, RRN 1', 'asha', '2026-11-11')`, [
    owner,
    exceptionId,
  ])
}

async function find(from: string, to = from, now = '2026-12-15', only: string | null = mid): Promise<Finding[]> {
  const findings: Finding[] = []
  for (const finding of await findingsOf(db, { from, to, mid: only ?? undefined, now: at(now) })) findings.push(finding)
  return findings
}

async function differencesOf(...requested: Parameters<typeof find>) {
  const findings = await find(...requested)
  return findings.flatMap((finding) => (finding.type === 'difference' ? [finding] : []))
}

const endOf = (findings: Finding[]) => findings.at(-1) as Extract<Finding, { type: 'end' }>

describe('payments', () => {
  it('reconcile reports an unsettled payment as awaited until its payout is due, and as a discrepancy from the next day on', async () => {
    await settle('P0', at('2026-11-13'), { paymentUtr: 'P0' })
    await pay('P0', at('2026-11-12'))
    const orderId = await pay('P1', at('2026-11-13'))
    await pay('P2', at('2026-11-15'))
    // The payout is due on Monday, since Saturday is the second of its month.
    for (const today of ['2026-11-13', '2026-11-14', MONDAY]) {
      const findings = await find('2026-11-13', '2026-11-13', today)
      expect(endOf(findings)).toMatchObject({ balances: true, sums: { awaited: 200_00, differences: 0 } })
    }
    const findings = await find('2026-11-13', '2026-11-13', '2026-11-17')
    expect(endOf(findings)).toMatchObject({ balances: false, sums: { awaited: 200_00, differences: 1 } })
    expect(await differencesOf('2026-11-13', '2026-11-13', '2026-11-17')).toEqual([
      {
        ...{
          type: 'difference',
          mid,
          day: '2026-11-13',
          kind: 'missing settlement',
          orderId,
          utr: 'P1',
          settlementUtr: null,
        },
        ...{
          merchantOrderId: orderId,
          paid: 200_00,
          settled: null,
          owed: 200_00,
          exceptionId: null,
          resolution: null,
          entries: 0,
        },
        ...{
          id: expect.stringMatching(/^261113[0-9a-f]{10}$/),
          cause: `no settlement line has its UTR; its payout was due on ${MONDAY}`,
        },
      },
    ])
    // Sunday is the last day whose payments were due on that Monday.
    expect(await differencesOf('2026-11-15', '2026-11-15', '2026-11-17')).toMatchObject([{ utr: 'P2' }])
  })

  it('reconcile reports a duplicate settlement on the day of the second settlement, however old the first settlement is', async () => {
    const orderId = await pay('P1', at('2026-10-01'))
    await settle('N1', at('2026-10-02'), { paymentUtr: 'P1' })
    await settle('N2', at('2026-11-10'), { paymentUtr: 'P1' })
    expect(await differencesOf('2026-10-01', '2026-10-31')).toEqual([])
    expect(await differencesOf('2026-11-10')).toMatchObject([
      {
        ...{ day: '2026-11-10', kind: 'duplicate settlement', orderId, utr: 'P1', settlementUtr: 'N2', paid: 200_00 },
        ...{ settled: 200_00, cause: 'settlement N1 of 2026-10-02 already settled it' },
      },
    ])
  })

  it('reconcile reports a chargeback until the bank pays again, and a second chargeback with the whole history', async () => {
    await pay('P1', at('2026-11-09'))
    await settle('N1', at('2026-11-10'), { paymentUtr: 'P1' })
    await settle('E1', at('2026-11-11'), { paymentUtr: 'P1', amount: '-200' })
    const reversals = { kind: 'reversal', utr: 'P1', owed: 200_00 }
    expect(await differencesOf('2026-11-01', '2026-11-30')).toMatchObject([{ ...reversals, settlementUtr: 'E1' }])
    await settle('N2', at('2026-12-12'), { paymentUtr: 'P1' })
    expect(await differencesOf('2026-11-01', '2026-12-31', '2027-01-15')).toEqual([])
    await settle('E2', at('2026-12-14'), { paymentUtr: 'P1', amount: '-200' })
    expect(await differencesOf('2026-11-01', '2026-12-31', '2027-01-15')).toMatchObject([
      {
        ...{ ...reversals, settlementUtr: 'E2' },
        cause: expect.stringContaining(
          '; settled on 2026-11-10, reversed on 2026-11-11, paid again on 2026-12-12, reversed on 2026-12-14',
        ),
      },
    ])
  })

  it('reconcile clears a duplicate settlement that the bank reverses, and carries nothing forward', async () => {
    await pay('P1', at('2026-11-09'))
    await settle('N1', at('2026-11-10'), { paymentUtr: 'P1' })
    await settle('N2', at('2026-11-10', '18:00:00'), { paymentUtr: 'P1' })
    expect(await differencesOf('2026-11-01', '2026-11-30')).toMatchObject([
      { kind: 'duplicate settlement', owed: -200_00 },
    ])
    await settle('E1', at('2026-11-12'), { paymentUtr: 'P1', amount: '-200' })
    const findings = await find('2026-11-01', '2026-11-30')
    expect(endOf(findings)).toMatchObject({ balances: true, sums: { differences: 0, carried: 0 } })
  })

  it('reconcile does not settle a payment by a settlement dated more than a day before the payment, whatever days are requested', async () => {
    await settle('P0', at('2026-11-10'))
    await pay('P0', at('2026-11-09'))
    const orderId = await pay('P1', at('2026-11-11'))
    await pay('P2', at('2026-11-11'))
    await settle('N1', at('2026-11-09'), { paymentUtr: 'P1' })
    await settle('N2', at('2026-11-10', '12:00:00'), { paymentUtr: 'P2' })
    const early = { day: '2026-11-09', kind: 'unknown payment', orderId: null, settlementUtr: 'N1' }
    const unsettled = { day: '2026-11-11', kind: 'missing settlement', orderId, settlementUtr: null }
    expect(await differencesOf('2026-11-01', '2026-11-30')).toMatchObject([early, unsettled])
    expect(await differencesOf('2026-11-09', '2026-11-10')).toMatchObject([early])
    expect(await differencesOf('2026-11-11', '2026-11-30')).toMatchObject([unsettled])
    // Only a line dated near or after the payment counts as its first settlement.
    await settle('N3', at('2026-11-12'), { paymentUtr: 'P1' })
    expect(await differencesOf('2026-11-01', '2026-11-30')).toMatchObject([early])
    expect(await differencesOf('2026-11-09', '2026-11-10')).toMatchObject([early])
    expect(await differencesOf('2026-11-11', '2026-11-30')).toEqual([])
  })

  it('reconcile names the exception of a payment that failed after success as the cause, and balances once the exception is resolved', async () => {
    await settle('P0', at('2026-11-10'))
    await pay('P0', at('2026-11-09'))
    const orderId = await pay('P1', at('2026-11-09'))
    const exceptionId = await except('failure after success', 'P1', orderId, at('2026-11-09'))
    const found = {
      kind: 'missing settlement',
      orderId,
      cause: expect.stringMatching(`^exception ${exceptionId}: failure after success(; settlement .* carries it)?$`),
      exceptionId,
    }
    expect(await differencesOf('2026-11-01', '2026-11-30')).toMatchObject([{ ...found, resolution: null }])
    await resolve(exceptionId)
    expect(await differencesOf('2026-11-01', '2026-11-30')).toMatchObject([{ ...found, resolution: 'refunded, RRN 1' }])
    expect(endOf(await find('2026-11-01', '2026-11-30'))).toMatchObject({ balances: true, sums: { awaited: 200_00 } })
  })

  it("reconcile does not apply the resolved failure of an order's payment to the duplicate payment of that order", async () => {
    await settle('P0', at('2026-11-10'))
    await pay('P0', at('2026-11-09'))
    const orderId = await pay('P1', at('2026-11-09'))
    await db.query(
      `insert into payments (mid, utr, order_id, amount_paise, paid_at, received_at, kind, source, acquirer)
       values ($1, 'D1', $2, 20000, $3, $3, 'second', 'notification', 'direct')`,
      [mid, orderId, at('2026-11-09')],
    )
    await resolve(await except('failure after success', 'P1', orderId, at('2026-11-09')))
    const found = await differencesOf('2026-11-01', '2026-11-30')
    expect(found.map(({ utr, resolution }) => [utr, resolution]).sort()).toEqual([
      ['D1', null],
      ['P1', 'refunded, RRN 1'],
    ])
  })

  it('reconcile does not apply the resolved failure of another attempt to the payment that paid the order (simulation, seed 7)', async () => {
    await settle('P0', at('2026-11-10'))
    await pay('P0', at('2026-11-09'))
    const orderId = await pay('P1', at('2026-11-09'))
    await resolve(await except('failure after success', 'A2', orderId, at('2026-11-09')))
    const found = await differencesOf('2026-11-01', '2026-11-30')
    expect(found).toMatchObject([{ utr: 'P1', kind: 'missing settlement', exceptionId: null, resolution: null }])
  })

  it("reconcile dates a payment on the bank's day, otherwise on the day of its report, like fetchTransactionList", async () => {
    await settle('P0', at('2026-11-13'), { paymentUtr: 'P0' })
    const late = await pay('P3', at('2026-11-12'), { madeAt: at('2026-09-01'), reportedAt: at('2026-11-12') })
    await except('late payment', 'P3', late, at('2026-11-12'))
    await pay('P4', at('2026-11-16'), { madeAt: at('2026-11-16', '11:59:00'), reportedAt: at('2026-11-18') })
    await db.query(
      `insert into payments (mid, utr, order_id, amount_paise, received_at, kind, acquirer, source)
       values ($1, 'P5', $2, 20000, $3, 'first', 'direct', 'notification')`,
      [mid, 'f'.repeat(32), at('2026-11-17')],
    )
    const findings = await find('2026-11-01', '2026-11-30')
    const paid = findings.flatMap((one) => (one.type === 'day' && one.paidCount > 0 ? [[one.day, one.paidCount]] : []))
    expect(paid).toEqual([
      ['2026-11-12', 1],
      ['2026-11-16', 1],
      ['2026-11-17', 1],
    ])
  })
})

describe('settlements of unknown payments', () => {
  it("reconcile explains a settlement of an unknown payment once by a resolved exception, up to the exception's amount", async () => {
    await pay('P1', at('2026-11-09'))
    await settle('P1', at('2026-11-10'))
    await resolve(await except('double payment', 'X1', 'gone', at('2026-11-09')))
    await resolve(await except('double payment', 'X2', 'gone', at('2026-11-09')))
    await settle('N1', at('2026-11-10'), { paymentUtr: 'X1' })
    await settle('N2', at('2026-11-10'), { paymentUtr: 'X1' })
    await settle('N3', at('2026-11-20'), { paymentUtr: 'X1', amount: '1' })
    await settle('X2', at('2026-11-10'), { amount: '200', fee: '0.01' })
    const excused = { settlementUtr: 'N1', kind: 'unknown payment', resolution: 'refunded, RRN 1' }
    const second = {
      kind: 'duplicate settlement',
      cause: 'settlement N1 of 2026-11-10 already settled it',
      resolution: null,
    }
    const tooMuch = { settlementUtr: 'X2', kind: 'unknown payment', settled: 200_01, resolution: null }
    expect(await differencesOf('2026-11-09', '2026-11-10')).toMatchObject([
      { ...second, settlementUtr: 'N2' },
      excused,
      tooMuch,
    ])
    expect(endOf(await find('2026-11-09', '2026-11-10'))).toMatchObject({ balances: false, sums: { differences: 2 } })
    // A report of later days alone does not apply the resolution again.
    expect(await differencesOf('2026-11-20')).toMatchObject([{ ...second, settlementUtr: 'N3' }])
    const { stdout } = await runOps(url, ['reconcile', '--from', '09-11-2026', '--to', '10-11-2026', '--mid', mid])
    expect(stdout).toContain(': double payment, of order gone; resolved: refunded, RRN 1\n')
  })

  it('reconcile applies a resolved unknown-order exception only to the merchant that was settled first', async () => {
    await resolve(await except('unknown order', 'ZZ1', 'gone', at('2026-11-09'), ''), '')
    await resolve(await except('unknown order', 'ZZ2', 'gone', at('2026-11-09'), ''), '')
    const found = []
    for (const [plain, named] of [
      ['2026-11-10', '2026-11-11'],
      ['2026-11-11', '2026-11-10'],
    ] as const) {
      ;({ mid } = await newMerchant(db))
      await settle('zz1', at(plain))
      await settle('N1', at(named), { paymentUtr: 'ZZ2' })
      found.push(mid)
    }
    const resolutionsOf = async (owner: string) =>
      (await differencesOf('2026-11-10', '2026-11-11', '2026-12-15', owner)).map((one) => [one.utr, one.resolution])
    expect(Object.fromEntries(await resolutionsOf(found[0] as string))).toEqual({ ZZ1: 'refunded, RRN 1', ZZ2: null })
    expect(Object.fromEntries(await resolutionsOf(found[1] as string))).toEqual({ ZZ1: null, ZZ2: 'refunded, RRN 1' })
  })

  it('reconcile explains no settlement by an unknown-order exception that a payment has resolved', async () => {
    const exceptionId = await except('unknown order', 'UPI1', 'UPI', at('2026-11-09'), '')
    const another = await newMerchant(db)
    await pay('UPI1', at('2026-11-09'), { owner: another.mid })
    await resolveByPayment(db, { mid: another.mid, utr: 'UPI1' }, { by: 'asha', now: at('2026-11-10') })
    // The bank settles the payment to the wrong merchant.
    await settle('UPI1', at('2026-11-10'))
    const difference = { utr: 'UPI1', kind: 'unknown payment', exceptionId, resolution: null }
    expect(await differencesOf('2026-11-10')).toMatchObject([difference])
    expect(endOf(await find('2026-11-11'))).toMatchObject({ sums: { brought: -200_00 } })
  })

  it('reconcile names an unknown-order exception as the cause of a settlement of an unknown payment', async () => {
    await settle('PALONE1', at('2026-11-10'), { paymentUtr: 'PALONE1' })
    const exceptionId = await except('unknown order', 'UNKNOWN1', 'gone', at('2026-11-09'), '')
    await settle('UNKNOWN1', at('2026-11-10'))
    const ofNothing = 'no order and no exception of this merchant has its UTR'
    expect((await differencesOf('2026-11-10')).map(({ utr, orderId, cause }) => [utr, orderId, cause])).toEqual([
      ['UNKNOWN1', 'gone', `exception ${exceptionId}: unknown order, of order gone`],
      ['PALONE1', null, ofNothing],
    ])
    // Exceptions for unknown orders appear separately, and only in reports of all merchants.
    const all = await find('2026-11-09', '2026-11-09', '2026-12-15', null)
    expect(all.filter((one) => one.type === 'exception' && one.exceptionId === exceptionId)).toMatchObject([
      { mid: '', kind: 'unknown order', orderId: 'gone', utr: 'UNKNOWN1', amount: 200_00 },
    ])
  })
})

it('reconcile reads only those unknown-order exceptions whose UTR appears in a settlement of the merchant', async () => {
  await settle('KNOWN1', at('2026-11-10'))
  const carried = await except('unknown order', 'known1', 'gone', at('2026-11-09'), '')
  await db.query(
    `insert into payment_exceptions (mid, order_id, kind, utr, amount_paise, status, received_at)
     select '', 'gone', 'unknown order', 'FLOOD' || i, 20000, 'SUCCESS', '2026-11-09' from generate_series(1, 500) i`,
  )
  const read = vi.spyOn(pg.Client.prototype, 'query')
  const differences = await differencesOf('2026-11-10')
  const responses = await Promise.all(
    read.mock.results.map(({ value }) => value as Promise<{ rows?: unknown } | undefined>),
  )
  const sent = JSON.stringify([
    read.mock.calls.map(([query, values]) => [query, values]),
    responses.map((one) => one?.rows),
  ])
  read.mockRestore()
  expect([sent.includes('KNOWN1'), sent.includes('FLOOD')]).toEqual([true, false])
  expect(differences).toMatchObject([{ utr: 'KNOWN1', exceptionId: carried }])
})

describe('settlement files with totals', () => {
  it('reconcile compares each total with the payments since the previous bank day', async () => {
    // Thursday is paid out on Friday, and Friday to Sunday on Monday, with a part already on Sunday.
    for (const day of ['2026-11-12', '2026-11-13', '2026-11-14', '2026-11-15'])
      await pay(`S${day}`.replaceAll('-', ''), at(day))
    await settle('OUT1', at('2026-11-13'), { amount: '199', fee: '1' })
    await settle('OUT2', at('2026-11-15'), { amount: '200' })
    await settle('OUT3', at(MONDAY), { amount: '399.99' })
    expect(await differencesOf('2026-11-13', MONDAY)).toEqual([
      {
        ...{
          type: 'difference',
          mid,
          day: MONDAY,
          kind: 'payout total',
          orderId: null,
          utr: null,
          settlementUtr: null,
        },
        ...{ paid: 600_00, settled: 599_99, owed: 1, exceptionId: null, resolution: null, entries: 0 },
        ...{ merchantOrderId: null, id: expect.stringMatching(/^261116[0-9a-f]{10}$/) },
        cause: '0.01 less than the payments of 2026-11-13 to 2026-11-15',
      },
    ])
    // A report of Monday alone shows the same discrepancy.
    expect(await differencesOf(MONDAY)).toMatchObject([{ day: MONDAY, paid: 600_00, settled: 599_99 }])
    // On Monday itself, the bank may still pay.
    expect(endOf(await find('2026-11-13', MONDAY, MONDAY))).toMatchObject({
      ...{ balances: true, sums: { awaited: 600_00, differences: 0 } },
    })
  })

  it('reconcile clears a failed total when the bank pays the total again on the same day', async () => {
    await pay('S1', at('2026-11-12'))
    await settle('OUT1', at('2026-11-13'), { status: 'FAILED' })
    await db.query(
      `insert into settlement_versions (mid, utr, amount_paise, bank_reference_number, status, initiated_at, created_at, replaced_at,
         replaced_by_import_id, undone)
       values ($1, 'OUT1', 20000, 'BRN', 'SUCCESS', $2, $2, $2, 1, false)`,
      [mid, at('2026-11-13')],
    )
    expect(await differencesOf('2026-11-13')).toMatchObject([{ kind: 'reversal', settlementUtr: 'OUT1', paid: 200_00 }])
    await settle('OUT2', at('2026-11-13'))
    expect(await differencesOf('2026-11-13')).toEqual([])
  })

  it('reconcile compares each daily payout to a merchant with two acquirers only with the payments through the payout’s acquirer', async () => {
    for (const [utr, acquirer] of [
      ['A1', 'setu'],
      ['A2', 'direct'],
      ['A3', 'direct'],
    ]) {
      await pay(utr as string, at('2026-11-12'))
      await db.query(`alter table payments disable trigger user`)
      await db.query('update payments set acquirer = $3 where mid = $1 and utr = $2', [mid, utr, acquirer])
      await db.query(`alter table payments enable trigger user`)
    }
    await settle('OUT1', at('2026-11-13'))
    await settle('OUT2', at('2026-11-13'), { amount: '390' })
    await db.query(`update settlements set account = 'setu:acme' where mid = $1 and utr = 'OUT1'`, [mid])
    expect(await differencesOf('2026-11-13')).toMatchObject([
      { kind: 'payout total', paid: 400_00, settled: 390_00, cause: '10.00 less than the payments of 2026-11-12' },
    ])
    await db.query(`update settlements set amount_paise = 19500 where mid = $1 and utr = 'OUT1'`, [mid])
    const [ofDirect, ofSetu] = await differencesOf('2026-11-13')
    expect(ofDirect).toMatchObject({ owed: 10_00 })
    expect(ofSetu).toMatchObject({ owed: 5_00, account: 'setu' })
    expect(ofSetu?.cause).toBe('5.00 less than the payments of 2026-11-12 through setu')
    expect(ofSetu?.id).not.toBe(ofDirect?.id)
  })

  it('reconcile compares payments through an acquirer account with the settlements of that acquirer', async () => {
    await pay('A1', at('2026-11-12'))
    await db.query(`alter table payments disable trigger user`)
    await db.query(`update payments set acquirer = 'setu:acme' where mid = $1`, [mid])
    await db.query(`alter table payments enable trigger user`)
    await settle('OUT1', at('2026-11-13'))
    for (const account of ['setu:acme', 'setu', null]) {
      await db.query('update settlements set account = $2 where mid = $1', [mid, account])
      expect(await differencesOf('2026-11-13')).toEqual([])
    }
  })

  it('reconcile reports payments as awaited, not as discrepancies, if the payments’ payout is due after the reported days', async () => {
    await pay('S1', at('2026-11-29'))
    await pay('S2', at('2026-11-30'))
    await settle('OUT1', at('2026-11-30'))
    expect(endOf(await find('2026-11-01', '2026-11-30'))).toMatchObject({
      ...{ balances: true, sums: { paid: 400_00, awaited: 200_00, differences: 0 } },
    })
    expect(await differencesOf('2026-12-01', '2026-12-10')).toMatchObject([{ day: '2026-12-01', paid: 200_00 }])
  })
})

describe('settlement files with a line per payment', () => {
  const fileOf = async (...requested: Parameters<typeof find>) =>
    (await find(...requested)).flatMap((one) => (one.type === 'merchant' ? [one.file] : []))

  it('reconcile compares by payment if the newest settlements name payments, even if no settlement is dated on the reported days', async () => {
    await pay('P1', at('2026-11-09'))
    await pay('P2', at('2026-11-12'))
    await settle('P1', at('2026-11-27'))
    expect(await fileOf('2026-11-09', '2026-11-13')).toEqual(['by payment'])
    expect(await differencesOf('2026-11-09', '2026-11-13')).toMatchObject([{ kind: 'missing settlement', utr: 'P2' }])
  })

  it('reconcile does not compare by payment if only a failed settlement names a payment', async () => {
    for (const utr of ['S1', 'S2', 'S3']) await pay(utr, at('2026-11-09'))
    await settle('OUT1', at('2026-11-10'), { amount: '600' })
    await settle('OUT2', at('2026-11-17'), { amount: '1', paymentUtr: 'ZZ', status: 'FAILED' })
    expect(await fileOf('2026-11-09', '2026-11-10')).toEqual(['by sums'])
    expect(endOf(await find('2026-11-09', '2026-11-10'))).toMatchObject({ balances: true, sums: { differences: 0 } })
    // A failed line does not decide the form either if it is the newest and the only one near these days.
    await pay('S4', at('2026-12-03'))
    expect(await fileOf('2026-12-03', '2026-12-04')).toEqual(['by sums'])
  })
})

it('reconcile reads one snapshot, whatever is imported, undone or resolved meanwhile', async () => {
  const pid = unique('P')
  await db.query(`insert into partners (pid, name, created_at) values ($1, 'Partner', now())`, [pid])
  const exceptionIds: string[] = []
  for (const _ of [1, 2]) {
    ;({ mid } = await newMerchant(db))
    await db.query('insert into partner_merchants (pid, mid) values ($1, $2)', [pid, mid])
    await pay('P1', at('2026-11-09'))
    await settle('P1', at('2026-11-10'), { amount: '1' })
    exceptionIds.push(await except('amount differs', 'P2', 'gone', at('2026-11-09')))
  }
  const books = reconcile(db, { from: '2026-11-09', to: '2026-11-10', pid, now: at('2026-12-15') })
  await books.next()
  await db.query('delete from settlements where mid in (select mid from partner_merchants where pid = $1)', [pid])
  for (const id of exceptionIds) await resolve(id)
  await books.next()
  const total = { settledCount: 2, gross: 2_00, differences: 2, openExceptions: 2 }
  expect((await books.next()).value).toMatchObject({ total })
  expect(await books.next()).toMatchObject({ done: true })
})

describe('ops reconcile', () => {
  const ops = (...args: string[]) => runOps(url, ['reconcile', ...args])

  it('ops reconcile changes nothing and works for a read-only role without temporary tables', async () => {
    const other = await newMerchant(db)
    for (const owner of [mid, other.mid]) await pay(`SHARED${mid}`, at('2026-11-12'), { owner })
    await pay('P1', at('2026-11-13'))
    await settle('N1', at('2026-11-13'), { paymentUtr: 'P0' })
    const role = unique('reader_').toLowerCase()
    const database = new URL(url).pathname.slice(1)
    await db.query(
      `create role ${role} login password '${role}';
       grant pg_read_all_data to ${role};
       revoke temporary on database ${database} from public;
       alter role ${role} set default_transaction_read_only = on`,
    )
    if (ON_CITUS) await admitRoles(inject('adminUrls'), database, { [role]: role })
    const reader = Object.assign(new URL(url), { username: role, password: role }).href
    const days = ['--from', '2026-11-12', '--to', '2026-11-17']
    for (const more of [[], ['--mid', mid, '--as-of', '2026-11-16']]) {
      const read = await runOps(reader, ['reconcile', ...days, ...more])
      expect(read).toMatchObject({ code: 0, stderr: '' })
      expect(read.stdout).toBe((await ops(...days, ...more)).stdout)
    }
    const stored = `select from payment_exceptions where utr = $1`
    expect((await db.query(stored, [`SHARED${mid}`])).rowCount).toBe(0)
    await db.query(`drop owned by ${role}; drop role ${role}`)
  })

  it('ops reconcile accepts dates as dd-mm-yyyy or yyyy-mm-dd and prints in its last line whether the days balance', async () => {
    const { code, stdout } = await ops('--from', '01-10-2026', '--to', '2026-10-02', '--mid', mid)
    expect({ code, stdout }).toEqual({
      ...{ code: 0, stdout: 'No settlement file imported yet\n2026-10-01 to 2026-10-02 balances\n' },
    })
    const json = await ops('--from', '2026-10-01', '--to', '2026-10-01', '--mid', mid, '--json')
    expect(JSON.parse(json.stdout)).toMatchObject({ merchants: [], balances: true, newestImport: null })
    const csv = await ops('--from', '2026-10-01', '--to', '2026-10-01', '--mid', mid, '--csv')
    expect(csv.stdout.split('\n')[1]).toMatch(/^end,,2026-10-01 to 2026-10-01,balances,/)
    const fault = { code: 1, stdout: '', stderr: 'ops: mid NOBODY does not exist: see ops merchants list\n' }
    expect(await ops('--from', '2026-10-01', '--to', '2026-10-01', '--mid', 'NOBODY')).toEqual(fault)
  })

  it.each([
    [['--from', '2026-11-02', '--to', '2026-11-01'], '--from must not be after --to'],
    [['--from', '2026-01-01', '--to', '2027-01-02'], 'the period must be at most 366 days'],
    [['--from', '2026-02-30', '--to', '1/2/26'], /^--from must be an existing day.*; --to must be an existing day/],
    [['--from', '2026-11-01', '--to', '2026-11-01', '--json', '--csv'], 'give either --json or --csv'],
  ])('ops reconcile rejects the arguments %j', async (args, message) => {
    const { code, stdout, stderr } = await ops(...args)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr.replace('ops: ', '').split('\n')[0]).toMatch(message)
  })

  it('ops reconcile prints what each discrepancy owes, and two tables that fit 132 characters', async () => {
    const [ninth, tenth] = ['2026-10-09', '2026-10-12']
    for (const [utr, day] of [
      ['T1', ninth],
      ['T2', tenth],
    ] as const)
      await pay(utr, at(day))
    await settle('T1', at(tenth), { amount: '195', fee: '4', tax: '0.72', paymentUtr: 'T1' })
    const { stdout } = await ops('--from', ninth, '--to', '2026-10-13', '--mid', mid)
    const [discrepancies, paid, settled] = stdout.split('\n\n')
    expect(discrepancies).toMatch(
      / fee mismatch .*, customers paid 200\.00, acquirer settled 199\.72, owed 0\.28: the /,
    )
    expect(discrepancies).toMatch(/ missing settlement .*, customers paid 200\.00, owed 200\.00: /)
    expect(paid).toMatch(/^Customers paid\nday +broughtForward +payments +paid +awaited\n/)
    expect(settled).toMatch(
      /^Acquirer settled\nday +settlements +settled +fee +tax +net +carriedForward +differences\n/,
    )
    const tables = [paid, settled].join('\n').split('\n')
    expect(Math.max(...tables.map((line) => line.length))).toBeLessThanOrEqual(132)
  })

  it('ops reconcile prints amounts with Indian digit grouping in text, and without grouping in JSON and CSV', async () => {
    await settle('BIG', at('2026-10-06'), { amount: '3218361.86', fee: '12345.60', tax: '1234567.00' })
    const days = ['--from', '2026-10-06', '--to', '2026-10-06', '--mid', mid]
    const plain = /\d{4,}\.\d\d/
    const grouped = /\d,\d{3}\.\d\d/
    const text = (await ops(...days)).stdout
    expect(text).toContain('acquirer settled 44,65,274.46, owed -44,65,274.46: 44,65,274.46 more than')
    expect(text).toMatch(
      /^2026-10-06 +1 +₹44,65,274\.46 +₹12,345\.60 +₹12,34,567\.00 +₹32,18,361\.86 +-₹44,65,274\.46 +1$/m,
    )
    const [, id = ''] = /payout total (\w{16})/.exec(text) ?? []
    for (const args of [
      [...days, '--json'],
      [...days, '--csv'],
      ['--payout', 'BIG', '--json'],
    ]) {
      const { stdout } = await ops(...args)
      expect([args, plain.test(stdout), grouped.test(stdout)]).toEqual([args, true, false])
    }
    for (const args of [
      days,
      ['--payout', 'BIG'],
      ['resolve', '--difference', id, '--reason', 'by hand'],
      ['close', '--month', '2026-10'],
    ]) {
      const { stdout } = await ops(...args)
      expect([args, plain.test(stdout), grouped.test(stdout)]).toEqual([args, false, true])
    }
  })

  it('ops reconcile --csv preserves the digits of discrepancy and exception ids, even of an id like 12e34', async () => {
    const about = { mid, day: '2026-09-15', kind: 'missing settlement', orderId: null, settlementUtr: null } as const
    const unknown = { paid: null, settled: null, exceptionId: null, resolution: null }
    const idOf = (utr: string) => discrepancyId({ ...about, ...unknown, utr })
    // About one in sixty ids consists of digits only, or of digits and an e.
    const utr =
      Array.from({ length: 5_000 }, (_, index) => `N${index}`).find((one) => /^\d+e\d+$/.test(idOf(one))) ?? ''
    await pay(utr, at('2026-09-15'))
    await settle('M', at('2026-09-16'), { paymentUtr: 'M' })
    await db.query(
      `insert into payment_exceptions (mid, order_id, kind, utr, amount_paise, status, received_at)
       select $1, '', 'amount differs', 'X' || i, 20000, 'SUCCESS', $2 from generate_series(1, 2000) i`,
      [mid, at('2026-09-15')],
    )
    const { rows } = await db.query<{ id: string }>(
      `select exception_id as id from payment_exceptions where mid = $1 and exception_id ~ '^[0-9]+e?[0-9]+$'`,
      [mid],
    )
    expect(rows.length).toBeGreaterThan(0)
    const { stdout } = await ops('--from', '2026-09-15', '--to', '2026-09-15', '--mid', mid, '--csv')
    for (const id of [idOf(utr), ...rows.map(({ id }) => id)]) expect(stdout).toContain(`,"=""${id}""",`)
  })

  it('ops reconcile escapes text from outside for scripts, spreadsheets and terminals', async () => {
    const orderId = '=1+1,"x"\u202e'
    const exceptionId = await except('unknown order', 'UX', orderId, at('2026-08-01'), '')
    await db.query(
      `insert into payment_exceptions (mid, order_id, kind, utr, amount_paise, status, dedup_key, body, received_at)
       values ('', '', 'unreadable', '', 0, '', 'd', '{', $1)`,
      [at('2026-08-01')],
    )
    const days = ['--from', '2026-08-01', '--to', '2026-08-01']
    const { merchants, balances } = JSON.parse((await ops(...days, '--json')).stdout)
    expect(balances).toBe(false)
    expect(merchants).toMatchObject([
      {
        ...{ mid: '', differences: [], days: [] },
        exceptions: expect.arrayContaining([
          expect.objectContaining({ exceptionId, kind: 'unknown order', orderId, utr: 'UX', amount: '200.00' }),
          expect.objectContaining({ kind: 'unreadable', orderId: '', amount: null }),
        ]),
      },
    ])
    const { stdout } = await ops(...days, '--csv')
    expect(stdout).toContain(
      `exception,,2026-08-01,unknown order,,"'=1+1,""x""\ufffd",,UX,,${exceptionId},,,200.00,,,,,,,,,,,,,,,,,\n`,
    )
    const unreadable = /^ {2}open exception \w{12}: unreadable, received 2026-08-01 12:00:00 IST$/m
    const text = (await ops(...days)).stdout
    expect(text).toMatch(unreadable)
    expect(text).toContain('unknown order, order =1+1,"x"\ufffd, UTR UX')
  })
})

// Runs last, since every report of all merchants would read these rows.
it('reconcile adds up 31,000 payouts of 95 crore rupees exactly', async () => {
  await db.query(
    `insert into settlements (mid, utr, amount_paise, fee_paise, tax_paise, bank_reference_number, status, initiated_at, created_at)
     select $1, 'B' || i, 95000000099, 95000000099, 95000000099, 'BRN', 'SUCCESS', $2, $2
       from generate_series(1, 31000) i`,
    [mid, at('2026-11-10')],
  )
  const one = 950_000_000_99 * 31_000
  expect(endOf(await find('2026-11-10'))).toMatchObject({
    ...{ balances: false, sums: { settledCount: 31_000, gross: 3 * one, fee: one, tax: one } },
  })
})
