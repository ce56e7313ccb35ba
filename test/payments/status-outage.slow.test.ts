import { once } from 'node:events'
import { mkdtempSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished } from 'vitest'
import { createAccessKeys } from '../../src/gateway/tenants/access-keys.ts'
import { LIMITS } from '../../src/limits.ts'
import { migrate } from '../../src/platform/db/migrate.ts'
import type { Database } from '../../src/platform/db/pool.ts'
import { type PostgresServer, startPostgresServer } from '../support/postgres-server.ts'
import { type ServerProcess, startServerProcess } from '../support/server-process.ts'
import { basic, CREATE, form, intentFields, type Key, newKey, newMerchant, STATUS, unique } from '../support/service.ts'
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts'

/** How long a status call waits for its database. The most patient public plugin waits longer for the response. */
const WAIT_MS = 8_000
const PLUGIN_TIMEOUT_MS = 30_000

let postgres: PostgresServer
let proxy: TcpProxy
let db: Database
let server: ServerProcess
let mid: string
let key: Key
let paidOrder: string
/** Keys that the service has not used yet. */
let unseen: Key[]

beforeAll(async () => {
  postgres = await startPostgresServer(mkdtempSync(join(inject('runDirectory'), 'status-outage-')))
  const admin = postgres.poolOf('postgres')
  await admin.query('create database shop')
  await admin.end()
  await migrate(postgres.urlOf('shop'))
  db = postgres.poolOf('shop')
  ;({ mid, key } = await newMerchant(db))
  unseen = await Promise.all(Array.from({ length: 10 }, () => newKey(db, { mid })))
  proxy = await startTcpProxy(postgres.port)
  server = await startServerProcess(postgres.urlOf('shop', proxy.port), { LOG_LEVEL: 'info' })
  paidOrder = unique('paid-')
  const { body } = await send(CREATE, intentFields(mid, { order_id: paidOrder }), key)
  await db.query(`update payment_intents set status = 'SUCCESS', utr = 'PAID1' where order_id = $1`, [
    body.data.orderId,
  ])
})

afterAll(async () => {
  await server.stop()
  proxy.close()
  await db.end()
  postgres.stop()
})

async function send(path: string, fields: Record<string, string>, withKey: Key) {
  const sentAt = performance.now()
  const response = await fetch(server.url + path, {
    method: 'POST',
    headers: { authorization: basic(withKey), 'content-type': 'application/x-www-form-urlencoded' },
    body: form(fields),
    signal: AbortSignal.timeout(PLUGIN_TIMEOUT_MS),
  })
  // biome-ignore lint/suspicious/noExplicitAny: a test asserts what a body is, it cannot know
  const body = (await response.json()) as any
  return {
    status: response.status,
    retryAfter: response.headers.get('retry-after'),
    connection: response.headers.get('connection'),
    body,
    tookMs: performance.now() - sentAt,
  }
}

const checkStatus = (withKey = key) => send(STATUS, { mid, order_id: paidOrder }, withKey)

const unseenKey = () => unseen.pop() as Key

/** The result that the public WooCommerce plugin stores in its order, which it never checks again. */
async function bookLikePlugin(withKey = key): Promise<'paid' | 'pending' | 'failed'> {
  const { status, body } = await checkStatus(withKey).catch(() => ({ status: 0, body: {} }))
  if (status !== 200) return 'failed'
  if (body.status === true) return body.txnStatus === 'SUCCESS' ? 'paid' : 'failed'
  return 'pending'
}

/** Creates that are sent until `end`, and their results. */
function startCreates() {
  const sent: ReturnType<typeof send>[] = []
  const timer = setInterval(() => void sent.push(send(CREATE, intentFields(mid), key)), 200)
  onTestFinished(() => clearInterval(timer))
  return async () => {
    clearInterval(timer)
    return Promise.all(sent)
  }
}

/** The server's processes outlive their killed parent by a moment, in which a query may still succeed. */
async function killPostgres() {
  const { rows } = await db.query<{ pid: number }>('select pid from pg_stat_activity')
  postgres.killHard()
  await expect.poll(() => rows.filter(({ pid }) => isRunning(pid)), { timeout: 10_000 }).toEqual([])
}

function isRunning(pid: number): boolean {
  try {
    // A zombie process has exited, although its parent has not read its status.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

const WAYS: [string, () => void | Promise<void>, () => Promise<void>][] = [
  ['PostgreSQL is killed', killPostgres, () => postgres.restart()],
  ['the network drops packets and loses its connections', () => proxy.cut('swallowed'), () => proxy.restore()],
]

describe.each(WAYS)('checkPaymentStatus while %s', (_name, begin, end) => {
  it('a store plugin receives SUCCESS for its paid order from checkPaymentStatus despite a database outage of 1 s', async () => {
    await checkStatus()
    await begin()
    // The key is cached for a second: one call fails in its own query, and one in the look-up of its key.
    const booked = Promise.all([bookLikePlugin(), bookLikePlugin(unseenKey())])
    await sleep(1_000)
    await end()
    expect(await booked).toEqual(['paid', 'paid'])
  })

  it('checkPaymentStatus returns 503 after 8 s in an outage of 10 s, and later calls wait for the database', {
    timeout: 60_000,
  }, async () => {
    await checkStatus()
    await begin()
    const first = Promise.all([checkStatus(), checkStatus(unseenKey())])
    const endCreates = startCreates()
    await sleep(WAIT_MS + 500)
    const booked = bookLikePlugin()
    await sleep(1_500)
    await end()
    for (const { status, retryAfter, tookMs } of await first) {
      expect([status, retryAfter]).toEqual([503, '1'])
      // No query is sent that could not be completed in time.
      expect(tookMs).toBeGreaterThan(WAIT_MS - LIMITS.databaseWait.pauseMs - 100)
    }
    expect(await booked).toBe('paid')

    const rejected = (await endCreates()).filter(({ status }) => status !== 200)
    expect(new Set(rejected.map(({ status }) => status))).toEqual(new Set([503]))
  })
})

it('the service returns 401 for a wrong secret, and for a key revoked during the outage, once the database is available', async () => {
  const revoked = unseenKey()
  proxy.cut('refused')
  const responses = Promise.all([checkStatus(revoked), checkStatus({ ...unseenKey(), secretKey: 'sk_wrong' })])
  await createAccessKeys(db).revoke(revoked.publicKey, new Date())
  await sleep(1_000)
  await proxy.restore()
  for (const { status } of await responses) expect(status).toBe(401)
})

it('the service returns 503 to waiting calls immediately when stopped, and exits with code 0', async () => {
  proxy.cut('refused')
  const result = checkStatus(unseenKey())
  await sleep(500)
  const ended = once(server.child, 'exit')
  server.child.kill('SIGTERM')
  const { status, connection, tookMs } = await result
  // The client would keep the connection open, and the service would wait for it.
  expect([status, connection]).toEqual([503, 'close'])
  expect(tookMs).toBeLessThan(WAIT_MS)
  expect(await ended).toEqual([0, null])
  await proxy.restore()
})
