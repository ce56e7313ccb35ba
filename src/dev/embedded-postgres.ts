import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { type Account, type Binaries, findBinaries, SERVER_ENVIRONMENT, serverAccount } from './postgres-binaries.ts'
import { type Cluster, clusterUrl, startOrFind, stopPostmaster } from './postmaster.ts'
import { processStamp } from './processes.ts'

export type EmbeddedPostgres = {
  /** A superuser's connection to the database `postgres`. */
  url: string
  cluster: Cluster
  /** Stops the server if this process keeps it. Blocks; may be called while exiting. */
  stop(): void
}

const SETTINGS = ['timezone=UTC', 'log_timezone=UTC', 'log_checkpoints=off']
/** Fast instead of durable: a crash of the machine may destroy the data. */
const TEST_SETTINGS = ['fsync=off', 'synchronous_commit=off', 'full_page_writes=off', 'max_connections=300']

/**
 * A real PostgreSQL server whose data, password and log lie in `directory`, which is made if need be. Where one already
 * runs there, left behind by a killed process or kept by another one, it is used. It listens on 127.0.0.1 only, on a random
 * port. `durable: false` is for tests.
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
  const { port, isOurs } = await startOrFind(cluster)
  const stop = isOurs || becomeKeeper(directory) ? () => stopPostmaster(cluster) : () => undefined
  if (isOurs) keep(directory)
  return { url: clusterUrl(cluster, port), cluster, stop: once(stop) }
}

function once(work: () => void): () => void {
  let done = false
  return () => {
    if (!done) work()
    done = true
  }
}

/** Names the process that stops the server: who started it, or who finds that one dead. */
const keeperFile = (directory: string) => join(directory, 'keeper')

function keep(directory: string): void {
  writeFileSync(keeperFile(directory), `${process.pid} ${processStamp(process.pid)}`)
}

/** Whether this process keeps the server from now on, because its keeper was killed. */
function becomeKeeper(directory: string): boolean {
  const [pid, stamp] = existsSync(keeperFile(directory)) ? readFileSync(keeperFile(directory), 'utf8').split(' ') : []
  if (pid !== undefined && processStamp(Number(pid)) === stamp) return false
  keep(directory)
  return true
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
    const partial = `${file}.${process.pid}`
    writeFileSync(partial, randomBytes(24).toString('base64url'), { mode: 0o600 })
    if (account) chownSync(partial, account.uid, account.gid)
    makeOnce(() => linkSync(partial, file))
    rmSync(partial)
  }
  return readFileSync(file, 'utf8').trim()
}

const passwordFile = (directory: string) => join(directory, 'password')

async function initialise(cluster: Cluster, binaries: Binaries, directory: string): Promise<void> {
  // Under another name until it is complete, so that an interrupted attempt is not taken for a database.
  const partial = `${cluster.dataDirectory}.${process.pid}`
  rmSync(partial, { recursive: true, force: true })
  mkdirSync(partial, { mode: 0o700 })
  if (cluster.account) chownSync(partial, cluster.account.uid, cluster.account.gid)
  const args = ['--locale=C', '-E', 'UTF8', '-U', 'postgres', '--auth=scram-sha-256']
  const options = { ...cluster.account, cwd: partial, env: SERVER_ENVIRONMENT }
  await promisify(execFile)(binaries.initdb, ['-D', partial, ...args, `--pwfile=${passwordFile(directory)}`], options)
  makeOnce(() => renameSync(partial, cluster.dataDirectory))
  rmSync(partial, { recursive: true, force: true })
}

/** Of several processes on a fresh clone one is the first, and the others use what it has made. */
function makeOnce(make: () => void): void {
  try {
    make()
  } catch (error) {
    if (!['EEXIST', 'ENOTEMPTY'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
  }
}
