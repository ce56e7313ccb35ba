import * as z from 'zod'
import { applyGrants } from '../db/grants.ts'
import { migrate } from '../db/migrate.ts'
import { steppingCommand } from './command.ts'

export const migrateCommands = [
  steppingCommand({
    name: 'migrate',
    makesAudit: true,
    usage: '',
    schema: z.object({}),
    async run(_, { config }) {
      const applied = await migrate(config.databaseMigrateUrl, {
        onWait: (message) => process.stderr.write(`ops: ${message}\n`),
      })
      await applyGrants(config.databaseMigrateUrl)
      return {
        json: { applied },
        made: { applied },
        text: applied.length === 0 ? 'the schema is current' : `applied ${applied.join(', ')}`,
      }
    },
  }),
]
