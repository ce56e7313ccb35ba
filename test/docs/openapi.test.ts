import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { beforeAll, describe, expect, it } from 'vitest'
import { chaptersOf, guideOf } from '../../src/docs/chapters.ts'
import { errorRows, withErrorsInHtml, withErrorsInMarkdown, withErrorsInText } from '../../src/docs/error-table.ts'
import { renderChapter } from '../../src/docs/render-chapter.ts'
import { ERROR_CODES } from '../../src/errors.ts'
import { createPartners } from '../../src/gateway/tenants/partners.ts'
import { OPERATIONS } from '../../src/operations.ts'
import { blocks, chapterText, filledIn, ROOT } from '../guides/guides.ts'
import { notify } from '../support/acquirer.ts'
import { DOCUMENT, POSTS } from '../support/openapi.ts'
import {
  errorResponse,
  type Key,
  newKey,
  newMerchant,
  PUBLIC_URL,
  post,
  postJson,
  responseOf,
  startService,
  type TestService,
} from '../support/service.ts'

const FORM = 'application/x-www-form-urlencoded'
const JSON_TYPE = 'application/json'

const PUBLIC_GUIDES = ['merchant', 'partner', 'plugins', 'acquirer'] as const
const CHAPTERS = PUBLIC_GUIDES.flatMap(chaptersOf)

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
  return responseOf(await service.app.inject({ method, url, headers }))
}

describe('OpenAPI document', () => {
  it('serves the OpenAPI document without credentials, compressed and cached, with the value of PUBLIC_URL', async () => {
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
    expect([packed.statusCode, packed.payload, packed.headers['content-encoding']]).toEqual([200, '', 'br'])
    expect(Number(packed.headers['content-length'])).toBeLessThan(Number(headers['content-length']) / 4)
    for (const coding of ['identity', 'gzip', 'br']) {
      const accept = { 'accept-encoding': coding, 'if-none-match': String(headers.etag) }
      expect((await request('GET', '/openapi.json', accept)).status).toBe(304)
    }
  })

  it('the OpenAPI document describes notifications only if the service accepts notifications', async () => {
    const { app } = await startService({ acquirers: { direct: [] } })
    const { paths, tags, components } = responseOf(await app.inject('/openapi.json')).body
    expect(Object.keys(paths)).not.toContain('/acquirer/paymentNotification')
    expect(JSON.stringify([tags, components])).not.toMatch(/acquirer/i)
  })

  it('/openapi-merchant.json has the operations of merchants, partners and customers, and the webhooks', async () => {
    const { status, body } = await request('GET', '/openapi-merchant.json')
    const { paths, webhooks, components } = (await request('GET', '/openapi.json')).body
    const omitted = ['/acquirer/paymentNotification', '/livez', '/readyz']
    expect([status, Object.keys(body.paths)]).toEqual([
      200,
      Object.keys(paths).filter((path) => !omitted.includes(path)),
    ])
    expect(body.webhooks).toEqual(webhooks)
    expect(components).toMatchObject(body.components)
    expect(JSON.stringify([body.tags, body.components])).not.toMatch(/acquirer|readiness/i)
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

  it('the OpenAPI document names an error for every error status that an operation may return', () => {
    const anybody = ['200', '4XX']
    const atTheDoor = [...anybody, '400', '401', '403', '413', '415', '429', '500', '503']
    const keyed = OPERATIONS.v1.map(({ path, errors }) => {
      const own = errors.map(({ statusCode }) => String(statusCode))
      const statuses = Object.keys(POSTS[path]?.responses ?? {})
      expect(statuses.sort(), path).toEqual([...new Set([...atTheDoor, ...own])].sort())
      return path
    })
    expect(keyed).toContain('/v1/payments/createPaymentIntent')
  })
})

describe('examples of the OpenAPI document', () => {
  const ajv = new Ajv2020({ strict: false, validateFormats: false })

  type Schema = { type?: string; anyOf?: object; const?: unknown; enum?: unknown; example?: unknown }
  type Part = { in?: string; name?: string; schema?: Schema; example?: unknown; properties?: Record<string, Schema> }

  /** The document's parameters, and the fields of its schemas except objects and fields with a fixed set of values. */
  function fieldsIn(part: Part, path: string): { path: string; schema: Schema; example: unknown }[] {
    const fields = Object.entries(part.properties ?? {}).filter(([, field]) => {
      const isText = ['string', 'number', 'integer'].includes(field.type ?? '') || field.anyOf !== undefined
      return isText && field.const === undefined && field.enum === undefined
    })
    return [
      ...(part.in && part.schema ? [{ path: `${path} ${part.name}`, schema: part.schema, example: part.example }] : []),
      ...fields.map(([name, schema]) => ({ path: `${path} ${name}`, schema, example: schema.example })),
      ...Object.entries(part).flatMap(([name, inner]) =>
        typeof inner === 'object' && inner !== null ? fieldsIn(inner as Part, `${path}/${name}`) : [],
      ),
    ]
  }

  it('every parameter and field of the OpenAPI document has a valid example', () => {
    const fields = fieldsIn(DOCUMENT as Part, '')
    expect(fields.length).toBeGreaterThan(100)
    const help = 'add the field to the example of its body or response, or an `example` to its `meta`'
    const without = fields.filter(({ schema, example }) => example === undefined || !ajv.validate(schema, example))
    expect(without, help).toEqual([])
  })

  it('addresses in the examples of the OpenAPI document begin with PUBLIC_URL', async () => {
    const { text } = await request('GET', '/openapi.json')
    expect(text).toContain(`"payment_url":"${PUBLIC_URL}/pay/019aa0b1c2d3e4f5a6b7c8d9e0f1a2b3"`)
    expect(text).not.toMatch(/localhost|\{PUBLIC_URL\}/)
  })

  const example = (path: string, type: string) => POSTS[path]?.requestBody.content[type]?.example ?? {}

  it.each([
    ...['/v1/payments/createPaymentIntent', '/v1/payments/createOrderRequest', '/v1/payments/fetchTransactionList'],
    ...['/v1/partner/fetchSettlementList', '/v1/partner/fetchTransactionList'],
  ])('accepts the example of %s in the OpenAPI document unchanged, as a form and as JSON', async (path) => {
    const key = path.includes('partner') ? partnerKey : merchantKey
    for (const send of [
      () => post(service.app, path, example(path, FORM), key),
      () => postJson(service.app, path, example(path, JSON_TYPE), key),
    ]) {
      expect((await send()).status).toBe(200)
    }
  })

  it('accepts the examples of checkPaymentStatus and paymentNotification in the OpenAPI document unchanged once the order exists', async () => {
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
    const shown = (status: string) => {
      const { example, examples = {} } = POSTS[path]?.responses[status]?.content?.[JSON_TYPE] ?? {}
      return example ?? Object.values(examples)[0]?.value
    }
    const wrong = { ...example(path, FORM), amount: '0', customer_mobile: '12345' }
    expect((await post(service.app, path, wrong, merchantKey)).body).toEqual(shown('400'))
    expect((await post(service.app, path, wrong)).body).toEqual(shown('401'))
    const forbidden = POSTS[path]?.responses['403']?.content?.[JSON_TYPE]?.examples ?? {}
    const listing = await newKey(service.db, { mid: 'DEMO_MERCHANT' }, ['list'])
    for (const key of [partnerKey, listing]) {
      const { body } = await post(service.app, path, example(path, FORM), key)
      expect(body).toEqual(forbidden[body.msg]?.value)
    }
    expect(shown('409')).toEqual(errorResponse(409, 'Order ID already exists'))
  })
})

describe('pages below /docs', () => {
  const HTML = 'text/html; charset=utf-8'
  const MARKDOWN = 'text/markdown; charset=utf-8'

  it.each<[string, string, number]>([
    ['/docs', HTML, 60],
    ...CHAPTERS.map((chapter) => [`/docs/${chapter}`, HTML, 60] as [string, string, number]),
    ['/docs/reference', HTML, 60],
    ...CHAPTERS.map((chapter) => [`/docs/${chapter}.md`, MARKDOWN, 60] as [string, string, number]),
    ['/docs/search.json', 'application/json; charset=utf-8', 60],
    ['/llms.txt', 'text/plain; charset=utf-8', 60],
    ['/docs/openapi-explorer.min.js', 'text/javascript; charset=utf-8', 3600],
    ['/docs/minisearch.js', 'text/javascript; charset=utf-8', 3600],
    ['/docs/guide.js', 'text/javascript; charset=utf-8', 3600],
    ['/docs/search.js', 'text/javascript; charset=utf-8', 3600],
    ['/docs/guide.css', 'text/css; charset=utf-8', 3600],
  ])(
    'serves the page %s without credentials, compressed, cached, and with the correct content type',
    async (url, type, maxAge) => {
      const plain = await service.app.inject(url)
      expect([plain.statusCode, plain.headers['content-encoding']]).toEqual([200, undefined])
      const packed = await service.app.inject({ url, headers: { 'accept-encoding': 'gzip, deflate, br' } })
      expect(packed.headers).toMatchObject({
        'content-type': type,
        'content-encoding': 'br',
        'cache-control': `public, max-age=${maxAge}`,
        vary: 'accept-encoding',
        'x-content-type-options': 'nosniff',
      })
      const inGzip = await service.app.inject({ url, headers: { 'accept-encoding': 'gzip, br;q=0' } })
      expect(inGzip.headers['content-encoding']).toBe('gzip')
      expect(plain.rawPayload.equals(brotliDecompressSync(packed.rawPayload))).toBe(true)
      expect(plain.rawPayload.equals(gunzipSync(inGzip.rawPayload))).toBe(true)
      const again = { 'accept-encoding': 'gzip', 'if-none-match': String(packed.headers.etag) }
      expect((await service.app.inject({ url, headers: again })).statusCode).toBe(304)
      const forbidden = await service.app.inject({ url, headers: { 'accept-encoding': 'gzip;q=0' } })
      expect(forbidden.headers['content-encoding']).toBeUndefined()
      const head = await service.app.inject({ method: 'HEAD', url })
      expect([head.statusCode, head.payload, head.headers['content-length']]).toEqual([
        200,
        '',
        plain.headers['content-length'],
      ])
    },
  )

  it.each(['/docs', ...CHAPTERS.map((chapter) => `/docs/${chapter}`), '/docs/reference'])(
    'the page %s forbids inline scripts, external content, requests to other origins, and framing',
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

  it.each(['/docs', `/docs/${CHAPTERS[0]}`, '/openapi.json', '/openapi-merchant.json', '/docs/guide.js'])(
    'rejects methods other than GET and HEAD and unknown paths at %s with the same errors as at any other address',
    async (url) => {
      const { status, body, headers } = await request('POST', url)
      expect([status, body, headers.allow]).toEqual([
        405,
        errorResponse(405, 'This URL does not allow this method. Use GET or HEAD.'),
        'GET, HEAD',
      ])
      expect((await request('GET', `${url}/x`)).body).toEqual(
        errorResponse(404, 'This URL does not exist. Check its path.'),
      )
    },
  )

  it('redirects /docs/ to the documentation below any path', async () => {
    const { status, headers } = await request('GET', '/docs/')
    expect([status, headers.location]).toEqual([302, '../docs'])
  })

  it.each([
    ['text/html,application/xhtml+xml,*/*;q=0.8', 'text/html; charset=utf-8'],
    ['*/*', 'application/json; charset=utf-8'],
    ['application/json', 'application/json; charset=utf-8'],
  ])('returns 404 for an unknown page to a client that accepts %s as %s', async (accept, type) => {
    for (const url of ['/docs/merchant/refund', '/docs/x', '/docs/a/b/c?d=e']) {
      const response = await service.app.inject({ url, headers: { accept } })
      expect([url, response.statusCode, response.headers['content-type']]).toEqual([url, 404, type])
      expect(response.headers['x-error-code']).toBe('url_not_found')
      if (type.startsWith('text/html')) expect(response.body).toContain('<h1>Page not found</h1>')
    }
  })

  it.each([
    ['https://pay.example.in', '/docs'],
    ['https://example.in/upi', '/upi/docs'],
  ])(
    'redirects GET and HEAD requests for / below the PUBLIC_URL %s to the documentation, whatever the Host header',
    async (publicUrl, docs) => {
      const { app } = await startService({ publicUrl })
      for (const method of ['GET', 'HEAD'] as const) {
        const { statusCode, headers } = await app.inject({ method, url: '/' })
        expect([statusCode, headers.location]).toEqual([302, docs])
      }
    },
  )

  it.each(['merchant', 'partner', 'plugins', 'acquirer'] as const)(
    'redirects the address /docs/%s to the first chapter of the guide, behind a proxy under any path',
    async (guide) => {
      for (const ending of ['', '.md']) {
        const { status, headers } = await request('GET', `/docs/${guide}${ending}`)
        expect([status, headers.location]).toEqual([308, `${chaptersOf(guide)[0]}${ending}`])
        expect((await request('GET', `/docs/${headers.location}`)).status).toBe(200)
      }
    },
  )

  it('the pages below /docs mention the acquirer’s guide only if the service accepts notifications', async () => {
    const { app } = await startService({ acquirers: { direct: [] } })
    const [chapter] = chaptersOf('acquirer')
    for (const url of ['/docs/acquirer', `/docs/${chapter}`, '/docs/acquirer.md', `/docs/${chapter}.md`])
      expect(responseOf(await app.inject(url)).status, url).toBe(404)
    for (const url of [
      '/docs',
      '/llms.txt',
      '/docs/search.json',
      ...chaptersOf('merchant').map((name) => `/docs/${name}`),
    ])
      expect((await app.inject(url)).payload, url).not.toMatch(/acquirer\/|Acquirer notifications/)
    expect((await request('GET', '/docs')).text).toContain(`href="docs/${chapter}"`)
  })

  it('/llms.txt lists every chapter for programs, with a title, a summary and working links', async () => {
    const { text } = await request('GET', '/llms.txt')
    expect(text).toMatch(/^# UPI payments\n\n> .+\n\n## Merchant API\n\n.+\n\n- \[/)
    const links = [...text.matchAll(/^- \[[^\]]+\]\((\S+)\): \S.*$/gm)].map(([, url = '']) => url)
    expect(links).toHaveLength(text.match(/^- /gm)?.length ?? 0)
    expect(links).toEqual(
      [...CHAPTERS.map((chapter) => `docs/${chapter}.md`), 'openapi-merchant.json', 'openapi.json'].map(
        (path) => `${PUBLIC_URL}/${path}`,
      ),
    )
    for (const link of links) expect((await request('GET', link.replace(PUBLIC_URL, ''))).status, link).toBe(200)
  })

  it('/docs links to every chapter by title, and each chapter links to every chapter of its guide', async () => {
    const links = (html: string, prefix: string) =>
      [...html.matchAll(/<a href="([^"]+)"[^>]*>([^<]+)<\/a>/g)]
        .filter(([, href = '']) => href.startsWith(prefix))
        .map(([, href = '', text]) => [href.slice(prefix.length), text])
    const index = Object.fromEntries(links((await request('GET', '/docs')).text, 'docs/'))
    for (const chapter of CHAPTERS) {
      const { text } = await request('GET', `/docs/${chapter}`)
      const [, title] = /<h1>(.*)<\/h1>/.exec(text) ?? []
      expect(index[chapter], chapter).toBe(title?.replaceAll(/<\/?code>/g, ''))
      const guide = guideOf(chapter)
      expect(links(text, '../').map(([path]) => path)).toEqual(expect.arrayContaining(chaptersOf(guide)))
      const [, current] = /<nav class="chapters"[\s\S]*?<a href="\.\.\/([^"]+)" aria-current="page">/.exec(text) ?? []
      expect(current).toBe(chapter)
      expect(text).toContain(`<a href="${chapter.slice(guide.length + 1)}.md" type="text/markdown">`)
    }
  })

  it('a chapter links to the previous and the next chapter of the same guide', async () => {
    const chapters = chaptersOf('merchant')
    for (const [index, chapter] of chapters.entries()) {
      const { text } = await request('GET', `/docs/${chapter}`)
      const [, prev] = /<a rel="prev" href="\.\.\/([^"]+)"/.exec(text) ?? []
      const [, next] = /<a rel="next" href="\.\.\/([^"]+)"/.exec(text) ?? []
      expect([prev, next]).toEqual([chapters[index - 1], chapters[index + 1]])
    }
  })

  it('the documentation pages use at most 10 kB of scripts and no script libraries', () => {
    const sizes = ['guide.js', 'search.js', 'reference.js'].map(
      (name) => statSync(join(ROOT, 'src/docs/ui', name)).size,
    )
    expect(sizes.reduce((sum, size) => sum + size)).toBeLessThanOrEqual(10_000)
    expect(readdirSync(join(ROOT, 'src/docs/ui')).filter((name) => name.endsWith('.js'))).toHaveLength(sizes.length)
  })

  it('/docs/search.json contains every chapter with its sections, and every operation', async () => {
    const entries = (await request('GET', '/docs/search.json')).body as { url: string; title: string }[]
    const paths = new Set(entries.map(({ url }) => url.replace(/#(?!\?).*/, '')))
    for (const chapter of CHAPTERS) expect([...paths]).toContain(chapter)
    expect(new Set(entries.map(({ url }) => url)).size).toBe(entries.length)
    const operations = Object.values(OPERATIONS).flat()
    expect(entries.filter(({ url }) => url.startsWith('reference')).map(({ title }) => title)).toEqual(
      operations.map(({ name }) => name),
    )
    for (const { url } of entries.filter(({ url }) => /#(?!\?)/.test(url))) {
      const [path, anchor] = url.split('#')
      expect((await request('GET', `/docs/${path}`)).text, url).toContain(`id="${anchor}"`)
    }
  })
})

describe('the table of errors', () => {
  const rows = errorRows('merchant', OPERATIONS.v1)

  it('the table of errors contains each declared error of each merchant operation', () => {
    for (const { name, errors } of OPERATIONS.v1.filter(({ tag }) => tag === 'Merchant')) {
      for (const { code, statusCode, message } of errors) {
        const row = rows.find((row) => row.code === code)
        expect([row?.statusCode, row?.msgs.includes(message)], `${name}: ${message}`).toEqual([statusCode, true])
      }
    }
    expect(rows).toContainEqual({
      code: 'payment_already_successful',
      statusCode: 409,
      msgs: ['Payment already successful'],
      action: 'Fulfil the order, or refund the payment.',
      repeat: 'No.',
    })
    const shared = [400, 401, 403, 404, 405, 408, 413, 415, 417, 429, 431, 500, 502, 503, 504]
    expect(rows.map(({ statusCode }) => statusCode)).toEqual(expect.arrayContaining(shared))
  })

  it('the table of errors allows a repeated request exactly where the text of the error asks for one', () => {
    const asks = ({ msgs }: (typeof rows)[number]) => msgs.some((msg) => /\b(again|repeat)\b/i.test(msg))
    expect(rows.filter(asks).map(({ code }) => code)).toEqual(
      rows.filter(({ repeat }) => repeat.startsWith('Yes')).map(({ code }) => code),
    )
  })

  it('the tables of errors in the guides contain every code that callers of documented operations receive', () => {
    const operations = Object.values(OPERATIONS).flat()
    const codes = PUBLIC_GUIDES.flatMap((guide) => errorRows(guide, operations).map(({ code }) => code))
    // Acquirers receive this code only at the addresses for their own formats, which the documents omit.
    expect([...new Set(codes), 'refund_mismatch'].sort()).toEqual(Object.keys(ERROR_CODES).sort())
    // A merchant's server receives every code but the ones for acquirers.
    const forMerchants = errorRows('merchant', operations).map(({ code }) => code)
    const forPartners = errorRows('partner', operations).map(({ code }) => code)
    expect(forPartners.filter((code) => !forMerchants.includes(code))).toEqual([])
  })

  it('the table of errors replaces the line {ERRORS} in Markdown, in HTML and in the text of the search', () => {
    const some: ReturnType<typeof errorRows> = [
      { code: 'refund_mismatch', statusCode: 409, msgs: ['A | b <c>', 'D'], action: 'Stop.', repeat: 'No.' },
      { code: 'internal_error', statusCode: 500, msgs: ['Oops'], action: 'Wait.', repeat: 'Yes.' },
    ]
    expect(withErrorsInMarkdown('# Errors\n\n{ERRORS}\n\nEnd\n', () => some)).toBe(`# Errors

| Code | Status | \`msg\` | What to do | Repeat? |
|---|---|---|---|---|
| \`refund_mismatch\` | 409 | A \\| b <c><br>D | Stop. | No. |
| \`internal_error\` | 500 | Oops | Wait. | Yes. |

End
`)
    const { html, sections } = renderChapter('# Errors\n\n{ERRORS}\n')
    const page = withErrorsInHtml(html, () => some)
    expect(page).toContain(
      '<td><code>refund_<wbr>mismatch</code></td><td>409</td><td>A | b &#60;c&#62;<br>D</td><td>Stop.</td><td>No.</td>',
    )
    expect(page).not.toContain('{ERRORS}')
    expect(withErrorsInText(sections[0]?.text ?? '', () => some)).toBe(
      'refund_mismatch 409 A | b <c>. D. internal_error 500 Oops.',
    )
  })
})

describe('guides of the service', () => {
  const codeOf = (html: string) =>
    [...html.matchAll(/<pre tabindex="0"><code[^>]*>([\s\S]*?)<\/code>/g)].map(([, code = '']) =>
      unescaped(code.replaceAll(/<\/?span[^>]*>/g, '')).trimEnd(),
    )
  const unescaped = (html: string) =>
    html.replace(/&(?:#(x?)([0-9a-f]+)|(\w+));/g, (_, hex, code, name) =>
      code
        ? String.fromCharCode(Number.parseInt(code, hex ? 16 : 10))
        : ({ lt: '<', gt: '>', quot: '"', amp: '&' }[name as string] ?? '?'),
    )

  it.each(['merchant', 'partner', 'acquirer'] as const)(
    'the %s guide shows exactly the samples that the tests run, with this service’s URL',
    async (guide) => {
      const pages = await Promise.all(chaptersOf(guide).map((chapter) => request('GET', `/docs/${chapter}`)))
      const written = blocks.filter((block) => block.guide === guide)
      expect(written.length).toBeGreaterThan(4)
      expect(pages.flatMap(({ text }) => codeOf(text))).toEqual(
        written.map((block) => filledIn(block.text, PUBLIC_URL, 'https://shop.example/thanks').trimEnd()),
      )
      const text = pages.map((page) => page.text).join('')
      expect(text).toContain(PUBLIC_URL)
      expect(text).not.toMatch(/(?:\{|%7B)(?:PUBLIC_URL|SHOP_URL|ERRORS)/)
    },
  )

  it.each(CHAPTERS)(
    'the .md address of a chapter serves the Markdown of the chapter’s page, with this service’s URL: %s',
    async (chapter) => {
      const { text } = await request('GET', `/docs/${chapter}.md`)
      const rows = () => errorRows(guideOf(chapter), Object.values(OPERATIONS).flat())
      expect(text).toBe(
        withErrorsInMarkdown(filledIn(chapterText(chapter), PUBLIC_URL, 'https://shop.example/thanks'), rows),
      )
      expect(text).not.toMatch(/\{(?:PUBLIC_URL|SHOP_URL|ERRORS)\}/)
    },
  )

  it('the service sends a sandbox customer to a page with the merchant’s next call, and escapes input in the page', async () => {
    const { app } = await startService({ sandbox: true })
    const pages = await Promise.all(chaptersOf('merchant').map((chapter) => app.inject(`/docs/${chapter}`)))
    expect(pages.map(({ payload }) => payload).join('')).toContain(`${PUBLIC_URL}/docs/thanks?order_id=`)
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
