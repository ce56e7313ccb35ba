import { createHash } from 'node:crypto'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { createExceptions } from '../../src/gateway/payments/read-exceptions.ts'
import { createMerchants } from '../../src/gateway/tenants/merchants.ts'
import { createDeliveries } from '../../src/gateway/webhooks/deliveries.ts'
import { toMessage } from '../../src/gateway/webhooks/message.ts'
import { RIGHTS } from '../../src/platform/rights.ts'
import { notification, notify } from '../support/acquirer.ts'
import {
  CANCEL,
  CREATE,
  errorResponse,
  intentFields,
  newKey,
  newMerchant,
  post,
  REFUND,
  REFUND_STATUS,
  responseOf,
  startService,
  type TestService,
  unique,
} from '../support/service.ts'
import { USER_AGENTS } from '../support/user-agents.ts'
import { newWebhook } from '../support/webhooks.ts'

const service = await startService()

async function get(url: string, { app } = service, headers: Record<string, string> = {}) {
  return responseOf(await app.inject({ method: 'GET', url, headers }))
}

async function newOrder(changes: Record<string, string> = {}, name = 'Chai Point', { app, db } = service) {
  const { mid, key } = await newMerchant(db, { name })
  const { orderId } = (await post(app, CREATE, intentFields(mid, changes), key)).body.data
  return { mid, orderId: orderId as string, page: `/pay/${orderId}` }
}

/** Returns the page's state, its main button, whether it offers to pay, its reason and the UTR. */
function shown(html: string) {
  // The card for the end of the time is hidden until the script shows it.
  const page = html.replace(/<div class="time-up" hidden>.*?<\/div>/s, '')
  return {
    state: /<div class="view" data-state="(\w+)"/.exec(page)?.[1],
    first: /<a class="button first[^"]*"[^>]*>(.*?)<\/a>/s.exec(page)?.[1]?.replace(/<[^>]*>/g, ''),
    offersToPay: /class="qr"|class="apps"/.test(page),
    attempt: /<p class="attempt">(.*?)<\/p>/.exec(page)?.[1],
    utr: /<strong class="utr" data-text="(\w+)">/.exec(page)?.[1],
  }
}
const NOTHING = { first: undefined, offersToPay: false, attempt: undefined, utr: undefined }
const OPEN = { ...NOTHING, state: 'open', offersToPay: true }
const RETURN = 'Return to Chai Point'

const GONE = 'This payment is no longer open. Ask the merchant for a new one.'
const NOT_FOUND = 'There is no payment at this address'

describe('the HTML and headers of the pay page', () => {
  it('allow no inline code except the page’s own style and script, by their hashes, and no other host', async () => {
    const { headers, text } = await get((await newOrder()).page)
    const policy = Object.fromEntries(
      String(headers['content-security-policy'])
        .split('; ')
        .map((directive) => [directive.slice(0, directive.indexOf(' ')), directive.slice(directive.indexOf(' ') + 1)]),
    )
    const hashes = (tag: string) =>
      [...text.matchAll(new RegExp(`<${tag}>(.*?)</${tag}>`, 'gs'))].map(
        ([, content = '']) => `'sha256-${createHash('sha256').update(content).digest('base64')}'`,
      )
    expect(policy).toEqual({
      'default-src': "'none'",
      'style-src': hashes('style').join(' '),
      'script-src': hashes('script').join(' '),
      'img-src': "'self' data:",
      'connect-src': "'self'",
      'form-action': "'self'",
      'base-uri': "'none'",
      'frame-ancestors': "'none'",
    })
    expect([hashes('style').length, hashes('script').length]).toEqual([2, 1])
    expect(text).not.toMatch(/ (style|on\w+)=/)
  })

  it('contain one style that depends on the order, with only the checked colour and the time left', async () => {
    const { page, mid } = await newOrder()
    const styleOf = async () => [...(await get(page)).text.matchAll(/<style>(.*?)<\/style>/gs)][1]?.[1]
    const bar = '.bar i{animation-duration:900s;animation-delay:-0s;transform:scaleX(1.000)}'
    expect(await styleOf()).toBe(`:root{--brand:#3b3fd8;--on-brand:#ffffff}${bar}`)
    await service.db.query('update merchants set brand_colour = $2 where mid = $1', [mid, '#b8860b'])
    service.clock.advance(225)
    expect(await styleOf()).toBe(
      ':root{--brand:#b8860b;--on-brand:#000000}.bar i{animation-duration:900s;animation-delay:-225s;transform:scaleX(0.750)}',
    )
  })

  it('forbid framing, indexing, sniffing and caching, and send no referrer', async () => {
    const { status, headers, text } = await get((await newOrder()).page)
    expect(status).toBe(200)
    expect(headers).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'x-frame-options': 'DENY',
      'x-robots-tag': 'noindex, nofollow',
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cache-control': 'no-store',
    })
    expect(text).toContain('<meta name="robots" content="noindex, nofollow">')
  })

  it('contain no customer data, and of the merchant only name, UPI address and order', async () => {
    const customer = { customer_name: 'Zubeida Q', customer_email: 'zq@private.example', customer_mobile: '9876501234' }
    const { page, mid, orderId } = await newOrder({ ...customer, order_id: 'SHOP-77231' })
    const open = await get(page)
    await notify(service, notification(orderId))
    for (const { text } of [open, await get(page)]) {
      for (const secret of [...Object.values(customer), mid]) expect(text).not.toContain(secret)
    }
  })

  it('show the payee’s UPI address and the merchant’s order_id, or the orderId if there is none', async () => {
    const number = (text: string) => /<dt>Order<\/dt><dd><bdi>(.*?)<\/bdi>/.exec(text)?.[1]
    const { text } = await get((await newOrder({ order_id: '<i>&77231' })).page)
    expect(text).toContain('<dt>UPI address</dt><dd><bdi>chaipoint@examplebank</bdi></dd>')
    expect(number(text)).toBe('&#60;i&#62;&#38;77231')
    const { page, orderId } = await newOrder()
    expect(number((await get(page)).text)?.replace('<wbr>', '')).toBe(orderId)
  })

  it('use relative links to the page’s own files, so that they work under any path of PUBLIC_URL', async () => {
    const { page, orderId } = await newOrder()
    const { text } = await get(page)
    const own = [...text.matchAll(/ (?:src|href|action|data-events)="([^"]*)"/g)].map(([, address = '']) => address)
    expect(own.filter((address) => !/^(upi|tez|phonepe|paytmmp|https|data):/.test(address))).toEqual([
      `${orderId}/events`,
      `${orderId}?lang=hi`,
    ])
  })

  it.each([
    ['https://pay.example', 'https'],
    ['http://localhost:3000/upi', 'http'],
  ])('show the page’s own URL below PUBLIC_URL in an in-app browser, %s', async (publicUrl, scheme) => {
    const behind = await startService({ publicUrl })
    const { page, orderId } = await newOrder({}, 'Chai Point', behind)
    const address = `${publicUrl}/pay/${orderId}`
    const android = await get(`${page}?igsh=1`, behind, { 'user-agent': USER_AGENTS.instagramOnAndroid })
    const links = [...android.text.matchAll(/ href="(intent:[^"]*)"/g)].map(([, link]) => link)
    expect(links).toEqual([
      `intent://${address.slice(scheme.length + 3)}#Intent;scheme=${scheme};action=android.intent.action.VIEW;S.browser_fallback_url=${encodeURIComponent(address)};end`,
    ])
    const iphone = await get(page, behind, { 'user-agent': USER_AGENTS.facebookOnIphone })
    for (const { text } of [android, iphone]) {
      expect(text).toContain(`<bdi class="address">${address}</bdi>`)
      expect(text).not.toMatch(/(?:upi|tez|gpay|phonepe|paytmmp|bhim|credpay):\/\/|scheme=upi/)
    }
  })

  it('leave redirect_url unchanged and escape a merchant’s markup exactly once', async () => {
    const hostile = `"'><script>alert(1)</script>&amp;`
    const redirectUrl = `https://shop.example.in/thanks?q=${hostile}`
    const { text } = await get((await newOrder({ note: hostile, redirect_url: redirectUrl }, hostile)).page)
    const escaped = '&#34;&#39;&#62;&#60;script&#62;alert(1)&#60;/script&#62;&#38;amp;'
    expect(text).toContain(`class="unpaid" href="https://shop.example.in/thanks?q=${escaped}"`)
    expect(text).toContain(`<h1><bdi>${escaped}</bdi></h1>`)
    expect(text).toContain(`<meta property="og:title" content="Pay ${escaped}">`)
    expect(text).toContain(`<title>Pay · ${escaped}</title>`)
    expect(text).toContain(`<p class="about"><bdi>${escaped}</bdi></p>`)
    expect(text.match(/<script/g)).toHaveLength(1)
  })

  it('state the expiry without JavaScript, with the date if it is another day in India', async () => {
    service.clock.set('2026-03-31T18:10:00.000Z')
    expect((await get((await newOrder()).page)).text).toContain('Pay before <time>11:55\u00a0pm\u00a0IST</time>')
    service.clock.set('2026-03-31T18:20:00.000Z')
    expect((await get((await newOrder()).page)).text).toContain(
      'Pay before <time>1 Apr 2026, 12:05\u00a0am\u00a0IST</time>',
    )
  })
})

describe('compression', () => {
  const fetchAs = (acceptEncoding: string, url: string) =>
    service.app.inject({ url, headers: { 'accept-encoding': acceptEncoding } })

  it('makes a pay page less than half as large, in the coding that the browser prefers', async () => {
    const { page } = await newOrder()
    const plain = await fetchAs('identity', page)
    const inBrotli = await fetchAs('gzip, deflate, br', page)
    const inGzip = await fetchAs('gzip, deflate', page)
    expect([plain, inBrotli, inGzip].map(({ headers }) => headers['content-encoding'])).toEqual([
      undefined,
      'br',
      'gzip',
    ])
    expect(brotliDecompressSync(inBrotli.rawPayload).toString()).toBe(plain.payload)
    expect(gunzipSync(inGzip.rawPayload).toString()).toBe(plain.payload)
    expect(inBrotli.rawPayload.length).toBeLessThan(plain.rawPayload.length / 2)
    for (const { headers, rawPayload } of [plain, inBrotli, inGzip]) {
      expect(headers).toMatchObject({
        vary: expect.stringContaining('accept-encoding'),
        'content-length': `${rawPayload.length}`,
      })
    }
  })

  it('applies to error pages, but not to images and JSON', async () => {
    const { page } = await newOrder()
    const errorPage = await fetchAs('br', '/pay/unknown')
    expect([errorPage.statusCode, errorPage.headers['content-encoding']]).toEqual([404, 'br'])
    const { mid, key } = await newMerchant(service.db)
    const created = await post(service.app, CREATE, intentFields(mid, { note: 'x'.repeat(255) }), key, {
      'accept-encoding': 'br',
    })
    const images = await Promise.all(['qr.png', 'qr.svg'].map(async (name) => await fetchAs('br', `${page}/${name}`)))
    for (const { headers } of [created, ...images]) {
      expect(headers['content-type']).toMatch(/json|image/)
      expect(headers['content-encoding']).toBeUndefined()
    }
  })
})

describe('the language of a page', () => {
  const inHindi = (url: string, on = service, userAgent = '') =>
    get(url, on, { 'accept-language': 'hi-IN,hi;q=0.9,en;q=0.8', 'user-agent': userAgent })

  it('is English, or Hindi if the browser prefers it, and caches store the languages separately', async () => {
    const { page } = await newOrder()
    for (const [response, language] of [
      [await get(page), 'en'],
      [await inHindi(page), 'hi'],
    ] as const) {
      expect(response.headers).toMatchObject({
        'content-language': language,
        vary: 'accept-encoding, accept-language, user-agent',
      })
      expect(response.text).toContain(`<html lang="${language}">`)
    }
  })

  it('contains no English text in any state of a page in Hindi', async () => {
    const sandbox = await startService({ sandbox: true })
    const pages = []
    for (const [status, seconds] of [
      [undefined, 0],
      ['FAIL', 0],
      ['FAIL', 15 * 60],
      ['FAIL', 25 * 60],
      [undefined, 25 * 60],
      ['SUCCESS', 0],
    ] as const) {
      const { page, orderId } = await newOrder({ note: '1' }, '1', sandbox)
      if (status) await notify(sandbox, notification(orderId, { status }))
      sandbox.clock.advance(seconds)
      for (const userAgent of ['', ...Object.values(USER_AGENTS)]) {
        pages.push((await inHindi(page, sandbox, userAgent)).text)
        pages.push((await inHindi(`${page}?back=${sandbox.clock.now().getTime()}`, sandbox, userAgent)).text)
      }
    }
    const names =
      /Google Pay|PhonePe|Paytm|BHIM|CRED|Chrome|Safari|UPI|UTR|IST|QR|https:[/.\w]+|chaipoint@examplebank|\b[0-9a-fA-F]{32}\b|\b[A-Z0-9]{10,}\b/g
    for (const page of pages) {
      // The sandbox lists the failure reasons by their interface names.
      const body = page.replace(/<(style|script|option)>.*?<\/\1>|<wbr>|<a class="lang".*?<\/a>/gs, '')
      const shown = [
        ...body.matchAll(/>([^<]+)</g),
        ...body.matchAll(/ (?:alt|aria-label|data-(?:\w+-left|waiting|nothing-opened|copied))="([^"]*)"/g),
      ].map(([, text = '']) => text.replace(/\{\w+\}/g, '').replace(names, ''))
      expect(shown.filter((text) => /[A-Za-z]/.test(text))).toEqual([])
    }
  })

  it('is the one of the address, which links and reloads keep, whatever the browser prefers', async () => {
    const { page, orderId } = await newOrder()
    for (const [own, other, name] of [
      ['hi', 'en', 'English'],
      ['en', 'hi', 'हिन्दी'],
    ]) {
      const { headers, text } = await inHindi(`${page}?lang=${own}`)
      expect(headers['content-language']).toBe(own)
      expect(text).toContain(
        `<a class="lang" href="${orderId}?lang=${other}" lang="${other}" hreflang="${other}">${name}</a>`,
      )
      expect(text).toContain(`content="5; url=?lang=${own}&#38;reload"`)
    }
    expect((await get('/pay/x?lang=hi')).text).toContain('इस लिंक पर कोई भुगतान नहीं मिला')
    expect((await get(`${page}?lang=ta`)).headers['content-language']).toBe('en')
  })

  it('is also the browser’s language on error pages', async () => {
    const { status, headers, text } = await inHindi('/pay/x')
    expect([status, headers['content-language']]).toEqual([404, 'hi'])
    expect(text).toContain('<h1 class="message">इस लिंक पर कोई भुगतान नहीं मिला</h1>')
    const crowded = await startService({ limits: { pools: { pages: 1 }, database: { connectTimeoutMs: 500 } } })
    const held = await crowded.pools.pages.connect()
    const unavailable = await inHindi(`/pay/${'0'.repeat(32)}`, crowded).finally(() => held.release())
    expect([unavailable.status, unavailable.headers.refresh]).toEqual([503, '5'])
    expect(unavailable.text).toContain('सेवा थोड़ी देर के लिए उपलब्ध नहीं है। कृपया कुछ पल बाद फिर से कोशिश करें')
  })

  it('is English for JSON errors below the pay page, even if the browser prefers Hindi', async () => {
    const { body, headers } = await inHindi('/pay/x/qr.png')
    expect(body).toEqual(errorResponse(404, NOT_FOUND))
    expect(headers).not.toHaveProperty('content-language')
  })
})

describe('the page that the service sends', () => {
  const refresh = (html: string) => /<noscript><meta http-equiv="refresh" content="([^"]*)">/.exec(html)?.[1]

  it('offers ways to pay an open order, and reloads itself without JavaScript', async () => {
    const { text } = await get((await newOrder()).page)
    expect([shown(text), refresh(text)]).toEqual([OPEN, '5; url=?reload'])
    expect(text).toContain('<title>Pay · Chai Point</title>')
  })

  it('is a receipt of a paid order, without a way to pay, and does not redirect by itself', async () => {
    service.clock.set('2026-11-26T08:04:00.000Z')
    const { page, orderId } = await newOrder({ redirect_url: 'https://shop.example.in/thanks?a=1&b=2' })
    await notify(service, notification(orderId, { UTR: '523504870405', paidAt: '2026-11-26T13:34:00+05:30' }))
    const { text } = await get(page)
    expect([shown(text), refresh(text)]).toEqual([
      { ...NOTHING, state: 'paid', first: RETURN, utr: '523504870405' },
      undefined,
    ])
    expect(text).toContain('<title>Paid · Chai Point</title>')
    expect(text).toContain('26 Nov 2026, 1:34\u00a0pm\u00a0IST')
    expect(text).toContain('>5235\u00a00487\u00a00405</strong>')
    expect(text).not.toContain('http-equiv="refresh"')
    expect(text).not.toMatch(/upi:|qr\.svg/)
    const qr = await get(`${page}/qr.png`)
    expect([qr.status, qr.body]).toEqual([410, errorResponse(410, GONE)])
  })

  it('lists refunds on the receipt, and shows the refund once the whole amount was refunded', async () => {
    const { page, orderId } = await newOrder()
    await notify(service, notification(orderId, { UTR: '523504870407' }))
    const refund = (paise: number, status: string, reference = '') =>
      service.db.query(
        `insert into refunds (mid, refund_id, our_refund_id, order_id, utr, amount_paise, note, acquirer, created_by, created_at,
                              status, reference, ended_at)
         select mid, $2, $2, order_id, utr, $3, 'Cold tea', acquirer, 'merchant', received_at, $4, $5,
                case when $4 <> 'PENDING' then timestamptz '2026-11-27 09:00:00Z' end
           from payments where order_id = $1`,
        [orderId, `R${paise}${status}`, paise, status, reference],
      )
    const rows = async () =>
      [...(await get(page)).text.matchAll(/<dt>Refund<\/dt><dd>(.*?)<\/dd>/g)].map(([, row]) => row)
    await refund(19_900, 'SUCCESS', '195932211633')
    await refund(100, 'PENDING')
    await refund(200, 'FAIL')
    expect(shown((await get(page)).text).state).toBe('paid')
    expect(await rows()).toEqual(['₹1 on its way', '₹199 on 27 Nov 2026 · UTR 1959\u00a03221\u00a01633'])
    await refund(100, 'SUCCESS')
    const { text } = await get(page)
    expect([shown(text), refresh(text)]).toEqual([
      { ...NOTHING, state: 'refunded', first: RETURN, utr: '523504870407' },
      undefined,
    ])
    expect(text).toContain('<title>Refunded · Chai Point</title>')
    expect(text).toContain('The full amount was refunded to the account that paid.')
  })

  it('lists each second payment on the receipt, with its refund', async () => {
    const { page, orderId } = await newOrder()
    for (const UTR of ['523504870411', '523504870412', '523504870413']) {
      await notify(service, notification(orderId, { UTR }))
    }
    await notify(service, notification(orderId, { UTR: '523504870414', amount: 201 }))
    const notes = async () =>
      [...(await get(page)).text.matchAll(/<div class="note(?: warn)?">(.*?)<\/div>/g)].map(([, note = '']) =>
        note
          .replace(/<\/p><p>/g, ' | ')
          .replace(/<[^>]*>/g, '')
          .replaceAll('\u00a0', ' '),
      )
    const paidTwice = (payment: string) => `You paid twice: ${payment}. Contact Chai Point for the second payment.`
    const [second, third, other] = [
      '₹200 (UTR 5235 0487 0412)',
      '₹200 (UTR 5235 0487 0413)',
      '₹201 (UTR 5235 0487 0414)',
    ]
    expect(shown((await get(page)).text)).toMatchObject({ state: 'paid', utr: '523504870411' })
    expect(await notes()).toEqual([paidTwice(second), paidTwice(third), paidTwice(other)])

    const { rows } = await service.db.query<{ mid: string }>('select mid from payment_intents where order_id = $1', [
      orderId,
    ])
    const refund = (id: string, { utr, paise, status = 'PENDING' }: { utr: string; paise: number; status?: string }) =>
      service.db.query(
        `insert into refunds (mid, refund_id, our_refund_id, order_id, utr, amount_paise, note, acquirer, created_by, created_at, status, ended_at)
         values ($1, $2, $2, $3, $4, $5, '', 'direct', 'merchant', $6::timestamptz, $7::text, case when $7 <> 'PENDING' then $6 end)`,
        [rows[0]?.mid, id, orderId, utr, paise, service.clock.now(), status],
      )
    await refund('2'.repeat(32), { utr: '523504870412', paise: 20_000 })
    await refund('3'.repeat(32), { utr: '523504870413', paise: 5_000, status: 'FAIL' })
    await refund('4'.repeat(32), { utr: '523504870413', paise: 15_000 })
    const partly = paidTwice(third)
    expect(await notes()).toEqual([
      '₹200 (UTR 5235 0487 0412) is being returned.',
      `${partly} | ₹150 (UTR 5235 0487 0413) is being returned.`,
      paidTwice(other),
    ])
    await service.db.query(
      `update refunds set status = 'SUCCESS', ended_at = '2026-11-27 09:00:00Z',
                          reference = case when amount_paise = 20000 then '195932211699' else '' end
        where order_id = $1 and status = 'PENDING'`,
      [orderId],
    )
    expect(await notes()).toEqual([
      '₹200 returned on 27 Nov 2026, reference 1959 3221 1699.',
      `${partly} | ₹150 returned on 27 Nov 2026.`,
      paidTwice(other),
    ])
    expect((await get(page)).text).not.toContain('<dt>Refund</dt>')
  })

  it('says once what to do when money has left the account, and names the contact first where a new order would fail too', async () => {
    const lastsOf = async (reason: string) => {
      const { page, orderId } = await newOrder()
      await fail(orderId, reason)
      service.clock.advance(60 * 60)
      return (await get(page)).text
    }
    const inTransit = await lastsOf('bank_unavailable')
    expect(inTransit.match(/money has left your account/g)).toHaveLength(1)
    expect(inTransit).toContain('it returns by itself within 5 days')
    const notAllowed = await lastsOf('payee_not_allowed')
    expect(notAllowed).toContain('Contact <bdi>Chai Point</bdi> before you place the order again.')
    expect(notAllowed).not.toContain('To place the order again, return')
  })

  it('has no amount in its title, which a share sheet shows, in any state', async () => {
    const orders = await Promise.all(Array.from({ length: 6 }, () => newOrder()))
    const reports = [
      {},
      { status: 'FAIL', reason: 'wrong_pin' },
      { status: 'FAIL', reason: 'bank_unavailable' },
      { status: 'FAIL', reason: 'payee_not_allowed' },
      { amount: 201 },
    ]
    for (const [at, report] of reports.entries()) {
      await notify(service, notification(orders[at]?.orderId as string, { UTR: `52350487042${at}`, ...report }))
    }
    const titles = async () =>
      Promise.all(orders.map(async ({ page }) => /<title>(.*) · Chai Point<\/title>/.exec((await get(page)).text)?.[1]))
    const [notYet, mismatch] = ['Not paid yet', 'Another amount received']
    expect(await titles()).toEqual(['Paid', notYet, 'Payment not confirmed', 'Payment not possible', mismatch, 'Pay'])
    service.clock.advance(60 * 60)
    expect(await titles()).toEqual(['Paid', 'Not paid', 'Not paid', 'Not paid', mismatch, 'Not paid in time'])
  })

  const fail = (orderId: string, reason: string, status = 'FAIL') =>
    notify(service, notification(orderId, { status, reason }))

  it.each(['FAIL', 'REJECT'])('offers ways to pay after an attempt with status %s and a wrong PIN', async (status) => {
    const { page, orderId } = await newOrder()
    await fail(orderId, 'wrong_pin', status)
    const { text } = await get(page)
    expect([shown(text), refresh(text)]).toEqual([
      { ...OPEN, state: 'attemptFailed', attempt: 'The UPI PIN was incorrect. Try again.' },
      '5; url=?reload',
    ])
    expect(text).toContain('upi://pay?')
    expect((await get(`${page}/qr.png`)).status).toBe(200)
  })

  it('offers no way to pay while money may be in transit, until the customer confirms that it is not', async () => {
    const { page, orderId } = await newOrder()
    await fail(orderId, 'bank_unavailable')
    const { text } = await get(page)
    expect(shown(text)).toEqual({ ...NOTHING, state: 'attemptFailed', attempt: 'A bank or UPI was unavailable.' })
    expect(text).toContain('do not pay again: it returns by itself within 5 days')
    const confirm = /<a class="button" href="([^"]*)">My money has not left my account: pay another way<\/a>/.exec(
      text,
    )?.[1]
    expect(shown((await get(`/pay/${confirm}`)).text)).toMatchObject({ state: 'attemptFailed', offersToPay: true })
    // The confirmation is not valid for a later attempt.
    service.clock.advance(5)
    await fail(orderId, 'not_authorised_in_time')
    expect(shown((await get(`/pay/${confirm}`)).text)).toMatchObject({ state: 'attemptFailed', offersToPay: false })
  })

  it('offers no way to pay a merchant that cannot be paid', async () => {
    const { page, orderId } = await newOrder()
    await fail(orderId, 'payee_not_allowed')
    const { text } = await get(page)
    expect(shown(text)).toMatchObject({ state: 'attemptFailed', first: RETURN, offersToPay: false })
    expect(text).not.toContain('pay another way')
  })

  it('offers no way to pay after an unreadable status, which may report a payment, until the customer confirms', async () => {
    const { page, orderId } = await newOrder()
    await service.db.query('update payment_intents set unreadable_at = $2 where order_id = $1', [
      orderId,
      service.clock.now(),
    ])
    const { text } = await get(page)
    const attempt = 'Your bank has not confirmed the payment yet.'
    expect(shown(text)).toEqual({ ...NOTHING, state: 'attemptFailed', attempt })
    expect(text).toContain('do not pay again')
    const confirm = /<a class="button" href="([^"]*)">My money has not left my account/.exec(text)?.[1]
    expect(shown((await get(`/pay/${confirm}`)).text)).toEqual({ ...OPEN, state: 'attemptFailed', attempt })
  })

  it('asks not to pay again after a failed order whose money may be in transit', async () => {
    const { page, orderId } = await newOrder()
    await fail(orderId, 'bank_unavailable')
    service.clock.advance(60 * 60)
    const { text } = await get(page)
    expect(shown(text)).toMatchObject({ state: 'failed', first: RETURN })
    expect(text).toContain('do not pay again')
    expect(text).not.toContain('To place the order again')
  })

  it('shows the bank’s reference on the receipt once it is known', async () => {
    const { page, orderId } = await newOrder()
    await notify(service, notification(orderId, { UTR: 'CF123' }))
    expect(shown((await get(page)).text).utr).toBe('CF123')
    await service.db.query(`update payments set bank_reference = '523504870410' where order_id = $1`, [orderId])
    expect(shown((await get(page)).text).utr).toBe('523504870410')
  })

  it('waits after the customer returned from an app, without offering to pay, until the customer says so', async () => {
    const { page, orderId } = await newOrder()
    const back = service.clock.now().getTime()
    const { text } = await get(`${page}?back=${back}&app=PhonePe`)
    expect([shown(text), refresh(text)]).toEqual([
      { ...NOTHING, state: 'waiting' },
      `5; url=?back=${back}&#38;app=PhonePe&#38;reload`,
    ])
    expect(text).toContain('<h2 tabindex="-1">Approve in PhonePe</h2>')
    expect(text).toContain('Please do not pay a second time.')
    const again = /<a class="button" href="([^"]*)">I have not paid: choose another app<\/a>/.exec(text)?.[1]
    expect(shown((await get(`/pay/${again}`)).text)).toEqual(OPEN)
    service.clock.advance(5)
    await fail(orderId, 'wrong_pin')
    expect(shown((await get(`${page}?back=${back}&app=PhonePe`)).text).state).toBe('attemptFailed')
  })

  it('ignores parameters that the page does not write', async () => {
    const { page } = await newOrder()
    for (const query of ['back=1e3', 'back=', 'back=1&back=2', 'again=x', 'app=<b>', 'lang=xx', 'x=y']) {
      const { status, text } = await get(`${page}?${query}`)
      expect([status, shown(text)], query).toEqual([200, OPEN])
      expect(text).not.toContain('<b>')
    }
  })

  it('shows a payment of another amount, and offers no way to pay, until the operator resolves it', async () => {
    const { page, orderId, mid } = await newOrder()
    await notify(service, notification(orderId, { amount: 201, UTR: '523504870409' }))
    const { text } = await get(page)
    expect(shown(text)).toEqual({ ...NOTHING, state: 'amountMismatch', first: RETURN, utr: '523504870409' })
    expect(text).toContain('₹201 arrived instead of ₹200')
    expect(text).toContain('Please do not pay again.')
    const exceptions = createExceptions(service.db)
    const resolution = { reason: 'returned', by: 'asha', now: service.clock.now() }
    await exceptions.resolve(await exceptions.ofOrder(mid, orderId), resolution)
    expect(shown((await get(page)).text)).toEqual(OPEN)
  })

  it.each([
    ['there was no attempt', undefined, 'expired'],
    ['an attempt failed', 'FAIL', 'failed'],
    ['an attempt was rejected', 'REJECT', 'failed'],
  ])('shows the final status only 10 minutes after the expiry if %s', async (_what, status, end) => {
    const { page, orderId } = await newOrder()
    if (status) await fail(orderId, 'wrong_pin', status)
    service.clock.advance(15 * 60 - 1)
    expect(shown((await get(page)).text).state).toBe(status ? 'attemptFailed' : 'open')
    service.clock.advance(1)
    for (const seconds of [0, 10 * 60 - 1]) {
      service.clock.advance(seconds)
      const { text } = await get(page)
      expect([shown(text), refresh(text)]).toEqual([{ ...NOTHING, state: 'timeUp' }, '15; url=?reload'])
      expect(text).not.toMatch(/upi:|qr\.svg/)
    }
    service.clock.advance(1)
    const { text } = await get(page)
    expect([shown(text), refresh(text)]).toEqual([
      // The reason stays, without its advice to try again.
      { ...NOTHING, state: end, first: RETURN, attempt: status && 'The UPI PIN was incorrect.' },
      undefined,
    ])
    expect(text).toContain('To place the order again, return to <bdi>Chai Point</bdi>.')
    expect(text).toContain('note the reference number (UTR)')
  })

  it('names the next step of a cancelled order', async () => {
    const { page, mid, orderId } = await newOrder()
    const { status } = await post(service.app, CANCEL, { mid, order_id: orderId }, await newKey(service.db, { mid }))
    expect(status).toBe(200)
    const { text } = await get(page)
    expect(shown(text)).toEqual({ ...NOTHING, state: 'cancelled', first: RETURN })
    expect(text).toContain('To place the order again, return to <bdi>Chai Point</bdi>.')
    expect(text).toContain('note the reference number (UTR)')
  })

  it('returns the order’s state to a HEAD request, for browsers without events', async () => {
    const { page, orderId } = await newOrder()
    const send = async () => (await service.app.inject({ method: 'HEAD', url: page })).headers['x-payment-state']
    expect(await send()).toBe('open')
    await fail(orderId, 'wrong_pin')
    const first = await send()
    expect(first).toBe(`attemptFailed-wrong_pin-${service.clock.now().getTime()}`)
    service.clock.advance(1)
    await fail(orderId, 'wrong_pin')
    expect(await send()).not.toBe(first)
    await notify(service, notification(orderId, { UTR: '523504870406' }))
    expect(await send()).toBe('paid')
  })
})

describe('the merchant’s brand', () => {
  it('is the colour, website and contact of the merchant, and its initials without a logo', async () => {
    const { page, mid } = await newOrder()
    const plain = (await get(page)).text
    expect(plain).toContain('<span class="logo" aria-hidden="true">CP</span>')
    expect(plain).toContain('<link rel="icon" href="data:image/svg+xml,%3Csvg')
    expect(plain).not.toMatch(/class="(site|help)"|og:image/)
    await service.db.query(
      "update merchants set brand_website = 'https://www.chaipoint.example/shop', brand_support = 'care@chaipoint.example' where mid = $1",
      [mid],
    )
    const { text } = await get(page)
    expect(text).toContain('<p class="site"><bdi>chaipoint.example</bdi></p>')
    expect(text).toContain('<a class="help" href="mailto:care@chaipoint.example">Help</a>')
    await service.db.query("update merchants set brand_support = '+91 98765 43210' where mid = $1", [mid])
    expect((await get(page)).text).toContain('<a class="help" href="tel:+919876543210">Help</a>')
  })

  it.each([
    ['चाय की दुकान', 'चाकी'],
    ['Ola (2020)', 'O2'],
    ['🍵🍵', '🍵'],
  ])('shows for the name %s the initials %s', async (name, initials) => {
    const { text } = await get((await newOrder({}, name)).page)
    expect(text).toContain(`<span class="logo" aria-hidden="true">${initials}</span>`)
  })

  it('previews a shared link by the merchant’s name, without the amount', async () => {
    const { text } = await get((await newOrder()).page)
    const metas = [...text.matchAll(/<meta property="([^"]*)" content="([^"]*)">/g)].map(([, name, value]) => [
      name,
      value,
    ])
    expect(metas).toEqual([
      ['og:title', 'Pay Chai Point'],
      ['og:type', 'website'],
    ])
  })
})

describe('the pages of a disabled merchant', () => {
  const disable = (mid: string) => createMerchants(service.db).disable(mid, service.clock.now())
  const BRAND = "update merchants set brand_support = 'care@chaipoint.example' where mid = $1"
  const CONTACT = '<a class="contact" href="mailto:care@chaipoint.example">'

  it('stay the receipt of a paid order, with UTR and contact', async () => {
    const { page, orderId, mid } = await newOrder()
    await service.db.query(BRAND, [mid])
    await notify(service, notification(orderId, { UTR: '523504870431' }))
    const before = await get(page)
    await disable(mid)
    const { status, text } = await get(page)
    expect([status, text]).toEqual([200, before.text])
    expect(shown(text)).toMatchObject({ state: 'paid', utr: '523504870431' })
    expect(text).toContain(CONTACT)
  })

  it.each([
    ['open', undefined, 0, 'closed'],
    ['open after a failed attempt', 'bank_unavailable', 0, 'closed'],
    ['out of time', undefined, 15 * 60, 'timeUp'],
    ['expired', undefined, 60 * 60, 'expired'],
    ['failed', 'wrong_pin', 60 * 60, 'failed'],
  ])('return 410 with the state of an order that is %s, without a way to pay or to order again', async (...row) => {
    const [, reason, seconds, state] = row
    const { page, orderId, mid } = await newOrder()
    await service.db.query(BRAND, [mid])
    if (reason) await notify(service, notification(orderId, { status: 'FAIL', reason }))
    service.clock.advance(seconds)
    await disable(mid)
    for (const query of ['', `?back=${service.clock.now().getTime()}`, `?again=${service.clock.now().getTime()}`]) {
      const { status, headers, text } = await get(page + query)
      expect([status, headers['x-error-code'], shown(text).state]).toEqual([410, 'payment_closed', state])
      expect(shown(text).offersToPay).toBe(false)
      expect(text).not.toMatch(/upi:|class="qr"|order again/)
      expect(text).toContain('<a class="help" href="mailto:care@chaipoint.example">')
      if (state !== 'timeUp') expect(text).toContain(CONTACT)
    }
  })

  it('report a payment that arrives later to the open page, which becomes the receipt', async () => {
    const { page, orderId, mid } = await newOrder()
    await disable(mid)
    const stateOf = async () => (await service.app.inject({ method: 'HEAD', url: page })).headers['x-payment-state']
    expect(await stateOf()).toBe('closed')
    await notify(service, notification(orderId, { UTR: '523504870432' }))
    expect(await stateOf()).toBe('paid')
  })
})

describe('addresses without a payment', () => {
  it.each(['0'.repeat(32), 'x', `${'0'.repeat(31)}%00`])(
    'return 404 for the unknown orderId %s, as HTML for the page and as an envelope for its other addresses',
    async (orderId) => {
      const page = await get(`/pay/${orderId}`)
      expect([page.status, page.headers['content-type']]).toEqual([404, 'text/html; charset=utf-8'])
      expect(page.text).toContain(`<h1 class="message">${NOT_FOUND}</h1>`)
      expect(page.headers).toMatchObject({ 'x-frame-options': 'DENY', 'cache-control': 'no-store' })
      for (const part of ['qr.png', 'qr.svg', 'events']) {
        const { status, body } = await get(`/pay/${orderId}/${part}`)
        expect([status, body]).toEqual([404, errorResponse(404, NOT_FOUND)])
      }
    },
  )

  it.each([
    [400, { host: 'a@b' }],
    [417, { expect: 'tea' }],
  ])('return %i as HTML, as the OpenAPI document says, for a page requested with %j', async (status, headers) => {
    const { page } = await newOrder()
    const response = await service.app.inject({ url: page, headers })
    expect([response.statusCode, response.headers['content-type']]).toEqual([status, 'text/html; charset=utf-8'])
  })

  it('return 410 for the QR while the merchant is disabled', async () => {
    const { mid, page } = await newOrder()
    await createMerchants(service.db).disable(mid, service.clock.now())
    for (const part of ['qr.png', 'qr.svg']) {
      expect(await get(`${page}/${part}`)).toMatchObject({ status: 410, body: errorResponse(410, GONE) })
    }
  })

  it('return 405 to a HEAD request for events, because the stream would never be closed', async () => {
    const { page } = await newOrder()
    const response = await service.app.inject({ method: 'HEAD', url: `${page}/events` })
    expect([response.statusCode, response.headers.allow]).toEqual([405, 'GET'])
    expect((await service.app.inject({ method: 'HEAD', url: page })).statusCode).toBe(200)
  })
})

it('the service returns 503 for pages, QRs and events while the database is unavailable, with a readable page', async () => {
  const cutOff = await startService()
  const { page } = await newOrder({}, 'Chai Point', cutOff)
  vi.spyOn(cutOff.pools.pages, 'query').mockImplementation(async () => {
    throw Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
  })
  for (const part of ['/qr.png', '/qr.svg', '/events']) {
    expect((await get(page + part, cutOff)).status, part).toBe(503)
  }
  const { status, headers, text } = await get(page, cutOff)
  expect(status).toBe(503)
  expect(headers).toMatchObject({ 'content-type': 'text/html; charset=utf-8', 'retry-after': '1', refresh: '5' })
  expect(text).toContain('The service is briefly unavailable. Try again in a moment.')
})

describe('simulated payments', () => {
  it('are rejected without the sandbox', async () => {
    const { page, orderId } = await newOrder()
    expect((await get(page)).text).not.toMatch(/<form|<button (?!class="copy")|\/simulate|name="status"/i)
    const { status } = await post(service.app, `/pay/${orderId}/simulate`, { status: 'SUCCESS' })
    expect([status, shown((await get(page)).text).state]).toEqual([404, 'open'])
  })

  it('are stored with the source sandbox and redirect to the pay page', async () => {
    const sandbox = await startService({ sandbox: true })
    const { page, orderId } = await newOrder({}, 'Chai Point', sandbox)
    expect((await get(page, sandbox)).text).toContain(
      `<form class="sandbox" aria-label="Test mode" method="post" action="${orderId}/simulate">`,
    )
    const response = await post(sandbox.app, `/pay/${orderId}/simulate`, { status: 'SUCCESS' })
    expect([response.status, response.headers.location]).toEqual([303, `../${orderId}`])
    const { rows } = await sandbox.db.query('select kind, source from payments where order_id = $1', [orderId])
    expect(rows).toEqual([{ kind: 'first', source: 'sandbox' }])
    expect((await post(sandbox.app, `/pay/${orderId}/simulate`, { status: 'REFUND' })).status).toBe(400)
  })
})

describe('the sandbox', () => {
  it.each([
    [[{ status: 'FAIL', reason: 'wrong_pin' }], 'attemptFailed'],
    [[{ status: 'OTHER_AMOUNT' }], 'amountMismatch'],
    [[{ status: 'SUCCESS' }], 'paid'],
    [[{ status: 'EXPIRE' }], 'timeUp'],
    [[{ status: 'END' }], 'expired'],
    [[{ status: 'FAIL' }, { status: 'END' }], 'failed'],
    [[{ status: 'CANCEL' }], 'cancelled'],
    [[{ status: 'LATE' }], 'paid'],
  ])('produces by %j the state %s', async (steps, state) => {
    const sandbox = await startService({ sandbox: true, asServiceRole: true })
    const { page, orderId } = await newOrder({}, 'Chai Point', sandbox)
    for (const step of steps) {
      const { status, headers } = await post(sandbox.app, `/pay/${orderId}/simulate?lang=hi`, step)
      expect([status, headers.location]).toEqual([303, `../${orderId}?lang=hi`])
    }
    expect(shown((await get(page, sandbox)).text).state).toBe(state)
  })
})

describe('a refund in the sandbox', () => {
  let sandbox: TestService
  beforeAll(async () => {
    sandbox = await startService({
      sandbox: true,
      asServiceRole: true,
      limits: { webhooks: { lookIntervalMs: 3_600_000 } },
    })
  })

  /** Creates a paid order of ₹200 with a refund of ₹50 requested by the merchant. */
  async function newRefund(name = 'Chai Point') {
    const { mid, orderId, page } = await newOrder({}, name, sandbox)
    await notify(sandbox, notification(orderId))
    const [refund_id, key] = [unique('R'), await newKey(sandbox.db, { mid }, RIGHTS)]
    const send = async (fields: Record<string, string>) =>
      (await post(sandbox.app, REFUND, { mid, order_id: orderId, note: 'Cold tea', ...fields }, key)).status
    expect(await send({ refund_id, amount: '50' })).toBe(200)
    const stateOf = async () => (await post(sandbox.app, REFUND_STATUS, { mid, refund_id }, key)).body.data
    return { mid, orderId, page, refund_id, send, stateOf }
  }
  const press = async (orderId: string, refund_id: string, status: string, { app } = sandbox) => {
    const { status: responded, headers } = await post(app, `/pay/${orderId}/simulate`, { refund_id, status })
    return [responded, headers.location]
  }
  const offered = async (page: string) =>
    [...(await get(page, sandbox)).text.matchAll(/name="refund_id" value="([^"]*)"/g)].map(([, id]) => id)

  it('is shown on the pay page of its order with its possible outcomes while it is open', async () => {
    const { orderId, page, refund_id, send } = await newRefund()
    sandbox.clock.advance(1)
    expect(await send({ refund_id: `${refund_id}-2`, amount: '150' })).toBe(200)
    expect(await offered(page)).toEqual([refund_id, `${refund_id}-2`])
    const { text } = await get(page, sandbox)
    expect(text).toContain(`method="post" action="${orderId}/simulate">`)
    expect(text).toContain(`<form class="sandbox" aria-label="Refund ${refund_id} of ₹50"`)
    expect(await press(orderId, refund_id, 'SUCCESS')).toEqual([303, `../${orderId}`])
    expect(await offered(page)).toEqual([`${refund_id}-2`])
  })

  it.each([
    ['SUCCESS', { reference: expect.stringMatching(/^\d{12}$/) }, null, 'refund.succeeded'],
    ['FAIL', { reference: '' }, 'simulated in the sandbox', 'refund.failed'],
  ])('gets the status %s, and a webhook reports it', async (status, responded, reason, type) => {
    const { mid, orderId, refund_id, stateOf } = await newRefund()
    const { endpointId } = await newWebhook(sandbox.db, { mid, url: 'https://shop.example/hook' }, sandbox.clock.now())
    await press(orderId, refund_id, status)
    expect(await stateOf()).toMatchObject({ txnStatus: status, ...responded })
    const { rows } = await sandbox.db.query('select reason from refunds where mid = $1', [mid])
    expect(rows).toEqual([{ reason }])
    const now = new Date(sandbox.clock.now().getTime() + 60_000)
    const reported = await createDeliveries(sandbox.db).claim({ mid, endpointId }, 10, now, now)
    expect(reported.map((delivery) => JSON.parse(toMessage(delivery).body))).toMatchObject([
      { type, data: { orderId, refund_id, txnStatus: status } },
    ])
  })

  it('is completed by the identifier of the service too, and the identifier of the merchant takes precedence', async () => {
    const { orderId, refund_id, send, stateOf } = await newRefund()
    const { refundId } = await stateOf()
    // The merchant uses the service's identifier of the first refund as its own identifier of the second.
    expect(await send({ refund_id: refundId, amount: '20' })).toBe(200)
    expect((await press(orderId, refundId, 'SUCCESS'))[0]).toBe(303)
    expect([(await stateOf()).txnStatus, await offered(`/pay/${orderId}`)]).toEqual(['PENDING', [refund_id]])
    const other = await newRefund()
    expect((await press(other.orderId, (await other.stateOf()).refundId, 'FAIL'))[0]).toBe(303)
    expect((await other.stateOf()).txnStatus).toBe('FAIL')
  })

  it('stays successful after a later failure, and an exception is stored for the operator', async () => {
    const { mid, orderId, refund_id, stateOf } = await newRefund()
    for (const status of ['FAIL', 'SUCCESS', 'SUCCESS', 'FAIL']) {
      expect((await press(orderId, refund_id, status))[0]).toBe(303)
    }
    expect((await stateOf()).txnStatus).toBe('SUCCESS')
    const { rows } = await sandbox.db.query('select kind from payment_exceptions where mid = $1', [mid])
    expect(rows).toEqual([{ kind: 'refund failed after success' }])
  })

  it('can be completed only from the pay page of its own order', async () => {
    const [its, another] = [await newRefund(), await newRefund()]
    const key = await newKey(sandbox.db, { mid: its.mid })
    const sameMerchants = (await post(sandbox.app, CREATE, intentFields(its.mid), key)).body.data.orderId
    for (const orderId of [another.orderId, sameMerchants]) {
      expect((await press(orderId, its.refund_id, 'SUCCESS'))[0]).toBe(404)
    }
    expect((await press(its.orderId, 'unknown', 'SUCCESS'))[0]).toBe(404)
    expect((await press('0'.repeat(32), its.refund_id, 'SUCCESS'))[0]).toBe(404)
    for (const status of ['PENDING', 'REJECT', 'EXPIRE']) {
      expect((await press(its.orderId, its.refund_id, status))[0]).toBe(400)
    }
    expect((await press(its.orderId, "R' or '1'='1", 'SUCCESS'))[0]).toBe(400)
    expect((await its.stateOf()).txnStatus).toBe('PENDING')
  })

  it('cannot be completed from the pay page if an acquirer sends it', async () => {
    const { mid, orderId, page, refund_id, stateOf } = await newRefund()
    await sandbox.db.query("update refunds set acquirer = 'setu' where mid = $1", [mid])
    expect(await offered(page)).toEqual([])
    expect(await press(orderId, refund_id, 'SUCCESS')).toEqual([404, undefined])
    expect((await stateOf()).txnStatus).toBe('PENDING')
  })

  it('cannot be completed from the pay page outside a sandbox', async () => {
    const { mid, orderId, page } = await newOrder()
    await notify(service, notification(orderId))
    const key = await newKey(service.db, { mid }, RIGHTS)
    const fields = { mid, order_id: orderId, refund_id: 'R1', note: 'Cold tea' }
    expect((await post(service.app, REFUND, fields, key)).status).toBe(200)
    expect((await get(page)).text).not.toMatch(/<form|refund_id/)
    expect((await press(orderId, 'R1', 'SUCCESS', service))[0]).toBe(404)
    expect((await post(service.app, REFUND_STATUS, { mid, refund_id: 'R1' }, key)).body.data.txnStatus).toBe('PENDING')
  })
})
