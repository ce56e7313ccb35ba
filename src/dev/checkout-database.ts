import { createHash } from 'node:crypto'
import { existsSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { migrate } from '../db/migrate.ts'
import { startEmbeddedPostgres } from './embedded-postgres.ts'

const SIGNAL_EXIT_CODES = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const

/** Whether this process needs the checkout's own database: no other one is named, and it is not in production. */
export function needsCheckoutDatabase(): boolean {
  const { DATABASE_URL, DATABASE_URL_FILE, NODE_ENV } = process.env
  return !DATABASE_URL && !DATABASE_URL_FILE && NODE_ENV !== 'production'
}

/** Whether the service was built in this checkout, as on a server that runs it from here. */
export function hasBuild(): boolean {
  return existsSync(new URL('../../dist', import.meta.url))
}

/**
 * Sets DATABASE_URL to this checkout's own PostgreSQL server, started if need be and migrated. When this process ends,
 * the server is stopped unless another process uses it. Returns the directory of its data.
 */
export async function useCheckoutDatabase(): Promise<{ directory: string; databaseUrl: string }> {
  exitOnSignals()
  const directory = checkoutDirectory()
  const { url, stop } = await startEmbeddedPostgres({ directory, durable: true }).catch(giveUp)
  process.on('exit', stop)
  await migrate(url, { onWait: console.error }).catch(giveUp)
  process.env.DATABASE_URL = url
  return { directory, databaseUrl: url }
}

function giveUp(error: Error): never {
  console.error(`The database of this checkout cannot be used: ${error.message}`)
  process.exit(1)
}

/** For root, outside the checkout: that may lie under a home that the server's user cannot enter. */
function checkoutDirectory(): string {
  const checkout = realpathSync(fileURLToPath(new URL('../..', import.meta.url)))
  if (process.getuid?.() !== 0) return join(checkout, '.data')
  return join('/var/lib/upi-payments', createHash('sha256').update(checkout).digest('hex').slice(0, 12))
}

/**
 * A signal that nobody handles ends the process without its exit handlers, and the server would be left behind. As soon
 * as the program has handlers of its own, these give way.
 */
function exitOnSignals(): void {
  for (const [signal, exitCode] of Object.entries(SIGNAL_EXIT_CODES)) {
    process.on(signal, () => {
      if (process.listenerCount(signal) === 1) process.exit(exitCode)
    })
  }
}
