import { expect, it } from 'vitest'
import { createRefundUpdates } from '../../src/gateway/refunds/record-update.ts'
import { RIGHTS } from '../../src/platform/rights.ts'
import { newUtr } from '../support/acquirer.ts'
import { createOrder, reportPayment } from '../support/orders.ts'
import {
  errorResponse,
  newKey,
  newMerchant,
  OWN_REFUNDS,
  post,
  REFUND,
  REFUND_STATUS,
  startService,
} from '../support/service.ts'

const service = await startService({ asServiceRole: true })
const { mid } = await newMerchant(service.db)
const key = await newKey(service.db, { mid }, RIGHTS)
const note = 'One cup was cold'
const list = (s_date: string, e_date: string, headers = {}) =>
  post(service.app, OWN_REFUNDS, { mid, s_date, e_date }, key, headers)

async function refund(order_id: string, refund_id: string, amount: string) {
  const { status, body } = await post(service.app, REFUND, { mid, order_id, refund_id, amount, note }, key)
  expect(status).toBe(200)
  return body.data.refundId as string
}

it('fetchRefundList returns one record per refund, with exactly the documented fields and the status of checkRefundStatus', async () => {
  service.clock.set('2026-02-02T12:00:00+05:30')
  const orderId = await createOrder(service, { mid, key }, { order_id: '1001' })
  await reportPayment(service, orderId, { UTR: newUtr(), paidAt: service.clock.now().toISOString() })
  const refundIds = [
    await refund('1001', 'R1', '50'),
    await refund('1001', 'R2', '20'),
    await refund('1001', '-3', '30'),
  ]
  const { record } = createRefundUpdates(service.db)
  service.clock.advance(3_600)
  const ops = { source: 'ops', by: 'person', now: service.clock.now } as const
  const update = (at: number, status: 'SUCCESS' | 'FAIL', reference: string, reason?: string) =>
    record({ mid, ourRefundId: refundIds[at] as string }, { status, reference, reason }, ops)
  await update(0, 'SUCCESS', '523504870777')
  await update(1, 'FAIL', '', 'Account "closed", sorry')
  const common = { orderId, order_id: '1001', merchant_id: mid, created_at: '2026-02-02T06:30:00.000Z' }
  const [one, two, three] = refundIds
  const records = [
    {
      ...{ refundId: one, refund_id: 'R1', ...common, amount: '50.00', status: 'SUCCESS' },
      ...{ reference: '523504870777', reason: '', updated_at: '2026-02-02T07:30:00.000Z' },
    },
    {
      ...{ refundId: two, refund_id: 'R2', ...common, amount: '20.00', status: 'FAIL' },
      ...{ reference: '', reason: 'Account "closed", sorry', updated_at: '2026-02-02T07:30:00.000Z' },
    },
    {
      ...{ refundId: three, refund_id: '-3', ...common, amount: '30.00', status: 'PENDING' },
      ...{ reference: '', reason: '', updated_at: '2026-02-02T06:30:00.000Z' },
    },
  ].toSorted((a, b) => ((a.refundId as string) < (b.refundId as string) ? -1 : 1))
  const { body } = await list('02-02-2026', '02-02-2026')
  expect(body).toEqual({ status: true, statusCode: 200, msg: 'Refunds found', data: records })
  for (const { refund_id, status, reference, reason } of records) {
    const { data } = (await post(service.app, REFUND_STATUS, { mid, refund_id }, key)).body
    expect(data).toMatchObject({ txnStatus: status, reference, reason })
  }
  const { text } = await list('02-02-2026', '02-02-2026', { accept: 'text/csv' })
  expect(text.split('\r\n')[0]).toBe(Object.keys(body.data[0]).join())
  expect(text).toContain(`"Account ""closed"", sorry"`)
  // A spreadsheet would read -3 as a formula.
  expect(text).toContain(",'-3,")
})

it('fetchRefundList selects refunds by IST days of their request', async () => {
  service.clock.set('2025-05-05T23:59:59.999+05:30')
  const orderId = await createOrder(service, { mid, key })
  await reportPayment(service, orderId, { UTR: newUtr(), paidAt: service.clock.now().toISOString() })
  const before = await refund(orderId, 'D1', '1')
  service.clock.set('2025-05-06T00:00:00+05:30')
  const first = await refund(orderId, 'D2', '1')
  service.clock.set('2025-05-06T23:59:59.999+05:30')
  const last = await refund(orderId, 'D3', '1')
  const ids = async (s_date: string, e_date: string) =>
    (await list(s_date, e_date)).body.data.map(({ refundId }: { refundId: string }) => refundId)
  expect(await ids('06-05-2025', '06-05-2025')).toEqual([first, last])
  expect(await ids('05-05-2025', '06-05-2025')).toEqual([before, first, last])
  const none = { status: true, statusCode: 200, msg: 'No refunds found', data: [] }
  expect((await list('07-05-2025', '07-05-2025')).body).toEqual(none)
})

it('fetchRefundList returns 400 for an invalid day, and 403 for another merchant’s mid and to a disabled merchant', async () => {
  expect((await list('02-01-2026', '01-01-2026')).body).toEqual(errorResponse(400, 's_date must not be after e_date'))
  const other = await newMerchant(service.db)
  const days = { s_date: '01-01-2026', e_date: '31-01-2026' }
  expect((await post(service.app, OWN_REFUNDS, { mid, ...days }, other.key)).status).toBe(403)
  await service.db.query('update merchants set disabled_at = now() where mid = $1', [other.mid])
  const disabledKey = await newKey(service.db, other)
  expect((await post(service.app, OWN_REFUNDS, { mid: other.mid, ...days }, disabledKey)).status).toBe(403)
})
