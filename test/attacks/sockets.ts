import { spawnSync } from 'node:child_process'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

const STATUS_LINE = Buffer.from('HTTP/1.1 ')
const STATUS_DIGITS = 3
/** Between two looks at how many requests are due. */
const PACE_MS = 10
/** What a process has open beside its connections. */
const FILES_APART = 500

/** How often each status came back, over all connections of an attacker. Cheap: nothing is parsed but status lines. */
export type Answers = { counts: Map<string, number> }

export const newAnswers = (): Answers => ({ counts: new Map() })

/** A connection whose answers are counted; `onAnswers` is told how many have begun with each piece that arrives. */
export function open(url: string, answers: Answers, onAnswers: (begun: number) => void = () => undefined): Socket {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  socket.setNoDelay()
  // A service that closes the connection of an attacker does well.
  socket.on('error', () => socket.destroy())
  socket.on('data', (bytes: Buffer) => {
    const begun = count(bytes, answers)
    if (begun > 0) onAnswers(begun)
  })
  return socket
}

function count(bytes: Buffer, { counts }: Answers): number {
  let begun = 0
  for (let at = bytes.indexOf(STATUS_LINE); at >= 0; at = bytes.indexOf(STATUS_LINE, at + STATUS_LINE.length)) {
    const status = bytes.toString('latin1', at + STATUS_LINE.length, at + STATUS_LINE.length + STATUS_DIGITS)
    counts.set(status, (counts.get(status) ?? 0) + 1)
    begun++
  }
  return begun
}

/** Such as `200 × 1999, 409 × 1`. */
export function tally({ counts }: Answers): string {
  const parts = [...counts].sort().map(([status, times]) => `${status} × ${times.toLocaleString('en')}`)
  return parts.join(', ') || 'no answer'
}

/** Calls `act` `perSecond` times a second, evenly, for so long; what a busy machine was late with is left out. */
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

/** Calls `act` `count` times within about so many seconds; on a busy machine later, but all of them. */
export async function spread(count: number, seconds: number, act: () => void): Promise<void> {
  const startedAt = performance.now()
  for (let done = 0; done < count; ) {
    await sleep(PACE_MS)
    const due = Math.min(count, ((performance.now() - startedAt) / (seconds * 1_000)) * count)
    for (; done < due; done++) act()
  }
}

/**
 * Connections that take turns: `next` is a free one, or undefined when all wait for an answer. One that was closed is
 * made anew.
 */
export function connectionsOf(url: string, count: number, answers: Answers) {
  const free: Socket[] = []
  const all = new Set<Socket>()
  const add = () => {
    const socket = open(url, answers, () => free.push(socket))
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

/** A request as it goes over the wire. */
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

/** How many sockets are still open. */
export const stillOpen = (sockets: Socket[]) => sockets.filter(({ destroyed }) => !destroyed).length

/** As many connections as this process, and a service with the same `ulimit -n`, have files for. */
export function mostConnections(): number {
  const files = Number(spawnSync('sh', ['-c', 'ulimit -n'], { encoding: 'utf8' }).stdout) || Infinity
  return files - FILES_APART
}
