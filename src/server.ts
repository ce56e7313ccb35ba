import { setTimeout as sleep } from 'node:timers/promises'
import fastify from 'fastify'
import { buildApp } from './app.ts'
import { readConfig } from './config.ts'
import { createPool } from './db/pool.ts'
import { operatorGuideRoutes } from './docs/routes.ts'
import { createMetrics, metricsRoutes } from './http/metrics.ts'
import { openLog } from './log.ts'

/** Connections for lists that are being streamed, to the primary and to the replica each. */
const LIST_POOL_SIZE = 4
/** Lists that wait for one of those; each holds its connection for seconds, so that more would wait for nothing. */
const LIST_WAITING_LIMIT = 100
/** Longest time for a scrape of the metrics to arrive, and for its reader to take nothing of it. */
const OPS_REQUEST_TIMEOUT_MS = 10_000
/** Scrapers and operators; their connections come out of the open files that are kept free of customers' ones. */
const OPS_CONNECTION_LIMIT = 64
/**
 * Longest wait for what is under way when the service ends: a long list is read as slowly as its client likes. Together
 * with the drain it must stay below the 30 s after which container platforms kill.
 */
const CLOSE_LIMIT_MS = 20_000
/** npm passes Ctrl-C on to a process that got it from the terminal already: the second one within this time is no wish to hurry. */
const REPEATED_SIGNAL_MS = 1_000

const config = configOrExit()
const { log, flush } = openLog(config.logLevel)
// Whatever gets here is a fault of ours and may have left anything half done: better a new process than this one.
process.on('uncaughtException', (error) => {
  log.fatal({ error: { name: error.name, message: error.message, stack: error.stack } }, 'unexpected fault')
  process.exit(1)
})

const listPool = (url: string) =>
  createPool({ url, size: LIST_POOL_SIZE, log, queryTimeoutMs: 0, waitingLimit: LIST_WAITING_LIMIT })
const db = createPool({ url: config.databaseUrl, size: config.databasePoolSize, log })
const listDb = listPool(config.databaseUrl)
const replicaDb = config.databaseReadUrl === undefined ? undefined : listPool(config.databaseReadUrl)
const pools = { requests: db, lists: listDb, ...(replicaDb && { replica: replicaDb }) }
const metrics = createMetrics(pools)

let stoppingSince: number | undefined
const app = await buildApp({
  config,
  db,
  listDb,
  replicaDb,
  log,
  metrics,
  now: () => new Date(),
  isDraining: () => stoppingSince !== undefined,
})
const opsApp = fastify({ requestTimeout: OPS_REQUEST_TIMEOUT_MS, connectionTimeout: OPS_REQUEST_TIMEOUT_MS })
opsApp.server.maxConnections = OPS_CONNECTION_LIMIT
metricsRoutes(opsApp, metrics)
operatorGuideRoutes(opsApp, config)

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stop(signal))

try {
  await app.listen({ host: config.host, port: config.port })
  await opsApp.listen({ host: config.opsHost, port: config.opsPort })
} catch (error) {
  log.fatal({ error: (error as Error).message }, 'cannot listen')
  process.exit(1)
}
log.info({ address: app.listeningOrigin, ops: opsApp.listeningOrigin, publicUrl: config.publicUrl }, 'listening')
for (const warning of config.warnings) log.warn(warning)
flush()

/**
 * Tells the balancer by readiness, and every client by `Connection: close`, to go elsewhere, and serves on meanwhile;
 * then takes no more, finishes what is under way and closes the database. What takes too long is cut off: it ends with 1
 * then, with 0 otherwise. A second signal stops at once.
 */
async function stop(signal: string) {
  if (stoppingSince !== undefined) {
    if (performance.now() - stoppingSince > REPEATED_SIGNAL_MS) process.exit(1)
    return
  }
  stoppingSince = performance.now()
  log.info({ signal, drainSeconds: config.shutdownDrainSeconds }, 'stopping')
  await sleep(config.shutdownDrainSeconds * 1000)
  const inTime = await Promise.race([close().then(() => true), sleep(CLOSE_LIMIT_MS, false)])
  if (inTime) log.info('stopped')
  else log.warn({ limitSeconds: CLOSE_LIMIT_MS / 1000 }, 'stopped what was still under way')
  process.exit(inTime ? 0 : 1)
}

async function close() {
  await Promise.all([app.close(), opsApp.close()])
  await Promise.all(Object.values(pools).map((pool) => pool.end()))
}

function configOrExit() {
  try {
    return readConfig(process.env)
  } catch (error) {
    process.stderr.write(`The service cannot start: ${(error as Error).message}\n`)
    process.exit(1)
  }
}
