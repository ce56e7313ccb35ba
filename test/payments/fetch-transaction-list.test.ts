import { describe, expect, it } from 'vitest'
import { newUtr } from '../support/acquirer.ts'
import { createOrder, reportPayment } from '../support/orders.ts'
import {
  errorResponse,
  newKey,
  newMerchant,
  newPartner,
  OWN_TRANSACTIONS,
  post,
  startService,
  TRANSACTIONS,
  unique,
} from '../support/service.ts'

const service = await startService({ asServiceRole: true })
const { mid, key } = await newMerchant(service.db, { input: 'shop' })
const partner = await newPartner(service.db, mid)

/** Creates an order at `paidAt` that is paid immediately. */
async function pay(paidAt: string, { UTR = newUtr(), ...fields }: Record<string, string> = {}) {
  service.clock.set(paidAt)
  const orderId = await createOrder(service, { mid, key }, fields)
  await reportPayment(service, orderId, { paidAt, UTR, amount: fields.amount ?? '200' })
  return { orderId, UTR }
}

const own = (s_date: string, e_date: string) => post(service.app, OWN_TRANSACTIONS, { mid, s_date, e_date }, key)
const partners = (s_date: string, e_date: string) =>
  post(service.app, TRANSACTIONS, { pid: partner.pid, mid, s_date, e_date }, partner.key)
const utrs = async (s_date: string, e_date: string) =>
  (await own(s_date, e_date)).body.data.map((record: { UTR: string }) => record.UTR)

const refund = (orderId: string, utr: string, paise: number, status: string) =>
  service.db.query(
    `insert into refunds (mid, refund_id, our_refund_id, order_id, utr, amount_paise, note, acquirer, created_by, created_at,
                          status, ended_at)
     values ($1, $2, $2, $3, $4, $5, 'Cold tea', 'direct', 'merchant', now(), $6, case when $6 <> 'PENDING' then now() end)`,
    [mid, unique('R'), orderId, utr, paise, status],
  )

/** Stores `count` orders paid on the day of `at`, with the order_ids `names` in rotation. */
async function payMany(count: number, at: string, names: string[]) {
  await service.db.query(
    `with orders as (
       select $4 || lpad(to_hex(i), 20, '0') as order_id, ($3::text[])[1 + i % cardinality($3::text[])] || ' ' || i as name,
              $1::timestamptz + i * interval '1 ms' as at, i
         from generate_series(1, $2::integer) i),
     made as (
       insert into payment_intents (mid, order_id, merchant_order_id, amount_paise, redirect_url, note, customer_name,
         customer_email, customer_mobile, payee_vpa, payee_name, payee_mcc, created_at, expires_at, status, utr)
       select $5, order_id, name, 20000, 'https://shop.example/', 'x', 'x', 'x@shop.example', '9876543210', 'a@b', 'x', '5814',
              at, at, 'SUCCESS', 'M' || order_id from orders)
     insert into payments (mid, utr, order_id, amount_paise, paid_at, received_at, kind, acquirer, source)
     select $5, 'M' || order_id, order_id, 20000, at, at, 'first', 'direct', 'notification' from orders`,
    [at, count, names, unique('').slice(0, 12), mid],
  )
}

describe('fetchTransactionList with valid requests', () => {
  it('fetchTransactionList returns records with exactly the documented fields, whose values are all strings, to merchant and partner', async () => {
    const { orderId, UTR } = await pay('2026-02-03T04:05:06.789+05:30', { order_id: '1001', amount: '588.82' })
    for (const [paise, status] of [
      [5000, 'SUCCESS'],
      [8850, 'SUCCESS'],
      [100, 'FAIL'],
      [200, 'PENDING'],
    ] as const) {
      await refund(orderId, UTR, paise, status)
    }
    const body = {
      status: true,
      statusCode: 200,
      msg: 'Transactions found',
      data: [
        {
          amount: '588.82',
          UTR,
          orderId,
          order_id: '1001',
          merchant_id: mid,
          status: 'SUCCESS',
          refunded: '138.50',
          created_at: '2026-02-02T22:35:06.789Z',
          paid_at: '2026-02-02T22:35:06.789Z',
          instrument: '',
        },
      ],
    }
    expect((await own('03-02-2026', '03-02-2026')).body).toEqual(body)
    expect((await partners('03-02-2026', '03-02-2026')).body).toEqual(body)
    const none = { status: true, statusCode: 200, msg: 'No transactions found', data: [] }
    expect((await own('02-02-2026', '02-02-2026')).body).toEqual(none)
    expect((await partners('04-02-2026', '04-02-2026')).body).toEqual(none)
  })

  it('fetchTransactionList selects transactions by IST days, and sorts transactions by payment time, then by UTR in byte order', async () => {
    const at = '2025-05-06T12:00:00+05:30'
    for (const UTR of ['TB', 'TA1', 'T9']) await pay(at, { UTR })
    await pay('2025-05-06T00:00:00+05:30', { UTR: 'TZ' })
    await pay('2025-05-05T23:59:59.999+05:30', { UTR: 'TBEFORE' })
    await pay('2025-05-06T23:59:59.999+05:30', { UTR: 'TLAST' })
    expect(await utrs('06-05-2025', '06-05-2025')).toEqual(['TZ', 'T9', 'TA1', 'TB', 'TLAST'])
  })

  it('fetchTransactionList lists a payment without the bank’s time on the day on which its notification arrived', async () => {
    const orderId = await createOrder(service, { mid, key })
    await service.db.query(
      `insert into payments (mid, utr, order_id, amount_paise, paid_at, received_at, kind, acquirer, source)
       values ($1, $2, $3, 20000, null, '2025-04-03T18:30:00Z', 'first', 'direct', 'notification')`,
      [mid, newUtr(), orderId],
    )
    const { data } = (await own('04-04-2025', '04-04-2025')).body
    expect(data).toMatchObject([{ orderId, order_id: orderId, refunded: '0.00', paid_at: '2025-04-03T18:30:00.000Z' }])
  })

  it('fetchTransactionList lists each paid order once, with its own payment, and no unpaid order', async () => {
    const { orderId, UTR } = await pay('2025-06-06T12:00:00Z')
    const second = newUtr()
    service.clock.advance(60)
    await reportPayment(service, orderId, { paidAt: '2025-06-06T12:01:00Z', UTR: second })
    await refund(orderId, second, 20_000, 'SUCCESS')
    await createOrder(service, { mid, key })
    expect((await own('06-06-2025', '06-06-2025')).body.data).toMatchObject([{ UTR, refunded: '0.00' }])
  })

  it('fetchTransactionList returns any order_id exactly as sent, in short and in streamed lists', async () => {
    const names = [
      '1001',
      '"quoted"',
      'back\\slash',
      '\\n',
      '\\',
      'ओम ₹',
      '😀',
      '\u2028',
      '<script>',
      '{}',
      "it's",
      '\\"',
    ]
    for (const [index, order_id] of names.entries()) {
      await pay(`2025-07-07T12:00:00.0${10 + index}Z`, { order_id: `${order_id} s` })
    }
    const orderIds = async (day: string) =>
      (await own(day, day)).body.data.map(({ order_id }: { order_id: string }) => order_id)
    expect(await orderIds('07-07-2025')).toEqual(names.map((name) => `${name} s`))

    // So many that chunks from PostgreSQL begin within a character. Control characters can only come from outside the
    // API.
    const stored = [...names, 'tab\t', 'line\n', '\r', '\b\f\v', '\u0001']
    await payMany(1_100, '2025-08-08T00:00:00Z', stored)
    const expected = Array.from({ length: 1_100 }, (_, i) => `${stored[(i + 1) % stored.length]} ${i + 1}`)
    expect(await orderIds('08-08-2025')).toEqual(expected)
  })
})

describe('Accept: text/csv', () => {
  const CSV = { accept: 'text/csv' }
  const HEADER = 'amount,UTR,orderId,order_id,merchant_id,status,refunded,created_at,paid_at,instrument\r\n'
  const csv = async (day: string) => {
    const { status, headers, text } = await post(
      service.app,
      OWN_TRANSACTIONS,
      { mid, s_date: day, e_date: day },
      key,
      CSV,
    )
    expect([status, headers['content-type']]).toEqual([200, 'text/csv; charset=utf-8; header=present'])
    return text
  }

  it('fetchTransactionList returns the records of the JSON list as CSV (RFC 4180), without formulas for spreadsheets', async () => {
    // payMany appends its number to each name.
    const formatted = new Map<string, (name: string) => string>([
      ['1001', (name) => name],
      ['ओम ₹', (name) => name],
      ['back\\slash', (name) => name],
      ['tab\t', (name) => name],
      ['a,b', (name) => `"${name}"`],
      ['two\nlines', (name) => `"${name}"`],
      ['"quoted"', (name) => `"${name.replaceAll('"', '""')}"`],
      ...['=1+1', '+91', '-1.50', '-x', '@sum', '＝1+1', '＋91', '－x', '＠sum'].map(
        (name) => [name, (text: string) => `'${text}`] as const,
      ),
    ])
    await payMany(
      formatted.size,
      '2025-09-09T00:00:00Z',
      [...formatted.keys()].map((name) => `${name} c`),
    )
    await service.db.query(`update payments set instrument = 'credit line' where mid = $1`, [mid])
    const { data } = (await own('09-09-2025', '09-09-2025')).body
    expect(data).toHaveLength(formatted.size)
    expect(data[0].instrument).toBe('credit line')
    const records = data.map((record: Record<string, string>) => {
      const name = record.order_id as string
      const order_id = formatted.get(name.slice(0, name.lastIndexOf(' c ')))?.(name)
      return `${Object.values({ ...record, order_id })}\r\n`
    })
    expect(await csv('09-09-2025')).toBe(HEADER + records.join(''))
  })

  it('fetchTransactionList returns only the CSV header if the range has no record, and JSON for an error', async () => {
    expect(await csv('01-01-2024')).toBe(HEADER)
    const { headers, body } = await post(service.app, OWN_TRANSACTIONS, { mid, s_date: 'x', e_date: 'x' }, key, CSV)
    expect([headers['content-type'], body.statusCode]).toEqual(['application/json; charset=utf-8', 400])
  })

  it('fetchTransactionList returns the format that Accept prefers by its weights, and JSON if Accept prefers no format', async () => {
    const formOf = async (accept: string) => {
      const fields = { mid, s_date: '01-01-2024', e_date: '01-01-2024' }
      const { headers } = await post(service.app, OWN_TRANSACTIONS, fields, key, { accept })
      return String(headers['content-type']).startsWith('text/csv') ? 'CSV' : 'JSON'
    }
    const forms = {
      'text/csv': 'CSV',
      'Text/CSV; header=present': 'CSV',
      'text/csv, application/json': 'CSV',
      'text/csv, */*': 'CSV',
      'text/csv;q=0.9, */*;q=0.1': 'CSV',
      'application/json;q=0.5, text/csv;q=0.8': 'CSV',
      'text/csv;q=0': 'JSON',
      'text/csv; Q=0.000': 'JSON',
      'text/csv;q=0, application/json': 'JSON',
      'text/csv;q=0, */*': 'JSON',
      'text/csv;q=0.1, application/json': 'JSON',
      'text/csv;q=0.5, */*': 'JSON',
      'application/text/csv': 'JSON',
      '*/*': 'JSON',
      'application/json, text/plain, */*': 'JSON',
      '': 'JSON',
    }
    const entries = await Promise.all(Object.keys(forms).map(async (accept) => [accept, await formOf(accept)]))
    expect(Object.fromEntries(entries)).toEqual(forms)
  })

  it('fetchTransactionList returns the same CSV in short and in streamed lists', async () => {
    await payMany(1_001, '2025-10-10T00:00:00Z', ['long'])
    const { data } = (await own('10-10-2025', '10-10-2025')).body
    const records = data.map((record: Record<string, string>) => `${Object.values(record)}\r\n`)
    expect(await csv('10-10-2025')).toBe(HEADER + records.join(''))
  })
})

describe('fetchTransactionList with errors', () => {
  it('fetchTransactionList returns 400 and names the invalid fields, and accepts a merchant’s request without pid', async () => {
    const { body } = await post(service.app, OWN_TRANSACTIONS, undefined, key)
    expect(body).toEqual(errorResponse(400, 'mid is required; s_date is required; e_date is required'))
    expect((await own('02-01-2026', '01-01-2026')).body).toEqual(errorResponse(400, 's_date must not be after e_date'))
  })

  it('fetchTransactionList returns 403 for a key of another merchant or partner, or for a key of the wrong kind', async () => {
    const other = await newMerchant(service.db)
    const stranger = await newPartner(service.db, other.mid)
    const days = { s_date: '01-01-2026', e_date: '31-01-2026' }
    const all = [
      post(service.app, OWN_TRANSACTIONS, { mid, ...days }, other.key),
      post(service.app, OWN_TRANSACTIONS, { mid, ...days }, partner.key),
      post(service.app, TRANSACTIONS, { pid: partner.pid, mid, ...days }, key),
      post(service.app, TRANSACTIONS, { pid: stranger.pid, mid, ...days }, stranger.key),
    ]
    for (const { body } of await Promise.all(all)) {
      expect(body).toEqual(
        errorResponse(
          403,
          'This key has no access to this mid or pid, or the merchant is disabled. Check the mid or pid and the key.',
        ),
      )
    }
  })

  it('fetchTransactionList returns 403 to a disabled merchant, but returns the list to the merchant’s partner', async () => {
    const gone = await newMerchant(service.db)
    const reader = await newPartner(service.db, gone.mid)
    await service.db.query('update merchants set disabled_at = now() where mid = $1', [gone.mid])
    const days = { mid: gone.mid, s_date: '01-01-2026', e_date: '31-01-2026' }
    expect((await post(service.app, OWN_TRANSACTIONS, days, await newKey(service.db, gone))).status).toBe(403)
    expect((await post(service.app, TRANSACTIONS, { pid: reader.pid, ...days }, reader.key)).status).toBe(200)
  })
})
