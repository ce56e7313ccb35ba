import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { FastifyInstance } from 'fastify'
import { COLOURS } from '../platform/colours.ts'
import { matchesEtag } from '../platform/http/etag.ts'
import type { DocumentOptions } from './openapi.ts'
import {
  type DocsOptions,
  filledIn,
  guideNames,
  guidePage,
  indexPage,
  llmsText,
  OPERATOR_GUIDES,
  operatorPage,
  referencePage,
  thanksPage,
} from './pages.ts'

const FOR_A_MINUTE = { 'cache-control': 'public, max-age=60' }

/** Headers of a page. Scripts, styles and requests are limited to this service; inline scripts are forbidden. */
const pageHeaders = (styles = "'self'") => ({
  'content-security-policy':
    `default-src 'none'; script-src 'self'; style-src ${styles}; img-src 'self' data:; connect-src 'self'; ` +
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
})
const PAGE_HEADERS = pageHeaders()
/** Inline styles are allowed on the reference's page, because OpenAPI Explorer sets styles on its elements. */
const REFERENCE_HEADERS = pageHeaders("'self' 'unsafe-inline'")

const HTML = 'text/html; charset=utf-8'

/** The public documents: `/openapi.json`, `/llms.txt`, the guides, and the reference, which can send requests. */
export function docsRoutes(app: FastifyInstance, options: DocumentOptions & DocsOptions) {
  const document = async () => {
    // Imported at the first request, so that the service is ready sooner.
    const { openApiDocument } = await import('./openapi.ts')
    return JSON.stringify(openApiDocument(options))
  }
  serve(app, '/openapi.json', document, { type: 'application/json; charset=utf-8', ...FOR_A_MINUTE })
  servePage(app, '/docs', async () => indexPage(options))
  // The redirect names no host, so that the browser stays on the host that it has used. The path is that of PUBLIC_URL,
  // because a proxy may have removed this path from the request.
  const docs = `${new URL(options.publicUrl).pathname.replace(/\/$/, '')}/docs`
  app.get('/', async (_request, reply) => reply.redirect(docs))
  for (const name of guideNames(options)) serveGuide(app, name, guidePage, options)
  serve(app, '/llms.txt', async () => llmsText(options), { type: 'text/plain; charset=utf-8', ...FOR_A_MINUTE })
  servePage(app, '/docs/reference', async () => referencePage(options), REFERENCE_HEADERS)
  serveAssets(app, [...GUIDE_ASSETS, 'reference.js', 'openapi-explorer.min.js'])
  if (options.sandbox) {
    app.get('/docs/thanks', async ({ query }, reply) => {
      const { order_id: orderId } = query as { order_id?: unknown }
      // The page shows a shell command with order_id, so only characters without a meaning in a shell are accepted.
      const known = typeof orderId === 'string' && /^[\w-]{1,64}$/.test(orderId) ? orderId : undefined
      return reply.headers(PAGE_HEADERS).type(HTML).send(thanksPage(known, options))
    })
  }
}

/** The operator's guides, on the port that only the operator reaches. */
export function operatorGuideRoutes(app: FastifyInstance, options: Pick<DocsOptions, 'publicUrl'>) {
  for (const name of Object.keys(OPERATOR_GUIDES) as (keyof typeof OPERATOR_GUIDES)[]) {
    serveGuide(app, name, operatorPage, options)
  }
  serveAssets(app, [...GUIDE_ASSETS, 'operator.css'])
}

const GUIDE_ASSETS = ['guide.css', 'guide.js']

function serveAssets(app: FastifyInstance, names: readonly string[]) {
  for (const name of names) {
    const type = name.endsWith('.css') ? 'text/css; charset=utf-8' : 'text/javascript; charset=utf-8'
    serve(app, `/docs/${name}`, () => readAsset(name), { type, 'cache-control': 'public, max-age=3600' })
  }
}

function servePage(app: FastifyInstance, url: string, make: () => Promise<string>, headers = PAGE_HEADERS) {
  serve(app, url, make, { type: HTML, ...headers, ...FOR_A_MINUTE })
}

/** Serves a guide as a page, and as Markdown at the same path with `.md`. The operator's guide is the index of its port. */
function serveGuide<Name extends string, Options extends Pick<DocsOptions, 'publicUrl'>>(
  app: FastifyInstance,
  name: Name,
  toPage: (name: Name, fragment: string, options: Options) => string,
  options: Options,
) {
  const url = name === 'operator' ? '/docs' : `/docs/${name}`
  servePage(app, url, async () => toPage(name, await readGuide(name), options))
  const markdown = async () => filledIn(await readMarkdown(name), options)
  serve(app, `${url}.md`, markdown, { type: 'text/markdown; charset=utf-8', ...FOR_A_MINUTE })
}

/** The content type, and the other headers. */
type Served = { type: string; [header: string]: string }

/** Serves the result of `make`, which is called and compressed once, at the first request. */
function serve(app: FastifyInstance, url: string, make: () => Promise<string>, { type, ...headers }: Served) {
  let made: ReturnType<typeof pack> | undefined
  app.get(url, async (request, reply) => {
    made ??= make()
      .then(pack)
      .catch((error) => {
        made = undefined
        throw error
      })
    const { plain, gzipped, etag } = await made
    // A weak ETag, because the plain and the gzipped body share one tag.
    reply.headers({ ...headers, etag: `W/${etag}`, vary: 'accept-encoding', 'x-content-type-options': 'nosniff' })
    if (matchesEtag(request.headers['if-none-match'], etag)) return reply.code(304).send()
    if (!takesGzip(request.headers['accept-encoding'])) return reply.type(type).send(plain)
    return reply.type(type).header('content-encoding', 'gzip').send(gzipped)
  })
}

async function pack(text: string) {
  const plain = Buffer.from(text)
  const etag = `"${createHash('sha256').update(plain).digest('base64url').slice(0, 22)}"`
  // Asynchronous gzip runs in a thread of its own: synchronous gzip of 750 kB would block the event loop.
  return { plain, gzipped: await promisify(gzip)(plain), etag }
}

function takesGzip(acceptEncoding: string | string[] | undefined): boolean {
  return /\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/i.test(String(acceptEncoding))
}

/** Reads a file of src/docs/ui, or in a checkout OpenAPI Explorer's script, which a build copies to that folder. */
async function readAsset(name: string): Promise<string> {
  const ours = new URL(`./ui/${name}`, import.meta.url)
  const file = existsSync(ours) ? ours : createRequire(import.meta.url).resolve(`openapi-explorer/dist/browser/${name}`)
  const text = await readFile(file, 'utf8')
  return name === 'guide.css' ? COLOURS + text : text
}

/** Reads a guide's HTML from the build. In a checkout there is none, so the guide is rendered here. */
async function readGuide(name: string): Promise<string> {
  const built = new URL(`./guides/${name}.html`, import.meta.url)
  if (existsSync(built)) return readFile(built, 'utf8')
  // Imported only in a checkout: a build has neither this module nor its Markdown library.
  const { renderGuide } = await import('./render-guide.ts')
  return renderGuide(await readMarkdown(name))
}

const readMarkdown = (name: string) => readFile(new URL(`./guides/${name}.md`, import.meta.url), 'utf8')
