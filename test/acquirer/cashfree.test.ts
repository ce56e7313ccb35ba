import { createHmac } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { AcquirerError } from '../../src/errors.ts'
import { cashfree, cashfreeClient } from '../../src/gateway/acquirers/cashfree/client.ts'
import { undone } from '../../src/gateway/acquirers/json-request.ts'

describe('the signature of a Cashfree notification', () => {
  const secret = 'TEST_client_secret'
  const account = { apiUrl: 'https://api.example', clientId: 'client', clientSecret: 'another' }
  const settings = { ...account, notificationSecrets: ['another', secret] }
  const at = '1617695238078'
  const body = '{"data":{"order":{"order_id":"OFR_2","order_amount":2.00}},"type":"PAYMENT_SUCCESS_WEBHOOK"}'
  const published = '29kwVaQoljtxZVOvLRnxgh4qyN5swGhzghTZN+b8PbQ='

  const check =
    (signature: unknown, timestamp: unknown = at, sent = body) =>
    () =>
      cashfree
        .notifications({ cashfree: settings })
        ?.requireSignature(
          { headers: { 'x-webhook-signature': signature, 'x-webhook-timestamp': timestamp } } as never,
          Buffer.from(sent),
          new Date('2026-11-23T00:00:00Z'),
        )

  it('accepts a published sample signature of any age with any of the configured secrets', () => {
    expect(check(published)).not.toThrow()
  })

  it.each([
    ['for other bytes of the same JSON', published, at, body.replace('2.00', '2.0')],
    ['for another time', published, '1617695238079', body],
    ['with a dot between time and body', sign(`${at}.${body}`), at, body],
    ['without a time', sign(body), undefined, body],
  ])('rejects a signature %s', (_what, signature, timestamp, sent) => {
    expect(check(signature, timestamp, sent)).toThrow('Send x-webhook-signature')
  })

  function sign(text: string): string {
    return createHmac('sha256', secret).update(text).digest('base64')
  }
})

const SETTINGS = {
  ...{ apiUrl: 'https://api.example', clientId: 'client', clientSecret: 'secret' },
  notificationSecrets: ['secret'],
}
const LINK = { acquirer: 'cashfree', merchantId: 'CF', id: 'O1', reference: 'O1', link: 'upi://pay?' }

it.each([null, '', '2026-03-31T18:20:00', '2026-03-31 18:20:00'])(
  'the service reports a Cashfree payment without a payment time if payment_time is %j',
  async (time) => {
    const payment = { order_id: 'O1', cf_payment_id: '7', payment_status: 'SUCCESS', payment_amount: '200.00' }
    const body = [{ ...payment, bank_reference: '523504870405', payment_time: time }]
    const client = cashfreeClient(SETTINGS, async () => ({ status: 200, body, requestId: undefined }))
    const [reported] = await client.getPayments({ orderId: 'O1', paymentLink: LINK })
    expect(reported).toMatchObject({ status: 'SUCCESS', utr: '523504870405', paidAt: undefined })
  },
)

it('a refund may exist after Cashfree’s rejection if the status check of the refund fails', async () => {
  const client = cashfreeClient(SETTINGS, async ({ method }) => {
    if (method === 'POST') return { status: 400, body: { code: 'refund_post_failed' }, requestId: undefined }
    throw undone(new AcquirerError('refused', 'the key is rejected'))
  })
  const payment = { utr: '523504870405', payment: null, paymentLink: LINK }
  const refund = { orderId: 'O1', ourRefundId: 'f'.repeat(32), amount: 5_001, note: '', isSecond: false, ...payment }
  await expect(client.refund?.(refund)).rejects.toMatchObject({ isUndone: false })
})
