import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import type { Server } from 'node:http'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { type Failure, notFound } from '../errors.ts'
import { codingFor, compress } from '../platform/http/compression.ts'
import { matchesEtag, prefersHtml } from '../platform/http/request-headers.ts'
import { chaptersOf, guideOf } from './chapters.ts'
import { errorRows, withErrorsInHtml, withErrorsInMarkdown, withErrorsInText } from './error-table.ts'
import { readAsset, readChapter, readMarkdown, readTitles } from './files.ts'
import type { DocumentOptions } from './openapi.ts'
import { chapterPage, indexPage, llmsText, notFoundPage, referencePage, type TitledSite, thanksPage } from './pages.ts'
import { entriesOf, entriesOfOperations } from './search.ts'
import { chaptersOfSite, type DocsOptions, filledIn, operatorSite, publicSite, type Site } from './site.ts'

const FOR_A_MINUTE = { 'cache-control': 'public, max-age=60' }

/**
 * Returns the headers of a page. Scripts, styles and requests are limited to this service, and inline scripts are
 * forbidden.
 */
const pageHeaders = (styles = "'self'") => ({
  'content-security-policy':
    `default-src 'none'; script-src 'self'; style-src ${styles}; img-src 'self' data:; connect-src 'self'; ` +
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
})
const PAGE_HEADERS = pageHeaders()
/** The API reference allows inline styles, because OpenAPI Explorer sets styles on its elements. */
const REFERENCE_HEADERS = pageHeaders("'self' 'unsafe-inline'")

const HTML = 'text/html; charset=utf-8'
const JSON_TYPE = 'application/json; charset=utf-8'

/**
 * Serves the public documents: `/openapi.json`, `/openapi-merchant.json` without the operations that merchants and
 * partners do not call, the guides, and the API reference, which can send requests.
 */
export function docsRoutes(app: FastifyInstance, options: DocumentOptions & DocsOptions) {
  const documentOf = (operations: DocumentOptions['operations']) => async () => {
    // Imports the module at the first request, so that the service is ready sooner.
    const { openApiDocument } = await import('./openapi.ts')
    return JSON.stringify(openApiDocument({ ...options, operations }))
  }
  const ofMerchants = options.operations.filter(({ tag }) => tag !== 'Acquirer' && tag !== 'Operator')
  serve(app, '/openapi.json', documentOf(options.operations), { type: JSON_TYPE, ...FOR_A_MINUTE })
  serve(app, '/openapi-merchant.json', documentOf(ofMerchants), { type: JSON_TYPE, ...FOR_A_MINUTE })
  // The redirect names no host, so that the browser stays on the host it has used. The path comes from PUBLIC_URL,
  // because a proxy may have removed this path from the request.
  const docs = `${new URL(options.publicUrl).pathname.replace(/\/$/, '')}/docs`
  app.get('/', async (_request, reply) => reply.redirect(docs))
  const site = publicSite(options)
  const titled = siteRoutes(app, site, options.operations)
  servePage(app, '/docs/reference', async () => referencePage(await titled()), REFERENCE_HEADERS)
  serveAssets(app, ['reference.js', 'openapi-explorer.min.js'])
  if (options.sandbox) {
    app.get('/docs/thanks', async ({ query }, reply) => {
      const { order_id: orderId } = query as { order_id?: unknown }
      // The page shows a shell command with the order_id, so the order_id may contain only characters without a meaning
      // in a shell.
      const known = typeof orderId === 'string' && /^[\w-]{1,64}$/.test(orderId) ? orderId : undefined
      return reply
        .headers(PAGE_HEADERS)
        .type(HTML)
        .send(thanksPage(known, await titled()))
    })
  }
}

/** Serves the operator documentation on the operator port, which only the operator can reach. */
export function operatorGuideRoutes(app: FastifyInstance, options: Pick<DocsOptions, 'publicUrl'>) {
  siteRoutes(app, operatorSite(options), [])
}

/**
 * Adds the routes that both ports have. Returns a function that reads the titles of the site's chapters at its first
 * call.
 */
function siteRoutes(app: FastifyInstance, site: Site, operations: DocumentOptions['operations']) {
  // Relative, because a proxy may have removed a path before it.
  app.get('/docs/', async (_request, reply) => reply.redirect('../docs'))
  // Also the path of a chapter of the other port.
  const errorPage = (_failure: Failure, { headers, url }: FastifyRequest) => {
    if (!prefersHtml(headers.accept)) return undefined
    // The number of segments before they are decoded, because the page's links are relative.
    const path = url.split('?', 1)[0]?.slice('/docs/'.length) ?? ''
    return { headers: { 'content-type': HTML, ...PAGE_HEADERS }, body: notFoundPage(path, site) }
  }
  app.get('/docs/*', { config: { errorPage } }, async () => {
    throw notFound()
  })
  let titles: ReturnType<typeof readTitles> | undefined
  const titled = async (): Promise<TitledSite> => {
    titles ??= readTitles(chaptersOfSite(site))
    return { ...site, titles: await titles }
  }
  const rowsFor = (chapter: string) => () => errorRows(guideOf(chapter), operations)

  servePage(app, '/docs', async () => indexPage(await titled()))
  for (const chapter of chaptersOfSite(site)) {
    servePage(app, `/docs/${chapter}`, async () => {
      const { html, ...rest } = await readChapter(chapter)
      return chapterPage(chapter, { ...rest, html: withErrorsInHtml(html, rowsFor(chapter)) }, await titled())
    })
    const markdown = async () => withErrorsInMarkdown(filledIn(await readMarkdown(chapter), site), rowsFor(chapter))
    serve(app, `/docs/${chapter}.md`, markdown, { type: 'text/markdown; charset=utf-8', ...FOR_A_MINUTE })
  }
  // The address of a guide leads to its first chapter. The target is relative, because a proxy may have removed a path.
  for (const guide of site.guides) {
    const [first] = chaptersOf(guide)
    app.get(`/docs/${guide}`, async (_request, reply) => reply.redirect(`${first}`, 308))
    app.get(`/docs/${guide}.md`, async (_request, reply) => reply.redirect(`${first}.md`, 308))
  }
  const address = site.port === 'public' ? site.publicUrl : ''
  const list = async () => llmsText(await titled(), address)
  serve(app, '/llms.txt', list, { type: 'text/plain; charset=utf-8', ...FOR_A_MINUTE })
  const searchEntries = async () => {
    const chapters = chaptersOfSite(site).map(async (chapter) =>
      entriesOf(chapter, await readChapter(chapter), site).map((entry) => {
        return { ...entry, text: withErrorsInText(entry.text, rowsFor(chapter)) }
      }),
    )
    return JSON.stringify([...(await Promise.all(chapters)).flat(), ...entriesOfOperations(operations)])
  }
  serve(app, '/docs/search.json', searchEntries, { type: JSON_TYPE, ...FOR_A_MINUTE })
  serveAssets(app, ['guide.css', 'guide.js', 'search.js', 'minisearch.js'])
  return titled
}

function serveAssets(app: FastifyInstance, names: readonly string[]) {
  for (const name of names) {
    const type = name.endsWith('.css') ? 'text/css; charset=utf-8' : 'text/javascript; charset=utf-8'
    serve(app, `/docs/${name}`, () => bodyOfAsset(name), { type, 'cache-control': 'public, max-age=3600' })
  }
}

function servePage(app: FastifyInstance, url: string, make: () => Promise<string>, headers = PAGE_HEADERS) {
  serve(app, url, make, { type: HTML, ...headers, ...FOR_A_MINUTE })
}

/** The content type and the other headers of a response. */
type Served = { type: string; [header: string]: string }

type Body = Record<'identity' | 'br' | 'gzip', Buffer> & { etag: string }

/** The bodies of an app's documents, which `prepareDocs` creates. */
const bodiesOf = new WeakMap<Server, (() => Promise<Body>)[]>()

/** Creates and compresses all documents of `app`, one after the other, before the service is ready. */
export async function prepareDocs({ server }: FastifyInstance): Promise<void> {
  for (const body of bodiesOf.get(server) ?? []) await body()
}

/** Serves the result of `make`, which is called and compressed once: by `prepareDocs`, or at the first request. */
function serve(app: FastifyInstance, url: string, make: () => Promise<string | Body>, { type, ...headers }: Served) {
  const body = once(async () => {
    const made = await make()
    return typeof made === 'string' ? compressed(Buffer.from(made)) : made
  })
  bodiesOf.set(app.server, [...(bodiesOf.get(app.server) ?? []), body])
  app.get(url, { config: { isStatic: true } }, async (request, reply) => {
    const { etag, ...bodies } = await body()
    // The ETag is weak, because the bodies of all codings share it.
    reply.headers({ ...headers, etag: `W/${etag}`, vary: 'accept-encoding', 'x-content-type-options': 'nosniff' })
    if (matchesEtag(request.headers['if-none-match'], etag)) return reply.code(304).send()
    const coding = codingFor(request.headers['accept-encoding'])
    if (coding !== undefined) reply.header('content-encoding', coding)
    return reply.type(type).send(bodies[coding ?? 'identity'])
  })
}

const compressed = async (identity: Buffer): Promise<Body> => ({
  identity,
  br: await compress.br(identity),
  gzip: await compress.gzip(identity),
  etag: etagOf(identity),
})

const etagOf = (body: Buffer) => `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`

/** Calls `make` at the first call and returns its result at every call. Repeats a `make` that failed. */
function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined
  return () => {
    made ??= make().catch((error) => {
      made = undefined
      throw error
    })
    return made
  }
}

/** Returns a script, a style sheet or a library: from a build, which has compressed it, otherwise from its source. */
async function bodyOfAsset(name: string): Promise<string | Body> {
  const built = new URL(`./ui/${name}`, import.meta.url)
  if (!existsSync(new URL(`${built}.br`))) return readAsset(name)
  const identity = await readFile(built)
  const [br, gzip] = [await readFile(new URL(`${built}.br`)), await readFile(new URL(`${built}.gz`))]
  return { identity, br, gzip, etag: etagOf(identity) }
}
