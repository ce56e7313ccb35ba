import { pino } from 'pino'
import { buildApp } from './app.ts'
import { readConfig } from './config.ts'
import { createPool } from './db/pool.ts'

/** Connections for lists that are being streamed. */
const LIST_POOL_SIZE = 4
/** npm passes Ctrl-C on to a process that got it from the terminal already: the second one within this time is no wish to hurry. */
const REPEATED_SIGNAL_MS = 1_000

/** Lines are written together: one system call a line was measured at 4 % of a request. */
const LOG_BUFFER_BYTES = 8_192
/** The longest that a line waits to be written, and what is lost of the log when the process is killed. */
const LOG_FLUSH_INTERVAL_MS = 500

const config = configOrExit()
const logFile = pino.destination({ minLength: LOG_BUFFER_BYTES, sync: true })
const log = pino({ level: config.logLevel, base: null }, logFile)
setInterval(() => logFile.flushSync(), LOG_FLUSH_INTERVAL_MS).unref()
process.on('exit', () => logFile.flushSync())
const db = createPool({ url: config.databaseUrl, size: config.databasePoolSize, log })
const listDb = createPool({ url: config.databaseUrl, size: LIST_POOL_SIZE, log, queryTimeoutMs: 0 })
const app = await buildApp({ config, db, listDb, log, now: () => new Date() })

let stoppingSince: number | undefined
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stop(signal))

// Whatever gets here is a fault of ours and may have left anything half done: better a new process than this one.
process.on('uncaughtException', (error) => {
  log.fatal({ error: { name: error.name, message: error.message, stack: error.stack } }, 'unexpected fault')
  process.exit(1)
})

await app.listen({ host: config.host, port: config.port }).catch(async (error: Error) => {
  log.fatal({ error: error.message }, 'cannot listen')
  process.exit(1)
})
log.info({ address: app.listeningOrigin, publicUrl: config.publicUrl }, 'listening')
logFile.flushSync()

/** Stops taking requests, finishes those under way, closes the database. A second signal stops at once. */
async function stop(signal: string) {
  if (stoppingSince !== undefined) {
    if (performance.now() - stoppingSince > REPEATED_SIGNAL_MS) process.exit(1)
    return
  }
  stoppingSince = performance.now()
  log.info({ signal }, 'stopping')
  await app.close()
  await Promise.all([db.end(), listDb.end()])
  log.info('stopped')
  process.exit(0)
}

function configOrExit() {
  try {
    return readConfig(process.env)
  } catch (error) {
    process.stderr.write(`The service cannot start: ${(error as Error).message}\n`)
    process.exit(1)
  }
}
