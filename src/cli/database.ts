import * as z from 'zod'
import { createInstances } from '../books/instances.ts'
import { summarize } from '../books/running.ts'
import { applyGrants } from '../db/grants.ts'
import { pendingMigrations } from '../db/migrate.ts'
import type { Database } from '../db/pool.ts'
import { type SpreadObstacle, spread, tablesToCopy } from '../db/spread.ts'
import { LIMITS } from '../limits.ts'
import { steppingCommand } from './command.ts'
import { CommandFault } from './faults.ts'
import { note } from './output.ts'

export const NOT_THE_COORDINATOR = 'this server is a worker: name the coordinator in DATABASE_MIGRATE_URL'

const REFUSALS: Readonly<Record<SpreadObstacle, string>> = {
  'no citus': 'this database has no Citus: only a cluster of Citus can hold a database on several servers',
  'not the coordinator': NOT_THE_COORDINATOR,
  'no workers': 'the cluster has no workers: add them first, by `select citus_add_node(…)` on the coordinator',
}

export const databaseCommands = [
  steppingCommand({
    name: 'database spread',
    usage: '',
    schema: z.object({}),
    async run(_, { config, db, now, terminal }) {
      const pending = await pendingMigrations(db)
      if (pending.length > 0) throw new CommandFault('the database is not migrated: run ops migrate')
      if ((await tablesToCopy(db)).length > 0) await refuseWhileRunning(db, now)
      const result = await spread(db, (step) => note(terminal, step))
      if ('refused' in result) throw new CommandFault(REFUSALS[result.refused])
      // A table's rights reach its shards only once it has them.
      await applyGrants(config.databaseMigrateUrl)
      return {
        json: result,
        made: result,
        text: result.spread.length === 0 ? 'every table is spread' : `spread ${result.spread.join(', ')}`,
      }
    },
  }),
]

/** While tables are copied, creates of instances that run fail. Of 96 none did while three empty ones were spread. */
async function refuseWhileRunning(db: Database, now: Date): Promise<void> {
  const { running } = summarize(await createInstances(db).list(now), now, LIMITS.heartbeat.silentMs)
  if (running.length === 0) return
  const hosts = [...new Set(running.map(({ host }) => host))].sort()
  const seconds = LIMITS.heartbeat.silentMs / 1_000
  throw new CommandFault(
    `instances run on ${hosts.join(', ')}: stop them first; after one was killed, wait ${seconds} s`,
  )
}
