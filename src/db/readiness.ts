import { isForbiddenToRole } from './grants.ts'
import { pendingMigrations } from './migrate.ts'
import { isOutage } from './outage.ts'
import type { Queryable } from './pool.ts'
import { isWorker } from './spread.ts'

/** Why the service cannot work with this database now, for the operator; undefined when it can. */
export async function unreadyReason(db: Queryable): Promise<string | undefined> {
  try {
    const pending = await pendingMigrations(db)
    if (pending.length === 0) return undefined
    // A worker of Citus has no table before `ops database spread`.
    const toRun = (await isWorker(db)) ? '"ops migrate" and "ops database spread"' : '"ops migrate"'
    return `The database schema is behind: run ${toRun} (missing: ${pending.join(', ')})`
  } catch (error) {
    if (isOutage(error)) return 'The database does not answer'
    if (isForbiddenToRole(error)) {
      return 'The role of the service has no rights to the tables: run "ops migrate" as their owner'
    }
    throw error
  }
}
