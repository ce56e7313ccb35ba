// `npm run dev`: `npm start`, again after each change. The database stays up, since this process uses it too.
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { needsCheckoutDatabase, readEnvFile, useCheckoutDatabase } from './checkout-database.ts'

readEnvFile()
if (needsCheckoutDatabase()) {
  await useCheckoutDatabase()
  // Without DATABASE_URL the service finds the database by itself and adds the demo.
  delete process.env.DATABASE_URL
}
const tsx = createRequire(import.meta.url).resolve('tsx/cli')
process.argv = [process.argv[0] ?? 'node', tsx, 'watch', '--clear-screen=false', 'src/dev/start.ts']
await import(pathToFileURL(tsx).href)
