// What `npm run ops -- …` runs: the operator's command line, on the checkout's own database if no other is named.
import { existsSync } from 'node:fs'
import { needsCheckoutDatabase, readEnvFile, useCheckoutDatabase } from './checkout-database.ts'
import { useWebhookSettings } from './demo-webhook.ts'

readEnvFile()
if (needsCheckoutDatabase()) {
  // A build means a server. There the command would succeed on a new, empty database of which the service knows
  // nothing, so it is refused.
  if (existsSync(new URL('../../dist', import.meta.url))) {
    console.error('ops: there is a build in dist/: name its database in DATABASE_URL, or remove dist/')
  } else useWebhookSettings((await useCheckoutDatabase()).directory)
}
await import('../cli/ops.ts')
