import { existsSync, mkdtempSync, readFileSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { applyGrants } from '../../src/platform/db/grants.ts'
import { migrate } from '../../src/platform/db/migrate.ts'
import { admitRoles, closeCitusDatabase, createCitusDatabase, query, spreadDatabase, startCitus } from './citus.ts'
import { asRole, databaseUrl, ROLE_PASSWORD, TEMPLATE } from './database-url.ts'
import { ON_CITUS } from './installed-postgres.ts'
import { startPostgresOwner } from './postgres-owner.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** Superuser URL of this run's server. */
    adminUrl: string
    /** Superuser URLs of the nodes of a Citus cluster; a plain server has one. */
    adminUrls: string[]
    /** Removed after the run with all its content. */
    runDirectory: string
    /** Whether Vitest runs files again after changes, on the same server. */
    isWatching: boolean
  }
}

/**
 * Starts one PostgreSQL server or one Citus cluster for the whole run, with one migrated database that every test file
 * clones: created like an installation, with an owner of the tables and roles for the service and the console.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const directory = mkdtempSync(join(dataRoot(), 'upi-payments-test-'))
  const { adminUrls, leave } = ON_CITUS ? await startCluster(directory) : await startServer(directory)
  const [adminUrl = ''] = adminUrls
  const template = databaseUrl(adminUrl, TEMPLATE)
  const owner = asRole(template, 'upi_owner')
  const roles = { upi_owner: ROLE_PASSWORD, upi_service: ROLE_PASSWORD, upi_console: ROLE_PASSWORD }
  if (ON_CITUS) await createCitusDatabase(adminUrls, TEMPLATE)
  else await query(adminUrl, `create database ${TEMPLATE}`)
  await query(template, readFileSync(join(import.meta.dirname, '../../src/operator/deploy/roles.sql'), 'utf8'))
  for (const [role, password] of Object.entries(roles)) {
    await query(template, `alter role ${role} password '${password}'`)
  }
  if (ON_CITUS) await admitRoles(adminUrls, TEMPLATE, roles)
  await migrate(owner)
  if (ON_CITUS) await spreadDatabase(owner)
  await applyGrants(owner)
  if (ON_CITUS) await closeCitusDatabase(adminUrls, TEMPLATE)
  // Autovacuum would visit hundreds of small databases. Slow tests need its statistics of large tables.
  if (project.name === 'quick' && !ON_CITUS) {
    await query(adminUrl, 'alter system set autovacuum = off')
    await query(adminUrl, 'select pg_reload_conf()')
  }
  project.provide('adminUrls', adminUrls)
  project.provide('adminUrl', adminUrl)
  project.provide('runDirectory', directory)
  project.provide('isWatching', project.vitest.config.watch)
  return leave
}

const NEEDED_BYTES = 4 * 2 ** 30

/** Uses memory if it has room for the run and four times as much remains available; otherwise the disk. */
function dataRoot(): string {
  const memory = '/dev/shm'
  if (!existsSync(memory) || !existsSync('/proc/meminfo')) return tmpdir()
  const { bavail, bsize } = statfsSync(memory)
  const available = 1024 * Number(/^MemAvailable: +(\d+) kB$/m.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1] ?? 0)
  return bavail * bsize >= NEEDED_BYTES && available >= 4 * NEEDED_BYTES ? memory : tmpdir()
}

type Servers = { adminUrls: string[]; leave: () => Promise<void> }

async function startServer(directory: string): Promise<Servers> {
  const { url, leave } = await startPostgresOwner(directory, { removesDirectory: true })
  return { adminUrls: [url], leave }
}

async function startCluster(directory: string): Promise<Servers> {
  const { adminUrls, stop } = await startCitus(directory, NOT_DURABLE)
  return {
    adminUrls,
    async leave() {
      stop()
      rmSync(directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
    },
  }
}

const NOT_DURABLE = ['fsync=off', 'synchronous_commit=off', 'full_page_writes=off', 'citus.shard_count=8']
