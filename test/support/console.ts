import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import { readDatabaseConfig } from '../../src/config.ts'
import { hashSecret, mintKeyPair } from '../../src/gateway/tenants/credentials.ts'
import { LIMITS } from '../../src/limits.ts'
import { GROUPS } from '../../src/operator/commands/catalog.ts'
import type { Command } from '../../src/operator/commands/command.ts'
import { createConsole } from '../../src/operator/console/app.ts'
import { type ConsoleRight, createOperatorKeys } from '../../src/operator/console/operator-keys.ts'
import type { Database } from '../../src/platform/db/pool.ts'
import { stopAtEnd } from './at-end.ts'
import { asRole, testPool } from './database-url.ts'
import { basic, type Key } from './tenants.ts'

type Fields = Record<string, string>
/** The fields of a form, which is sent as multipart/form-data if it contains a file. */
export type FormFields = Record<string, string | string[] | File | File[]>
type Headers = Record<string, string>

/** A page of the console. `fields` are the hidden fields of its last form. */
export type ConsolePage = { status: number; headers: Record<string, unknown>; body: string; fields: Fields }

export type TestConsole = {
  app: FastifyInstance
  /** The console's own connections. */
  db: Database
  get: (path: string, key?: Key, headers?: Headers) => Promise<ConsolePage>
  /** Sends a form as a page of the console does, unless `headers` say otherwise. Waits for the end of long work. */
  post: (path: string, fields: FormFields, key?: Key, headers?: Headers) => Promise<ConsolePage>
}

/** Pause between two looks at long work. */
const WORK_PAUSE_MS = 10
/** As many connections as `ops` has. */
const CONNECTIONS = 9

export const SAME_ORIGIN = { origin: 'http://localhost:3002' }

/** Creates the console on a database, with the database role of an installation, without a port. */
export async function createTestConsole(
  { databaseUrl }: { databaseUrl: string },
  now: () => Date = () => new Date(),
  settings: Record<string, string> = {},
  limits = LIMITS,
  groups: Readonly<Record<string, readonly Command[]>> = GROUPS,
): Promise<TestConsole> {
  const url = asRole(databaseUrl, 'upi_console')
  const config = readDatabaseConfig({ DATABASE_URL: url, ...settings })
  const db = testPool(url, CONNECTIONS)
  const context = {
    config,
    db,
    sleep: async () => undefined,
    databaseTime: async () => new Date(),
    note: () => undefined,
  }
  const app = await createConsole({ groups, context, now, limits })
  stopAtEnd(async () => {
    await app.close()
    await db.end()
  })
  async function send(
    method: 'GET' | 'POST',
    url: string,
    headers: Headers,
    payload: string | Buffer = '',
  ): Promise<ConsolePage> {
    const response = await app.inject({ method, url, headers: { host: 'localhost:3002', ...headers }, payload })
    const { statusCode: status, body } = response
    const form = body.split('<form class="change"').at(-1) ?? ''
    const hidden = form.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)">/g)
    const fields = Object.fromEntries([...hidden].map(([, name, value = '']) => [name, unescaped(value)]))
    return { status, headers: response.headers, body, fields }
  }
  return {
    app,
    db,
    get: (path, key, headers = {}) => send('GET', path, { ...signIn(key), ...headers }),
    post: async (path, fields, key, headers = SAME_ORIGIN) => {
      const { type, payload } = await encode(fields)
      let page = await send('POST', path, { ...signIn(key), 'content-type': type, ...headers }, payload)
      // A change that may take minutes has a page with its progress, which then shows the result.
      const work = String(page.headers.location ?? '')
      while (work.startsWith('work?') && (page.headers.location === work || page.headers.refresh !== undefined)) {
        await sleep(WORK_PAUSE_MS)
        page = await send('GET', `/${work}`, signIn(key))
      }
      return page
    },
  }
}

/** Encodes a form as a browser does. */
async function encode(fields: FormFields): Promise<{ type: string; payload: Buffer }> {
  const all = Object.entries(fields).flatMap(([name, value]) => [value].flat().map((one) => [name, one] as const))
  const hasFile = all.some(([, value]) => value instanceof File)
  const body = hasFile ? new FormData() : new URLSearchParams()
  for (const [name, value] of all) body.append(name, value as string)
  const sent = new Response(body)
  return { type: sent.headers.get('content-type') as string, payload: Buffer.from(await sent.arrayBuffer()) }
}

const signIn = (key?: Key): Headers => (key ? { authorization: basic(key) } : {})

const unescaped = (value: string) => value.replace(/&#(\d+);/g, (_, code) => String.fromCharCode(code))

/** Creates an operator's key for the console. */
export async function newOperatorKey(
  db: Database,
  rights: readonly ConsoleRight[] = ['read', 'act'],
  { operator = 'asha', expiresOn }: { operator?: string; expiresOn?: string } = {},
): Promise<Key> {
  const { publicKey, secretKey } = mintKeyPair()
  const key = { publicKey, secretHash: hashSecret(secretKey), operator, label: null, rights, now: new Date() }
  await createOperatorKeys(db).add({ ...key, expiresOn })
  return { publicKey, secretKey }
}
