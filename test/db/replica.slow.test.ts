import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest'
import { migrate } from '../../src/db/migrate.ts'
import type { Database } from '../../src/db/pool.ts'
import { databaseUrl } from '../support/database-url.ts'
import { type ReplicatedPostgres, startReplicatedPostgres } from '../support/replicated-postgres.ts'
import { type Key, LIST, newMerchant, newPartner, post, startService, type TestService } from '../support/service.ts'

const REPLICA_LIMITS = { lagMs: 1_000, checkIntervalMs: 300, checkTimeoutMs: 500 }
/** Longer than the longest time for which something imported may be missing in a list. */
const BEYOND_LAG_LIMIT_MS = 1_200
/** Long enough for a slow machine; a test that passes rarely waits for long. */
const PATIENCE = { timeout: 20_000, interval: 100 }

let servers: ReplicatedPostgres
let service: TestService
let replica: Database
let mid: string
let pid: string
let key: Key
/** Which of the two was asked for settlements, in order. */
const asked: string[] = []
/** Which of the two fails when it is asked. */
const failing = new Set<string>()

beforeAll(async () => {
  servers = await startReplicatedPostgres(join(inject('runDirectory'), 'replicated'))
  const admin = new pg.Client({ connectionString: servers.primaryUrl })
  await admin.connect()
  await admin.query('create database payments')
  await admin.end()
  const url = databaseUrl(servers.primaryUrl, 'payments')
  await migrate(url)
  const replicated = { url, replicaUrl: databaseUrl(servers.replicaUrl, 'payments') }
  service = await startService({ replicated, limits: { replica: REPLICA_LIMITS } })
  replica = service.replicaDb as Database
  recordLists('primary', service.db)
  recordLists('replica', replica)
  ;({ mid } = await newMerchant(service.db))
  ;({ pid, key } = await newPartner(service.db, mid))
})

// Not inside of beforeAll, where it would not be run.
afterAll(() => servers?.remove())

function recordLists(name: string, pool: Database) {
  const query = pool.query.bind(pool) as (...args: unknown[]) => unknown
  vi.spyOn(pool, 'query').mockImplementation(((...args: unknown[]) => {
    if (JSON.stringify(args[0]).includes('from settlements')) {
      asked.push(name)
      if (failing.has(name)) return Promise.reject(new Error('Connection terminated unexpectedly'))
    }
    return query(...args)
  }) as never)
}

async function settle(utr: string, merchant = mid) {
  await service.db.query(
    `insert into settlements (mid, utr, amount, bank_reference_number, status, initiated_at, created_at)
     values ($1, $2, 1000, $3, 'SUCCESS', '2026-01-05T00:00:00Z', '2026-01-05T00:00:00Z')`,
    [merchant, utr, `BRN${utr}`],
  )
}

async function list(of = { pid, mid, key }) {
  asked.length = 0
  const fields = { pid: of.pid, mid: of.mid, s_date: '05-01-2026', e_date: '05-01-2026' }
  const { status, body } = await post(service.app, LIST, fields, of.key)
  return { status, utrs: body.data?.map((record: { UTR: string }) => record.UTR), answeredBy: asked.at(-1) }
}

const untilAnsweredBy = (answeredBy: string) =>
  vi.waitFor(async () => expect(await list()).toMatchObject({ status: 200, answeredBy }), PATIENCE)

const onReplica = async () => (await replica.query('select utr from settlements order by utr')).rows.map((r) => r.utr)

const pauseReplay = async () => {
  await replica.query('select pg_wal_replay_pause()')
  await vi.waitFor(async () => {
    const { rows } = await replica.query('select pg_get_wal_replay_pause_state() as state')
    expect(rows).toEqual([{ state: 'paused' }])
  }, PATIENCE)
}
const resumeReplay = () => replica.query('select pg_wal_replay_resume()')

describe('lists with a streaming replica', () => {
  it('are read from it while it follows', async () => {
    await settle('1')
    await vi.waitFor(async () => expect(await onReplica()).toEqual(['1']), PATIENCE)
    await untilAnsweredBy('replica')
    expect(await list()).toEqual({ status: 200, utrs: ['1'], answeredBy: 'replica' })
  })

  it('are read from it while slow readers hold every connection for long lists of the primary', async () => {
    const held = await Promise.all(Array.from({ length: 4 }, () => service.listDb.connect()))
    await sleep(BEYOND_LAG_LIMIT_MS)
    await list()
    await untilAnsweredBy('replica')
    for (const client of held) client.release()
  })

  it('are read from the primary once it lags, however often lists are asked for', async () => {
    await untilAnsweredBy('replica')
    await pauseReplay()
    await settle('2')
    const importedAt = performance.now()
    let late = 0
    while (late < 10) {
      const mayLag = performance.now() - importedAt < BEYOND_LAG_LIMIT_MS
      const answer = await list()
      if (mayLag) expect(answer.status).toBe(200)
      else {
        expect(answer).toEqual({ status: 200, utrs: ['1', '2'], answeredBy: 'primary' })
        late += 1
      }
      await sleep(200)
    }
    expect(await onReplica()).toEqual(['1'])
    await resumeReplay()
  })

  it('are read from the primary once it lags, also when nobody has asked for a while', async () => {
    await untilAnsweredBy('replica')
    await pauseReplay()
    await settle('3')
    await sleep(BEYOND_LAG_LIMIT_MS)
    expect(await list()).toEqual({ status: 200, utrs: ['1', '2', '3'], answeredBy: 'primary' })
    expect(await onReplica()).toEqual(['1', '2'])
    await resumeReplay()
  })

  it('are read from the primary when it does not answer', async () => {
    await untilAnsweredBy('replica')
    const { rows } = await replica.query<{ pid: number }>(
      `select pid from pg_stat_activity where datname = 'payments' and backend_type = 'client backend'`,
    )
    for (const { pid: backend } of rows) process.kill(backend, 'SIGSTOP')
    try {
      // The choice of a moment ago is forgotten first: what is under way on a silent connection is not saved.
      await sleep(REPLICA_LIMITS.checkIntervalMs + REPLICA_LIMITS.checkTimeoutMs + 200)
      expect(await list()).toMatchObject({ status: 200, utrs: ['1', '2', '3'], answeredBy: 'primary' })
    } finally {
      for (const { pid: backend } of rows) process.kill(backend, 'SIGCONT')
    }
  })

  it('are read from the primary from the moment that it is away, and from it again when it has caught up', async () => {
    await untilAnsweredBy('replica')
    servers.stopReplica()
    expect(await list()).toEqual({ status: 200, utrs: ['1', '2', '3'], answeredBy: 'primary' })
    await settle('4')
    expect(await list()).toEqual({ status: 200, utrs: ['1', '2', '3', '4'], answeredBy: 'primary' })
    await servers.startReplica()
    await vi.waitFor(async () => expect(await onReplica()).toEqual(['1', '2', '3', '4']), PATIENCE)
    await untilAnsweredBy('replica')
    expect(await list()).toEqual({ status: 200, utrs: ['1', '2', '3', '4'], answeredBy: 'replica' })
  })

  it('are read from the primary when the replica fails after it was chosen', async () => {
    await untilAnsweredBy('replica')
    failing.add('replica')
    expect(await list()).toMatchObject({ status: 200, utrs: ['1', '2', '3', '4'], answeredBy: 'primary' })
    expect(asked).toEqual(['replica', 'primary'])
    failing.clear()
  })

  it('are read from the primary once the replica is promoted: never a false "No settlements found"', async () => {
    await untilAnsweredBy('replica')
    await replica.query('select pg_promote()')
    const merchant = await newMerchant(service.db)
    const other = { mid: merchant.mid, ...(await newPartner(service.db, merchant.mid)) }
    await settle('5', other.mid)
    await sleep(BEYOND_LAG_LIMIT_MS)
    for (let i = 0; i < 10; i++) {
      expect(await list(other)).toEqual({ status: 200, utrs: ['5'], answeredBy: 'primary' })
      await sleep(200)
    }
    expect(await onReplica()).toEqual(['1', '2', '3', '4'])
  })
})
