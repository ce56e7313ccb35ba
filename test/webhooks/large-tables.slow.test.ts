import type { QueryConfig } from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { createDeliveries, type Delivery } from '../../src/gateway/webhooks/deliveries.ts'
import { expiryJobs, watchOpenOrders } from '../../src/gateway/webhooks/expiries.ts'
import { pruneDeliveries } from '../../src/gateway/webhooks/prune-deliveries.ts'
import { createFindPending } from '../../src/jobs.ts'
import { LIMITS } from '../../src/limits.ts'
import type { Database } from '../../src/platform/db/pool.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { runPendingJobs } from '../support/pending-jobs.ts'

// Orders and deliveries of years, of which few are pending. Whatever statistics PostgreSQL has, the statements that
// run every second must read only pending rows.

const ORDERS = 100_000
const MERCHANTS = 20
/** Pending deliveries per merchant's endpoint; that of M0 was unavailable for long. */
const WAITING = 20
const WAITING_FOR_M0 = 2_000
const EXPIRIES = 10_000
/** Expired orders per transaction: few of the merchant's orders, since otherwise a full read would be right. */
const EXPIRED = 100
/** One of this many orders can be paid for 3 days. These orders belong to M0 and M10. */
const LONG_EVERY = 50
const OF_DAY = 24 * 60 * 20
const OF_DAY_AND_10_MINUTES = OF_DAY + 10 * 20
const NOW = new Date('2026-11-21T10:00:00Z')
const LATER = new Date('2026-11-21T10:00:40Z')
const { lookedAt, callsOfEndpoint } = LIMITS.webhooks

/** A table read by a plan: the number of rows read, including filtered ones, and the index or node type. */
type Read = { table: string; by: string; rows: number }

let database: TestDatabase
let db: Database
beforeAll(async () => {
  database = await createTestDatabase()
  db = database.db
  await fill()
}, 120_000)
async function fill() {
  // The tests below decide which statistics PostgreSQL has.
  await db.query(
    `alter table payment_intents set (autovacuum_enabled = off);
     alter table webhook_deliveries set (autovacuum_enabled = off);
     alter table webhook_expiries set (autovacuum_enabled = off);
     alter table webhook_endpoints set (autovacuum_enabled = off)`,
  )
  await db.query(
    `insert into merchants (mid, name, vpa, mcc, dynamic_qr, created_at)
     select 'M' || i, 'Chai Point', 'chaipoint@examplebank', '5814', 'link', now() from generate_series(0, ${MERCHANTS} - 1) i;
     insert into webhook_endpoints (mid, endpoint_id, kind, url, secret, created_at)
     select mid, 'ep_' || mid, 'webhook', 'https://shop.example/hook', 'sealed', '2026-01-01' from merchants`,
  )
  // One order every 3 s, the last one created at NOW.
  await db.query(
    `insert into payment_intents
       (mid, order_id, merchant_order_id, amount_paise, redirect_url, note, customer_name, customer_email, customer_mobile,
        payee_vpa, payee_name, payee_mcc, created_at, expires_at, status, utr, event_sequence)
     select 'M' || i % ${MERCHANTS}, id, id, 20000, 'https://shop.example.in/thanks', 'Order', 'Asha Rao', 'asha@example.in',
            '0123456789', 'chaipoint@examplebank', 'Chai Point', '5814', at,
            at + case when i % ${LONG_EVERY} = 0 then interval '3 days' else interval '15 minutes' end,
            case when i % 10 = 0 then 'PENDING' else 'SUCCESS' end, case when i % 10 > 0 then i::text end, 1
       from generate_series(1, ${ORDERS}) i,
            lateral (select $1::timestamptz - interval '3 seconds' * (${ORDERS} - i) as at) moments,
            lateral (select lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || left(md5(i::text), 20) as id) ids`,
    [NOW],
  )
  await db.query(
    `insert into webhook_deliveries
       (mid, endpoint_id, order_id, sequence, type, txn_status, utr, occurred_at, attempts, delivered_at, attempted_at,
        outcome, response)
     select mid, 'ep_' || mid, order_id, 1, 'payment.succeeded', 'SUCCESS', utr, created_at, 1, created_at, created_at,
            '200', 'ok'
       from payment_intents`,
  )
  await db.query(
    `insert into webhook_expiries (mid, order_id, final_at)
     select mid, order_id, created_at + interval '25 minutes'
       from payment_intents where status = 'PENDING' order by order_id desc limit ${EXPIRIES}`,
  )
}

/** Makes the latest deliveries of each merchant pending. */
async function makeWait() {
  await db.query(
    `update webhook_deliveries d
        set due_at = $1::timestamptz - interval '1 second', delivered_at = null
       from (select 'M' || n as mid, case n when 0 then ${WAITING_FOR_M0} else ${WAITING} end as waiting
               from generate_series(0, ${MERCHANTS} - 1) n) m
      cross join lateral (select order_id from webhook_deliveries
                           where mid = m.mid and endpoint_id = 'ep_' || m.mid
                           order by order_id desc limit m.waiting) w
      where d.mid = m.mid and d.endpoint_id = 'ep_' || m.mid and d.order_id = w.order_id`,
    [NOW],
  )
}

type Plan = {
  'Node Type': string
  'Relation Name'?: string
  'Index Name'?: string
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  'Rows Removed by Index Recheck'?: number
  'Shared Hit Blocks': number
  'Shared Read Blocks': number
  Plans?: Plan[]
}

const nodesOf = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodesOf)]

const IGNORING = { release: () => undefined, on: () => undefined, off: () => undefined }

/** Runs `work` on `db` and rolls it back. Returns what its statements read, and the most blocks that a plan node read. */
async function readBy(
  db: Database,
  work: (db: Database) => Promise<unknown>,
): Promise<{ reads: Read[]; blocks: number }> {
  const client = await db.connect()
  const plans: Plan[] = []
  const query = async (statement: string | QueryConfig, given: unknown[] = []) => {
    const { text, values = given } = typeof statement === 'string' ? { text: statement } : statement
    if (/^set local /.test(text)) return client.query(text)
    if (/^(begin|commit)$/.test(text)) return
    await client.query('savepoint before_it')
    const { rows } = await client.query(`explain (analyze, buffers, format json) ${text}`, values)
    plans.push(rows[0]['QUERY PLAN'][0].Plan)
    // The real result is returned, because later statements may depend on it.
    await client.query('rollback to savepoint before_it')
    return typeof statement === 'string' ? client.query(statement, given) : client.query(statement)
  }
  const explaining = { query, connect: async () => ({ query, ...IGNORING }) } as unknown as Database
  try {
    await client.query('begin')
    await work(explaining)
  } finally {
    await client.query('rollback')
    client.release()
  }
  const nodes = plans.flatMap(nodesOf)
  const reads = nodes
    .filter((node) => node['Relation Name'] !== undefined && node['Node Type'] !== 'ModifyTable')
    .map((node) => {
      const perLoop = [node['Actual Rows'], node['Rows Removed by Filter'], node['Rows Removed by Index Recheck']]
      const rows = perLoop.reduce((sum: number, part) => sum + (part ?? 0), 0) * node['Actual Loops']
      const by = node['Index Name'] ?? node.Plans?.[0]?.['Index Name'] ?? node['Node Type']
      return { table: node['Relation Name'] as string, by, rows }
    })
  return { reads, blocks: Math.max(...nodes.map((node) => node['Shared Hit Blocks'] + node['Shared Read Blocks'])) }
}

const expiriesOf = (db: Database) => expiryJobs({ db, now: () => NOW, limits: { lookedAt: EXPIRED } })

const take = (db: Database) =>
  createDeliveries(db).claim({ mid: 'M0', endpointId: 'ep_M0' }, callsOfEndpoint, NOW, LATER)

const STATEMENTS: Record<string, { rows: number; run: (db: Database) => Promise<unknown> }> = {
  'read pending deliveries': {
    rows: MERCHANTS,
    run: (db) => createDeliveries(db).findPending(lookedAt, NOW),
  },
  'claim the pending deliveries of an endpoint': {
    rows: 2 * callsOfEndpoint,
    run: take,
  },
  'store the result of an attempt': {
    rows: 2 * callsOfEndpoint,
    run: async (queryable) => {
      const [delivery] = await take(db)
      const attempt = {
        delivery: delivery as Delivery,
        delivered: true,
        outcome: '200',
        response: 'ok',
        at: NOW,
        next: undefined,
      }
      await createDeliveries(queryable).settle(attempt)
    },
  },
  'read the orders of 15 minutes, for each of a day': {
    rows: 320,
    run: (db) => expiriesOf(db).findQueues(),
  },
  'write the events of expired orders': {
    rows: EXPIRED,
    run: async ({ connect }) => {
      // The statement that finds the orders is tested separately.
      const { findQueues, ...source } = expiriesOf({ query: db.query.bind(db), connect } as Database)
      await runPendingJobs({ ...source, findQueues: async () => (await findQueues()).slice(0, 1) })
    },
  },
}

// Excludes webhook_expiries, which contains pending rows only.
const LARGE = ['payment_intents', 'webhook_deliveries']
/** Blocks for the depth of an index, the row, and what an update writes. */
const BLOCKS_PER_ROW = 60

async function judge(name: string) {
  const { rows, run } = STATEMENTS[name] as (typeof STATEMENTS)[string]
  const { reads, blocks } = await readBy(db, run)
  const ofLarge = reads.filter(({ table }) => LARGE.includes(table))
  expect(ofLarge.length).toBeGreaterThan(0)
  for (const read of ofLarge) expect(read.rows, JSON.stringify(read)).toBeLessThanOrEqual(rows)
  expect(blocks).toBeLessThanOrEqual(rows * BLOCKS_PER_ROW)
}

const LONG_INDEX = 'payment_intents_long_idx'

/** What `work` reads of the orders, by the index of long orders and in another way. */
async function readOfOrders(work: (db: Database) => Promise<unknown>) {
  const reads = (await readBy(db, work)).reads.filter(({ table }) => table === 'payment_intents')
  const rowsOf = (isLong: boolean) => reads.filter(({ by }) => (by === LONG_INDEX) === isLong).map(({ rows }) => rows)
  return { long: rowsOf(true), others: rowsOf(false) }
}

describe('statements of the scheduler in a table of 100,000 orders', () => {
  describe('with statistics from before any delivery was pending', () => {
    beforeAll(async () => {
      await db.query('update webhook_deliveries set due_at = null, delivered_at = occurred_at where due_at is not null')
      await db.query('analyze')
      await makeWait()
    }, 60_000)
    it.each(Object.keys(STATEMENTS))(
      'the scheduler statement “%s” reads only pending rows, even with statistics that PostgreSQL collected before any delivery',
      judge,
    )
  })

  describe('with current statistics', () => {
    beforeAll(async () => void (await db.query('analyze')), 60_000)
    it.each(Object.keys(STATEMENTS))(
      'the scheduler statement “%s” reads only pending rows with current statistics',
      judge,
    )
  })
})

it('a claim of an endpoint reads only its pending deliveries, in a table of 500 merchants', async () => {
  const { db } = await createTestDatabase()
  await db.query(
    `begin;
     set local session_replication_role = replica;
     insert into webhook_deliveries (mid, endpoint_id, order_id, sequence, type, txn_status, utr, occurred_at, due_at)
     select 'M' || i % 500, 'ep_' || i % 500, i::text, 1, 'payment.succeeded', 'SUCCESS', i::text, '2026-01-01',
            case when i < 500 then timestamptz '2026-01-01' end
       from generate_series(0, 49999) i;
     commit;
     analyze webhook_deliveries`,
  )
  const claim = (db: Database) =>
    createDeliveries(db).claim({ mid: 'M0', endpointId: 'ep_0' }, callsOfEndpoint, NOW, LATER)
  const { reads } = await readBy(db, claim)
  const ofDeliveries = reads.filter(({ table }) => table === 'webhook_deliveries')
  expect(ofDeliveries.length).toBeGreaterThan(0)
  expect(ofDeliveries.filter(({ rows }) => rows > callsOfEndpoint)).toEqual([])
})

it('webhooks prune reads 1,000 deliveries of an endpoint in each transaction, in a table of 100,000 orders', async () => {
  const { reads } = await readBy(db, (db) => pruneDeliveries(db, NOW, async () => undefined))
  const ofDeliveries = reads.filter(({ table }) => table === 'webhook_deliveries')
  expect(ofDeliveries.length).toBeGreaterThan(ORDERS / 1_000)
  expect(ofDeliveries.filter(({ rows }) => rows > 1_000)).toEqual([])
})

describe('long orders in a table of 100,000 orders', () => {
  it('an added webhook endpoint reads the orders of one day, and by their own index the open long orders before', async () => {
    const { long, others } = await readOfOrders((db) => watchOpenOrders(db, 'M0', NOW))
    expect([long.length, others.length]).toEqual([1, 1])
    expect(others[0]).toBeLessThanOrEqual(OF_DAY_AND_10_MINUTES)
    expect(long[0]).toBeGreaterThan(0)
    expect(long[0]).toBeLessThanOrEqual(ORDERS / LONG_EVERY)
  })
})

describe('a disabled endpoint with 1,000,000 pending deliveries', () => {
  /** Reads of the deliveries: two of each endpoint, and the next endpoint's of each. */
  const ROWS = 2 * MERCHANTS + 2
  const SEQUENCES = 200

  beforeAll(async () => {
    await db.query('update webhook_deliveries set due_at = null, delivered_at = occurred_at where due_at is not null')
    await db.query('analyze')
    // Foreign keys are not checked, because that takes longer than storing the rows.
    await db.query(
      `begin;
       set local session_replication_role = replica;
       insert into webhook_endpoints (mid, endpoint_id, kind, url, secret, created_at, disabled_at, disabled_reason)
       values ('M10', 'ep_disabled', 'webhook', 'https://shop.example/', 'sealed', '2026-01-01', '2026-11-01', 'operator');
       insert into webhook_deliveries
         (mid, endpoint_id, order_id, sequence, type, txn_status, utr, occurred_at, due_at)
       select mid, 'ep_disabled', order_id, sequence, 'payment.succeeded', 'SUCCESS', utr, created_at, created_at
         from payment_intents, generate_series(1, ${SEQUENCES}) sequence
        where mid = 'M10';
       commit`,
    )
    const { rows } = await db.query(`select count(*) from webhook_deliveries where endpoint_id = 'ep_disabled'`)
    expect(Number(rows[0].count)).toBe((ORDERS / MERCHANTS) * SEQUENCES)
  }, 120_000)

  it.each(['before', 'after'])(
    'costs the poll and the search for pending deliveries a few rows, %s PostgreSQL collected statistics',
    async (when) => {
      if (when === 'after') await db.query('analyze')
      for (const run of [
        (queryable: Database) => createFindPending(queryable, () => NOW)(),
        (queryable: Database) => createDeliveries(queryable).findPending(lookedAt, NOW),
      ]) {
        const { reads } = await readBy(db, run)
        const ofDeliveries = reads.filter(({ table }) => table === 'webhook_deliveries')
        expect(ofDeliveries.length).toBeGreaterThan(0)
        for (const read of ofDeliveries) expect(read.rows, JSON.stringify(read)).toBeLessThanOrEqual(ROWS)
      }
    },
    60_000,
  )

  it('does not make webhooks pending', async () => {
    expect(await createFindPending(db, () => NOW)()).toMatchObject({ webhooks: false })
  })
})
