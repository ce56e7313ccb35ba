import { expect, it } from 'vitest'
import { decodePng } from '../support/decode-png.ts'
import { CASHFREE, cashfreeSettings, newCashfreeMerchant } from '../support/fake-cashfree.ts'
import { intentFields, ORDER, post } from '../support/service.ts'
import { startServiceBeside } from '../support/service-with-bank.ts'

it.each([
  ['shows the link on the pay page and in the QR in the sandbox', true, 200],
  ['rejects the link outside the sandbox', false, 503],
])(
  'the service accepts a Cashfree payment link that starts with https only in the sandbox: %s',
  async (_what, isSandbox, status) => {
    const { service, bank } = await startServiceBeside({
      ...CASHFREE,
      settings: (bank) => ({ cashfree: { ...cashfreeSettings(bank), isSandbox } }),
    })
    bank.nextFaults = { openSession: ['other scheme'] }
    const { mid, key } = await newCashfreeMerchant(service)
    const { body, status: responded } = await post(service.app, ORDER, intentFields(mid), key)
    expect(responded).toBe(status)
    if (!isSandbox) return
    const link = bank.find(body.data.orderId)?.links.at(-1)?.replace('upi:', 'https:')
    const { payload } = await service.app.inject(`/pay/${body.data.orderId}`)
    expect(payload).toContain('href="https://pay?')
    const png = await service.app.inject(`/pay/${body.data.orderId}/qr.png`)
    expect(decodePng(png.rawPayload)).toBe(link)
  },
)
