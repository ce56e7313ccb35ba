// Runs `npm start`, which starts the service. If no database is named, it also starts a database, creates a demo merchant
// and starts the operator console.
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { PassThrough } from 'node:stream'
import { needsCheckoutDatabase, readEnvFile, useCheckoutDatabase } from './checkout-database.ts'
import { ensureDemo } from './demo.ts'
import { demoCommands } from './demo-commands.ts'
import { ensureDemoWebhook, useWebhookSettings } from './demo-webhook.ts'

/** The search for free ports starts near the defaults 3000 to 3002, so that the suggestion is easy to remember. */
const FIRST_FREE_PORT = 3010
const PORTS_STEP = 10

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

/**
 * Exits with one message if another program listens on a port that the service or the demo's console needs. Call it
 * before the database starts, so that no database server is left running.
 */
async function exitIfPortsAreBusy(): Promise<void> {
  const { HOST, PORT, OPS_HOST, OPS_PORT, CONSOLE_HOST, CONSOLE_PORT, npm_lifecycle_event: script } = process.env
  const listeners = [
    { name: 'PORT', host: HOST || '127.0.0.1', port: Number(PORT || 3000) },
    { name: 'OPS_PORT', host: OPS_HOST || '127.0.0.1', port: Number(OPS_PORT || 3001) },
    { name: 'CONSOLE_PORT', host: CONSOLE_HOST || '127.0.0.1', port: Number(CONSOLE_PORT || 3002) },
  ].slice(0, needsCheckoutDatabase() ? 3 : 2)
  const busy = await busyPorts(listeners)
  if (busy.length === 0) return
  let free = listeners
  for (let first = FIRST_FREE_PORT; (await busyPorts(free)).length > 0; first += PORTS_STEP)
    free = listeners.map((listener, index) => ({ ...listener, port: first + index }))
  const list = new Intl.ListFormat('en-GB').format(busy.map(String))
  const taken = busy.length === 1 ? `Port ${list} is` : `Ports ${list} are`
  const settings = free.map(({ name, port }) => `${name}=${port}`).join(' ')
  console.error(`${taken} in use by another program. Run ${settings} ${script === 'dev' ? 'npm run dev' : 'npm start'}`)
  process.exit(1)
}

/**
 * Returns the ports on which another program listens. The service itself reports every other error about a port or
 * host.
 */
async function busyPorts(listeners: { host: string; port: number }[]): Promise<number[]> {
  const busy: number[] = []
  for (const { host, port } of listeners) {
    const server = createServer().listen({ host, port })
    try {
      await once(server, 'listening')
      await once(server.close(), 'close')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') busy.push(port)
    }
  }
  return busy
}
