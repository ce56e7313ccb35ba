import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { holds } from '../http/etag.ts'
import { type Asset, readAsset, toAsset } from './assets.ts'
import type { DocumentOptions } from './openapi.ts'

/** How long a browser takes Swagger UI for good without asking. */
const ASSET_MAX_AGE_SECONDS = 3_600
const DOCUMENT_MAX_AGE_SECONDS = 60

/** Nothing from elsewhere and nothing inline: what the page sends goes to the service that it came from. */
const PAGE_HEADERS = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "form-action 'none'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
} as const

/** `/openapi.json`, and `/docs`, which shows it and sends requests. Both are public. */
export function docsRoutes(app: FastifyInstance, options: DocumentOptions) {
  serve('/openapi.json', DOCUMENT_MAX_AGE_SECONDS, async () => {
    // Only here: it costs a start nothing.
    const { openApiDocument } = await import('./openapi.ts')
    return toAsset('application/json; charset=utf-8', JSON.stringify(openApiDocument(options)))
  })
  serve('/docs', DOCUMENT_MAX_AGE_SECONDS, () => readAsset('index.html'), PAGE_HEADERS)
  for (const name of ['swagger-ui-bundle.js', 'swagger-ui.css', 'docs.js', 'docs.css']) {
    serve(`/docs/${name}`, ASSET_MAX_AGE_SECONDS, () => readAsset(name))
  }

  function serve(url: string, maxAgeSeconds: number, make: () => Promise<Asset>, headers: Record<string, string> = {}) {
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
}

function send({ type, plain, gzipped, etag }: Asset, { headers }: FastifyRequest, reply: FastifyReply) {
  const packed = takesGzip(headers['accept-encoding'])
  const tag = `"${etag}${packed ? '-gzip' : ''}"`
  reply.headers({ etag: tag, vary: 'accept-encoding', 'x-content-type-options': 'nosniff' })
  if (holds(headers['if-none-match'], tag)) return reply.code(304).send()
  if (packed) reply.header('content-encoding', 'gzip')
  return reply.type(type).send(packed ? gzipped : plain)
}

function takesGzip(acceptEncoding: string | string[] | undefined): boolean {
  return /\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/i.test(String(acceptEncoding))
}
