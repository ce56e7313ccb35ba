import { describe, expect, it } from 'vitest'
import { notification, notify } from '../support/acquirer.ts'
import { decodePng } from '../support/decode-png.ts'
import { newSetuMerchant, startServiceWithBank } from '../support/fake-setu.ts'
import { runOps } from '../support/ops.ts'
import { ORDER, STATUS } from '../support/requests.ts'
import { CREATE, errorResponse, intentFields, newMerchant, post, postJson, startService } from '../support/service.ts'
import type { NewMerchant } from '../support/tenants.ts'

const AMOUNT = 'amount must be rupees from 1.00 to 100000.00 with at most two decimals, such as 588.82'
const MOBILE =
  'customer_mobile must be 10 digits; a prefix +91, 0091, 91 or 0, spaces, dots, dashes and brackets are allowed'

const service = await startService()
const pluginMerchant = await newMerchant(service.db, { input: 'shop' })
const strict = await newMerchant(service.db)

const create = (
  changes: Record<string, string>,
  of = pluginMerchant,
  headers: Record<string, string> = {},
  url = CREATE,
) => post(service.app, url, intentFields(of.mid, changes), of.key, headers)
const createJson = (changes: Record<string, unknown>, of = pluginMerchant, url = CREATE) =>
  postJson(service.app, url, { ...intentFields(of.mid), ...changes }, of.key)
const statusOf = async (orderId: string, of = pluginMerchant) =>
  (await post(service.app, STATUS, { mid: of.mid, order_id: orderId }, of.key)).text

async function rowOf(orderId: string) {
  const { rows } = await service.db.query('select * from payment_intents where order_id = $1', [orderId])
  return rows[0]
}

describe('merchant with the input setting `shop`', () => {
  // test/money.test.ts contains every format of an amount.
  it.each([
    ['588.82', '588.82'],
    [' 588.8 ', '588.80'],
    ['200.00', '200'],
    ['100.0000', '100'],
    ['588.8200', '588.82'],
    [588.82, '588.82'],
    [4.35, '4.35'],
    [100_000, '100000'],
  ])(
    'both create operations accept the amount %j from a merchant with the input setting `shop`',
    async (amount, expected) => {
      const responses = [
        await createJson({ amount }),
        ...(typeof amount === 'string' ? [await create({ amount })] : []),
      ]
      for (const { status, body } of responses) expect([status, body.data?.amount]).toEqual([200, expected])
      const ordered = await createJson({ amount }, pluginMerchant, ORDER)
      const { amount_paise } = await rowOf(ordered.body.data.orderId)
      expect(amount_paise).toBe(Math.round(Number(expected) * 100))
    },
  )

  it.each([
    '"0.99"',
    '"588,82"',
    '588.823',
    '"100.001"',
    '"100.0001"',
    '588.82000000000000001',
    '100000.001',
    'true',
    '[588.82]',
  ])(
    'both create operations name the rule of the input setting `shop` for the invalid JSON amount %s',
    async (amount) => {
      const body = JSON.stringify({ ...intentFields(pluginMerchant.mid), amount: 0 }).replace(
        '"amount":0',
        `"amount":${amount}`,
      )
      const headers = { 'content-type': 'application/json' }
      for (const url of [CREATE, ORDER]) {
        expect((await post(service.app, url, body, pluginMerchant.key, headers)).body).toEqual(
          errorResponse(400, AMOUNT),
        )
      }
    },
  )

  it.each([
    ...[
      '9876543210',
      '0123456789',
      '98765 43210',
      '+91.9876543210',
      '+91 (98765) 43210',
      '919876543210',
      '0 98765 43210',
    ],
    '98765\u00a0432\u201310',
    // Ten digits that begin like a country code.
    '9112345678',
    ...['+91 09876543210', '+91 (0) 98765 43210', '00919876543210', '0091-98765-43210', '0091 0 98765 43210'],
    // As a phone's contacts copy it.
    '\u202a+91 98765 43210\u202c',
  ])(
    'the service accepts the telephone number %j from a merchant with the input setting `shop`',
    async (customer_mobile) => {
      for (const url of [CREATE, ORDER]) {
        const { body } = await create({ customer_mobile }, pluginMerchant, {}, url)
        const digits = customer_mobile.replace(/\D/g, '').slice(-10)
        expect((await rowOf(body.data?.orderId))?.customer_mobile).toBe(digits)
      }
    },
  )

  it('the service stores a telephone number in the digits of any script as ASCII for a merchant with the input setting `shop`', async () => {
    // Each from its zero: Devanagari, Bengali, Tamil, Urdu, full-width, and digits adjacent to those of other sets.
    for (const zero of [0x966, 0x9e6, 0xbe6, 0x6f0, 0xff10, 0x1d7d8]) {
      const customer_mobile = '+91 98765-43210'.replace(/\d/g, (digit) => String.fromCodePoint(zero + Number(digit)))
      const { body } = await create({ customer_mobile })
      expect((await rowOf(body.data?.orderId))?.customer_mobile, customer_mobile).toBe('9876543210')
      expect((await create({ customer_mobile }, strict)).body.msg).toBe('customer_mobile must be 10 digits')
    }
  })

  it.each([
    ...[
      '987654321',
      '98765432100',
      '+1 98765 43210',
      '0919876543210',
      '+0919876543210',
      '+91919876543210',
      '9876543210 ext 5',
    ],
    ...['9876543210/9876543211', '९८७६५४३२१', '()', '98765\n43210'],
  ])(
    'the service names the rule of the input setting `shop` for the invalid telephone number %j',
    async (customer_mobile) => {
      expect((await create({ customer_mobile })).body).toEqual(errorResponse(400, MOBILE))
    },
  )

  it('the service names every invalid field to a merchant with the input setting `shop`, in the order of the fields', async () => {
    const { body } = await create({ amount: '0.00', note: ' ', customer_mobile: '' })
    expect(body).toEqual(errorResponse(400, `${AMOUNT}; note is required; customer_mobile is required`))
  })

  it('the service accepts a differently formatted amount and telephone number in an idempotent retry with the input setting `shop`', async () => {
    const headers = { 'idempotency-key': 'spelled' }
    const first = await create({ amount: '588.80', customer_mobile: '9876543210' }, pluginMerchant, headers)
    const again = await create({ amount: '588.8', customer_mobile: '+91 98765-43210' }, pluginMerchant, headers)
    expect(again.text).toBe(first.text)
    expect((await create({ amount: '588.81', customer_mobile: '9876543210' }, pluginMerchant, headers)).status).toBe(
      422,
    )
  })

  it('the service applies the input rules of the API key, not of the sent mid, before returning 403', async () => {
    const asOther = (amount: string, caller: NewMerchant, mid: string) =>
      post(service.app, CREATE, intentFields(mid, { amount }), caller.key)
    expect((await asOther('588.82', pluginMerchant, strict.mid)).status).toBe(403)
    expect((await asOther('588.82', strict, pluginMerchant.mid)).body.msg).toBe(
      'amount must be a whole number from 1 to 100000',
    )
  })
})

describe('a payment of 588.82', () => {
  const get = (url: string) => service.app.inject({ method: 'GET', url })

  it('the service retains the paise of a payment of 588.82 from the request to the reconciliation', async () => {
    const order_id = 'INV-588'
    const created = await create({ amount: '588.82', order_id })
    const { orderId, intent, amount } = created.body.data
    expect([amount, new URL(intent).searchParams.get('am')]).toEqual(['588.82', '588.82'])
    const qr = decodePng((await get(`/pay/${orderId}/qr.png`)).rawPayload) ?? ''
    expect(new URL(qr).searchParams.get('am')).toBe('588.82')
    const page = (await get(`/pay/${orderId}`)).payload
    expect(page).toContain('<p class="amount">₹588.82</p>')
    expect(page).toContain('am=588.82&#38;cu=INR')

    // Less, more, and the rupees alone.
    for (const other of ['588.00', '588.81', 588.83, 589]) {
      expect((await notify(service, notification(orderId, { amount: other }))).status).toBe(409)
    }
    const paid = notification(orderId, { amount: 588.82, UTR: '523504870999' })
    expect((await notify(service, paid)).status).toBe(200)
    expect((await notify(service, paid)).status).toBe(200)
    expect(await statusOf(order_id)).toBe(
      `{"status":true,"statusCode":200,"txnStatus":"SUCCESS","msg":"Payment successful","data":{"amount":588.82,"UTR":"523504870999","order_id":"${order_id}"}}`,
    )

    const ops = (...args: string[]) => runOps(service.databaseUrl, ['payments', ...args])
    const shown = JSON.parse((await ops('show', '--order-id', orderId, '--json')).stdout)
    expect(shown).toMatchObject({ amount: 588.82, status: 'SUCCESS', utr: '523504870999' })
    expect(shown.exceptions.map(({ kind, amount }: Record<string, string>) => [kind, amount])).toEqual(
      ['588.00', '588.81', '588.83', '589.00'].map((amount) => ['amount differs', amount]),
    )
    expect((await ops('show', '--order-id', orderId)).stdout).toMatch(/^amount +₹588\.82$/m)
  })

  it('ops confirms a payment of 588.82, and imports the payment from a daily transaction report', async () => {
    const [confirmed, listed] = await Promise.all(
      [1, 2].map(async () => (await create({ amount: '588.82' })).body.data),
    )
    const ops = (args: string[], input?: string) => runOps(service.databaseUrl, ['payments', ...args], input)
    const confirm = (amount: string) =>
      ops(['confirm', '--order-id', confirmed.orderId, '--utr', 'PAISE1', '--amount', amount])
    expect((await confirm('588')).stderr).toContain('the amount differs')
    expect((await confirm('588.82')).code).toBe(0)
    const file = `order_id,status,utr,amount,paid_at
${listed.orderId},SUCCESS,PAISE2,588.28,2026-03-31 23:55:00
${listed.orderId},SUCCESS,PAISE2,588.82,2026-03-31 23:55:00
`
    expect(JSON.parse((await ops(['import', '-', '--json'], file)).stdout)).toMatchObject({
      recorded: 1,
      exceptions: { 'amount differs': 1 },
    })
  })

  it('the service requests a payment of 588.82 from an acquirer, and accepts only a link for 588.82', async () => {
    const { service: withBank, bank } = await startServiceWithBank()
    const { mid, key } = await newSetuMerchant(withBank, { input: 'shop' })
    const { body } = await post(withBank.app, CREATE, intentFields(mid, { amount: '588.82' }), key)
    expect(bank.find(body.data.orderId)?.amount).toBe(58_882)
    expect(new URL(body.data.intent).searchParams.get('am')).toBe('588.82')
    await bank.pay(bank.find(body.data.orderId)?.id ?? '')
    const { body: paid } = await post(withBank.app, STATUS, { mid, order_id: body.data.orderId }, key)
    expect(paid).toMatchObject({ txnStatus: 'SUCCESS', data: { amount: 588.82 } })
  })
})
