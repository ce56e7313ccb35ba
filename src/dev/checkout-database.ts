import { createHash } from 'node:crypto'
import { existsSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { migrate } from '../db/migrate.ts'
import { startEmbeddedPostgres } from './embedded-postgres.ts'

/** Reads `.env` into the environment, as compose does: a variable that is set already wins. */
export function readEnvFile(): void {
  if (existsSync('.env')) process.loadEnvFile()
}

/** Whether this process needs the checkout's own database: no other one is named, and it is not in production. */
export function needsCheckoutDatabase(): boolean {
  const { DATABASE_URL, DATABASE_URL_FILE, NODE_ENV } = process.env
  return !DATABASE_URL && !DATABASE_URL_FILE && NODE_ENV !== 'production'
}

/**
 * Sets DATABASE_URL to this checkout's own PostgreSQL server, migrated. Where no other process runs it, this one starts it
 * and stops it when it ends. Returns the directory of its data.
 */
export async function useCheckoutDatabase(): Promise<{ directory: string; databaseUrl: string }> {
  try {
    const directory = checkoutDirectory()
    const { url, stop } = await startEmbeddedPostgres({ directory, durable: true })
    process.on('exit', stop)
    await migrate(url, { onWait: console.error })
    process.env.DATABASE_URL = url
    return { directory, databaseUrl: url }
  } catch (error) {
    console.error(`The database of this checkout cannot be used: ${(error as Error).message}`)
    process.exit(1)
  }
}

/**
 * Directory of the checkout's database: inside the checkout, but for root outside, because the checkout may lie under a
 * home that the server's user cannot enter.
 */
function checkoutDirectory(): string {
  const checkout = realpathSync(fileURLToPath(new URL('../..', import.meta.url)))
  if (process.getuid?.() !== 0) return join(checkout, '.data')
  return join('/var/lib/upi-payments', createHash('sha256').update(checkout).digest('hex').slice(0, 12))
}
