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
import { NODE_SERVER, type Sample, saveSample, startSample } from './receivers.ts'

const TIMEOUT_MS = 180_000
const PAST_TOLERANCE_MS = 301_000

const PHP: Sample = {
  name: 'PHP',
  files: { 'receive.php': blockWith('merchant', 'php', 'HTTP_WEBHOOK_ID') },
  command: (port) => ['php', '-S', `127.0.0.1:${port}`, 'receive.php'],
  isInstalled: has('php', { mustHave: true }),
}

const JAVA: Sample = {
  name: 'Java',
  files: { 'Receive.java': blockWith('merchant', 'java', 'isGenuine') },
  command: () => ['java', 'Receive.java'],
  compiled: {
    by: ['java', '-m', 'jdk.compiler/com.sun.tools.javac.Main', 'Receive.java'],
    command: () => ['java', 'Receive'],
  },
  // A JDK is too large to require for one sample.
  isInstalled: has('java', { mustHave: false }),
}

const PYTHON: Sample = {
  name: 'Python',
  files: { 'receive.py': blockWith('merchant', 'python', 'def is_genuine') },
  command: () => ['python3', 'receive.py'],
  isInstalled: has('python3', { mustHave: true }),
}

const NODE: Sample = {
  name: 'Node.js, receive.mjs',
  files: { 'receive.mjs': blockWith('merchant', 'js', '// receive.mjs') },
  command: () => [process.execPath, 'receive.mjs'],
  isInstalled: true,
}

const OF_NPM_START: Sample = {
  name: 'Node.js, the receiver of npm start',
  files: { 'receive.mjs': readFileSync(join(ROOT, 'src/dev/receive-webhooks.mjs'), 'utf8') },
  command: () => [process.execPath, 'receive.mjs'],
  isInstalled: true,
}

/** Values of WEBHOOK_SECRET that are missing, incomplete or placeholders. */
const NOT_A_SECRET: [name: string, secret: string][] = [
  ['unset', ''],
  ['the text of the guide', 'whsec_…'],
  ['three dots', 'whsec_...'],
  ['the prefix only', 'whsec_'],
  ['without the prefix', newSigningSecret().slice('whsec_'.length)],
  ['a default', 'changeme'],
  ['too short', `whsec_${Buffer.from('12345678').toString('base64')}`],
  ['the first half', newSigningSecret().slice(0, 24)],
]

/** Keys that a receiver without a check could derive from such a value. */
const keysOf = (secret: string) => [
  Buffer.alloc(0),
  Buffer.from(secret),
  Buffer.from(secret, 'base64'),
  Buffer.from(secret.slice('whsec_'.length)),
  Buffer.from(secret.slice('whsec_'.length), 'base64'),
]

/** The body of the webhook of a successful payment. */
const successOf = (order_id: string, amount: string) =>
  JSON.stringify({
    type: 'payment.succeeded',
    timestamp: new Date().toISOString(),
    data: { mid: 'M1', orderId: '0', order_id, txnStatus: 'SUCCESS', amount, UTR: '1', sequence: 1 },
  })

describe.each([NODE, NODE_SERVER, PYTHON, PHP, JAVA, OF_NPM_START])(
  'the receiver in $name',
  { timeout: TIMEOUT_MS },
  (sample) => {
    it.runIf(sample.isInstalled)(
      'the webhook receiver in the guide accepts genuine webhooks only',
      async ({ expect }) => {
        const secret = newSigningSecret()
        const port = await freePort()
        const { said } = await startSample(sample, saveSample(sample), port, { WEBHOOK_SECRET: secret })
        const body = successOf('चाय ☕', '588.82')
        const headersOf = (signedBy: string, at = new Date(), signed = body): Record<string, string> => ({
          'webhook-id': 'msg_1',
          'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
          'webhook-signature': new Webhook(signedBy).sign('msg_1', at, signed),
        })
        const send = async (headers: Record<string, string>, sent = body) => {
          const response = await fetch(`http://127.0.0.1:${port}/webhooks`, {
            method: 'POST',
            headers: { 'content-type': 'application/json', ...headers },
            body: sent,
          })
          return response.status
        }
        const good = headersOf(secret)
        const signature = good['webhook-signature'] as string
        const other = headersOf(newSigningSecret())['webhook-signature'] as string
        const ping = JSON.stringify({ type: 'ping', timestamp: new Date().toISOString(), data: { mid: 'M1' } })
        expect({
          genuine: await send(good),
          repeated: await send(good),
          'during a change of the secret': await send({ ...good, 'webhook-signature': `${other} ${signature}` }),
          ping: await send(headersOf(secret, new Date(), ping), ping),
        }).toEqual({ genuine: 204, repeated: 204, 'during a change of the secret': 204, ping: 204 })

        const ago = new Date(Date.now() - PAST_TOLERANCE_MS)
        // 30 s more, because a busy machine delays the request, which reduces the difference.
        const ahead = new Date(Date.now() + PAST_TOLERANCE_MS + 30_000)
        const forged: [string, Record<string, string>, string?][] = [
          ['another secret', headersOf(newSigningSecret())],
          ['another body', good, body.replace('588', '5888')],
          ['the same body, serialized again', good, JSON.stringify(JSON.parse(body), null, 1)],
          ['another id', { ...good, 'webhook-id': 'msg_2' }],
          ['an old copy', headersOf(secret, ago)],
          [
            'an old copy with a new timestamp',
            { ...headersOf(secret, ago), 'webhook-timestamp': good['webhook-timestamp'] as string },
          ],
          ['a timestamp in the future', headersOf(secret, ahead)],
          ['a timestamp that is no number', { ...good, 'webhook-timestamp': 'now' }],
          ['another scheme', { ...good, 'webhook-signature': signature.replace('v1,', 'v1a,') }],
          ['half a signature', { ...good, 'webhook-signature': signature.slice(0, 20) }],
          ['no signature', { 'webhook-id': 'msg_1', 'webhook-timestamp': good['webhook-timestamp'] as string }],
          ['no headers', {}],
        ]
        for (const [name, headers, sent] of forged) expect([name, await send(headers, sent)]).toEqual([name, 401])
        expect(said()).not.toContain('Ship')
      },
    )

    it.runIf(sample.isInstalled)(
      'the webhook receiver in the guide rejects every webhook if the receiver’s secret is incomplete',
      async ({ expect }) => {
        const body = successOf('forged', '200')
        // The server has stored the order as unpaid.
        const unpaid = { sequence: 0, shipped: false }
        const files = { ...sample.files, 'orders.json': JSON.stringify({ forged: unpaid }) }
        const folder = saveSample({ ...sample, files })
        if (sample.compiled) expect(await run(sample.compiled.by, folder, {})).toMatchObject({ code: 0 })
        const command = sample.compiled?.command ?? sample.command
        for (const [name, secret] of NOT_A_SECRET) {
          const port = await freePort()
          const { child, said } = await startSample({ ...sample, command }, folder, port, { WEBHOOK_SECRET: secret })
          if (!hasEnded(child)) {
            for (const key of keysOf(secret)) {
              const seconds = String(Math.floor(Date.now() / 1000))
              const hmac = createHmac('sha256', key).update(`msg_1.${seconds}.${body}`).digest('base64')
              const headers = {
                'webhook-id': 'msg_1',
                'webhook-timestamp': seconds,
                'webhook-signature': `v1,${hmac}`,
              }
              const response = await fetch(`http://127.0.0.1:${port}/webhooks`, {
                method: 'POST',
                headers,
                body,
              }).catch(() => undefined)
              expect([name, response?.status]).toEqual([name, 500])
            }
          }
          await end(child, 'SIGKILL')
          expect([name, said()]).toEqual([name, expect.stringContaining('Set WEBHOOK_SECRET')])
          expect([name, said()]).not.toEqual([name, expect.stringMatching(/Ship|payment\.succeeded|\n\s+at /)])
        }
      },
    )
  },
)

it('server.mjs from the guide does not ship an order for a refund webhook', { timeout: TIMEOUT_MS }, async () => {
  const [secret, port] = [newSigningSecret(), await freePort()]
  const files = { ...NODE_SERVER.files, 'orders.json': '{"1001":{"sequence":0,"shipped":false}}' }
  const { said } = await startSample(NODE_SERVER, saveSample({ ...NODE_SERVER, files }), port, {
    WEBHOOK_SECRET: secret,
  })
  const send = async (body: string) => {
    const [id, at] = ['msg_1', new Date()]
    const signed = { 'webhook-timestamp': `${Math.floor(at.getTime() / 1000)}`, 'webhook-id': id }
    const headers = { ...signed, 'webhook-signature': new Webhook(secret).sign(id, at, body) }
    return (await fetch(`http://127.0.0.1:${port}/webhooks`, { method: 'POST', headers, body })).status
  }
  const order = { mid: 'M1', orderId: '0', order_id: '1001' }
  const refund = { refundId: '9', refund_id: 'R1', txnStatus: 'SUCCESS', amount: '50', reference: '7', sequence: 2 }
  const refunded = { type: 'refund.succeeded', timestamp: new Date().toISOString(), data: { ...order, ...refund } }
  expect(await send(JSON.stringify(refunded))).toBe(204)
  expect(said()).not.toContain('Ship')
  // A webhook of the payment that arrives after the one of its partial refund.
  expect(await send(successOf('1001', '588.82'))).toBe(204)
  await until('the server ships', () => said().includes('Ship 1001'))
})
