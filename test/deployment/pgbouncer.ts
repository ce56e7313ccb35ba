import { chownSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { serverAccount } from '../../src/dev/postgres-binaries.ts'
import { replaceAll } from '../support/haproxy.ts'
import { connects } from '../support/postgres-server.ts'
import { end, findSystemProgram, freePort, start } from '../support/processes.ts'
import { until } from '../support/wait.ts'
import { PASSWORD, ROLE } from './deployment.ts'

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

/** PgBouncer with the configuration that the operator's guide shows, but for its addresses, before the database at `databaseUrl`. */
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
    stop: async () => void (child && (await end(child))),
  }
  await pooler.start()
  return pooler
}
