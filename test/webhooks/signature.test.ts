import { Webhook } from 'standardwebhooks'
import { describe, expect, it } from 'vitest'
import { newSigningSecret, signatureHeaders } from '../../src/gateway/webhooks/signature.ts'

// The independent library uses the machine's clock.
const sentAt = new Date()
const body = '{"type":"payment.succeeded","data":{"amount":"588.82","payee":"चाय ☕"}}'
const webhook = (...secrets: string[]) => ({ id: 'msg_2KWPBgLlAfxdpx2AI54pPJ85f4W', sentAt, body, secrets })

describe('the signature of a webhook', () => {
  it('the Standard Webhooks library accepts a webhook’s signature with any new secret', () => {
    for (let i = 0; i < 100; i += 1) {
      const secret = newSigningSecret()
      expect(new Webhook(secret).verify(body, signatureHeaders(webhook(secret)))).toEqual(JSON.parse(body))
    }
  })

  it('the signature of a webhook equals the example in the specification', () => {
    const secrets = ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw']
    const example = { id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', sentAt: new Date(1_614_265_330_000), secrets }
    expect(signatureHeaders({ ...example, body: '{"test": 2432232314}' })).toEqual({
      'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      'webhook-timestamp': '1614265330',
      'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    })
  })

  it('the signature of a webhook is invalid for another body, id or time', () => {
    const secret = newSigningSecret()
    const headers = signatureHeaders(webhook(secret))
    const verify = (sent: string, changed = {}) => new Webhook(secret).verify(sent, { ...headers, ...changed })
    expect(() => verify(body.replace('588', '5888'))).toThrow('No matching')
    expect(() => verify(body, { 'webhook-id': 'msg_other' })).toThrow('No matching')
    expect(() => verify(body, { 'webhook-timestamp': `${Number(headers['webhook-timestamp']) + 1}` })).toThrow(
      'No matching',
    )
  })

  it('the service signs webhooks with a secret of 32 random bytes', () => {
    const secrets = Array.from({ length: 1_000 }, newSigningSecret)
    expect(new Set(secrets).size).toBe(1_000)
    for (const secret of secrets) {
      expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
      expect(Buffer.from(secret.slice(6), 'base64')).toHaveLength(32)
    }
  })
})
