import { join } from 'node:path'
import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest'
import type { Database } from '../../src/platform/db/pool.ts'
import { waitForReplica } from '../../src/platform/db/replica.ts'
import { testPool } from '../support/database-url.ts'
import { runOps } from '../support/ops.ts'
import {
  createReplicatedDatabase,
  type ReplicatedPostgres,
  startReplicatedPostgres,
} from '../support/replicated-postgres.ts'
import {
  errorResponse,
  type Key,
  LIST,
  newMerchant,
  newPartner,
  post,
  responseOf,
  startService,
  type TestService,
} from '../support/service.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'

/** Long enough for a slow machine; a test that passes rarely waits for long. */
const DATABASE_WAIT = { timeout: 20_000, interval: 100 }

let servers: ReplicatedPostgres
let service: TestService
let urls: { url: string; replicaUrl: string }
let replica: Database
let mid: string
let pid: string
let key: Key
/** The databases that were queried for settlements, in order. */
const requested: string[] = []
/** The databases that fail when they are queried. */
const failing = new Set<string>()

beforeAll(async () => {
  servers = await startReplicatedPostgres(join(inject('runDirectory'), 'replicated'))
  const replicated = await createReplicatedDatabase(servers)
  service = await startService({ replicated })
  urls = replicated
  replica = testPool(replicated.replicaUrl, 2)
  recordLists('primary', service.pools.lists)
  recordLists('replica', service.pools.replica as Database)
  ;({ mid } = await newMerchant(service.db))
  ;({ pid, key } = await newPartner(service.db, mid))
})

// Outside beforeAll, because it would not run inside it.
afterAll(async () => {
  await replica?.end()
  servers?.remove()
})

function recordLists(name: string, pool: Database) {
  const query = pool.query.bind(pool) as (statement: { text: string }) => Promise<pg.QueryResult>
  vi.spyOn(pool, 'query').mockImplementation((async (statement: { text: string }) => {
    requested.push(name)
    if (failing.has(name) && statement.text.includes('from settlements')) throw new Error('terminated unexpectedly')
    return query(statement)
  }) as never)
}

async function settle(utr: string, merchant = mid) {
  await service.db.query(
    `insert into settlements (mid, utr, amount_paise, bank_reference_number, status, initiated_at, created_at)
     values ($1, $2, 1000, $3, 'SUCCESS', '2026-01-05T00:00:00Z', '2026-01-05T00:00:00Z')`,
    [merchant, utr, `BRN${utr}`],
  )
}

async function list(of = { pid, mid, key }) {
  requested.length = 0
  const fields = { pid: of.pid, mid: of.mid, s_date: '05-01-2026', e_date: '05-01-2026' }
  const { status, body } = await post(service.app, LIST, fields, of.key)
  return { status, utrs: body.data?.map((record: { UTR: string }) => record.UTR), respondedBy: requested.at(-1) }
}

const untilRespondedBy = (respondedBy: string) =>
  vi.waitFor(async () => expect(await list()).toMatchObject({ status: 200, respondedBy }), DATABASE_WAIT)

const onReplica = async () => (await replica.query('select utr from settlements order by utr')).rows.map((r) => r.utr)

const pauseReplay = async () => {
  await replica.query('select pg_wal_replay_pause()')
  await vi.waitFor(async () => {
    const { rows } = await replica.query('select pg_get_wal_replay_pause_state() as state')
    expect(rows).toEqual([{ state: 'paused' }])
  }, DATABASE_WAIT)
}
const resumeReplay = () => replica.query('select pg_wal_replay_resume()')

it('the service returns 503 for /readyz while DATABASE_URL names a standby', async () => {
  const standby = await startService({ replicated: { url: urls.replicaUrl } })
  const { status, body } = responseOf(await standby.app.inject('/readyz'))
  expect([status, body]).toEqual([
    503,
    errorResponse(503, 'The database is a standby and accepts no writes. Set DATABASE_URL to the primary.'),
  ])
})

describe('lists with a streaming replica', () => {
  it('reads lists from the replica while the replica follows the primary', async () => {
    await settle('1')
    await vi.waitFor(async () => expect(await onReplica()).toEqual(['1']), DATABASE_WAIT)
    await untilRespondedBy('replica')
    expect(await list()).toEqual({ status: 200, utrs: ['1'], respondedBy: 'replica' })
  })

  it('lists all imported rows once the import command has finished, however far the replica lags behind', async () => {
    await pauseReplay()
    const csv = `mid,amount,utr,bank_reference_number,status,initiation_date\n${mid},1000.00,2,BRN2,SUCCESS,2026-01-05T00:00:00Z\n`
    const importing = runOps(urls.url, ['settlements', 'import', '-'], csv, { DATABASE_READ_URL: urls.replicaUrl })
    await vi.waitFor(async () => {
      const { rows } = await service.db.query('select utr from settlements order by utr')
      expect(rows).toHaveLength(2)
    }, DATABASE_WAIT)
    expect(await list()).toMatchObject({ utrs: ['1'], respondedBy: 'replica' })
    await resumeReplay()
    expect(await importing).toMatchObject({ code: 0 })
    expect(await list()).toMatchObject({ utrs: ['1', '2'], respondedBy: 'replica' })
  })

  it('waits at most a minute for an unresponsive replica after an import', async () => {
    const network = await startTcpProxy(Number(new URL(urls.replicaUrl).port))
    network.cut('swallowed')
    const silent = Object.assign(new URL(urls.replicaUrl), { port: String(network.port) }).href
    const began = performance.now()
    expect(await waitForReplica(service.db, silent, 1_000)).toBe(false)
    // The last query may have begun just before.
    expect(performance.now() - began).toBeLessThan(4_000)
    network.close()
  })

  it('reads lists from the primary if the replica does not respond', async () => {
    await untilRespondedBy('replica')
    const { rows } = await replica.query<{ pid: number }>(
      `select pid from pg_stat_activity where datname = 'payments' and backend_type = 'client backend'`,
    )
    for (const { pid: backend } of rows) process.kill(backend, 'SIGSTOP')
    try {
      expect(await list()).toMatchObject({ status: 200, utrs: ['1', '2'], respondedBy: 'primary' })
    } finally {
      for (const { pid: backend } of rows) process.kill(backend, 'SIGCONT')
    }
  })

  it('reads lists from the primary as soon as the replica is unreachable, and from the replica once the replica has caught up', async () => {
    await untilRespondedBy('replica')
    servers.stopReplica()
    expect(await list()).toEqual({ status: 200, utrs: ['1', '2'], respondedBy: 'primary' })
    await settle('3')
    expect(await list()).toEqual({ status: 200, utrs: ['1', '2', '3'], respondedBy: 'primary' })
    await servers.startReplica()
    await vi.waitFor(async () => expect(await onReplica()).toEqual(['1', '2', '3']), DATABASE_WAIT)
    await untilRespondedBy('replica')
    expect(await list()).toEqual({ status: 200, utrs: ['1', '2', '3'], respondedBy: 'replica' })
  })

  it('reads lists from the primary if the chosen replica fails', async () => {
    await untilRespondedBy('replica')
    failing.add('replica')
    expect(await list()).toMatchObject({ status: 200, utrs: ['1', '2', '3'], respondedBy: 'primary' })
    // Queried whether it follows the primary, and for the list.
    expect(requested).toEqual(['replica', 'replica', 'primary'])
    failing.clear()
  })

  it('reads lists from the primary once the replica is promoted, so that no list is falsely empty', async () => {
    await untilRespondedBy('replica')
    await replica.query('select pg_promote()')
    const merchant = await newMerchant(service.db)
    const other = { mid: merchant.mid, ...(await newPartner(service.db, merchant.mid)) }
    await settle('4', other.mid)
    for (let i = 0; i < 10; i++) {
      expect(await list(other)).toEqual({ status: 200, utrs: ['4'], respondedBy: 'primary' })
    }
    expect(await onReplica()).toEqual(['1', '2', '3'])
  })
})
