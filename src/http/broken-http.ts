import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import {
  badRequest,
  expectationFailed,
  type Failure,
  headersTooLarge,
  methodNotAllowed,
  payloadTooLarge,
  requestTimeout,
} from '../errors.ts'
import { connectionOf } from './connections.ts'
import { fail } from './envelope.ts'
import { newRequestId } from './request-id.ts'
import type { RequestLog } from './request-log.ts'

type Handling = { requestLog: RequestLog; bodyLimitBytes: number }

/**
 * Answers bytes that are not a request, or not the rest of one, and closes the connection, because the start of the next
 * request cannot be found. A request gets at most one answer: where one was begun, the connection is closed without another.
 * A proxy would take a second answer for that of the next request, which may be another client's.
 */
export function refuseBrokenHttp(
  error: Error & { code?: string },
  socket: Duplex & { bytesRead?: number },
  handling: Handling,
) {
  if (error.code === 'ECONNRESET' || socket.destroyed) return
  const { last, underWay } = connectionOf(socket)
  if (last && !last.req.complete) {
    // Through its own response, which waits behind those of earlier requests.
    if (last.headersSent) socket.destroy()
    else refuseOn(last, rawAnswer(brokenHttpFailure(error.code, handling)))
  } else if (underWay.size > 0 || socket.bytesRead === 0) {
    // The fault comes after a complete request, whose answer it must not become; or nothing was sent at all.
    socket.destroy()
  } else {
    refuseRaw(socket, brokenHttpFailure(error.code, handling), handling)
  }
}

/** Answers a request with an Expect other than 100-continue, before anything else looks at it. */
export function refuseExpectation({ requestLog }: Pick<Handling, 'requestLog'>): RequestListener {
  return (_request, response) => {
    const answer = rawAnswer(expectationFailed())
    requestLog.noRequest(answer.id, answer.statusCode)
    refuseOn(response, answer)
  }
}

/** Answers CONNECT. Without a listener Node.js closes the connection without a word. */
export function refuseConnect(handling: Pick<Handling, 'requestLog'>) {
  return (_request: IncomingMessage, socket: Duplex) => {
    // Node.js has removed its own listeners; without one, a connection reset would end the process.
    socket.on('error', () => socket.destroy())
    if (connectionOf(socket).underWay.size > 0) socket.destroy()
    else refuseRaw(socket, methodNotAllowed(['GET', 'POST']), handling)
  }
}

function brokenHttpFailure(code: string | undefined, { bodyLimitBytes }: Handling): Failure {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return headersTooLarge()
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return payloadTooLarge(bodyLimitBytes)
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return requestTimeout()
    default:
      return badRequest('What arrived is not HTTP/1.1')
  }
}

type RawAnswer = { id: string; statusCode: number; headers: Record<string, string>; body: string }

/** Through the response, which waits for its turn: that of a pipelined request has no socket yet. */
function refuseOn(response: ServerResponse, { statusCode, headers, body }: RawAnswer) {
  // setHeaders, not writeHead alone: the log reads x-request-id from the response.
  response
    .setHeaders(new Map(Object.entries(headers)))
    .writeHead(statusCode)
    .end(body)
}

function refuseRaw(socket: Duplex, failure: Failure, { requestLog }: Pick<Handling, 'requestLog'>) {
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

/** An answer written without Fastify; the connection is closed after it. */
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
