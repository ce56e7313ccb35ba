import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ServerProcess, startServerProcess } from '../support/server-process.ts'
import { startService } from '../support/service.ts'

describe('the operator port of a running service', () => {
  let databaseUrl: string
  let server: ServerProcess
  beforeAll(async () => {
    ;({ databaseUrl } = await startService())
    server = await startServerProcess(databaseUrl)
  })
  afterAll(() => server.stop())

  it('the operator port serves links and metrics, and the public port serves neither', async () => {
    const response = await fetch(`${server.opsUrl}/`)
    expect([response.status, (await response.text()).includes('<h1>Operator</h1>')]).toEqual([200, true])
    expect((await fetch(`${server.opsUrl}/docs/guide.css`)).status).toBe(200)
    expect(await (await fetch(`${server.url}/`)).text()).not.toContain('<h1>Operator</h1>')
    expect((await fetch(`${server.url}/metrics`)).status).toBe(404)
    const metrics = await (await fetch(`${server.opsUrl}/metrics`)).text()
    expect(metrics).toContain('payment_exceptions_open{age="over 2 days"} 0')
  })

  const PATHS = ['/', '/metrics', '/docs', '/docs/acquirers/setu', '/docs/guide.css', '/nothing-is-here']

  it('the operator port rejects every path under a foreign Host, to prevent DNS rebinding', async () => {
    for (const path of PATHS) {
      const { status, text } = await send(server, path, { host: 'rebind.evil.example:3001', accept: 'text/html' })
      expect([path, status, text.includes('<h1>Access denied</h1>')]).toEqual([path, 403, true])
      expect(text).not.toMatch(/http_request_duration_seconds|ops merchants/)
    }
  })

  it('the operator port requires the password on every path if OPS_PASSWORD is set', async () => {
    const OPS_PASSWORD = 'correct-horse-battery'
    const locked = await startServerProcess(databaseUrl, { OPS_PASSWORD })
    for (const path of PATHS) {
      const { status, challenge } = await send(locked, path)
      expect([path, status, challenge]).toEqual([path, 401, 'Basic realm="operator", charset="UTF-8"'])
    }
    const authorization = `Basic ${Buffer.from(`ops:${OPS_PASSWORD}`).toString('base64')}`
    expect(await send(locked, '/metrics', { authorization, host: 'pay.example' })).toMatchObject({ status: 200 })
    await locked.stop()
  })

  it('the operator port sends its errors as envelopes, and as pages to a browser', async () => {
    for (const [path, init, status] of [
      ['/nothing-is-here', {}, 404],
      ['/docs/operator/nothing-is-here', {}, 404],
      ['/metrics', { method: 'POST' }, 405],
      ['/%zz', {}, 400],
    ] as const) {
      const response = await fetch(`${server.opsUrl}${path}`, init)
      expect([path, response.status, response.headers.get('content-type')]).toEqual([
        path,
        status,
        'application/json; charset=utf-8',
      ])
      expect(await response.json()).toEqual({ status: false, statusCode: status, msg: expect.any(String) })
    }
    const foreign = await send(server, '/', { host: 'rebind.evil.example:3001' })
    expect(JSON.parse(foreign.text)).toMatchObject({ status: false, statusCode: 403 })
    const page = await fetch(`${server.opsUrl}/docs/operator/nothing-is-here`, { headers: { accept: 'text/html' } })
    expect([page.status, await page.text()]).toEqual([404, expect.stringContaining('<h1>Page not found</h1>')])
  })

  it('both ports reject two Host headers with 400', async () => {
    for (const port of [server.port, server.opsPort]) {
      const socket = connect(port, '127.0.0.1')
      socket.end('GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n')
      expect(await text(socket)).toMatch(/^HTTP\/1\.1 400 .*"statusCode":400/s)
    }
  })

  it('both ports have their documentation ready, compressed, before they respond', async () => {
    const fresh = await startServerProcess(databaseUrl)
    for (const url of [
      `${fresh.url}/docs/search.json`,
      `${fresh.opsUrl}/docs/search.json`,
      `${fresh.url}/openapi.json`,
    ]) {
      const response = await fetch(url, { headers: { 'accept-encoding': 'br' } })
      expect([response.status, response.headers.get('content-encoding')]).toEqual([200, 'br'])
      expect(await response.json()).toBeTruthy()
    }
    await fresh.stop()
  })

  it('the operator port responds while 200 connections hold incomplete requests', async () => {
    const beginnings = ['', 'GET', 'GET /metrics HTTP/1.1\r\nHost: localhost\r\n']
    const halfOpen = await Promise.all(
      Array.from({ length: 200 }, async (_, index) => {
        const socket = connect(server.opsPort, '127.0.0.1')
        socket.on('error', () => undefined)
        await once(socket, 'connect')
        socket.write(beginnings[index % beginnings.length] ?? '')
        return socket
      }),
    )
    try {
      for (const path of ['/metrics', '/']) expect((await send(server, path)).status).toBe(200)
    } finally {
      for (const socket of halfOpen) socket.destroy()
    }
  })
})

/** Sends a request on its own connection. */
async function send({ opsPort: port }: ServerProcess, path: string, headers: Record<string, string> = {}) {
  const request = get({ host: '127.0.0.1', port, path, headers, agent: false })
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  let text = ''
  for await (const chunk of response.setEncoding('utf8')) text += chunk
  return { status: response.statusCode, challenge: response.headers['www-authenticate'], text }
}
