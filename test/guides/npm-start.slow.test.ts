import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { createDemoCheckout, type Demo, type DemoCheckout } from '../support/demo-checkout.ts'
import { end, freePort, ROOT, startReading } from '../support/processes.ts'
import { basic } from '../support/tenants.ts'
import { until } from '../support/wait.ts'
import { blockWith, guideText } from './guides.ts'
import { NODE_SERVER, saveSample, startSample } from './receivers.ts'

const TIMEOUT_MS = 180_000

const printedLine = (said: string) => /^WEBHOOK_SECRET=.*$/m.exec(said)?.[0] ?? 'npm start prints no receiver'

/** Pastes the line that `npm start` prints into a terminal in the folder of the checkout. */
async function startReceiver(checkout: DemoCheckout, line: string) {
  const receiver = startReading('sh', ['-c', `exec env ${line}`], { cwd: checkout.folder })
  onTestFinished(() => void end(receiver.child))
  await until('the receiver listens', () => receiver.said().includes('Waiting for webhooks'))
  return receiver
}

// All tests share one npm start. The tests of its first webhook and of a restart are the first and the last.
describe('npm start', () => {
  let checkout: DemoCheckout
  let demo: Demo
  beforeAll(async () => {
    checkout = createDemoCheckout()
    demo = await checkout.start()
  }, TIMEOUT_MS)
  afterAll(() => checkout.remove())

  async function ops(...args: string[]) {
    const { code, stdout, stderr } = await checkout.ops(...args, '--json')
    if (code !== 0) throw new Error(stderr)
    return JSON.parse(stdout)
  }

  it('the receiver command that npm start prints shows the verified webhook of the first simulated payment', {
    timeout: TIMEOUT_MS,
  }, async () => {
    const line = printedLine(demo.said())
    const receiver = await startReceiver(checkout, line)
    const { orderId } = await demo.create({ order_id: 'first-1' })
    expect(await demo.simulate(orderId)).toBe(303)
    await until('the webhook was received', () => receiver.said().includes('"payment.succeeded"'))
    expect(receiver.said()).toContain(`msg_${orderId}_1 is valid`)
    expect(receiver.said()).toContain('"order_id": "first-1"')
    expect(receiver.said()).not.toContain('Rejected')

    const ping = await checkout.ops('webhooks', 'ping', '--endpoint', 'ep_demo')
    expect(ping).toMatchObject({ code: 0, stdout: expect.stringContaining('accepted the event: 204') })
    await until('the ping was received', () => receiver.said().includes('"ping"'))

    // A receiver with a wrong secret, on the port of the first one.
    await end(receiver.child)
    const misconfigured = await startReceiver(checkout, line.replace(/whsec_..../, 'whsec_AAAA'))
    const rejected = await checkout.ops('webhooks', 'ping', '--endpoint', 'ep_demo')
    expect(rejected).toMatchObject({ code: 1, stderr: expect.stringContaining('401: No matching signature found') })
    expect(misconfigured.said()).toContain('Rejected: No matching signature found')
  })

  it('server.mjs from the guide ships an order once, even if the customer closes the tab and webhooks are repeated and reordered', {
    timeout: TIMEOUT_MS,
  }, async () => {
    const port = await freePort()
    const url = `http://127.0.0.1:${port}/webhooks`
    const { id, secret } = await ops('webhooks', 'add', '--mid', demo.mid, '--url', url)
    const folder = saveSample(NODE_SERVER, demo.url)
    const environment = {
      BASE_URL: demo.url,
      MID: demo.mid,
      PUBLIC_KEY: demo.key.publicKey,
      SECRET_KEY: demo.key.secretKey,
      WEBHOOK_SECRET: secret,
    }
    const server = await startSample(NODE_SERVER, folder, port, environment)

    const bought = await fetch(`http://127.0.0.1:${port}/buy`, { redirect: 'manual' })
    expect(bought.status, await bought.text()).toBe(303)
    const orderId = bought.headers.get('location')?.split('/pay/')[1] as string
    // The customer pays at the second attempt, and no browser returns to the server.
    expect(await demo.simulate(orderId, 'FAIL')).toBe(303)
    expect(await demo.simulate(orderId, 'SUCCESS')).toBe(303)
    await until('the server ships', () => /Ship [0-9a-f-]{36}/.test(server.said()))
    await expect.poll(() => ordersIn(folder)).toMatch(/"sequence":2,"shipped":true/)

    await end(server.child, 'SIGKILL')
    const restarted = await startSample(NODE_SERVER, folder, port, environment)
    const resent = new Date()
    for (const sequence of [2, 1]) await ops('webhooks', 'resend', '--delivery', `${id}.${orderId}.${sequence}`)
    await until('both were redelivered', async () => {
      const deliveries: { id: string; deliveredAt: string | null }[] = await ops(
        'webhooks',
        'deliveries',
        '--mid',
        demo.mid,
      )
      const again = deliveries.filter((one) => one.id.startsWith(`${id}.`) && new Date(one.deliveredAt ?? 0) > resent)
      return again.length === 2
    })
    expect((server.said() + restarted.said()).match(/Ship [0-9a-f-]{36}/g)).toHaveLength(1)
    expect(ordersIn(folder)).toMatch(/"sequence":2,"shipped":true/)
    await ops('webhooks', 'disable', '--endpoint', id)
  })

  it('server.mjs from the guide listens on the port of the demo’s webhook endpoint, and can replace the demo’s receiver', {
    timeout: TIMEOUT_MS,
  }, async () => {
    const [, secret = '', port = ''] = /^WEBHOOK_SECRET=(\S+) PORT=(\d+) /m.exec(demo.said()) ?? []
    const atPort3000 = 3000 + Number(port) - Number(new URL(demo.url).port)
    const ports = guideText('merchant').matchAll(/(?:\bPORT\b[^\d\n]{1,6}|localhost:|127\.0\.0\.1:)(\d{4})\b/g)
    expect([...new Set(Array.from(ports, ([, written]) => Number(written)))]).toEqual([atPort3000])

    const server = await startSample(NODE_SERVER, saveSample(NODE_SERVER, demo.url), Number(port), {
      BASE_URL: demo.url,
      MID: demo.mid,
      PUBLIC_KEY: demo.key.publicKey,
      SECRET_KEY: demo.key.secretKey,
      WEBHOOK_SECRET: secret,
    })
    const bought = await fetch(`http://127.0.0.1:${port}/buy`, { redirect: 'manual' })
    const orderId = bought.headers.get('location')?.split('/pay/')[1] as string
    expect(await demo.simulate(orderId)).toBe(303)
    await until('the server ships', () => /Ship [0-9a-f-]{36}/.test(server.said()))
  })

  it('the guide shows a webhook with the fields of a real webhook', { timeout: TIMEOUT_MS }, async () => {
    const port = await freePort()
    const { id, secret } = await ops('webhooks', 'add', '--mid', demo.mid, '--url', `http://127.0.0.1:${port}/`)
    const receiver = startReading(process.execPath, ['src/dev/receive-webhooks.mjs'], {
      cwd: ROOT,
      env: { ...process.env, PORT: String(port), WEBHOOK_SECRET: secret },
    })
    onTestFinished(() => void end(receiver.child))
    const { orderId } = await demo.create({ order_id: 'shown-1' })
    expect(await demo.simulate(orderId)).toBe(303)
    const printed = () => /is valid:\n([\s\S]*?\n)\}/.exec(receiver.said())
    await until('the webhook was received', () => printed() !== null)
    const inGuide = JSON.parse(blockWith('merchant', 'json', 'payment.succeeded'))
    const real = JSON.parse(`${printed()?.[1]}}`)
    expect(shapeOf(real)).toEqual(shapeOf(inGuide))
    expect(real.data).toMatchObject({ amount: '200', order_id: 'shown-1', orderId, txnStatus: 'SUCCESS', sequence: 1 })
    // checkPaymentStatus returns the same.
    const checked = await fetch(`${demo.url}/v1/payments/checkPaymentStatus`, {
      method: 'POST',
      headers: { authorization: basic(demo.key) },
      body: new URLSearchParams({ mid: demo.mid, order_id: 'shown-1' }),
    })
    expect(await checked.json()).toMatchObject({ txnStatus: 'SUCCESS', data: { UTR: real.data.UTR } })
    await ops('webhooks', 'disable', '--endpoint', id)
  })

  it('npm start serves the operator console at the printed address, with the printed user name and password', {
    timeout: TIMEOUT_MS,
  }, async () => {
    const { url, key } = demo.console
    expect(demo.said()).toContain(`   ${url}   operator console`)
    const status = (authorization?: string) =>
      fetch(`${url}/`, { headers: authorization ? { authorization } : {} }).then((response) => response.status)
    await until('the console responds', () =>
      status().then(
        () => true,
        () => false,
      ),
    )
    expect([await status(), await status(basic(demo.key)), await status(basic(key))]).toEqual([401, 401, 200])
  })

  it('the demo retains its webhook secret and the state of its endpoint after a restart', {
    timeout: TIMEOUT_MS,
  }, async () => {
    const line = printedLine(demo.said())
    const port = Number(new URL(demo.url).port) + 3
    expect(line).toMatch(new RegExp(`^WEBHOOK_SECRET=whsec_\\S{44} PORT=${port} node src/dev/receive-webhooks.mjs$`))
    expect((await checkout.ops('webhooks', 'disable', '--endpoint', 'ep_demo')).code).toBe(0)
    expect(await end(demo.child)).toBe(0)
    await expect(fetch(demo.console.url)).rejects.toThrow()

    const second = await checkout.start()
    const secretOf = (text: string) => /whsec_\S+/.exec(text)?.[0]
    expect(secretOf(printedLine(second.said()))).toBe(secretOf(line))
    expect(second.console.key).toEqual(demo.console.key)
    const { stdout } = await checkout.ops('webhooks', 'list', '--json')
    const left = JSON.parse(stdout).find(({ id }: { id: string }) => id === 'ep_demo')
    expect(left).toMatchObject({ mid: second.mid, state: 'off: operator' })
    expect(await end(second.child)).toBe(0)
  })
})

/** The orders that server.mjs has stored. */
const ordersIn = (folder: string) => readFileSync(join(folder, 'orders.json'), 'utf8')

/** Names, types and order of the fields. */
function shapeOf(value: object): unknown {
  return Object.entries(value).map(([name, field]) => [name, typeof field === 'object' ? shapeOf(field) : typeof field])
}
