import type { Queryable } from './pool.ts'
import { query } from './query.ts'

/**
 * Whether Citus may distribute the database over several servers. On distributed tables, a few statements need another
 * form.
 */
export async function isDistributed(db: Queryable): Promise<boolean> {
  const { rowCount } = await db.query(`select from pg_extension where extname = 'citus'`)
  return rowCount === 1
}

/** Whether this server rejects schema changes because the server is not the cluster's coordinator. */
export async function isWorker(db: Queryable): Promise<boolean> {
  return (
    (await isDistributed(db)) && (await db.query('select from pg_dist_local_group where groupid > 0')).rowCount === 1
  )
}

/** Tables that exist on the coordinator alone; none on a single server. */
export async function undistributedTables(db: Queryable): Promise<string[]> {
  if (!(await isDistributed(db))) return []
  return (await UNDISTRIBUTED(db, {})).map(({ name }) => name)
}

const UNDISTRIBUTED = query<{ name: string }, object>(`
  select relname as name
    from pg_class
   where relnamespace = 'public'::regnamespace and relkind = 'r'
     and exists (select from pg_dist_node where groupid > 0)
     and oid not in (select logicalrelid from pg_dist_partition)
   order by name`)
