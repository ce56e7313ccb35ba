import { once } from 'node:events'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { beforeAll, expect, it } from 'vitest'
import { FORM } from '../support/requests.ts'
import { basic, form, LIST, newMerchant, newPartner, startService, type TestService } from '../support/service.ts'

let service: TestService
let port: number
beforeAll(async () => {
  service = await startService({ limits: { connections: { stalledMs: 1_000, requestMs: 1_000 } } })
  port = await listen(service)
})

async function listen({ app }: TestService): Promise<number> {
  await app.listen({ host: '127.0.0.1', port: 0 })
  return (app.server.address() as AddressInfo).port
}

/** Opens a connection and collects the bytes received on it. */
function open(port: number): { socket: Socket; text: () => string } {
  // How the connection is closed does not matter here.
  const socket = connect(port, '127.0.0.1').on('error', () => undefined)
  let text = ''
  socket.setEncoding('latin1').on('data', (some) => {
    text += some
  })
  return { socket, text: () => text }
}

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`

it('the service closes new connections beyond the limit until an open connection is closed', async () => {
  const connections = 20
  const crowded = await startService({ limits: { connections: { connections } } })
  const port = await listen(crowded)
  const all = Array.from({ length: connections }, () => open(port).socket)
  await Promise.all(all.map((socket) => once(socket, 'connect')))
  await once(open(port).socket, 'close')
  for (const socket of all) socket.destroy()
  await expect
    .poll(async () => (await fetch(`http://127.0.0.1:${port}/livez`).catch(() => undefined))?.status)
    .toBe(200)
})

it('the service closes a connection if the client sends a request before the response to the previous request', async () => {
  const { socket, text } = open(port)
  socket.write(get('/readyz').repeat(1_000))
  await once(socket, 'close')
  expect(text()).toBe('')
})

it('the service closes a connection without a response if the client sends nothing from the start', async () => {
  const { socket, text } = open(port)
  await once(socket, 'close')
  expect(text()).toBe('')
})

it('the service keeps a connection open for 75 s between two requests', async () => {
  const response = await fetch(`http://127.0.0.1:${port}/livez`)
  expect(response.headers.get('keep-alive')).toBe('timeout=75')
})

it('the service closes the connection of a reader that reads nothing, and releases the reader’s list', async () => {
  const { mid } = await newMerchant(service.db)
  const { pid, key } = await newPartner(service.db, mid)
  // More rows than the socket buffers can contain.
  await service.db.query(
    `insert into settlements (mid, utr, amount_paise, bank_reference_number, status, initiated_at, created_at)
     select $1, 'U' || lpad(i::text, 10, '0'), 1, 'B' || i, 'SUCCESS', '2026-01-02', '2026-01-02'
       from generate_series(1, 100000) i`,
    [mid],
  )
  const body = form({ pid, mid, s_date: '01-01-2026', e_date: '31-01-2026' })
  const { socket } = open(port)
  socket.pause()
  socket.write(
    `POST ${LIST} HTTP/1.1\r\nHost: x\r\nContent-Type: ${FORM}\r\nAuthorization: ${basic(key)}\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  )
  const busy = () => service.pools.lists.totalCount - service.pools.lists.idleCount
  await expect.poll(busy).toBe(1)
  await expect.poll(busy, { timeout: 20_000 }).toBe(0)
  socket.destroy()
})
