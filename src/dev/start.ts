// `npm start`: the service, and on a fresh clone its database and a demo merchant.
import { randomBytes } from 'node:crypto'
import { exitIfPortsAreBusy } from './busy-ports.ts'
import { needsCheckoutDatabase, readEnvFile, useCheckoutDatabase } from './checkout-database.ts'
import { ensureDemo } from './demo.ts'
import { demoCommands } from './demo-commands.ts'
import { ensureDemoWebhook, useWebhookSettings } from './demo-webhook.ts'

readEnvFile()
await exitIfPortsAreBusy()
if (process.stdout.isTTY) await import('./pretty-log.ts')

if (needsCheckoutDatabase()) {
  const { directory, databaseUrl } = await useCheckoutDatabase()
  const demo = await ensureDemo({ databaseUrl, directory, now: new Date() })
  useWebhookSettings(directory)
  const webhook = await ensureDemoWebhook(databaseUrl, new Date())
  // No bank stands behind the demo: its pay pages have a button that pays without money.
  process.env.SANDBOX = 'on'
  // The acquirer's guide is served only with a secret, which its samples need.
  if (!process.env.ACQUIRER_SECRETS_FILE) process.env.ACQUIRER_SECRETS ||= randomBytes(24).toString('hex')
  // Ctrl-C ends the demo at once, since no balancer has to notice.
  process.env.SHUTDOWN_DRAIN_SECONDS ||= '0'
  await import('../server.ts')
  console.log(demoCommands({ ...demo, webhook }, new Date()))
} else {
  await import('../server.ts')
}
