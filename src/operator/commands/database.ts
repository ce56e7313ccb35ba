import { isWorker, undistributedTables } from '../../platform/db/distribution.ts'
import { applyGrants } from '../../platform/db/grants.ts'
import { connectAlone, migrate, pendingMigrations } from '../../platform/db/migrate.ts'
import { hasState } from '../../platform/db/outage.ts'
import { runFile } from '../../platform/db/statements.ts'
import { changeInSteps } from './command.ts'
import { CommandError } from './errors.ts'
import { document } from './result.ts'

const NOT_THE_COORDINATOR = 'this server is a Citus worker: set DATABASE_MIGRATE_URL to the coordinator'

export const databaseCommands = [
  changeInSteps('migrate', 'Apply pending database migrations', {
    makesAudit: true,
    async run(_, { config, db, note }) {
      // A migration must run on the coordinator, because a table that it creates on a worker would exist only on that
      // worker.
      if (await isWorker(db)) throw new CommandError(NOT_THE_COORDINATOR)
      const applied = await migrate(config.databaseMigrateUrl, { onWait: note })
      await applyGrants(config.databaseMigrateUrl)
      const erased = await undistributedTables(db)
      const message = applied.length === 0 ? 'The schema is up to date.' : `Applied ${applied.join(', ')}.`
      return {
        data: document({ applied, forgotten: erased }, message),
        warnings: erased.length === 0 ? [] : [`only the coordinator has ${erased.join(', ')}: run ops database spread`],
        created: { applied },
      }
    },
  }),

  changeInSteps('database spread', 'Distribute the tables over a Citus cluster', {
    async run(_, { config, db, note }) {
      const pending = await pendingMigrations(db)
      if (pending.length > 0) throw new CommandError('the database is not migrated: run ops migrate')
      const spread = await distribute(config.databaseMigrateUrl, note)
      // Grants rights again, because the shards of a newly distributed table have no grants yet.
      await applyGrants(config.databaseMigrateUrl)
      const message = spread.length === 0 ? 'Every table is already distributed.' : `Distributed ${spread.join(', ')}.`
      return { data: document({ spread }, message), created: { spread } }
    },
  }),
]

const DISTRIBUTE = new URL('../deploy/citus.sql', import.meta.url)
const RAISED = 'P0001'

/**
 * Runs DISTRIBUTE and returns the names of the tables that it distributed. Throws a CommandError if the script rejects
 * the server.
 */
export async function distribute(databaseUrl: string, onStep: (step: string) => void): Promise<string[]> {
  const client = await connectAlone(databaseUrl)
  const tables: string[] = []
  client.on('notice', ({ severity, message = '', table }) => {
    if (severity !== 'INFO' || table === undefined) return
    tables.push(table)
    onStep(message)
  })
  try {
    await runFile(client, DISTRIBUTE)
    return tables
  } catch (error) {
    throw hasState(error, RAISED) ? new CommandError((error as Error).message) : error
  } finally {
    await client.end()
  }
}
