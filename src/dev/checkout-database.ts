import { createHash } from 'node:crypto'
import { existsSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { applyGrants } from '../platform/db/grants.ts'
import { connectAlone, migrate } from '../platform/db/migrate.ts'
import { runFile } from '../platform/db/statements.ts'
import { startEmbeddedPostgres } from './embedded-postgres.ts'

/** Reads `.env` in the same way as Docker Compose: an environment variable takes precedence over the file. */
export function readEnvFile(): void {
  if (existsSync('.env')) process.loadEnvFile()
}

/**
 * Returns whether to use the checkout's own database: outside production, if no environment variable names another
 * database.
 */
export function needsCheckoutDatabase(): boolean {
  const { DATABASE_URL, DATABASE_URL_FILE, NODE_ENV } = process.env
  return !DATABASE_URL && !DATABASE_URL_FILE && NODE_ENV !== 'production'
}

/**
 * Starts the checkout's PostgreSQL server unless the server is already running, migrates the database and sets
 * DATABASE_URL and CONSOLE_DATABASE_URL. Stops the server at exit.
 */
export async function useCheckoutDatabase(): Promise<{ directory: string; databaseUrl: string }> {
  try {
    const directory = checkoutDirectory()
    const { url, stop } = await startEmbeddedPostgres({ directory, durable: true })
    process.on('exit', stop)
    await migrate(url, { onWait: console.error })
    process.env.DATABASE_URL = url
    process.env.CONSOLE_DATABASE_URL = await createConsoleRole(url)
    return { directory, databaseUrl: url }
  } catch (error) {
    console.error(`The database of this checkout cannot be used: ${(error as Error).message}`)
    process.exit(1)
  }
}

const ROLES = new URL('../operator/deploy/roles.sql', import.meta.url)

/**
 * Creates the roles of an installation. Returns the console's URL, with the password of the server's superuser, which
 * every process of the checkout knows.
 */
async function createConsoleRole(databaseUrl: string): Promise<string> {
  const url = new URL(databaseUrl)
  const client = await connectAlone(databaseUrl)
  try {
    await runFile(client, ROLES)
    await client.query(`alter role upi_console password '${url.password}'`)
  } finally {
    await client.end()
  }
  await applyGrants(databaseUrl)
  url.username = 'upi_console'
  return url.href
}

/**
 * Returns the folder of the checkout's database: `.database` in the checkout. Root uses a different folder, because
 * PostgreSQL's unprivileged user may lack access to the home directory that contains the checkout.
 */
function checkoutDirectory(): string {
  const directory = join(realpathSync(fileURLToPath(new URL('../..', import.meta.url))), '.database')
  if (process.getuid?.() !== 0) return directory
  return join('/var/lib/upi-payments', createHash('sha256').update(directory).digest('hex').slice(0, 12))
}
