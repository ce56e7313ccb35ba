import { once } from 'node:events'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import { LIMITS } from '../../src/limits.ts'
import { type Answer, createHttpClient, tally } from '../support/http-client.ts'
import { createRequest, FORM } from '../support/requests.ts'
import {
  basic,
  form,
  LIST,
  newMerchant,
  newPartner,
  startService,
  type TestService,
  unique,
} from '../support/service.ts'
import { startTarget } from './target.ts'

/** As many open files as an ordinary account may have, and more silent connections than that. */
const OPEN_FILES = 4_096
const SILENT = 4_200

const target = startTarget({ openFiles: OPEN_FILES })

const create = () => createRequest(target, { order_id: unique('o') })

/** Most are 200: a busy machine may refuse some by itself. Without its limits the service refused nearly all. */
function expectServed(answers: Answer[]) {
  const served = answers.filter(({ status }) => status === 200).length
  expect(served, tally(answers)).toBeGreaterThan(answers.length * 0.6)
}

function open(port: number): Socket {
  const socket = connect(port, '127.0.0.1')
  // How it is closed does not matter here.
  return socket.on('error', () => undefined)
}

it.each([
  ['are silent', ''],
  ['are idle after one request', 'GET /livez HTTP/1.1\r\nHost: x\r\n\r\n'],
  [
    'never send the body of their request',
    'POST /acquirer/paymentNotification HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9000\r\n\r\n',
  ],
])(
  `a client that opens ${SILENT} connections which %s keeps nobody else out, nor ends the process`,
  async (_how, bytes) => {
    const keptAlive = createHttpClient({ maxSockets: 4 })
    const anew = createHttpClient({ keepAlive: false })
    await keptAlive.send(target.server.url, create())
    const sockets: Socket[] = []
    const answers: Promise<Answer>[] = []
    for (let i = 0; i < SILENT; i++) {
      const socket = open(target.server.port)
      socket.write(bytes)
      sockets.push(socket)
      if (i % 100 > 0) continue
      answers.push(keptAlive.send(target.server.url, create()))
      await sleep(10)
    }
    const later: Answer[] = []
    // Longer than the service takes to look after its own state again.
    for (let i = 0; i < 20; i++) {
      answers.push(keptAlive.send(target.server.url, create()))
      later.push(await anew.send(target.server.url, create()))
      await sleep(100)
    }
    expectServed(await Promise.all(answers))
    expectServed(later)
    for (const socket of sockets) socket.destroy()
    keptAlive.close()
    expect(target.server.child.exitCode).toBe(null)
  },
  90_000,
)

describe('a connection', () => {
  let service: TestService
  let port: number
  beforeAll(async () => {
    service = await startService({ limits: { connections: { stalledMs: 1_000, requestMs: 1_000 } } })
    await service.app.listen({ host: '127.0.0.1', port: 0 })
    port = (service.app.server.address() as { port: number }).port
  })

  const openConnections = () =>
    new Promise<number>((resolve) => service.app.server.getConnections((_error, count) => resolve(count)))

  it('whose reader takes nothing is closed', async () => {
    const socket = open(port).pause()
    const large = 'GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nHost: x\r\n\r\n'
    socket.write(large.repeat(8))
    await expect.poll(openConnections).toBe(1)
    await expect.poll(openConnections, { timeout: 20_000, interval: 200 }).toBe(0)
    socket.destroy()
  })

  it('whose reader takes nothing gives its place to the next client', async () => {
    const places = 20
    const crowded = await startService({ limits: { connections: { connections: places } } })
    await crowded.app.listen({ host: '127.0.0.1', port: 0 })
    const { port } = crowded.app.server.address() as AddressInfo
    const large = 'GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nHost: x\r\n\r\n'
    const readers = Array.from({ length: 2 * places }, () => open(port).pause())
    for (const reader of readers) {
      reader.write(large.repeat(8))
      await sleep(10)
    }
    const answer = await fetch(`http://127.0.0.1:${port}/livez`, { signal: AbortSignal.timeout(5_000) })
    expect(answer.status).toBe(200)
    for (const reader of readers) reader.destroy()
  })

  it('with more requests under way than it may have is closed', async () => {
    const socket = open(port)
    let text = ''
    socket.setEncoding('latin1').on('data', (some) => {
      text += some
    })
    socket.write('GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(LIMITS.connections.requestsUnderWay + 1))
    await once(socket, 'close')
    expect(text.split('HTTP/1.1 ').length - 1).toBeLessThanOrEqual(LIMITS.connections.requestsUnderWay)
  })

  it('that is silent from the start is closed without a word', async () => {
    const socket = open(port)
    let text = ''
    socket.setEncoding('latin1').on('data', (some) => {
      text += some
    })
    await once(socket, 'close')
    expect(text).toBe('')
  })

  it('may be kept for 75 s between two requests', async () => {
    const answer = await fetch(`http://127.0.0.1:${port}/livez`)
    expect(answer.headers.get('keep-alive')).toBe('timeout=75')
  })

  it('with a stream takes no other request, since its answer would wait in memory for hours', async () => {
    // Of the service as it runs, which closes no connection for its silence within this test.
    const { path, body, headers } = create()
    const { orderId } = JSON.parse((await target.post(path, body, headers)).text).data
    const get = (path: string) => `GET /pay/${orderId}${path} HTTP/1.1\r\nHost: x\r\n\r\n`
    const together = open(target.server.port).resume()
    together.write(get('/events') + get(''))
    await once(together, 'close')
    const later = open(target.server.port).resume()
    later.write(get('/events'))
    await once(later, 'data')
    later.write(get(''))
    await once(later, 'close')
  })

  it('with two long lists is closed and lets go of what both hold', async () => {
    const { mid } = await newMerchant(service.db)
    // Each partner may read one long list at a time.
    const partners = [await newPartner(service.db, mid), await newPartner(service.db, mid)]
    await service.db.query(
      `insert into settlements (mid, utr, amount, bank_reference_number, status, initiated_at, created_at)
       select $1, 'U' || lpad(i::text, 10, '0'), 1, 'B' || i, 'SUCCESS', '2026-01-02', '2026-01-02'
         from generate_series(1, 60000) i`,
      [mid],
    )
    const lists = partners.map(({ pid, key }) => {
      const body = form({ pid, mid, s_date: '01-01-2026', e_date: '31-01-2026' })
      return `POST ${LIST} HTTP/1.1\r\nHost: x\r\nContent-Type: ${FORM}\r\nAuthorization: ${basic(key)}\r\nContent-Length: ${body.length}\r\n\r\n${body}`
    })
    const busy = () => service.pools.lists.totalCount - service.pools.lists.idleCount
    const socket = open(port).resume()
    socket.write(lists.join(''))
    await once(socket, 'close')
    await expect.poll(busy, { timeout: 10_000 }).toBe(0)
  })
})
