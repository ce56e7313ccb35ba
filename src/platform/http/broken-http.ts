import { randomUUID } from 'node:crypto'
import { type Server, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { ConnectionError } from 'fastify'
import { type Failure, headersTooLarge, invalidHttp, methodNotAllowed, requestTimeout } from '../../errors.ts'
import { fail } from './envelope.ts'
import type { RequestLog } from './request-log.ts'

/**
 * Responds to CONNECT and to an unknown Expect header with the API's JSON envelope. Node.js' own response would have no
 * envelope.
 */
export function respondAll(server: Server, requestLog: RequestLog) {
  // A request with an unknown Expect header is passed on like any other request, so that error-handler.ts rejects the
  // request.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
  server.on('connect', (_request, socket) => {
    // On CONNECT, Node.js removes its own listeners. Without an error listener, a connection reset would terminate the
    // process.
    socket.on('error', () => socket.destroy())
    reject(socket, methodNotAllowed(['GET', 'POST']), requestLog)
  })
}

/** Rejects bytes that are not HTTP and closes the connection, because the start of the next request cannot be found. */
export function rejectBrokenHttp(error: ConnectionError, socket: Socket, requestLog: RequestLog) {
  if (error.code === 'ECONNRESET' || socket.destroyed) return
  // A connection that sent no byte is closed without a response, because browsers open connections in advance and would
  // read this response as the response to their next request.
  if (socket.bytesRead === 0) socket.destroy()
  else reject(socket, failureOf(error.code), requestLog)
}

function failureOf(code: string | undefined): Failure {
  if (code === 'HPE_HEADER_OVERFLOW') return headersTooLarge()
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return requestTimeout()
  return invalidHttp()
}

/**
 * Sends `failure`. If a response has begun, or an earlier request still waits for a response, the connection is only
 * closed: a proxy would read a second response as the response to the next request, possibly from another client.
 */
function reject(socket: Duplex, failure: Failure, requestLog: RequestLog) {
  const latest = requestLog.latestResponses.get(socket)
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
    // Uses setHeaders because the request log reads x-request-id from the response, and writeHead alone does not store
    // headers.
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
