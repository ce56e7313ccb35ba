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
import { hasState, INVALID_PASSWORD } from '../db/outage.ts'
import { type Account, findBinaries, SERVER_ENVIRONMENT, serverAccount } from './postgres-binaries.ts'

/** Everything that the server of one database cluster needs. */
export type Cluster = {
  bin: string
  dataDirectory: string
  logFile: string
  password: string
  account: Account
  settings: readonly string[]
}

type EmbeddedPostgres = {
  /** URL of the database `postgres`, as superuser. */
  url: string
  cluster: Cluster
  /** Stops a server that this process started. Blocks, so that it may be called while exiting. */
  stop(): void
}

const SETTINGS = ['timezone=UTC', 'log_timezone=UTC', 'log_checkpoints=off']
/** Fast, not durable: a crash of the machine may destroy the data. */
const TEST_SETTINGS = ['fsync=off', 'synchronous_commit=off', 'full_page_writes=off', 'max_connections=300']

/** Recovery replays the log of five minutes at most. */
const READY_TIMEOUT_MS = 60_000
const STOP_TIMEOUT_MS = 30_000
const POLL_MS = 50
const CONNECT_TIMEOUT_MS = 2_000
/** A start fails while another process starts first, the random port is taken, or children of a killed server end. */
const START_ATTEMPTS = 20
const RETRY_MS = 250
const PASSING_FAULT = /address already in use|shared memory block .* is still in use|lock file .* already exists/i
/** An id above the highest that Linux and macOS give to a process. */
const NO_PROCESS = 2_147_483_647

/**
 * A real PostgreSQL server on a random port of 127.0.0.1, with data, password and log in `directory`, which is made if
 * missing. A server that runs there already is used. A server that this process starts ends with it, even if the
 * process is killed. `durable: false` is for tests.
 */
export async function startEmbeddedPostgres(options: {
  directory: string
  durable: boolean
  /** Folder of an installed PostgreSQL, used in place of the project's own. */
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

/** The server of `cluster`: the running one, or a new one on `port` or a random port. */
export async function startOrFind(cluster: Cluster, port?: number): Promise<{ port: number; isOurs: boolean }> {
  for (let attempt = 1; ; attempt += 1) {
    const running = await untilAnswers(cluster)
    if (running !== undefined) return { port: running.port, isOurs: false }
    const launched = launch(cluster, port ?? (await freePort()))
    const started = await untilAnswers(cluster, launched)
    // PostgreSQL ends one of two servers that start at the same moment.
    if (started !== undefined) return { port: started.port, isOurs: started.pid === launched.pid }
    const log = readFileSync(cluster.logFile, 'utf8').trim()
    if (!PASSING_FAULT.test(log) || attempt === START_ATTEMPTS) throw new Error(`PostgreSQL does not start:\n${log}`)
    await sleep(RETRY_MS)
  }
}

/** Stops the server of `cluster` and waits for its end. Blocks, so that a process may do it last. */
export function stopServer(cluster: Cluster): void {
  const pid = readPostmaster(cluster)?.pid
  if (pid === undefined) return
  // PostgreSQL's fast shutdown.
  process.kill(pid, 'SIGINT')
  const deadline = Date.now() + STOP_TIMEOUT_MS
  const never = new Int32Array(new SharedArrayBuffer(4))
  while (readPostmaster(cluster)?.pid === pid && Date.now() < deadline) Atomics.wait(never, 0, 0, POLL_MS)
}

export const clusterUrl = ({ password }: Pick<Cluster, 'password'>, port: number) =>
  `postgres://postgres:${password}@127.0.0.1:${port}/postgres`

/** Makes `directory` with the right to enter it for the server's user; secret files have rights of their own. */
function makeDirectory(directory: string, account: Account): void {
  const outermost = mkdirSync(directory, { recursive: true }) ?? directory
  const mode = account ? 0o711 : 0o700
  for (let path = directory; path.startsWith(outermost); path = dirname(path)) chmodSync(path, mode)
}

/** The password file belongs to the server's user, as whom initdb reads it. */
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
  // The directory has another name until it is complete: an interrupted attempt must not be taken for a database.
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

/** Ignores that another process was first: several may start at once on a fresh clone, and share the result. */
function makeOnce(make: () => void): void {
  try {
    make()
  } catch (error) {
    if (!['EEXIST', 'ENOTEMPTY'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
  }
}

/**
 * Starts a server in a session of its own, out of reach of the terminal's Ctrl-C. A guard process ends the server when
 * this process is killed: the system then closes the pipe from which the guard reads.
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
 * Replaces the process id in a left-over postmaster.pid: PostgreSQL does not start while that number is in use, even
 * by a zombie or an unrelated process. The other lines stay: by them PostgreSQL sees whether children of the old
 * server live.
 */
function disownPidFile(cluster: Cluster): void {
  const file = pidFile(cluster)
  if (!existsSync(file) || readPostmaster(cluster)) return
  const [, ...lines] = readFileSync(file, 'utf8').split('\n')
  writeFileSync(file, [NO_PROCESS, ...lines].join('\n'))
}

const pidFile = ({ dataDirectory }: Cluster) => join(dataDirectory, 'postmaster.pid')

/**
 * Process id and port in postmaster.pid, if that process is the server of this cluster: after a crash or a reboot
 * another process may have the number. A zombie, which nobody reaps in a container without init, has no command line.
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

/** Waits while a server starts or stops. Undefined when none runs, or `launched` has ended without one. */
async function untilAnswers(cluster: Cluster, launched?: ChildProcess) {
  const deadline = Date.now() + READY_TIMEOUT_MS
  for (;;) {
    const running = readPostmaster(cluster)
    if (running && running.port > 0 && (await answers(cluster, running.port))) return running
    const isStarting = launched !== undefined && launched.exitCode === null && launched.signalCode === null
    if (!running && !isStarting) return undefined
    if (Date.now() > deadline) throw new Error(`The PostgreSQL server on ${cluster.dataDirectory} does not answer`)
    await sleep(POLL_MS)
  }
}

async function answers(cluster: Cluster, port: number): Promise<boolean> {
  const limits = { connectionTimeoutMillis: CONNECT_TIMEOUT_MS, query_timeout: CONNECT_TIMEOUT_MS }
  const client = new pg.Client({ connectionString: clusterUrl(cluster, port), ...limits })
  client.on('error', () => undefined)
  try {
    await client.connect()
    await client.query('select 1')
    return true
  } catch (error) {
    if (!hasState(error, INVALID_PASSWORD)) return false
    throw new Error(`The PostgreSQL server on ${cluster.dataDirectory} refuses the password kept beside it`)
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
