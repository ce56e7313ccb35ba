import type { FastifyInstance } from 'fastify'
import { pino } from 'pino'
import { expect } from 'vitest'
import { buildApp } from '../../src/app.ts'
import type { Config } from '../../src/config.ts'
import type { AcquirerSettings } from '../../src/gateway/acquirers/accounts.ts'
import { LIMITS, type Limits } from '../../src/limits.ts'
import { createMetrics } from '../../src/operator/monitoring/metrics.ts'
import { createOverview } from '../../src/operator/monitoring/overview.ts'
import { createPools, type Database, type Pools } from '../../src/platform/db/pool.ts'
import { createServices } from '../../src/services.ts'
import { ACQUIRER_SECRETS } from './acquirer.ts'
import { checkAfterEach, stopAtEnd } from './at-end.ts'
import { connect, createTestDatabase } from './database.ts'
import { asRole } from './database-url.ts'
import './openapi.ts'
import { allow } from './webhooks.ts'

// Re-exports what nearly every test of the service needs. Programs outside Vitest import it from its own file.
export { ACQUIRER_SECRETS } from './acquirer.ts'
export { type HttpResponse, post, postJson, responseOf } from './inject.ts'
export {
  CANCEL,
  CREATE,
  form,
  intentFields,
  LINKED_MERCHANTS,
  LIST,
  ORDER,
  OWN_ORDERS,
  OWN_REFUNDS,
  OWN_SETTLEMENTS,
  OWN_TRANSACTIONS,
  REFUND,
  REFUND_STATUS,
  STATUS,
  TRANSACTIONS,
} from './requests.ts'
export { addLogo, basic, type Key, newKey, newMerchant, newPartner, unique } from './tenants.ts'

/** A clock that stands still until a test advances it; `elapsedMs` keeps running, and `advance` moves it too. */
export type TestClock = {
  now: () => Date
  elapsedMs: () => number
  set: (moment: string) => void
  advance: (seconds: number) => void
}

export type TestService = {
  app: FastifyInstance
  db: Database
  /** The pools of the service itself. */
  pools: Pools
  databaseUrl: string
  clock: TestClock
  log: string[]
  /** Returns what Prometheus would scrape. */
  metrics: () => Promise<string>
}

type WebhookSettings = Config['webhooks']

export const PUBLIC_URL = 'https://pay.example.in/upi'

/** A test's changes to single limits; all others are as shipped. */
export type LimitChanges = { [Group in keyof Limits]?: Partial<Limits[Group]> }

/**
 * Functional tests wait ten times longer than callers do, so that a busy machine does not turn a 200 into a 503. A
 * test shares the process of its service, which must not reject requests because the test keeps the process busy.
 */
const LONG_WAIT: LimitChanges = {
  response: { ms: 10 * LIMITS.response.ms },
  database: {
    connectTimeoutMs: 10 * LIMITS.database.connectTimeoutMs,
    queryTimeoutMs: 10 * LIMITS.database.queryTimeoutMs,
  },
  inserts: { waitingMs: 10 * LIMITS.inserts.waitingMs },
}

function limitsWith(...changes: (LimitChanges | undefined)[]): Limits {
  const groups = Object.entries(LIMITS).map(([group, limits]) => [
    group,
    Object.assign({}, limits, ...changes.map((change) => change?.[group as keyof Limits])),
  ])
  return Object.fromEntries(groups)
}

// For example a warning about too many listeners, which a server would log for every request.
process.on('warning', (warning) => warnings.push(String(warning)))
const warnings: string[] = []
checkAfterEach(() => expect(warnings.splice(0), 'warnings of Node.js').toEqual([]))

/** Starts the whole service on its own database; both are removed when the test file ends. */
export async function startService(
  options: {
    expiryMinutes?: number
    sandbox?: boolean
    acquirers?: Partial<AcquirerSettings>
    webhooks?: WebhookSettings
    rateLimitPerSecond?: number
    /** Stops `elapsedMs` too, and requests that wait for their turn do not wait. */
    standsStill?: boolean
    trustProxy?: string
    publicUrl?: string
    /** Changes to the limits of functional tests. */
    limits?: LimitChanges
    /** Connects the service with the database role of an installation; `db` is the test's own connection. */
    asServiceRole?: boolean
    /** A migrated database, possibly that of another service, and a replica of it; the creator removes them. */
    replicated?: { url: string; replicaUrl?: string }
  } = {},
): Promise<TestService> {
  const { replicated } = options
  const database = replicated ? connect(replicated.url) : await createTestDatabase()
  const lines: string[] = []
  const log = pino({ level: 'info', base: null }, { write: (line) => void lines.push(line) })
  const limits = limitsWith(LONG_WAIT, options.limits)
  const url = options.asServiceRole ? asRole(database.url, 'upi_service') : database.url
  const pools = createPools({ url, readUrl: replicated?.replicaUrl, requests: 10 }, log, limits)
  const { standsStill = false } = options
  const clock = testClock('2026-03-31T18:29:59.000Z', standsStill)
  const config = {
    publicUrl: options.publicUrl ?? PUBLIC_URL,
    intentExpiryMinutes: options.expiryMinutes ?? 15,
    acquirers: { direct: ACQUIRER_SECRETS, ...options.acquirers },
    webhooks: options.webhooks ?? { encryptionKeys: [], allowedNetworks: allow() },
    sandbox: options.sandbox ?? false,
    trustProxy: options.trustProxy === undefined ? (false as const) : [options.trustProxy],
    rateLimitPerSecond: options.rateLimitPerSecond ?? 1_000_000,
    production: false,
    warnings: [],
  }
  const metrics = createMetrics(pools, () => createOverview(pools.lists).openCounts(clock.now()))
  const app = await buildApp(
    createServices({
      config,
      pools,
      log,
      metrics,
      now: clock.now,
      elapsedMs: clock.elapsedMs,
      ...(standsStill && { sleep: async () => undefined }),
      limits,
    }),
  )
  stopAtEnd(async () => {
    await app.close()
    await Promise.all(Object.values(pools).map((pool) => pool.end()))
  })
  return {
    app,
    db: database.db,
    pools,
    databaseUrl: database.url,
    clock,
    log: lines,
    metrics: () => metrics.registry.metrics(),
  }
}

function testClock(start: string, standsStill: boolean): TestClock {
  let moment = new Date(start)
  const startMs = performance.now()
  let advancedMs = 0
  return {
    elapsedMs: () => (standsStill ? startMs : performance.now()) + advancedMs,
    now: () => new Date(moment),
    set: (text) => {
      moment = new Date(text)
    },
    advance: (seconds) => {
      moment = new Date(moment.getTime() + seconds * 1000)
      advancedMs += seconds * 1000
    },
  }
}

/** The exact body of every error response. */
export const errorResponse = (statusCode: number, msg: string) => ({ status: false, statusCode, msg })

const BRIEFLY = 'The service is temporarily unavailable. Repeat the request unchanged after Retry-After seconds.'
export const UNAVAILABLE = errorResponse(503, BRIEFLY)
/** The text for a create whose order may be stored. */
export const CREATE_UNAVAILABLE = errorResponse(
  503,
  `${BRIEFLY} If it had no Idempotency-Key and then returns 409, the order was stored: cancel it and create another one.`,
)
