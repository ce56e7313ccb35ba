import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { startLoad } from '../../support/load.ts'
import type { FormRequest } from '../../support/requests.ts'
import type { ServerProcess } from '../../support/server-process.ts'
import { longList } from '../../support/settlements.ts'
import { trickle } from '../../support/slow-sender.ts'
import { newPartner } from '../../support/tenants.ts'
import { poolConnections } from '../metrics-reader.ts'
import { conclude, type Stage, setScene, startService } from '../stage.ts'
import { type Finding, ms } from '../verdict.ts'

const SENDERS = 100
/** The number of connections for long lists. */
const READERS = 4
/** The service allows 10 s per request and checks every second; the rest is for a busy machine. */
const SENDER_LIMIT_MS = 14_000
/**
 * Socket buffers accept bytes for up to 60 s; then the service cuts the reader off after 60 s, checked every 2.5 s.
 */
const READER_LIMIT_MS = 130_000
const POLL_MS = 500
/** More rows than the buffers between PostgreSQL and a client that reads nothing can store. */
const ROWS = 100_000

/** When the service closed a slow connection, and its response until then. */
type End = { afterMs: number; response: string }

/** Clients that send headers or bodies byte by byte, and readers that read nothing, during the usual load. */
export async function slowClients({ postgres }: Stage): Promise<Finding[]> {
  const scene = await setScene(postgres, 'slow', ROWS)
  const { url, db, tenant } = scene
  const { mid } = tenant.merchant
  // Each partner may read one long list at a time.
  const partners = await Promise.all(Array.from({ length: READERS }, () => newPartner(db, mid)))
  const service = await startService(url)
  const load = startLoad(() => service.url, tenant, { without: 'long list' })
  const body = 'mid='
  const head = headOf(longList(tenant.partner, mid), service, 4_000)
  const [headers, bodies, readers] = await Promise.all([
    many(SENDERS, () => sendSlowly(service, head.slice(0, -2), 'x-slow: 1\r\n')),
    many(SENDERS, () => sendSlowly(service, head + body, 'x')),
    Promise.all(partners.map((partner) => readNothing(service, longList(partner, mid)))),
  ])
  const finding = await conclude('slow clients', scene, { service, load })
  const slowest = (ends: End[]) => Math.max(...ends.map(({ afterMs }) => afterMs))
  const expectEnds = (name: string, ends: End[], limitMs: number) => {
    finding.notes.push(`${ends.length} ${name} were cut off after at most ${ms(slowest(ends))}`)
    if (slowest(ends) > limitMs) finding.broken.push(`${name} are cut off within ${limitMs / 1_000} s`)
  }
  expectEnds('slow senders of headers', headers, SENDER_LIMIT_MS)
  expectEnds('slow senders of bodies', bodies, SENDER_LIMIT_MS)
  expectEnds('readers that read nothing', readers, READER_LIMIT_MS)
  const responses = new Set([...headers, ...bodies].map(({ response }) => response.split('\r\n', 1)[0]))
  for (const response of responses) {
    if (response && !response.startsWith('HTTP/1.1 408 ')) finding.broken.push(`408 or no response, not ${response}`)
  }
  const slow503 = load.journal.filter(({ response }) => response?.status === 503)
  if (slow503.length > 0) finding.broken.push(`valid requests succeed in the meantime: ${slow503.length} got 503`)
  return [finding]
}

const many = <T>(count: number, start: () => Promise<T>) => Promise.all(Array.from({ length: count }, start))

function headOf({ path, headers }: FormRequest, service: ServerProcess, contentLength: number): string {
  const lines = Object.entries({ host: new URL(service.url).host, ...headers, 'content-length': contentLength })
  return `POST ${path} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`
}

function sendSlowly(service: ServerProcess, start: string, more: string): Promise<End> {
  const { socket, ended } = open(service)
  trickle(socket, start, more)
  return ended
}

/** Requests a long list and reads nothing, until the service uses no connection for it anymore. */
async function readNothing(service: ServerProcess, list: FormRequest): Promise<End> {
  const { socket, ended } = open(service)
  socket.pause()
  const startedAt = performance.now()
  socket.write(headOf(list, service, list.body.length) + list.body)
  await sleep(SENDER_LIMIT_MS)
  while ((await poolConnections(service.opsUrl))['lists busy'] !== 0) {
    if (performance.now() - startedAt > 2 * READER_LIMIT_MS) return { afterMs: Infinity, response: '' }
    await sleep(POLL_MS)
  }
  const afterMs = performance.now() - startedAt
  socket.resume()
  const { response } = await ended
  return { afterMs: response.endsWith('0\r\n\r\n') ? Infinity : afterMs, response }
}

function open(service: ServerProcess): { socket: Socket; ended: Promise<End> } {
  const startedAt = performance.now()
  const socket = connect(Number(new URL(service.url).port), '127.0.0.1')
  let response = ''
  const ended = new Promise<End>((resolve) => {
    socket.on('data', (bytes) => {
      response += bytes.toString('latin1')
    })
    socket.on('error', () => undefined)
    socket.once('close', () => resolve({ afterMs: performance.now() - startedAt, response }))
  })
  return { socket, ended }
}
