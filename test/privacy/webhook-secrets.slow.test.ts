import { randomBytes } from 'node:crypto'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Database } from '../../src/platform/db/pool.ts'
import { ACQUIRER_SECRETS, newUtr, notificationRequest } from '../support/acquirer.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { createHttpClient, type HttpClient } from '../support/http-client.ts'
import { runOps } from '../support/ops.ts'
import type { Outcome } from '../support/processes.ts'
import { createdOrderId, createRequest } from '../support/requests.ts'
import { type ServerProcess, startServerProcess } from '../support/server-process.ts'
import { dump } from '../support/stored-rows.ts'
import { type NewMerchant, newMerchant } from '../support/tenants.ts'
import { until } from '../support/wait.ts'

const newKey = () => randomBytes(32).toString('base64')
const ENCRYPTION_KEY = newKey()
const ANOTHER_KEY = newKey()
const SETTINGS = { WEBHOOK_SEALING_KEY: ENCRYPTION_KEY, WEBHOOK_ALLOWED_NETWORKS: '127.0.0.1/32' }

let database: TestDatabase
let db: Database
let merchant: NewMerchant
let client: HttpClient
/** Every secret that was ever shown to the operator. */
const secrets: string[] = []
/** Everything that commands and services have written, except the secrets where they are shown once. */
const written: string[] = []

beforeAll(async () => {
  database = await createTestDatabase()
  db = database.db
  merchant = await newMerchant(db)
  client = createHttpClient()
})
afterAll(() => client.close())

async function ops(args: string[], settings: Record<string, string> = SETTINGS): Promise<Outcome> {
  const outcome = await runOps(database.url, args, '', settings)
  const shown = /whsec_[A-Za-z0-9+/=]+/.exec(outcome.stdout)?.[0]
  const showsOne = ['add', 'rotate-secret'].includes(args[1] ?? '') && outcome.code === 0
  if (showsOne && shown) secrets.push(shown)
  written.push(showsOne && shown ? outcome.stdout.replace(shown, '') : outcome.stdout, outcome.stderr)
  return outcome
}

async function addWebhook(url: string, ...args: string[]): Promise<{ id: string; secret: string }> {
  const { code, stdout, stderr } = await ops([
    'webhooks',
    'add',
    '--mid',
    merchant.mid,
    '--url',
    url,
    ...args,
    '--json',
  ])
  expect([code, stderr]).toEqual([0, expect.anything()])
  return JSON.parse(stdout)
}

/** Starts the service as a process that logs everything it can. */
const startTalkative = (settings: Record<string, string> = SETTINGS) =>
  startServerProcess(database.url, { LOG_LEVEL: 'trace', ACQUIRER_SECRETS: ACQUIRER_SECRETS.join(), ...settings })

async function payOne(service: ServerProcess): Promise<string> {
  const orderId = createdOrderId(await client.send(service.url, createRequest(merchant)))
  expect(orderId).toBeDefined()
  expect((await client.send(service.url, notificationRequest(orderId as string, newUtr()))).status).toBe(200)
  return orderId as string
}

async function endOf(service: ServerProcess) {
  written.push(await (await fetch(`${service.opsUrl}/metrics`)).text())
  await service.stop()
  written.push(...service.log, ...service.errors)
}

type Hook = { headers: IncomingHttpHeaders; body: string }

async function startReceiver(result: (response: ServerResponse, hook: Hook) => void) {
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (text) => {
      body += text
    })
    request.on('end', () => result(response, { headers: request.headers, body }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const close = () => {
    server.closeAllConnections()
    server.close()
  }
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`, close }
}

/** A secret in each format in which the service or PostgreSQL could write it. */
function formsOf(secret: string): string[] {
  const base64 = secret.replace('whsec_', '')
  const bytes = Buffer.from(base64, 'base64')
  const texts = [base64, bytes.toString('base64url'), bytes.toString('hex')]
  return [...texts, ...texts.map((text) => Buffer.from(text).toString('hex')), JSON.stringify([...bytes]).slice(1, -1)]
}

const leaks = (text: string) =>
  [...secrets, ENCRYPTION_KEY, ANOTHER_KEY]
    .flatMap(formsOf)
    .filter((form) => text.toLowerCase().includes(form.toLowerCase()))

async function outcomesOf(endpointId: string): Promise<(string | null)[]> {
  const { rows } = await db.query<{ outcome: string | null }>(
    'select outcome from webhook_deliveries where endpoint_id = $1',
    [endpointId],
  )
  return rows.map(({ outcome }) => outcome)
}

describe('webhook signing secrets', () => {
  it('shows a webhook’s signing secret once, and never in a log, metric, list, dump or error', async () => {
    const taking = await startReceiver((response) => void response.end('ok'))
    const broken = await startReceiver((response, { headers }) => {
      response.writeHead(500).end(`cannot verify ${headers['webhook-signature']}`)
    })
    const good = await addWebhook(taking.url, '--label', 'the shop')
    const failing = await addWebhook(broken.url)
    // Accepted when it is added, and rejected when it is called.
    const inward = await addWebhook('https://10.0.0.1/hook')
    const service = await startTalkative()
    await payOne(service)
    const ended = async () => (await Promise.all([good, failing, inward].map(({ id }) => outcomesOf(id)))).flat()
    await until('all three were called', async () => (await ended()).every((outcome) => outcome !== null))
    expect(await ended()).toEqual(['200', '500', 'not allowed'])

    expect((await ops(['webhooks', 'rotate-secret', '--endpoint', good.id])).code).toBe(0)
    expect((await ops(['webhooks', 'rotate-secret', '--endpoint', failing.id, '--json'])).code).toBe(0)
    expect((await ops(['webhooks', 'ping', '--endpoint', good.id])).code).toBe(0)
    expect((await ops(['webhooks', 'ping', '--endpoint', failing.id])).code).toBe(1)
    expect((await ops(['webhooks', 'ping', '--endpoint', inward.id])).code).toBe(1)
    for (const json of [[], ['--json']]) {
      await ops(['webhooks', 'list', ...json])
      await ops(['webhooks', 'deliveries', '--mid', merchant.mid, ...json])
      await ops(['webhooks', 'disable', '--endpoint', failing.id, ...json])
      await ops(['webhooks', 'enable', '--endpoint', failing.id, ...json])
    }
    await ops(['webhooks', 'resend', '--mid', merchant.mid, '--since', '2026-01-01T00:00:00Z'])
    for (const url of ['http://user:password@127.0.0.1/', 'ftp://shop.example/', 'no url']) {
      expect((await ops(['webhooks', 'add', '--mid', merchant.mid, '--url', url])).code).not.toBe(0)
    }
    expect((await ops(['webhooks', 'add', '--mid', 'M-unknown', '--url', taking.url])).code).toBe(1)
    await endOf(service)

    // Another key, no key, and a truncated key.
    const withAnotherKey = { ...SETTINGS, WEBHOOK_SEALING_KEY: ANOTHER_KEY }
    expect((await ops(['webhooks', 'ping', '--endpoint', good.id], withAnotherKey)).code).toBe(1)
    const wrong = await startTalkative(withAnotherKey)
    await payOne(wrong)
    await until('it was said that the secret cannot be unsealed', () =>
      wrong.log.some((line) => line.includes(good.id) && line.includes('WEBHOOK_SEALING_KEY')),
    )
    await endOf(wrong)
    expect((await ops(['webhooks', 'ping', '--endpoint', good.id], {})).code).toBe(1)
    for (const cut of [ENCRYPTION_KEY.slice(0, -8), `${ENCRYPTION_KEY}AAAA`]) {
      const { code, stderr } = await ops(['webhooks', 'list'], { ...SETTINGS, WEBHOOK_SEALING_KEY: cut })
      expect(code).toBe(1)
      expect(stderr).toContain('WEBHOOK_SEALING_KEY')
      expect(stderr).not.toContain(cut)
    }
    taking.close()
    broken.close()

    const all = written.join('\n')
    // Checks that the searched output contains what it must contain.
    expect(secrets).toHaveLength(5)
    expect(all).toContain('webhook_deliveries_total')
    expect(all).toContain('cannot verify v1,')
    expect(all).toContain('the shop')
    expect(leaks(all)).toEqual([])
    const dumped = await dump(db)
    expect(dumped).toContain(good.id)
    expect(leaks(dumped)).toEqual([])
    // Proves that the search finds a secret; otherwise an empty result would prove nothing.
    expect(leaks(`x${good.secret}x`)).not.toEqual([])
    expect(leaks(Buffer.from(good.secret.replace('whsec_', '')).toString('hex'))).not.toEqual([])
  }, 120_000)
})
