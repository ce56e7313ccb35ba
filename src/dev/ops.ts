// Runs `npm run ops -- …`, a command of the operator, on the checkout's database if no variable names another one.
import { existsSync } from 'node:fs'
import { needsCheckoutDatabase, readEnvFile, useCheckoutDatabase } from './checkout-database.ts'
import { useWebhookSettings } from './demo-webhook.ts'

readEnvFile()
if (needsCheckoutDatabase()) {
  // A folder dist/ means an installation, whose database must be named: the command would run on a new, empty one.
  if (existsSync(new URL('../../dist', import.meta.url))) {
    console.error('ops: there is a build in dist/: name its database in DATABASE_URL, or remove dist/')
  } else useWebhookSettings((await useCheckoutDatabase()).directory)
}
await import('../operator/cli/ops.ts')
