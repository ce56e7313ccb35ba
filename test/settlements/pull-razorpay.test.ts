import { beforeEach, expect, it } from 'vitest'
import { createDisputes } from '../../src/gateway/disputes/record-dispute.ts'
import { newUtr } from '../support/acquirer.ts'
import { createTestDatabase } from '../support/database.ts'
import { runOps } from '../support/ops.ts'
import { storePaidOrder } from '../support/paid-orders.ts'
import { RAZORPAY_RECON, type ReconRow, reconRow, startRecon } from '../support/razorpay-recon.ts'
import { newMerchant, unique } from '../support/service.ts'

const DAY = '2026-01-15'
const at = new Date(`${DAY}T09:00:00+05:30`)

const { url, db } = await createTestDatabase()
const recon = await startRecon()
let mid: string
beforeEach(async () => {
  ;({ mid } = await newMerchant(db))
  recon.rows.clear()
})

const settings = () => ({
  ...{ RAZORPAY_API_URL: recon.apiUrl, RAZORPAY_KEY_ID: RAZORPAY_RECON.clientId },
  ...{ RAZORPAY_KEY_SECRET: RAZORPAY_RECON.clientSecret, RAZORPAY_WEBHOOK_SECRETS: 'webhook-secret' },
})
const ops = (...args: string[]) => runOps(url, args, '', settings())

async function pull(...rows: ReconRow[]) {
  recon.rows.set(DAY, rows)
  const command = ['settlements', 'pull', '--acquirer', 'razorpay', '--from', DAY, '--to', DAY, '--json']
  const { code, stdout, stderr } = await ops(...command)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return JSON.parse(stdout)
}

/** Stores an order of ₹200 that was paid through Razorpay. Returns the names of the order in rows. */
async function paidOrder({ isKnown = true } = {}) {
  const utr = newUtr()
  const orderId = await storePaidOrder(db, { mid, utr, paidAt: at, acquirer: 'razorpay' })
  const id = unique('pay_')
  await db.query(
    `insert into acquirer_intents
       (mid, order_id, acquirer, acquirer_merchant_id, acquirer_order_id, reference, link, status_checks)
     values ($1, $2, 'razorpay', 'rz', $2, 'tr', 'upi://pay', 0)`,
    [mid, orderId],
  )
  const know = () =>
    db.query('update payments set acquirer_payment_id = $3 where mid = $1 and utr = $2', [mid, utr, id])
  if (isKnown) await know()
  return { orderId, utr, id, know, names: { order_receipt: orderId, payment_id: id } }
}

async function stored() {
  const { rows } = await db.query(
    `select utr, (amount_paise * 0.01)::text as amount, (fee_paise * 0.01)::text as fee, (tax_paise * 0.01)::text as tax,
            payment_utr as payment, bank_reference_number as brn, event
       from settlements where mid = $1 order by amount_paise desc`,
    [mid],
  )
  return rows
}

const ownUtr = (id: unknown) => `E${String(id).replace(/[_-]/g, '')}`.toUpperCase()

it('settlements pull stores Razorpay’s payments, refunds and disputes, and counts other rows', async () => {
  const { utr, id, names, orderId } = await paidOrder()
  await createDisputes(db).record(
    'razorpay',
    { id: 'disp_1', orderId, paymentId: id, status: 'open' },
    { source: 'notification', now: () => at },
  )
  const refund = reconRow('refund', { ...names, amount: 50_00, debit: 50_00 })
  const dispute = reconRow('adjustment', { ...names, dispute_id: 'disp_1', amount: 150_00, debit: 150_00 })
  const won = reconRow('adjustment', { ...names, dispute_id: 'disp_1', amount: 150_00, debit: 0, credit: 150_00 })
  const rows = [reconRow('payment', { ...names, entity_id: id }), refund, dispute, won]
  const others = [
    reconRow('transfer', { debit: 10_00, amount: 10_00 }),
    reconRow('adjustment', { settlement_utr: null, debit: 0, credit: 10_12, amount: 10_12 }),
    reconRow('payment', { ...names, entity_id: id, settlement_utr: null }),
    reconRow('payment', { order_receipt: null }),
  ]
  expect(await pull(...rows, ...others)).toMatchObject({
    ...{ inserted: 4, insertedAmount: '145.28' },
    notStored: [
      { what: 'transfer', events: 1, amount: '-10.00' },
      { what: 'adjustment', events: 1, amount: '10.12' },
      { what: 'not paid out yet', events: 1, amount: '195.28' },
      { what: 'of unknown orders', events: 1, amount: '195.28' },
    ],
  })
  const line = { fee: '0.00', tax: '0.00', payment: utr, brn: '1568176960vxp0rj' }
  expect(await stored()).toEqual([
    { ...line, utr, amount: '195.28', fee: '4.00', tax: '0.72', event: 'payment' },
    { ...line, utr: ownUtr(won.entity_id), amount: '150.00', event: 'dispute reversal' },
    { ...line, utr: ownUtr(refund.entity_id), amount: '-50.00', event: 'refund' },
    { ...line, utr: ownUtr(dispute.entity_id), amount: '-150.00', event: 'dispute' },
  ])
  expect(await pull(...rows, ...others)).toMatchObject({ inserted: 0, unchanged: 4 })
})

it('settlements pull finds the order of a row without order_receipt by the payment’s id', async () => {
  const { utr, id } = await paidOrder()
  const names = { order_receipt: null, payment_id: id }
  const refund = reconRow('refund', { ...names, amount: 50_00, debit: 50_00 })
  const dispute = reconRow('adjustment', { ...names, dispute_id: 'disp_1', amount: 150_00, debit: 150_00 })
  const rows = [reconRow('payment', { ...names, entity_id: id, payment_id: null }), refund, dispute]
  const ofOthers = reconRow('adjustment', { ...names, payment_id: 'pay_unknown', dispute_id: 'disp_2' })
  expect(await pull(...rows, ofOthers)).toMatchObject({
    ...{ inserted: 3, notStored: [{ what: 'of unknown orders', events: 1, amount: '-200.00' }] },
  })
  const line = { payment: utr, brn: '1568176960vxp0rj' }
  expect(await stored()).toMatchObject([
    { ...line, utr, amount: '195.28', event: 'payment' },
    { ...line, utr: ownUtr(refund.entity_id), amount: '-50.00', event: 'refund' },
    { ...line, utr: ownUtr(dispute.entity_id), amount: '-150.00', event: 'dispute' },
  ])
})

it('settlements pull stores a payment that is unknown under Razorpay’s id, and finds it again once it is known', async () => {
  const { utr, id, names, know } = await paidOrder({ isKnown: false })
  const own = id.replace(/[_-]/g, '').toUpperCase()
  const row = reconRow('payment', { ...names, entity_id: id })
  expect(await pull(row)).toMatchObject({ inserted: 1 })
  expect(await stored()).toMatchObject([{ utr: own, payment: null, amount: '195.28' }])
  await know()
  expect(await pull(row)).toMatchObject({ inserted: 0 })
  expect(await stored()).toMatchObject([{ utr: own, payment: utr }])
})
