import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { createCheckoutFinder } from '../../src/gateway/checkout/find-checkout.ts'
import { createIntents } from '../../src/gateway/payments/intents.ts'
import { checkLogo } from '../../src/gateway/tenants/logo.ts'
import { contrast, darkened, textOn } from '../../src/platform/contrast.ts'
import { opsOn, runOps } from '../support/ops.ts'
import { END, header, logoOf, pixels, pngOf } from '../support/png.ts'
import { CREATE, errorResponse, intentFields, newKey, post, responseOf, startService } from '../support/service.ts'

const service = await startService({ asServiceRole: true })
const { ops, json } = opsOn(() => service.databaseUrl, ['merchants'])

const folder = mkdtempSync(join(tmpdir(), 'logos-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** Writes a file and returns its path. */
function file(name: string, content: Buffer | string): string {
  writeFileSync(join(folder, name), content)
  return join(folder, name)
}

const FIRST = checkLogo(logoOf())
const SECOND = checkLogo(pngOf(header(20, 40), pixels(40, 81), END))
const BRAND = ['--colour', '#0B6B4F', '--website', 'https://chai.example', '--support', 'care@chai.example']
const STORED = { colour: '#0b6b4f', website: 'https://chai.example/', support: 'care@chai.example' }

const addMerchant = (...args: string[]) =>
  json('add', '--name', 'Chai Point', '--vpa', 'chai@examplebank', '--mcc', '5814', ...args)

async function newOrder(mid: string): Promise<string> {
  const key = await newKey(service.db, { mid })
  return (await post(service.app, CREATE, intentFields(mid), key)).body.data.orderId
}

async function getLogo(orderId: string, headers: Record<string, string> = {}) {
  const response = await service.app.inject({ method: 'GET', url: `/pay/${orderId}/logo.png`, headers })
  return { ...responseOf(response), bytes: response.rawPayload }
}

/** All that the database stores of a brand. */
async function storedOf(mid: string) {
  const { rows } = await service.db.query(
    `select brand_colour, brand_website, brand_support, brand_logo, sha256, png
       from merchants m left join merchant_logos l on l.mid = m.mid
      where m.mid = $1`,
    [mid],
  )
  return rows[0]
}

describe('contrast', () => {
  it.each([
    ['#000000', '#ffffff', '21.00'],
    ['#ffffff', '#ffffff', '1.00'],
    ['#777777', '#ffffff', '4.48'],
    ['#ffe08a', '#ffffff', '1.29'],
    ['#0b6b4f', '#ffffff', '6.50'],
  ])('of %s and %s is %s, in either order', (one, other, ratio) => {
    expect(contrast(one, other).toFixed(2)).toBe(ratio)
    expect(contrast(other, one).toFixed(2)).toBe(ratio)
  })

  it('text on any colour is black or white, whichever contrasts more, and has at least 4.5 to 1', () => {
    expect([textOn('#0b6b4f'), textOn('#ffe08a'), textOn('#ff6600')]).toEqual(['#ffffff', '#000000', '#000000'])
    for (let red = 0; red < 256; red += 15)
      for (let green = 0; green < 256; green += 15)
        for (let blue = 0; blue < 256; blue += 15) {
          const colour = `#${[red, green, blue].map((channel) => channel.toString(16).padStart(2, '0')).join('')}`
          const text = textOn(colour)
          const other = text === '#000000' ? '#ffffff' : '#000000'
          expect(contrast(colour, text)).toBeGreaterThanOrEqual(Math.max(4.5, contrast(colour, other)))
        }
  })

  it.each(['#ffffff', '#ffe08a', '#ffff00', '#00ff00', '#fefefe', '#ff9999'])(
    'darkens %s just enough for a contrast of 3 to 1',
    (colour) => {
      const nearest = darkened(colour, 3)
      expect(contrast(nearest, '#ffffff')).toBeGreaterThanOrEqual(3)
      expect(contrast(nearest, '#ffffff')).toBeLessThan(3.1)
    },
  )
})

describe('ops merchants', () => {
  it('add stores a brand and shows it, update changes only the given parts, and `none` removes them', async () => {
    const logo = file('logo.png', logoOf(['tEXt', Buffer.from('Author\0Asha')]))
    const added = await addMerchant(...BRAND, '--logo', logo)
    expect(added).toMatchObject({ ...STORED, logo: FIRST.sha256 })
    const { mid } = added
    expect(await json('list')).toContainEqual(added)
    expect(await storedOf(mid)).toMatchObject({ brand_logo: FIRST.sha256, sha256: FIRST.sha256, png: FIRST.png })

    const second = file('second.png', SECOND.png)
    const changed = { ...added, logo: SECOND.sha256, support: '+91 80 1234 5678' }
    const update = (...args: string[]) => json('update', '--mid', mid, ...args)
    expect(await update('--logo', second, '--support', '+91 80 1234 5678')).toEqual(changed)
    expect(await storedOf(mid)).toMatchObject({ brand_logo: SECOND.sha256, sha256: SECOND.sha256, png: SECOND.png })
    expect(await update('--name', 'Chai')).toEqual({ ...changed, name: 'Chai' })
    expect((await ops('list')).stdout).toContain(SECOND.sha256.slice(0, 8))

    const none = ['--logo', 'none', '--colour', 'none', '--website', 'none', '--support', 'none']
    expect(await update(...none)).toMatchObject({ logo: null, colour: null, website: null, support: null })
    expect(await storedOf(mid)).toEqual({
      ...{ brand_colour: null, brand_website: null, brand_support: null, brand_logo: null },
      ...{ sha256: null, png: null },
    })
  })

  it.each([
    ['an SVG', 'logo.svg', '<svg xmlns="http://www.w3.org/2000/svg"/>', 'is an SVG: export the logo as PNG'],
    ['a GIF renamed to .png', 'gif.png', 'GIF89a', 'is a GIF: export the logo as PNG'],
    [
      'a PNG of 40 KiB',
      'large.png',
      logoOf(['tEXt', Buffer.alloc(40 * 1024)]),
      'is larger than 32 KiB: compress it or reduce its width and height',
    ],
    [
      'a decompression bomb',
      'bomb.png',
      pngOf(header(10_000, 10_000, [1, 0, 0, 0, 0]), pixels(10_000, 1251), END),
      'has 10000 × 10000 pixels: reduce it to at most 512 × 512',
    ],
  ])('add and update reject %s and store nothing', async (_, name, content, problem) => {
    const path = file(name, content)
    const rejected = { code: 1, stdout: '', stderr: `ops: --logo ${path} ${problem}\n` }
    const { mid } = await addMerchant()
    const before = await storedOf(mid)
    expect(await ops('update', '--mid', mid, ...BRAND, '--logo', path)).toEqual(rejected)
    expect(await storedOf(mid)).toEqual(before)
    const count = async () => (await json('list')).length
    const merchants = await count()
    expect(await ops('add', '--name', 'A', '--vpa', 'a@examplebank', '--logo', path)).toEqual(rejected)
    expect(await count()).toBe(merchants)
  })

  it('reads a logo from standard input', async () => {
    const { mid } = await addMerchant()
    const args = ['merchants', 'update', '--mid', mid, '--logo', '-']
    const { code, stderr } = await runOps(service.databaseUrl, args, 'GIF89a')
    expect({ code, stderr }).toEqual({ code: 1, stderr: 'ops: --logo - is a GIF: export the logo as PNG\n' })
  })

  it('rejects a logo that does not exist', async () => {
    const { mid } = await addMerchant()
    const path = join(folder, 'absent.png')
    expect(await ops('update', '--mid', mid, '--logo', path)).toMatchObject({
      code: 1,
      stderr: `ops: file ${path} does not exist\n`,
    })
  })

  it('rejects a colour with less than 3 to 1 against white, and accepts the nearest one, which the message names', async () => {
    const { mid } = await addMerchant(...BRAND)
    const { code, stderr } = await ops('update', '--mid', mid, '--colour', '#ffe08a')
    expect(code).toBe(2)
    const [, nearest = ''] =
      /ops: --colour has a contrast of 1\.28:1 to white, and needs 3:1: use '(#[0-9a-f]{6})', the nearest colour that has it\n/.exec(
        stderr,
      ) ?? []
    expect(nearest).not.toBe('')
    expect((await storedOf(mid)).brand_colour).toBe('#0b6b4f')
    expect(await json('update', '--mid', mid, '--colour', nearest)).toMatchObject({ colour: nearest })
  })

  it.each([
    ['--colour', 'green', "must be a colour such as '#0b6b4f', in quotes, or none"],
    ['--colour', 'NONE', "must be a colour such as '#0b6b4f', in quotes, or none"],
    ['--colour', '#0b6', "must be a colour such as '#0b6b4f', in quotes, or none"],
    ...[
      'http://chai.example',
      'chai.example',
      'javascript:alert(1)',
      'https://a@chai.example',
      'https://:b@chai.example',
      `https://${'a'.repeat(60)}.example/${'b'.repeat(200)}`,
    ].map((url) => [
      '--website',
      url,
      'must be an https URL of at most 255 characters, such as https://shop.example, or none',
    ]),
    ...['care', 'care@', '12', '1'.repeat(16), '+91 80 1234 5678 ext 1', 'care@chai.example\u202e'].map((text) => [
      '--support',
      text,
      'must be an e-mail address such as care@shop.example, a telephone number such as +91 80 1234 5678, or none',
    ]),
  ])('rejects %s %j with usage and exit code 2', async (flag, value, rule) => {
    const { code, stderr } = await ops('update', '--mid', 'M1', flag as string, value as string)
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(`ops: ${flag} ${rule}`) })
  })

  it.each(['+1 2 3 4 5 6 7 8 9 0 1 2 3 4 5', '112', `o"b<c@chai.example`])('stores the contact %s', async (support) => {
    expect(await json('add', '--name', 'A', '--vpa', 'a@examplebank', '--support', support)).toMatchObject({ support })
  })

  it('the audit contains the arguments and the hash of the logo, but not its bytes', async () => {
    const logo = file('audited.png', FIRST.png)
    const { mid } = await addMerchant()
    await json('update', '--mid', mid, '--logo', logo, '--colour', '#0b6b4f')
    const last = (await opsOn(() => service.databaseUrl).json('audit', '--mid', mid)).at(-1)
    expect(last).toMatchObject({
      command: 'merchants update',
      arguments: { mid, logo, colour: '#0b6b4f' },
      detail: { logo: FIRST.sha256 },
      outcome: 'done',
    })
    expect(JSON.stringify(last)).not.toContain('PNG')
  })
})

describe('the logo of a pay page', () => {
  it('is returned with an ETag and cached for a day, and a current copy gets 304', async () => {
    const { mid } = await addMerchant('--logo', file('served.png', FIRST.png))
    const orderId = await newOrder(mid)
    const etag = `"${FIRST.sha256}"`
    const { status, headers, bytes } = await getLogo(orderId)
    expect([status, bytes]).toEqual([200, FIRST.png])
    const cached = { 'cache-control': 'public, max-age=86400', etag, 'x-content-type-options': 'nosniff' }
    expect(headers).toMatchObject({ ...cached, 'content-type': 'image/png' })
    const repeated = await getLogo(orderId, { 'if-none-match': etag })
    expect([repeated.status, repeated.bytes.length]).toEqual([304, 0])
    expect(repeated.headers).toMatchObject(cached)
    expect((await service.app.inject({ method: 'HEAD', url: `/pay/${orderId}/logo.png` })).statusCode).toBe(200)

    await json('update', '--mid', mid, '--logo', file('new.png', SECOND.png))
    const changed = await getLogo(orderId, { 'if-none-match': etag })
    expect([changed.status, changed.bytes]).toEqual([200, SECOND.png])
  })

  it('is 404 without a logo and for an unknown order', async () => {
    const { mid } = await addMerchant(...BRAND)
    const orderId = await newOrder(mid)
    expect(await getLogo(orderId)).toMatchObject({
      status: 404,
      body: errorResponse(404, 'There is no logo at this address'),
    })
    expect(await getLogo('0'.repeat(32))).toMatchObject({
      status: 404,
      body: errorResponse(404, 'There is no payment at this address'),
    })
  })

  it('is 404 if the stored logo was replaced after the order’s look-up', async () => {
    const { mid } = await addMerchant('--logo', file('replaced.png', pngOf(header(7, 40), pixels(40, 29), END)))
    const orderId = await newOrder(mid)
    await service.db.query(`update merchant_logos set sha256 = repeat('0', 64) where mid = $1`, [mid])
    expect((await getLogo(orderId)).body).toEqual(errorResponse(404, 'There is no logo at this address'))
  })

  it('comes with the brand in the order’s look-up, whose parts are null until they are set', async () => {
    const { mid } = await addMerchant()
    const orderId = await newOrder(mid)
    const findCheckout = createCheckoutFinder(createIntents(service.pools, () => undefined))
    const brandOf = async () => (await findCheckout(orderId)).brand
    expect(await brandOf()).toEqual({ colour: null, website: null, support: null, logo: null })
    await json('update', '--mid', mid, ...BRAND, '--logo', file('page.png', FIRST.png))
    expect(await brandOf()).toEqual({ ...STORED, logo: FIRST.sha256 })
  })
})
