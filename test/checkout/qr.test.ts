import { createRequire } from 'node:module'
import { setImmediate as turnOfTheLoop } from 'node:timers/promises'
import { inflateSync } from 'node:zlib'
import { PNG } from 'pngjs'
import { describe, expect, it } from 'vitest'
import { createDrawQr } from '../../src/gateway/checkout/qr.ts'
import { createMerchants } from '../../src/gateway/tenants/merchants.ts'
import { LIMITS } from '../../src/limits.ts'
import {
  CREATE,
  errorResponse,
  intentFields,
  newMerchant,
  PUBLIC_URL,
  post,
  responseOf,
  startService,
} from '../support/service.ts'

// The types of jsqr describe its CommonJS module as an ES module.
const jsQR = createRequire(import.meta.url)('jsqr') as typeof import('jsqr').default

const service = await startService()

async function get(url: string, headers: Record<string, string> = {}) {
  const response = await service.app.inject({ method: 'GET', url, headers })
  return { ...responseOf(response), bytes: response.rawPayload }
}

async function newIntent(changes: Record<string, string> = {}, merchant: Parameters<typeof newMerchant>[1] = {}) {
  const { mid, key } = await newMerchant(service.db, merchant)
  const { data } = (await post(service.app, CREATE, intentFields(mid, changes), key)).body
  return { mid, ...data } as Record<'mid' | 'orderId' | 'intent' | 'dynamicQR', string>
}

/** Decodes a PNG with libraries other than those that drew it. */
function decodePng(bytes: Buffer): string | undefined {
  const { data, width, height } = PNG.sync.read(bytes)
  return jsQR(new Uint8ClampedArray(data), width, height)?.data
}

/** Draws the runs of the SVG's path on a bitmap and decodes it. */
function decodeSvg(svg: string): string | undefined {
  const size = Number(/viewBox="0 0 (\d+) \1"/.exec(svg)?.[1])
  const scale = 4
  const pixels = new Uint8ClampedArray((size * scale) ** 2 * 4).fill(255)
  const runs = svg.slice(svg.indexOf('<path d=')).matchAll(/M(\d+) (\d+)h(\d+)v1h-\d+z/g)
  for (const [x, y, width] of [...runs].map((run) => run.slice(1).map(Number) as [number, number, number])) {
    for (let row = y * scale; row < (y + 1) * scale; row++) {
      const start = row * size * scale + x * scale
      for (let at = start; at < start + width * scale; at++) pixels.fill(0, at * 4, at * 4 + 3)
    }
  }
  return jsQR(pixels, size * scale, size * scale)?.data
}

describe('dynamicQR', () => {
  it('is a link under PUBLIC_URL whose PNG and SVG an independent decoder reads as the UPI link', async () => {
    service.clock.set('2026-06-01T10:00:00.000Z')
    const intent = await newIntent({ note: 'Chai & 100% "x"' }, { name: 'Café Zoë' })
    const times = '&qrMedium=06&QRts=2026-06-01T15:30:00%2B05:30&QRexpire=2026-06-01T15:45:00%2B05:30'
    const link = intent.intent.replace('mode=04', 'mode=22').replace(/&QRexpire=.*/, times)
    const path = intent.dynamicQR.slice(PUBLIC_URL.length)
    const png = await get(path)
    expect([png.status, png.headers['content-type']]).toEqual([200, 'image/png'])
    expect(decodePng(png.bytes)).toBe(link)
    const svg = await get(path.replace(/png$/, 'svg'))
    expect([svg.status, svg.headers['content-type']]).toEqual([200, 'image/svg+xml'])
    expect(decodeSvg(svg.text)).toBe(link)
  })

  it('omits a note of more than 20 characters, which the links keep', async () => {
    const short = await newIntent({ note: 'Order 1001, table 12' })
    expect(decodePng((await get(`/pay/${short.orderId}/qr.png`)).bytes)).toContain('&tn=Order%201001,%20table%2012&')
    const long = await newIntent({ note: 'Order 1001, table 123' })
    expect(decodePng((await get(`/pay/${long.orderId}/qr.png`)).bytes)).not.toContain('tn=')
    expect(new URL(long.intent).searchParams.get('tn')).toBe('Order 1001, table 123')
  })

  it('escapes only what a query requires, and the separators, so that no name adds or changes a parameter', async () => {
    const name = `A&pa=x@y#+%41;B?/:,$!'()*~ é`
    const { orderId } = await newIntent({}, { name })
    const link = decodePng((await get(`/pay/${orderId}/qr.png`)).bytes) ?? ''
    expect(link).toContain(`&pn=A%26pa%3Dx@y%23%2B%2541%3BB?/:,$!'()*~%20%C3%A9&`)
    const { searchParams } = new URL(link)
    expect([searchParams.getAll('pa'), searchParams.get('pn')]).toEqual([['chaipoint@examplebank'], name])
  })

  it('omits a non-ASCII note, so that the modules stay large enough to scan', async () => {
    const sizeOf = (svg: string) => Number(/viewBox="0 0 (\d+) /.exec(svg)?.[1]) - 8
    const usual = await newIntent({ note: 'Order 1001' })
    const { text } = await get(`/pay/${usual.orderId}/qr.svg`)
    expect(decodeSvg(text)).toContain('&tn=Order%201001&')
    const hindi = await newIntent({ note: 'चाय का बिल और दो समोसे, गर्म-गर्म, अदरक वाली चाय के साथ, धन्यवाद' })
    const tn = new URL(hindi.intent).searchParams.get('tn') ?? ''
    expect(tn).toMatch(/^चाय का बिल/)
    const svg = (await get(`/pay/${hindi.orderId}/qr.svg`)).text
    expect(decodeSvg(svg)).toContain(`&tr=${hindi.orderId}&am=200.00&`)
    expect(decodeSvg(svg)).not.toContain('tn=')
    expect(decodePng((await get(`/pay/${hindi.orderId}/qr.png`)).bytes)).not.toContain('tn=')
    expect([sizeOf(svg), sizeOf(text)].filter((size) => size > 61)).toEqual([])
    // If only characters that UPI apps reject are non-ASCII, the rest of the note is included.
    const thanks = await newIntent({ note: 'Thanks 🙏' })
    expect(decodeSvg((await get(`/pay/${thanks.orderId}/qr.svg`)).text)).toContain('&tn=Thanks&')
  })

  it('is the image itself for a merchant set to image, and decodes to the QR’s UPI link', async () => {
    const { dynamicQR, orderId } = await newIntent({}, { dynamicQr: 'image' })
    const inline = Buffer.from(dynamicQR.slice('data:image/png;base64,'.length), 'base64')
    expect(decodePng(inline)).toMatch(new RegExp(`^upi://pay\\?ver=01&mode=22&.*tr=${orderId}&`))
    expect((await get(`/pay/${orderId}/qr.png`)).bytes).toEqual(inline)
  })

  it('is a PNG of one bit per pixel with the required chunks only', async () => {
    const { orderId } = await newIntent()
    const { bytes } = await get(`/pay/${orderId}/qr.png`)
    expect(bytes.length).toBeLessThan(3_000)
    const width = bytes.readUInt32BE(16)
    expect([bytes[24], bytes[25]]).toEqual([1, 0])
    const length = bytes.readUInt32BE(33)
    expect(inflateSync(bytes.subarray(41, 41 + length)).length).toBe(width * (1 + Math.ceil(width / 8)))
  })

  it('may be cached for 30 seconds but not beyond the order’s expiry, and returns 304 for its ETag', async () => {
    const { orderId } = await newIntent()
    const first = await get(`/pay/${orderId}/qr.png`)
    expect(first.headers['cache-control']).toBe('public, max-age=30')
    const again = await get(`/pay/${orderId}/qr.png`, { 'if-none-match': String(first.headers.etag) })
    expect([again.status, again.text]).toEqual([304, ''])
    for (const other of [`W/${first.headers.etag}`, `"x", ${first.headers.etag}`, '*']) {
      expect((await get(`/pay/${orderId}/qr.png`, { 'if-none-match': other })).status).toBe(304)
    }
    expect((await get(`/pay/${orderId}/qr.png`, { 'if-none-match': '"other"' })).status).toBe(200)
    service.clock.advance(15 * 60 - 10)
    expect((await get(`/pay/${orderId}/qr.png`)).headers['cache-control']).toBe('public, max-age=10')
  })

  it('retains the payee of the payment intent after the merchant’s address has changed', async () => {
    const { mid, orderId } = await newIntent()
    await createMerchants(service.db).update(mid, { vpa: 'new@examplebank', name: 'New Name' })
    expect(decodePng((await get(`/pay/${orderId}/qr.png`)).bytes)).toContain(
      'pa=chaipoint@examplebank&pn=Chai%20Point&',
    )
  })
})

describe('an expired QR', () => {
  const GONE = errorResponse(410, 'This payment is no longer open. Ask the merchant for a new one.')

  it('returns 410 from the moment of expiry, even to a client that has it cached', async () => {
    const { orderId } = await newIntent()
    service.clock.advance(15 * 60 - 1)
    expect((await get(`/pay/${orderId}/qr.png`)).status).toBe(200)
    service.clock.advance(1)
    for (const file of ['qr.png', 'qr.svg']) {
      const { status, body, headers } = await get(`/pay/${orderId}/${file}`, { 'if-none-match': `"${orderId}"` })
      expect([status, body, headers['cache-control']]).toEqual([410, GONE, 'no-store'])
    }
  })
})

describe('the cache of QR images', () => {
  const link = (order: number) => `upi://pay?tr=${order}`

  it('draws each QR once and at most one per turn of the event loop, so that other requests continue', async () => {
    const drawQr = createDrawQr(LIMITS.pages)
    const done: number[] = []
    const draw = (order: number) => drawQr('svg', link(order)).then(() => done.push(order))
    const all = Promise.all(Array.from({ length: 100 }, (_, i) => draw(i % 50)))
    let most = 0
    for (let turn = 0; turn < 100; turn++) {
      await turnOfTheLoop()
      most = Math.max(most, new Set(done.splice(0)).size)
    }
    await all
    expect(most).toBe(1)
    expect(await drawQr('svg', link(1))).toBe(await drawQr('svg', link(1)))
  })

  it('draws further QRs after one that cannot be drawn', async () => {
    const drawQr = createDrawQr(LIMITS.pages)
    await expect(drawQr('png', 'x'.repeat(3_000))).rejects.toThrow()
    expect(decodePng(await drawQr('png', link(1)))).toBe(link(1))
  })

  it('stores the most recently requested QRs up to its limit of bytes', async () => {
    const first = await createDrawQr(LIMITS.pages)('png', link(1))
    const drawQr = createDrawQr({ qrImagesBytes: 2.5 * first.length })
    const stored = await drawQr('png', link(1))
    await drawQr('png', link(2))
    expect(await drawQr('png', link(1))).toBe(stored)
    await drawQr('png', link(3))
    expect(await drawQr('png', link(1))).toBe(stored)
    const narrow = createDrawQr({ qrImagesBytes: 2 * first.length - 1 })
    const erased = await narrow('png', link(1))
    await narrow('png', link(2))
    expect(await narrow('png', link(1))).not.toBe(erased)
  })
})
