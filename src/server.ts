import { buildApp } from './app.ts'
import { readConfig } from './config.ts'
import { operatorGuideRoutes, prepareDocs } from './docs/routes.ts'
import { LIMITS } from './limits.ts'
import { createMetrics, metricsRoutes } from './operator/monitoring/metrics.ts'
import { operatorIndexRoute, operatorsOnly } from './operator/monitoring/operator-port.ts'
import { createOverview } from './operator/monitoring/overview.ts'
import { cached } from './platform/db/cached.ts'
import { isOutage } from './platform/db/outage.ts'
import { createPool, createPools, readBriefly } from './platform/db/pool.ts'
import { registerErrorHandling } from './platform/http/error-handler.ts'
import { createOperatorApp } from './platform/http/http-app.ts'
import { openLog } from './platform/log.ts'
import { createShutdown } from './platform/shutdown.ts'
import { createServices } from './services.ts'

const config = configOrExit()
const { log, flush } = openLog(config.logLevel)
// An uncaught error may have left work half done, so the process exits, and the platform starts another process.
process.on('uncaughtException', (error) => {
  log.fatal({ error: { name: error.name, message: error.message, stack: error.stack } }, 'Uncaught exception')
  process.exit(1)
})

const { databaseUrl: url, databaseReadUrl: readUrl, databasePoolSize: requests, preparedStatements } = config
const pools = createPools({ url, readUrl, requests, preparedStatements }, log)
const { statementTimeoutMs } = LIMITS.operatorDatabase
const operatorDb = createPool({
  url,
  size: LIMITS.pools.operator,
  log,
  preparedStatements,
  // The pool's time-out is longer than PostgreSQL's own time-out, because the pool's time-out would leave the statement
  // running in PostgreSQL.
  queryTimeoutMs: statementTimeoutMs + 1_000,
})
const now = () => new Date()
const countOpen = () =>
  readBriefly(operatorDb, statementTimeoutMs, (client) => createOverview(client).openCounts(now()))
const metrics = createMetrics(
  { ...pools, operator: operatorDb },
  // The count is cached, because Prometheus may scrape more often than every 15 s.
  cached(countOpen, { cachedMs: 15_000, cachedKeys: 1 }),
)

const shutdown = createShutdown(
  { drainSeconds: config.shutdownDrainSeconds, log, close, exit: (code) => process.exit(code) },
  LIMITS.shutdown,
)
const app = await buildApp(createServices({ config, pools, log, metrics, now, isDraining: shutdown.isDraining }))
const opsApp = createOperatorApp(LIMITS)
registerErrorHandling(opsApp, { log, isOutage, limits: LIMITS })
operatorsOnly(opsApp, config.opsReaders)
metricsRoutes(opsApp, metrics)
operatorIndexRoute(opsApp, config)
operatorGuideRoutes(opsApp, config)

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => shutdown.stop(signal))

// Before the service is ready, so that the first readers do not wait for the documentation.
for (const one of [app, opsApp]) await prepareDocs(one)

try {
  await app.listen({ host: config.host, port: config.port })
  await opsApp.listen({ host: config.opsHost, port: config.opsPort })
} catch (error) {
  log.fatal({ error: (error as Error).message }, 'Cannot listen')
  process.exit(1)
}
log.info({ address: app.listeningOrigin, ops: opsApp.listeningOrigin, publicUrl: config.publicUrl }, 'Listening')
flush()

async function close() {
  await Promise.all([app.close(), opsApp.close()])
  await Promise.all([...Object.values(pools), operatorDb].map((pool) => pool.end()))
}

function configOrExit() {
  try {
    return readConfig(process.env)
  } catch (error) {
    process.stderr.write(`The service cannot start: ${(error as Error).message}\n`)
    process.exit(1)
  }
}
