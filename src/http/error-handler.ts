import type { IncomingMessage, ServerResponse } from 'node:http'
import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import {
  badRequest,
  expectationFailed,
  Failure,
  headersTooLarge,
  internalError,
  methodNotAllowed,
  notFound,
  payloadTooLarge,
  requestTimeout,
  tooManyHeaders,
  unauthorized,
  unavailable,
  unsupportedMediaType,
} from '../errors.ts'
import { fail } from './envelope.ts'
import { BODY_LIMIT_BYTES } from './input.ts'
import { newRequestId } from './request-id.ts'
import type { RequestLog } from './request-log.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** For addresses that people open in a browser: what they read instead of an envelope. */
    refusalPage?: { headers: Record<string, string>; html: (text: string) => string }
  }
}

export type ErrorHandling = { log: Logger; requestLog: RequestLog; isOutage: (error: unknown) => boolean }

/** More than browsers and proxies together send. Node.js would leave out what is beyond a limit, an Idempotency-Key say, and go on. */
const HEADER_LIMIT = 100

/**
 * Leads every exit of `app` that is not a success into the envelope: what handlers throw, unknown addresses and
 * methods, the framework's refusals, and bytes that are no HTTP.
 */
export function registerErrorHandling(app: FastifyInstance, handling: ErrorHandling) {
  const methodsOf = new Map<string, Set<string>>()
  app.addHook('onRoute', ({ method, url }) => {
    const methods = methodsOf.get(url) ?? new Set()
    for (const name of [method].flat()) methods.add(name)
    methodsOf.set(url, methods)
  })
  app.server.maxHeadersCount = HEADER_LIMIT
  app.addHook('onRequest', (request, _reply, done) => {
    // Names and values in turn; they are more than the limit's as soon as anything was left out.
    if (request.raw.rawHeaders.length > 2 * HEADER_LIMIT) return done(tooManyHeaders(HEADER_LIMIT))
    // Here and not in a handler, before which the body would be read: nobody's 16 KiB for an address that is not there.
    if (request.is404) return done(nothingHere(request.url))
    const hostless = request.headers.host === undefined && request.raw.httpVersion === '1.1'
    done(hostless ? badRequest('Send a Host header') : undefined)
  })

  app.setErrorHandler((error, request, reply) => refuse(error, request, reply, handling))
  app.setNotFoundHandler((request) => {
    throw nothingHere(request.url)
  })
  app.server.on('checkExpectation', (_request: IncomingMessage, response: ServerResponse) => {
    const answer = rawAnswer(expectationFailed())
    handling.requestLog.noRequest(answer.id, answer.statusCode)
    refuseOn(response, answer)
  })
  // Without a listener Node.js closes the connection of a CONNECT without a word.
  app.server.on('connect', (_request: IncomingMessage, socket: Duplex) => {
    // Node.js has taken its own listeners off; without one, a client that resets its connection would end the process.
    socket.on('error', () => socket.destroy())
    refuseRaw(socket, methodNotAllowed(['GET', 'POST']), handling)
  })

  function nothingHere(url: string): Failure {
    // The router has decoded the address already, so it can be decoded.
    // As its client sends it to a proxy, an address may begin with scheme and host.
    const path = decodeURI(url.replace(/^https?:\/\/[^/?#]*/i, '').split(/[?#]/, 1)[0] ?? '')
    for (const [pattern, methods] of methodsOf) {
      if (matches(pattern, path)) return methodNotAllowed([...methods].sort())
    }
    return notFound()
  }
}

/** Answers what the router refuses before any hook has run, such as broken percent-encoding in the address. */
export function refuseBadUrl(error: Error, request: FastifyRequest, reply: FastifyReply, handling: ErrorHandling) {
  handling.requestLog.follow(request, reply)
  reply.header('x-request-id', request.id).header('cache-control', 'no-store')
  refuse(error, request, reply, handling)
}

/** Answers bytes that are no request, or not the rest of one; the connection is closed, since nobody knows where the next one starts. */
export function refuseBrokenHttp(error: Error & { code?: string }, socket: Duplex, handling: ErrorHandling) {
  if (error.code === 'ECONNRESET' || socket.destroyed) return
  // Node.js keeps the answer under way here. What is broken after a whole request must not become that request's answer.
  const underWay = (socket as Duplex & { _httpMessage?: ServerResponse | null })._httpMessage
  const failure = brokenHttpFailure(error.code)
  if (!underWay) refuseRaw(socket, failure, handling)
  else if (underWay.headersSent || underWay.req.complete) socket.destroy()
  else refuseOn(underWay, rawAnswer(failure))
}

function brokenHttpFailure(code: string | undefined): Failure {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return headersTooLarge()
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return payloadTooLarge(BODY_LIMIT_BYTES)
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return requestTimeout()
    default:
      return badRequest('What arrived is not HTTP/1.1')
  }
}

function refuse(error: unknown, request: FastifyRequest, reply: FastifyReply, { log, isOutage }: ErrorHandling) {
  const failure = toFailure(error, isOutage)
  // A refusal of ours, such as 503 beyond a limit, stands in the request's own line. And a client that went away ends its
  // request in some error for which nobody waits.
  if (error !== failure && failure.statusCode >= 500 && !reply.raw.destroyed) {
    // Never the whole error: what PostgreSQL adds in `detail` carries the row.
    const { name, message, stack, code } = error as Error & { code?: unknown }
    log.error({ id: request.id, error: { name, message, code, stack } }, 'request failed')
  }
  reply.code(failure.statusCode).headers(failure.headers)
  const page = request.routeOptions.config?.refusalPage
  if (page) reply.headers(page.headers).send(page.html(failure.message))
  else reply.send(fail(failure))
}

function toFailure(error: unknown, isOutage: ErrorHandling['isOutage']): Failure {
  if (error instanceof Failure) return error
  switch ((error as { code?: unknown } | null)?.code) {
    case 'FST_BASIC_AUTH_MISSING_OR_BAD_AUTHORIZATION_HEADER':
      return unauthorized()
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return payloadTooLarge(BODY_LIMIT_BYTES)
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

type RawAnswer = { id: string; statusCode: number; headers: Record<string, string>; body: string }

/** Through the response, which waits for its turn: that of a pipelined request has no socket yet. */
function refuseOn(response: ServerResponse, { statusCode, headers, body }: RawAnswer) {
  // Set and not only written, so that the log can name the x-request-id that was sent.
  response
    .setHeaders(new Map(Object.entries(headers)))
    .writeHead(statusCode)
    .end(body)
}

function refuseRaw(socket: Duplex, failure: Failure, { requestLog }: ErrorHandling) {
  if (!socket.writable) {
    socket.destroy()
    return
  }
  const { id, statusCode, headers, body } = rawAnswer(failure)
  requestLog.noRequest(id, statusCode)
  const head = [
    `HTTP/1.1 ${statusCode} ${STATUS_CODES[statusCode]}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy())
}

/** What is answered past the framework; the connection is closed after it. */
function rawAnswer(failure: Failure): RawAnswer {
  const id = newRequestId()
  const body = JSON.stringify(fail(failure))
  const headers = {
    'content-type': 'application/json; charset=utf-8',
    'content-length': String(Buffer.byteLength(body)),
    'cache-control': 'no-store',
    'x-request-id': id,
    ...failure.headers,
    connection: 'close',
  }
  return { id, statusCode: failure.statusCode, headers, body }
}

/** Whether `path` is an address of the route `pattern`, whose parameters fill one segment each. */
function matches(pattern: string, path: string): boolean {
  const want = pattern.split('/')
  const have = path.split('/')
  return (
    want.length === have.length && want.every((part, i) => (part.startsWith(':') ? have[i] !== '' : part === have[i]))
  )
}
