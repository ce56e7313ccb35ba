import { expect } from 'vitest'
import { cashfree as acquirer } from '../../src/gateway/acquirers/cashfree/client.ts'
import { type FakeCashfree, startFakeCashfree } from '../support/cashfree-bank.ts'
import { cashfreeSettings } from '../support/fake-cashfree.ts'
import { CLOSED_ID, type ClientScene, DISPUTE_ID, INTENT, REFUND_ID } from './scene.ts'
import { readTypes } from './shapes.ts'

type Call = (...values: unknown[]) => Promise<{ data: object }>
type Client = Record<
  | 'PGCreateOrder'
  | 'PGPayOrder'
  | 'PGFetchOrder'
  | 'PGOrderFetchPayments'
  | 'PGTerminateOrder'
  | 'PGOrderCreateRefund'
  | 'PGOrderFetchRefund'
  | 'PGFetchDisputeByID',
  Call
> & { basePath: string; PGVerifyWebhookSignature: (signature: string, body: string, at: string) => { object: object } }
type Package = { Cashfree: new (...values: unknown[]) => Client; CFEnvironment: { SANDBOX: number } }

const { clientId, clientSecret } = cashfreeSettings({ apiUrl: '' })

export function cashfree(require: NodeJS.Require, folder: string): ClientScene<FakeCashfree> {
  const types = readTypes(`${folder}/cashfree-pg/dist`)
  const { Cashfree, CFEnvironment } = require('cashfree-pg') as Package
  const nothing = undefined
  // The last value turns off Sentry, to which the client reports its errors.
  const client = new Cashfree(CFEnvironment.SANDBOX, clientId, clientSecret, nothing, nothing, nothing, false)
  const returned = types('OrderEntity')
  return {
    start: () => startFakeCashfree({ clientId, clientSecret, now: () => new Date() }),
    connector: (bank, http) =>
      acquirer.client?.({ cashfree: cashfreeSettings(bank) }, http, () => performance.now()) as never,
    afterPayment(bank) {
      // The fake sends an odd id as text, like newer samples, and an even one as a number.
      for (const payment of bank.orders.get(INTENT.orderId)?.payments ?? []) payment.id = `${payment.id.slice(0, -1)}1`
      bank.dispute(INTENT.orderId, { id: DISPUTE_ID })
    },
    shapes: {
      createOrder: { sent: types('CreateOrderRequest'), returned },
      openSession: { sent: types('PayOrderRequest'), returned: types('PayOrderEntity') },
      findOrder: { returned },
      payments: { returned: types('PaymentEntity') },
      terminate: { sent: types('TerminateOrderRequest'), returned },
      refund: { sent: types('OrderCreateRefundRequest'), returned: types('RefundEntity') },
      findRefund: { returned: types('RefundEntity') },
      dispute: { returned: types('DisputesEntity') },
    },
    calls(bank, sent) {
      client.basePath = bank.apiUrl
      const { orderId } = INTENT
      const order = { order_id: orderId, order_amount: 200.5, order_status: 'ACTIVE' }
      const refund = { refund_id: REFUND_ID, refund_amount: 100.5, refund_status: expect.any(String) }
      const dataOf = async (call: Promise<{ data: object }>) => (await call).data
      return {
        terminate: async () => {
          await client.PGCreateOrder({ ...(sent('createOrder') as object), order_id: CLOSED_ID })
          const closed = await dataOf(client.PGTerminateOrder(CLOSED_ID, sent('terminate')))
          return [closed, { order_id: CLOSED_ID, order_status: 'TERMINATED' }]
        },
        createOrder: async () => [await dataOf(client.PGCreateOrder(sent('createOrder'))), order],
        openSession: async () => {
          const session = sent('openSession') as { payment_session_id: string }
          Object.assign(bank.orders.get(orderId) ?? {}, { sessionId: session.payment_session_id })
          const link = { payload: { default: expect.stringMatching(/^upi:\/\/pay\?/) } }
          return [await dataOf(client.PGPayOrder(session)), { payment_amount: 200.5, channel: 'link', data: link }]
        },
        findOrder: async () => [await dataOf(client.PGFetchOrder(orderId)), order],
        payments: async () => [
          await dataOf(client.PGOrderFetchPayments(orderId)),
          [{ payment_status: 'FAILED' }, { payment_status: 'SUCCESS', payment_amount: 200.5 }],
        ],
        refund: async () => [await dataOf(client.PGOrderCreateRefund(orderId, sent('refund'))), refund],
        findRefund: async () => [await dataOf(client.PGOrderFetchRefund(orderId, REFUND_ID)), refund],
        dispute: async () => [
          await dataOf(client.PGFetchDisputeByID(DISPUTE_ID)),
          { dispute_status: 'CHARGEBACK_CREATED', dispute_amount: 200.5 },
        ],
      }
    },
    read: (body, signature) => {
      const [at = '', hash = ''] = signature.split(' ')
      return client.PGVerifyWebhookSignature(hash, body, at).object
    },
    notifications({ orders, encrypt, eventOf, refunds }) {
      const order = orders.get(INTENT.orderId)
      const signed = (type: string) => (event: object) => {
        const { body, headers } = encrypt(event)
        return {
          body,
          signature: `${headers['x-webhook-timestamp']} ${headers['x-webhook-signature']}`,
          fields: types(type),
        }
      }
      return [
        ...(order?.payments.map((payment) => eventOf(order, payment)) ?? []).map(signed('PaymentWebhook')),
        ...refunds.all.map(refunds.eventOf).map(signed('RefundWebhook')),
      ]
    },
  }
}
