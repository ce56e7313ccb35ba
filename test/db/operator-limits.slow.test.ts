import { PassThrough, Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { SETTLEMENTS } from '../../src/books/settlements/fetch-settlement-list.ts'
import { migrate } from '../../src/platform/db/migrate.ts'
import { createPool, type Database } from '../../src/platform/db/pool.ts'
import { createLists } from '../../src/platform/lists/lists.ts'
import { createTestDatabase } from '../support/database.ts'
import { listValues } from '../support/list-reader.ts'
import { newMerchant } from '../support/service.ts'
import { importFile } from '../support/settlements.ts'

/** The number of the advisory lock of `ops migrate`, the same in every version. */
const MIGRATE_LOCK_ID = 7_241_865_325_823_964
/**
 * The limit that the operator has set for every role. A busy machine may take a second until a transaction has set its
 * own limits.
 */
const OPERATOR_LIMIT_MS = 1_500
const BEYOND_LIMIT_MS = 3 * OPERATOR_LIMIT_MS
const SETTINGS = ['statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout']

let url: string
let db: Database
let mid: string
beforeAll(async () => {
  ;({ url } = await createTestDatabase())
  db = unlimited(url)
  ;({ mid } = await newMerchant(db))
  await db.end()
  await limit(url)
  db = unlimited(url)
})
afterAll(async () => {
  await db.end()
})

const unlimited = (address: string) =>
  createPool({ url: address, size: 3, log: pino({ level: 'silent' }), queryTimeoutMs: 0, connectTimeoutMs: 30_000 })

async function limit(address: string) {
  const client = new pg.Client({ connectionString: address })
  await client.connect()
  for (const setting of SETTINGS) {
    await client.query(`alter database ${client.database} set ${setting} = ${OPERATOR_LIMIT_MS}`)
  }
  await client.end()
}

const HEADER = 'mid,amount,utr,bank_reference_number,status,initiation_date\n'
const line = (utr: number) => `${mid},1.00,LIMIT${utr},BRN,SUCCESS,2026-01-15T00:00:00Z\n`

describe('time limits that the operator has set for the role or the database', () => {
  it('a statement_timeout set by the operator cancels an ordinary query that takes too long', async () => {
    await expect(db.query('select pg_sleep(10)')).rejects.toMatchObject({ code: '57014' })
  })

  it('a time-out set by the operator cancels neither an import that waits for another import nor an import whose file arrives slowly', async () => {
    const slow = new PassThrough()
    slow.write(HEADER)
    // A whole batch, so that a part is stored before the rest of the file arrives.
    for (let i = 0; i < 10_000; i++) slow.write(line(i))
    const first = importFile(db, slow, { now: new Date('2026-02-01') })
    await sleep(OPERATOR_LIMIT_MS / 2)
    const second = importFile(db, Readable.from([HEADER, line(0)]), { now: new Date('2026-02-01') })
    await sleep(BEYOND_LIMIT_MS)
    slow.end(line(10_000))
    expect(await first).toEqual({ inserted: 10_001, unchanged: 0, updated: 0 })
    expect(await second).toEqual({ inserted: 0, unchanged: 1, updated: 0 })
  })

  it.each([
    ['longer than', 100_000],
    ['shorter than', 5_000],
  ])(
    'a time-out set by the operator cancels no long list with a slow reader if the list is %s the socket buffers',
    async (_when, size) => {
      const { mid } = await newMerchant(db)
      const filler = new pg.Client({ connectionString: url })
      await filler.connect()
      await filler.query('set statement_timeout = 0')
      await filler.query(
        `insert into settlements (mid, utr, amount_paise, bank_reference_number, status, initiated_at, created_at)
       select $1, 'LIST' || i, 1, 'BRN', 'SUCCESS', '2026-03-15', '2026-03-15' from generate_series(1, ${size}) i`,
        [mid],
      )
      await filler.end()
      const { long } = createLists({ lists: db })
      let rows = 0
      for await (const batch of long(
        SETTLEMENTS,
        listValues(mid, '2026-03-01', '2026-04-01'),
        new AbortController().signal,
      )) {
        if (rows === 0) await sleep(BEYOND_LIMIT_MS)
        rows += batch.length
      }
      expect(rows).toBe(size)
      // The connection returns to the pool without the list's settings.
      const { rows: settings } = await db.query('show statement_timeout')
      expect(settings).toEqual([{ statement_timeout: `${OPERATOR_LIMIT_MS}ms` }])
    },
  )

  it('a time-out set by the operator cancels no migration that waits for another process’s migration', async () => {
    const empty = await createTestDatabase({ empty: true })
    await limit(empty.url)
    const holder = new pg.Client({ connectionString: empty.url })
    await holder.connect()
    await holder.query('select pg_advisory_lock($1)', [MIGRATE_LOCK_ID])
    const migrating = migrate(empty.url)
    await sleep(BEYOND_LIMIT_MS)
    await holder.query('select pg_advisory_unlock($1)', [MIGRATE_LOCK_ID])
    expect(await migrating).toContain('0001_tenants')
    await holder.end()
  })
})
