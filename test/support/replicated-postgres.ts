import { chownSync, cpSync, lchownSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { startEmbeddedPostgres } from '../../src/dev/embedded-postgres.ts'
import { findBinaries, serverAccount } from '../../src/dev/postgres-binaries.ts'
import { clusterUrl, startPostmaster, stopPostmaster } from '../../src/dev/postmaster.ts'
import { INSTALLED_POSTGRES } from './installed-postgres.ts'

export type ReplicatedPostgres = {
  /** Superusers' connections to the databases `postgres`. */
  primaryUrl: string
  replicaUrl: string
  stopReplica: () => void
  startReplica: () => Promise<void>
  /** Stops both servers and removes `directory`. */
  remove: () => void
}

/** A PostgreSQL server of its own and a streaming replica of it, both in `directory`. */
export async function startReplicatedPostgres(directory: string): Promise<ReplicatedPostgres> {
  const primary = await startEmbeddedPostgres({ directory, durable: false, installed: INSTALLED_POSTGRES })
  const account = serverAccount()
  const binaries = findBinaries(directory, account, INSTALLED_POSTGRES)
  const { port: primaryPort, password } = new URL(primary.url)
  const replica = {
    postgres: binaries.postgres,
    dataDirectory: join(directory, 'replica'),
    logFile: join(directory, 'replica.log'),
    password,
    account,
    settings: [
      `primary_conninfo=host=127.0.0.1 port=${primaryPort} user=postgres password=${password}`,
      'wal_retrieve_retry_interval=200ms',
      'fsync=off',
      // A replica refuses to run with fewer than its primary.
      'max_connections=300',
    ],
  }
  const remove = () => {
    stopPostmaster(replica)
    primary.stop()
    rmSync(directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
  }
  try {
    await copyRunning(primary.url, join(directory, binaries.majorVersion), replica.dataDirectory)
    if (account) {
      chownSync(replica.dataDirectory, account.uid, account.gid)
      for (const entry of readdirSync(replica.dataDirectory, { recursive: true, encoding: 'utf8' })) {
        lchownSync(join(replica.dataDirectory, entry), account.uid, account.gid)
      }
    }
    const port = await startPostmaster(replica)
    return {
      primaryUrl: primary.url,
      replicaUrl: clusterUrl(replica, port),
      stopReplica: () => stopPostmaster(replica),
      startReplica: async () => void (await startPostmaster(replica, port)),
      remove,
    }
  } catch (error) {
    const log = readFileSync(join(directory, 'server.log'), 'utf8')
    remove()
    throw new Error(`The replica does not start. The primary says:\n${log}`, { cause: error })
  }
}

/** What pg_basebackup does, which does not come with the embedded server. */
async function copyRunning(url: string, from: string, to: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(`select pg_backup_start('replica', true)`)
    cpSync(from, to, {
      recursive: true,
      filter: (path) => path !== join(from, 'postmaster.pid') && path !== join(from, 'postmaster.opts'),
    })
    const { rows } = await client.query('select labelfile from pg_backup_stop(false)')
    writeFileSync(join(to, 'backup_label'), rows[0].labelfile)
    writeFileSync(join(to, 'standby.signal'), '')
  } finally {
    await client.end()
  }
}
