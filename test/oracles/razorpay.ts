import { expect } from 'vitest'
import { razorpay as acquirer } from '../../src/gateway/acquirers/razorpay/client.ts'
import { RAZORPAY_SECRETS, razorpaySettings } from '../support/fake-razorpay.ts'
import { type FakeRazorpay, startFakeRazorpay } from '../support/razorpay-bank.ts'
import { CLOSED_ID, type ClientScene, DISPUTE_ID, INTENT, REFUND_ID } from './scene.ts'
import { type Fields, fieldsIn, readTypes } from './shapes.ts'

type Call = (...values: unknown[]) => Promise<{ id: string }>
type Client = {
  api: { rq: { defaults: { baseURL: string } } }
  orders: Record<'create' | 'fetchPayments', Call>
  payments: Record<'createUpi' | 'refund' | 'fetchMultipleRefund', Call>
  disputes: Record<'fetch', Call>
}
type Package = (new (
  settings: object,
) => Client) & {
  validateWebhookSignature: (body: string, signature: string, secret: string) => boolean
}

const { clientId, clientSecret } = razorpaySettings({ apiUrl: '' })
const [WEBHOOK_SECRET] = RAZORPAY_SECRETS

const within = (name: string, fields: Fields): Fields =>
  new Map([...fields].map(([field, rules]) => [`${name}.${field}`, rules]))

export function razorpay(require: NodeJS.Require, folder: string): ClientScene<FakeRazorpay> {
  const types = readTypes(`${folder}/razorpay/dist`)
  const Razorpay = require('razorpay') as Package
  const client = new Razorpay({ key_id: clientId, key_secret: clientSecret })
  const [order, payment, refund] = ['Orders.RazorpayOrder', 'Payments.RazorpayPayment', 'Refunds.RazorpayRefund'].map(
    types,
  ) as [Fields, Fields, Fields]
  const listed = (fields: Fields) => new Map([...fieldsIn('entity! count! items!'), ...within('items', fields)])
  const paymentOf = (bank: FakeRazorpay) => bank.orders.get(INTENT.orderId)?.payments.at(-1) as never as { id: string }
  return {
    start: () => startFakeRazorpay({ clientId, clientSecret, webhookSecret: WEBHOOK_SECRET, now: () => new Date() }),
    connector: (bank, http) =>
      acquirer.client?.({ razorpay: razorpaySettings(bank) }, http, () => performance.now()) as never,
    afterPayment: (bank) => bank.dispute(paymentOf(bank) as never, { id: DISPUTE_ID }),
    shapes: {
      createOrder: { sent: types('Orders.RazorpayOrderCreateRequestBody'), returned: order },
      createPayment: {
        sent: types('Payments.RazorpayPaymentUpiCreateRequestBody'),
        returned: fieldsIn('razorpay_payment_id! link'),
      },
      payments: { returned: listed(payment) },
      refund: { sent: types('Refunds.RazorpayRefundCreateRequestBody'), returned: refund },
      findRefund: { returned: listed(refund) },
      dispute: { returned: types('Disputes.RazorpayDispute') },
    },
    calls(bank, sent) {
      // The client has no setting for its address.
      client.api.rq.defaults.baseURL = bank.url
      const { orderId, amount } = INTENT
      const paid = { order_id: expect.stringMatching(/^order_/), acquirer_data: { rrn: expect.any(String) } }
      const returned = { receipt: REFUND_ID, amount: 10_050, status: expect.any(String) }
      return {
        createOrder: async () => {
          await client.orders.create({ ...(sent('createOrder') as object), receipt: CLOSED_ID })
          const created = await client.orders.create(sent('createOrder'))
          return [created, { receipt: orderId, amount, status: 'created', id: bank.orders.get(orderId)?.id }]
        },
        createPayment: async () => {
          const { id } = bank.orders.get(orderId) as { id: string }
          const created = await client.payments.createUpi({ ...(sent('createPayment') as object), order_id: id })
          return [created, { link: expect.stringMatching(/^upi:\/\/pay\?/) }]
        },
        payments: async () => {
          const { id } = bank.orders.get(orderId) as { id: string }
          const states = ['captured', 'failed'].map((status) => ({ ...paid, status, amount }))
          return [await client.orders.fetchPayments(id), { count: 2, items: states }]
        },
        refund: async () => [await client.payments.refund(paymentOf(bank).id, sent('refund')), returned],
        findRefund: async () => [
          await client.payments.fetchMultipleRefund(paymentOf(bank).id, { count: 100 }),
          { count: 1, items: [returned] },
        ],
        dispute: async () => [
          await client.disputes.fetch(DISPUTE_ID),
          { id: DISPUTE_ID, status: 'open', phase: 'chargeback', amount, payment_id: paymentOf(bank).id },
        ],
      }
    },
    read(body, signature) {
      if (!Razorpay.validateWebhookSignature(body, signature, WEBHOOK_SECRET)) throw new Error('invalid signature')
      return JSON.parse(body)
    },
    notifications({ orders, encrypt, eventOf, refunds, disputes, disputeEventOf }) {
      const known = orders.get(INTENT.orderId)
      const attempts = known?.payments ?? []
      const events = [
        ...attempts.map((one) => eventOf(known as never, one)),
        ...attempts.slice(-1).map((one) => eventOf(known as never, one, 'order.paid')),
        ...refunds.all.map(refunds.eventOf),
        ...[...disputes.values()].map((one) => disputeEventOf(one, 'created')),
      ]
      const parts = { payment, order, refund, dispute: types('Disputes.RazorpayDispute') }
      const fields = new Map([
        ...fieldsIn('entity account_id event contains payload created_at'),
        ...fieldsIn(
          Object.keys(parts)
            .flatMap((part) => [`payload.${part}`, `payload.${part}.entity`])
            .join(' '),
        ),
        ...Object.entries(parts).flatMap(([part, its]) => [...within(`payload.${part}.entity`, its)]),
      ])
      return events.map((event) => {
        const { body, headers } = encrypt(event)
        return { body, signature: headers['x-razorpay-signature'] ?? '', fields }
      })
    },
  }
}
