import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { isLeased, lock, lockSync, takeLease } from './leases.ts'
import { type Account, type Binaries, findBinaries, SERVER_ENVIRONMENT, serverAccount } from './postgres-binaries.ts'
import { type Cluster, clusterUrl, findRunning, startPostmaster, stopPostmaster } from './postmaster.ts'

export type EmbeddedPostgres = {
  /** A superuser's connection to the database `postgres`. */
  url: string
  /** Ends our use of the server, and the server itself if nobody else uses it. Blocks; may be called while exiting. */
  stop(): void
}

const SETTINGS = ['timezone=UTC', 'log_timezone=UTC', 'log_checkpoints=off']
/** Fast instead of durable: a crash of the machine may destroy the data. */
const TEST_SETTINGS = ['fsync=off', 'synchronous_commit=off', 'full_page_writes=off', 'max_connections=300']

/**
 * A real PostgreSQL server whose data, password and log lie in `directory`, which is made if need be. Where one already
 * runs there, left behind by a killed process or shared with another one, it is adopted. It listens on 127.0.0.1 only,
 * on a random port. `durable: false` is for tests.
 */
export async function startEmbeddedPostgres(options: {
  directory: string
  durable: boolean
  /** The folder of an installed PostgreSQL, to use it instead of the one that comes with the project. */
  installed?: string | undefined
}): Promise<EmbeddedPostgres> {
  const account = serverAccount()
  makeDirectory(options.directory, account)
  const directory = realpathSync(options.directory)
  const unlock = await lock(directory)
  try {
    const binaries = findBinaries(directory, account, options.installed)
    const password = readOrMakePassword(directory, account)
    const cluster = {
      postgres: binaries.postgres,
      dataDirectory: join(directory, binaries.majorVersion),
      logFile: join(directory, 'server.log'),
      password,
      account,
      settings: options.durable ? SETTINGS : [...SETTINGS, ...TEST_SETTINGS],
    }
    if (!existsSync(cluster.dataDirectory)) await initialise(cluster, binaries, directory)
    const port = (await findRunning(cluster)) ?? (await startPostmaster(cluster))
    return { url: clusterUrl(cluster, port), stop: leave(cluster, directory) }
  } finally {
    unlock()
  }
}

function leave(cluster: Cluster, directory: string): () => void {
  const release = takeLease(directory)
  let left = false
  return () => {
    if (left) return
    left = true
    // Under the lock: otherwise another process could begin to use the server after our check of the leases.
    const unlock = lockSync(directory)
    release()
    if (!isLeased(directory)) stopPostmaster(cluster)
    unlock?.()
  }
}

/** Where the server has a user of its own, that user must be able to enter; secret files have permissions of their own. */
function makeDirectory(directory: string, account: Account): void {
  const outermost = mkdirSync(directory, { recursive: true }) ?? directory
  const mode = account ? 0o711 : 0o700
  for (let path = directory; path.startsWith(outermost); path = dirname(path)) chmodSync(path, mode)
}

/** Owned by the server's user, because initdb reads it as that user. */
function readOrMakePassword(directory: string, account: Account): string {
  const file = passwordFile(directory)
  if (!existsSync(file)) {
    const partial = `${file}.partial`
    writeFileSync(partial, randomBytes(24).toString('base64url'), { mode: 0o600 })
    if (account) chownSync(partial, account.uid, account.gid)
    renameSync(partial, file)
  }
  return readFileSync(file, 'utf8').trim()
}

const passwordFile = (directory: string) => join(directory, 'password')

async function initialise(cluster: Cluster, binaries: Binaries, directory: string): Promise<void> {
  // Under another name until it is complete, so that an interrupted attempt is not taken for a database.
  const partial = `${cluster.dataDirectory}.partial`
  rmSync(partial, { recursive: true, force: true })
  mkdirSync(partial, { mode: 0o700 })
  if (cluster.account) chownSync(partial, cluster.account.uid, cluster.account.gid)
  const args = ['--locale=C', '-E', 'UTF8', '-U', 'postgres', '--auth=scram-sha-256']
  const options = { ...cluster.account, cwd: partial, env: SERVER_ENVIRONMENT }
  await promisify(execFile)(binaries.initdb, ['-D', partial, ...args, `--pwfile=${passwordFile(directory)}`], options)
  renameSync(partial, cluster.dataDirectory)
}
