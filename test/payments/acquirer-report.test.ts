import { beforeAll, describe, expect, it } from 'vitest'
import { createReports } from '../../src/gateway/payments/reports.ts'
import { newUtr } from '../support/acquirer.ts'
import { runOps } from '../support/ops.ts'
import { createOrder } from '../support/orders.ts'
import { newMerchant, startService, type TestService, unique } from '../support/service.ts'
import type { NewMerchant } from '../support/tenants.ts'

let service: TestService
let merchant: NewMerchant
let layout: string
beforeAll(async () => {
  service = await startService()
  service.clock.set(new Date().toISOString())
  merchant = await newMerchant(service.db)
  layout = await newLayout()
})

const ops = (args: string[], input = '') => runOps(service.databaseUrl, args, input)

const COLUMNS = {
  ...{ order_id: 'Merchant Reference Id', acquirer_payment_id: 'Transaction Id', utr: 'Transaction UTR' },
  ...{ amount: 'Total Transaction Amount', paid_at: 'Transaction Date', status: 'Transaction Status' },
}
async function newLayout() {
  const name = unique('report')
  const columns = Object.entries(COLUMNS).flatMap((pair) => ['--column', pair.join('=')])
  const words = ['SUCCESS=COMPLETED', 'FAIL=FAILED', 'IGNORED=PENDING'].flatMap((pair) => ['--status', pair])
  const added = await ops([
    'settlements',
    'layout',
    'add',
    '--name',
    name,
    ...columns,
    ...words,
    '--date',
    'dd/mm/yyyy',
  ])
  expect(added).toMatchObject({ code: 0, stderr: '' })
  return name
}

/** An order of ₹200 that its acquirer has reported as paid, without a bank reference. */
async function paidWithoutReference() {
  const [orderId, id] = [await createOrder(service, merchant), unique('OM')]
  const report = { orderId, status: 'SUCCESS' as const, utr: undefined, amount: 200_00, paidAt: undefined }
  const recorded = await createReports(service.db).record(
    { ...report, names: { id } },
    { source: 'enquiry', now: service.clock.now },
  )
  expect(recorded).toMatchObject({ changed: true })
  return { orderId, id, rrn: newUtr() }
}

const HEADER =
  'Report of the day,,,,,,\nTransaction Date,Merchant Reference Id,Transaction Id,Transaction UTR,Payer,Total Transaction Amount,Transaction Status'
const today = () => new Date(service.clock.now().getTime() + 330 * 60_000).toISOString().slice(0, 10)
const row = ({ orderId = '', id = '', rrn = '', amount = '200.00', status = 'COMPLETED', day = today() }) =>
  [`${day.split('-').reverse().join('/')} 23:59:59`, orderId, id, rrn, 'asha@okaxis', `"${amount}"`, status].join()

const importReport = (...rows: string[]) =>
  ops(['payments', 'import', '-', '--layout', layout, '--json'], `${[HEADER, ...rows].join('\n')}\nTotal,,,,,200.00,\n`)

const find = async (utr: string) =>
  JSON.parse((await ops(['payments', 'find', '--utr', utr, '--json'])).stdout).payments

describe('ops payments import --layout', () => {
  it.each(['by orderId and payment id', 'by the payment id alone'])(
    'ops payments import adds the bank reference to an order that was paid without a bank reference and that the report identifies %s',
    async (how) => {
      const { orderId, id, rrn } = await paidWithoutReference()
      expect(await find(rrn)).toEqual([])
      const line = row({ id, rrn, ...(how === 'by the payment id alone' ? {} : { orderId }) })
      for (const _ of [1, 2]) {
        const { stdout } = await importReport(line)
        expect(JSON.parse(stdout)).toMatchObject({ recorded: 0, unchanged: 1, exceptions: { 'double payment': 0 } })
      }
      expect(await find(rrn)).toMatchObject([{ orderId, bankReference: rrn, status: 'SUCCESS' }])
      const other = newUtr()
      await importReport(row({ orderId, id, rrn: other }))
      expect(await find(other)).toEqual([])
    },
  )

  it('ops payments import records unreported payments, and skips rows with the status IGNORED', async () => {
    const [paid, failed, open] = [
      await createOrder(service, merchant),
      await createOrder(service, merchant),
      await createOrder(service, merchant),
    ]
    const rrn = newUtr()
    const { stdout } = await importReport(
      row({ orderId: paid, id: unique('OM'), rrn: `0000${rrn}` }),
      row({ orderId: failed, amount: '₹ 200.00 ', status: 'Failed' }),
      row({ orderId: open, id: unique('OM'), status: 'PENDING' }),
    )
    expect(JSON.parse(stdout)).toMatchObject({ recorded: 2, unchanged: 0 })
    expect(await find(rrn)).toMatchObject([{ orderId: paid, utr: rrn }])
  })

  it('ops payments import records a payment with another id as a second payment of the order', async () => {
    const { orderId, rrn } = await paidWithoutReference()
    const { stdout } = await importReport(row({ orderId, id: unique('OM'), rrn }))
    expect(JSON.parse(stdout).exceptions).toMatchObject({ 'double payment': 1 })
  })

  it('ops payments import names an invalid line by the file’s own columns, and records nothing', async () => {
    const orderId = await createOrder(service, merchant)
    const good = row({ orderId, rrn: newUtr() })
    const { code, stderr } = await importReport(
      good,
      row({ orderId, rrn: newUtr(), day: '2026-02-31' }),
      row({ orderId, status: 'FAILED', day: '2026-02-31' }),
      row({ orderId, rrn: newUtr(), status: 'Reversed', amount: '1.005' }),
      row({ orderId }),
      row({ rrn: newUtr() }),
    )
    expect(code).toBe(1)
    expect(stderr.trim().split('; ')).toEqual([
      'ops: 5 invalid lines, nothing was imported',
      'line 4: Transaction Date (paid_at) must be an existing day in the format dd/mm/yyyy',
      'line 5: Transaction Date (paid_at) must be an existing day in the format dd/mm/yyyy',
      'line 6: Transaction Status (status) must be a status of the layout: failed, pending, completed, Total Transaction Amount (amount) must be rupees with at most two decimals, such as 1,450.50',
      'line 7: Transaction UTR (utr) is required with SUCCESS',
      'line 8: Merchant Reference Id (order_id) or acquirer_reference is required',
    ])
    const { rows } = await service.db.query('select status from payment_intents where order_id = $1', [orderId])
    expect(rows).toEqual([{ status: 'PENDING' }])
  })

  it('ops payments import records nothing in a dry run, and rejects a settlement layout', async () => {
    const orderId = await createOrder(service, merchant)
    const rrn = newUtr()
    const file = `${HEADER}\n${row({ orderId, rrn, day: '2026-11-17' })}\n`
    const tried = await ops(['settlements', 'layout', 'try', '-', '--layout', layout, '--json'], file)
    expect(JSON.parse(tried.stdout)).toMatchObject({
      ...{ rows: 1, faults: [] },
      first: [
        { order_id: orderId, utr: rrn, amount: '200.00', status: 'SUCCESS', paid_at: '2026-11-17T18:29:59.000Z' },
      ],
    })
    expect(await find(rrn)).toEqual([])
    expect((await ops(['settlements', 'import', '-', '--layout', layout], file)).stderr).toContain(
      'is a layout of payments, not of settlements',
    )
  })

  it.each([
    ['a merchant', ['--mid', 'M1'], /--mid is only for settlement files/],
    [
      'a column of settlements',
      ['--column', 'fee=Fee'],
      /--column fee is only for settlement files and bank statements/,
    ],
    ['a status of settlements', ['--status', 'FAILED=Bounced'], /--status FAILED is not a status of payments/],
  ])('ops payments import rejects a payment layout with %s', async (_, more, text) => {
    const columns = Object.entries(COLUMNS).flatMap((pair) => ['--column', pair.join('=')])
    const args = ['settlements', 'layout', 'add', '--name', unique('l'), '--date', 'dd/mm/yyyy', ...columns, ...more]
    expect(await ops(args)).toMatchObject({ code: 2, stderr: expect.stringMatching(text) })
  })
})

describe('ops payments import', () => {
  it('ops payments import reads a line in the service’s own format that has acquirer_payment_id but no utr', async () => {
    const { orderId, id, rrn } = await paidWithoutReference()
    const header = 'order_id,status,utr,amount,paid_at,acquirer_payment_id'
    const paidAt = service.clock.now().toISOString()
    const file = [
      header,
      `${orderId},SUCCESS,${rrn},200.00,${paidAt},${id}`,
      `,SUCCESS,,200.00,${paidAt},${id}`,
      '',
    ].join('\n')
    expect(JSON.parse((await ops(['payments', 'import', '-', '--json'], file)).stdout)).toMatchObject({ unchanged: 2 })
    expect(await find(rrn)).toMatchObject([{ orderId }])
  })
})
