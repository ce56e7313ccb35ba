import { createHmac } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { newSigningSecret } from '../../src/webhooks/signature.ts'
import { createDemoCheckout, type Demo, type DemoCheckout } from '../support/demo-checkout.ts'
import { end, freePort, hasEnded, ROOT, startReading } from '../support/processes.ts'
import { basic } from '../support/tenants.ts'
import { until } from '../support/wait.ts'
import { blockWith, filledIn, guideText } from './guides.ts'
import { has } from './interpreters.ts'

const TIMEOUT_MS = 180_000
const PAST_TOLERANCE_MS = 301_000

type Sample = {
  name: string
  files: Record<string, string>
  command: (port: number) => [string, ...string[]]
  there: boolean
}

const NODE_SHOP: Sample = {
  name: 'Node.js',
  files: { 'shop.mjs': blockWith('merchant', 'js', "from 'standardwebhooks'") },
  command: () => [process.execPath, 'shop.mjs'],
  there: true,
}

const PHP: Sample = {
  name: 'PHP',
  files: { 'receive.php': blockWith('merchant', 'php', 'HTTP_WEBHOOK_ID') },
  command: (port) => ['php', '-S', `127.0.0.1:${port}`, 'receive.php'],
  there: has('php', { mustHave: true }),
}

const JAVA: Sample = {
  name: 'Java',
  files: { 'Receive.java': blockWith('merchant', 'java', 'isGenuine') },
  command: () => ['java', 'Receive.java'],
  // Too large to be installed for one sample.
  there: has('java', { mustHave: false }),
}

const PYTHON: Sample = {
  name: 'Python',
  files: { 'receive.py': blockWith('merchant', 'python', 'def is_genuine') },
  command: () => ['python3', 'receive.py'],
  there: has('python3', { mustHave: true }),
}

const OF_NPM_START: Sample = {
  name: 'Node.js, beside npm start',
  files: { 'receive.mjs': readFileSync(join(ROOT, 'src/dev/receive-webhooks.mjs'), 'utf8') },
  command: () => [process.execPath, 'receive.mjs'],
  there: true,
}

/** What stands in WEBHOOK_SECRET of somebody who has not yet set it, or not all of it. */
const NOT_A_SECRET: [name: string, secret: string][] = [
  ['unset', ''],
  ['the text of the guide', 'whsec_…'],
  ['the same, typed', 'whsec_...'],
  ['the beginning alone', 'whsec_'],
  ['without its beginning', newSigningSecret().slice('whsec_'.length)],
  ['another one', 'changeme'],
  ['too short', `whsec_${Buffer.from('12345678').toString('base64')}`],
  ['half of one', newSigningSecret().slice(0, 24)],
]

/** The bytes that a careless receiver may take for its key. */
const keysOf = (secret: string) => [
  Buffer.alloc(0),
  Buffer.from(secret),
  Buffer.from(secret, 'base64'),
  Buffer.from(secret.slice('whsec_'.length)),
  Buffer.from(secret.slice('whsec_'.length), 'base64'),
]

/** The folder of a reader who has saved the files, and has installed what they need. */
function saved({ files }: Sample, demoUrl = 'http://127.0.0.1:9'): string {
  const folder = mkdtempSync(join(tmpdir(), 'upi-payments-guides-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), filledIn(text, demoUrl))
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  return folder
}

/** Starts a sample on `port`, until something listens there or the sample has ended. */
async function startSample({ command }: Sample, folder: string, port: number, environment: Record<string, string>) {
  const [file, ...args] = command(port)
  const { child, said } = startReading(file, args, {
    cwd: folder,
    env: { ...process.env, PORT: String(port), NO_PROXY: '127.0.0.1', no_proxy: '127.0.0.1', ...environment },
  })
  onTestFinished(() => void end(child, 'SIGKILL'))
  const listens = () =>
    fetch(`http://127.0.0.1:${port}/webhooks`, { method: 'POST', body: '' }).then(
      () => true,
      () => false,
    )
  const isReady = async () => hasEnded(child) || (await listens())
  await until(`the sample listens: ${said()}`, isReady, { timeoutMs: 60_000 })
  return { child, said }
}

/** The body of the webhook that tells of a payment. */
const successOf = (order_id: string, amount: string) =>
  JSON.stringify({
    type: 'payment.succeeded',
    timestamp: new Date().toISOString(),
    data: { mid: 'M1', orderId: '0', order_id, txnStatus: 'SUCCESS', amount, UTR: '1', sequence: 1 },
  })

describe.each([NODE_SHOP, PYTHON, PHP, JAVA, OF_NPM_START])('the receiver in $name', { timeout: TIMEOUT_MS }, (it_) => {
  it.runIf(it_.there)('the guide’s webhook receiver accepts a genuine webhook, and no other', async ({ expect }) => {
    const secret = newSigningSecret()
    const port = await freePort()
    const { said } = await startSample(it_, saved(it_), port, { WEBHOOK_SECRET: secret })
    const body = successOf('चाय ☕', '588.82')
    const headersOf = (signedBy: string, at = new Date(), signed = body): Record<string, string> => ({
      'webhook-id': 'msg_1',
      'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
      'webhook-signature': new Webhook(signedBy).sign('msg_1', at, signed),
    })
    const send = async (headers: Record<string, string>, sent = body) => {
      const answer = await fetch(`http://127.0.0.1:${port}/webhooks`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: sent,
      })
      return answer.status
    }
    const good = headersOf(secret)
    const signature = good['webhook-signature'] as string
    const other = headersOf(newSigningSecret())['webhook-signature'] as string
    const ping = JSON.stringify({ type: 'ping', timestamp: new Date().toISOString(), data: { mid: 'M1' } })
    expect({
      genuine: await send(good),
      again: await send(good),
      'while the secret is changed': await send({ ...good, 'webhook-signature': `${other} ${signature}` }),
      ping: await send(headersOf(secret, new Date(), ping), ping),
    }).toEqual({ genuine: 204, again: 204, 'while the secret is changed': 204, ping: 204 })

    const ago = new Date(Date.now() - PAST_TOLERANCE_MS)
    // The machine may be busy for a second between here and there.
    const ahead = new Date(Date.now() + PAST_TOLERANCE_MS + 30_000)
    const refused: [string, Record<string, string>, string?][] = [
      ['another secret', headersOf(newSigningSecret())],
      ['another body', good, body.replace('588', '5888')],
      ['the same body, written anew', good, JSON.stringify(JSON.parse(body), null, 1)],
      ['another id', { ...good, 'webhook-id': 'msg_2' }],
      ['a copy of long ago', headersOf(secret, ago)],
      [
        'a copy of long ago with a new time',
        { ...headersOf(secret, ago), 'webhook-timestamp': good['webhook-timestamp'] as string },
      ],
      ['a time ahead of ours', headersOf(secret, ahead)],
      ['no time', { ...good, 'webhook-timestamp': 'now' }],
      ['another scheme', { ...good, 'webhook-signature': signature.replace('v1,', 'v1a,') }],
      ['half a signature', { ...good, 'webhook-signature': signature.slice(0, 20) }],
      ['no signature', { 'webhook-id': 'msg_1', 'webhook-timestamp': good['webhook-timestamp'] as string }],
      ['no header', {}],
    ]
    for (const [name, headers, sent] of refused) expect([name, await send(headers, sent)]).toEqual([name, 401])
    expect(said()).not.toContain('Ship')
  })

  it.runIf(it_.there)('a receiver with no secret, a placeholder or half a secret accepts none', async ({ expect }) => {
    const body = successOf('forged', '200')
    // The order waits in the shop's books.
    const waits = { sequence: 0, shipped: false }
    const files = { ...it_.files, 'orders.json': JSON.stringify({ forged: waits }) }
    const folder = saved({ ...it_, files })
    for (const [name, secret] of NOT_A_SECRET) {
      const port = await freePort()
      const { child, said } = await startSample(it_, folder, port, { WEBHOOK_SECRET: secret })
      if (!hasEnded(child)) {
        for (const key of keysOf(secret)) {
          const seconds = String(Math.floor(Date.now() / 1000))
          const hmac = createHmac('sha256', key).update(`msg_1.${seconds}.${body}`).digest('base64')
          const headers = {
            'webhook-id': 'msg_1',
            'webhook-timestamp': seconds,
            'webhook-signature': `v1,${hmac}`,
          }
          const answer = await fetch(`http://127.0.0.1:${port}/webhooks`, { method: 'POST', headers, body }).catch(
            () => undefined,
          )
          expect([name, answer?.status]).toEqual([name, 500])
        }
      }
      await end(child, 'SIGKILL')
      expect([name, said()]).toEqual([name, expect.stringContaining('Set WEBHOOK_SECRET')])
      expect([name, said()]).not.toEqual([name, expect.stringMatching(/Ship|payment\.succeeded|\n\s+at /)])
    }
  })
})

it('the guide’s shop takes no refund webhook for a payment of its order', { timeout: TIMEOUT_MS }, async () => {
  const [secret, port] = [newSigningSecret(), await freePort()]
  const files = { ...NODE_SHOP.files, 'orders.json': '{"1001":{"sequence":0,"shipped":false}}' }
  const { said } = await startSample(NODE_SHOP, saved({ ...NODE_SHOP, files }), port, { WEBHOOK_SECRET: secret })
  const hear = async (body: string) => {
    const [id, at] = ['msg_1', new Date()]
    const signed = { 'webhook-timestamp': `${Math.floor(at.getTime() / 1000)}`, 'webhook-id': id }
    const headers = { ...signed, 'webhook-signature': new Webhook(secret).sign(id, at, body) }
    return (await fetch(`http://127.0.0.1:${port}/webhooks`, { method: 'POST', headers, body })).status
  }
  const order = { mid: 'M1', orderId: '0', order_id: '1001' }
  const refund = { refundId: '9', refund_id: 'R1', txnStatus: 'SUCCESS', amount: '50', reference: '7', sequence: 2 }
  const refunded = { type: 'refund.succeeded', timestamp: new Date().toISOString(), data: { ...order, ...refund } }
  expect(await hear(JSON.stringify(refunded))).toBe(204)
  expect(said()).not.toContain('Ship')
  // It comes later than the refund, which was not of the whole order.
  expect(await hear(successOf('1001', '588.82'))).toBe(204)
  await until('the shop ships', () => said().includes('Ship 1001'))
})

describe('a shop of the guide, of a real npm start', () => {
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

  it('the guide’s shop sees a payment made with the tab closed, and ships once although webhooks repeat and delay', {
    timeout: TIMEOUT_MS,
  }, async () => {
    const port = await freePort()
    const url = `http://127.0.0.1:${port}/webhooks`
    const { id, secret } = await ops('webhooks', 'add', '--mid', demo.mid, '--url', url)
    const folder = saved(NODE_SHOP, demo.url)
    const environment = {
      BASE_URL: demo.url,
      MID: demo.mid,
      PUBLIC_KEY: demo.key.publicKey,
      SECRET_KEY: demo.key.secretKey,
      WEBHOOK_SECRET: secret,
    }
    const shop = await startSample(NODE_SHOP, folder, port, environment)

    const bought = await fetch(`http://127.0.0.1:${port}/buy`, { redirect: 'manual' })
    expect(bought.status, await bought.text()).toBe(303)
    const orderId = bought.headers.get('location')?.split('/pay/')[1] as string
    // The customer pays on the phone at the second attempt. No browser is open, nobody comes back.
    expect(await demo.simulate(orderId, 'FAIL')).toBe(303)
    expect(await demo.simulate(orderId, 'SUCCESS')).toBe(303)
    await until('the shop ships', () => /Ship shop-\d+/.test(shop.said()))
    await expect.poll(() => recordOf(folder)).toMatch(/"sequence":2,"shipped":true/)

    await end(shop.child, 'SIGKILL')
    const restarted = await startSample(NODE_SHOP, folder, port, environment)
    const resent = new Date()
    for (const sequence of [2, 1]) await ops('webhooks', 'resend', '--delivery', `${id}.${orderId}.${sequence}`)
    await until('both have come again', async () => {
      const deliveries: { id: string; deliveredAt: string | null }[] = await ops(
        'webhooks',
        'deliveries',
        '--mid',
        demo.mid,
      )
      const again = deliveries.filter((one) => one.id.startsWith(`${id}.`) && new Date(one.deliveredAt ?? 0) > resent)
      return again.length === 2
    })
    expect((shop.said() + restarted.said()).match(/Ship shop-\d+/g)).toHaveLength(1)
    expect(recordOf(folder)).toMatch(/"sequence":2,"shipped":true/)
    await ops('webhooks', 'disable', '--endpoint', id)
  })

  it('the guide’s shop listens on the port that the demo names, and can replace the demo’s receiver', {
    timeout: TIMEOUT_MS,
  }, async () => {
    const [, secret = '', port = ''] = /^WEBHOOK_SECRET=(\S+) PORT=(\d+) /m.exec(demo.said()) ?? []
    const atPort3000 = 3000 + Number(port) - Number(new URL(demo.url).port)
    const ports = guideText('merchant').matchAll(/(?:\bPORT\b[^\d\n]{1,6}|localhost:|127\.0\.0\.1:)(\d{4})\b/g)
    expect([...new Set(Array.from(ports, ([, written]) => Number(written)))]).toEqual([atPort3000])

    const shop = await startSample(NODE_SHOP, saved(NODE_SHOP, demo.url), Number(port), {
      BASE_URL: demo.url,
      MID: demo.mid,
      PUBLIC_KEY: demo.key.publicKey,
      SECRET_KEY: demo.key.secretKey,
      WEBHOOK_SECRET: secret,
    })
    const bought = await fetch(`http://127.0.0.1:${port}/buy`, { redirect: 'manual' })
    const orderId = bought.headers.get('location')?.split('/pay/')[1] as string
    expect(await demo.simulate(orderId)).toBe(303)
    await until('the shop ships', () => /Ship shop-\d+/.test(shop.said()))
  })

  it('the guide’s shop gets the webhook body of the guide, field by field', { timeout: TIMEOUT_MS }, async () => {
    const port = await freePort()
    const { id, secret } = await ops('webhooks', 'add', '--mid', demo.mid, '--url', `http://127.0.0.1:${port}/`)
    const receiver = startReading(process.execPath, ['src/dev/receive-webhooks.mjs'], {
      cwd: ROOT,
      env: { ...process.env, PORT: String(port), WEBHOOK_SECRET: secret },
    })
    onTestFinished(() => void end(receiver.child))
    const { orderId } = await demo.create({ order_id: 'shown-1' })
    expect(await demo.simulate(orderId)).toBe(303)
    const printed = () => /is genuine:\n([\s\S]*?\n)\}/.exec(receiver.said())
    await until('it has come', () => printed() !== null)
    const shown = JSON.parse(blockWith('merchant', 'json', 'payment.succeeded'))
    const real = JSON.parse(`${printed()?.[1]}}`)
    expect(shapeOf(real)).toEqual(shapeOf(shown))
    expect(real.data).toMatchObject({ amount: '200', order_id: 'shown-1', orderId, txnStatus: 'SUCCESS', sequence: 1 })
    // checkPaymentStatus remains, and says the same.
    const asked = await fetch(`${demo.url}/v1/payments/checkPaymentStatus`, {
      method: 'POST',
      headers: { authorization: basic(demo.key) },
      body: new URLSearchParams({ mid: demo.mid, order_id: 'shown-1' }),
    })
    expect(await asked.json()).toMatchObject({ txnStatus: 'SUCCESS', data: { UTR: real.data.UTR } })
    await ops('webhooks', 'disable', '--endpoint', id)
  })
})

/** The shop's own books. */
const recordOf = (folder: string) => readFileSync(join(folder, 'orders.json'), 'utf8')

/** Names, kinds and order of the fields. */
function shapeOf(value: object): unknown {
  return Object.entries(value).map(([name, field]) => [name, typeof field === 'object' ? shapeOf(field) : typeof field])
}
