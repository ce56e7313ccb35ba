import { randomUUID } from 'node:crypto'
import { type Server, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { badRequest, type Failure, headersTooLarge, methodNotAllowed, requestTimeout } from '../errors.ts'
import { fail } from './envelope.ts'
import type { RequestLog } from './request-log.ts'

/** CONNECT and an unknown Expect, which Node.js would answer itself, get an answer with an envelope. */
export function answerAll(server: Server, requestLog: RequestLog) {
  // Handled like any other request, so that error-handler.ts refuses it.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
  server.on('connect', (_request, socket) => {
    // Node.js has removed its own listeners. Without a listener a connection reset would end the process.
    socket.on('error', () => socket.destroy())
    refuse(socket, methodNotAllowed(['GET', 'POST']), requestLog)
  })
}

/** Answers bytes that are no HTTP, and closes the connection, because the start of a next request cannot be found. */
export function refuseBrokenHttp(
  error: Error & { code?: string },
  socket: Duplex & { bytesRead?: number },
  requestLog: RequestLog,
) {
  if (error.code === 'ECONNRESET' || socket.destroyed) return
  // Browsers open connections in advance, and would take an answer for that of their next request. A connection without a
  // single byte is therefore closed without an answer.
  if (socket.bytesRead === 0) socket.destroy()
  else refuse(socket, failureOf(error.code), requestLog)
}

function failureOf(code: string | undefined): Failure {
  if (code === 'HPE_HEADER_OVERFLOW') return headersTooLarge()
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return requestTimeout()
  return badRequest('What arrived is not HTTP/1.1')
}

/**
 * A proxy would take a second answer to a request for that of the next request, which may be another client's. When an answer
 * was begun, or an earlier request is not answered yet, the connection is therefore closed without an answer.
 */
function refuse(socket: Duplex, failure: Failure, requestLog: RequestLog) {
  const latest = requestLog.latestAnswers.get(socket)
  const id = randomUUID()
  const body = JSON.stringify(fail(failure))
  const headers = {
    'content-type': 'application/json; charset=utf-8',
    'content-length': String(Buffer.byteLength(body)),
    'cache-control': 'no-store',
    'x-request-id': id,
    ...failure.headers,
    connection: 'close',
  }
  if (latest && !latest.req.complete && !latest.headersSent) {
    // setHeaders, not writeHead alone: the log reads x-request-id from the response.
    latest
      .setHeaders(new Map(Object.entries(headers)))
      .writeHead(failure.statusCode)
      .end(body)
  } else if (socket.writable && (!latest || (latest.req.complete && latest.writableFinished))) {
    requestLog.noRequest(id, failure.statusCode)
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
    const statusLine = `HTTP/1.1 ${failure.statusCode} ${STATUS_CODES[failure.statusCode]}`
    socket.end([statusLine, ...lines, '', body].join('\r\n'), () => socket.destroy())
  } else {
    socket.destroy()
  }
}
