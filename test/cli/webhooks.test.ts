import { createSecretKey } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { setReturnUrlCallback } from '../../src/gateway/webhooks/endpoints.ts'
import { opsOn, runOps } from '../support/ops.ts'
import { createOrder, reportPayment } from '../support/orders.ts'
import { type Key, newMerchant, post, STATUS, startService, type TestService, unique } from '../support/service.ts'
import { until } from '../support/wait.ts'
import { type Receiver, startReceiver } from '../support/webhook-receiver.ts'
import { allow } from '../support/webhooks.ts'

const WEBHOOK_SEALING_KEY = Buffer.alloc(32, 7).toString('base64')
const SETTINGS = { WEBHOOK_SEALING_KEY, WEBHOOK_ALLOWED_NETWORKS: '127.0.0.1/32' }
const EVERY_SECRET = /whsec_[A-Za-z0-9+/=]{44}/

let service: TestService
let receiver: Receiver
let mid: string
let key: Key
let path: string
beforeAll(async () => {
  receiver = await startReceiver()
  const encryptionKeys = [createSecretKey(WEBHOOK_SEALING_KEY, 'base64')]
  const webhooks = { encryptionKeys, allowedNetworks: allow('127.0.0.1/32') }
  service = await startService({ webhooks, limits: { webhooks: { lookIntervalMs: 100 } } })
})
afterAll(() => receiver.close())
beforeEach(async () => {
  catchUp()
  ;({ mid, key } = await newMerchant(service.db))
  path = `/${unique('hook')}`
})

/** Moves the service’s clock to the machine’s time, which `ops` uses. */
const catchUp = () => service.clock.set(new Date().toISOString())

const { ops, json } = opsOn(() => service.databaseUrl, ['webhooks'], SETTINGS)

const url = () => `${receiver.url}${path}`
const add = (...more: string[]) => json('add', '--mid', mid, '--url', url(), ...more)

async function paidOrder(fields: Record<string, string> = {}): Promise<string> {
  const orderId = await createOrder(service, { mid, key }, fields)
  await reportPayment(service, orderId)
  return orderId
}

const received = (count: number) => until(`${count} came`, () => receiver.to(path).length === count)

describe('webhooks add', () => {
  it('webhooks add prints the signing secret once and stores the secret encrypted', async () => {
    const added = await add('--label', 'the shop in Pune')
    expect(added).toEqual({
      id: expect.stringMatching(/^ep_[0-9a-f]{16}$/),
      mid,
      url: url(),
      label: 'the shop in Pune',
      secret: expect.stringMatching(EVERY_SECRET),
    })
    const listed = await json('list', '--mid', mid)
    expect(listed).toEqual([expect.objectContaining({ id: added.id, mid, url: url(), state: 'on', waiting: 0 })])
    expect(JSON.stringify(listed)).not.toMatch(EVERY_SECRET)
    const { rows } = await service.db.query('select to_jsonb(e)::text as row from webhook_endpoints e where mid = $1', [
      mid,
    ])
    expect(rows[0].row).not.toContain(Buffer.from(added.secret).toString('hex'))
    expect(rows[0].row).not.toContain(added.secret)
  })

  it.each([
    ['without WEBHOOK_SEALING_KEY', { WEBHOOK_ALLOWED_NETWORKS: '127.0.0.1/32' }, 1, 'set WEBHOOK_SEALING_KEY'],
    ['for an http URL outside WEBHOOK_ALLOWED_NETWORKS', { WEBHOOK_SEALING_KEY }, 1, 'must be an https URL'],
  ])('webhooks add fails and adds nothing %s', async (_, settings, code, message) => {
    const rejected = await runOps(service.databaseUrl, ['webhooks', 'add', '--mid', mid, '--url', url()], '', settings)
    expect(rejected).toMatchObject({ code, stderr: expect.stringContaining(message) })
    expect(await json('list', '--mid', mid)).toEqual([])
  })

  it.each(['shop.example/hook', 'ftp://shop.example', 'https://user:word@shop.example/'])(
    'webhooks add rejects the URL %s',
    async (url) => {
      expect(await ops('add', '--mid', mid, '--url', url)).toMatchObject({
        code: 2,
        stderr: expect.stringContaining('--url must'),
      })
    },
  )
})

describe('webhook deliveries of a merchant', () => {
  it('webhooks ping sends a test event and prints the endpoint’s response', async () => {
    const { id } = await add()
    expect(await json('ping', '--endpoint', id)).toEqual({ id, outcome: '200', answer: 'thanks' })
    expect(JSON.parse(receiver.to(path)[0]?.body ?? '')).toMatchObject({ type: 'ping', data: { mid } })
    receiver.responses.set(path, (response) => response.writeHead(403).end('who are you?\u001b[2J'))
    expect(await ops('ping', '--endpoint', id)).toMatchObject({
      code: 1,
      stderr: `ops: ${url()} did not accept the event: 403: who are you? [2J\n`,
    })
  })

  it('webhooks deliveries --failed lists undelivered events, and webhooks resend redelivers one event or all events', async () => {
    const { id } = await add()
    receiver.responses.set(path, (response, count) => {
      response.writeHead(count <= 2 ? 503 : 200, { 'retry-after': '3600' }).end('later')
    })
    const orders = [await paidOrder(), await paidOrder()]
    await received(2)
    await until('both have failed', async () => (await json('deliveries', '--mid', mid, '--failed')).every(hasFailed))
    const failed = await json('deliveries', '--mid', mid, '--failed')
    expect(failed.map(({ orderId }: { orderId: string }) => orderId).toSorted()).toEqual(orders.toSorted())
    expect(failed[0]).toMatchObject({ type: 'payment.succeeded', state: 'waiting', attempts: 1, answer: 'later' })
    expect(await json('resend', '--delivery', failed[0].id)).toEqual({ resent: 1 })
    catchUp()
    await received(3)
    await until('the event is delivered', async () => (await json('deliveries', '--mid', mid, '--failed')).length === 1)
    const since = new Date(service.clock.now().getTime() - 60_000).toISOString()
    expect(await json('resend', '--mid', mid, '--since', since)).toEqual({ resent: 2 })
    catchUp()
    await received(5)
    await until(
      'all events are delivered',
      async () => (await json('deliveries', '--mid', mid, '--failed')).length === 0,
    )
    expect((await ops('deliveries', '--mid', mid)).stdout).toContain(id)
  }, 120_000)

  it('webhooks resend repeats return-URL callbacks, except for orders whose payment checkPaymentStatus has already returned', async () => {
    await setReturnUrlCallback(service.db, { mid, isOn: true, now: service.clock.now() })
    receiver.responses.set(path, (response) => response.writeHead(302, { location: '/' }).end())
    const orders = [await paidOrder({ redirect_url: url() }), await paidOrder({ redirect_url: url() })]
    expect((await post(service.app, STATUS, { mid, order_id: orders[0] as string }, key)).body.txnStatus).toBe(
      'SUCCESS',
    )
    await until(
      'one callback has failed',
      async () => (await json('deliveries', '--mid', mid, '--failed')).length === 1,
    )
    expect(await json('deliveries', '--mid', mid)).toContainEqual(
      expect.objectContaining({ orderId: orders[0], state: 'delivered', outcome: 'reported' }),
    )
    const since = new Date(service.clock.now().getTime() - 60_000).toISOString()
    expect(await json('resend', '--mid', mid, '--since', since)).toEqual({ resent: 1 })
    catchUp()
    await received(1)
    expect(
      (await runOps(service.databaseUrl, ['payments', 'show', '--order-id', orders[0] as string])).stdout,
    ).toContain('merchant received SUCCESS from checkPaymentStatus: no more return-URL callbacks')
  }, 120_000)

  it('webhooks disable stops deliveries to an endpoint, and webhooks enable resumes the deliveries', async () => {
    const { id } = await add()
    expect(await json('disable', '--endpoint', id)).toMatchObject({ id, state: 'off: operator' })
    await paidOrder()
    expect(await json('enable', '--endpoint', id)).toMatchObject({ id, state: 'on', disabledAt: null })
    const orderId = await paidOrder()
    await received(1)
    expect(receiver.to(path)[0]?.body).toContain(orderId)
  })

  it('webhooks rotate-secret prints a new secret, and then the service signs events with both secrets', async () => {
    const { id, secret } = await add()
    const rotated = await json('rotate-secret', '--endpoint', id)
    expect(rotated).toEqual({ id, mid, url: url(), label: null, secret: expect.stringMatching(EVERY_SECRET) })
    expect(rotated.secret).not.toBe(secret)
    await paidOrder()
    await received(1)
    expect(String(receiver.to(path)[0]?.headers['webhook-signature']).split(' ')).toHaveLength(2)
  })

  it.each([
    ['disable', '--endpoint', 'ep_0'],
    ['enable', '--endpoint', 'ep_0'],
    ['rotate-secret', '--endpoint', 'ep_0'],
    ['ping', '--endpoint', 'ep_0'],
    ['resend', '--delivery', `ep_0.${'0'.repeat(32)}.1`],
  ])('ops webhooks rejects an unknown endpoint or delivery: %s', async (...args) => {
    expect(await ops(...args)).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^ops: (webhook endpoint ep_0|the delivery) does not exist/),
    })
  })

  it.each([
    [['resend']],
    [['resend', '--mid', 'M1']],
    [['resend', '--delivery', 'ep_0']],
    [['resend', '--delivery', `ep_0.${'0'.repeat(32)}.1`, '--mid', 'M1']],
    [['deliveries', '--mid', 'M1', '--since', 'yesterday']],
  ])('ops webhooks rejects the arguments %j with usage and exit code 2', async (args) => {
    expect(await ops(...args)).toMatchObject({ code: 2, stderr: expect.stringContaining('usage:') })
  })
})

const hasFailed = ({ attempts }: { attempts: number }) => attempts > 0
