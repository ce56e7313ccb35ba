import { cpSync, existsSync, mkdirSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { createPool, type Database } from '../../src/db/pool.ts'
import { openBench } from '../bench/bench.ts'
import { ROOT, run } from '../bench/processes.ts'
import { databaseUrl } from '../support/database-url.ts'

/** What a section found to be so, and whether that is what was promised. */
export type Check = { promise: string; found: string; kept: boolean }

export type Section = (deployment: Deployment) => Promise<Check[]>

/** What every section works with. */
export type Deployment = {
  /** Temporary: removed with all that lies in it. */
  directory: string
  /** The built service, as it is installed: without node_modules. */
  programs: { server: string; ops: string }
  /** A superuser's connections to a database that nobody else uses. */
  admin: Database
  /** A new, empty database that belongs to `ROLE`. */
  createDatabase: (name: string) => Promise<DeploymentDatabase>
}

export type DeploymentDatabase = {
  /** ROLE's own connection, past every pooler. */
  url: string
  /** A superuser's connections to it: what stands in pg_stat_activity is shown to those in full. */
  db: Database
}

/** Who the service is in the database: no superuser, and no owner of anything else. */
export const ROLE = 'payments'
export const PASSWORD = 'only-known-to-this-trial'

/** A durable PostgreSQL server and the built service. Both are gone when this process ends, and what it started too. */
export async function openDeployment(): Promise<Deployment> {
  await run('npm', ['run', '--silent', 'build'])
  const bench = await openBench({ quick: false })
  const programs = install(join(bench.directory, 'service'))
  const { url: adminUrl, db: admin } = await bench.createDatabase('administration')
  await admin.query(`create role ${ROLE} login password '${PASSWORD}'`)
  return {
    directory: bench.directory,
    programs,
    admin,
    async createDatabase(name) {
      await admin.query(`create database ${name} owner ${ROLE}`)
      const url = new URL(databaseUrl(adminUrl, name))
      const db = openPool(url.href)
      url.username = ROLE
      url.password = PASSWORD
      return { url: url.href, db }
    },
  }
}

/** A copy, because another build while this runs would take the programs away from under it. */
function install(directory: string): Deployment['programs'] {
  mkdirSync(directory)
  for (const path of ['dist', 'migrations', 'package.json']) {
    cpSync(join(ROOT, path), join(directory, path), { recursive: true })
  }
  return { server: join(directory, 'dist/server.js'), ops: join(directory, 'dist/cli/ops.js') }
}

/** Connections of the trial's own. */
export function openPool(url: string): Database {
  return createPool({ url, size: 4, log: { warn: () => undefined }, queryTimeoutMs: 0 })
}

/** Runs the operator's command line and answers what it says to scripts. */
export async function ops(
  { programs }: Deployment,
  environment: Record<string, string>,
  ...args: string[]
): Promise<Record<string, unknown>> {
  const env = { PATH: process.env.PATH, NODE_ENV: 'production', ...environment }
  return JSON.parse(await run(process.execPath, [programs.ops, ...args, '--json'], { env }))
}

/** Where a program is installed; undefined when it is not. Debian keeps those of the system off an ordinary user's PATH. */
export function findSystemProgram(name: string): string | undefined {
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin']
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path))
}
