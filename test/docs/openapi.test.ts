import { beforeAll, describe, expect, it } from 'vitest'
import { createPartners } from '../../src/gateway/tenants/partners.ts'
import { OPERATIONS } from '../../src/operations.ts'
import { blocks, filledIn, guideText } from '../guides/guides.ts'
import { notify } from '../support/acquirer.ts'
import { DOCUMENT, POSTS } from '../support/openapi.ts'
import {
  answerOf,
  type Key,
  newKey,
  newMerchant,
  PUBLIC_URL,
  post,
  postJson,
  refusal,
  startService,
  type TestService,
} from '../support/service.ts'

const FORM = 'application/x-www-form-urlencoded'
const JSON_TYPE = 'application/json'

type Described = { requestBody?: Content; responses?: Record<string, Content> }
type Content = { content?: Record<string, { schema?: { $ref?: string } }> }

let service: TestService
let merchantKey: Key
let partnerKey: Key
beforeAll(async () => {
  service = await startService()
  merchantKey = (await newMerchant(service.db, { mid: 'DEMO_MERCHANT' })).key
  const partners = createPartners(service.db)
  await partners.add({ pid: 'DEMO_PARTNER', name: 'Demo Partner' }, service.clock.now())
  await partners.link('DEMO_PARTNER', 'DEMO_MERCHANT')
  partnerKey = await newKey(service.db, { pid: 'DEMO_PARTNER' })
})

async function request(method: 'GET' | 'HEAD' | 'POST', url: string, headers: Record<string, string> = {}) {
  return answerOf(await service.app.inject({ method, url, headers }))
}

describe('OpenAPI document', () => {
  it('the OpenAPI document is served without credentials, names PUBLIC_URL, and is compressed and cached', async () => {
    const { status, body, headers } = await request('GET', '/openapi.json')
    expect([status, body.openapi, body.servers]).toEqual([200, '3.1.0', [{ url: PUBLIC_URL }]])
    expect(Object.keys(body.paths)).toEqual(Object.keys(DOCUMENT.paths))
    expect(headers).toMatchObject({
      'content-type': 'application/json; charset=utf-8',
      'cache-control': 'public, max-age=60',
    })
    const packed = await service.app.inject({
      method: 'HEAD',
      url: '/openapi.json',
      headers: { 'accept-encoding': 'br, gzip' },
    })
    expect([packed.statusCode, packed.payload, packed.headers['content-encoding']]).toEqual([200, '', 'gzip'])
    expect(Number(packed.headers['content-length'])).toBeLessThan(Number(headers['content-length']) / 4)
    for (const coding of ['identity', 'gzip']) {
      const accept = { 'accept-encoding': coding, 'if-none-match': String(headers.etag) }
      expect((await request('GET', '/openapi.json', accept)).status).toBe(304)
    }
  })

  it('the OpenAPI document describes notifications only if they are accepted', async () => {
    const { app } = await startService({ acquirers: { direct: [] } })
    const { paths, tags, components } = answerOf(await app.inject('/openapi.json')).body
    expect(Object.keys(paths)).not.toContain('/acquirer/paymentNotification')
    expect(JSON.stringify([tags, components])).not.toMatch(/acquirer/i)
  })

  it('the OpenAPI document has a named schema for every JSON body and response, so that generated types have names', () => {
    const operations = Object.values(DOCUMENT.paths as Record<string, Record<string, Described>>)
      .flatMap((methods) => Object.values(methods))
      .filter((operation) => operation.responses !== undefined)
    const schemas = operations.flatMap(({ requestBody, responses = {} }) =>
      [requestBody, responses['200']].flatMap((part) => part?.content?.[JSON_TYPE]?.schema ?? []),
    )
    expect(schemas.length).toBeGreaterThan(10)
    expect(schemas.filter(({ $ref }) => !$ref?.startsWith('#/components/schemas/'))).toEqual([])
    expect(DOCUMENT.components.schemas).toMatchObject({
      SettlementList: { properties: { data: { items: { $ref: '#/components/schemas/Settlement' } } } },
      PaymentIntentCreated: { properties: { data: { $ref: '#/components/schemas/PaymentIntent' } } },
    })
  })

  it('the OpenAPI document has an error of every status that an operation may return', () => {
    const anybody = ['200', '4XX']
    const atTheDoor = [...anybody, '400', '401', '403', '413', '415', '429', '500', '503']
    const keyed = OPERATIONS.v1.map(({ path, refusals }) => {
      const own = refusals.map(({ statusCode }) => String(statusCode))
      const statuses = Object.keys(POSTS[path]?.responses ?? {})
      expect(statuses.sort(), path).toEqual([...new Set([...atTheDoor, ...own])].sort())
      return path
    })
    expect(keyed).toContain('/v1/payments/createPaymentIntent')
  })
})

describe('examples of the OpenAPI document', () => {
  const example = (path: string, type: string) => POSTS[path]?.requestBody.content[type]?.example ?? {}

  it.each([
    ...['/v1/payments/createPaymentIntent', '/v1/payments/createOrderRequest', '/v1/payments/fetchTransactionList'],
    ...['/v1/partner/fetchSettlementList', '/v1/partner/fetchTransactionList'],
  ])('the examples of the OpenAPI document work unchanged, as form and as JSON: %s', async (path) => {
    const key = path.includes('partner') ? partnerKey : merchantKey
    for (const send of [
      () => post(service.app, path, example(path, FORM), key),
      () => postJson(service.app, path, example(path, JSON_TYPE), key),
    ]) {
      expect((await send()).status).toBe(200)
    }
  })

  it('the examples of checkPaymentStatus and paymentNotification work unchanged once the order exists', async () => {
    const path = '/v1/payments/checkPaymentStatus'
    const { order_id = '' } = example(path, FORM)
    const order = { ...example('/v1/payments/createPaymentIntent', FORM), order_id }
    const { orderId } = (await post(service.app, '/v1/payments/createPaymentIntent', order, merchantKey)).body.data
    expect((await post(service.app, path, example(path, FORM), merchantKey)).body).toMatchObject({
      txnStatus: 'PENDING',
    })
    const notification = { ...example('/acquirer/paymentNotification', JSON_TYPE), orderId }
    expect((await notify(service, JSON.stringify(notification))).status).toBe(200)
    const paid = await postJson(service.app, path, example(path, JSON_TYPE), merchantKey)
    expect(paid.body).toEqual(POSTS[path]?.responses['200']?.content?.[JSON_TYPE]?.example)
  })

  it('the examples of the OpenAPI document contain the error texts that the service returns', async () => {
    const path = '/v1/payments/createPaymentIntent'
    const shown = (status: string) => POSTS[path]?.responses[status]?.content?.[JSON_TYPE]?.example
    const wrong = { ...example(path, FORM), amount: '0', customer_mobile: '12345' }
    expect((await post(service.app, path, wrong, merchantKey)).body).toEqual(shown('400'))
    expect((await post(service.app, path, wrong)).body).toEqual(shown('401'))
    expect((await post(service.app, path, example(path, FORM), partnerKey)).body).toEqual(shown('403'))
    expect(shown('409')).toEqual(refusal(409, 'Order ID already exists'))
  })
})

describe('pages below /docs', () => {
  const HTML = 'text/html; charset=utf-8'
  const MARKDOWN = 'text/markdown; charset=utf-8'

  it.each([
    ['/docs', HTML, 60],
    ['/docs/merchant', HTML, 60],
    ['/docs/shops', HTML, 60],
    ['/docs/partner', HTML, 60],
    ['/docs/acquirer', HTML, 60],
    ['/docs/reference', HTML, 60],
    ['/docs/merchant.md', MARKDOWN, 60],
    ['/llms.txt', 'text/plain; charset=utf-8', 60],
    ['/docs/openapi-explorer.min.js', 'text/javascript; charset=utf-8', 3600],
    ['/docs/guide.js', 'text/javascript; charset=utf-8', 3600],
    ['/docs/guide.css', 'text/css; charset=utf-8', 3600],
  ])('the page %s is served without credentials, compressed, cached, and with its type', async (url, type, maxAge) => {
    const plain = await request('GET', url)
    expect([plain.status, plain.headers['content-encoding']]).toEqual([200, undefined])
    const packed = await service.app.inject({ url, headers: { 'accept-encoding': 'gzip, deflate, br' } })
    expect(packed.headers).toMatchObject({
      'content-type': type,
      'content-encoding': 'gzip',
      'cache-control': `public, max-age=${maxAge}`,
      vary: 'accept-encoding',
      'x-content-type-options': 'nosniff',
    })
    const again = { 'accept-encoding': 'gzip', 'if-none-match': String(packed.headers.etag) }
    expect((await request('GET', url, again)).status).toBe(304)
    expect((await request('GET', url, { 'accept-encoding': 'gzip;q=0' })).headers['content-encoding']).toBeUndefined()
    const head = await request('HEAD', url)
    expect([head.status, head.text, head.headers['content-length']]).toEqual([200, '', plain.headers['content-length']])
  })

  it.each(['/docs', '/docs/merchant', '/docs/shops', '/docs/partner', '/docs/acquirer', '/docs/reference'])(
    'the page %s forbids inline scripts, content from elsewhere, sending elsewhere, and framing',
    async (url) => {
      const { headers, text } = await request('GET', url)
      // Styles apart, which the library of the reference sets on its elements.
      const styles = url === '/docs/reference' ? "'self' 'unsafe-inline'" : "'self'"
      expect(headers['content-security-policy']).toBe(
        `default-src 'none'; script-src 'self'; style-src ${styles}; img-src 'self' data:; connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'`,
      )
      expect(text).not.toMatch(/(?:src|href)="(?:https?:)?\/\/|<style|<script>|\son\w+="|\sstyle=/)
    },
  )

  it.each(['/docs', '/docs/merchant', '/openapi.json', '/docs/guide.js'])(
    'the pages below /docs reject other methods and paths like every URL does: %s',
    async (url) => {
      const { status, body, headers } = await request('POST', url)
      expect([status, body, headers.allow]).toEqual([
        405,
        refusal(405, 'This URL does not allow this method. Use GET or HEAD.'),
        'GET, HEAD',
      ])
      expect((await request('GET', `${url}/x`)).body).toEqual(refusal(404, 'This URL does not exist. Check its path.'))
    },
  )

  it.each([
    ['https://pay.example.in', '/docs'],
    ['https://example.in/upi', '/upi/docs'],
  ])('a GET or HEAD of / redirects to the docs below the PUBLIC_URL %s, whatever the Host', async (publicUrl, docs) => {
    const { app } = await startService({ publicUrl })
    for (const method of ['GET', 'HEAD'] as const) {
      const { statusCode, headers } = await app.inject({ method, url: '/' })
      expect([statusCode, headers.location]).toEqual([302, docs])
    }
  })

  it('the pages below /docs mention the acquirer only if notifications are accepted', async () => {
    const { app } = await startService({ acquirers: { direct: [] } })
    expect(answerOf(await app.inject('/docs/acquirer')).status).toBe(404)
    for (const url of ['/docs', '/docs/merchant']) expect((await app.inject(url)).payload).not.toContain('acquirer')
    expect(answerOf(await app.inject('/docs/acquirer.md')).status).toBe(404)
    expect((await app.inject('/llms.txt')).payload).not.toContain('acquirer')
    expect((await request('GET', '/docs')).text).toContain('href="docs/acquirer"')
  })

  it('/llms.txt lists the pages below /docs for programs: a title, a summary, and working links', async () => {
    const { text } = await request('GET', '/llms.txt')
    expect(text).toMatch(/^# UPI payments\n\n> .+\n\n## Documents\n\n- \[/)
    const links = [...text.matchAll(/^- \[[^\]]+\]\((\S+)\): \S.*$/gm)].map(([, url = '']) => url)
    expect(links).toHaveLength(text.match(/^- /gm)?.length ?? 0)
    expect(links).toEqual(
      [...['merchant', 'shops', 'partner', 'acquirer'].map((name) => `docs/${name}.md`), 'openapi.json'].map(
        (path) => `${PUBLIC_URL}/${path}`,
      ),
    )
    for (const link of links) expect((await request('GET', link.replace(PUBLIC_URL, ''))).status, link).toBe(200)
  })
})

describe('guides of the service', () => {
  const codeOf = (html: string) =>
    [...html.matchAll(/<pre tabindex="0"><code[^>]*>([\s\S]*?)<\/code>/g)].map(([, code = '']) =>
      unescaped(code).trimEnd(),
    )
  const unescaped = (html: string) =>
    html.replace(/&(?:#(\d+)|(\w+));/g, (_, code, name) =>
      code ? String.fromCharCode(code) : ({ lt: '<', gt: '>', quot: '"', amp: '&' }[name as string] ?? '?'),
    )

  it.each(['merchant', 'partner', 'acquirer'] as const)(
    'the guide shows the very samples that the tests run, with this service’s URL: %s',
    async (guide) => {
      const { text } = await request('GET', `/docs/${guide}`)
      const written = blocks.filter((block) => block.guide === guide)
      expect(written.length).toBeGreaterThan(4)
      expect(codeOf(text)).toEqual(
        written.map((block) => filledIn(block.text, PUBLIC_URL, 'https://shop.example/thanks').trimEnd()),
      )
      expect(text).toContain(PUBLIC_URL)
      expect(text).not.toMatch(/(?:\{|%7B)(?:PUBLIC|SHOP)_URL/)
    },
  )

  it.each(['merchant', 'shops', 'partner', 'acquirer'] as const)(
    'the guide is available as Markdown at its .md URL, with this service’s URL: %s',
    async (guide) => {
      const { text } = await request('GET', `/docs/${guide}.md`)
      expect(text).toBe(filledIn(guideText(guide), PUBLIC_URL, 'https://shop.example/thanks'))
    },
  )

  it('the sandbox’s guide sends a customer to a page with the merchant’s next call, and escapes input in that page', async () => {
    const { app } = await startService({ sandbox: true })
    expect((await app.inject('/docs/merchant')).payload).toContain(`${PUBLIC_URL}/docs/thanks?order_id=$ORDER`)
    const { payload, headers } = await app.inject('/docs/thanks?order_id=1001')
    expect(payload).toContain('checkPaymentStatus')
    expect(payload).toContain('order_id=1001')
    expect(headers['content-security-policy']).toContain("default-src 'none'")
    for (const sent of ['%3Cscript%3E', '$(id)', '1;id', 'a&order_id=b']) {
      const strange = await app.inject(`/docs/thanks?order_id=${sent}`)
      expect([strange.statusCode, strange.payload.includes('order_id=YOUR_ORDER_ID')]).toEqual([200, true])
    }
    expect((await request('GET', '/docs/thanks')).status).toBe(404)
  })
})
