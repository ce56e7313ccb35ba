import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { connect } from 'node:net'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import type { Database } from '../../src/platform/db/pool.ts'
import { createTestDatabase } from '../support/database.ts'
import { asRole } from '../support/database-url.ts'
import { type ServerProcess, startServerProcess } from '../support/server-process.ts'
import { basic, CREATE, form, intentFields, type Key, newMerchant } from '../support/service.ts'

let url: string
let db: Database
let mid: string
let key: Key
beforeAll(async () => {
  ;({ url, db } = await createTestDatabase())
  ;({ mid, key } = await newMerchant(db))
})

function create(server: ServerProcess, agent?: Agent): Promise<{ status: number; connection: string | undefined }> {
  return new Promise((resolve, reject) => {
    const call = request(`${server.url}${CREATE}`, {
      method: 'POST',
      ...(agent && { agent }),
      headers: { authorization: basic(key), 'content-type': 'application/x-www-form-urlencoded' },
    })
    call.on('error', reject)
    call.on('response', (response) => {
      response.resume()
      response.on('end', () => resolve({ status: response.statusCode ?? 0, connection: response.headers.connection }))
    })
    call.end(form(intentFields(mid)))
  })
}

const status = async (address: string) => (await fetch(address)).status
const metricsOf = async ({ opsUrl }: ServerProcess) => (await fetch(`${opsUrl}/metrics`)).text()

describe('metrics, warnings and health of an instance', () => {
  it('counts requests by route and status in the metrics, and exports all metrics of the sample alerts from startup', async () => {
    const server = await startServerProcess(url)
    await create(server)
    await fetch(`${server.url}/nowhere?secret=SENT`)
    const text = await metricsOf(server)
    await server.stop()
    expect(text).toContain(`http_request_duration_seconds_count{route="${CREATE}",status="200"} 1`)
    expect(text).toContain(`http_request_duration_seconds_count{route="${CREATE}",status="500"} 0`)
    expect(text).toContain('http_request_duration_seconds_count{route="none",status="404"} 1')
    expect(text).toContain('payment_intents_created_total 1')
    expect(text).toContain('payment_intent_batch_rows_count 1')
    expect(text).toMatch(/database_pool_connections\{pool="requests",state="idle"\} \d/)
    expect(text).not.toMatch(/SENT|\bsk_|asha|Asha/)
    const alerts = readFileSync(join(import.meta.dirname, '../../src/operator/monitoring/alerts.yml'), 'utf8')
    const watched = new Set(alerts.match(/\b(http|payments?|acquirer|webhook|database|nodejs|process)_\w+/g))
    expect(watched.size).toBeGreaterThan(3)
    const measured = new Set(text.match(/^\w+/gm))
    expect([...watched].filter((name) => !measured.has(name))).toEqual([])
  })

  const SECRETS = { ACQUIRER_SECRETS: 'a-secret-of-sixteen' }
  const PLAIN_HTTP = { ...SECRETS, PUBLIC_URL: 'http://pay.example.in' }
  it.each([
    ['a missing acquirer', ['set ACQUIRER_SECRETS'], '0', 'upi_service', {}],
    ['a database role that is a superuser', ['as postgres,'], '1', 'postgres', SECRETS],
    ['a database role that owns the tables', ['as upi_owner,'], '1', 'upi_owner', SECRETS],
    ['plain http', ['PUBLIC_URL is plain http'], '1', 'upi_service', PLAIN_HTTP],
    ['no problem in a complete configuration', [], '1', 'upi_service', SECRETS],
  ] as const)('warns in production of %s at startup and in /readyz', async (_what, warnings, acquirers, role, more) => {
    const server = await startServerProcess(role === 'postgres' ? url : asRole(url, role), {
      NODE_ENV: 'production',
      ...more,
    })
    const { data } = (await (await fetch(`${server.url}/readyz`)).json()) as { data: { warnings: string[] } }
    const metrics = await metricsOf(server)
    await server.stop()
    const logged = server.log.map((line) => JSON.parse(line)).filter(({ level }) => level === 'warn')
    expect(logged.map((line) => line.msg)).toEqual(data.warnings)
    expect(data.warnings).toEqual(warnings.map((words) => expect.stringContaining(words)))
    expect(metrics).toContain(`payment_acquirers_configured ${acquirers}\n`)
  })

  it('serves metrics and the operator’s guide only on OPS_HOST, even if HOST is open to the network', async () => {
    const server = await startServerProcess(url, { HOST: '0.0.0.0' })
    const outer = Object.values(networkInterfaces()).flatMap((all = []) =>
      all.filter(({ internal, family }) => !internal && family === 'IPv4'),
    )
    const reach = async (address: string, port: number) => {
      const socket = connect({ host: address, port })
      const reached = await once(socket, 'connect').then(
        () => true,
        () => false,
      )
      socket.destroy()
      return reached
    }
    for (const { address } of outer) {
      expect([await reach(address, server.port), await reach(address, server.opsPort)]).toEqual([true, false])
    }
    expect(await reach('127.0.0.1', server.opsPort)).toBe(true)
    const guide = await fetch(`http://127.0.0.1:${server.opsPort}/docs`)
    expect(await guide.text()).toContain('<h1>Operator documentation</h1>')
    await server.stop()
  })

  it('reports in /readyz that the database is not migrated, while /livez returns 200', async () => {
    const empty = await createTestDatabase({ empty: true })
    const server = await startServerProcess(empty.url)
    const ready = await fetch(`${server.url}/readyz`)
    expect([ready.status, await ready.json()]).toMatchObject([
      503,
      { status: false, statusCode: 503, msg: expect.stringContaining('Run "ops migrate"') },
    ])
    expect(await status(`${server.url}/livez`)).toBe(200)
    await server.stop()
  })
})

describe('shutdown', () => {
  it('fails readiness immediately on shutdown, serves with Connection: close during the drain, then exits with 0', async () => {
    const server = await startServerProcess(url, { SHUTDOWN_DRAIN_SECONDS: '2' })
    expect(await status(`${server.url}/readyz`)).toBe(200)
    const ended = once(server.child, 'exit')
    server.child.kill('SIGTERM')
    await expect.poll(() => status(`${server.url}/readyz`)).toBe(503)
    expect(await status(`${server.url}/livez`)).toBe(200)
    const agent = new Agent({ keepAlive: true })
    expect(await create(server, agent)).toEqual({ status: 200, connection: 'close' })
    expect(await ended).toEqual([0, null])
  })

  it('loses no request in progress on shutdown', async () => {
    // The drain is longer than a busy machine takes to send all requests: a request after the drain may find no
    // service.
    const server = await startServerProcess(url, { SHUTDOWN_DRAIN_SECONDS: '5' })
    const agent = new Agent({ keepAlive: true, maxSockets: 20 })
    const responses: Promise<{ status: number }>[] = []
    for (let i = 0; i < 200; i++) {
      if (i === 100) server.child.kill('SIGTERM')
      responses.push(create(server, agent))
      await sleep(2)
    }
    expect(new Set((await Promise.all(responses)).map((result) => result.status))).toEqual(new Set([200]))
    await once(server.child, 'exit')
    agent.destroy()
  })
})
