import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { balanceUntilYesterday } from '../../books/reconciliation/recent-balance.ts'
import type { Config } from '../../config.ts'
import type { Limits } from '../../limits.ts'
import { cached } from '../../platform/db/cached.ts'
import { isForbiddenToRole } from '../../platform/db/grants.ts'
import { hasState, isOutage, UNDEFINED_COLUMN, UNDEFINED_TABLE } from '../../platform/db/outage.ts'
import { type Database, type Queryable, readBriefly } from '../../platform/db/pool.ts'
import { istDayOf } from '../../platform/time.ts'
import { add, createOrderCounts, NO_ORDERS } from '../monitoring/order-counts.ts'
import { createOverview } from '../monitoring/overview.ts'
import { createCallerCheck } from './caller.ts'
import { createDayCounts } from './day-counts.ts'
import { messagePage, pageOfToday } from './page.ts'

/** Response headers of the dashboard. They allow styles from this service and `data:` images, but no scripts. */
const HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy':
    "default-src 'none'; style-src 'self'; img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
  'x-frame-options': 'DENY',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-store',
} as const

const HOUR_MS = 60 * 60_000

/** Rejects every request that does not come from the operator, including requests to unknown paths. */
export function operatorsOnly(app: FastifyInstance, readers: Config['opsReaders']) {
  const isOperator = createCallerCheck(readers)
  app.addHook('onRequest', async ({ headers, socket }, reply) => {
    if (isOperator(headers, socket.remoteAddress)) return
    reply.headers(HEADERS)
    if (readers.password === undefined) return reply.code(403).send(messagePage('Access denied', NOT_FROM_HERE))
    reply.code(401).header('www-authenticate', 'Basic realm="operator", charset="UTF-8"')
    return reply.send(messagePage('Password required', 'Sign in with OPS_PASSWORD and any user name.'))
  })
}

const NOT_FROM_HERE =
  'This port shows data of every merchant. Without OPS_PASSWORD it accepts requests only from its own machine, as localhost, ' +
  '127.0.0.1 or [::1], and under the hosts in OPS_ALLOWED_HOSTS, never through a proxy. From another machine, open an SSH ' +
  'tunnel such as ssh -L 3001:127.0.0.1:3001, or set OPS_PASSWORD or OPS_ALLOWED_HOSTS. Behind a proxy, set OPS_PASSWORD.'

type OperatorPageOptions = {
  db: Database
  log: Pick<Logger, 'warn'>
  now: () => Date
  publicUrl: string
  /** Returns warnings about settings, each in one sentence. */
  readWarnings: (db: Queryable) => Promise<string[]>
  limits: Pick<Limits, 'operatorPage' | 'operatorDatabase' | 'lookUps'>
}

/**
 * Serves the operator dashboard at `/`: today's orders, the last days and open tasks. The dashboard changes nothing.
 */
export function operatorPageRoutes(app: FastifyInstance, options: OperatorPageOptions) {
  const { db, log, now, publicUrl, readWarnings, limits } = options
  const { days: dayCount, refreshSeconds } = limits.operatorPage
  const read = <T>(look: (client: Queryable) => Promise<T>) =>
    readBriefly(db, limits.operatorDatabase.statementTimeoutMs, look)
  const readDays = createDayCounts({
    countByHour: (...counted) => read((client) => createOrderCounts(client).countByHour(...counted)),
    log,
    now,
    limits: limits.operatorPage,
  })

  const readBalance = cached(
    () =>
      balanceUntilYesterday(db, now(), limits.operatorDatabase.statementTimeoutMs).catch((error: Error) => {
        log.warn({ error: error.message }, 'Could not compute the balance for the operator dashboard')
        return undefined
      }),
    limits.operatorPage.balance,
  )

  const readPage = cached(async (refresh) => {
    const moment = now()
    const today = istDayOf(moment)
    const days = Array.from({ length: dayCount }, (_, ago) => new Date(today.getTime() - ago * 24 * HOUR_MS))
    const [{ counts, failed }, overview, warnings] = await Promise.all([
      readDays(days),
      read((client) => createOverview(client).read(moment)),
      read(readWarnings),
    ])
    const hoursBegun = Math.floor((moment.getTime() - today.getTime()) / HOUR_MS) + 1
    const isCounting = counts.includes(undefined) && !failed
    // Reads the balance only after the days are counted, so that one connection stays free for payments and metrics.
    const balance = isCounting
      ? undefined
      : await Promise.race([readBalance(), sleep(limits.operatorPage.waitMs, undefined)])
    return pageOfToday({
      now: moment,
      hours: Array.from({ length: hoursBegun }, (_, hour) => ({
        begins: new Date(today.getTime() + hour * HOUR_MS),
        counts: counts[0]?.[hour],
      })),
      days: days.map((begins, ago) => ({ begins, counts: counts[ago]?.reduce(add, NO_ORDERS) })).reverse(),
      failed,
      overview,
      balance,
      warnings,
      publicUrl,
      // The page refreshes ten times as often while counts are missing.
      refreshSeconds: refresh === 'off' ? undefined : isCounting ? Math.ceil(refreshSeconds / 10) : refreshSeconds,
    })
  }, limits.lookUps)

  app.get('/', async ({ query }, reply) => {
    reply.headers(HEADERS)
    const unavailable = ([title, text]: readonly [string, string]) =>
      reply
        .code(503)
        .header('refresh', String(refreshSeconds))
        .send(messagePage(title, `${text} This page retries every ${refreshSeconds} seconds. See the log for details.`))
    try {
      const { page, refresh } = await readPage((query as { refresh?: unknown }).refresh === 'off' ? 'off' : 'on')
      return (refresh === undefined ? reply : reply.header('refresh', refresh)).send(page)
    } catch (error) {
      log.warn({ error: (error as Error).message }, 'Could not render the operator dashboard')
      return unavailable(causeOf(error))
    }
  })
}

/** Returns the title and text of the page for an error. */
function causeOf(error: unknown): [string, string] {
  if (hasState(error, UNDEFINED_TABLE, UNDEFINED_COLUMN)) {
    return ['The database is not migrated', 'A table or column that this version reads is missing. Run "ops migrate".']
  }
  if (isForbiddenToRole(error)) {
    return ['The service has no access to the tables', 'Run "ops migrate" as the owner of the tables.']
  }
  if (isOutage(error)) return ['The database is unavailable', 'This page reads its figures from the database.']
  return ['The page could not be rendered', 'This is an internal error of the service.']
}
