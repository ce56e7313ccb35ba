import { type IncomingMessage, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { SETTLEMENTS } from '../../src/books/settlements/fetch-settlement-list.ts'
import { createAccessKeys } from '../../src/gateway/tenants/access-keys.ts'
import { createPartners } from '../../src/gateway/tenants/partners.ts'
import { LIMITS } from '../../src/limits.ts'
import { defineList } from '../../src/platform/lists/list.ts'
import { createLists } from '../../src/platform/lists/lists.ts'
import { testPool } from '../support/database-url.ts'
import { listValues } from '../support/list-reader.ts'
import {
  basic,
  errorResponse,
  form,
  type Key,
  LIST,
  newKey,
  newMerchant,
  newPartner,
  OWN_TRANSACTIONS,
  startService,
  type TestService,
  TRANSACTIONS,
} from '../support/service.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'

/** More rows than the socket buffers can contain, so that the list is never finished while its reader stalls. */
const LONG_LIST_ROWS = 100_000
const LONG_LIST = { s_date: '01-02-2026', e_date: '28-02-2026' }
/** The IST day on which the key of a list expires. */
const LAST_DAY = '2026-03-31'
const SHORT_LIST = { s_date: '01-01-2026', e_date: '31-01-2026' }
/** Access is checked again much sooner; the rest of the time allows for a busy machine. */
const KNOWN_WITHIN_MS = 10_000
/** The response to a partner's second concurrent long list. */
const ONE_AT_A_TIME = errorResponse(
  429,
  'Another long list is still being sent to you. Read it to its end, or try again after Retry-After seconds.',
)
const MOST_TRIES = 20
const RETRY_MS = 200
const READER_WINDOW_MS = 6_000
const READER_CHECK_MS = 250
const PAUSE_MS = 100
/** Yields as many bytes per window as the default limits, because TCP acknowledges data in portions of unchanged size. */
const SLOWEST_BYTES_PER_SECOND = 160 * 1024

/** A signal that never aborts: the reader stays connected. */
const NEVER = new AbortController().signal

const SLOW_FILTER = defineList({
  fields: [['number', 'a']],
  from: 'generate_series(1, 1) a',
  where: 'true',
  filter: 'pg_sleep(6) is not null',
  order: 'a',
})

type Partner = { pid: string; key: Key }

let service: TestService
/** Another instance of the service on the same database. */
let other: TestService
let mid: string
const open: IncomingMessage[] = []

beforeAll(async () => {
  const limits = {
    database: { connectTimeoutMs: 700 },
    lists: {
      readerWindowMs: READER_WINDOW_MS,
      readerCheckIntervalMs: READER_CHECK_MS,
      slowestReaderBytesPerSecond: SLOWEST_BYTES_PER_SECOND,
    },
  }
  service = await startService({ limits })
  other = await startService({ limits, replicated: { url: service.databaseUrl } })
  for (const { app } of [service, other]) await app.listen({ host: '127.0.0.1', port: 0 })
  ;({ mid } = await newMerchant(service.db))
  await addLongList(service, mid)
})

async function addLongList({ db }: TestService, mid: string) {
  await db.query(
    `insert into settlements (mid, utr, amount_paise, bank_reference_number, status, initiated_at, created_at)
     select $1, 'UTR' || i, 1, 'BRN', 'SUCCESS', '2026-02-15', '2026-02-15' from generate_series(1, ${LONG_LIST_ROWS}) i`,
    [mid],
  )
}

afterEach(async () => {
  vi.useRealTimers()
  for (const response of open.splice(0)) response.destroy()
  await freed()
})

/**
 * Requests a list and returns the response after its headers. Retries on 503, because service and client share this process,
 * and a busy machine rejects some requests.
 */
async function send(...requested: Parameters<typeof sendOnce>): Promise<IncomingMessage> {
  for (let tries = 1; ; tries++) {
    const response = await sendOnce(...requested)
    if (response.statusCode !== 503 || tries === MOST_TRIES) return response
    response.resume()
    await sleep(RETRY_MS)
  }
}

function sendOnce(
  { pid, key }: { pid?: string; key: Key },
  days: Record<string, string>,
  at = { service, mid, path: LIST },
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: basic(key), 'content-type': 'application/x-www-form-urlencoded' }
    const { port } = at.service.app.server.address() as AddressInfo
    const call = request({ port, path: at.path, method: 'POST', headers, agent: false })
    call.on('error', reject).on('response', (response) => {
      response.on('error', () => undefined)
      open.push(response)
      resolve(response)
    })
    call.end(form({ ...(pid !== undefined && { pid }), mid: at.mid, ...days }))
  })
}

async function readAll(response: IncomingMessage) {
  let text = ''
  for await (const chunk of response.setEncoding('utf8')) text += chunk
  return { status: response.statusCode, body: JSON.parse(text) }
}

const listedRows = async (partner: Partner, days = LONG_LIST) => {
  const { status, body } = await readAll(await send(partner, days))
  return [status, body.data?.length]
}

/** Returns the number of list connections in use or waited for, of both instances. */
const heldOrWaited = () =>
  [service, other]
    .map(({ pools: { lists } }) => lists.totalCount - lists.idleCount + lists.waitingCount)
    .reduce((sum, one) => sum + one)

const freed = () => vi.waitFor(() => expect(heldOrWaited()).toBe(0), { timeout: KNOWN_WITHIN_MS, interval: 20 })

it('the service serves a short list while slow readers of long lists occupy all connections for long lists', async () => {
  stopLooks()
  for (let i = 0; i < LIMITS.lists.concurrentLong; i++) {
    expect((await send(await newPartner(service.db, mid), LONG_LIST)).statusCode).toBe(200)
  }
  const partner = await newPartner(service.db, mid)
  expect((await readAll(await send(partner, LONG_LIST))).status).toBe(503)
  const body = { status: true, statusCode: 200, msg: 'No settlements found', data: [] }
  expect(await readAll(await send(partner, SHORT_LIST))).toEqual({ status: 200, body })
})

describe('a partner that requests four long lists and reads none', () => {
  it('serves one of four requested long lists to a partner that reads no list, rejects the other three lists with 429, and serves other partners', async () => {
    stopLooks()
    const [partner, other] = [await newPartner(service.db, mid), await newPartner(service.db, mid)]
    expect((await send(partner, LONG_LIST)).statusCode).toBe(200)
    for (let i = 0; i < 3; i++) {
      const rejected = await send(partner, LONG_LIST)
      expect(rejected.headers['retry-after']).toBe('5')
      expect(await readAll(rejected)).toEqual({ status: 429, body: ONE_AT_A_TIME })
    }
    expect(await listedRows(partner, SHORT_LIST)).toEqual([200, 0])
    expect(await listedRows(other)).toEqual([200, LONG_LIST_ROWS])
  })
})

describe('a merchant that requests its own transactions', () => {
  it('serves a merchant one long list at a time, independently of its partner, and cuts off the list when the merchant is disabled', async () => {
    const merchant = await newMerchant(service.db)
    await service.db.query(
      `with made as (
         insert into payment_intents (mid, order_id, merchant_order_id, amount_paise, redirect_url, note, customer_name,
           customer_email, customer_mobile, payee_vpa, payee_name, payee_mcc, created_at, expires_at, status, utr)
         select $1, lpad(to_hex(i), 32, '0'), 'own' || i, 20000, 'https://shop.example/', 'x', 'x', 'x@shop.example', '9876543210', 'a@b',
                'x', '5814', '2026-02-15', '2026-02-15', 'SUCCESS', 'OWN' || i
           from generate_series(1, ${LONG_LIST_ROWS}) i
         returning *)
       insert into payments (mid, utr, order_id, amount_paise, paid_at, received_at, kind, acquirer, source)
       select mid, utr, order_id, 20000, created_at, created_at, 'first', 'direct', 'notification' from made`,
      [merchant.mid],
    )
    const at = { service, mid: merchant.mid, path: OWN_TRANSACTIONS }
    stopLooks()
    await freed()
    const own = await send(merchant, LONG_LIST, at)
    expect(own.statusCode).toBe(200)
    expect(await readAll(await send(merchant, LONG_LIST, at))).toEqual({ status: 429, body: ONE_AT_A_TIME })
    const partner = await newPartner(service.db, merchant.mid)
    const partners = await send(partner, LONG_LIST, { ...at, path: TRANSACTIONS })
    expect(partners.statusCode).toBe(200)
    await service.db.query('update merchants set disabled_at = now() where mid = $1', [merchant.mid])
    for (let checks = 1; checks < READER_WINDOW_MS / READER_CHECK_MS; checks++) {
      await pass(1)
      await sleep(PAUSE_MS)
    }
    await expect(readAll(own)).rejects.toThrow('aborted')
    expect((await readAll(partners)).body.data).toHaveLength(LONG_LIST_ROWS)
    vi.useRealTimers()
  })
})

describe('the next long list of a partner', () => {
  it("serves a partner's next long list after the partner has read the previous list to the end", async () => {
    const partner = await newPartner(service.db, mid)
    for (let i = 0; i < 3; i++) expect(await listedRows(partner)).toEqual([200, LONG_LIST_ROWS])
  })

  it("serves a partner's next long list after the reader of the previous list has disconnected", async () => {
    const partner = await newPartner(service.db, mid)
    for (let i = 0; i < 3; i++) {
      const response = await send(partner, LONG_LIST)
      expect(response.statusCode).toBe(200)
      response.destroy()
      await freed()
    }
    expect(await listedRows(partner)).toEqual([200, LONG_LIST_ROWS])
  })

  it("serves a partner's next long list after the previous list was rejected with 503 because no connection was free", async () => {
    const partner = await newPartner(service.db, mid)
    const held = await Promise.all(
      Array.from({ length: service.pools.lists.options.max }, () => service.pools.lists.connect()),
    )
    try {
      expect((await sendOnce(partner, LONG_LIST)).statusCode).toBe(503)
    } finally {
      for (const client of held) client.release()
    }
    expect(await listedRows(partner)).toEqual([200, LONG_LIST_ROWS])
  })

  it("serves a partner's next long list after the database aborted the previous list", async () => {
    const partner = await newPartner(service.db, mid)
    const response = await send(partner, LONG_LIST)
    await service.pools.lists.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and query ~* '^\\s*copy' and state <> 'idle'`,
    )
    await expect(readAll(response)).rejects.toThrow('aborted')
    expect(await listedRows(partner)).toEqual([200, LONG_LIST_ROWS])
  })
})

describe('a long list in progress', () => {
  it.each<[string, (partner: Partner) => Promise<unknown>]>([
    ['the list’s partner is unlinked from the merchant', ({ pid }) => createPartners(service.db).unlink(pid, mid)],
    ['the list’s key is revoked', ({ key }) => createAccessKeys(service.db).revoke(key.publicKey, new Date())],
    [
      'the list’s key expires',
      async () => {
        for (const { clock } of [service, other]) clock.set(`${LAST_DAY}T18:30:00.000Z`)
      },
    ],
  ])(
    'every instance cuts off a long list in progress and frees the list’s connection when %s',
    async (_what, forbid) => {
      stopLooks()
      for (const { clock } of [service, other]) clock.set(`${LAST_DAY}T18:29:59.000Z`)
      const { pid } = await newPartner(service.db, mid)
      const partner = { pid, key: await newKey(service.db, { pid }, ['list'], LAST_DAY) }
      const at = { service: other, mid, path: LIST }
      const responses = [await send(partner, LONG_LIST), await send(partner, LONG_LIST, at)]
      for (const { statusCode } of responses) expect(statusCode).toBe(200)
      await forbid(partner)
      // One check fewer than a window contains, so that the list is not cut off for slow reading. Together the checks
      // outlast the cache of links and keys.
      for (let checks = 1; checks < READER_WINDOW_MS / READER_CHECK_MS; checks++) {
        await pass(1)
        await sleep(PAUSE_MS)
      }
      vi.useRealTimers()
      await freed()
      for (const response of responses) await expect(readAll(response)).rejects.toThrow('aborted')
    },
  )

  it('cuts off a long list in progress when no data arrives from the database', async () => {
    const url = new URL(service.databaseUrl)
    const proxy = await startTcpProxy(Number(url.port))
    url.port = String(proxy.port)
    const lists = testPool(url.href, 1)
    const list = createLists({ lists }).long(SETTLEMENTS, listValues(mid, '2026-02-01', '2026-03-01'), NEVER)
    const readOn = async () => {
      while (!(await list.next()).done);
    }
    await list.next()
    proxy.cut('swallowed')
    await expect(readOn()).rejects.toThrow()
    expect(lists.totalCount).toBe(0)
    proxy.close()
    await lists.end()
  })

  it('continues a list with a filter that finds its first record after six seconds', async () => {
    const lists = testPool(service.databaseUrl, 1)
    const { long } = createLists({ lists })
    const found: string[] = []
    for await (const lines of long(SLOW_FILTER, {}, NEVER)) found.push(...lines)
    expect(found).toEqual(['1'])
    await lists.end()
  })

  it('cuts off a long list in progress when the reader reads nothing for a whole time window', async () => {
    stopLooks()
    const response = await send(await newPartner(service.db, mid), LONG_LIST)
    expect(response.statusCode).toBe(200)
    await pass(READER_WINDOW_MS / READER_CHECK_MS)
    expect(heldOrWaited()).toBe(1)
    // Several windows pass while the socket buffers still fill.
    await vi.waitFor(
      async () => {
        await pass(READER_WINDOW_MS / READER_CHECK_MS)
        expect(heldOrWaited()).toBe(0)
      },
      { timeout: KNOWN_WITHIN_MS, interval: 100 },
    )
    await expect(readAll(response)).rejects.toThrow('aborted')
  })

  it('cuts off a long list in progress when the list exceeds the time limit', async () => {
    const hasty = await startService({ limits: { lists: { longestMs: 300 } } })
    await hasty.app.listen({ host: '127.0.0.1', port: 0 })
    const { mid } = await newMerchant(hasty.db)
    await addLongList(hasty, mid)
    const partner = await newPartner(hasty.db, mid)
    const response = await send(partner, LONG_LIST, { service: hasty, mid, path: LIST })
    expect(response.statusCode).toBe(200)
    const { lists } = hasty.pools
    await vi.waitFor(() => expect(lists.totalCount - lists.idleCount).toBe(0), { timeout: KNOWN_WITHIN_MS })
    await expect(readAll(response)).rejects.toThrow('aborted')
  })

  it('continues a long list while the reader, with pauses, reads at the slowest allowed average rate', async () => {
    stopLooks()
    const response = await send(await newPartner(service.db, mid), LONG_LIST)
    let bytes = 0
    let text = ''
    const portion = SLOWEST_BYTES_PER_SECOND * (READER_WINDOW_MS / 1_000)
    while (!response.readableEnded) {
      await pass(READER_WINDOW_MS / READER_CHECK_MS / 2)
      const requested = bytes + 2 * portion
      while (bytes < requested && !response.readableEnded) {
        const chunk: Buffer | null = response.read()
        if (chunk === null) await sleep(1)
        else {
          bytes += chunk.length
          text += chunk.toString('latin1')
        }
      }
      await sleep(50)
    }
    expect(JSON.parse(text).data).toHaveLength(LONG_LIST_ROWS)
  })
})

/** Stops the timer by which the service checks its readers, so that it runs only in `pass`, however busy the machine is. */
function stopLooks() {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
}

/** Lets the service check its readers this many times. */
async function pass(checks: number) {
  for (let i = 0; i < checks; i++) {
    vi.advanceTimersByTime(READER_CHECK_MS)
    await sleep(2)
  }
}
