import type { IncomingMessage } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import {
  AcquirerError,
  badRequest,
  expectationFailed,
  Failure,
  improperHost,
  internalError,
  methodNotAllowed,
  notFound,
  payloadTooLarge,
  tooManyHeaders,
  unauthorized,
  unavailable,
  unsupportedMediaType,
} from '../errors.ts'
import type { Limits } from '../limits.ts'
import { fail } from './envelope.ts'
import type { RequestLog } from './request-log.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Makes the page that is sent instead of an envelope, for addresses that people open in a browser. */
    refusalPage?: (failure: Failure, request: FastifyRequest) => { headers: Record<string, string>; body: string }
    /** The route's own 503, where its callers have more to do than to repeat the request. */
    unavailable?: Failure
  }
}

export type ErrorHandling = {
  log: Logger
  requestLog: RequestLog
  isOutage: (error: unknown) => boolean
  limits: Pick<Limits, 'connections' | 'body'>
}

/**
 * Answers everything that is not a success with an envelope: what handlers throw, unknown addresses and methods, and
 * Fastify's own refusals. Bytes that never become a request of Fastify are in broken-http.ts. Returns what is wrong with a
 * request whose body has not been read.
 */
export function registerErrorHandling(app: FastifyInstance, handling: ErrorHandling) {
  const routes: { pattern: RegExp; methods: string[] }[] = []
  app.addHook('onRoute', ({ method, url }) => {
    // A parameter such as `:orderId` matches one part of a path, without a slash.
    const pattern = new RegExp(`^${url.replace(/[.*]/g, '\\$&').replace(/:\w+/g, '[^/]+')}$`)
    routes.push({ pattern, methods: [method].flat() })
  })
  app.setErrorHandler((error, request, reply) => refuse(error, request, reply, handling))
  app.setNotFoundHandler((request) => {
    throw nothingHere(request.url)
  })
  return ({ raw, is404, url }: FastifyRequest): Failure | undefined => {
    // rawHeaders holds every name and value in turn; `headers` silently lacks those beyond the limit.
    const { headers } = handling.limits.connections
    if (raw.rawHeaders.length > 2 * headers) return tooManyHeaders(headers)
    if (!hasProperHost(raw)) return improperHost()
    if (raw.headers.expect !== undefined && !/100-continue/i.test(raw.headers.expect)) return expectationFailed()
    return is404 ? nothingHere(url) : undefined
  }

  function nothingHere(url: string): Failure {
    // decodeURI cannot throw here, because the router has already decoded this address. Scheme and host are cut off: a
    // client that takes us for a proxy sends them with the path.
    const path = decodeURI(url.replace(/^https?:\/\/[^/?#]*/i, '').split(/[?#]/, 1)[0] ?? '')
    const methods = routes.flatMap(({ pattern, methods }) => (pattern.test(path) ? methods : []))
    return methods.length > 0 ? methodNotAllowed([...new Set(methods)].sort()) : notFound()
  }
}

/** Answers what the router refuses before any hook has run, such as broken percent-encoding in the address. */
export function refuseBadUrl(error: Error, request: FastifyRequest, reply: FastifyReply, handling: ErrorHandling) {
  handling.requestLog.track(request, reply)
  // The connection is closed, because the rest of this request has not been read.
  reply.headers({ 'x-request-id': request.id, 'cache-control': 'no-store', connection: 'close' })
  refuse(error, request, reply, handling)
}

function refuse(error: unknown, request: FastifyRequest, reply: FastifyReply, handling: ErrorHandling) {
  const { config } = request.routeOptions
  const failure = toFailure(error, handling)
  // A Failure is already in the request's log line, and an AcquirerError was logged by the acquirer's client. Errors after the
  // caller has left are common and not worth a line.
  const isLogged = error === failure || error instanceof AcquirerError
  if (!isLogged && failure.statusCode >= 500 && !reply.raw.destroyed) {
    // Not the whole error: PostgreSQL's `detail` contains the row, with the customer's data.
    const { name, message, stack, code } = error as Error & { code?: unknown }
    handling.log.error({ id: request.id, error: { name, message, code, stack } }, 'request failed')
  }
  const told = failure.code === 'unavailable' ? (config?.unavailable ?? failure) : failure
  request.refusal = told.message
  reply.code(told.statusCode).headers(told.headers)
  const page = config?.refusalPage?.(told, request)
  if (page) reply.headers(page.headers).send(page.body)
  else reply.send(fail(told))
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
      return badRequest('The body is not as long as its Content-Length says')
    case 'FST_ERR_BAD_URL':
      return badRequest('The address is not valid percent-encoding')
    case 'FST_ERR_MAX_PARAM_LENGTH':
      return notFound()
    default:
      return isOutage(error) ? unavailable() : internalError()
  }
}

/**
 * The value of a Host header: a name, an IPv4 address or an IPv6 literal, then an optional port (RFC 9110, section
 * 7.2). Userinfo and lists are refused.
 */
const HOST = /^(?:[\w.~!$&'()*+;=%-]+|\[[\da-f:.]+(?:%[\w.~%-]+)?\])(?::\d*)?$/i

/** RFC 9112, section 3.2: one Host, and a valid one. HTTP/1.0, which balancers may use for health checks, may have none. */
function hasProperHost({ url = '', rawHeaders, headers: { host }, httpVersion }: IncomingMessage): boolean {
  // An address in absolute form, as its client sends it to a proxy, names a host too: RFC 9112, section 3.2.2.
  const [, authority] = /^https?:\/\/([^/?#]*)/i.exec(url) ?? []
  if (authority !== undefined && !HOST.test(authority)) return false
  if (host === undefined) return httpVersion === '1.0'
  // rawHeaders holds every Host header, `headers` only the first one.
  const hosts = rawHeaders.filter((name, i) => i % 2 === 0 && name.length === 4 && name.toLowerCase() === 'host')
  return hosts.length === 1 && HOST.test(host)
}
