import type pg from 'pg'
import type { Database, Queryable } from './pool.ts'

/** What is small and read with every request, or is of all merchants: every node holds a whole copy. */
export const REFERENCE_TABLES: readonly string[] = [
  'merchants',
  'partners',
  'partner_merchants',
  'access_keys',
  'schema_migrations',
  'webhook_expiry_sweep',
  'settlement_imports',
  'settlement_import_bases',
  'audit_commands',
  'audit_outcomes',
  'service_instances',
]

/** The tenants' table beside whose shards those of the others lie, so that a merchant's rows are all on one node. */
export const FIRST_TABLE = 'payment_intents'

/** Settings of the database, since Citus asks for them on every connection. */
const SETTINGS: Readonly<Record<string, string>> = {
  // Else a table that refers to a reference table would be kept on the coordinator alone.
  'citus.enable_local_reference_table_foreign_keys': 'off',
  // The only triggers are those of append-only tables, which refuse as rightly on a shard.
  'citus.enable_unsafe_triggers': 'on',
  // A long list lifts its statement_timeout: on the workers too.
  'citus.propagate_set_commands': 'local',
  // A look-up that asks every shard opened a connection for each: 50 pay pages at once used up those of the workers.
  'citus.max_adaptive_executor_pool_size': '1',
}

const LOCK = `hashtext('upi_service spread')`

/** Why a database cannot be spread. */
export type SpreadObstacle = 'no citus' | 'not the coordinator' | 'no workers'

/**
 * Spreads a migrated database over the nodes of its Citus cluster: the small tables whole on each node, those of tenants by
 * `mid`. Returns the tables that it spread, none when all were. May be repeated, also after it was killed: it waits for one
 * that is under way. `onStep` is told what is done next. Writes to a table wait while it is copied. `db` belongs to the tables' owner and leads to the coordinator.
 */
export async function spread(
  db: Database,
  onStep: (step: string) => void,
): Promise<{ spread: string[] } | { refused: SpreadObstacle }> {
  const refused = await findObstacle(db)
  if (refused) return { refused }
  const client = await db.connect()
  try {
    await client.query('set statement_timeout = 0; set lock_timeout = 0; set client_min_messages = warning')
    // Also of one that was killed: in the server it goes on with its table.
    const { rows } = await client.query(`select pg_try_advisory_lock(${LOCK}) as taken`)
    if (rows[0]?.taken !== true) {
      onStep('waiting for another database spread to end')
      await client.query(`select pg_advisory_lock(${LOCK})`)
    }
    await changeSettings(client)
    const tables = await unspreadTables(client)
    for (const table of tables) {
      onStep(`spreading ${table}`)
      await spreadTable(client, table)
    }
    await removeLocalCopies(client)
    return { spread: tables }
  } finally {
    // Its settings are not those of the pool's other connections.
    client.release(true)
  }
}

/** Whether the server has Citus, on which statements need another shape. */
export async function hasCitus(db: Queryable): Promise<boolean> {
  const { rows } = await db.query<{ found: boolean }>(
    `select exists (select 1 from pg_extension where extname = 'citus') as found`,
  )
  return rows[0]?.found === true
}

/** Whether the server is a worker of a cluster, which takes no change of the schema; one that no cluster has yet is none. */
export async function isWorker(db: Queryable): Promise<boolean> {
  if (!(await hasCitus(db))) return false
  const { rows } = await db.query<{ isWorker: boolean }>('select groupid > 0 as "isWorker" from pg_dist_local_group')
  return rows[0]?.isWorker === true
}

/** The tables that a later migration has made, where the others are spread; none on one server. */
export async function forgottenTables(db: Queryable): Promise<string[]> {
  if (!(await hasCitus(db))) return []
  const { rows } = await db.query('select 1 from pg_dist_partition where logicalrelid = $1::regclass', [FIRST_TABLE])
  return rows.length === 0 ? [] : unspreadTables(db)
}

async function findObstacle(db: Queryable): Promise<SpreadObstacle | undefined> {
  if (!(await hasCitus(db))) return 'no citus'
  if (await isWorker(db)) return 'not the coordinator'
  const { rowCount: workers } = await db.query('select from pg_dist_node where shouldhaveshards')
  return workers === 0 ? 'no workers' : undefined
}

/** For those who connect from now on, and for this connection. */
async function changeSettings(client: pg.PoolClient): Promise<void> {
  const { rows } = await client.query<{ name: string }>('select quote_ident(current_database()) as name')
  for (const [setting, value] of Object.entries(SETTINGS)) {
    await client.query(`alter database ${rows[0]?.name} set ${setting} = '${value}'`)
    await client.query(`set ${setting} = '${value}'`)
  }
}

/** In the order of their foreign keys: each after the tables that it refers to. */
async function unspreadTables(db: Queryable): Promise<string[]> {
  const { rows } = await db.query<{ table: string; refersTo: string[] }>(
    `select c.relname as "table",
            array(select f.confrelid::regclass::text from pg_constraint f where f.conrelid = c.oid and f.contype = 'f')
              as "refersTo"
       from pg_class c
      where c.relnamespace = 'public'::regnamespace and c.relkind = 'r'
        and not exists (select 1 from pg_dist_partition p where p.logicalrelid = c.oid)
        and not exists (select 1 from pg_depend d where d.objid = c.oid and d.deptype = 'e')
      order by c.relname <> $1, c.relname`,
    [FIRST_TABLE],
  )
  const waiting = new Map(rows.map(({ table, refersTo }) => [table, refersTo]))
  const ordered: string[] = []
  const take = (table: string) => {
    const refersTo = waiting.get(table)
    if (refersTo === undefined) return
    waiting.delete(table)
    for (const other of refersTo) take(other)
    ordered.push(table)
  }
  for (const { table } of rows) take(table)
  return ordered
}

async function spreadTable(client: Queryable, table: string): Promise<void> {
  if (REFERENCE_TABLES.includes(table)) {
    await client.query('select create_reference_table($1::regclass)', [table])
  } else {
    await client.query(`select create_distributed_table($1::regclass, 'mid', colocate_with => $2)`, [
      table,
      table === FIRST_TABLE ? 'none' : FIRST_TABLE,
    ])
  }
}

/**
 * Citus leaves the rows that it has copied where they were, unseen: customers that were forgotten would stay there. The
 * triggers of append-only tables are away for that transaction, in which nobody else reaches the tables.
 */
async function removeLocalCopies(client: pg.PoolClient): Promise<void> {
  const { rows: copies } = await client.query<{ table: string }>(
    `select logicalrelid::text as "table" from pg_dist_partition where pg_relation_size(logicalrelid) > 0`,
  )
  if (copies.length === 0) return
  const { rows: triggers } = await client.query<{ name: string; table: string; definition: string }>(
    `select quote_ident(tgname) as name, tgrelid::regclass::text as "table", pg_get_triggerdef(oid) as definition
       from pg_trigger
      where not tgisinternal and tgrelid in (select logicalrelid from pg_dist_partition)`,
  )
  await client.query('begin')
  for (const { name, table } of triggers) await client.query(`drop trigger ${name} on ${table}`)
  for (const { table } of copies) await client.query('select truncate_local_data_after_distributing_table($1)', [table])
  for (const { definition } of triggers) await client.query(definition)
  await client.query('commit')
}
