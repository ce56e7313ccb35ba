import { beforeAll, describe, expect, it } from 'vitest'
import type { DisputeReport } from '../../src/gateway/disputes/dispute.ts'
import { createDisputes } from '../../src/gateway/disputes/record-dispute.ts'
import { newUtr } from '../support/acquirer.ts'
import { createOrder, reportPayment } from '../support/orders.ts'
import { errorResponse, newKey, newMerchant, post, startService, type TestService, unique } from '../support/service.ts'
import type { NewMerchant } from '../support/tenants.ts'

const PATH = '/v1/payments/fetchDisputeList'

let service: TestService
let merchant: NewMerchant
let order: { orderId: string; order_id: string; UTR: string }
beforeAll(async () => {
  service = await startService({ asServiceRole: true, limits: { webhooks: { lookIntervalMs: 3_600_000 } } })
  merchant = await newMerchant(service.db)
  const [order_id, UTR] = [unique('O'), newUtr()]
  const orderId = await createOrder(service, merchant, { order_id })
  await reportPayment(service, orderId, { UTR })
  order = { orderId, order_id, UTR }
  await dispute('D1', { openedAt: new Date('2026-03-29T18:30:00Z'), status: 'under review' })
  await dispute('D2', {
    ...{ openedAt: new Date('2026-03-30T18:29:59Z'), amount: 50_50, kind: 'CHARGEBACK', reasonCode: '1402' },
    ...{ reasonText: '=Goods "not" received', respondBy: new Date('2026-04-02T18:29:59Z') },
  })
  await dispute('D3', { openedAt: new Date('2026-03-30T18:30:00Z'), status: 'won' })
})

const dispute = (id: string, facts: Partial<DisputeReport>) =>
  createDisputes(service.pools.reports).record(
    'direct',
    { id, orderId: order.orderId, status: 'open', ...facts },
    { source: 'notification', now: service.clock.now },
  )

const list = (changes: Record<string, string> = {}, by = merchant, headers = {}) =>
  post(service.app, PATH, { mid: by.mid, s_date: '30-03-2026', e_date: '30-03-2026', ...changes }, by.key, headers)
const idsOf = async (changes: Record<string, string>) =>
  ((await list(changes)).body.data as { dispute_id: string }[]).map(({ dispute_id }) => dispute_id)

describe('fetchDisputeList', () => {
  it('returns the disputes that were opened on these IST days, oldest first, with "" for what is unknown', async () => {
    const { status, body } = await list()
    const known = { orderId: order.orderId, order_id: order.order_id, merchant_id: merchant.mid, UTR: order.UTR }
    const updated_at = service.clock.now().toISOString()
    const none = { amount: '', kind: '', reason_code: '', reason_text: '', respond_by: '' }
    expect([status, body]).toEqual([
      200,
      {
        ...{ status: true, statusCode: 200, msg: 'Disputes found' },
        data: [
          {
            ...{ dispute_id: 'D1', ...known, ...none, status: 'UNDER_REVIEW' },
            opened_at: '2026-03-29T18:30:00.000Z',
            updated_at,
          },
          {
            ...{ dispute_id: 'D2', ...known, amount: '50.50', kind: 'CHARGEBACK', status: 'OPEN', reason_code: '1402' },
            ...{ reason_text: '=Goods "not" received', respond_by: '2026-04-02T18:29:59.000Z' },
            ...{ opened_at: '2026-03-30T18:29:59.000Z', updated_at },
          },
        ],
      },
    ])
  })

  it.each([
    [{ e_date: '31-03-2026' }, ['D1', 'D2', 'D3']],
    [{ e_date: '31-03-2026', status: 'WON' }, ['D3']],
    [{ status: 'OPEN' }, ['D2']],
    [{ status: 'UNDER_REVIEW' }, ['D1']],
    [{ status: 'LOST' }, []],
  ])('filters by days and status: %j', async (changes, ids) => {
    expect(await idsOf(changes)).toEqual(ids)
  })

  it('returns `No disputes found` without disputes, and no dispute of another merchant', async () => {
    const { body } = await list({ e_date: '31-03-2026' }, await newMerchant(service.db))
    expect(body).toEqual({ status: true, statusCode: 200, msg: 'No disputes found', data: [] })
  })

  it('returns the list as CSV', async () => {
    const { status, text } = await list({}, merchant, { accept: 'text/csv' })
    const [header, first, second] = text.trimEnd().split('\r\n')
    expect([status, header]).toEqual([
      200,
      'dispute_id,orderId,order_id,merchant_id,UTR,amount,kind,status,reason_code,reason_text,respond_by,opened_at,updated_at',
    ])
    expect(first).toContain(`D1,${order.orderId},`)
    expect(second).toMatch(/,50\.50,CHARGEBACK,OPEN,1402,.*Goods/)
  })

  it('returns 403 to a key without the right `list`, and to the key of another merchant', async () => {
    const key = await newKey(service.db, { mid: merchant.mid }, ['create'])
    const other = await newMerchant(service.db)
    expect((await list({}, { mid: merchant.mid, key })).status).toBe(403)
    expect((await list({}, { mid: merchant.mid, key: other.key })).status).toBe(403)
  })

  it('returns 400 for an unknown status', async () => {
    const { status, body } = await list({ status: 'open' })
    const msg = 'status must be OPEN, UNDER_REVIEW, WON, LOST, ACCEPTED or CLOSED'
    expect([status, body]).toEqual([400, errorResponse(400, msg)])
  })
})
