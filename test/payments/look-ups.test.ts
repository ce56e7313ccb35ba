import type pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Database } from '../../src/db/pool.ts'
import type { Report } from '../../src/payments/outcome.ts'
import { createReports } from '../../src/payments/reports.ts'
import { createTestDatabase, testPool } from '../support/database.ts'
import { newMerchant } from '../support/tenants.ts'

// A merchant's first busy day: many orders, of which PostgreSQL has no statistics yet.

const ORDERS = 30_000
const NOW = new Date('2026-03-31T12:00:00Z')

let database: Awaited<ReturnType<typeof createTestDatabase>>
let pool: Database
let mid: string
beforeAll(async () => {
  database = await createTestDatabase()
  pool = testPool(database.url, 2)
  ;({ mid } = await newMerchant(pool))
  await pool.query('alter table payment_intents set (autovacuum_enabled = off)')
  await pool.query(
    `insert into payment_intents
       (mid, order_id, merchant_order_id, amount, redirect_url, note, customer_name, customer_email, customer_mobile,
        payee_vpa, payee_name, payee_mcc, created_at, expires_at)
     select $1, id, id, 200, 'https://shop.example.in/thanks', 'Order', 'Asha Rao', 'asha@example.in', '0123456789',
            'chaipoint@examplebank', 'Chai Point', '5814', $2::timestamptz, $2::timestamptz + interval '15 minutes'
       from (select lpad(to_hex(i), 12, '0') || left(md5(i::text), 20) as id from generate_series(1, ${ORDERS}) i) ids`,
    [mid, NOW],
  )
})
afterAll(async () => {
  await pool.end()
  await database.drop()
})

it.each(['SUCCESS', 'FAIL'] as const)(
  'a %s of one order reads the rows of that order, and not those of its merchant',
  async (status) => {
    const { rows } = await pool.query(
      `select order_id from payment_intents where status = 'PENDING' offset 5000 limit 1`,
    )
    const { order_id: orderId } = rows[0]
    const report: Report = { orderId, status, utr: `NEW${status}`, amount: '200.00', paidAt: NOW }
    const client = await pool.connect()
    try {
      await client.query('begin')
      const before = await rowsRead(client)
      await createReports(within(client)).record(report, { reason: 'notification', now: () => NOW })
      expect((await rowsRead(client)) - before).toBeLessThan(20)
    } finally {
      await client.query('rollback')
      client.release()
    }
  },
)

/** All of it in the one transaction that `client` is in. */
function within(client: pg.PoolClient): Database {
  const query = (text: string, values?: unknown[]) =>
    /^(begin|commit)$/.test(text) ? undefined : client.query(text, values)
  const ignore = () => undefined
  return { query, connect: async () => ({ query, on: ignore, off: ignore, release: ignore }) } as never
}

/** Rows of payment_intents that this connection has read since it last told of them. */
async function rowsRead(client: pg.PoolClient): Promise<number> {
  const { rows } = await client.query(
    `select (seq_tup_read + idx_tup_fetch)::integer as n from pg_stat_xact_user_tables where relname = 'payment_intents'`,
  )
  return rows[0].n
}
