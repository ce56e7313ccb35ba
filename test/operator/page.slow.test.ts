import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { browserPath, useCheckout, violations } from '../support/browser.ts'
import { makeOrders, startPage } from '../support/operator-page.ts'
import { type ServerProcess, startServerProcess } from '../support/server-process.ts'
import { newMerchant, startService } from '../support/service.ts'

/** For a busy machine. On an idle one, each test takes a few seconds. */
const SLOW_MS = 240_000

describe('the operator port of a running service', () => {
  let databaseUrl: string
  let server: ServerProcess
  beforeAll(async () => {
    ;({ databaseUrl } = await startService())
    server = await startServerProcess(databaseUrl)
  })
  afterAll(() => server.stop())

  it('the operator port serves the dashboard and metrics, and the public port serves neither', async () => {
    const response = await fetch(`${server.opsUrl}/`)
    expect([response.status, (await response.text()).includes('<h1>Today</h1>')]).toEqual([200, true])
    expect((await fetch(`${server.opsUrl}/docs/operator.css`)).status).toBe(200)
    expect(await (await fetch(`${server.url}/`)).text()).not.toContain('<h1>Today</h1>')
    expect((await fetch(`${server.url}/metrics`)).status).toBe(404)
    const metrics = await (await fetch(`${server.opsUrl}/metrics`)).text()
    expect(metrics).toContain('payment_exceptions_open{age="over 2 days"} 0')
  })

  const PATHS = ['/', '/metrics', '/docs', '/docs/setu', '/docs/guide.css', '/nothing-is-here']

  it('the operator port rejects every path under a foreign Host, to prevent DNS rebinding', async () => {
    for (const path of PATHS) {
      const { status, text } = await send(server, path, { host: 'rebind.evil.example:3001' })
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

const SCREENS = [
  { width: 320, colorScheme: 'light' },
  { width: 390, colorScheme: 'dark' },
  { width: 1280, colorScheme: 'dark' },
  { width: 1920, colorScheme: 'light' },
] as const

describe.runIf(browserPath)('the operator dashboard in a browser', () => {
  const origins: string[] = []
  const checkout = useCheckout({ origins })
  let operators: FastifyInstance
  let url: string
  beforeAll(async () => {
    await makeOrders(checkout.service)
    await checkout.service.db.query(
      `insert into webhook_endpoints (mid, endpoint_id, kind, url, secret, created_at, failing_since)
       select mid, 'ep_0123456789abcdef', 'webhook', 'https://canaryhook.example/', '\\x00', now(), now() from merchants`,
    )
    // The longest kind and the longest mid are the widest table row.
    const { mid } = await newMerchant(checkout.service.db, { mid: 'M'.repeat(64) })
    await checkout.service.db.query(
      `insert into payment_exceptions (mid, order_id, kind, utr, amount_paise, status, received_at)
       values ($1, $2, 'refunded above what was paid', 'U1', 49999999, 'SUCCESS', now())`,
      [mid, '0'.repeat(32)],
    )
    operators = await startPage(checkout.service)
    url = await operators.listen({ host: '127.0.0.1', port: 0 })
    origins.push(url)
  })
  afterAll(() => operators.close())

  it.each(SCREENS)(
    'the operator dashboard fits $width pixels without axe violations in $colorScheme mode',
    { timeout: SLOW_MS },
    async ({ width, colorScheme }) => {
      const tab = await checkout.openTab({ viewport: { width, height: 844 }, colorScheme })
      await tab.goto(`${url}/?refresh=off`)
      await tab.evaluate('for (const folded of document.querySelectorAll("details")) folded.open = true')
      expect(await tab.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width)
      expect(await violations(tab)).toEqual([])
      const ground = await tab.evaluate('getComputedStyle(document.body).backgroundColor')
      expect(ground).toBe(colorScheme === 'dark' ? 'rgb(13, 15, 26)' : 'rgb(255, 255, 255)')
      const plot = await tab.getByRole('img', { name: /^Orders of the last 30 days/ }).boundingBox()
      expect([plot?.height, (plot?.width ?? 0) > Math.min(width, 1280) / 3]).toEqual([144, true])
      // The tables of open tasks fit without scrolling, and come first.
      const cut = '[...document.querySelectorAll(".needs .table")].map((one) => one.scrollWidth - one.clientWidth)'
      expect(await tab.evaluate(cut)).toEqual([0, 0])
      const boxOf = async (name: string) => {
        const box = await tab.getByRole('region', { name, exact: true }).boundingBox()
        return box ?? expect.fail(`${name} is not shown`)
      }
      const [needs, orders] = [await boxOf('Needs attention'), await boxOf('Orders created today')]
      const isBeside = orders.x >= needs.x + needs.width && orders.y === needs.y
      expect([isBeside, isBeside || orders.y >= needs.y + needs.height]).toEqual([width === 1920, true])
      const right = await tab.evaluate(
        'Math.max(...[...document.querySelectorAll("main section")].map((one) => one.getBoundingClientRect().right))',
      )
      expect(right as number).toBeGreaterThan(width - 50)
    },
  )

  it('the operator dashboard works without JavaScript', { timeout: SLOW_MS }, async () => {
    const tab = await checkout.openTab({ javaScriptEnabled: false })
    await tab.goto(url)
    const days = tab.locator('figure', { hasText: 'not paid' }).last()
    await days.getByText('Show as a table').click()
    expect(await days.getByRole('row', { name: /^2026-03-31 4 2 66\.6 % ₹750$/ }).isVisible()).toBe(true)
    await tab.getByRole('link', { name: 'Operator manual' }).click()
    await tab.getByRole('heading', { name: 'Operator documentation', level: 1 }).waitFor()
  })
})
