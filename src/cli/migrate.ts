import * as z from 'zod'
import { applyGrants } from '../db/grants.ts'
import { migrate } from '../db/migrate.ts'
import { forgottenTables } from '../db/spread.ts'
import { steppingCommand } from './command.ts'

export const migrateCommands = [
  steppingCommand({
    name: 'migrate',
    makesAudit: true,
    usage: '',
    schema: z.object({}),
    async run(_, { config, db }) {
      const applied = await migrate(config.databaseMigrateUrl, {
        onWait: (message) => process.stderr.write(`ops: ${message}\n`),
      })
      await applyGrants(config.databaseMigrateUrl)
      const forgotten = await forgottenTables(db)
      return {
        warnings: forgotten.map((table) => `${table} is on the coordinator alone: run ops database spread`),
        json: { applied },
        made: { applied },
        text: applied.length === 0 ? 'the schema is current' : `applied ${applied.join(', ')}`,
      }
    },
  }),
]
