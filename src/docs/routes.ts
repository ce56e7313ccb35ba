import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import type { FastifyInstance } from 'fastify'
import { COLOURS, SAMPLE_COLOURS } from '../platform/colours.ts'
import { codingFor, compress } from '../platform/http/compression.ts'
import { matchesEtag } from '../platform/http/etag.ts'
import { readChapter, readMarkdown, readTitles } from './chapter-files.ts'
import { chaptersOf, type GuideName, guideOf } from './chapters.ts'
import { errorRows, withErrorsInHtml, withErrorsInMarkdown, withErrorsInText } from './error-table.ts'
import { OLD_ANCHORS } from './old-anchors.ts'
import type { DocumentOptions } from './openapi.ts'
import { chapterPage, indexPage, llmsText, referencePage, type TitledSite, thanksPage } from './pages.ts'
import { entriesOf, entriesOfOperations } from './search.ts'
import { chaptersOfSite, type DocsOptions, filledIn, operatorSite, publicSite, redirectsOf, type Site } from './site.ts'

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
  // The former address of the operator guide in Markdown redirects to the guide's first chapter.
  app.get('/docs.md', async (_request, reply) => reply.redirect(`docs/${chaptersOf('operator')[0]}.md`, 308))
}

/**
 * Adds the routes that both ports have. Returns a function that reads the titles of the site's chapters at its first
 * call.
 */
function siteRoutes(app: FastifyInstance, site: Site, operations: DocumentOptions['operations']) {
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
  for (const [old, target] of Object.entries(redirectsOf(site))) {
    app.get(`/docs/${old}`, async (_request, reply) => reply.redirect(target, 308))
    app.get(`/docs/${old}.md`, async (_request, reply) => reply.redirect(`${target}.md`, 308))
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
  const anchors = Object.fromEntries(
    Object.entries(OLD_ANCHORS).filter(([guide]) => site.guides.includes(guide as GuideName)),
  )
  serve(app, '/docs/old-anchors.json', async () => JSON.stringify(anchors), { type: JSON_TYPE, ...FOR_A_MINUTE })
  serveAssets(app, ['guide.css', 'guide.js', 'minisearch.js'])
  return titled
}

function serveAssets(app: FastifyInstance, names: readonly string[]) {
  for (const name of names) {
    const type = name.endsWith('.css') ? 'text/css; charset=utf-8' : 'text/javascript; charset=utf-8'
    serve(app, `/docs/${name}`, () => readAsset(name), { type, 'cache-control': 'public, max-age=3600' })
  }
}

function servePage(app: FastifyInstance, url: string, make: () => Promise<string>, headers = PAGE_HEADERS) {
  serve(app, url, make, { type: HTML, ...headers, ...FOR_A_MINUTE })
}

/** The content type and the other headers of a response. */
type Served = { type: string; [header: string]: string }

/** Serves the result of `make`. Calls `make`, and compresses its result into each coding, once at the first request. */
function serve(app: FastifyInstance, url: string, make: () => Promise<string>, { type, ...headers }: Served) {
  const plain = once(async () => Buffer.from(await make()))
  const compressed = {
    br: once(async () => compress.br(await plain())),
    gzip: once(async () => compress.gzip(await plain())),
  }
  const etag = once(async () => {
    const hash = createHash('sha256').update(await plain())
    return `"${hash.digest('base64url').slice(0, 22)}"`
  })
  app.get(url, async (request, reply) => {
    const tag = await etag()
    // The ETag is weak, because the bodies of all codings share it.
    reply.headers({ ...headers, etag: `W/${tag}`, vary: 'accept-encoding', 'x-content-type-options': 'nosniff' })
    if (matchesEtag(request.headers['if-none-match'], tag)) return reply.code(304).send()
    const coding = codingFor(request.headers['accept-encoding'])
    if (coding === undefined) return reply.type(type).send(await plain())
    return reply
      .type(type)
      .header('content-encoding', coding)
      .send(await compressed[coding]())
  })
}

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

/** Library files by name. A build copies these files to `ui`, and a checkout reads them from node_modules. */
const LIBRARIES: Record<string, string> = {
  'openapi-explorer.min.js': 'openapi-explorer/dist/browser/openapi-explorer.min.js',
  'minisearch.js': 'minisearch',
}

/** Reads a script or style sheet in src/docs/ui, or the script of a library. */
async function readAsset(name: string): Promise<string> {
  const ours = new URL(`./ui/${name}`, import.meta.url)
  const file = existsSync(ours) ? ours : fileURLToPath(import.meta.resolve(LIBRARIES[name] as string))
  const text = await readFile(file, 'utf8')
  return name === 'guide.css' ? COLOURS + SAMPLE_COLOURS + text : text
}
