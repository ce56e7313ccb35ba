// Runs `npm run dev`, which restarts `npm start` after each change to a file. This process keeps the database running
// between restarts.
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { needsCheckoutDatabase, readEnvFile, useCheckoutDatabase } from './checkout-database.ts'

readEnvFile()
if (needsCheckoutDatabase()) {
  await useCheckoutDatabase()
  // Removes DATABASE_URL, because start.ts creates the demo only if no database is named.
  delete process.env.DATABASE_URL
}
const tsx = createRequire(import.meta.url).resolve('tsx/cli')
process.argv = [process.argv[0] ?? 'node', tsx, 'watch', '--clear-screen=false', 'src/dev/start.ts']
await import(pathToFileURL(tsx).href)
