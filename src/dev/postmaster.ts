import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { hasState, INVALID_PASSWORD } from '../db/outage.ts'
import { type Account, SERVER_ENVIRONMENT } from './postgres-binaries.ts'
import { commandLine, processStamp } from './processes.ts'

/** One database cluster: what its server needs to run. */
export type Cluster = {
  postgres: string
  dataDirectory: string
  logFile: string
  password: string
  account: Account
  settings: readonly string[]
}

/** Recovery after a crash replays at most the log of five minutes. */
const READY_TIMEOUT_MS = 60_000
const STOP_TIMEOUT_SECONDS = 30
const POLL_MS = 50
const CONNECT_TIMEOUT_MS = 2_000
/** A start fails when another process is the first, the random port is taken, or children of a killed server are ending. */
const START_ATTEMPTS = 20
const RETRY_MS = 250
/** Above the highest process id that Linux, macOS and Windows give out. */
const NO_PROCESS = 2_147_483_647

export const clusterUrl = ({ password }: Pick<Cluster, 'password'>, port: number) =>
  `postgres://postgres:${password}@127.0.0.1:${port}/postgres`

/**
 * The port of the server that already runs on `cluster` and answers; undefined when there is none. Waits for one that
 * starts or stops.
 */
async function findRunning(cluster: Cluster): Promise<number | undefined> {
  const deadline = Date.now() + READY_TIMEOUT_MS
  for (;;) {
    const running = readPostmaster(cluster)
    if (!running) return undefined
    if (running.port > 0 && (await answers(cluster, running.port))) return running.port
    if (Date.now() > deadline) {
      throw new Error(`The PostgreSQL server on ${cluster.dataDirectory} (process ${running.pid}) does not answer`)
    }
    await sleep(POLL_MS)
  }
}

/** The port of the server on `cluster`: of one that runs, or of one that this starts, on a random port unless one is given. */
export async function startOrFind(cluster: Cluster, fixedPort?: number): Promise<{ port: number; isOurs: boolean }> {
  for (let attempt = 1; ; attempt += 1) {
    const running = await findRunning(cluster)
    if (running !== undefined) return { port: running, isOurs: false }
    disownPidFile(cluster)
    const port = fixedPort ?? (await freePort())
    if (await becomesReady(cluster, port)) return { port, isOurs: true }
    const log = existsSync(cluster.logFile) ? readFileSync(cluster.logFile, 'utf8').trim() : ''
    const passing = /address already in use|shared memory block .* is still in use|lock file .* already exists/i.test(
      log,
    )
    if (!passing || attempt === START_ATTEMPTS) throw new Error(`PostgreSQL does not start:\n${log}`)
    await sleep(RETRY_MS)
  }
}

/** Stops the server of `cluster`, if it runs, and waits for its end. Blocks, so that it can be the last that a process does. */
export function stopPostmaster(cluster: Cluster): void {
  // pg_ctl itself would take the number of a dead server, which may be another process by now.
  if (!readPostmaster(cluster)) return
  spawnSync(pgCtl(cluster), ['stop', '--mode=fast', `--timeout=${STOP_TIMEOUT_SECONDS}`, ...dataOf(cluster)], {
    ...optionsOf(cluster),
    stdio: 'ignore',
  })
}

/** Beside the server. */
const pgCtl = ({ postgres }: Cluster) => join(dirname(postgres), 'pg_ctl')
const dataOf = ({ dataDirectory }: Cluster) => ['--pgdata', dataDirectory]
const optionsOf = ({ account, dataDirectory }: Cluster) => ({ ...account, cwd: dataDirectory, env: SERVER_ENVIRONMENT })

const pidFile = ({ dataDirectory }: Cluster) => join(dataDirectory, 'postmaster.pid')

/**
 * What postmaster.pid says, if its process lives and is the server of this cluster. The number alone proves nothing:
 * after a crash or a reboot another process may have it.
 */
function readPostmaster(cluster: Cluster): { pid: number; port: number } | undefined {
  if (!existsSync(pidFile(cluster))) return undefined
  const lines = readFileSync(pidFile(cluster), 'utf8').split('\n')
  const pid = Number(lines[0])
  const alive = pid > 0 && processStamp(pid) !== undefined && commandLine(pid).includes(cluster.dataDirectory)
  return alive ? { pid, port: Number(lines[3] ?? 0) } : undefined
}

/**
 * PostgreSQL refuses to start over a postmaster.pid whose number is in use, even by a zombie or an unrelated process. So the
 * number is replaced; the file is kept, because by its other lines PostgreSQL sees whether children of the old server live.
 */
function disownPidFile(cluster: Cluster): void {
  if (!existsSync(pidFile(cluster)) || readPostmaster(cluster)) return
  const [, ...lines] = readFileSync(pidFile(cluster), 'utf8').split('\n')
  writeFileSync(pidFile(cluster), [NO_PROCESS, ...lines].join('\n'))
}

/** Starts a server that outlives us, in a session of its own, out of reach of the terminal's Ctrl-C. */
async function becomesReady(cluster: Cluster, port: number): Promise<boolean> {
  const settings = ['listen_addresses=127.0.0.1', `port=${port}`, 'unix_socket_directories=', ...cluster.settings]
  // In quotes, because pg_ctl passes them to a shell.
  const options = settings.map((setting) => `-c '${setting}'`).join(' ')
  const args = ['start', '--silent', `--timeout=${READY_TIMEOUT_MS / 1_000}`, '--options', options, ...dataOf(cluster)]
  const log = openSync(cluster.logFile, 'w', 0o600)
  const starting = spawn(pgCtl(cluster), args, { ...optionsOf(cluster), stdio: ['ignore', log, log] })
  closeSync(log)
  const [exitCode] = await once(starting, 'exit')
  return exitCode === 0
}

async function answers(cluster: Cluster, port: number): Promise<boolean> {
  const client = new pg.Client({
    connectionString: clusterUrl(cluster, port),
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: CONNECT_TIMEOUT_MS,
  })
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

export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0))
    })
  })
}
