import { chmodSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { clusterUrl } from '../../src/dev/embedded-postgres.ts'
import { distribute } from '../../src/operator/commands/database.ts'
import { databaseUrl } from './database-url.ts'
import { findCitus } from './installed-postgres.ts'
import { type PostgresServer, startPostgresServer } from './postgres-server.ts'

/** A coordinator and workers on 127.0.0.1, each a server of its own. */
export type CitusCluster = {
  /** The coordinator comes first. */
  nodes: PostgresServer[]
  /** Superuser URLs of the databases `postgres`, in the same order. */
  adminUrls: string[]
  stop: () => void
}

const WORKERS = 2

const SETTINGS = [
  'shared_preload_libraries=citus',
  'max_connections=300',
  // Citus would otherwise check for newer versions online.
  'citus.enable_statistics_collection=off',
]

/**
 * Starts a cluster; `settings` are additional settings of each server, such as `fsync=off`. Throws if no installed
 * PostgreSQL has Citus.
 */
export async function startCitus(directory: string, settings: string[] = []): Promise<CitusCluster> {
  const installed = findCitus()
  if (installed === undefined) throw new Error('Citus is built into no PostgreSQL of Debian')
  mkdirSync(directory, { recursive: true })
  // PostgreSQL may run as another user, who needs access.
  chmodSync(directory, 0o711)
  const nodes: PostgresServer[] = []
  for (let node = 0; node <= WORKERS; node++) {
    const server = await startPostgresServer(join(directory, `node-${node}`), [...SETTINGS, ...settings], installed)
    nodes.push(server)
    await server.shutDown()
    await server.restart()
  }
  return {
    nodes,
    adminUrls: await shareThePassword(nodes),
    stop: () => {
      for (const node of nodes) node.stop()
    },
  }
}

/**
 * Sets one password on all nodes, including later restarts: each server starts with its own, while a role needs the
 * same on all nodes.
 */
async function shareThePassword(nodes: PostgresServer[]): Promise<string[]> {
  const { password } = (nodes[0] as PostgresServer).cluster
  for (const { urlOf, cluster } of nodes) {
    await query(urlOf('postgres'), `alter role postgres password '${password}'`)
    cluster.password = password
  }
  return nodes.map(({ cluster, port }) => clusterUrl(cluster, port))
}

/**
 * Creates a database on each node and joins them to one cluster. Nothing is distributed yet, and only superusers can
 * connect between nodes.
 */
export async function createCitusDatabase(adminUrls: string[], name: string): Promise<void> {
  for (const url of adminUrls) {
    await query(url, `create database ${name} template template0`)
    await query(databaseUrl(url, name), 'set client_min_messages = warning; create extension citus')
  }
  const { password, port } = new URL(adminUrls[0] as string)
  await admitRoles(adminUrls, name, { postgres: password })
  const coordinator = databaseUrl(adminUrls[0] as string, name)
  await query(coordinator, `select citus_set_coordinator_host('127.0.0.1', ${port})`)
  for (const worker of adminUrls.slice(1)) {
    await query(coordinator, `select citus_add_node('127.0.0.1', ${new URL(worker).port})`)
  }
}

/** Allows existing roles to connect between nodes. `passwords` are by role. */
export async function admitRoles(
  adminUrls: string[],
  name: string,
  passwords: Readonly<Record<string, string>>,
): Promise<void> {
  for (const url of adminUrls) {
    for (const [role, password] of Object.entries(passwords)) {
      await query(databaseUrl(url, name), `insert into pg_dist_authinfo values (0, '${role}', 'password=${password}')`)
    }
  }
}

/** Distributes the tables like `ops database spread`. `url` is the owner's, to the coordinator. */
export const spreadDatabase = (url: string) => distribute(url, () => undefined)

/** Rejects new connections and terminates existing ones: Citus itself keeps a connection to each of its databases. */
export async function closeCitusDatabase(adminUrls: string[], name: string): Promise<void> {
  for (const url of adminUrls) {
    await query(url, `alter database ${name} with allow_connections false`)
    await query(url, `select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = '${name}'`)
  }
}

export async function query(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(sql)
  } finally {
    await client.end()
  }
}
