import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { applyGrants } from '../../src/platform/db/grants.ts'
import { asRole, ROLE_PASSWORD, TEMPLATE } from '../support/database-url.ts'
import type { PostgresServer } from '../support/postgres-server.ts'
import { ROOT } from '../support/processes.ts'
import { until } from '../support/wait.ts'
import { createDatabase, type Workspace, type WorkspaceDatabase } from '../support/workspace.ts'
import type { Finding } from './report.ts'

/** Shared by all sections. */
export type Bench = Workspace & {
  /** Fills tables of a tenth of the size, for work on the benchmark itself. Its results are no verdict. */
  quick: boolean
  /** Creates a database for the service as in an installation. Its URL has the service's role. */
  createDatabase: (name: string) => Promise<WorkspaceDatabase>
  /** Creates a database for a comparison. Its URL has the owner of the tables, which have no triggers. */
  createComparedDatabase: (name: string) => Promise<WorkspaceDatabase>
  /** Ends the preparation: restores the server's usual settings and waits until PostgreSQL has no pending writes. */
  settle: () => Promise<void>
}

/**
 * Prepares a section's data concurrently with other sections, and returns a function that measures. Measurements run
 * one after the other.
 */
export type Section = (bench: Bench) => Promise<() => Promise<Finding[]>>

/** Fewer checkpoints and larger sorts fill tables of ten million rows in a third less time. */
const FILLING_SETTINGS = new Map([
  ['max_wal_size', '8GB'],
  ['maintenance_work_mem', '512MB'],
])

/** They differ in the tests' server from PostgreSQL's defaults, without an effect on speed. */
const OTHER_SETTINGS = [
  'default_text_search_config',
  'lc_messages',
  'listen_addresses',
  'log_checkpoints',
  'log_timezone',
  'port',
  'TimeZone',
  'unix_socket_directories',
]

/**
 * Gives the server settings for filling large tables, which apply until `settle`. With `superuser`, the service connects
 * as a superuser instead of its role, so that the triggers for its role do not run.
 */
export async function openBench(
  workspace: Workspace,
  { quick, superuser }: { quick: boolean; superuser: boolean },
): Promise<Bench> {
  const { postgres } = workspace
  const admin = postgres.poolOf('postgres')
  for (const [setting, value] of FILLING_SETTINGS) await admin.query(`alter system set ${setting} = '${value}'`)
  await admin.query('select pg_reload_conf()')
  await createTemplate(postgres)
  const clone = async (name: string) => {
    const own = postgres.poolOf('postgres')
    await own.query(`create database ${name} template ${TEMPLATE} owner upi_owner`)
    await own.end()
    return { name, url: postgres.urlOf(name), db: postgres.poolOf(name) }
  }
  return {
    ...workspace,
    quick,
    async createDatabase(name) {
      const database = await clone(name)
      return superuser ? database : { ...database, url: asRole(database.url, 'upi_service') }
    },
    async createComparedDatabase(name) {
      const database = await clone(name)
      await database.db.query(DISABLE_TRIGGERS)
      return { ...database, url: asRole(database.url, 'upi_owner') }
    },
    async settle() {
      for (const setting of FILLING_SETTINGS.keys()) await admin.query(`alter system reset ${setting}`)
      await admin.query('select pg_reload_conf()')
      await until('PostgreSQL has its default settings', async () => {
        const { rowCount } = await admin.query(CHANGED_SETTINGS, [OTHER_SETTINGS])
        return rowCount === 0
      })
      await admin.query('checkpoint')
    },
  }
}

/** Creates a database like that of an installation, with an owner of the tables and a role for the service. */
async function createTemplate(postgres: PostgresServer): Promise<void> {
  const { url, db } = await createDatabase(postgres, TEMPLATE)
  await db.query(readFileSync(join(ROOT, 'src/operator/deploy/roles.sql'), 'utf8'))
  for (const role of ['upi_owner', 'upi_service']) await db.query(`alter role ${role} password '${ROLE_PASSWORD}'`)
  await db.end()
  await applyGrants(asRole(url, 'upi_owner'))
}

const DISABLE_TRIGGERS = `
do $$
declare
  name text;
begin
  for name in select distinct tgrelid::regclass::text from pg_trigger where not tgisinternal loop
    execute format('alter table %s disable trigger user', name);
  end loop;
end
$$`

/** Settings that are not PostgreSQL's default, for example of its durability or its memory. */
const CHANGED_SETTINGS = `
  select name
    from pg_settings
   where setting is distinct from boot_val and source in ('configuration file', 'command line', 'environment variable')
     and name <> all ($1)`

/**
 * Connects psql and pgbench through environment variables, because other processes can read a password among the
 * arguments.
 */
export function connectionEnvironment(databaseUrl: string): NodeJS.ProcessEnv {
  const { hostname, port, username, password, pathname } = new URL(databaseUrl)
  return {
    PATH: process.env.PATH,
    PGHOST: hostname,
    PGPORT: port,
    PGUSER: username,
    PGPASSWORD: decodeURIComponent(password),
    PGDATABASE: pathname.slice(1),
  }
}
