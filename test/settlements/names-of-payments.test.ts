import { describe, expect, it } from 'vitest'
import { newId } from '../../src/gateway/payments/intent.ts'
import { newUtr } from '../support/acquirer.ts'
import { createTestDatabase } from '../support/database.ts'
import { runOps } from '../support/ops.ts'
import { storePaidOrder } from '../support/paid-orders.ts'
import { newMerchant, unique } from '../support/service.ts'

const { url, db } = await createTestDatabase()

const ops = (args: string[], input = '') => runOps(url, args, input)
const PAID_AT = new Date('2026-11-17T15:40:12+05:30')

/** Creates a merchant with a paid order of ₹200. `utr` is the payment's stored UTR, `id` the acquirer's payment id. */
async function paidOrder({ id = unique('OM'), isStoredById = false, of = undefined as string | undefined } = {}) {
  const mid = of ?? (await newMerchant(db)).mid
  const utr = isStoredById ? id.replaceAll(/[_-]/g, '').toUpperCase() : newUtr()
  const orderId = await storePaidOrder(db, { mid, utr, paidAt: PAID_AT })
  await db.query('update payments set acquirer_payment_id = $3 where mid = $1 and utr = $2', [mid, utr, id])
  return { mid, utr, id, orderId }
}

const HEADER =
  'mid,amount,utr,bank_reference_number,status,initiation_date,payment_utr,order_id,acquirer_payment_id,fee,tax'
type Fields = { amount?: string; utr?: string; paymentUtr?: string; orderId?: string; id?: string }
const row = (mid: string, { amount = '200.00', utr = '', paymentUtr = '', orderId = '', id = '' }: Fields) =>
  [mid, amount, utr, 'YESIG63220270133', 'SUCCESS', '2026-11-18 10:00:00', paymentUtr, orderId, id, '', ''].join()

async function importRows(...rows: string[]) {
  const { code, stdout, stderr } = await ops(
    ['settlements', 'import', '-', '--json'],
    `${[HEADER, ...rows].join('\n')}\n`,
  )
  return code === 0 ? JSON.parse(stdout) : stderr
}

async function stored(mid: string) {
  const { rows } = await db.query<{ amount: string; utr: string; payment: string }>(
    'select (amount_paise * 0.01)::text as amount, utr, payment_utr as payment from settlements where mid = $1 order by amount_paise desc, utr',
    [mid],
  )
  return rows
}

describe('settlements import finds the payment of a row', () => {
  it("settlements import finds a payment by orderId and stores the row under the payment's UTR", async () => {
    const { mid, utr, orderId } = await paidOrder()
    const rows = [row(mid, { orderId }), row(mid, { orderId, amount: '-50.00' })]
    expect(await importRows(...rows)).toMatchObject({ inserted: 2, warnings: [] })
    expect(await stored(mid)).toEqual([
      { amount: '200.00', utr, payment: utr },
      { amount: '-50.00', utr: `${utr}R1`, payment: utr },
    ])
    expect(await importRows(...rows)).toMatchObject({ inserted: 0, unchanged: 2 })
  })

  it("settlements import finds a payment by the acquirer's payment id, even if the payment is stored under another UTR", async () => {
    for (const isStoredById of [true, false]) {
      const { mid, utr, id } = await paidOrder({ isStoredById })
      expect(await importRows(row(mid, { id }))).toMatchObject({ inserted: 1 })
      expect(await importRows(row(mid, { id }))).toMatchObject({ unchanged: 1 })
      expect(await stored(mid)).toEqual([{ amount: '200.00', utr, payment: utr }])
    }
  })

  it("settlements import finds a refund by refundId and stores the row under the acquirer's id of the refund", async () => {
    const { mid, utr, orderId } = await paidOrder()
    const refundId = newId(PAID_AT)
    await db.query(
      `insert into refunds (mid, refund_id, our_refund_id, order_id, utr, amount_paise, note, acquirer, created_by, created_at, status)
       values ($1, 'R1', $2, $3, $4, 5000, '', 'direct', 'merchant', $5, 'PENDING')`,
      [mid, refundId, orderId, utr, PAID_AT],
    )
    expect(await importRows(row(mid, { amount: '-50.00', orderId: refundId, id: 'OMR_1' }))).toMatchObject({
      inserted: 1,
    })
    expect(await stored(mid)).toEqual([{ amount: '-50.00', utr: 'OMR1', payment: utr }])
  })

  it("settlements import stores the row's own utr, with the payment's UTR in payment_utr", async () => {
    const { mid, utr, orderId } = await paidOrder()
    await importRows(row(mid, { utr: 'ROW1', orderId }))
    expect(await stored(mid)).toEqual([{ amount: '200.00', utr: 'ROW1', payment: utr }])
  })

  it("settlements import distinguishes the second payment of an order from the first by the acquirer's payment id", async () => {
    const { mid, utr, id, orderId } = await paidOrder()
    const [second, secondId] = [newUtr(), unique('OM')]
    await db.query(
      `insert into payments (mid, utr, order_id, amount_paise, paid_at, received_at, kind, acquirer, source, acquirer_payment_id)
       values ($1, $2, $3, 20000, $4, $4, 'second', 'direct', 'notification', $5)`,
      [mid, second, orderId, PAID_AT, secondId],
    )
    await importRows(row(mid, { orderId, id }), row(mid, { orderId, id: secondId }))
    expect((await stored(mid)).map(({ payment }) => payment).sort()).toEqual([utr, second].sort())
  })

  it('settlements import warns of a row of an unknown order, stores the row under a generated UTR, and links the row once the payment is known', async () => {
    const { mid } = await newMerchant(db)
    const orderId = newId(PAID_AT)
    const rows = [row(mid, { orderId }), row(mid, { orderId, amount: '-50.00' })]
    const { warnings, inserted } = await importRows(...rows)
    expect({ warnings, inserted }).toEqual({
      inserted: 2,
      warnings: [expect.stringMatching(/^2 rows name an unknown payment by .*, first in line 2/)],
    })
    const [paid, taken] = (await stored(mid)) as unknown as [{ utr: string; payment: string }, { utr: string }]
    expect(paid.utr).toMatch(/^N[0-9A-F]{23}$/)
    expect([paid.utr, taken.utr]).not.toContain(orderId.toUpperCase())
    expect(paid.payment).toBe(paid.utr)
    const utr = newUtr()
    await storePaidOrder(db, { mid, utr, paidAt: PAID_AT, orderId })
    expect(await importRows(...rows)).toMatchObject({ inserted: 0, updated: 2, warnings: [] })
    expect(await stored(mid)).toEqual([
      { amount: '200.00', utr: paid.utr, payment: utr },
      { amount: '-50.00', utr: taken.utr, payment: utr },
    ])
  })

  it.each([
    [
      'an order of another merchant',
      (own: Paid, other: Paid) => row(own.mid, { orderId: other.orderId }),
      /order_id belongs to another merchant: correct mid or order_id/,
    ],
    [
      'the id of another order’s payment',
      (own: Paid, other: Paid) => row(own.mid, { orderId: own.orderId, id: other.id }),
      /acquirer_payment_id and order_id belong to different orders: check both columns/,
    ],
    [
      'the UTR of another order’s payment',
      (own: Paid, other: Paid) => row(own.mid, { orderId: own.orderId, paymentUtr: other.utr }),
      /payment_utr or utr and order_id belong to different orders: check both columns/,
    ],
    [
      'an orderId as its UTR',
      (own: Paid) => row(own.mid, { utr: own.orderId }),
      /utr or payment_utr contains an orderId, which is not a UTR: name its column order_id/,
    ],
    ['no identifier', (own: Paid) => row(own.mid, {}), /utr must be 1 to 35 letters and digits/],
  ])('settlements import rejects a row with %s, and stores nothing', async (what, toRow, fault) => {
    const own = await paidOrder()
    const other = await paidOrder(what === 'an order of another merchant' ? {} : { of: own.mid })
    const stderr = await importRows(row(own.mid, { utr: 'GOOD' }), toRow(own, other))
    expect(stderr).toMatch(/line 3: /)
    expect(stderr).toMatch(fault)
    expect(await stored(own.mid)).toEqual([])
  })

  it('settlements import links a settlement to its payment when the file is imported again after the bank reference became known', async () => {
    const { mid, utr } = await paidOrder({ isStoredById: true })
    const rrn = newUtr()
    const settled = row(mid, { utr: 'ROW1', paymentUtr: rrn })
    await importRows(settled)
    expect(await stored(mid)).toMatchObject([{ payment: rrn }])
    await db.query('update payments set bank_reference = $3 where mid = $1 and utr = $2', [mid, utr, rrn])
    expect(await importRows(settled)).toMatchObject({ updated: 1 })
    expect(await stored(mid)).toMatchObject([{ payment: utr }])
    expect(await importRows(settled)).toMatchObject({ unchanged: 1 })
  })
})

type Paid = Awaited<ReturnType<typeof paidOrder>>

describe('an RRN that is padded with zeros to 16 digits', () => {
  it.each(['payment_utr', 'utr'])(
    'settlements import matches an RRN padded with zeros in the column %s',
    async (column) => {
      const { mid, utr } = await paidOrder()
      const padded = `0000${utr}`
      await importRows(row(mid, column === 'utr' ? { utr: padded } : { utr: 'ROW1', paymentUtr: padded }))
      expect(await stored(mid)).toEqual([{ amount: '200.00', utr: column === 'utr' ? padded : 'ROW1', payment: utr }])
    },
  )

  it('payments find and reconcile --payout find a settlement with a zero-padded utr or bank reference', async () => {
    const { mid } = await newMerchant(db)
    const [rrn, reference] = [newUtr(), newUtr()]
    const padded = `0000${rrn}`
    await importRows(row(mid, { utr: padded }).replace('YESIG63220270133', `0000${reference}`))
    for (const utr of [rrn, padded]) {
      const { settlements } = JSON.parse((await ops(['payments', 'find', '--utr', utr, '--json'])).stdout)
      expect(settlements).toMatchObject([{ utr: padded }])
    }
    for (const payout of [reference, `0000${reference}`]) {
      const { settlements } = JSON.parse((await ops(['reconcile', '--payout', payout, '--json'])).stdout)
      expect(settlements).toMatchObject([{ settlementUtr: padded }])
    }
  })

  it('reconcile matches a deduction by RRN with a refund whose reference is zero-padded', async () => {
    const { mid, utr, orderId } = await paidOrder()
    const rrn = newUtr()
    await db.query(
      `insert into refunds (mid, refund_id, our_refund_id, order_id, utr, amount_paise, note, acquirer, created_by, created_at, status,
                            ended_at, reference)
       values ($1, 'R1', 'OURS1', $2, $3, 5000, '', 'direct', 'merchant', $4, 'SUCCESS', $4, ''),
              ($1, 'R2', 'OURS2', $2, $3, 5000, '', 'direct', 'merchant', $4, 'SUCCESS', $4, $5)`,
      [mid, orderId, utr, PAID_AT, `0000${rrn}`],
    )
    await importRows(row(mid, { utr: rrn, amount: '-50.00' }))
    const { differences } = JSON.parse(
      (await ops(['reconcile', '--from', '2026-11-17', '--to', '2026-11-26', '--mid', mid, '--json'])).stdout,
    ).merchants[0]
    const kinds = differences.map(({ kind }: { kind: string }) => kind)
    expect(kinds).not.toContain('reversal')
  })
})

describe('settlements import --layout', () => {
  it('settlements import --layout matches a report without RRN and UTR by orderId and refundId', async () => {
    const { mid, utr, orderId } = await paidOrder()
    const name = unique('phonepe')
    const columns = {
      ...{ amount: 'Net', fee: '-Fee', tax: '-IGST', bank_reference_number: 'BankReferenceNo' },
      ...{
        initiation_date: 'SettlementDate',
        order_id: 'MerchantReferenceId',
        acquirer_payment_id: 'PhonePeReferenceId',
      },
    }
    const flags = Object.entries(columns).flatMap((pair) => ['--column', pair.join('=')])
    const layout = ['--name', name, ...flags, '--date', 'dd-mm-yyyy', '--status', 'SUCCESS', '--mid', mid]
    expect(await ops(['settlements', 'layout', 'add', ...layout])).toMatchObject({ code: 0, stderr: '' })
    const file = `PaymentType,MerchantReferenceId,PhonePeReferenceId,SettlementDate,BankReferenceNo,Net,Fee,IGST
PAYMENT,${orderId},T2611171540120001,18-11-2026,YESIG63220270133,195.75,-3.60,-0.65
REFUND,019aa0b1c2d3e4f5a6b7c8d9e0f1a2c5,T2611171540120009,18-11-2026,YESIG63220270133,-50.00,0.00,0.00
,,,Total,,145.75,,
`
    const { code, stdout } = await ops(['settlements', 'import', '-', '--layout', name, '--json'], file)
    expect({ code, ...JSON.parse(stdout) }).toMatchObject({ code: 0, inserted: 2, amount: '145.75' })
    expect(await stored(mid)).toEqual([
      { amount: '195.75', utr: 'T2611171540120001', payment: utr },
      { amount: '-50.00', utr: 'T2611171540120009', payment: null },
    ])
  })
})
