// Runs `npm run ops -- …`, an operator command, on the checkout's database unless an environment variable names another
// database.
import { existsSync } from 'node:fs'
import { needsCheckoutDatabase, readEnvFile, useCheckoutDatabase } from './checkout-database.ts'
import { useWebhookSettings } from './demo-webhook.ts'

readEnvFile()
if (needsCheckoutDatabase()) {
  // A folder dist/ means an installation, whose database must be named. Otherwise the command would run on a new, empty
  // database.
  if (existsSync(new URL('../../dist', import.meta.url))) {
    console.error('ops: dist/ contains a build. Name its database in DATABASE_URL, or remove dist/.')
  } else useWebhookSettings((await useCheckoutDatabase()).directory)
}
await import('../operator/terminal/ops.ts')
