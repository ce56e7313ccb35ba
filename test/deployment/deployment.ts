import { cpSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Database } from '../../src/platform/db/pool.ts'
import { ROOT } from '../support/processes.ts'
import { type ServerProcess, startServerProcess } from '../support/server-process.ts'
import { build, openWorkspace } from '../support/workspace.ts'

/** What a section found, and whether that keeps the promise. */
export type Check = { promise: string; found: string; kept: boolean }

export type Section = (deployment: Deployment) => Promise<Check[]>

/** What every section works with. */
export type Deployment = {
  /** Temporary: removed with all that lies in it. */
  directory: string
  /** The built service, as it is installed: without node_modules. */
  programs: { server: string; ops: string }
  /** A new, empty database that belongs to `ROLE`. */
  createDatabase: (name: string) => Promise<DeploymentDatabase>
}

export type DeploymentDatabase = {
  /** ROLE's own connection, past every pooler. */
  url: string
  /** A superuser's connections to it: only superusers see all of pg_stat_activity. */
  db: Database
}

/** The service's role in the database: not a superuser, and owner of nothing but its own database. */
const ROLE = 'payments'
export const PASSWORD = 'only-known-to-this-trial'

/** What all instances log, in the directory of the trial. */
export const INSTANCE_LOG = 'instances.log'

/** A durable PostgreSQL server and the built service. Both are gone when this process ends, and what it started too. */
export async function openDeployment(): Promise<Deployment> {
  await build()
  const { directory, postgres } = await openWorkspace()
  const programs = install(join(directory, 'service'))
  const admin = postgres.poolOf('postgres')
  await admin.query(`create role ${ROLE} login password '${PASSWORD}'`)
  return {
    directory,
    programs,
    async createDatabase(name) {
      await admin.query(`create database ${name} owner ${ROLE}`)
      const url = new URL(postgres.urlOf(name))
      url.username = ROLE
      url.password = PASSWORD
      return { url: url.href, db: postgres.poolOf(name) }
    },
  }
}

/** Copies it, because another build while this runs would take the programs away from under it. */
function install(directory: string): Deployment['programs'] {
  mkdirSync(directory)
  for (const path of ['dist', 'migrations', 'package.json']) {
    cpSync(join(ROOT, path), join(directory, path), { recursive: true })
  }
  return { server: join(directory, 'dist/server.js'), ops: join(directory, 'dist/cli/ops.js') }
}

/** The installed service, ready to serve; on a free port, unless one is given. */
export function startInstance(
  { programs, directory }: Deployment,
  { DATABASE_URL = '', ...environment }: Record<string, string>,
  port?: number,
): Promise<ServerProcess> {
  const fixed = port === undefined ? {} : { PORT: String(port) }
  const logFile = join(directory, INSTANCE_LOG)
  return startServerProcess(DATABASE_URL, { ...environment, ...fixed }, { built: programs.server, logFile })
}
