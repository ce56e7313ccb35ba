import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import fastify from 'fastify'
import { expect, it, onTestFinished, vi } from 'vitest'
import { isOutage } from '../../src/db/outage.ts'
import { registerPatience } from '../../src/http/patience.ts'
import { LIMITS } from '../../src/limits.ts'
import {
  basic,
  CREATE,
  form,
  intentFields,
  type Key,
  newMerchant,
  post,
  startService,
  unique,
} from '../support/service.ts'

const { waiting: WAITING_LIMIT, readsAtOnce: READS_AT_ONCE, pauseMs: PAUSE_MS } = LIMITS.patience
const READS_A_SECOND = (READS_AT_ONCE * 1_000) / PAUSE_MS
const READ_MS = 1

const AWAY = Object.assign(new Error('connect ECONNREFUSED 10.0.0.7:5432'), { code: 'ECONNREFUSED' })

/** A service with one patient route, whose database is away until `back` is set. */
async function startPatient() {
  const database = { back: false, reads: 0, underWay: 0, mostAtOnce: 0 }
  async function read() {
    database.reads++
    if (!database.back) throw AWAY
    database.mostAtOnce = Math.max(database.mostAtOnce, ++database.underWay)
    await sleep(READ_MS)
    database.underWay--
    return { key: 'known' }
  }
  const app = fastify()
  registerPatience(app, isOutage, LIMITS.patience)
  app.setErrorHandler((_error, _request, reply) => reply.code(503).send())
  // As a status call: a read for the key, and one for what is asked.
  app.get('/', { config: { patient: true } }, async (request) => {
    await request.patiently(read)
    return request.patiently(read)
  })
  await app.ready()
  onTestFinished(() => app.close())
  return { app, database }
}

it('2,000 may wait and more are refused; they read little while the database is away, and in turns when it is back', async () => {
  const { app, database } = await startPatient()
  const beyond = 100
  let answered = 0
  const calls = Array.from({ length: WAITING_LIMIT + beyond }, async (_, i) => {
    const { statusCode } = await app.inject({ url: '/', remoteAddress: `10.0.${i >> 8}.${i & 255}` })
    answered++
    return statusCode
  })
  // Those that are reading at this moment do not count as waiting.
  await vi.waitUntil(() => answered >= beyond - READS_AT_ONCE, { timeout: 5_000 })
  const before = database.reads
  await sleep(1_000)
  expect(database.reads - before).toBeGreaterThan(0)
  expect(database.reads - before).toBeLessThanOrEqual(READS_A_SECOND + READS_AT_ONCE)

  database.back = true
  const refused = (await Promise.all(calls)).filter((status) => status !== 200)
  expect(new Set(refused)).toEqual(new Set([503]))
  expect(refused.length).toBeLessThanOrEqual(beyond)
  expect(database.mostAtOnce).toBe(READS_AT_ONCE)
})

it('a call whose client has left waits no longer', async () => {
  const { app, database } = await startPatient()
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo
  const sockets = Array.from({ length: 5 }, () => connect(port, '127.0.0.1'))
  for (const socket of sockets) socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
  await vi.waitUntil(() => database.reads > 2 * sockets.length, { timeout: 5_000 })
  for (const socket of sockets) socket.destroy()
  await Promise.all(sockets.map((socket) => once(socket, 'close')))
  await sleep(500)
  const before = database.reads
  await sleep(1_000)
  expect(database.reads).toBe(before)
})

it('unknown keys of one address leave room for the calls of a neighbour while the database is away', async () => {
  const service = await startService({ limits: { patience: { waiting: 40, scarceFrom: 20, scarceOfAddress: 5 } } })
  const { mid, key } = await newMerchant(service.db)
  const order_id = unique('order')
  expect((await post(service.app, CREATE, intentFields(mid, { order_id }), key)).status).toBe(200)
  const query = vi.spyOn(service.db, 'query').mockImplementation((async () => Promise.reject(AWAY)) as never)
  let refused = 0
  const ask = async (from: string, of: Key) => {
    const { statusCode } = await service.app.inject({
      method: 'POST',
      url: '/v1/payments/checkPaymentStatus',
      remoteAddress: from,
      headers: { authorization: basic(of), 'content-type': 'application/x-www-form-urlencoded' },
      payload: form({ mid, order_id }),
    })
    if (statusCode === 503) refused++
    return statusCode
  }
  const attack = Array.from({ length: 100 }, () =>
    ask('203.0.113.1', { publicKey: unique('pk_'), secretKey: 'sk_guess' }),
  )
  await vi.waitUntil(() => refused >= 50, { timeout: 5_000 })
  const neighbour = ask('198.51.100.7', key)
  await sleep(500)
  query.mockRestore()
  expect(await neighbour).toBe(200)
  expect((await Promise.all(attack)).filter((status) => status === 401).length).toBe(20)
})
