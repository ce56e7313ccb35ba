import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { hasState, INVALID_PASSWORD } from '../platform/db/outage.ts'
import { type Account, findBinaries, SERVER_ENVIRONMENT, serverAccount } from './postgres-binaries.ts'

/** Everything needed to start the server for one database cluster. */
export type Cluster = {
  bin: string
  dataDirectory: string
  logFile: string
  password: string
  account: Account
  settings: readonly string[]
}

type EmbeddedPostgres = {
  /** URL of the database `postgres`, including the superuser and the password. */
  url: string
  cluster: Cluster
  /**
   * Stops the server if this process started it. The function is synchronous, so that an `exit` handler can call it.
   */
  stop(): void
}

const SETTINGS = ['timezone=UTC', 'log_timezone=UTC', 'log_checkpoints=off']
/** Fast settings without durability: a crash of the machine may destroy the data. */
const TEST_SETTINGS = ['fsync=off', 'synchronous_commit=off', 'full_page_writes=off', 'max_connections=300']

/** Time limit for the start of the server, which may include crash recovery from at most five minutes of WAL. */
const READY_TIMEOUT_MS = 60_000
const STOP_TIMEOUT_MS = 30_000
const POLL_MS = 50
const CONNECT_TIMEOUT_MS = 2_000
/**
 * A start may fail while another process starts the server or uses the port, or while the children of a killed server
 * are still running.
 */
const START_ATTEMPTS = 20
const RETRY_MS = 250
const TRANSIENT_ERROR = /address already in use|shared memory block .* is still in use|lock file .* already exists/i
/** A process id above the highest id that Linux and macOS assign, so that no process has this id. */
const NO_PROCESS = 2_147_483_647

/**
 * Starts PostgreSQL on a random port of 127.0.0.1, with data, password and log in `directory`, which is created if
 * missing. If a server is already running on the directory, uses that server. A started server stops with this process,
 * even if the process is killed. `durable: false` is for tests.
 */
export async function startEmbeddedPostgres(options: {
  directory: string
  durable: boolean
  /** Folder of an installed PostgreSQL to use instead of the development dependency. */
  installed?: string | undefined
}): Promise<EmbeddedPostgres> {
  const account = serverAccount()
  makeDirectory(options.directory, account)
  const directory = realpathSync(options.directory)
  const { bin, majorVersion } = findBinaries(directory, account, options.installed)
  const passwordFile = join(directory, 'password')
  const cluster = {
    bin,
    dataDirectory: join(directory, majorVersion),
    logFile: join(directory, 'server.log'),
    password: readOrMakePassword(passwordFile, account),
    account,
    settings: options.durable ? SETTINGS : [...SETTINGS, ...TEST_SETTINGS],
  }
  if (!existsSync(cluster.dataDirectory)) initialise(cluster, passwordFile)
  const { port, isOurs } = await startOrFind(cluster)
  return { url: clusterUrl(cluster, port), cluster, stop: () => isOurs && stopServer(cluster) }
}

/** Finds the running server of `cluster`, or starts a server on `port`, or on a random port if `port` is absent. */
export async function startOrFind(cluster: Cluster, port?: number): Promise<{ port: number; isOurs: boolean }> {
  for (let attempt = 1; ; attempt += 1) {
    const running = await untilListening(cluster)
    if (running !== undefined) return { port: running.port, isOurs: false }
    const launched = launch(cluster, port ?? (await freePort()))
    const started = await untilListening(cluster, launched)
    // Another process may have started its server concurrently, and PostgreSQL stops one of the two servers.
    if (started !== undefined) return { port: started.port, isOurs: started.pid === launched.pid }
    const log = readFileSync(cluster.logFile, 'utf8').trim()
    if (!TRANSIENT_ERROR.test(log) || attempt === START_ATTEMPTS) throw new Error(`PostgreSQL did not start:\n${log}`)
    await sleep(RETRY_MS)
  }
}

/**
 * Stops the server of `cluster` and waits for its exit. The function is synchronous, so that an `exit` handler can call
 * it.
 */
export function stopServer(cluster: Cluster): void {
  const pid = readPostmaster(cluster)?.pid
  if (pid === undefined) return
  // SIGINT requests PostgreSQL's fast shutdown, which does not wait for clients to disconnect.
  process.kill(pid, 'SIGINT')
  const deadline = Date.now() + STOP_TIMEOUT_MS
  const never = new Int32Array(new SharedArrayBuffer(4))
  while (readPostmaster(cluster)?.pid === pid && Date.now() < deadline) Atomics.wait(never, 0, 0, POLL_MS)
}

export const clusterUrl = ({ password }: Pick<Cluster, 'password'>, port: number) =>
  `postgres://postgres:${password}@127.0.0.1:${port}/postgres`

/** Creates `directory` with access for the server's user. Files with secrets have stricter modes of their own. */
function makeDirectory(directory: string, account: Account): void {
  const outermost = mkdirSync(directory, { recursive: true }) ?? directory
  const mode = account ? 0o711 : 0o700
  for (let path = directory; path.startsWith(outermost); path = dirname(path)) chmodSync(path, mode)
}

/**
 * Reads the password file. If the file is missing, creates it for the server's user, because initdb reads the file as
 * that user.
 */
function readOrMakePassword(file: string, account: Account): string {
  if (!existsSync(file)) {
    const partial = `${file}.${process.pid}`
    writeFileSync(partial, randomBytes(24).toString('base64url'), { mode: 0o600 })
    if (account) chownSync(partial, account.uid, account.gid)
    makeOnce(() => linkSync(partial, file))
    rmSync(partial)
  }
  return readFileSync(file, 'utf8').trim()
}

function initialise({ bin, dataDirectory, account }: Cluster, passwordFile: string): void {
  // The directory gets its final name only when it is complete, so that an interrupted attempt is not mistaken for a
  // database.
  const partial = `${dataDirectory}.${process.pid}`
  rmSync(partial, { recursive: true, force: true })
  mkdirSync(partial, { mode: 0o700 })
  if (account) chownSync(partial, account.uid, account.gid)
  const args = ['-D', partial, '--locale=C', '-E', 'UTF8', '-U', 'postgres', '--auth=scram-sha-256']
  const options = { ...account, cwd: partial, env: SERVER_ENVIRONMENT, stdio: 'pipe' } as const
  execFileSync(join(bin, 'initdb'), [...args, `--pwfile=${passwordFile}`], options)
  makeOnce(() => renameSync(partial, dataDirectory))
  rmSync(partial, { recursive: true, force: true })
}

/**
 * Ignores the error if another process has already made the files, because processes that start concurrently on a fresh
 * clone share the files.
 */
function makeOnce(make: () => void): void {
  try {
    make()
  } catch (error) {
    if (!['EEXIST', 'ENOTEMPTY'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
  }
}

/**
 * Starts a server in its own session, so that Ctrl-C in the terminal does not reach the server. A guard process stops
 * the server when this process ends, even by SIGKILL, because the operating system then closes the pipe from which the
 * guard reads.
 */
function launch(cluster: Cluster, port: number): ChildProcess {
  const { bin, dataDirectory, account } = cluster
  disownPidFile(cluster)
  const settings = ['listen_addresses=127.0.0.1', `port=${port}`, 'unix_socket_directories=', ...cluster.settings]
  const args = ['-D', dataDirectory, ...settings.flatMap((setting) => ['-c', setting])]
  const options = { ...account, cwd: dataDirectory, env: SERVER_ENVIRONMENT, detached: true } as const
  const log = openSync(cluster.logFile, 'w', 0o600)
  const server = spawn(join(bin, 'postgres'), args, { ...options, stdio: ['ignore', log, log] })
  closeSync(log)
  const end = ['-c', 'read line; kill -INT "$0"', String(server.pid)]
  const guard = spawn('sh', end, { ...options, stdio: ['pipe', 'ignore', 'ignore'] })
  server.once('exit', () => guard.kill('SIGKILL'))
  for (const child of [server, guard, guard.stdin as Socket]) child.unref()
  return server
}

/**
 * Replaces the process id in a left-over postmaster.pid. PostgreSQL does not start while a process with the old id
 * exists, even if the process is a zombie or unrelated. The other lines are unchanged, because PostgreSQL needs them to
 * detect children of the old server.
 */
function disownPidFile(cluster: Cluster): void {
  const file = pidFile(cluster)
  if (!existsSync(file) || readPostmaster(cluster)) return
  const [, ...lines] = readFileSync(file, 'utf8').split('\n')
  writeFileSync(file, [NO_PROCESS, ...lines].join('\n'))
}

const pidFile = ({ dataDirectory }: Cluster) => join(dataDirectory, 'postmaster.pid')

/**
 * Reads process id and port from postmaster.pid. Returns undefined unless the process is the server of this cluster,
 * because an unrelated process may have the id after a crash or reboot. A zombie is ignored, because its command line
 * is empty.
 */
function readPostmaster(cluster: Cluster): { pid: number; port: number } | undefined {
  try {
    const lines = readFileSync(pidFile(cluster), 'utf8').split('\n')
    const pid = Number(lines[0])
    return commandLine(pid).includes(cluster.dataDirectory) ? { pid, port: Number(lines[3] ?? 0) } : undefined
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined
    throw error
  }
}

function commandLine(pid: number): string {
  if (process.platform === 'linux') return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  return spawnSync('ps', ['-o', 'command=', '-p', String(pid)], { encoding: 'utf8' }).stdout
}

/**
 * Waits until the cluster's server responds. Returns undefined if no server is running and `launched` is absent or has
 * exited.
 */
async function untilListening(cluster: Cluster, launched?: ChildProcess) {
  const deadline = Date.now() + READY_TIMEOUT_MS
  for (;;) {
    const running = readPostmaster(cluster)
    if (running && running.port > 0 && (await isListening(cluster, running.port))) return running
    const isStarting = launched !== undefined && launched.exitCode === null && launched.signalCode === null
    if (!running && !isStarting) return undefined
    if (Date.now() > deadline)
      throw new Error(`The PostgreSQL server on ${cluster.dataDirectory} does not respond. See server.log beside it.`)
    await sleep(POLL_MS)
  }
}

async function isListening(cluster: Cluster, port: number): Promise<boolean> {
  const limits = { connectionTimeoutMillis: CONNECT_TIMEOUT_MS, query_timeout: CONNECT_TIMEOUT_MS }
  const client = new pg.Client({ connectionString: clusterUrl(cluster, port), ...limits })
  client.on('error', () => undefined)
  try {
    await client.connect()
    await client.query('select 1')
    return true
  } catch (error) {
    if (!hasState(error, INVALID_PASSWORD)) return false
    throw new Error(`The PostgreSQL server on ${cluster.dataDirectory} rejects the password stored beside it`)
  } finally {
    await client.end().catch(() => undefined)
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  await once(server.close(), 'close')
  return port
}
