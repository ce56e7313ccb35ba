import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { chmod } from 'node:fs/promises'
import { createServer, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { mintKeyPair } from '../../src/gateway/tenants/credentials.ts'
import { type Balancer, HAPROXY_CONFIG, hasHaproxy, startHaproxy } from '../support/haproxy.ts'
import { createHttpClient, type HttpResponse, tally } from '../support/http-client.ts'
import { findSystemProgram, runToEnd } from '../support/processes.ts'
import { CREATE, errorResponse } from '../support/service.ts'

describe.skipIf(!hasHaproxy())('HAProxy’s own error responses', () => {
  let balancer: Balancer
  /** An instance that is ready and closes the connection on every POST. */
  let instance: Server
  // On a reused connection, HAProxy closes without a response, so that the client itself retries.
  const client = createHttpClient({ keepAlive: false })
  const directory = mkdtempSync(join(tmpdir(), 'balancer-'))

  beforeAll(async () => {
    instance = createServer(({ method, socket }, response) => {
      if (method === 'POST') socket.destroy()
      // Without a length, because responses with a length are treated as the service's own and compared with its
      // documents.
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
  const headersOf = ({ headers }: HttpResponse) =>
    ['content-type', 'cache-control', 'retry-after', 'x-error-code'].map((name) => headers[name])

  it('HAProxy returns 502 in an envelope that states that the request may have been processed, if the instance dies', async () => {
    const result = await create()
    const msg = 'The response was lost. Send the same request again, or check whether it was processed.'
    expect([result.status, JSON.parse(result.text)]).toEqual([502, errorResponse(502, msg)])
    expect(headersOf(result)).toEqual(['application/json', 'no-store', undefined, 'response_lost'])
  })

  // The headers arrive first, because HAProxy 2.6 returns its own HTML for headers that are invalid or late.
  it.each([
    [400, 'invalid_http', 'Transfer-Encoding: chunked', 'zz\r\n'],
    [408, 'request_timeout', 'Content-Length: 9', 'mid='],
  ])(
    'HAProxy returns %i in an envelope with the code %s for a body that is invalid or late',
    async (status, code, header, body) => {
      const socket = connect(Number(new URL(balancer.url).port), '127.0.0.1').setEncoding('utf8')
      const closed = once(socket, 'close')
      let text = ''
      socket.on('data', (part) => {
        text += part
      })
      socket.write(`POST ${CREATE} HTTP/1.1\r\nHost: x\r\n${header}\r\n\r\n`)
      await sleep(300)
      socket.write(body)
      await closed
      const [head = '', json = ''] = text.split('\r\n\r\n')
      expect(head).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
      expect(`${head}\r\n`).toContain(`\r\nx-error-code: ${code}\r\n`)
      expect(JSON.parse(json)).toEqual(errorResponse(status, expect.any(String)))
    },
  )

  it('HAProxy returns 503 in an envelope with Retry-After while no instance is ready', async () => {
    instance.close()
    instance.closeAllConnections()
    await expect.poll(async () => (await create()).status, { timeout: 10_000 }).toBe(503)
    const result = await create()
    expect(JSON.parse(result.text)).toEqual(
      errorResponse(
        503,
        'The service is temporarily unavailable. Repeat the request unchanged after Retry-After seconds.',
      ),
    )
    expect(headersOf(result)).toEqual(['application/json', 'no-store', '1', 'unavailable'])
  })
})

describe.skipIf(!hasHaproxy())('the delivered haproxy.cfg', () => {
  let balancer: Balancer
  /** Responses that the instance delays until the test sends them. */
  const delayed: ServerResponse[] = []
  const instance = createServer((request, response) => {
    if (request.method === 'POST') delayed.push(response)
    else response.writeHead(200, { 'transfer-encoding': 'chunked' }).end()
  })
  const directory = mkdtempSync(join(tmpdir(), 'balancer-'))
  const client = createHttpClient()

  beforeAll(async () => {
    await once(instance.listen(0, '127.0.0.1'), 'listening')
    const { port } = instance.address() as AddressInfo
    await chmod(directory, 0o755)
    balancer = await startHaproxy(directory, { ports: [port], opsPort: port })
    await balancer.untilServe(1)
  })
  afterAll(async () => {
    client.close()
    await balancer?.stop()
    instance.closeAllConnections()
    instance.close()
    rmSync(directory, { recursive: true })
  })

  it.each([
    ['on a host, where no variable is set', {}],
    [
      'in compose',
      { INSTANCES: 'api', PORT: '3000', OPS_HOST: '0.0.0.0', OPS_PORT: '3001', TRUST_PROXY: '10.0.0.0/8 192.0.2.1' },
    ],
  ])('the delivered haproxy.cfg passes haproxy -c without a warning %s', async (_where, variables) => {
    const env = { PATH: process.env.PATH, ...variables }
    const checked = await runToEnd(findSystemProgram('haproxy') as string, ['-c', '-f', HAPROXY_CONFIG], { env })
    expect(checked).toMatchObject({ code: 0, stderr: expect.not.stringMatching(/ALERT|WARNING/) })
  })

  it('HAProxy serves the operator port on 127.0.0.1 only', async () => {
    const page = { method: 'GET', path: '/' } as const
    expect(await client.send(balancer.opsUrl, page)).toMatchObject({ status: 200 })
    const elsewhere = balancer.opsUrl.replace('127.0.0.1', '127.0.0.2')
    expect(await client.send(elsewhere, page)).toMatchObject({
      status: undefined,
      fault: expect.stringContaining('ECONNREFUSED'),
    })
  })

  it('HAProxy forwards 20 concurrent requests with one credential, however the credential is encoded', async () => {
    const { publicKey, secretKey } = mintKeyPair()
    const encoded = Buffer.from(`${publicKey}:${secretKey}`).toString('base64').replace(/=+$/, '')
    const last = BASE64.indexOf(encoded.slice(-1))
    const forms = Array.from({ length: 60 }, (_, n) => {
      const scheme = [...'basic'].map((letter, bit) => (n & (1 << bit) ? letter.toUpperCase() : letter)).join('')
      const unusedBits = `${encoded.slice(0, -1)}${BASE64[last + (n % 4)]}`
      const form = [
        encoded,
        unusedBits,
        `${unusedBits}${'='.repeat(n)}`,
        unusedBits.replaceAll('+', '-').replaceAll('/', '_'),
        `${unusedBits.slice(0, n)}${'.~'.repeat(n)}${unusedBits.slice(n)}`,
      ][n % 5]
      return `${scheme} ${form}`
    })
    // The service accepts each of these forms. Of two headers, Node.js reads the first.
    for (const form of forms) {
      expect(Buffer.from(form.slice(6), 'base64').toString()).toBe(`${publicKey}:${secretKey}`)
    }
    const send = (form: string, n: number) =>
      client.send(balancer.url, {
        method: 'POST',
        path: CREATE,
        headers: { Authorization: n % 2 ? [form, `Basic ${n}`] : form },
        body: 'mid=M1',
      })
    const sent = forms.map(send)
    await expect.poll(() => delayed.length).toBe(20)
    // Rejected requests wait 1.5 s for their response.
    const rejected = await Promise.race(sent)
    expect([rejected.status, rejected.headers['x-error-code']]).toEqual([429, 'too_many_concurrent_requests'])
    for (const response of delayed) response.writeHead(200, { 'transfer-encoding': 'chunked' }).end()
    expect(tally(await Promise.all(sent))).toBe('200 × 20, 429 × 40')
  })
})

const BASE64 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
