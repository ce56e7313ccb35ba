import { describe, expect, it } from 'vitest'
import { NewPayment } from '../../src/gateway/payments/new-payment.ts'
import {
  CREATE,
  errorResponse,
  intentFields,
  newMerchant,
  PUBLIC_URL,
  post,
  postJson,
  startService,
} from '../support/service.ts'

const service = await startService()

async function create(changes: Record<string, string | undefined> = {}) {
  const { mid, key } = await newMerchant(service.db)
  return post(service.app, CREATE, intentFields(mid, changes), key)
}

describe('createPaymentIntent with valid fields', () => {
  it('createPaymentIntent returns the interface’s fields, and four links with the same query', async () => {
    const { text, body } = await create()
    const { orderId } = body.data
    expect(orderId).toMatch(/^[A-Za-z0-9_-]{1,35}$/)
    const query = `ver=01&mode=04&pa=chaipoint@examplebank&pn=Chai%20Point&mc=5814&tr=${orderId}&tn=Order%201001&am=200.00&cu=INR&QRexpire=2026-04-01T00%3A14%3A59%2B05%3A30`
    expect(text).toBe(
      `{"status":true,"statusCode":200,"msg":"Payment intent created successfully","data":{"intent":"upi://pay?${query}",` +
        `"phonepe":"phonepe://pay?${query}","paytm":"paytmmp://pay?${query}","gpay":"tez://upi/pay?${query}",` +
        `"dynamicQR":"${PUBLIC_URL}/pay/${orderId}/qr.png","expiry":"2026-04-01 00:14:59","amount":"200","orderId":"${orderId}"}}`,
    )
  })

  it('createPaymentIntent returns the expiry in Indian Standard Time, 15 minutes after creation, even at the end of a financial year', async () => {
    service.clock.set('2026-03-31T18:29:59.000Z')
    expect((await create()).body.data.expiry).toBe('2026-04-01 00:14:59')
  })

  it('createPaymentIntent returns an expiry 60 minutes after creation if the operator has set 60 minutes', async () => {
    const { app, db, clock } = await startService({ expiryMinutes: 60 })
    clock.set('2026-06-01T10:00:00.000Z')
    const { mid, key } = await newMerchant(db)
    expect((await post(app, CREATE, intentFields(mid), key)).body.data.expiry).toBe('2026-06-01 16:30:00')
  })

  it('createPaymentIntent assigns orderIds that sort by time and do not repeat', async () => {
    service.clock.set('2026-06-01T00:00:00.000Z')
    const first = (await create()).body.data.orderId
    service.clock.advance(1)
    const second = (await create()).body.data.orderId
    expect([second, first].sort()).toEqual([first, second])
    expect(first.slice(12)).not.toBe(second.slice(12))
  })

  it('createPaymentIntent assigns orderIds with 80 unguessable bits: each bit is set in about half of 400 orderIds', async () => {
    const { mid, key } = await newMerchant(service.db)
    const create = async () => (await post(service.app, CREATE, intentFields(mid), key)).body.data.orderId.slice(12, 32)
    const tails: bigint[] = (await Promise.all(Array.from({ length: 400 }, create))).map((tail) => BigInt(`0x${tail}`))
    for (let bit = 0n; bit < 80n; bit++) {
      const set = tails.filter((tail) => (tail >> bit) & 1n).length
      // Within six standard deviations.
      expect(set, `bit ${bit}`).toBeGreaterThan(140)
      expect(set, `bit ${bit}`).toBeLessThan(260)
    }
  })

  it('createPaymentIntent stores the fields as sent, with spaces for line breaks in the note, and the merchant’s current payee', async () => {
    // Not normalized as a browser would.
    const redirect_url = 'HTTPS://Shop.Example.in:443/a/../b?x=%7e#'
    service.clock.set('2026-06-01T10:00:00.000Z')
    const { body } = await create({
      order_id: 'Ordre-é/1',
      note: '\tनमस्ते\r\nline 2\u2028line 3\n',
      customer_name: 'Zoë 山田',
      redirect_url,
    })
    const { rows } = await service.db.query('select * from payment_intents where order_id = $1', [body.data.orderId])
    expect(rows).toEqual([
      expect.objectContaining({
        merchant_order_id: 'Ordre-é/1',
        amount_paise: 200_00,
        note: 'नमस्ते line 2 line 3',
        customer_name: 'Zoë 山田',
        customer_email: 'asha@example.in',
        customer_mobile: '0123456789',
        redirect_url,
        payee_vpa: 'chaipoint@examplebank',
        payee_name: 'Chai Point',
        payee_mcc: '5814',
        created_at: new Date('2026-06-01T10:00:00.000Z'),
        expires_at: new Date('2026-06-01T10:15:00.000Z'),
      }),
    ])
  })
})

describe('amount in whole rupees', () => {
  const RULE = errorResponse(400, 'amount must be a whole number from 1 to 100000')
  const createJson = async (amount: unknown) => {
    const { mid, key } = await newMerchant(service.db)
    return postJson(service.app, CREATE, { ...intentFields(mid), amount }, key)
  }

  it.each(['1', '100000', '200.00', '200.0', '007', ' 200 '])(
    'createPaymentIntent accepts the amount %j in whole rupees',
    async (amount) => {
      expect((await create({ amount })).body.data?.amount).toBe(String(Number(amount)))
    },
  )

  it.each(['0', '100001', '200.50', '0x10', '+5', '-5', '५०', '２００', '1,000', '200.', '200.000', '100.0000'])(
    'createPaymentIntent rejects the amount %j',
    async (amount) => {
      expect((await create({ amount })).body).toEqual(RULE)
    },
  )

  it('createPaymentIntent rejects a blank amount as missing', async () => {
    expect((await create({ amount: ' ' })).body).toEqual(errorResponse(400, 'amount is required'))
  })

  it.each([200, '200', '200.00', 2e2])(
    'createPaymentIntent accepts the JSON amount %j by its value',
    async (amount) => {
      expect((await createJson(amount)).body.data?.amount).toBe('200')
    },
  )

  it.each([200.5, 0, 100001, 1e300, true, { value: 200 }])(
    'createPaymentIntent rejects the JSON amount %j',
    async (amount) => {
      expect((await createJson(amount)).body).toEqual(RULE)
    },
  )
})

describe('createPaymentIntent with invalid fields', () => {
  const REDIRECT =
    'redirect_url must be an absolute http or https URL of at most 2048 characters, without user and password'

  it('createPaymentIntent names every missing field, in the order of the interface', async () => {
    const { key } = await newMerchant(service.db)
    const names = ['mid', 'amount', 'redirect_url', 'note', 'customer_name', 'customer_email', 'customer_mobile']
    const expected = errorResponse(400, names.map((name) => `${name} is required`).join('; '))
    expect((await post(service.app, CREATE, undefined, key)).body).toEqual(expected)
    expect((await post(service.app, CREATE, {}, key)).body).toEqual(expected)
    expect((await postJson(service.app, CREATE, {}, key)).body).toEqual(expected)
  })

  it('createPaymentIntent names every invalid field with its rule, and repeats nothing that was sent', async () => {
    const { body, text } = await create({ amount: 'SENT-1', customer_mobile: 'SENT-2', redirect_url: 'SENT-3' })
    expect(body).toEqual(
      errorResponse(
        400,
        `amount must be a whole number from 1 to 100000; ${REDIRECT}; customer_mobile must be 10 digits`,
      ),
    )
    expect(text).not.toContain('SENT')
  })

  it.each([
    ['order_id', 'x'.repeat(65), 'must be text of 1 to 64 characters, without control characters'],
    ['note', 'x'.repeat(256), 'must be text of 1 to 255 characters, without control characters'],
    ['note', 'a\u0007b', 'must be text of 1 to 255 characters, without control characters'],
    ['customer_name', 'Asha\nRao', 'must be text of 1 to 100 characters, without control characters'],
    ['customer_email', 'asha@example', 'must be a valid e-mail address'],
    ['customer_email', `a@${'b'.repeat(250)}.in`, 'must be at most 254 characters'],
    ['customer_mobile', '+911234567890', 'must be 10 digits'],
    ['customer_mobile', '१२३४५६७८९०', 'must be 10 digits'],
    ['mid', 'M1\n', 'must be 1 to 64 characters of A-Z a-z 0-9 _ -'],
    ['customer_name', 'Asha\u0085Rao', 'must be text of 1 to 100 characters, without control characters'],
    ['order_id', 'a\u009fb', 'must be text of 1 to 64 characters, without control characters'],
    ['customer_email', 'as\u0000ha@example.in', 'must be a valid e-mail address'],
  ])('createPaymentIntent rejects %s %j', async (field, value, rule) => {
    expect((await create({ [field]: value })).body).toEqual(errorResponse(400, `${field} ${rule}`))
  })

  it.each([
    ['customer_mobile', 9876543210, 'must be 10 digits, as text in quotes'],
    ['mid', 1001, 'must be 1 to 64 characters of A-Z a-z 0-9 _ -, as text in quotes'],
    ['order_id', 1001, 'must be text of 1 to 64 characters, without control characters, as text in quotes'],
    ['customer_mobile', true, 'must be 10 digits'],
  ])('createPaymentIntent states the rule that %s must be text for the JSON value %j', async (field, value, rule) => {
    const { mid, key } = await newMerchant(service.db)
    const { body } = await postJson(service.app, CREATE, { ...intentFields(mid), [field]: value }, key)
    expect(body).toEqual(errorResponse(400, `${field} ${rule}`))
  })

  it.each([
    ...[
      'javascript:alert(1)',
      '//shop.example.in',
      '/thanks',
      'ftp://shop.example.in',
      'https://',
      'https:///shop.example.in',
    ],
    ...['user', 'user:pw', ''].map((user) => `https://${user}@shop.example.in`),
    ...['https:/\\shop.example.in', 'https://shop.example.in\\@evil.example', 'https://shop.example.in/a b'],
    `https://shop.example.in/${'x'.repeat(2048)}`,
  ])('createPaymentIntent rejects the redirect_url %j', async (redirect_url) => {
    expect((await create({ redirect_url })).body).toEqual(errorResponse(400, REDIRECT))
  })

  // Node.js 20 parses a URL incorrectly once the parsing function is optimised.
  it('createPaymentIntent accepts letters such as ü in redirect_url, even after 20,000 requests', () => {
    const body = { ...intentFields('M1'), redirect_url: 'https://ü.example/ñ' }
    const rejected = Array.from({ length: 20_000 }, () => NewPayment.safeParse(body).success).filter((ok) => !ok)
    expect(rejected).toHaveLength(0)
  })

  it('createPaymentIntent rejects every control character in redirect_url, at any position', async () => {
    const { mid, key } = await newMerchant(service.db)
    const codes = [...Array(0x20).keys(), ...Array.from({ length: 0x21 }, (_, index) => 0x7f + index)]
    const controls = codes.map((code) => String.fromCharCode(code))
    const taken: string[] = []
    for (const redirect_url of controls.flatMap((c) => [`http://shop${c}.example`, `http://shop.example/a${c}b`])) {
      const { body } = await post(service.app, CREATE, intentFields(mid, { redirect_url }), key)
      if (body.msg !== REDIRECT) taken.push(redirect_url)
    }
    expect(taken).toEqual([])
  })

  it.each([
    ['order_id', 'x'.repeat(64)],
    ['order_id', '🙏'.repeat(64)],
    ['note', 'é'.repeat(255)],
    ['customer_name', '山'.repeat(100)],
    ['customer_mobile', '0000000000'],
    ['customer_email', `${'a'.repeat(64)}@${'b'.repeat(186)}.in`],
    ['customer_email', 'asha@उदाहरण.भारत'],
    ['customer_email', 'asha@xn--p1b6ci4b4b3a.xn--h2brj9c'],
    ['customer_email', 'r&d#1+upi@shop.example.in'],
    ['redirect_url', 'http://localhost:8080/?a=b#c'],
    ['redirect_url', `https://shop.example.in/${'x'.repeat(2024)}`],
    ['customer_name', 'a\u202Eb'],
  ])('createPaymentIntent accepts %s at its limit: %j', async (field, value) => {
    expect((await create({ [field]: value })).status).toBe(200)
  })

  it('createPaymentIntent accepts a mid of 64 characters', async () => {
    const { mid, key } = await newMerchant(service.db, { mid: `M${'-_9z'.repeat(16)}`.slice(0, 64) })
    expect((await post(service.app, CREATE, intentFields(mid), key)).status).toBe(200)
  })
})
