// What `npm run dev` runs: `npm start`, again after every change. This process uses the database too, so that the server
// stays up while the service restarts.
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { needsCheckoutDatabase, readEnvFile, useCheckoutDatabase } from './checkout-database.ts'

readEnvFile()
if (needsCheckoutDatabase()) {
  await useCheckoutDatabase()
  // Unset, so that the service finds the database by itself and adds the demo data.
  delete process.env.DATABASE_URL
}
const tsx = createRequire(import.meta.url).resolve('tsx/cli')
process.argv = [process.argv[0] ?? 'node', tsx, 'watch', '--clear-screen=false', 'src/dev/start.ts']
await import(pathToFileURL(tsx).href)
