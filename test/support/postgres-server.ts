import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { type Cluster, startEmbeddedPostgres, startOrFind } from '../../src/dev/embedded-postgres.ts'
import type { Database } from '../../src/platform/db/pool.ts'
import { databaseUrl, testPool } from './database-url.ts'
import { INSTALLED_POSTGRES } from './installed-postgres.ts'
import { until } from './wait.ts'

export type PostgresServer = {
  cluster: Cluster
  port: number
  /** The process id of the postmaster, whose children serve the connections. */
  pid: () => number
  /** The URL of `database`, on the server's own port or on a proxy's. */
  urlOf: (database: string, port?: number) => string
  /** The test's own connections. */
  poolOf: (database: string) => Database
  isRunning: () => boolean
  killHard: () => void
  /** Closes every connection immediately, like an operator's restart; resolves when the server has stopped. */
  shutDown: () => Promise<void>
  /** Starts the server on the same port; resolves once it accepts connections. */
  restart: () => Promise<void>
  stop: () => void
}

const DURABLE = ['fsync', 'synchronous_commit', 'full_page_writes']
const POLL_MS = 5

/**
 * Starts a durable PostgreSQL server. It stops at the latest when this process exits. `settings` apply from its first
 * restart on.
 */
export async function startPostgresServer(
  directory: string,
  settings: string[] = [],
  installed = INSTALLED_POSTGRES,
): Promise<PostgresServer> {
  const embedded = await startEmbeddedPostgres({ directory, durable: true, installed })
  process.prependListener('exit', embedded.stop)
  const port = Number(new URL(embedded.url).port)
  const cluster = {
    ...embedded.cluster,
    settings: ['timezone=UTC', 'log_timezone=UTC', ...DURABLE.map((name) => `${name}=on`), ...settings],
  }
  const urlOf = (database: string, onPort = port) => {
    const url = new URL(databaseUrl(embedded.url, database))
    url.port = String(onPort)
    return url.href
  }
  const pid = () => Number(readFileSync(join(cluster.dataDirectory, 'postmaster.pid'), 'utf8').split('\n')[0])
  const isRunning = () => {
    try {
      return process.kill(pid(), 0)
    } catch {
      return false
    }
  }
  return {
    cluster,
    port,
    pid,
    urlOf,
    poolOf: (database) => openPool(urlOf(database)),
    isRunning,
    killHard: () => void process.kill(pid(), 'SIGKILL'),
    async shutDown() {
      process.kill(pid(), 'SIGINT')
      await until('PostgreSQL had ended', () => !isRunning(), { pollMs: POLL_MS })
    },
    restart: async () => void (await startOrFind(cluster, port)),
    stop() {
      process.off('exit', embedded.stop)
      embedded.stop()
    },
  }
}

/** A small pool for a test's own queries. It reconnects after the server was killed. */
export function openPool(url: string): Database {
  return testPool(url, 4)
}

/** Whether `url` accepts connections, optionally with a startup parameter. */
export async function connects(url: string, parameters: { statement_timeout?: number } = {}): Promise<boolean> {
  const limits = { connectionTimeoutMillis: 1_000, query_timeout: 1_000 }
  const client = new pg.Client({ connectionString: url, ...limits, ...parameters })
  client.on('error', () => undefined)
  try {
    await client.connect()
    await client.query('select 1')
    return true
  } catch {
    return false
  } finally {
    await client.end().catch(() => undefined)
  }
}

/** Polls without pause until the server at `url` responds; returns when the successful attempt started. */
export async function momentOfReturn(url: string): Promise<number> {
  let begun = 0
  const isServed = () => {
    begun = performance.now()
    return connects(url)
  }
  await until('PostgreSQL had returned', isServed, { pollMs: POLL_MS })
  return begun
}
