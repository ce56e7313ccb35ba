import { once } from 'node:events'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import { type Answer, createHttpClient, type HttpClient, tally } from '../support/http-client.ts'
import { residentMB } from '../support/processes.ts'
import { createRequest, FORM } from '../support/requests.ts'
import {
  basic,
  CREATE,
  form,
  intentFields,
  LIST,
  newMerchant,
  newPartner,
  post,
  startService,
  type TestService,
  unique,
} from '../support/service.ts'
import { startTarget } from './target.ts'

/** As many open files as an ordinary account may have, and more silent connections than that. */
const OPEN_FILES = 4_096
const SILENT = 4_200
const PIPELINED = 100_000
/** How long a client that may send all its requests waits for their answers. */
const ANSWERED_MS = 5_000
/** Requests of the neighbour: 25 a second. */
const NEIGHBOUR_INTERVAL_MS = 40

const target = startTarget({ openFiles: OPEN_FILES })

const create = () => createRequest(target, { order_id: unique('o') })

/** Creates of another client, at a steady rate, for as long as `attack` takes and for a second after it. */
async function neighbourBeside(attack: () => Promise<void>, { send }: HttpClient): Promise<Answer[]> {
  await send(target.server.url, create())
  let over = false
  const attacked = attack()
    .then(() => sleep(1_000))
    .finally(() => {
      over = true
    })
  const answers: Promise<Answer>[] = []
  while (!over) {
    answers.push(send(target.server.url, create()))
    await sleep(NEIGHBOUR_INTERVAL_MS)
  }
  await attacked
  return Promise.all(answers)
}

/** Nearly all are 200: a busy machine may refuse some by itself. Without its limits the service refused nearly all. */
function expectServed(answers: Answer[]) {
  const served = answers.filter(({ status }) => status === 200).length
  expect(served, tally(answers)).toBeGreaterThan(answers.length * 0.8)
}

function open(port: number): Socket {
  const socket = connect(port, '127.0.0.1')
  // How it is closed does not matter here.
  return socket.on('error', () => undefined)
}

describe('one client with many requests or connections', () => {
  it(`that pipelines ${PIPELINED} requests costs its neighbour no payment, and the service no memory`, async () => {
    const client = createHttpClient({ maxSockets: 4 })
    const before = residentMB(target.server.pid)
    let peak = before
    const answers = await neighbourBeside(async () => {
      let sent = 0
      while (sent < PIPELINED) {
        const socket = open(target.server.port).resume()
        const closed = new Promise((resolve) => socket.once('close', resolve))
        while (sent < PIPELINED && !socket.destroyed) {
          const some = Array.from({ length: 1_000 }, () => `GET /pay/${unique('')} HTTP/1.1\r\nHost: x\r\n\r\n`)
          sent += some.length
          await new Promise((resolve) => socket.write(some.join(''), resolve))
        }
        await Promise.race([closed, sleep(ANSWERED_MS)])
        socket.destroy()
        peak = Math.max(peak, residentMB(target.server.pid))
      }
    }, client)
    client.close()
    expectServed(answers)
    expect(peak - before).toBeLessThan(250)
  }, 90_000)

  it.each([
    ['are silent', ''],
    ['are idle after one request', 'GET /livez HTTP/1.1\r\nHost: x\r\n\r\n'],
    [
      'never send the body of their request',
      'POST /acquirer/paymentNotification HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9000\r\n\r\n',
    ],
  ])(
    `that opens ${SILENT} connections which %s keeps nobody else out, nor ends the process`,
    async (_how, bytes) => {
      const keptAlive = createHttpClient({ maxSockets: 4 })
      const anew = createHttpClient({ keepAlive: false })
      const sockets: Socket[] = []
      const later: Answer[] = []
      const answers = await neighbourBeside(async () => {
        for (let i = 0; i < SILENT; i++) {
          const socket = open(target.server.port)
          socket.write(bytes)
          sockets.push(socket)
          if (i % 100 === 0) await sleep(10)
        }
        // Longer than the service takes to look after its own state again.
        for (let i = 0; i < 20; i++) {
          later.push(await anew.send(target.server.url, create()))
          await sleep(100)
        }
      }, keptAlive)
      for (const socket of sockets) socket.destroy()
      keptAlive.close()
      expect(target.server.child.exitCode).toBe(null)
      expectServed(later)
      expectServed(answers)
    },
    90_000,
  )
})

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
    const { mid, key } = await newMerchant(service.db)
    const { orderId } = (await post(service.app, CREATE, intentFields(mid), key)).body.data
    const get = (path: string) => `GET /pay/${orderId}${path} HTTP/1.1\r\nHost: x\r\n\r\n`
    const together = open(port).resume()
    together.write(get('/events') + get(''))
    await once(together, 'close')
    const later = open(port).resume()
    later.write(get('/events'))
    await once(later, 'data')
    later.write(get(''))
    await once(later, 'close')
  })

  it('with two long lists is closed and lets go of what both hold', async () => {
    const { mid } = await newMerchant(service.db)
    // Each partner may read one long list at a time.
    const partners = [await newPartner(service.db, mid), await newPartner(service.db, mid)]
    await service.listDb.query(
      `insert into settlements (mid, utr, amount, bank_reference_number, status, initiated_at, created_at)
       select $1, 'U' || lpad(i::text, 10, '0'), 1, 'B' || i, 'SUCCESS', '2026-01-02', '2026-01-02'
         from generate_series(1, 60000) i`,
      [mid],
    )
    const lists = partners.map(({ pid, key }) => {
      const body = form({ pid, mid, s_date: '01-01-2026', e_date: '31-01-2026' })
      return `POST ${LIST} HTTP/1.1\r\nHost: x\r\nContent-Type: ${FORM}\r\nAuthorization: ${basic(key)}\r\nContent-Length: ${body.length}\r\n\r\n${body}`
    })
    const busy = () => service.listDb.totalCount - service.listDb.idleCount
    const socket = open(port).resume()
    socket.write(lists.join(''))
    await once(socket, 'close')
    await expect.poll(busy, { timeout: 10_000 }).toBe(0)
  })
})
