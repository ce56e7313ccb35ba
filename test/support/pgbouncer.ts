import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { serverAccount } from '../../src/dev/postgres-binaries.ts'
import { end, findSystemProgram, freePort, hasEnded, start } from './processes.ts'

/** Whether tests can run PgBouncer; without it they are skipped with a message, but CI must not pass without them. */
export function hasPgbouncer(): boolean {
  if (findSystemProgram('pgbouncer') !== undefined) return true
  const missing = 'No PgBouncer: install the package pgbouncer'
  if (process.env.CI === 'true') throw new Error(missing)
  console.warn(`${missing}. Skipped: tests that need a real pool`)
  return false
}

/**
 * Starts PgBouncer in transaction mode, with one connection, in front of the server of `url`. The returned `url`
 * connects through it to the same database.
 */
export async function startPgbouncer(
  directory: string,
  url: string,
): Promise<{ url: string; stop: () => Promise<void> }> {
  const { hostname, port: serverPort, username, password } = new URL(url)
  const port = await freePort()
  const file = join(directory, `pgbouncer-${port}.ini`)
  const server = `host=${hostname} port=${serverPort} user=${username} password=${decodeURIComponent(password)}`
  writeFileSync(
    file,
    `[databases]
* = ${server}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 1
query_wait_timeout = 5
`,
    { mode: 0o644 },
  )
  const child = start(findSystemProgram('pgbouncer') as string, ['-q', file], {
    ...serverAccount(),
    cwd: '/',
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const pooled = new URL(url)
  Object.assign(pooled, { hostname: '127.0.0.1', port: String(port) })
  while (!(await accepts(pooled.href))) {
    if (hasEnded(child)) throw new Error('PgBouncer exited during its start')
    await sleep(20)
  }
  return { url: pooled.href, stop: async () => void (await end(child, 'SIGKILL')) }
}

async function accepts(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => undefined)
  return client.connect().then(
    () => client.end().then(() => true),
    () => false,
  )
}
