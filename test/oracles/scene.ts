import type { AcquirerClient, LinkedOrder, RefundOrder } from '../../src/gateway/acquirers/client.ts'
import type { Intent, PaymentLink } from '../../src/gateway/payments/intent.ts'
import type { HttpClient } from '../../src/platform/outbound/http-client.ts'
import type { BankRequest } from '../support/fake-bank.ts'
import type { Fields } from './shapes.ts'

const createdAt = new Date()

export const INTENT: Intent = {
  mid: 'M1',
  orderId: '0198f3a2b4c5d6e7f8091a2b3c4d5e6f',
  merchantOrderId: 'ORDER-7',
  amount: 20_050,
  redirectUrl: 'https://shop.example/paid',
  note: 'Order 7',
  customer: { name: 'Asha Rao', email: 'asha@example.in', mobile: '9876543210' },
  payee: { vpa: 'demo.merchant@icici', name: 'Demo Merchant', mcc: '5814' },
  createdAt,
  expiresAt: new Date(createdAt.getTime() + 900_000),
  idempotency: undefined,
}
/** An order that is closed before the other one is created. */
export const CLOSED_ID = '0198f3a2b4c5d6e7f8091a2b3c4d5e60'
export const REFUND_ID = '0198f3a2b4c5d6e7f8091a2b3c4d5e61'
export const DISPUTE_ID = '433475257'
const PAYEES = ['demomerchantonline@ybl', 'cf.demo*@icici', 'rzr.demo*@icici', INTENT.payee.vpa]

type Bank = {
  requests: BankRequest<string>[]
  pay: (orderId: string, how?: { outcome: 'failed' }) => Promise<unknown>
  goAway: () => Promise<void>
}

/** Method and path, and the fields of the body and of a successful response of a call, by the acquirer. */
export type Shape = { line?: string; sent?: Fields; returned?: Fields }

/** A connector, the fake of its acquirer, and what the acquirer publishes about its calls. */
export type Scene<Started extends Bank = Bank> = {
  start: () => Promise<Started>
  connector: (bank: Started, http: HttpClient) => AcquirerClient
  afterPayment?: (bank: Started) => unknown
  shapes: Record<string, Shape>
}

/** A scene with the client that the acquirer publishes. */
export type ClientScene<Started extends Bank = Bank> = Scene<Started> & {
  /**
   * The calls of the client, in the connector's sequence. `sent` has the values of the connector's requests. A call
   * returns what the client has read, and what it must have read.
   */
  calls: (bank: Started, sent: (call: string) => never) => Record<string, () => Promise<[object, object]>>
  /** Reads a notification with the client, which rejects an invalid signature. */
  read: (body: string, signature: string) => object
  /** The notifications of a paid order with their signatures and fields. */
  notifications: (bank: Started) => { body: string; signature: string; fields: Fields }[]
}

export type Step = [name: string, run: (client: AcquirerClient) => Promise<unknown>]

/** What a connector does for an order, in sequence. Each step of the connector can be repeated. */
export function stepsOf({ afterPayment }: Scene, bank: Bank): Step[] {
  let closed: PaymentLink | undefined
  let order: LinkedOrder
  let refund: RefundOrder
  const createLink = (client: AcquirerClient, orderId: string) =>
    client.createLink({ ...INTENT, orderId }, { id: 'M1', payees: PAYEES })
  return [
    [
      'close',
      async (client) => {
        closed ??= (await createLink(client, CLOSED_ID)).paymentLink
        return client.closeLink(closed)
      },
    ],
    [
      'link',
      async (client) => {
        const { paymentLink } = await createLink(client, INTENT.orderId)
        order ??= { orderId: INTENT.orderId, paymentLink }
      },
    ],
    ['open', (client) => client.getPayments({ ...order, isOpen: true })],
    [
      'customer',
      async () => {
        await bank.pay(INTENT.orderId, { outcome: 'failed' })
        await bank.pay(INTENT.orderId)
        afterPayment?.(bank)
      },
    ],
    [
      'status',
      async (client) => {
        const payments = await client.getPayments(order)
        const [{ utr = '', names } = {}] = payments
        refund ??= {
          ...{ ...order, ourRefundId: REFUND_ID, amount: 10_050, note: 'Returned', utr, isSecond: false },
          payment: names ?? null,
        }
        return payments
      },
    ],
    ['refund', async (client) => client.refund?.(refund)],
    ['refund status', async (client) => client.getRefund?.(refund)],
    ['dispute', async (client) => client.getDispute?.({ id: DISPUTE_ID, orderId: INTENT.orderId })],
  ]
}
