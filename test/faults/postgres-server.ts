import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { createPool, type Database } from '../../src/db/pool.ts'
import { startEmbeddedPostgres } from '../../src/dev/embedded-postgres.ts'
import { findBinaries, serverAccount } from '../../src/dev/postgres-binaries.ts'
import { startPostmaster } from '../../src/dev/postmaster.ts'
import { databaseUrl } from '../support/database-url.ts'

export type PostgresServer = {
  port: number
  /** The URL of `database`, seen from here or through another port. */
  urlOf: (database: string, port?: number) => string
  /** Few connections for what the test itself asks; a server that is killed breaks them, and they are made anew. */
  poolOf: (database: string) => Database
  isRunning: () => boolean
  killHard: () => void
  /** Ends every connection at once, as an operator's restart does; over when the server is. */
  shutDown: () => Promise<void>
  /** On the same port, once it takes connections. */
  restart: () => Promise<void>
  stop: () => void
}

const DURABLE = ['fsync', 'synchronous_commit', 'full_page_writes']
const POLL_MS = 5
/** Recovery of what a fault test has written takes a second or two. */
const RETURN_TIMEOUT_MS = 30_000

/** A PostgreSQL server whose commits survive it. It is stopped at the end of this process at the latest. */
export async function startPostgresServer(directory: string, settings: string[] = []): Promise<PostgresServer> {
  const embedded = await startEmbeddedPostgres({ directory, durable: true })
  process.prependListener('exit', embedded.stop)
  const account = serverAccount()
  const binaries = findBinaries(directory, account)
  const { port: portText, password } = new URL(embedded.url)
  const port = Number(portText)
  const cluster = {
    postgres: binaries.postgres,
    dataDirectory: join(directory, binaries.majorVersion),
    logFile: join(directory, 'server.log'),
    password,
    account,
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
    port,
    urlOf,
    poolOf: (database) =>
      createPool({ url: urlOf(database), size: 2, log: { warn: () => undefined }, queryTimeoutMs: 0 }),
    isRunning,
    killHard: () => void process.kill(pid(), 'SIGKILL'),
    async shutDown() {
      process.kill(pid(), 'SIGINT')
      while (isRunning()) await new Promise((resolve) => setTimeout(resolve, POLL_MS))
    },
    restart: async () => void (await startPostmaster(cluster, port)),
    stop() {
      process.off('exit', embedded.stop)
      embedded.stop()
    },
  }
}

/** Asks without pause until the server at `url` answers; the moment at which that question was begun. */
export async function momentOfReturn(url: string): Promise<number> {
  const deadline = performance.now() + RETURN_TIMEOUT_MS
  for (;;) {
    const begun = performance.now()
    if (begun > deadline) throw new Error(`PostgreSQL did not return within ${RETURN_TIMEOUT_MS} ms`)
    const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 1_000, query_timeout: 1_000 })
    client.on('error', () => undefined)
    const answered = await client
      .connect()
      .then(() => client.query('select 1'))
      .then(
        () => true,
        () => false,
      )
    await client.end().catch(() => undefined)
    if (answered) return begun
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
}
