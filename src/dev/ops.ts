// Runs `npm run ops -- …`, an operator command, on the checkout's database if no variable names another one.
import { existsSync } from 'node:fs'
import { needsCheckoutDatabase, readEnvFile, useCheckoutDatabase } from './checkout-database.ts'
import { useWebhookSettings } from './demo-webhook.ts'

readEnvFile()
if (needsCheckoutDatabase()) {
  // A folder dist/ means an installation, whose database must be named: otherwise the command would run on a new,
  // empty one.
  if (existsSync(new URL('../../dist', import.meta.url))) {
    console.error('ops: dist/ contains a build. Name its database in DATABASE_URL, or remove dist/.')
  } else useWebhookSettings((await useCheckoutDatabase()).directory)
}
await import('../operator/cli/ops.ts')
