import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { chmod } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Balancer, hasHaproxy, startHaproxy } from '../support/haproxy.ts'
import { type Answer, createHttpClient } from '../support/http-client.ts'
import { CREATE, refusal } from '../support/service.ts'

describe.skipIf(!hasHaproxy())('HAProxy’s own refusals are envelopes', () => {
  let balancer: Balancer
  /** An instance that is ready, and dies of every POST. */
  let instance: Server
  // On a connection that has served before, HAProxy says nothing, so that the client itself sends again.
  const client = createHttpClient({ keepAlive: false })
  const directory = mkdtempSync(join(tmpdir(), 'balancer-'))

  beforeAll(async () => {
    instance = createServer(({ method, socket }, response) => {
      if (method === 'POST') socket.destroy()
      // Without a length, which is how answers of the service are known, to be held against its documents.
      else response.writeHead(200, { 'transfer-encoding': 'chunked' }).end()
    })
    await once(instance.listen(0, '127.0.0.1'), 'listening')
    const { port } = instance.address() as AddressInfo
    // HAProxy may run as another user.
    await chmod(directory, 0o755)
    balancer = await startHaproxy(directory, { ports: [port] })
    await balancer.untilServe(1)
  })
  afterAll(async () => {
    await balancer?.stop()
    instance.closeAllConnections()
    rmSync(directory, { recursive: true })
  })

  const create = () => client.send(balancer.url, { method: 'POST', path: CREATE, body: 'mid=M1' })
  const headersOf = ({ headers }: Answer) =>
    (['content-type', 'cache-control', 'retry-after'] as const).map((name) => headers[name])

  it('HAProxy answers 502 in an envelope, which says that the request may have been done, when the instance died', async () => {
    const answer = await create()
    const msg = 'The answer was lost; send the same request again, or look up whether it was done'
    expect([answer.status, JSON.parse(answer.text)]).toEqual([502, refusal(502, msg)])
    expect(headersOf(answer)).toEqual(['application/json', 'no-store', undefined])
  })

  it('HAProxy answers 503 in an envelope with Retry-After while no instance is ready', async () => {
    instance.close()
    instance.closeAllConnections()
    await expect.poll(async () => (await create()).status, { timeout: 10_000 }).toBe(503)
    const answer = await create()
    expect(JSON.parse(answer.text)).toEqual(
      refusal(503, 'The service is briefly unavailable; repeat the request unchanged in a moment'),
    )
    expect(headersOf(answer)).toEqual(['application/json', 'no-store', '1'])
  })
})
