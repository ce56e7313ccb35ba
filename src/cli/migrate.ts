import * as z from 'zod'
import { applyGrants } from '../db/grants.ts'
import { migrate } from '../db/migrate.ts'
import { forgottenTables, isWorker, NOT_THE_COORDINATOR } from '../db/spread.ts'
import { changingCommand } from './command.ts'
import { CommandFault } from './faults.ts'
import { note } from './output.ts'

export const migrateCommands = [
  changingCommand({
    name: 'migrate',
    makesAudit: true,
    usage: '',
    schema: z.object({}),
    async run(_, { config, db, terminal }) {
      // It would make the tables up to the first that refers to another.
      if (await isWorker(db)) throw new CommandFault(NOT_THE_COORDINATOR)
      const applied = await migrate(config.databaseMigrateUrl, {
        onWait: (message) => note(terminal, message),
      })
      await applyGrants(config.databaseMigrateUrl)
      const forgotten = await forgottenTables(db)
      return {
        warnings: forgotten.map((table) => `${table} is on the coordinator alone: run ops database spread`),
        json: { applied, forgotten },
        made: { applied },
        text: applied.length === 0 ? 'the schema is current' : `applied ${applied.join(', ')}`,
      }
    },
  }),
]
