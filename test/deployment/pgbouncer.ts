import { once } from 'node:events'
import { chownSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { serverAccount } from '../../src/dev/postgres-binaries.ts'
import { freePort, start } from '../bench/processes.ts'
import { findSystemProgram, PASSWORD, ROLE } from './deployment.ts'
import { replaceAll } from './haproxy.ts'
import { until } from './wait.ts'

const CONFIG = readFileSync(join(import.meta.dirname, 'pgbouncer.ini'), 'utf8')

/** Connections to PostgreSQL, of which `default_pool_size` speaks. */
export const SERVER_CONNECTIONS = Number(/^default_pool_size = (\d+)$/m.exec(CONFIG)?.[1])

export type Pooler = {
  /** ROLE's connection through it. */
  url: string
  start: () => Promise<void>
  /** Every connection is lost, as when its machine is. */
  stop: () => Promise<void>
}

/** PgBouncer with the configuration that the operator's guide shows, its addresses apart, before the database at `databaseUrl`. */
export async function startPgbouncer(directory: string, databaseUrl: string): Promise<Pooler> {
  const port = await freePort()
  const { hostname, port: databasePort, pathname } = new URL(databaseUrl)
  // PgBouncer refuses to be root, and must be able to read both files.
  const account = serverAccount()
  const folder = join(directory, 'pgbouncer')
  mkdirSync(folder)
  const write = (name: string, text: string) => {
    const path = join(folder, name)
    writeFileSync(path, text, { mode: 0o600 })
    if (account) chownSync(path, account.uid, account.gid)
    return path
  }
  const users = write('userlist.txt', `"${ROLE}" "${PASSWORD}"\n`)
  const file = write(
    'pgbouncer.ini',
    replaceAll(CONFIG, {
      'payments = host=10.0.0.21 port=5432': `${pathname.slice(1)} = host=${hostname} port=${databasePort}`,
      'listen_port = 6432': `listen_port = ${port}`,
      '/etc/pgbouncer/userlist.txt': users,
    }),
  )
  const url = `postgres://${ROLE}:${PASSWORD}@127.0.0.1:${port}${pathname}`
  let child: ReturnType<typeof start> | undefined
  const pooler: Pooler = {
    url,
    async start() {
      child = start(findSystemProgram('pgbouncer') as string, ['-q', file], { ...account, cwd: '/', stdio: 'ignore' })
      await until('PgBouncer took connections', () => connects(url))
    },
    async stop() {
      if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
      const ended = once(child, 'exit')
      child.kill('SIGTERM')
      await ended
    },
  }
  await pooler.start()
  return pooler
}

/** Whether `url` takes connections; one with a start-up parameter, where `parameters` names one. */
export async function connects(url: string, parameters: { statement_timeout?: number } = {}): Promise<boolean> {
  const client = new pg.Client({ connectionString: url, ...parameters })
  client.on('error', () => undefined)
  try {
    await client.connect()
    await client.query('select 1')
    return true
  } catch {
    return false
  } finally {
    await client.end().catch(() => undefined)
  }
}
