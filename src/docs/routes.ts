import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { matchesEtag } from '../http/etag.ts'
import { type Asset, readAsset, readGuide, toAsset } from './assets.ts'
import type { DocumentOptions } from './openapi.ts'
import {
  guideNames,
  guidePage,
  indexPage,
  OPERATOR_GUIDES,
  operatorPage,
  type PageOptions,
  referencePage,
  thanksPage,
} from './pages.ts'

/** How long a browser uses styles and scripts without asking again. */
const ASSET_MAX_AGE_SECONDS = 3_600
const DOCUMENT_MAX_AGE_SECONDS = 60

/** Nothing from elsewhere and nothing inline: what the page sends goes to the service that it came from. */
const PAGE_HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
}
/** The library of the reference sets styles on its elements. */
const REFERENCE_HEADERS = {
  ...PAGE_HEADERS,
  'content-security-policy': PAGE_HEADERS['content-security-policy'].replace(
    "style-src 'self'",
    "style-src 'self' 'unsafe-inline'",
  ),
}

const HTML = 'text/html; charset=utf-8'

/** `/openapi.json`, the guides, and the reference, which shows every operation and sends requests. All are public; `/` leads to them. */
export function docsRoutes(app: FastifyInstance, options: DocumentOptions & PageOptions) {
  serve(app, '/openapi.json', DOCUMENT_MAX_AGE_SECONDS, async () => {
    // Imported at the first request, so that the service starts sooner.
    const { openApiDocument } = await import('./openapi.ts')
    return toAsset('application/json; charset=utf-8', JSON.stringify(openApiDocument(options)))
  })
  servePage(app, '/docs', async () => indexPage(options))
  // Without the host, so that a browser stays at the one by which it came; a proxy may have taken off the path.
  const docs = `${new URL(options.publicUrl).pathname.replace(/\/$/, '')}/docs`
  app.get('/', async (_request, reply) => reply.redirect(docs))
  for (const name of guideNames(options)) {
    servePage(app, `/docs/${name}`, async () => guidePage(name, await readGuide(name), options))
  }
  servePage(app, '/docs/reference', async () => referencePage(options), REFERENCE_HEADERS)
  serveAssets(app, [...GUIDE_ASSETS, 'reference.js', 'openapi-explorer.min.js'])
  if (options.sandbox) {
    app.get('/docs/thanks', async ({ query }, reply) => {
      const { order_id: orderId } = query as { order_id?: unknown }
      // Only what is safe to paste into a shell.
      const known = typeof orderId === 'string' && /^[\w-]{1,64}$/.test(orderId) ? orderId : undefined
      return reply.headers(PAGE_HEADERS).type(HTML).send(thanksPage(known, options))
    })
  }
}

/** The operator's guides, at `/docs` of the listener that only the operator reaches. */
export function operatorGuideRoutes(app: FastifyInstance, options: Pick<PageOptions, 'publicUrl'>) {
  servePage(app, '/docs', async () => operatorPage('operator', await readGuide('operator'), options))
  for (const name of OPERATOR_GUIDES) {
    servePage(app, `/docs/${name}`, async () => operatorPage(name, await readGuide(name), options))
  }
  serveAssets(app, [...GUIDE_ASSETS, 'operator.css'])
}

const GUIDE_ASSETS = ['guide.css', 'guide.js']

function serveAssets(app: FastifyInstance, names: readonly string[]) {
  for (const name of names) serve(app, `/docs/${name}`, ASSET_MAX_AGE_SECONDS, () => readAsset(name))
}

function servePage(app: FastifyInstance, url: string, make: () => Promise<string>, headers = PAGE_HEADERS) {
  serve(app, url, DOCUMENT_MAX_AGE_SECONDS, async () => toAsset(HTML, await make()), headers)
}

/** Serves the result of `make`, which is called once, at the first request. */
function serve(
  app: FastifyInstance,
  url: string,
  maxAgeSeconds: number,
  make: () => Promise<Asset>,
  headers: Record<string, string> = {},
) {
  let made: Promise<Asset> | undefined
  app.get(url, async (request, reply) => {
    made ??= make().catch((error) => {
      made = undefined
      throw error
    })
    const asset = await made
    reply.headers({ ...headers, 'cache-control': `public, max-age=${maxAgeSeconds}` })
    return send(asset, request, reply)
  })
}

function send({ type, plain, gzipped, etag }: Asset, { headers }: FastifyRequest, reply: FastifyReply) {
  // Weak, since one tag stands for both codings.
  reply.headers({ etag: `W/${etag}`, vary: 'accept-encoding', 'x-content-type-options': 'nosniff' })
  if (matchesEtag(headers['if-none-match'], etag)) return reply.code(304).send()
  if (!takesGzip(headers['accept-encoding'])) return reply.type(type).send(plain)
  return reply.type(type).header('content-encoding', 'gzip').send(gzipped)
}

function takesGzip(acceptEncoding: string | string[] | undefined): boolean {
  return /\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/i.test(String(acceptEncoding))
}
