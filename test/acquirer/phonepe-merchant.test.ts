import { afterAll, expect, it, vi } from 'vitest'
import { RIGHTS } from '../../src/platform/rights.ts'
import { PHONEPE, PHONEPE_SECRETS, phonepeSettings } from '../support/fake-phonepe.ts'
import { opsOn, runOps } from '../support/ops.ts'
import { startFakePhonepe } from '../support/phonepe-bank.ts'
import { departure } from '../support/phonepe-schema.ts'
import { CREATE, intentFields, newKey, post, REFUND, REFUND_STATUS, STATUS } from '../support/service.ts'
import { startBank, startServiceBeside } from '../support/service-with-bank.ts'
import { untilBlocked } from '../support/wait.ts'
import { startReceiver } from '../support/webhook-receiver.ts'
import { allow, ENCRYPTION_KEYS, newWebhook } from '../support/webhooks.ts'

const receiver = await startReceiver()
const { service, bank } = await startServiceBeside(PHONEPE, {
  asServiceRole: true,
  webhooks: { encryptionKeys: ENCRYPTION_KEYS, allowedNetworks: allow('127.0.0.1/32') },
  limits: { webhooks: { lookIntervalMs: 100 }, lookUps: { cachedMs: 20 } },
})
afterAll(() => receiver.close())

/** Runs commands as an operator would, with PhonePe's settings in the environment. */
const commands = (changes: Record<string, string> = {}) => {
  const { apiUrl, loginUrl, clientId, clientVersion, clientSecret } = phonepeSettings(bank)
  return opsOn(() => service.databaseUrl, [], {
    PHONEPE_API_URL: apiUrl,
    PHONEPE_LOGIN_URL: loginUrl,
    PHONEPE_CLIENT_ID: clientId,
    PHONEPE_CLIENT_VERSION: clientVersion,
    PHONEPE_CLIENT_SECRET: clientSecret,
    PHONEPE_WEBHOOK_USER: 'user_1',
    PHONEPE_WEBHOOK_PASSWORD: 'Passw0rd9',
    ...changes,
  })
}

const of = (mid: string, payee: string) => ['--mid', mid, '--acquirer', 'phonepe', '--payee', payee]

async function newMerchantByHand() {
  const { json } = commands()
  const names = ['--name', 'Chai Point', '--vpa', 'chaipoint@examplebank', '--mcc', '5814']
  const { mid } = await json('merchants', 'add', ...names, ...of('CHAI', 'DEMOMERCHANTONLINE@ybl').slice(2))
  await newWebhook(service.db, { mid, url: `${receiver.url}/${mid}` }, service.clock.now())
  return { mid, key: await newKey(service.db, { mid }, RIGHTS) }
}

const notified = (mid: string) => receiver.to(`/${mid}`).map(({ body }) => JSON.parse(body).type)

it('the service processes a PhonePe merchant’s payment, webhooks and partial refund', async () => {
  const { mid, key } = await newMerchantByHand()

  const { body } = await post(service.app, CREATE, intentFields(mid, { amount: '588', order_id: 'SHOP-1' }), key)
  const { orderId } = body.data
  const page = await service.app.inject(`/pay/${orderId}`)
  expect(page.body).toContain('DEMOMERCHANTONLINE@ybl')

  const { payment, responses } = await bank.pay(orderId)
  expect(responses).toEqual([200])
  const status = async () => (await post(service.app, STATUS, { mid, order_id: 'SHOP-1' }, key)).body
  await expect.poll(async () => (await status()).txnStatus).toBe('SUCCESS')
  expect(await status()).toMatchObject({ data: { amount: 588, UTR: payment.rrn } })

  const refund = { mid, order_id: 'SHOP-1', refund_id: 'R1', amount: '88', note: 'One cup was cold' }
  expect((await post(service.app, REFUND, refund, key)).body.data).toMatchObject({ txnStatus: 'PENDING' })
  const back = async () => (await post(service.app, REFUND_STATUS, { mid, refund_id: 'R1' }, key)).body.data
  await expect.poll(() => bank.refunds.all.length).toBe(1)
  // PhonePe's webhook schedules the refund's status check 3 s later.
  const refundIsScheduledSoon = async () => {
    const { rows } = await service.db.query('select due_at from refunds where mid = $1', [mid])
    return rows[0].due_at?.getTime() <= service.clock.now().getTime() + 3_000
  }
  await expect.poll(refundIsScheduledSoon).toBe(true)
  service.clock.advance(3)
  await expect.poll(async () => (await back()).txnStatus).toBe('SUCCESS')
  expect(await back()).toMatchObject({ amount: 88, reference: bank.refunds.all[0]?.reference })
  await expect.poll(() => notified(mid)).toEqual(['payment.succeeded', 'refund.succeeded'])
  expect(bank.countOf('refund')).toBe(1)
})

it('the service finds a payment whose PhonePe webhook was lost when the merchant polls or the operator checks the status', async () => {
  const { mid, key } = await newMerchantByHand()
  const create = async () => (await post(service.app, CREATE, intentFields(mid), key)).body.data.orderId
  const [polled, checked] = [await create(), await create()]
  for (const orderId of [polled, checked]) await bank.pay(orderId, { faults: { lost: 1 } })
  const status = async () => (await post(service.app, STATUS, { mid, order_id: polled }, key)).body.txnStatus
  expect(await status()).toBe('PENDING')
  service.clock.advance(20)
  await expect.poll(status).toBe('SUCCESS')
  const { ops } = commands()
  const withWrongSecret = commands({ PHONEPE_CLIENT_SECRET: 'wrong' }).ops
  const rejected = await withWrongSecret('payments', 'enquire', '--order-id', checked)
  expect(rejected).toMatchObject({ code: 1, stderr: expect.stringMatching(/PHONEPE_CLIENT_SECRET\n$/) })
  const { stdout } = await ops('payments', 'enquire', '--order-id', checked)
  expect(stdout).toMatch(/\(status check 1\)\.\n$/)
  const { rows } = await service.db.query('select status from payment_intents where mid = $1', [mid])
  expect(rows).toEqual([{ status: 'SUCCESS' }, { status: 'SUCCESS' }])
})

it('ops payments enquire waits for a close, and dates the payment when the command stores it', async () => {
  const { mid, key } = await newMerchantByHand()
  const { orderId } = (await post(service.app, CREATE, intentFields(mid), key)).body.data
  await bank.pay(orderId, { faults: { lost: 1 } })
  const client = await service.db.connect()
  await client.query('begin; lock table closed_months in share row exclusive mode')
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() })
  const checking = commands().ops('payments', 'enquire', '--order-id', orderId).finally(vi.useRealTimers)
  await untilBlocked(service.db)
  const later = new Date(Date.now() + 60_000)
  vi.setSystemTime(later)
  await client.query('rollback')
  client.release()
  expect(await checking).toMatchObject({ code: 0 })
  const { rows } = await service.db.query('select received_at from payments where mid = $1', [mid])
  expect(rows).toEqual([{ received_at: later }])
})

it('ops merchants rejects an expiry below 5 minutes for a new or changed PhonePe merchant', async () => {
  const { mid } = await newMerchantByHand()
  const { ops } = commands()
  const fault = 'phonepe accepts orders of at least 5 minutes: set --expiry-minutes to 5 or more'
  const names = ['--name', 'Chai', '--vpa', 'chai@examplebank', '--expiry-minutes', '4']
  expect((await ops('merchants', 'add', ...names, ...of('CHAI4', 'CHAI@ybl'))).stderr).toContain(fault)
  expect((await ops('merchants', 'update', '--mid', mid, '--expiry-minutes', '4')).stderr).toContain(fault)
  expect(await ops('merchants', 'update', '--mid', mid, '--expiry-minutes', '5')).toMatchObject({ code: 0 })
})

it('the service creates orders at a merchant’s own PhonePe account, and accepts webhooks of both kinds during a rotation from one kind to the other', async () => {
  const own = { clientId: 'acme', clientVersion: '2', clientSecret: 'secret-of-acme' }
  const its = await startBank(
    { start: (now) => startFakePhonepe({ ...own, webhookSecret: 'shop_1:Passw0rd1', now, check: departure }) },
    service.clock.now,
  )
  its.notifyUrl = `${bank.notifyUrl}/acme`
  const linesOf = (webhook: string) => `PHONEPE_API_URL=${its.apiUrl}
PHONEPE_LOGIN_URL=${its.loginUrl}
PHONEPE_CLIENT_ID=acme
PHONEPE_CLIENT_VERSION=2
PHONEPE_CLIENT_SECRET=${own.clientSecret}
${webhook}`
  const encrypting = { WEBHOOK_SEALING_KEY: `${ENCRYPTION_KEYS[0]?.export().toString('base64')}` }
  const accounts = async (command: string, lines = '', ...flags: string[]) => {
    const args = ['accounts', command, '--account', 'acme', '--acquirer', 'phonepe', ...flags]
    expect(await runOps(service.databaseUrl, args, lines, encrypting)).toMatchObject({ code: 0 })
  }
  await accounts('add', linesOf('PHONEPE_WEBHOOK_USER=shop_1\nPHONEPE_WEBHOOK_PASSWORD=Passw0rd1'))
  await accounts('check')

  const { mid, key } = await newMerchantByHand()
  const moved = await runOps(service.databaseUrl, ['merchants', 'update', '--mid', mid, '--account', 'acme'], '', {
    ...encrypting,
  })
  expect(moved).toMatchObject({ code: 0 })
  await expect
    .poll(async () => (await post(service.app, CREATE, intentFields(mid), key)).status === 200 && its.orders.size > 0)
    .toBe(true)
  const orderId = [...its.orders.keys()].at(-1) as string
  expect(bank.orders.has(orderId)).toBe(false)

  const send = async (secret: string, path = '/acquirer/phonepe/notification/acme') => {
    const { body, headers } = its.encrypt({ event: 'pg.order.failed', payload: { merchantOrderId: orderId } }, secret)
    return (await post(service.app, path, body, undefined, headers)).status
  }
  expect(await send('shop_1:Passw0rd1')).toBe(200)
  // An authenticated account must not learn whether another account's order exists.
  expect(await send(PHONEPE_SECRETS[0], PHONEPE.path)).toBe(404)
  expect(await send(PHONEPE_SECRETS[0])).toBe(401)
  for (const [webhook, secret, earlier] of [
    ['PHONEPE_WEBHOOK_USER=shop_2\nPHONEPE_WEBHOOK_PASSWORD=Passw0rd2', 'shop_2:Passw0rd2', 'shop_1:Passw0rd1'],
    ['PHONEPE_WEBHOOK_PASSWORD=key0of0the0kind0HMAC2', 'key0of0the0kind0HMAC2', 'shop_2:Passw0rd2'],
  ] as const) {
    await accounts('rotate', linesOf(webhook))
    await expect.poll(() => send(secret)).toBe(200)
    expect(await send(earlier)).toBe(200)
    await accounts('rotate', '', '--finish')
    await expect.poll(() => send(earlier)).toBe(401)
  }

  await its.pay(orderId, { faults: { lost: 1 } })
  service.clock.advance(3)
  expect(await send('key0of0the0kind0HMAC2')).toBe(200)
  const status = async () => (await post(service.app, STATUS, { mid, order_id: orderId }, key)).body.txnStatus
  await expect.poll(status).toBe('SUCCESS')
})
