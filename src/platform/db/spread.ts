import type pg from 'pg'
import type { Database, Queryable } from './pool.ts'

/** Tables with a whole copy on every node: small ones that every request reads, and tables about all merchants. */
export const REFERENCE_TABLES: readonly string[] = [
  'merchants',
  'acquirer_accounts',
  'partners',
  'partner_merchants',
  'access_keys',
  'key_uses',
  'schema_migrations',
  'settlement_imports',
  'settlement_import_bases',
  'audit_commands',
  'audit_outcomes',
  'bank_holiday_changes',
  'closed_months',
  'file_layouts',
  'statement_imports',
  'statement_lines',
  'payout_rests',
]

/** The first table to be spread by `mid`. The other tables are colocated with it, so that a merchant is on one node. */
const FIRST_TABLE = 'payment_intents'

/** Settings that are stored in the database, because Citus needs them on every connection. */
const SETTINGS: Readonly<Record<string, string>> = {
  // When on, a table that refers to a reference table stays on the coordinator.
  'citus.enable_local_reference_table_foreign_keys': 'off',
  // Allows triggers on spread tables. Triggers of append-only tables work on a shard as well. Triggers for the service's role
  // read rows of their own merchant only, which lie on the same node.
  'citus.enable_unsafe_triggers': 'on',
  // Sends `set local` to the workers: a long list has to lift its statement_timeout there too.
  'citus.propagate_set_commands': 'local',
  // One connection to each node for a query. By default a look-up in all shards opens one for each shard, and some pay pages
  // at once use up the workers' connections.
  'citus.max_adaptive_executor_pool_size': '1',
}

export const NOT_THE_COORDINATOR = 'this server is a worker: name the coordinator in DATABASE_MIGRATE_URL'

/**
 * Spreads a migrated database over the nodes of its Citus cluster: REFERENCE_TABLES whole on each node, the others by `mid`.
 * Returns the tables that were spread now, or why none can be spread. May be repeated, even after a kill. Writes to a table
 * wait while the table is copied. `db` connects as the tables' owner to the coordinator.
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
    // The lock waits for a killed run, whose last table the server may still be spreading.
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
    // The connection is closed, not released, because its settings differ from those of the pool's other connections.
    client.release(true)
  }
}

export async function hasCitus(db: Queryable): Promise<boolean> {
  const { rowCount } = await db.query(`select from pg_extension where extname = 'citus'`)
  return rowCount === 1
}

/** True for a worker of a Citus cluster, which takes no change of the schema; false for a server outside a cluster. */
export async function isWorker(db: Queryable): Promise<boolean> {
  return (await hasCitus(db)) && (await db.query('select from pg_dist_local_group where groupid > 0')).rowCount === 1
}

/** Tables of later migrations that are not spread yet; none on a single server. */
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

/** Sets SETTINGS in the database, for later connections, and on this connection. */
async function changeSettings(client: Queryable): Promise<void> {
  const { rows } = await client.query<{ name: string }>('select quote_ident(current_database()) as name')
  for (const [setting, value] of Object.entries(SETTINGS)) {
    await client.query(`alter database ${rows[0]?.name} set ${setting} = '${value}'`)
    await client.query(`set ${setting} = '${value}'`)
  }
}

/** Tables to spread, in this order: REFERENCE_TABLES first, and each table after the tables that it refers to. */
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
 * Removes the hidden rows that Citus leaves behind when it copies a table: customers who are forgotten later would stay
 * in these rows. The triggers of append-only tables are off in this transaction, which locks the tables.
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
