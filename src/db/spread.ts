import type pg from 'pg'
import type { Database, Queryable } from './pool.ts'

/**
 * Tables of which every node holds a whole copy: small ones that every request reads, and those of all merchants
 * together.
 */
export const REFERENCE_TABLES: readonly string[] = [
  'merchants',
  'partners',
  'partner_merchants',
  'access_keys',
  'schema_migrations',
  'settlement_imports',
  'settlement_import_bases',
  'audit_commands',
  'audit_outcomes',
  'bank_holidays',
  'closed_months',
]

/**
 * The first table that is spread by `mid`. The shards of the others lie beside its shards, so that a merchant's rows
 * are all on one node.
 */
const FIRST_TABLE = 'payment_intents'

/** Settings of the database, since Citus asks for them on every connection. */
const SETTINGS: Readonly<Record<string, string>> = {
  // When this is on, a table that refers to a reference table is kept on the coordinator alone.
  'citus.enable_local_reference_table_foreign_keys': 'off',
  // Allows triggers on spread tables. Those of append-only tables refuse as rightly on a shard. Those of the service's role
  // look at rows of their own merchant alone, which lie on the same node.
  'citus.enable_unsafe_triggers': 'on',
  // Passes `set local` on to the workers: a long list lifts its statement_timeout there too.
  'citus.propagate_set_commands': 'local',
  // One connection to each node for a query. By default a look-up that asks every shard opened one for each shard, and
  // 50 pay pages at once used up the workers' connections.
  'citus.max_adaptive_executor_pool_size': '1',
}

export const NOT_THE_COORDINATOR = 'this server is a worker: name the coordinator in DATABASE_MIGRATE_URL'

/**
 * Spreads a migrated database over the nodes of its Citus cluster: the small tables whole on each node, those of tenants by
 * `mid`. Returns the tables that it spread, none when all were, or why it cannot. May be repeated, also after it was killed.
 * Writes to a table wait while it is copied. `db` belongs to the tables' owner and leads to the coordinator.
 */
export async function spread(
  db: Database,
  onStep: (step: string) => void,
): Promise<{ spread: string[] } | { refused: string }> {
  const refused = await whyNot(db)
  if (refused !== undefined) return { refused }
  const client = await db.connect()
  try {
    await client.query('set statement_timeout = 0; set lock_timeout = 0; set client_min_messages = warning')
    // The lock is for a run that was killed: its last table is still being spread in the server.
    await client.query(`select pg_advisory_lock(hashtext('upi_service spread'))`)
    await changeSettings(client)
    const tables = await unspreadTables(client)
    for (const table of tables) {
      onStep(`spreading ${table}`)
      await spreadTable(client, table)
    }
    await removeLocalCopies(client)
    return { spread: tables }
  } finally {
    // The connection is closed, not handed back: its settings are not those of the pool's other connections.
    client.release(true)
  }
}

/** Whether the server has Citus, on which the insert of a batch needs another shape. */
export async function hasCitus(db: Queryable): Promise<boolean> {
  const { rowCount } = await db.query(`select from pg_extension where extname = 'citus'`)
  return rowCount === 1
}

/**
 * True for a worker of a Citus cluster, which takes no change of the schema; false for a server that no cluster has
 * yet.
 */
export async function isWorker(db: Queryable): Promise<boolean> {
  return (await hasCitus(db)) && (await db.query('select from pg_dist_local_group where groupid > 0')).rowCount === 1
}

/** Tables that a later migration has made and that are not spread yet; none on one server. */
export async function forgottenTables(db: Queryable): Promise<string[]> {
  if (!(await hasCitus(db))) return []
  const { rowCount } = await db.query('select from pg_dist_partition where logicalrelid = $1::regclass', [FIRST_TABLE])
  return rowCount === 0 ? [] : unspreadTables(db)
}

async function whyNot(db: Queryable): Promise<string | undefined> {
  if (!(await hasCitus(db))) {
    return 'this database has no Citus: only a cluster of Citus can hold a database on several servers'
  }
  if (await isWorker(db)) return NOT_THE_COORDINATOR
  if ((await db.query('select from pg_dist_node where shouldhaveshards')).rowCount === 0) {
    return 'the cluster has no workers: add them first, by `select citus_add_node(…)` on the coordinator'
  }
  return undefined
}

/** Stores SETTINGS in the database, for later connections, and sets them for this connection. */
async function changeSettings(client: Queryable): Promise<void> {
  const { rows } = await client.query<{ name: string }>('select quote_ident(current_database()) as name')
  for (const [setting, value] of Object.entries(SETTINGS)) {
    await client.query(`alter database ${rows[0]?.name} set ${setting} = '${value}'`)
    await client.query(`set ${setting} = '${value}'`)
  }
}

/**
 * Tables that are not spread yet, in the order of spreading: those of all merchants before those of tenants, and each
 * after the ones that it refers to.
 */
async function unspreadTables(db: Queryable): Promise<string[]> {
  const { rows } = await db.query<{ table: string }>(
    `with recursive chain (oid, length) as (
       select oid, 0 from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'
       union all
       select f.conrelid, length + 1 from chain join pg_constraint f on f.contype = 'f' and f.confrelid = chain.oid
     )
     select relname as "table"
       from chain
       join pg_class c using (oid)
      where not exists (select from pg_dist_partition where logicalrelid = c.oid)
      group by relname
      order by relname <> all ($1), relname <> $2, max(length), relname`,
    [REFERENCE_TABLES, FIRST_TABLE],
  )
  return rows.map(({ table }) => table)
}

async function spreadTable(client: Queryable, table: string): Promise<void> {
  if (REFERENCE_TABLES.includes(table)) {
    await client.query('select create_reference_table($1::regclass)', [table])
  } else {
    const beside = table === FIRST_TABLE ? 'none' : FIRST_TABLE
    await client.query(`select create_distributed_table($1::regclass, 'mid', colocate_with => $2)`, [table, beside])
  }
}

/**
 * Removes the rows that Citus leaves behind, unseen, when it copies a table: customers that were forgotten would stay
 * in them. The triggers of append-only tables are off for that transaction, in which nobody else reaches the tables.
 */
async function removeLocalCopies(client: pg.PoolClient): Promise<void> {
  const { rows } = await client.query<{ table: string; holdsCopy: boolean }>(
    `select logicalrelid::text as "table", pg_relation_size(logicalrelid) > 0 as "holdsCopy" from pg_dist_partition`,
  )
  const copies = rows.filter(({ holdsCopy }) => holdsCopy)
  if (copies.length === 0) return
  await client.query('begin')
  for (const { table } of rows) await client.query(`alter table ${table} disable trigger user`)
  for (const { table } of copies) await client.query('select truncate_local_data_after_distributing_table($1)', [table])
  for (const { table } of rows) await client.query(`alter table ${table} enable trigger user`)
  await client.query('commit')
}
