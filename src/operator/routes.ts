import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { add, createOrderCounts, NO_ORDERS, type OrderCounts } from '../books/day.ts'
import { createOverview } from '../books/overview.ts'
import { summarize } from '../books/running.ts'
import { type Database, readBriefly } from '../db/pool.ts'
import { istDayOf } from '../ist.ts'
import type { Limits } from '../limits.ts'
import { isFromInside, isPrivateName } from './caller.ts'
import { createHourCounts } from './hours.ts'
import { type Counted, messagePage, pageOfToday } from './page.ts'

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

/** `/` of the listener that only the operator reaches: today, the last days, and what needs a person. Read only. */
export function operatorPageRoutes(
  app: FastifyInstance,
  {
    db,
    log,
    now,
    publicUrl,
    limits,
  }: {
    db: Database
    log: Pick<Logger, 'warn'>
    now: () => Date
    publicUrl: string
    limits: Pick<Limits, 'operatorPage' | 'operatorDatabase' | 'heartbeat'>
  },
) {
  const { statementTimeoutMs } = limits.operatorDatabase
  const hourCounts = createHourCounts({
    countByHour: (period, moment) =>
      readBriefly(db, statementTimeoutMs, (client) => createOrderCounts(client).countByHour(period, moment)),
    log,
    now,
    limits: limits.operatorPage,
  })
  const readOverview = (moment: Date) =>
    readBriefly(db, statementTimeoutMs, (client) => createOverview(client).read(moment))
  app.addHook('preClose', hourCounts.stop)

  app.get('/', async ({ headers, socket, query }, reply) => {
    reply.headers(HEADERS)
    const { remoteAddress } = socket
    if (!isFromInside(headers, remoteAddress)) return reply.code(403).send(messagePage('Not from here', FROM_OUTSIDE))
    if (!isPrivateName(headers.host)) return reply.code(403).send(messagePage('Not by this name', BY_A_PUBLIC_NAME))
    const refreshes = (query as { refresh?: unknown }).refresh !== 'off'
    const moment = now()
    const { days: dayCount, refreshSeconds, refreshCountingSeconds } = limits.operatorPage
    const today = istDayOf(moment)
    const hours = hoursFrom(new Date(today.getTime() - (dayCount - 1) * DAY_MS), moment)
    try {
      const [{ counts, failed }, known] = await Promise.all([hourCounts.read(hours.toReversed()), readOverview(moment)])
      const counted = hours.map((begins, index): Counted => ({ begins, counts: counts.at(-1 - index) }))
      const isCounting = counts.includes(undefined) && !failed
      const seconds = isCounting ? refreshCountingSeconds : refreshSeconds
      if (refreshes) reply.header('refresh', String(seconds))
      return reply.send(
        pageOfToday({
          now: moment,
          hours: counted.filter(({ begins }) => begins >= today),
          days: daysOf(counted),
          failed,
          overview: known,
          running: summarize(known.instances, moment, limits.heartbeat.silentMs),
          publicUrl,
          refreshSeconds: seconds,
          refreshes,
        }),
      )
    } catch (error) {
      log.warn({ error: (error as Error).message }, 'the operator’s page was not shown')
      reply.code(503).header('refresh', String(refreshSeconds))
      return reply.send(messagePage('The database does not answer', AWAY))
    }
  })
}

const FROM_OUTSIDE =
  'You ask from outside, or through a proxy that is reached from outside or does not say from where. This page shows the ' +
  'business of every merchant and asks for no password, so it is shown on this machine and in private networks only. Take the ' +
  'port for operators (OPS_PORT) out of that proxy, and open the page on this machine, by a tunnel such as ' +
  'ssh -L 3001:127.0.0.1:3001, or in your private network (OPS_HOST).'

const BY_A_PUBLIC_NAME =
  'The name in the address may belong to anybody, and a website could read this page by it in your browser. Open the page by ' +
  'an IP address, as localhost, by a name without a dot, or by one that ends in .internal, .local, .localhost or .home.arpa. ' +
  'A proxy in your private network has to ask by such a name too.'

const AWAY =
  'What this page shows is in the database. It is asked again every 30 seconds; the log of the service says why.'

/** The hours that have begun, oldest first. */
function hoursFrom(first: Date, now: Date): Date[] {
  const count = Math.floor((now.getTime() - first.getTime()) / HOUR_MS) + 1
  return Array.from({ length: count }, (_, hour) => new Date(first.getTime() + hour * HOUR_MS))
}

/** A day is known when all of its hours are. */
function daysOf(hours: readonly Counted[]): Counted[] {
  const days = new Map<number, OrderCounts | undefined>()
  for (const { begins, counts } of hours) {
    const day = istDayOf(begins).getTime()
    const sum = days.has(day) ? days.get(day) : NO_ORDERS
    days.set(day, sum && counts && add(sum, counts))
  }
  return [...days].map(([day, counts]) => ({ begins: new Date(day), counts }))
}
