import { randomUUID } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { pino } from 'pino'
import { afterAll, afterEach, expect } from 'vitest'
import { buildApp } from '../../src/app.ts'
import { createAccessKeys } from '../../src/auth/access-keys.ts'
import { hashSecret, mintKeyPair } from '../../src/auth/credentials.ts'
import { createPool, type Database } from '../../src/db/pool.ts'
import { createMetrics } from '../../src/http/metrics.ts'
import { LIMITS, type Limits } from '../../src/limits.ts'
import { createMerchants, type Merchant } from '../../src/merchants/merchants.ts'
import { createPartners } from '../../src/merchants/partners.ts'
import { createTestDatabase } from './database.ts'
import { asRole } from './database-url.ts'
import './openapi.ts'

export type Key = { publicKey: string; secretKey: string }
// biome-ignore lint/suspicious/noExplicitAny: a test asserts what a body is, it cannot know
type Json = any

export type Answer = { status: number; headers: Record<string, unknown>; body: Json; text: string }

/** A clock that stands still until a test moves it. */
export type TestClock = { now: () => Date; set: (moment: string) => void; advance: (seconds: number) => void }

export type TestService = {
  app: FastifyInstance
  db: Database
  listDb: Database
  replicaDb: Database | undefined
  databaseUrl: string
  clock: TestClock
  log: string[]
  /** What Prometheus would read. */
  metrics: () => Promise<string>
}

/** The second one is the newer: both are valid while the acquirer changes over. */
export const ACQUIRER_SECRETS = ['first-secret-of-a-test', 'second-secret-of-a-test']

export const PUBLIC_URL = 'https://pay.example.in/upi'

/** What a test hands in of each group; the rest is as shipped. */
export type LimitChanges = { [Group in keyof Limits]?: Partial<Limits[Group]> }

/**
 * Functional tests wait ten times longer than callers do, so that a busy machine does not turn a 200 into a 503. A test works
 * in the process of its service: one that decodes images must not have its pages refused for being late.
 */
const PATIENT: LimitChanges = {
  answer: { ms: 10 * LIMITS.answer.ms },
  lookUps: { ms: 10 * LIMITS.lookUps.ms },
  database: {
    connectTimeoutMs: 10 * LIMITS.database.connectTimeoutMs,
    queryTimeoutMs: 10 * LIMITS.database.queryTimeoutMs,
  },
  inserts: { waitingMs: 10 * LIMITS.inserts.waitingMs },
  lateness: { operationsMs: 10 * LIMITS.lateness.operationsMs, pagesMs: Number.POSITIVE_INFINITY },
}

function limitsWith(...changes: (LimitChanges | undefined)[]): Limits {
  const groups = Object.entries(LIMITS).map(([group, limits]) => [
    group,
    Object.assign({}, limits, ...changes.map((change) => change?.[group as keyof Limits])),
  ])
  return Object.fromEntries(groups)
}

const started: (() => Promise<void>)[] = []

// Such as one of too many listeners: on a server it stands in the log for every request.
process.on('warning', (warning) => warnings.push(String(warning)))
const warnings: string[] = []
afterEach(() => {
  expect(warnings.splice(0), 'warnings of Node.js').toEqual([])
})

// Here and not where a service starts, which is in a beforeAll: vitest silently drops an afterAll that is called there.
afterAll(async () => {
  for (const stop of started.splice(0)) await stop()
})

/** The whole service on a database of its own; both are gone when the test file ends. */
export async function startService(
  options: {
    expiryMinutes?: number
    sandbox?: boolean
    acquirerSecrets?: string[]
    rateLimitPerMinute?: number
    trustProxy?: string
    publicUrl?: string
    /** What differs from the limits of functional tests. */
    limits?: LimitChanges
    /** The service has no more rights in the database than an installation gives it; `db` and `listDb` are the test's own. */
    asServiceRole?: boolean
    /** A migrated database and a replica of it, which their maker removes. */
    replicated?: { url: string; replicaUrl: string }
  } = {},
): Promise<TestService> {
  const { replicated } = options
  const database = replicated ? { url: replicated.url, drop: async () => undefined } : await createTestDatabase()
  const lines: string[] = []
  const log = pino({ level: 'info', base: null }, { write: (line) => void lines.push(line) })
  const limits = limitsWith(PATIENT, options.limits)
  const listPool = (url: string) => createPool({ url, log, ...limits.database, ...limits.listDatabase })
  const poolsOf = (url: string) => ({
    db: createPool({ url, size: 10, log, ...limits.database }),
    listDb: listPool(url),
  })
  const { db, listDb } = poolsOf(database.url)
  const own = options.asServiceRole ? poolsOf(asRole(database.url, 'upi_service')) : { db, listDb }
  const replicaDb = replicated && listPool(replicated.replicaUrl)
  const clock = testClock('2026-03-31T18:29:59.000Z')
  const config = {
    publicUrl: options.publicUrl ?? PUBLIC_URL,
    intentExpiryMinutes: options.expiryMinutes ?? 15,
    acquirerSecrets: options.acquirerSecrets ?? ACQUIRER_SECRETS,
    sandbox: options.sandbox ?? false,
    trustProxy: options.trustProxy ?? (false as const),
    rateLimitPerMinute: options.rateLimitPerMinute ?? 1_000_000,
    warnings: [],
  }
  const metrics = createMetrics({ requests: own.db, lists: own.listDb })
  const app = await buildApp({
    config,
    ...own,
    replicaDb,
    log,
    metrics,
    now: clock.now,
    limits,
  })
  started.push(async () => {
    await app.close()
    await Promise.all([...new Set([db, listDb, own.db, own.listDb, replicaDb])].map((pool) => pool?.end()))
    await database.drop()
  })
  return {
    app,
    db,
    listDb,
    replicaDb,
    databaseUrl: database.url,
    clock,
    log: lines,
    metrics: () => metrics.registry.metrics(),
  }
}

function testClock(start: string): TestClock {
  let moment = new Date(start)
  return {
    now: () => new Date(moment),
    set: (text) => {
      moment = new Date(text)
    },
    advance: (seconds) => {
      moment = new Date(moment.getTime() + seconds * 1000)
    },
  }
}

export const unique = (prefix: string) => `${prefix}${randomUUID().replaceAll('-', '').slice(0, 16)}`

export async function newMerchant(
  db: Database,
  values: Partial<Pick<Merchant, 'mid' | 'name' | 'vpa' | 'mcc' | 'dynamicQr'>> = {},
): Promise<{ mid: string; key: Key }> {
  const mid = values.mid ?? unique('M')
  const merchant = { mid, name: 'Chai Point', vpa: 'chaipoint@examplebank', mcc: '5814', dynamicQr: 'link' as const }
  await createMerchants(db).add({ ...merchant, ...values }, new Date())
  return { mid, key: await newKey(db, { mid }) }
}

export async function newPartner(db: Database, ...mids: string[]): Promise<{ pid: string; key: Key }> {
  const pid = unique('P')
  const partners = createPartners(db)
  await partners.add({ pid, name: 'Acme' }, new Date())
  for (const mid of mids) await partners.link(pid, mid)
  return { pid, key: await newKey(db, { pid }) }
}

export async function newKey(db: Database, owner: { mid: string } | { pid: string }): Promise<Key> {
  const pair = mintKeyPair()
  const secretHash = hashSecret(pair.secretKey)
  await createAccessKeys(db).add({ publicKey: pair.publicKey, secretHash, owner, label: null, now: new Date() })
  return pair
}

export function basic({ publicKey, secretKey }: Key): string {
  return `Basic ${Buffer.from(`${publicKey}:${secretKey}`).toString('base64')}`
}

export const CREATE = '/v1/payments/createPaymentIntent'
export const LIST = '/v1/partner/fetchSettlementList'

/** A complete and correct createPaymentIntent of `mid`. */
export function intentFields(mid: string, changes: Record<string, string | undefined> = {}): Record<string, string> {
  const fields: Record<string, string | undefined> = {
    mid,
    amount: '200',
    redirect_url: 'https://shop.example.in/thanks?order=1001',
    note: 'Order 1001',
    customer_name: 'Asha Rao',
    customer_email: 'asha@example.in',
    customer_mobile: '0123456789',
    ...changes,
  }
  return Object.fromEntries(Object.entries(fields).filter((entry): entry is [string, string] => entry[1] !== undefined))
}

/** POSTs a form, or whatever `body` is, with the credentials of `key`. */
export async function post(
  app: FastifyInstance,
  url: string,
  body: Record<string, string> | string | Buffer | undefined,
  key?: Key,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const payload = body === undefined || typeof body === 'string' || Buffer.isBuffer(body) ? body : form(body)
  const response = await app.inject({
    method: 'POST',
    url,
    headers: {
      ...(payload !== undefined && { 'content-type': 'application/x-www-form-urlencoded' }),
      ...(key && { authorization: basic(key) }),
      ...headers,
    },
    ...(payload !== undefined && { payload }),
  })
  return answerOf(response)
}

export function postJson(app: FastifyInstance, url: string, body: unknown, key: Key): Promise<Answer> {
  return post(app, url, JSON.stringify(body), key, { 'content-type': 'application/json' })
}

export function form(fields: Record<string, string>): string {
  return new URLSearchParams(fields).toString()
}

export function answerOf(response: { statusCode: number; headers: Record<string, unknown>; payload: string }): Answer {
  const text = response.payload
  const isJson = String(response.headers['content-type'] ?? '').startsWith('application/json')
  return { status: response.statusCode, headers: response.headers, body: isJson ? JSON.parse(text) : undefined, text }
}

/** The refusal that every failure must be, to the letter. */
export const refusal = (statusCode: number, msg: string) => ({ status: false, statusCode, msg })
