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
    /** Makes a page in place of the envelope, for addresses that people open in a browser. */
    refusalPage?: (failure: Failure, request: FastifyRequest) => { headers: Record<string, string>; body: string }
    /** The route's own 503, for callers who have to do more than repeat the request. */
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
 * Answers errors with an envelope: thrown by handlers, for unknown addresses and methods, and Fastify's own refusals. Bytes that
 * are no request are answered in broken-http.ts. Returns the function that finds the fault of a request before its body is read.
 */
export function registerErrorHandling(app: FastifyInstance, handling: ErrorHandling) {
  const routes: { pattern: RegExp; methods: string[] }[] = []
  app.addHook('onRoute', ({ method, url }) => {
    // `:orderId` stands for one part of a path, without a slash.
    const pattern = new RegExp(`^${url.replace(/[.*]/g, '\\$&').replace(/:\w+/g, '[^/]+')}$`)
    routes.push({ pattern, methods: [method].flat() })
  })
  app.setErrorHandler((error, request, reply) => refuse(error, request, reply, handling))
  app.setNotFoundHandler((request) => {
    throw nothingHere(request.url)
  })
  return ({ raw, is404, url }: FastifyRequest): Failure | undefined => {
    // rawHeaders contains every name and value in turn.
    const { headers } = handling.limits.connections
    if (raw.rawHeaders.length > 2 * headers) return tooManyHeaders(headers)
    if (!hasProperHost(raw)) return improperHost()
    if (raw.headers.expect !== undefined && !/100-continue/i.test(raw.headers.expect)) return expectationFailed()
    return is404 ? nothingHere(url) : undefined
  }

  function nothingHere(url: string): Failure {
    // decodeURI cannot throw, because the router has already decoded this address. A client that takes us for a proxy sends scheme
    // and host with the path.
    const path = decodeURI(url.replace(/^https?:\/\/[^/?#]*/i, '').split(/[?#]/, 1)[0] ?? '')
    const methods = routes.flatMap(({ pattern, methods }) => (pattern.test(path) ? methods : []))
    return methods.length > 0 ? methodNotAllowed([...new Set(methods)].sort()) : notFound()
  }
}

/** Answers addresses that the router refuses before any hook has run, such as broken percent-encoding. */
export function refuseBadUrl(error: Error, request: FastifyRequest, reply: FastifyReply, handling: ErrorHandling) {
  handling.requestLog.track(request, reply)
  // The connection is closed, because the rest of the request was not read.
  reply.headers({ 'x-request-id': request.id, 'cache-control': 'no-store', connection: 'close' })
  refuse(error, request, reply, handling)
}

function refuse(error: unknown, request: FastifyRequest, reply: FastifyReply, handling: ErrorHandling) {
  const { config } = request.routeOptions
  const failure = toFailure(error, handling)
  // A Failure is in the request's log line already, and an AcquirerError was logged by the acquirer's client. Errors after the
  // caller has left are too common for a line.
  const isLogged = error === failure || error instanceof AcquirerError
  if (!isLogged && failure.statusCode >= 500 && !reply.raw.destroyed) {
    // Only these fields, because PostgreSQL's `detail` contains the row with the customer's data.
    const { name, message, stack, code } = error as Error & { code?: unknown }
    handling.log.error({ id: request.id, error: { name, message, code, stack } }, 'request failed')
  }
  const answered = failure.code === 'unavailable' ? (config?.unavailable ?? failure) : failure
  request.refusal = answered.message
  reply.code(answered.statusCode).headers(answered.headers)
  const page = config?.refusalPage?.(answered, request)
  if (page) reply.headers(page.headers).send(page.body)
  else reply.send(fail(answered))
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

/** A name, an IPv4 address or an IPv6 literal, and an optional port (RFC 9110, section 7.2), without userinfo or lists. */
const HOST = /^(?:[\w.~!$&'()*+;=%-]+|\[[\da-f:.]+(?:%[\w.~%-]+)?\])(?::\d*)?$/i

/** RFC 9112, section 3.2: one valid Host. HTTP/1.0, which balancers may use for health checks, needs none. */
function hasProperHost({ url = '', rawHeaders, headers: { host }, httpVersion }: IncomingMessage): boolean {
  // RFC 9112, section 3.2.2: an address in absolute form, for a proxy, contains a host too.
  const [, authority] = /^https?:\/\/([^/?#]*)/i.exec(url) ?? []
  if (authority !== undefined && !HOST.test(authority)) return false
  if (host === undefined) return httpVersion === '1.0'
  // rawHeaders contains every Host header, `headers` only the first one.
  const hosts = rawHeaders.filter((name, i) => i % 2 === 0 && name.length === 4 && name.toLowerCase() === 'host')
  return hosts.length === 1 && HOST.test(host)
}
