import { spawn } from 'node:child_process'
import { closeSync, existsSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { hasState, INVALID_PASSWORD } from '../db/sqlstates.ts'
import { type Account, SERVER_ENVIRONMENT } from './postgres-binaries.ts'
import { commandLine, processStamp, sleepSync } from './processes.ts'

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
const STOP_TIMEOUT_MS = 30_000
const POLL_MS = 50
const CONNECT_TIMEOUT_MS = 2_000
/** A random port may be taken in the moment between its choice and its use; children of a killed server take a moment to end. */
const START_ATTEMPTS = 20
const RETRY_MS = 250
/** Above the highest process id that Linux, macOS and Windows give out. */
const NO_PROCESS = 2_147_483_647

export const clusterUrl = ({ password }: Pick<Cluster, 'password'>, port: number) =>
  `postgres://postgres:${password}@127.0.0.1:${port}/postgres`

/** The port of the server that already runs on `cluster` and answers; undefined when there is none. Waits for one that starts or stops. */
export async function findRunning(cluster: Cluster): Promise<number | undefined> {
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

/**
 * Starts a server on `cluster`, where none runs, and answers its port once it takes connections. The port is random,
 * unless one is given.
 */
export async function startPostmaster(cluster: Cluster, fixedPort?: number): Promise<number> {
  for (let attempt = 1; ; attempt += 1) {
    disownPidFile(cluster)
    const port = fixedPort ?? (await freePort())
    if (await becomesReady(cluster, port)) return port
    const log = existsSync(cluster.logFile) ? readFileSync(cluster.logFile, 'utf8').trim() : ''
    const passing = /address already in use|shared memory block .* is still in use/i.test(log)
    if (!passing || attempt === START_ATTEMPTS) throw new Error(`PostgreSQL does not start:\n${log}`)
    await sleep(RETRY_MS)
  }
}

/**
 * Stops the server of `cluster`, if it runs, as `pg_ctl stop -m fast` does, and waits for its end. Blocks the process,
 * so that it can be the last thing that a process does.
 */
export function stopPostmaster(cluster: Cluster): void {
  const running = readPostmaster(cluster)
  if (!running) return
  process.kill(running.pid, 'SIGINT')
  const deadline = Date.now() + STOP_TIMEOUT_MS
  while (readPostmaster(cluster) && Date.now() < deadline) sleepSync(POLL_MS)
}

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
 * PostgreSQL refuses to start over a postmaster.pid whose number is in use, be it by a zombie or a stranger. The number
 * is replaced and the file kept, because its other lines let PostgreSQL see whether children of the old server live on.
 */
function disownPidFile(cluster: Cluster): void {
  if (!existsSync(pidFile(cluster))) return
  const [, ...lines] = readFileSync(pidFile(cluster), 'utf8').split('\n')
  writeFileSync(pidFile(cluster), [NO_PROCESS, ...lines].join('\n'))
}

async function becomesReady(cluster: Cluster, port: number): Promise<boolean> {
  const { postgres, dataDirectory, logFile, account, settings } = cluster
  const log = openSync(logFile, 'w', 0o600)
  const network = ['listen_addresses=127.0.0.1', `port=${port}`, 'unix_socket_directories=']
  const args = [...network, ...settings].flatMap((setting) => ['-c', setting])
  // Detached: in a session of its own, out of reach of the terminal's Ctrl-C.
  const child = spawn(postgres, ['-D', dataDirectory, ...args], {
    ...account,
    cwd: dataDirectory,
    env: SERVER_ENVIRONMENT,
    detached: true,
    stdio: ['ignore', log, log],
  })
  closeSync(log)
  let ended = false
  child.once('exit', () => {
    ended = true
  })
  child.once('error', (error) => {
    ended = true
    writeFileSync(logFile, error.message)
  })
  const deadline = Date.now() + READY_TIMEOUT_MS
  while (!ended && Date.now() < deadline) {
    if (await answers(cluster, port)) {
      child.unref()
      return true
    }
    await sleep(POLL_MS)
  }
  child.kill('SIGINT')
  return false
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

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0))
    })
  })
}
