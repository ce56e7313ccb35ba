import { cpSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Database } from '../../src/platform/db/pool.ts'
import { ROOT } from '../support/processes.ts'
import { type ServerProcess, startServerProcess } from '../support/server-process.ts'
import { build, openWorkspace } from '../support/workspace.ts'

/** A section's result, and whether it meets the promise. */
export type Check = { promise: string; found: string; kept: boolean }

export type Section = (deployment: Deployment) => Promise<Check[]>

/** Shared by all sections. */
export type Deployment = {
  /** A temporary directory, removed with all its files when the process exits. */
  directory: string
  /** The built service as it is installed, without node_modules. */
  programs: { root: string; server: string; ops: string }
  /** Creates an empty database of the role `ROLE`. */
  createDatabase: (name: string) => Promise<DeploymentDatabase>
}

export type DeploymentDatabase = {
  /** Connects `ROLE` directly to PostgreSQL, past every pooler. */
  url: string
  superuserUrl: string
  /** Connects as superuser, because only superusers see all rows of pg_stat_activity. */
  db: Database
}

/** The service's database role: not a superuser, and owner of its own database only. */
const ROLE = 'payments'
export const PASSWORD = 'only-known-to-this-trial'

/** The log of all instances, in the directory of the trial. */
export const INSTANCE_LOG = 'instances.log'

/**
 * Starts a durable PostgreSQL server and installs the built service. Both, and all processes they started, end with
 * this process.
 */
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
      return { url: url.href, superuserUrl: postgres.urlOf(name), db: postgres.poolOf(name) }
    },
  }
}

/** Copies the built service, because another build during the run would delete its files. */
function install(directory: string): Deployment['programs'] {
  mkdirSync(directory)
  for (const path of ['dist', 'migrations', 'package.json']) {
    cpSync(join(ROOT, path), join(directory, path), { recursive: true })
  }
  return { root: directory, server: join(directory, 'dist/server.js'), ops: join(directory, 'dist/cli/ops.js') }
}

/** Starts the installed service and waits until it is ready; without `port`, it uses a free one. */
export function startInstance(
  { programs, directory }: Deployment,
  { DATABASE_URL = '', ...environment }: Record<string, string>,
  port?: number,
): Promise<ServerProcess> {
  const fixed = port === undefined ? {} : { PORT: String(port) }
  const logFile = join(directory, INSTANCE_LOG)
  return startServerProcess(DATABASE_URL, { ...environment, ...fixed }, { built: programs.server, logFile })
}
