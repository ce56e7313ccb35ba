import { afterAll, expect, it } from 'vitest'
import { RIGHTS } from '../../src/platform/rights.ts'
import { toIstDay } from '../../src/platform/time.ts'
import type { FakeCashfree } from '../support/cashfree-bank.ts'
import { reconEvent, serveRecon } from '../support/cashfree-recon.ts'
import { CASHFREE, CASHFREE_SECRETS, cashfreeSettings, newCashfreeMerchant } from '../support/fake-cashfree.ts'
import { opsOn } from '../support/ops.ts'
import { CREATE, intentFields, newKey, post, REFUND, REFUND_STATUS, STATUS } from '../support/service.ts'
import { startServiceBeside } from '../support/service-with-bank.ts'
import { startReceiver } from '../support/webhook-receiver.ts'
import { allow, ENCRYPTION_KEYS, newWebhook } from '../support/webhooks.ts'

const receiver = await startReceiver()
const { service, bank } = await startServiceBeside(CASHFREE, {
  asServiceRole: true,
  webhooks: { encryptionKeys: ENCRYPTION_KEYS, allowedNetworks: allow('127.0.0.1/32') },
  limits: { webhooks: { lookIntervalMs: 100 } },
})
afterAll(() => receiver.close())

/** Runs commands as an operator would, with Cashfree's settings in the environment. */
const commands = () => {
  const { apiUrl, clientId } = cashfreeSettings(bank)
  const credentials = { CASHFREE_CLIENT_ID: clientId, CASHFREE_CLIENT_SECRET: CASHFREE_SECRETS.join() }
  return opsOn(() => service.databaseUrl, [], { CASHFREE_API_URL: apiUrl, ...credentials })
}

it("reconcile balances a Cashfree merchant's payment, partial refund and settlement", async () => {
  const { mid } = await newCashfreeMerchant(service)
  const key = await newKey(service.db, { mid }, RIGHTS)
  await newWebhook(service.db, { mid, url: `${receiver.url}/hook` }, service.clock.now())

  const { body } = await post(service.app, CREATE, intentFields(mid, { amount: '588', order_id: 'SHOP-1' }), key)
  const { orderId } = body.data
  const page = await service.app.inject(`/pay/${orderId}`)
  expect(page.body).toContain('cf.demomerchant@icici')

  const { payment, responses } = await bank.pay(orderId)
  expect(responses).toEqual([200])
  const paid = await post(service.app, STATUS, { mid, order_id: 'SHOP-1' }, key)
  expect(paid.body).toMatchObject({ txnStatus: 'SUCCESS', data: { amount: 588, UTR: payment.rrn } })

  const refund = { mid, order_id: 'SHOP-1', refund_id: 'R1', amount: '88', note: 'One cup was cold' }
  expect((await post(service.app, REFUND, refund, key)).body.data).toMatchObject({ txnStatus: 'PENDING' })
  const back = () => post(service.app, REFUND_STATUS, { mid, refund_id: 'R1' }, key)
  await expect.poll(async () => (await back()).body.data.txnStatus).toBe('SUCCESS')
  const [{ ourRefundId, reference: refund_arn }] = bank.refunds.all as [FakeCashfree['refunds']['all'][number]]
  await expect
    .poll(() => receiver.to('/hook').map(({ body: event }) => JSON.parse(event).type))
    .toEqual(['payment.succeeded', 'refund.succeeded'])

  // Two bank days later Cashfree pays out both, less a fee of ₹5 with ₹0.90 tax.
  const day = toIstDay(service.clock.now())
  const [order_details, payment_details] = [{ order_id: orderId }, { bank_reference: payment.rrn }]
  const payout = '2026-04-02T10:00:00+05:30'
  const settlement_details = { utr: 'PAYOUT1', settlement_initiated_on: payout, settlement_date: payout }
  const of = { order_details, payment_details, settlement_details }
  const charges = { event_service_charge: 5, event_service_tax: 0.9 }
  serveRecon(bank, {
    data: [
      reconEvent('PAYMENT', {
        ...of,
        event_details: { event_amount: 588, event_settlement_amount: 582.1, ...charges },
      }),
      reconEvent('REFUND', {
        ...of,
        refund_details: { refund_arn, refund_id: ourRefundId },
        event_details: { event_amount: 88, event_settlement_amount: 88 },
      }),
    ],
  })
  const { json } = commands()
  const days = ['--from', day, '--to', '2026-04-02']
  const pulled = await json('settlements', 'pull', '--acquirer', 'cashfree', ...days)
  expect(pulled).toMatchObject({ inserted: 2, unchanged: 0 })
  const report = await json('reconcile', ...days, '--mid', mid)
  expect(report).toMatchObject({
    balances: true,
    total: {
      paid: '588.00',
      refunded: '88.00',
      settled: '500.00',
      net: '494.10',
      carriedForward: '0.00',
      differences: 0,
    },
  })
})
