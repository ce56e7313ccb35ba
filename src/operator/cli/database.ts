import { applyGrants } from '../../platform/db/grants.ts'
import { migrate, pendingMigrations } from '../../platform/db/migrate.ts'
import { forgottenTables, isWorker, NOT_THE_COORDINATOR, spread } from '../../platform/db/spread.ts'
import { changingCommand } from './command.ts'
import { CommandError } from './errors.ts'
import { printNote } from './output.ts'

export const databaseCommands = [
  changingCommand('migrate', 'Bring the tables to what this version needs', {
    makesAudit: true,
    async run(_, { config, db, terminal }) {
      // Migrations on a Citus worker would fail half-way, at the first table with a foreign key.
      if (await isWorker(db)) throw new CommandError(NOT_THE_COORDINATOR)
      const applied = await migrate(config.databaseMigrateUrl, { onWait: (message) => printNote(terminal, message) })
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

  changingCommand('database spread', 'Spread the tables over the servers of Citus', {
    async run(_, { config, db, terminal }) {
      const pending = await pendingMigrations(db)
      if (pending.length > 0) throw new CommandError('the database is not migrated: run ops migrate')
      const result = await spread(db, (step) => printNote(terminal, step))
      if ('refused' in result) throw new CommandError(result.refused)
      // Rights are granted again, because the shards of a newly spread table have none yet.
      await applyGrants(config.databaseMigrateUrl)
      return {
        json: result,
        made: result,
        text: result.spread.length === 0 ? 'every table is spread' : `spread ${result.spread.join(', ')}`,
      }
    },
  }),
]
