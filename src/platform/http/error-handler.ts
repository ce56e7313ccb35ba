import type { IncomingMessage } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import {
  AcquirerError,
  expectationFailed,
  Failure,
  improperHost,
  internalError,
  invalidBody,
  invalidUrl,
  methodNotAllowed,
  notFound,
  payloadTooLarge,
  tooManyHeaders,
  unauthorized,
  unavailable,
  unsupportedMediaType,
} from '../../errors.ts'
import type { Limits } from '../../limits.ts'
import { fail } from './envelope.ts'
import type { RequestLog } from './request-log.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * Renders an HTML page instead of the JSON envelope, for routes that people open in a browser; undefined for a client
     * that prefers the envelope.
     */
    errorPage?: (
      failure: Failure,
      request: FastifyRequest,
    ) => { headers: Record<string, string>; body: string } | undefined
    /** The route's own 503 error, for callers that must do more than repeat the request. */
    unavailable?: Failure
  }
}

type ErrorHandling = {
  log: Logger
  isOutage: (error: unknown) => boolean
  limits: Pick<Limits, 'connections' | 'body'>
}

/**
 * Sends an envelope for errors of handlers, unknown paths and methods, and Fastify's own errors; broken-http.ts handles
 * bytes that are not HTTP. Returns the function that checks a request before its body is read.
 */
export function registerErrorHandling(app: FastifyInstance, handling: ErrorHandling) {
  const routes: { pattern: RegExp; methods: string[] }[] = []
  app.addHook('onRoute', ({ method, url }) => {
    // A parameter such as `:orderId` matches one segment of a path.
    const pattern = new RegExp(`^${url.replace(/[.*]/g, '\\$&').replace(/:\w+/g, '[^/]+')}$`)
    routes.push({ pattern, methods: [method].flat() })
  })
  app.setErrorHandler((error, request, reply) => reject(error, request, reply, handling))
  app.setNotFoundHandler((request) => {
    throw nothingHere(request.url)
  })
  return ({ raw, is404, url }: FastifyRequest): Failure | undefined => {
    // rawHeaders contains two items per header, the name and the value, so the limit is doubled.
    const { headers } = handling.limits.connections
    if (raw.rawHeaders.length > 2 * headers) return tooManyHeaders(headers)
    if (!hasProperHost(raw)) return improperHost()
    if (raw.headers.expect !== undefined && !/100-continue/i.test(raw.headers.expect)) return expectationFailed()
    return is404 ? nothingHere(url) : undefined
  }

  function nothingHere(url: string): Failure {
    // decodeURI cannot throw, because the router has already decoded this URL. Scheme and host are removed: a client
    // that uses this service as a proxy sends scheme and host before the path.
    const path = decodeURI(url.replace(/^https?:\/\/[^/?#]*/i, '').split(/[?#]/, 1)[0] ?? '')
    const methods = routes.flatMap(({ pattern, methods }) => (pattern.test(path) ? methods : []))
    return methods.length > 0 ? methodNotAllowed([...new Set(methods)].sort()) : notFound()
  }
}

/**
 * Rejects URLs that the router cannot parse, such as URLs with invalid percent-encoding. For such a URL, no hook has
 * run.
 */
export function rejectBadUrl(
  error: Error,
  request: FastifyRequest,
  reply: FastifyReply,
  handling: ErrorHandling & { requestLog: RequestLog },
) {
  handling.requestLog.track(request, reply)
  // The connection is closed, because the rest of the request was not read.
  reply.headers({ 'x-request-id': request.id, 'cache-control': 'no-store', connection: 'close' })
  reject(error, request, reply, handling)
}

function reject(error: unknown, request: FastifyRequest, reply: FastifyReply, handling: ErrorHandling) {
  const { config } = request.routeOptions
  const failure = toFailure(error, handling)
  if (error instanceof AcquirerError) request.accountKind = error.accountKind
  // A Failure is already in the request's log line, and the acquirer's client has logged an AcquirerError. Errors after
  // the caller has disconnected are too common to be logged.
  const isLogged = error === failure || error instanceof AcquirerError
  if (!isLogged && failure.statusCode >= 500 && !reply.raw.destroyed) {
    // Logs only these fields, because `detail` of a PostgreSQL error contains the row with the customer's data.
    const { name, message, stack, code } = error as Error & { code?: unknown }
    handling.log.error({ id: request.id, error: { name, message, code, stack } }, 'Request failed')
  }
  const failureOf = failure.code === 'unavailable' ? (config?.unavailable ?? failure) : failure
  request.refusal = failureOf.message
  removeHeadersOfBody(reply)
  reply.code(failureOf.statusCode).headers(failureOf.headers)
  const page = config?.errorPage?.(failureOf, request)
  if (page) reply.headers(page.headers).send(page.body)
  else reply.send(fail(failureOf))
}

/** Headers that describe the body of a response that the handler has begun. */
const OF_BODY = ['content-type', 'content-encoding', 'content-disposition', 'content-length', 'etag']

function removeHeadersOfBody(reply: FastifyReply) {
  for (const name of OF_BODY) {
    reply.removeHeader(name)
    // A stream that fails before its first byte has set its headers here.
    reply.raw.removeHeader(name)
  }
  reply.header('cache-control', 'no-store')
}

function toFailure(error: unknown, { isOutage, limits }: ErrorHandling): Failure {
  if (error instanceof Failure) return error
  if (error instanceof AcquirerError) return unavailable()
  switch ((error as { code?: unknown } | null)?.code) {
    case 'FST_BASIC_AUTH_MISSING_OR_BAD_AUTHORIZATION_HEADER':
      return unauthorized()
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return payloadTooLarge(limits.body.bytes)
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return unsupportedMediaType()
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return invalidBody('The length of the body differs from its Content-Length. Send the request again.')
    case 'FST_ERR_BAD_URL':
      return invalidUrl()
    case 'FST_ERR_MAX_PARAM_LENGTH':
      return notFound()
    default:
      return isOutage(error) ? unavailable() : internalError()
  }
}

/**
 * Matches a name, an IPv4 address or an IPv6 literal, with an optional port (RFC 9110, section 7.2). Userinfo and lists
 * do not match.
 */
const HOST = /^(?:[\w.~!$&'()*+;=%-]+|\[[\da-f:.]+(?:%[\w.~%-]+)?\])(?::\d*)?$/i

/**
 * Whether the request has exactly one valid Host header (RFC 9112, section 3.2). HTTP/1.0, which load balancers may use
 * for health checks, needs no Host header.
 */
export function hasProperHost({ url = '', rawHeaders, headers: { host }, httpVersion }: IncomingMessage): boolean {
  // A request target in absolute form, which clients send to proxies, also contains a host (RFC 9112, section 3.2.2).
  const [, authority] = /^https?:\/\/([^/?#]*)/i.exec(url) ?? []
  if (authority !== undefined && !HOST.test(authority)) return false
  if (host === undefined) return httpVersion === '1.0'
  // Reads rawHeaders, which contains every Host header, because `headers` contains only the first Host header.
  const hosts = rawHeaders.filter((name, i) => i % 2 === 0 && name.length === 4 && name.toLowerCase() === 'host')
  return hosts.length === 1 && HOST.test(host)
}
