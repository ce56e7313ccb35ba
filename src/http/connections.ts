import { readFileSync } from 'node:fs'
import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Limits } from '../limits.ts'

/** Open files of a process on systems without /proc: the usual minimum of POSIX systems. */
const USUAL_OPEN_FILES = 1_024

/** What we keep of a connection beside what Node.js knows. */
export type Connection = {
  /** Responses that are not finished, in the order of their requests. */
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
  // error-handler.ts counts them: Node.js 20 would drop the rest in silence, and 24 calls them too large.
  server.maxHeadersCount = 0
  server.setTimeout(limits.stalledMs)
  const connectionLimit = Math.min(limits.connections, fileLimit(limits.filesKeptFree))
  const moveToEnd = limitConnections(server, connectionLimit, limits.crowdedShare)
  return server

  function serveWith(handle: RequestListener): RequestListener {
    return (request, response) => {
      const { socket } = request
      // Node.js goes on to parse pipelined requests behind the one for which the connection was closed.
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
 * documented way to stop that; if this one disappears, only the time is lost.
 */
function stopParsing(socket: Duplex & { parser?: { onIncoming?: () => number } | null }) {
  const FAIL = -1
  if (socket.parser?.onIncoming) socket.parser.onIncoming = () => FAIL
}

/**
 * When a chunked request is answered early, such as by 404, a fault in the rest of its body ends the connection. A proxy may
 * have lent that connection to another client meanwhile, whose request would be lost, so it must not be reused after such an
 * answer. With a Content-Length nothing in the rest can be wrong, and a chunked body that was read keeps its connection.
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
      // Node.js closes only the response whose turn it is. The handlers of those behind it must learn too that the
      // client has left.
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
      // Otherwise 10,000 open pay pages would be looked at for every new connection.
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

/** The soft limit of open files, which Node.js raises to the hard one at start and has no function to read. */
function openFilesLimit(): number {
  try {
    const [, soft] = /^Max open files\s+(\d+|unlimited)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    if (soft !== undefined) return soft === 'unlimited' ? Number.POSITIVE_INFINITY : Number(soft)
  } catch {
    // Not Linux.
  }
  return USUAL_OPEN_FILES
}
