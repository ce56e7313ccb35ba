// Runs `npm start`, which starts the service. If no database is named, it also starts a database, creates a demo merchant
// and starts the operator console.
import { randomBytes } from 'node:crypto'
import { PassThrough } from 'node:stream'
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
  // The demo has no bank, so its pay pages show a button that simulates a payment.
  process.env.SANDBOX = 'on'
  // Sets a secret, because the service serves the acquirer guide only if a secret is set.
  if (!process.env.ACQUIRER_SECRETS_FILE) process.env.ACQUIRER_SECRETS ||= randomBytes(24).toString('hex')
  // Ctrl-C stops the demo immediately, because the demo has no load balancer to wait for.
  process.env.SHUTDOWN_DRAIN_SECONDS ||= '0'
  await import('../server.ts')
  // Starts the console after the service, so that the service is ready without waiting for it.
  const { main } = await import('../operator/terminal/main.ts')
  const { stdin, stderr, env } = process
  // Discards the console's address, because the text below contains it.
  void main(['console'], { stdin, stdout: new PassThrough().resume(), stderr, env })
  console.log(demoCommands({ ...demo, webhook }, new Date()))
} else {
  await import('../server.ts')
}
