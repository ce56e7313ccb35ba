// What `npm start` runs: the service, and what it lacks on a fresh clone: a database and somebody to try it as.
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
  // Its pay pages carry a control that pays without money, because no bank stands behind the demo.
  process.env.SANDBOX = 'on'
  // With a secret the acquirer's guide is served, and its samples work.
  if (!process.env.ACQUIRER_SECRETS_FILE) process.env.ACQUIRER_SECRETS ||= randomBytes(24).toString('hex')
  // No balancer has to notice that the demo stops, so Ctrl-C ends it at once.
  process.env.SHUTDOWN_DRAIN_SECONDS ||= '0'
  await import('../server.ts')
  console.log(demoCommands({ ...demo, webhook }, new Date()))
} else {
  await import('../server.ts')
}
