import { beforeAll, describe, expect, it } from 'vitest'
import { createDeliveries } from '../../src/gateway/webhooks/deliveries.ts'
import { toMessage } from '../../src/gateway/webhooks/message.ts'
import { RIGHTS } from '../../src/platform/rights.ts'
import { notification, notify } from '../support/acquirer.ts'
import { decodePng } from '../support/decode-png.ts'
import { newSetuMerchant, startServiceWithBank } from '../support/fake-setu.ts'
import { runOps } from '../support/ops.ts'
import {
  CREATE,
  errorResponse,
  intentFields,
  LIST,
  newKey,
  newMerchant,
  newPartner,
  ORDER,
  OWN_TRANSACTIONS,
  post,
  postJson,
  REFUND,
  REFUND_STATUS,
  STATUS,
  startService,
} from '../support/service.ts'
import type { NewMerchant } from '../support/tenants.ts'
import { newWebhook } from '../support/webhooks.ts'

const MOBILE = 'customer_mobile must be 10 digits'

const service = await startService()

const sendForm = ({ mid, key }: NewMerchant, changes: Record<string, string>, url = CREATE) =>
  post(service.app, url, intentFields(mid, changes), key)
const sendJson = ({ mid, key }: NewMerchant, changes: Record<string, unknown>, url = CREATE) =>
  postJson(service.app, url, { ...intentFields(mid), ...changes }, key)

const strictRule = (max: number) => `amount must be a whole number from 1 to ${max}`
const lenientRule = (max: number) =>
  `amount must be rupees from 1.00 to ${max}.00 with at most two decimals, such as 588.82`

describe.each([
  ['strict', 200_000, strictRule],
  ['strict', 900, strictRule],
  ['strict', 500_000, strictRule],
  ['shop', 200_000, lenientRule],
  ['shop', 900, lenientRule],
  ['shop', 500_000, lenientRule],
] as const)('maximum amount of a merchant with the input setting `%s`: %i rupees', (input, maxAmount, rule) => {
  let merchant: NewMerchant
  beforeAll(async () => {
    merchant = await newMerchant(service.db, { input, maxAmount })
  })

  it.each([CREATE, ORDER])('accepts the maximum amount in %s, as a form and as JSON', async (url) => {
    const responses = [
      await sendForm(merchant, { amount: `${maxAmount}.00` }, url),
      await sendJson(merchant, { amount: maxAmount }, url),
      await sendJson(merchant, { amount: `${maxAmount}` }, url),
    ]
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200])
    if (url === CREATE) expect(responses.map(({ body }) => body.data.amount)).toEqual(Array(3).fill(`${maxAmount}`))
  })

  it.each([CREATE, ORDER])('rejects an amount above the maximum in %s, and names the maximum', async (url) => {
    const more = [maxAmount + 1, maxAmount + 0.01, 10 * maxAmount, 1_000_000_000]
    for (const amount of more) {
      expect((await sendForm(merchant, { amount: String(amount) }, url)).body).toEqual(
        errorResponse(400, rule(maxAmount)),
      )
      expect((await sendJson(merchant, { amount }, url)).body).toEqual(errorResponse(400, rule(maxAmount)))
    }
  })

  it('names an amount above the maximum together with all other errors, in the order of the fields', async () => {
    const mobile = input === 'shop' ? expect.stringContaining(MOBILE) : MOBILE
    const { status, body } = await sendForm(merchant, { amount: String(maxAmount + 1), note: '', customer_mobile: '1' })
    expect([status, body.msg.slice(0, rule(maxAmount).length)]).toEqual([400, rule(maxAmount)])
    expect(body.msg.slice(rule(maxAmount).length)).toMatch(/^; note is required; customer_mobile must be 10 digits/)
    expect((await sendForm(merchant, { customer_mobile: '1' })).body.msg).toEqual(mobile)
  })
})

it('the service applies the interface’s maximum amount unless another maximum is set, and applies a new maximum within 5 seconds', async () => {
  const merchant = await newMerchant(service.db)
  const isNotified = async (max: number) =>
    expect((await sendForm(merchant, { amount: '500001' })).body.msg).toBe(strictRule(max))
  await isNotified(100_000)
  const set = ['merchants', 'update', '--mid', merchant.mid, '--max-amount']
  for (const [max, reported] of [
    ['500000', 500_000],
    ['500', 500],
    ['default', 100_000],
  ] as const) {
    expect((await runOps(service.databaseUrl, [...set, max])).code).toBe(0)
    service.clock.advance(5)
    await isNotified(reported)
  }
})

describe('a payment of ₹5,00,000', () => {
  const get = (url: string) => service.app.inject({ method: 'GET', url })

  it('the service processes a payment of ₹5,00,000 in all steps: intent, QR, webhook, list, refund and settlement', async () => {
    const merchant = await newMerchant(service.db, { maxAmount: 500_000 })
    const { mid, key } = merchant
    const refunder = await newKey(service.db, { mid }, RIGHTS)
    const { endpointId } = await newWebhook(
      service.db,
      { mid, url: 'https://shop.example/webhooks' },
      service.clock.now(),
    )
    const { orderId, intent } = (await sendForm(merchant, { amount: '500000', order_id: 'L1' })).body.data
    expect(new URL(intent).searchParams.get('am')).toBe('500000.00')
    const qr = decodePng((await get(`/pay/${orderId}/qr.png`)).rawPayload) ?? ''
    expect(new URL(qr).searchParams.get('am')).toBe('500000.00')
    expect((await get(`/pay/${orderId}`)).payload).toContain('<p class="amount">₹5,00,000</p>')

    const UTR = '523504955000'
    expect((await notify(service, notification(orderId, { amount: '500000.00', UTR }))).status).toBe(200)
    const { body: status } = await post(service.app, STATUS, { mid, order_id: 'L1' }, key)
    expect(status).toMatchObject({ txnStatus: 'SUCCESS', data: { amount: 500_000, UTR } })
    const soon = new Date(service.clock.now().getTime() + 60_000)
    const [event] = await createDeliveries(service.db).claim({ mid, endpointId }, 10, soon, soon)
    expect(JSON.parse(toMessage(event as NonNullable<typeof event>).body).data).toMatchObject({
      orderId,
      amount: '500000',
    })
    const days = { s_date: '31-03-2026', e_date: '31-03-2026' }
    const { body: transactions } = await post(service.app, OWN_TRANSACTIONS, { mid, ...days }, key)
    expect(transactions.data).toMatchObject([{ orderId, amount: '500000.00' }])

    // Only the paid amount limits a refund, whatever the merchant's current maximum is.
    await service.db.query('update merchants set max_amount_paise = 10000 where mid = $1', [mid])
    service.clock.advance(5)
    expect((await sendForm(merchant, { amount: '101' })).status).toBe(400)
    const refund = (refund_id: string, changes: Record<string, string> = {}) =>
      post(service.app, REFUND, { mid, order_id: 'L1', refund_id, note: 'It was cold', ...changes }, refunder)
    expect((await refund('R1', { amount: '500001' })).body.msg).toBe(strictRule(500_000))
    expect((await refund('R1', { amount: '200000' })).body.data.amount).toBe(200_000)
    expect((await refund('R2', { amount: '300001' })).body.msg).toBe('Refund exceeds what was paid')
    expect((await refund('R2')).body.data.amount).toBe(300_000)
    const { body: known } = await post(service.app, REFUND_STATUS, { mid, refund_id: 'R2' }, key)
    expect(known.data.amount).toBe(300_000)

    const file = `mid,amount,utr,bank_reference_number,status,initiation_date
${mid},500000.00,SETTLED500000,BRN1,SUCCESS,2026-03-31 10:00:00
`
    expect((await runOps(service.databaseUrl, ['settlements', 'import', '-'], file)).code).toBe(0)
    const partner = await newPartner(service.db, mid)
    const { body: settled } = await post(service.app, LIST, { pid: partner.pid, mid, ...days }, partner.key)
    expect(settled.data).toMatchObject([{ amount: '500000.00', UTR: 'SETTLED500000' }])
  })

  it('ops confirms and finds a payment of ₹4,99,999.99', async () => {
    const merchant = await newMerchant(service.db, { maxAmount: 500_000, input: 'shop' })
    const { orderId } = (await sendForm(merchant, { amount: '499999.99' })).body.data
    const ops = (...args: string[]) => runOps(service.databaseUrl, ['payments', ...args])
    const confirmed = await ops('confirm', '--order-id', orderId, '--utr', '523504955001', '--amount', '499999.99')
    expect(confirmed.code).toBe(0)
    const on = new Date(service.clock.now()).toISOString().slice(0, 10)
    const found = await ops('find', '--amount', '499999.99', '--mid', merchant.mid, '--on', on)
    expect([found.code, found.stderr]).toEqual([0, ''])
  })

  it('the service requests a payment of ₹5,00,000 from an acquirer, and accepts only a link for ₹5,00,000', async () => {
    const { service: withBank, bank } = await startServiceWithBank()
    const { mid, key } = await newSetuMerchant(withBank, { maxAmount: 500_000 })
    const { body } = await post(withBank.app, CREATE, intentFields(mid, { amount: '500000' }), key)
    expect(bank.find(body.data.orderId)?.amount).toBe(50_000_000)
    await bank.pay(body.data.orderId)
    const { body: paid } = await post(withBank.app, STATUS, { mid, order_id: body.data.orderId }, key)
    expect(paid).toMatchObject({ txnStatus: 'SUCCESS', data: { amount: 500_000 } })
  })
})
