import type pg from 'pg'
import { pino } from 'pino'
import { buildApp } from '../../src/app.ts'
import type { AcquirerSettings } from '../../src/gateway/acquirers/accounts.ts'
import { createFindPending, createSources } from '../../src/jobs.ts'
import { LIMITS } from '../../src/limits.ts'
import { createMetrics } from '../../src/operator/monitoring/metrics.ts'
import { createPools } from '../../src/platform/db/pool.ts'
import { createServices } from '../../src/services.ts'
import { ACQUIRER_SECRETS } from '../support/acquirer.ts'
import { allow, ENCRYPTION_KEYS } from '../support/webhooks.ts'

/*
 * One instance of the service in this process. Its edges are its statements and its outgoing calls: a crash closes all
 * its connections to the database, and nothing that its handlers still do reaches anyone.
 */

export type Instance = Awaited<ReturnType<typeof startInstance>>

const CRASHED = 'the instance has crashed'
/** Time limits are real, so a busy machine needs long ones. */
const LONG_MS = 60_000

const limits = {
  ...LIMITS,
  response: { ...LIMITS.response, ms: LONG_MS, commitMs: LONG_MS },
  database: { connectTimeoutMs: LONG_MS, queryTimeoutMs: LONG_MS },
  inserts: { waitingMs: LONG_MS },
  acquirers: { ...LIMITS.acquirers, requestMs: LONG_MS, firstLinkMs: LONG_MS, lookUpPauseMs: 1 },
  outbound: { ...LIMITS.outbound, merchantMs: LONG_MS, acquirerMs: LONG_MS, acquirerConnectMs: LONG_MS },
  // The world runs the jobs.
  webhooks: { ...LIMITS.webhooks, lookIntervalMs: 2 ** 31 - 1, stopMs: 1 },
}

/** `log` receives each line of the log, and `elapsedMs` is the world's. */
export async function startInstance(options: {
  url: string
  acquirers: Partial<AcquirerSettings>
  elapsedMs: () => number
  log: (line: string) => void
}) {
  const log = pino({ level: 'info', base: null }, { write: options.log })
  const pools = createPools({ url: options.url, readUrl: undefined, requests: 4 }, log, limits)
  const metrics = createMetrics(pools, async () => ({ exceptions: {}, refunds: {}, disputes: {} }))
  const config = {
    publicUrl: 'https://pay.example.in/upi',
    intentExpiryMinutes: 15,
    acquirers: { direct: ACQUIRER_SECRETS, ...options.acquirers },
    webhooks: { encryptionKeys: ENCRYPTION_KEYS, allowedNetworks: { ...allow(), webhook: ['127.0.0.1/32'] } },
    ...{ sandbox: false, trustProxy: false as const, rateLimitPerSecond: 1_000_000, production: false, warnings: [] },
  }
  const now = () => new Date()
  const services = createServices({
    ...{ config, pools, log, metrics, now, limits, elapsedMs: options.elapsedMs, sleep: async () => undefined },
  })
  const app = await buildApp(services)
  await app.ready()
  const clients = new Set<pg.PoolClient>()
  let edgesLeft: { count: number; takesEffect: boolean } | undefined
  let isCrashed = false
  let tell: (crashed: 'crashed') => void
  const crashed = new Promise<'crashed'>((resolve) => {
    tell = resolve
  })

  for (const pool of Object.values(pools)) {
    pool.on('connect', (client) => {
      clients.add(client)
      client.on('end', () => clients.delete(client))
      const query = client.query.bind(client) as (...values: unknown[]) => unknown
      client.query = ((...values: unknown[]) => {
        const takesEffect = pass()
        if (isCrashed && !takesEffect) closeConnections()
        const result = query(...values)
        // The statement is sent, and its result is not received.
        if (takesEffect) setImmediate(closeConnections)
        return result
      }) as never
    })
    const connect = pool.connect.bind(pool)
    pool.connect = ((callback?: (error: Error) => void) => {
      if (!isCrashed) return connect(callback as never)
      // No response of the instance that expects a connection is received.
      tell('crashed')
      if (callback) return callback(new Error(CRASHED))
      return Promise.reject(new Error(CRASHED))
    }) as never
  }
  const { request } = services.http
  services.http.request = async (sent) => {
    const takesEffect = pass()
    if (isCrashed && !takesEffect) {
      closeConnections()
      return { failure: 'connection failed', text: CRASHED }
    }
    const response = await request(sent)
    if (takesEffect) closeConnections()
    return isCrashed ? { failure: 'connection failed', text: CRASHED } : response
  }

  const [sources, findPending] = [createSources(services), createFindPending(pools.due, now)]
  return {
    app,
    sources,
    findPending,
    /** Resolves when the instance crashes. */
    crashed,
    isCrashed: () => isCrashed,
    /** Crashes the instance after `count` further statements and calls; `undefined` lets it live. */
    crashAfter(edges: typeof edgesLeft) {
      edgesLeft = edges
    },
    async stop() {
      await app.close().catch(() => undefined)
      await Promise.all(Object.values(pools).map((pool) => pool.end().catch(() => undefined)))
    },
  }

  /** Counts a statement or call. Returns true if it is the last one and takes effect. */
  function pass(): boolean {
    if (edgesLeft === undefined || isCrashed || edgesLeft.count-- > 0) return false
    isCrashed = true
    return edgesLeft.takesEffect
  }

  function closeConnections() {
    tell('crashed')
    for (const client of clients) (client as never as { connection: pg.Connection }).connection.stream.destroy()
  }
}
