import { expect } from 'vitest'
import { phonepe as acquirer } from '../../src/gateway/acquirers/phonepe/client.ts'
import { PHONEPE_SECRETS, phonepeSettings } from '../support/fake-phonepe.ts'
import { type FakePhonepe, startFakePhonepe } from '../support/phonepe-bank.ts'
import { type ClientScene, INTENT, REFUND_ID } from './scene.ts'
import { readTypes } from './shapes.ts'

type Builder = { [name: string]: (value: unknown) => Builder } & { build: () => object }
type Client = {
  pay: (order: object) => Promise<object>
  getOrderStatus: (orderId: string, details: boolean) => Promise<object>
  refund: (refund: object) => Promise<object>
  getRefundStatus: (refundId: string) => Promise<object>
  validateCallback: (user: string, password: string, signature: string, body: string) => object
}
type Package = {
  CustomCheckoutClient: { getInstance: (...values: unknown[]) => Client }
  CustomCheckoutPayRequest: { UpiQrRequestBuilder: () => Builder }
  RefundRequest: { builder: () => Builder }
}

const CREDENTIALS = phonepeSettings({ apiUrl: '', loginUrl: '' })
// PhonePe's client verifies only SHA webhooks.
const [, WEBHOOK_SECRET] = PHONEPE_SECRETS
const [USER = '', PASSWORD = ''] = WEBHOOK_SECRET.split(':')

/** Calls the setters of a builder that have the name of a value. */
const build = (builder: Builder, values: object) =>
  Object.entries(values)
    .reduce((built, [name, value]) => built[name]?.(value) ?? built, builder)
    .build()

export function phonepe(require: NodeJS.Require, folder: string): ClientScene<FakePhonepe> {
  const types = readTypes(`${folder}/@phonepe-pg/pg-sdk-node/dist`)
  const sdk = require('@phonepe-pg/pg-sdk-node') as Package
  const urls = require('@phonepe-pg/pg-sdk-node/dist/common/constants/BaseUrl') as { BaseUrl: { SANDBOX: object } }
  let client: Client
  return {
    start: () => startFakePhonepe({ ...CREDENTIALS, webhookSecret: WEBHOOK_SECRET, now: () => new Date() }),
    connector: (bank, http) =>
      acquirer.client?.({ phonepe: phonepeSettings(bank) }, http, () => performance.now()) as never,
    shapes: {
      createOrder: { returned: types('CustomCheckoutPayResponse') },
      order: { returned: types('OrderStatusResponse') },
      refund: { returned: types('RefundResponse') },
      findRefund: { returned: types('RefundStatusResponse') },
    },
    calls({ url, apiUrl }, sent) {
      // The client has no setting for its addresses.
      const base = { PG_HOST_URL: apiUrl, PCI_PG_HOST_URL: apiUrl, OAUTH_HOST_URL: url, EVENTS_HOST_URL: url }
      Object.assign(urls.BaseUrl.SANDBOX, base)
      const { clientId, clientSecret, clientVersion } = CREDENTIALS
      // The last value turns off the events that the client sends about itself.
      client = sdk.CustomCheckoutClient.getInstance(clientId, clientSecret, Number(clientVersion), 'SANDBOX', false)
      const { amount } = INTENT
      return {
        createOrder: async () => [
          await client.pay(build(sdk.CustomCheckoutPayRequest.UpiQrRequestBuilder(), sent('createOrder'))),
          { state: 'PENDING', expireAt: expect.any(Number), intentUrl: expect.stringMatching(/^upi:\/\/pay\?/) },
        ],
        order: async () => [
          await client.getOrderStatus(INTENT.orderId, true),
          { state: 'COMPLETED', amount, paymentDetails: [{ state: 'FAILED' }, { state: 'COMPLETED', amount }] },
        ],
        refund: async () => [
          await client.refund(build(sdk.RefundRequest.builder(), sent('refund'))),
          { state: 'PENDING', amount: 10_050 },
        ],
        findRefund: async () => [
          await client.getRefundStatus(REFUND_ID),
          { state: 'COMPLETED', amount: 10_050, originalMerchantOrderId: INTENT.orderId },
        ],
      }
    },
    read: (body, signature) => client.validateCallback(USER, PASSWORD, signature, body),
    notifications({ orders, encrypt, eventOf, refunds }) {
      const order = orders.get(INTENT.orderId)
      const events = [
        ...(order?.payments.map((one) => eventOf(order as never, one)) ?? []),
        ...refunds.all.map(refunds.eventOf),
      ]
      return events.map((event) => {
        const { body, headers } = encrypt(event)
        return { body, signature: headers.authorization ?? '', fields: types('CallbackResponse') }
      })
    },
  }
}
