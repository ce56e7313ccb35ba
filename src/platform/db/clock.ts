import type { Queryable } from './pool.ts'
import { query } from './query.ts'

/** Returns the time of PostgreSQL's clock. */
export async function readDatabaseTime(db: Queryable): Promise<Date> {
  const [{ now }] = (await DATABASE_TIME(db, {})) as [{ now: Date }]
  return now
}

const DATABASE_TIME = query<{ now: Date }, object>('select clock_timestamp() as now')
