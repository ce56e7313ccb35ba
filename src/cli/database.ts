import * as z from 'zod'
import { applyGrants } from '../db/grants.ts'
import { pendingMigrations } from '../db/migrate.ts'
import { spread } from '../db/spread.ts'
import { changingCommand } from './command.ts'
import { CommandFault } from './faults.ts'
import { note } from './output.ts'

export const databaseCommands = [
  changingCommand({
    name: 'database spread',
    usage: '',
    schema: z.object({}),
    async run(_, { config, db, terminal }) {
      const pending = await pendingMigrations(db)
      if (pending.length > 0) throw new CommandFault('the database is not migrated: run ops migrate')
      const result = await spread(db, (step) => note(terminal, step))
      if ('refused' in result) throw new CommandFault(result.refused)
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
