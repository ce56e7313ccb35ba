// `npm run ops -- …`: the commands of the operator, on the database of the checkout if no other is named.
import { existsSync } from 'node:fs'
import { needsCheckoutDatabase, readEnvFile, useCheckoutDatabase } from './checkout-database.ts'
import { useWebhookSettings } from './demo-webhook.ts'

readEnvFile()
if (needsCheckoutDatabase()) {
  // A build means a server, whose database this checkout does not know: on a new, empty one the command would succeed.
  if (existsSync(new URL('../../dist', import.meta.url))) {
    console.error('ops: there is a build in dist/: name its database in DATABASE_URL, or remove dist/')
  } else useWebhookSettings((await useCheckoutDatabase()).directory)
}
await import('../cli/ops.ts')
