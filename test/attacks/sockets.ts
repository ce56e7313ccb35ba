import { spawnSync } from 'node:child_process'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

const STATUS_LINE = Buffer.from('HTTP/1.1 ')
const STATUS_DIGITS = 3
/** Interval between two batches of requests. */
const PACE_MS = 10
/** Open files of a process besides its connections. */
const FILES_APART = 500

/**
 * Number of responses by status, over all connections of an attacker. Parses only status lines, to use little
 * processor time.
 */
export type Responses = { counts: Map<string, number> }

export const newResponses = (): Responses => ({ counts: new Map() })

/**
 * Opens a connection and counts its responses; `onResponses` gets the number of responses that started with each chunk.
 */
export function open(
  url: string,
  responses: Responses,
  onResponses: (begun: number) => void = () => undefined,
): Socket {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  socket.setNoDelay()
  // Closing an attacker's connection is correct behaviour of the service.
  socket.on('error', () => socket.destroy())
  socket.on('data', (bytes: Buffer) => {
    const begun = count(bytes, responses)
    if (begun > 0) onResponses(begun)
  })
  return socket
}

function count(bytes: Buffer, { counts }: Responses): number {
  let begun = 0
  for (let at = bytes.indexOf(STATUS_LINE); at >= 0; at = bytes.indexOf(STATUS_LINE, at + STATUS_LINE.length)) {
    const status = bytes.toString('latin1', at + STATUS_LINE.length, at + STATUS_LINE.length + STATUS_DIGITS)
    counts.set(status, (counts.get(status) ?? 0) + 1)
    begun++
  }
  return begun
}

/** Formats the counts, such as `200 × 1999, 409 × 1`. */
export function tally({ counts }: Responses): string {
  const parts = [...counts].sort().map(([status, times]) => `${status} × ${times.toLocaleString('en')}`)
  return parts.join(', ') || 'no response'
}

/** Calls `act` evenly `perSecond` times per second; calls that a busy machine missed are skipped. */
export async function pace(perSecond: number, seconds: number, act: () => void): Promise<void> {
  const startedAt = performance.now()
  for (let slot = 0; slot < (seconds * 1_000) / PACE_MS; slot++) {
    const due =
      Math.floor(((slot + 1) * perSecond * PACE_MS) / 1_000) - Math.floor((slot * perSecond * PACE_MS) / 1_000)
    for (let i = 0; i < due; i++) act()
    const now = performance.now() - startedAt
    if (now > seconds * 1_000) return
    await sleep(Math.max(0, (slot + 1) * PACE_MS - now))
  }
}

/** Calls `act` `count` times within about `seconds`; later on a busy machine, but completely. */
export async function spread(count: number, seconds: number, act: () => void): Promise<void> {
  const startedAt = performance.now()
  for (let done = 0; done < count; ) {
    await sleep(PACE_MS)
    const due = Math.min(count, ((performance.now() - startedAt) / (seconds * 1_000)) * count)
    for (; done < due; done++) act()
  }
}

/**
 * A pool of connections: `next` returns a free one, or undefined while all wait for a response. Closed connections are
 * replaced.
 */
export function connectionsOf(url: string, count: number, responses: Responses) {
  const free: Socket[] = []
  const all = new Set<Socket>()
  const add = () => {
    const socket = open(url, responses, () => free.push(socket))
    all.add(socket)
    free.push(socket)
    socket.once('close', () => all.delete(socket))
  }
  return {
    next(): Socket | undefined {
      for (;;) {
        if (free.length === 0 && all.size < count) add()
        const socket = free.pop()
        if (socket === undefined || !socket.destroyed) return socket
      }
    },
    close() {
      for (const socket of all) socket.destroy()
    },
  }
}

/** Formats a request as sent on the wire. */
export function wire(
  url: string,
  method: 'GET' | 'POST',
  path: string,
  headers: Record<string, string> = {},
  body = '',
): string {
  const lengths: Record<string, string> = method === 'POST' ? { 'content-length': String(Buffer.byteLength(body)) } : {}
  const lines = Object.entries({ host: new URL(url).host, ...lengths, ...headers })
  return `${method} ${path} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${body}`
}

export const stillOpen = (sockets: Socket[]) => sockets.filter(({ destroyed }) => !destroyed).length

/** Number of connections for which this process, and a service with the same `ulimit -n`, can open files. */
export function mostConnections(): number {
  const files = Number(spawnSync('sh', ['-c', 'ulimit -n'], { encoding: 'utf8' }).stdout) || Infinity
  return files - FILES_APART
}
