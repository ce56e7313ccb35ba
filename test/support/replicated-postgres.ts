import { chownSync, cpSync, lchownSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { clusterUrl, startOrFind, stopServer } from '../../src/dev/embedded-postgres.ts'
import { migrate } from '../../src/platform/db/migrate.ts'
import { databaseUrl } from './database-url.ts'
import { startPostgresServer } from './postgres-server.ts'

export type ReplicatedPostgres = {
  /** Superuser URLs of the databases `postgres`. */
  primaryUrl: string
  replicaUrl: string
  stopReplica: () => void
  startReplica: () => Promise<void>
  /** Stops both servers and removes `directory`. */
  remove: () => void
}

/** Creates and migrates a database on the primary. Returns its superuser URLs on both servers. */
export async function createReplicatedDatabase({ primaryUrl, replicaUrl }: ReplicatedPostgres) {
  const admin = new pg.Client({ connectionString: primaryUrl })
  await admin.connect()
  await admin.query('create database payments')
  await admin.end()
  const url = databaseUrl(primaryUrl, 'payments')
  await migrate(url)
  return { url, replicaUrl: databaseUrl(replicaUrl, 'payments') }
}

/** Starts a PostgreSQL server and a streaming replica of it, both in `directory`. */
export async function startReplicatedPostgres(directory: string): Promise<ReplicatedPostgres> {
  const primary = await startPostgresServer(directory)
  const { account, password, dataDirectory, logFile } = primary.cluster
  const primaryUrl = primary.urlOf('postgres')
  const replica = {
    ...primary.cluster,
    dataDirectory: join(directory, 'replica'),
    logFile: join(directory, 'replica.log'),
    settings: [
      `primary_conninfo=host=127.0.0.1 port=${primary.port} user=postgres password=${password}`,
      'wal_retrieve_retry_interval=200ms',
      'fsync=off',
    ],
  }
  const remove = () => {
    stopServer(replica)
    primary.stop()
    rmSync(directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
  }
  try {
    await copyRunning(primaryUrl, dataDirectory, replica.dataDirectory)
    if (account) {
      chownSync(replica.dataDirectory, account.uid, account.gid)
      for (const entry of readdirSync(replica.dataDirectory, { recursive: true, encoding: 'utf8' })) {
        lchownSync(join(replica.dataDirectory, entry), account.uid, account.gid)
      }
    }
    const { port } = await startOrFind(replica)
    return {
      primaryUrl,
      replicaUrl: clusterUrl(replica, port),
      stopReplica: () => stopServer(replica),
      startReplica: async () => void (await startOrFind(replica, port)),
      remove,
    }
  } catch (error) {
    const log = readFileSync(logFile, 'utf8')
    remove()
    throw new Error(`The replica does not start. Log of the primary:\n${log}`, { cause: error })
  }
}

/** Copies the data like pg_basebackup, which the embedded server lacks. */
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
