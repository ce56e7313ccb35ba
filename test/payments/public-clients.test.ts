import { beforeAll, describe, expect, it } from 'vitest'
import { notification, notify } from '../support/acquirer.ts'
import { decodePng } from '../support/decode-png.ts'
import { ORDER, STATUS } from '../support/requests.ts'
import { CREATE, newMerchant, post, startService } from '../support/service.ts'
import type { NewMerchant } from '../support/tenants.ts'

/**
 * Requests as the public clients of this interface send them, written from their source code, and the fields that those
 * clients read of the responses.
 */

const JSON_TYPE = { 'content-type': 'application/json' }
const PAID_AMOUNT = 588.82

const service = await startService()
const pluginMerchant = await newMerchant(service.db, { input: 'shop' })

/** PHP's json_encode: a slash and all non-ASCII characters are escaped. */
function phpJson(fields: Record<string, unknown>): string {
  return JSON.stringify(fields)
    .replaceAll('/', '\\/')
    .replace(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

const sendPhp = (url: string, fields: Record<string, unknown>) =>
  post(service.app, url, phpJson(fields), pluginMerchant.key, JSON_TYPE)

const uniqid = () => Math.random().toString(16).slice(2, 15).padEnd(13, '0')

const CALLBACK = 'https://billing.example.in/modules/gateways/callback/upitranzact_callback.php'
const whmcs = (order_id: string) => ({
  redirect_url: `${CALLBACK}?order_id=${order_id}&invoice_id=42`,
  note: 'Payment for Invoice #42',
  customer_name: 'आशा Rao',
})

/**
 * The fields that each client sends besides `mid`, its order_id and an e-mail address: a total with paise, a number as
 * the customer typed it.
 */
const CLIENTS: [string, (order_id: string) => Record<string, unknown>][] = [
  [
    'the PHP sample',
    (order_id) => ({
      amount: '588.82',
      redirect_url: `http://shop.example.in/Sample-php-UPITranzact/check_status.php?order_id=${order_id}`,
      note: 'Add money',
      customer_name: 'John',
      customer_mobile: '098765-43210',
    }),
  ],
  ['the WHMCS module', (order_id) => ({ ...whmcs(order_id), amount: '588.82', customer_mobile: '+91.9876543210' })],
  [
    'the WHMCS module, whose amount may be a number',
    (order_id) => ({ ...whmcs(order_id), amount: PAID_AMOUNT, customer_mobile: '98765 43210' }),
  ],
  [
    'the WooCommerce plugin, which sends an additional field',
    (order_id) => ({
      amount: '588.82',
      redirect_url: `https://shop.example.in/wc-api/WC_Gateway_UPITranzact/?wc-api=WC_Gateway_UPITranzact&txn_id=${order_id}&order_id=1234`,
      note: 'Payment for order 1234',
      customer_name: 'Asha Rao',
      customer_mobile: '+91 98765 43210',
      woo_order_id: 1234,
    }),
  ],
]

it.each(CLIENTS)(
  '%s gets a pay page and, once the customer has paid, the status SUCCESS with the order’s total',
  async (_name, fieldsOf) => {
    const order_id = `utz_${uniqid()}`
    const checkStatus = async () => (await sendPhp(STATUS, { mid: pluginMerchant.mid, order_id })).body
    const fields = { mid: pluginMerchant.mid, order_id, customer_email: 'asha@example.in', ...fieldsOf(order_id) }
    const { body } = await sendPhp(ORDER, fields)
    expect(body).toMatchObject({ status: true, data: { payment_url: expect.stringContaining('/pay/') } })
    // If it checks too early, the callback of WHMCS stops at a status that is not true.
    expect((await checkStatus()).status).toBe(false)
    expect((await notify(service, notification(body.data.orderId, { amount: PAID_AMOUNT }))).status).toBe(200)
    expect(await checkStatus()).toMatchObject({
      status: true,
      statusCode: 200,
      txnStatus: 'SUCCESS',
      data: { order_id, amount: PAID_AMOUNT },
    })
  },
)

describe('the public Android client', () => {
  const AGENT = { 'user-agent': 'Mozilla/5.0 (Linux; Android 10; Mobile)' }
  const FORM_OF_VOLLEY = { ...AGENT, 'content-type': 'application/x-www-form-urlencoded; charset=UTF-8' }
  let app: NewMerchant
  beforeAll(async () => {
    app = await newMerchant(service.db, { input: 'shop', dynamicQr: 'image', expiryMinutes: 5, name: 'Chai & Co' })
  })

  const bodyOf = (fields: Record<string, string>) =>
    Object.entries(fields)
      // As Java's URLEncoder writes it, with the & that Volley appends.
      .map((pair) => `${pair.map((part) => encodeURIComponent(part).replaceAll('%20', '+')).join('=')}&`)
      .join('')

  const send = (url: string, fields: Record<string, string>) =>
    post(service.app, url, bodyOf({ mid: app.mid, ...fields }), app.key, FORM_OF_VOLLEY)

  it('the public Android client gets the QR image, `cred` and `merchantName` that the client reads', async () => {
    const order_id = uniqid()
    const { body } = await send(CREATE, {
      amount: '588',
      order_id,
      redirect_url: 'https://shop.example.in',
      note: 'Add money',
      customer_name: 'Asha Rao',
      customer_email: 'asha@example.in',
      customer_mobile: '+91 98765 43210',
    })
    const { data } = body
    expect(Object.keys(data)).toEqual([
      ...['intent', 'phonepe', 'paytm', 'gpay', 'dynamicQR', 'expiry', 'amount', 'orderId', 'cred', 'merchantName'],
    ])
    expect(data).toMatchObject({ amount: '588', merchantName: 'Chai & Co', cred: data.intent })
    expect(data.cred).toMatch(/^upi:\/\/pay\?.*&pn=Chai%20%26%20Co&.*&am=588\.00&/)
    expect(data.expiry).toBe('2026-04-01 00:04:59')
    // The client cuts the text at the comma and decodes the rest.
    const picture = Buffer.from(data.dynamicQR.split(',')[1], 'base64')
    expect(new URL(decodePng(picture) ?? '').searchParams.get('am')).toBe('588.00')

    const checkStatus = async () => (await send(STATUS, { order_id })).body
    expect(await checkStatus()).toMatchObject({ status: false, txnStatus: 'PENDING' })
    await notify(service, notification(data.orderId, { amount: 588 }))
    expect(await checkStatus()).toMatchObject({ status: true, txnStatus: 'SUCCESS', data: { amount: 588 } })
  })
})
