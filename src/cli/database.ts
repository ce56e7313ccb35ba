import * as z from 'zod'
import { applyGrants } from '../db/grants.ts'
import { pendingMigrations } from '../db/migrate.ts'
import { type SpreadObstacle, spread } from '../db/spread.ts'
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
    async run(_, { config, db, terminal }) {
      const pending = await pendingMigrations(db)
      if (pending.length > 0) throw new CommandFault('the database is not migrated: run ops migrate')
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
