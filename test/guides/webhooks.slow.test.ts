import { createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Webhook } from 'standardwebhooks'
import { describe, expect, it } from 'vitest'
import { newSigningSecret } from '../../src/gateway/webhooks/signature.ts'
import { end, freePort, hasEnded, ROOT } from '../support/processes.ts'
import { until } from '../support/wait.ts'
import { blockWith } from './guides.ts'
import { has, run } from './interpreters.ts'
import { NODE_SHOP, type Sample, saved, startSample } from './receivers.ts'

const TIMEOUT_MS = 180_000
const PAST_TOLERANCE_MS = 301_000

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
  compiled: {
    by: ['java', '-m', 'jdk.compiler/com.sun.tools.javac.Main', 'Receive.java'],
    command: () => ['java', 'Receive'],
  },
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
    if (it_.compiled) expect(await run(it_.compiled.by, folder, {})).toMatchObject({ code: 0 })
    const command = it_.compiled?.command ?? it_.command
    for (const [name, secret] of NOT_A_SECRET) {
      const port = await freePort()
      const { child, said } = await startSample({ ...it_, command }, folder, port, { WEBHOOK_SECRET: secret })
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
