// What `npm start` runs: the service, and what it lacks on a fresh clone: a database and somebody to try it as.
import { randomBytes } from 'node:crypto'
import { exitIfPortsAreBusy } from './busy-ports.ts'
import { bringDatabase, bringsDatabase } from './checkout-database.ts'
import { ensureDemo } from './demo.ts'
import { demoCommands } from './demo-commands.ts'
import { readEnvFile } from './env-file.ts'

readEnvFile()
await exitIfPortsAreBusy()
if (process.stdout.isTTY) await import('./pretty-log.ts')

if (bringsDatabase()) {
  const { directory, databaseUrl } = await bringDatabase()
  const demo = await ensureDemo({ databaseUrl, directory, now: new Date() })
  // Its pay pages carry a control that pays without money: there is nobody's bank behind the demo.
  process.env.SANDBOX = 'on'
  // With one the acquirer's guide is served, and its samples work.
  if (!process.env.ACQUIRER_SECRETS_FILE) process.env.ACQUIRER_SECRETS ||= randomBytes(24).toString('hex')
  // Nobody balances over a demo: Ctrl-C means now.
  process.env.SHUTDOWN_DRAIN_SECONDS ||= '0'
  await import('../server.ts')
  console.log(demoCommands(demo, new Date()))
} else {
  await import('../server.ts')
}
