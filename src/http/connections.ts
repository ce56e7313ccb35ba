import { readFileSync } from 'node:fs'
import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Limits } from '../limits.ts'

/** Open files of a process where the system does not tell: what is usual on POSIX systems at least. */
const USUAL_OPEN_FILES = 1_024

/** What is known of a connection beyond what Node.js tells. */
export type Connection = {
  /** Answers that are not over yet, in the order of their requests. */
  underWay: Set<ServerResponse>
  /** The answer to the latest request whose headers have come. */
  last: ServerResponse | undefined
  /** Whether an answer of unknown length is under way. */
  isStreaming: boolean
}

const connections = new WeakMap<Duplex, Connection>()

export function connectionOf(socket: Duplex): Connection {
  const known = connections.get(socket)
  if (known) return known
  const connection = { underWay: new Set<ServerResponse>(), last: undefined, isStreaming: false }
  connections.set(socket, connection)
  return connection
}

/**
 * Keeps the answers to pipelined requests from waiting in memory behind a stream, such as the events of a pay page, which may
 * last for hours: the connection is closed when anything else is under way on it.
 */
export function streamAlone(response: ServerResponse) {
  const connection = connectionOf(response.req.socket)
  connection.isStreaming = true
  response.once('close', () => {
    connection.isStreaming = false
  })
  if (connection.underWay.size > 1) response.req.socket.destroy()
}

export type Handlers = {
  request: RequestListener
  /** For an Expect that is not 100-continue. */
  unknownExpectation: RequestListener
}

/** An HTTP server with a limit on everything that a connection can hold. */
export function createHttpServer({ request, unknownExpectation }: Handlers, limits: Limits['connections']): Server {
  const server = createServer(
    {
      maxHeaderSize: limits.headersBytes,
      // A missing Host would be answered by Node.js without an envelope; error-handler.ts refuses it.
      requireHostHeader: false,
      requestTimeout: limits.requestMs,
      // Node.js lets the longer of the two be the limit of the whole request, and by itself looks every 30 s only.
      headersTimeout: limits.requestMs,
      connectionsCheckingInterval: limits.checkIntervalMs,
      keepAliveTimeout: limits.keepAliveMs,
    },
    serveWith(request),
  )
  server.on('checkExpectation', serveWith(unknownExpectation))
  server.maxHeadersCount = limits.headers
  server.setTimeout(limits.stalledMs)
  const connectionLimit = Math.min(limits.connections, fileLimit(limits.filesKeptFree))
  const moveToEnd = limitConnections(server, connectionLimit, limits.crowdedShare)
  return server

  function serveWith(handle: RequestListener): RequestListener {
    return (request, response) => {
      const { socket } = request
      // A request may come to light behind the one for which its connection was closed.
      if (socket.destroyed) return
      const connection = connectionOf(socket)
      const { underWay } = connection
      if (underWay.size >= limits.requestsUnderWay || connection.isStreaming) {
        stopParsing(socket)
        socket.destroy()
        return
      }
      connection.last = response
      underWay.add(response)
      moveToEnd(socket)
      response.once('close', () => {
        underWay.delete(response)
        moveToEnd(socket)
      })
      closeUnlessReadToItsEnd(response)
      handle(request, response)
    }
  }
}

/**
 * A closed connection's last 64 KiB would still be parsed, about 1,400 requests and 90 ms that nobody needs. Node.js has no
 * official way to end that; were this one gone, only the time would be lost.
 */
function stopParsing(socket: Duplex & { parser?: { onIncoming?: () => number } | null }) {
  const FAIL = -1
  if (socket.parser?.onIncoming) socket.parser.onIncoming = () => FAIL
}

/**
 * What is broken in the rest of a body comes to light after an early answer, such as 404, and ends the connection. A proxy
 * may have lent it to another client by then, whose request would be lost: after such an answer nobody must reuse it.
 * With a Content-Length nothing can be broken in the rest, and a chunked body that was read keeps its connection.
 */
function closeUnlessReadToItsEnd(response: ServerResponse) {
  const { req: request, shouldKeepAlive } = response
  if (request.headers['transfer-encoding'] === undefined) return
  response.shouldKeepAlive = false
  request.once('end', () => {
    response.shouldKeepAlive = shouldKeepAlive
  })
}

/**
 * At most `limit` connections; one more is closed at once. Before it comes to that, the one that has waited for its client
 * for longest gives its place, so that nobody is kept out by clients that are silent, ask once a minute, never send the body
 * of their request or never read their answer. Returns what has to be called when a request begins and when it is over.
 */
function limitConnections(server: Server, limit: number, crowdedShare: number) {
  // In the order in which their latest request came or was over.
  const sockets = new Set<Duplex>()
  server.maxConnections = limit
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.once('close', () => {
      sockets.delete(socket)
      // Node.js closes the answer whose turn it is; of those behind it nobody would ever learn that their client is gone.
      for (const response of connectionOf(socket).underWay) {
        if (!response.socket) response.destroy().emit('close')
      }
    })
    if (sockets.size > limit * crowdedShare) longestWaiting()?.destroy()
  })

  function longestWaiting(): Duplex | undefined {
    let unseen = sockets.size
    for (const socket of sockets) {
      if (waitsForItsClient(socket)) return socket
      if (--unseen === 0) break
      // Else 10,000 open pay pages would be looked at again for every new connection.
      moveToEnd(socket)
    }
    return undefined
  }

  function moveToEnd(socket: Duplex) {
    if (sockets.delete(socket)) sockets.add(socket)
  }

  return moveToEnd
}

/** Whether nothing can be done for a connection before its client asks, sends the rest of a body or reads an answer. */
function waitsForItsClient(socket: Duplex): boolean {
  for (const response of connectionOf(socket).underWay) {
    if (response.req.complete && !response.writableEnded) return false
  }
  return true
}

/** How many connections the process may have open besides `keptFree` files, or half of all files if they are few. */
function fileLimit(keptFree: number): number {
  const files = openFilesLimit()
  return files - Math.min(keptFree, Math.floor(files / 2))
}

/** Node.js raises the soft limit to the hard one when it starts, and has no way to ask for it. */
function openFilesLimit(): number {
  try {
    const [, soft] = /^Max open files\s+(\d+|unlimited)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    if (soft !== undefined) return soft === 'unlimited' ? Number.POSITIVE_INFINITY : Number(soft)
  } catch {
    // No Linux.
  }
  return USUAL_OPEN_FILES
}
