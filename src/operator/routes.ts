import type { FastifyInstance, FastifyReply } from 'fastify'
import type { Logger } from 'pino'
import { add, createOrderCounts, NO_ORDERS } from '../books/day.ts'
import { createOverview } from '../books/overview.ts'
import { isForbiddenToRole } from '../db/grants.ts'
import { hasState, isOutage, UNDEFINED_COLUMN, UNDEFINED_TABLE } from '../db/outage.ts'
import { type Database, readBriefly } from '../db/pool.ts'
import { rememberBriefly } from '../db/remember-briefly.ts'
import { istDayOf } from '../ist.ts'
import type { Limits } from '../limits.ts'
import { isFromInside, isPrivateName } from './caller.ts'
import { createDayCounts } from './day-counts.ts'
import { messagePage, pageOfToday } from './page.ts'

/** Nothing from elsewhere, nothing inline, no script. */
const HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': [
    "default-src 'none'",
    "style-src 'self'",
    'img-src data:',
    "form-action 'none'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'x-frame-options': 'DENY',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-store',
} as const

const HOUR_MS = 60 * 60_000
const DAY_MS = 24 * HOUR_MS

/** Refuses with 403 whatever is asked for from outside or by a public name: every route, and what is no route. */
export function insidersOnly(app: FastifyInstance) {
  app.addHook('onRequest', async ({ headers, socket }, reply) => {
    if (!isFromInside(headers, socket.remoteAddress)) return refuse(reply, 'Not from here', FROM_OUTSIDE)
    if (!isPrivateName(headers.host)) return refuse(reply, 'Not by this name', BY_A_PUBLIC_NAME)
  })
}

const refuse = (reply: FastifyReply, title: string, text: string) =>
  reply.code(403).headers(HEADERS).send(messagePage(title, text))

/** `/` of the listener that only the operator reaches: today, the last days, and what needs a person. Read only. */
export function operatorPageRoutes(
  app: FastifyInstance,
  {
    db,
    log,
    now,
    publicUrl,
    latenessMs,
    limits,
  }: {
    db: Database
    log: Pick<Logger, 'warn'>
    now: () => Date
    publicUrl: string
    /** How late timers are. */
    latenessMs: () => number
    limits: Pick<Limits, 'operatorPage' | 'operatorDatabase' | 'lateness'>
  },
) {
  const { statementTimeoutMs } = limits.operatorDatabase
  const dayCounts = createDayCounts({
    countByHour: (period, moment) =>
      readBriefly(db, statementTimeoutMs, (client) => createOrderCounts(client).countByHour(period, moment)),
    log,
    now,
    limits: limits.operatorPage,
  })
  const readOverview = (moment: Date) =>
    readBriefly(db, statementTimeoutMs, (client) => createOverview(client).read(moment))
  app.addHook('preClose', dayCounts.stop)

  const readPage = rememberBriefly(async (refresh) => {
    const refreshes = refresh === 'on'
    const moment = now()
    const { days: dayCount, refreshSeconds, refreshCountingSeconds } = limits.operatorPage
    const today = istDayOf(moment)
    const days = Array.from({ length: dayCount }, (_, ago) => new Date(today.getTime() - ago * DAY_MS))
    const [{ counts, failed }, known] = await Promise.all([dayCounts.read(days), readOverview(moment)])
    const isCounting = counts.includes(undefined) && !failed
    const seconds = isCounting ? refreshCountingSeconds : refreshSeconds
    const page = pageOfToday({
      now: moment,
      hours: hoursSince(today, moment).map((begins, hour) => ({ begins, counts: counts[0]?.[hour] })),
      days: days.map((begins, ago) => ({ begins, counts: counts[ago]?.reduce(add, NO_ORDERS) })).reverse(),
      failed,
      overview: known,
      publicUrl,
      refreshSeconds: seconds,
      refreshes,
    })
    return { page, headers: refreshes ? { refresh: String(seconds) } : {} }
  }, limits.operatorPage.page)

  app.get('/', async ({ query }, reply) => {
    reply.headers(HEADERS)
    const unavailable = (title: string, text: string) =>
      reply
        .code(503)
        .header('refresh', String(limits.operatorPage.refreshSeconds))
        .send(messagePage(title, `${text} ${ASKED_AGAIN}`))
    if (latenessMs() > limits.lateness.pagesMs) return unavailable('The service is busy', BUSY)
    try {
      const { page, headers } = await readPage((query as { refresh?: unknown }).refresh === 'off' ? 'off' : 'on')
      return reply.headers(headers).send(page)
    } catch (error) {
      log.warn({ error: (error as Error).message }, 'the operator’s page was not shown')
      return unavailable(...causeOf(error))
    }
  })
}

/** A title and what to do. */
function causeOf(error: unknown): [string, string] {
  if (hasState(error, UNDEFINED_TABLE, UNDEFINED_COLUMN)) {
    return ['The database is not migrated', 'It lacks a table or a column that this version reads. Run "ops migrate".']
  }
  if (isForbiddenToRole(error)) {
    return ['The service has no rights to the tables', 'Run "ops migrate" as the owner of the tables.']
  }
  if (isOutage(error)) return ['The database does not answer', 'What this page shows is in the database.']
  return ['The page could not be made', 'This is a fault of the service.']
}

const FROM_OUTSIDE =
  'You ask from outside, or through a proxy that is reached from outside or does not say from where. This port shows the ' +
  'business of every merchant and asks for no password, so it serves this machine and private networks only. Take the ' +
  'port for operators (OPS_PORT) out of that proxy, and open the page on this machine, by a tunnel such as ' +
  'ssh -L 3001:127.0.0.1:3001, or in your private network (OPS_HOST).'

const BY_A_PUBLIC_NAME =
  'The name in the address may belong to anybody, and a website could read this port by it in your browser. Open the page by ' +
  'an IP address, as localhost, by a name without a dot, or by one that ends in .internal, .local, .localhost or .home.arpa. ' +
  'A Prometheus, or a proxy in your private network, has to ask by such a name too.'

const BUSY = 'Payments come first, so this page waits until the service is less busy.'

const ASKED_AGAIN = 'This page asks again every 30 seconds; the log of the service says more.'

/** The hours that have begun, oldest first. */
function hoursSince(first: Date, now: Date): Date[] {
  const count = Math.floor((now.getTime() - first.getTime()) / HOUR_MS) + 1
  return Array.from({ length: count }, (_, hour) => new Date(first.getTime() + hour * HOUR_MS))
}
