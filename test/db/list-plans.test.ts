import pg from 'pg'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { asRole } from '../support/database-url.ts'
import { NEEDS_JIT } from '../support/installed-postgres.ts'
import { createWithHistory, HISTORIES } from '../support/order-states.ts'
import { openPool } from '../support/postgres-server.ts'
import {
  LINKED_MERCHANTS,
  LIST,
  newMerchant,
  newPartner,
  OWN_ORDERS,
  OWN_REFUNDS,
  OWN_SETTLEMENTS,
  OWN_TRANSACTIONS,
  post,
  startService,
  TRANSACTIONS,
} from '../support/service.ts'

// The role of this service has no settings of its own, and the service streams every list, even an empty list.
const service = await startService({ limits: { lists: { shortRows: -1 } } })
// A PostgreSQL server with a JIT library then compiles every statement that may be compiled.
await service.db.query(
  `do $$ begin execute format('alter database %I set jit_above_cost = 0', current_database()); end $$`,
)
const merchant = await newMerchant(service.db)
const partner = await newPartner(service.db, merchant.mid)
for (const history of Object.keys(HISTORIES)) await createWithHistory(service, merchant, history)

/** The plan of every COPY that the service sends, explained in the transaction of the COPY. */
const plans: string[] = []

beforeEach(() => {
  const query = pg.Client.prototype.query as (...args: unknown[]) => unknown
  vi.spyOn(pg.Client.prototype, 'query').mockImplementation(function (this: pg.Client, ...args: unknown[]) {
    const [, inner] = /^copy \((.*)\) to stdout$/s.exec((args[0] as { text?: string }).text ?? '') ?? []
    if (inner !== undefined) {
      const explained = query.call(this, `explain (format json) ${inner}`) as Promise<pg.QueryResult>
      explained.then(({ rows }) => plans.push(JSON.stringify(rows[0])))
    }
    return query.apply(this, args)
  } as never)
})
afterEach(() => {
  vi.restoreAllMocks()
  plans.length = 0
})

const own = (path: string, fields = {}) => ({ path, key: merchant.key, fields: { mid: merchant.mid, ...fields } })
const linked = (path: string) => ({ path, key: partner.key, fields: { mid: merchant.mid, pid: partner.pid } })
const BY_INDEX = [
  own(OWN_ORDERS),
  ...['PENDING', 'SUCCESS', 'FAIL', 'REJECT'].map((status) => own(OWN_ORDERS, { status })),
  ...[OWN_TRANSACTIONS, OWN_SETTLEMENTS, OWN_REFUNDS].map((path) => own(path)),
  ...[LIST, TRANSACTIONS].map(linked),
]

/** Returns the plan of the list. */
async function explain({ path, key, fields }: (typeof BY_INDEX)[number]): Promise<string> {
  const days = { s_date: '01-01-2020', e_date: '31-12-2029' }
  expect((await post(service.app, path, { ...days, ...fields }, key)).status).toBe(200)
  expect(plans).toHaveLength(1)
  return plans[0] as string
}

it.each(BY_INDEX)('PostgreSQL reads the list $path by an index, without a sort: $fields.status', async (list) => {
  const plan = await explain(list)
  expect(plan).toContain('Index Scan')
  expect(plan).not.toContain('"Node Type":"Sort"')
})

it.each([...BY_INDEX, linked(LINKED_MERCHANTS)])(
  'PostgreSQL reads the list $path without compiling the statement: $fields.status',
  async (list) => expect(await explain(list)).not.toContain('"JIT"'),
)

it.runIf(NEEDS_JIT)('the PostgreSQL server compiles other statements of the service', async () => {
  expect((await service.pools.requests.query('select pg_jit_available() as available')).rows).toEqual([
    { available: true },
  ])
  const { rows } = await service.pools.requests.query('explain (format json) select from payments where utr = order_id')
  expect(JSON.stringify(rows)).toContain('"JIT"')
})

it.each(['upi_service', 'upi_owner'] as const)('PostgreSQL compiles no statement of the role %s', async (role) => {
  const db = openPool(asRole(service.databaseUrl, role))
  const { rows } = await db.query('show jit')
  await db.end()
  expect(rows).toEqual([{ jit: 'off' }])
})
