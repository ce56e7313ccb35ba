import { createHash } from 'node:crypto'
import { existsSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { migrate } from '../db/migrate.ts'
import { startEmbeddedPostgres } from './embedded-postgres.ts'

/** Reads `.env` as compose does: a variable that is set already wins. */
export function readEnvFile(): void {
  if (existsSync('.env')) process.loadEnvFile()
}

/** The database of the checkout is used where no other is named, outside production. */
export function needsCheckoutDatabase(): boolean {
  const { DATABASE_URL, DATABASE_URL_FILE, NODE_ENV } = process.env
  return !DATABASE_URL && !DATABASE_URL_FILE && NODE_ENV !== 'production'
}

/**
 * Sets DATABASE_URL to the checkout's own PostgreSQL server, migrated. A server that this process starts ends with it.
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
 * The database lies inside the checkout; root's lies outside, since the server's user may be unable to enter the home
 * that holds the checkout.
 */
function checkoutDirectory(): string {
  const checkout = realpathSync(fileURLToPath(new URL('../..', import.meta.url)))
  if (process.getuid?.() !== 0) return join(checkout, '.data')
  return join('/var/lib/upi-payments', createHash('sha256').update(checkout).digest('hex').slice(0, 12))
}
