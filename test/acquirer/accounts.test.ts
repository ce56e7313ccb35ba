import { randomBytes } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { openAccounts } from '../../src/gateway/acquirers/stored-accounts.ts'
import { createAcquirerAccounts, type StoredAccount } from '../../src/gateway/tenants/acquirer-accounts.ts'
import { LIMITS } from '../../src/limits.ts'
import { RIGHTS } from '../../src/platform/rights.ts'
import { type FakeCashfree, startFakeCashfree } from '../support/cashfree-bank.ts'
import { departure } from '../support/cashfree-schema.ts'
import { asRole } from '../support/database-url.ts'
import { RAZORPAY, razorpaySettings } from '../support/fake-razorpay.ts'
import { runOps } from '../support/ops.ts'
import {
  CREATE,
  intentFields,
  newKey,
  newMerchant,
  post,
  REFUND,
  REFUND_STATUS,
  STATUS,
  startService,
  type TestService,
  unique,
} from '../support/service.ts'
import { startBank } from '../support/service-with-bank.ts'
import { allow, ENCRYPTION_KEYS } from '../support/webhooks.ts'

const KEY = `${ENCRYPTION_KEYS[0]?.export().toString('base64')}`
const SECRETS = { acme: 'secret-of-acme', other: 'secret-of-other' }
type Account = keyof typeof SECRETS

let service: TestService
let banks: Record<Account, FakeCashfree>
let url: string
beforeAll(async () => {
  service = await startService({
    asServiceRole: true,
    webhooks: { encryptionKeys: ENCRYPTION_KEYS, allowedNetworks: allow() },
    limits: { webhooks: { lookIntervalMs: 100 }, lookUps: { cachedMs: 20 } },
  })
  const start = async (account: Account) => {
    const bank = await startBank(
      {
        start: (now) => startFakeCashfree({ clientId: account, clientSecret: SECRETS[account], now, check: departure }),
      },
      service.clock.now,
    )
    return bank
  }
  banks = { acme: await start('acme'), other: await start('other') }
  url = await service.app.listen({ host: '127.0.0.1', port: 0 })
  for (const account of ['acme', 'other'] as const) {
    banks[account].notifyUrl = `${url}/acquirer/cashfree/notification/${account}`
    expect(await ops(['accounts', 'add', ...which(account)], linesOf(account))).toMatchObject({ code: 0 })
  }
})

const REJECTED = 'CASHFREE_API_URL must not be the sandbox in production'
const which = (account: string) => ['--account', account, '--acquirer', 'cashfree']
const linesOf = (account: Account, secret = SECRETS[account]) =>
  `# of the bank\nCASHFREE_API_URL=${banks[account].apiUrl}\nCASHFREE_CLIENT_ID=${account}\nCASHFREE_CLIENT_SECRET=${secret}\n`

const ops = (args: string[], input = '', keys = KEY) =>
  runOps(service.databaseUrl, [...args, '--json'], input, { WEBHOOK_SEALING_KEY: keys })

const finish = () => ops(['accounts', 'rotate', ...which('acme'), '--finish'])

async function newMerchantOf(account: Account) {
  const { mid } = await newMerchant(service.db, {
    acquirer: `cashfree:${account}`,
    acquirerMerchantId: unique('CF'),
    payees: ['cf.demo*@icici'],
  })
  return { mid, key: await newKey(service.db, { mid }, RIGHTS) }
}

type Merchant = Awaited<ReturnType<typeof newMerchantOf>>

async function create({ mid, key }: Merchant): Promise<string> {
  let orderId = ''
  // A changed account takes effect once the cached lookup expires.
  await expect
    .poll(async () => {
      const { status, body } = await post(service.app, CREATE, intentFields(mid), key)
      orderId = body.data?.orderId
      return status
    })
    .toBe(200)
  return orderId
}

const statusOf = async ({ mid, key }: Merchant, orderId: string) =>
  (await post(service.app, STATUS, { mid, order_id: orderId }, key)).body.txnStatus

/**
 * Sends the bank's notification of an order to the path of `account` plus `pathEnd`, signed with `secret`. Returns the
 * HTTP status.
 */
async function notify(account: Account, order: { orderId: string }, secret: string, pathEnd = ''): Promise<number> {
  const payment = {
    cf_payment_id: '1',
    payment_status: 'SUCCESS',
    payment_amount: 200,
    payment_time: service.clock.now().toISOString(),
    bank_reference: '523504870405',
  }
  const event = {
    type: 'PAYMENT_SUCCESS_WEBHOOK',
    data: { order: { order_id: order.orderId, order_amount: 200 }, payment },
  }
  const { body, headers } = banks.acme.encrypt(event, secret)
  const response = await fetch(`${url}/acquirer/cashfree/notification/${account}${pathEnd}`, {
    method: 'POST',
    body,
    headers,
  })
  return response.status
}

describe('two merchants’ acquirer accounts at one acquirer', () => {
  it("creates and pays each merchant's orders at the merchant's own acquirer account", async () => {
    for (const account of ['acme', 'other'] as const) {
      const merchant = await newMerchantOf(account)
      const orderId = await create(merchant)
      expect(banks[account].find(orderId)).toBeDefined()
      expect(banks[account === 'acme' ? 'other' : 'acme'].find(orderId)).toBeUndefined()
      expect((await banks[account].pay(orderId)).responses).toEqual([200])
      expect(await statusOf(merchant, orderId)).toBe('SUCCESS')
      const { rows } = await service.db.query(
        'select a.acquirer as link, p.acquirer as payment from acquirer_intents a join payments p using (mid, order_id) where order_id = $1',
        [orderId],
      )
      expect(rows).toEqual([{ link: `cashfree:${account}`, payment: `cashfree:${account}` }])
    }
  })

  it.each([
    ['a notification', {}, 'notification'],
    ['a status check', { lost: 1 }, 'enquiry'],
  ])('records a payment at a Razorpay account of the merchant’s own by %s', async (_, faults, source) => {
    const bank = await startBank(RAZORPAY, service.clock.now)
    const { apiUrl, clientId, clientSecret, notificationSecrets } = razorpaySettings(bank)
    const account = unique('rz')
    bank.notifyUrl = `${url}${RAZORPAY.path}/${account}`
    const lines = [
      ...[`RAZORPAY_API_URL=${apiUrl}`, `RAZORPAY_KEY_ID=${clientId}`, `RAZORPAY_KEY_SECRET=${clientSecret}`],
      ...[`RAZORPAY_WEBHOOK_SECRETS=${notificationSecrets}`, 'RAZORPAY_LINK_MINUTES=15'],
    ]
    const added = await ops(['accounts', 'add', '--account', account, '--acquirer', 'razorpay'], lines.join('\n'))
    expect(added).toMatchObject({ code: 0 })
    const { mid } = await newMerchant(service.db, {
      ...{ acquirer: `razorpay:${account}`, acquirerMerchantId: unique('RZ'), payees: ['rzr.demo*@icici'] },
    })
    const merchant = { mid, key: await newKey(service.db, { mid }) }
    const orderId = await create(merchant)
    await bank.pay(orderId, { faults })
    await service.db.query('update acquirer_intents set status_check_at = $2 where order_id = $1', [
      ...[orderId, service.clock.now()],
    ])
    await expect.poll(() => statusOf(merchant, orderId)).toBe('SUCCESS')
    const { rows } = await service.db.query(
      'select a.acquirer as link, p.acquirer as payment, source from acquirer_intents a join payments p using (mid, order_id) where order_id = $1',
      [orderId],
    )
    expect(rows).toEqual([{ link: `razorpay:${account}`, payment: `razorpay:${account}`, source }])
  })

  it('returns 404 for a notification about one account’s order that is signed with another account’s secret', async () => {
    const merchant = await newMerchantOf('other')
    const orderId = await create(merchant)
    expect(await notify('acme', { orderId }, SECRETS.acme)).toBe(404)
    expect(await notify('other', { orderId }, SECRETS.acme)).toBe(401)
    expect(await notify('acme', { orderId }, SECRETS.acme, '/')).toBe(404)
    expect(await notify('other', { orderId }, SECRETS.acme, '/')).toBe(401)
    expect(await statusOf(merchant, orderId)).toBe('PENDING')
    expect(await notify('other', { orderId }, SECRETS.other, '/')).toBe(200)
    expect(await statusOf(merchant, orderId)).toBe('SUCCESS')
  })

  it('metrics label 503 responses and failed calls with the kind of the acquirer account: own, default or disabled', async () => {
    const [ofOwn, ofDefault] = [await newMerchantOf('other'), await newMerchantOf('other')]
    await service.db.query(`update merchants set acquirer = 'cashfree' where mid = $1`, [ofDefault.mid])
    const failing = async ({ mid, key }: Merchant) => (await post(service.app, CREATE, intentFields(mid), key)).status
    const counted = async () => {
      const samples = (await service.metrics())
        .split('\n')
        .filter((line) => /status="503"|outcome="(?!done)/.test(line))
      const sum = (name: string, account: string) =>
        samples
          .filter((line) => line.startsWith(name) && line.includes(`account="${account}"`))
          .reduce((all, line) => all + Number(line.split(' ').at(-1)), 0)
      return ['default', 'own', 'disabled'].map((account) => [
        sum('http_request_duration_seconds_count', account),
        sum('acquirer_calls_total', account),
      ])
    }
    const before = await counted()
    const since = async () => (await counted()).map((of, at) => of.map((count, i) => count - (before[at]?.[i] ?? 0)))
    await expect.poll(async () => [await failing(ofDefault), (await since())[0]]).toEqual([503, [1, 1]])
    await banks.other.goAway()
    expect(await failing(ofOwn)).toBe(503)
    await banks.other.comeBack()
    expect((await since())[1]).toEqual([1, 1])
    await ops(['accounts', 'disable', ...which('other')])
    // The disabled account takes effect once the cached lookup expires.
    await expect.poll(() => failing(ofOwn)).toBe(503)
    expect(await since()).toEqual([
      [1, 1],
      [1, 1],
      [1, 1],
    ])
    expect(await notify('other', { orderId: 'gone' }, 'forged')).toBe(401)
    expect(await service.metrics()).toContain('payment_notifications_refused_total{status="401",account="disabled"} 1')
    await ops(['accounts', 'enable', ...which('other')])
    await create(ofOwn)
  })

  it('labels failed payments in metrics with the acquirer but not with the account name', async () => {
    const orderId = await create(await newMerchantOf('acme'))
    await banks.acme.pay(orderId, { outcome: 'failed' })
    const metrics = await service.metrics()
    expect(metrics).toMatch(/^payment_failures_total\{.*acquirer="cashfree".*\} 1$/m)
    expect(metrics).not.toContain('cashfree:')
  })

  it('returns 404 for a notification to an account that does not exist', async () => {
    for (const path of [
      'cashfree/notification/nobody',
      'cashfree/notification',
      'cashfree/notification/',
      'setu/notification/acme/',
    ]) {
      const response = await fetch(`${url}/acquirer/${path}`, { method: 'POST', body: '{}' })
      expect(response.status, path).toBe(404)
    }
  })

  it('sends refunds and status checks to the acquirer account that created the order, even after the merchant moved to another account', async () => {
    const merchant = await newMerchantOf('acme')
    const orderId = await create(merchant)
    expect((await ops(['merchants', 'update', '--mid', merchant.mid, '--account', 'other'])).code).toBe(0)
    // The merchant's new account takes effect once the cached lookup expires.
    await expect.poll(async () => banks.other.find(await create(merchant))).toBeDefined()
    await banks.acme.pay(orderId, { faults: { lost: 1 } })
    service.clock.advance(20 * 60)
    await expect.poll(() => statusOf(merchant, orderId)).toBe('SUCCESS')
    const refund = { mid: merchant.mid, order_id: orderId, refund_id: 'R1', note: 'sold out' }
    expect((await post(service.app, REFUND, refund, merchant.key)).status).toBe(200)
    const back = () => post(service.app, REFUND_STATUS, { mid: merchant.mid, refund_id: 'R1' }, merchant.key)
    await expect.poll(async () => (await back()).body.data.txnStatus).toBe('SUCCESS')
    expect(banks.acme.refunds.all.map((one) => one.orderId)).toContain(orderId)
    expect(JSON.parse((await ops(['refunds', 'list', '--acquirer', 'cashfree:acme'])).stdout)).toHaveLength(1)
    expect(JSON.parse((await ops(['refunds', 'list', '--acquirer', 'cashfree:other'])).stdout)).toEqual([])
  })

  it('accepts notifications signed with either secret during a rotation, and sends calls with the new secret', async () => {
    const merchant = await newMerchantOf('acme')
    const [first, second] = [await create(merchant), await create(merchant)]
    expect((await ops(['accounts', 'rotate', ...which('acme')], linesOf('acme', 'newer-secret'))).code).toBe(0)
    expect((await ops(['accounts', 'rotate', ...which('acme')], linesOf('acme', 'newest-secret'))).code).toBe(1)
    await expect.poll(() => notify('acme', { orderId: first }, 'newer-secret')).toBe(200)
    expect(await notify('acme', { orderId: first }, SECRETS.acme)).toBe(200)
    expect((await ops(['accounts', 'rotate', ...which('acme'), '--finish'])).code).toBe(0)
    await expect.poll(() => notify('acme', { orderId: second }, SECRETS.acme)).toBe(401)
    // The fake bank knows only the first secret, so the test rotates back to it.
    await ops(['accounts', 'rotate', ...which('acme')], linesOf('acme'))
    await ops(['accounts', 'rotate', ...which('acme'), '--finish'])
    await create(merchant)
  })

  it('ops accounts rotate --back restores the stored earlier secrets and retains both sets of secrets', async () => {
    const merchant = await newMerchantOf('acme')
    const back = () => ops(['accounts', 'rotate', ...which('acme'), '--back'])
    const none = 'ops: account cashfree:acme has no earlier secrets: it was never rotated, or --finish deleted them\n'
    expect(await back()).toMatchObject({ code: 1, stderr: none })
    await ops(['accounts', 'rotate', ...which('acme')], linesOf('acme', 'mistyped-secret'))
    await expect
      .poll(async () => (await post(service.app, CREATE, intentFields(merchant.mid), merchant.key)).status)
      .toBe(503)
    expect(await back()).toMatchObject({ code: 0, stderr: '' })
    const orderId = await create(merchant)
    // The acquirer may sign with either secret until the rotation is finished.
    for (const secret of ['mistyped-secret', SECRETS.acme]) expect(await notify('acme', { orderId }, secret)).toBe(200)
    const again = await ops(['accounts', 'rotate', ...which('acme')], linesOf('acme'))
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('add --finish')])
    expect((await ops(['accounts', 'rotate', ...which('acme'), '--back', '--finish'])).code).toBe(2)
    expect((await finish()).code).toBe(0)
    expect((await back()).stderr).toBe(none)
    const { stderr } = await ops(['accounts', 'rotate', ...which('nobody'), '--back'])
    expect(stderr).toBe('ops: account cashfree:nobody does not exist: see ops accounts list\n')
    await create(merchant)
  })

  it('creates no links at a disabled account, but accepts payments of the account’s existing orders', async () => {
    const merchant = await newMerchantOf('acme')
    const orderId = await create(merchant)
    expect((await ops(['accounts', 'disable', ...which('acme')])).code).toBe(0)
    await expect
      .poll(async () => (await post(service.app, CREATE, intentFields(merchant.mid), merchant.key)).status)
      .toBe(503)
    expect((await banks.acme.pay(orderId)).responses).toEqual([200])
    expect((await ops(['accounts', 'enable', ...which('acme')])).code).toBe(0)
    await create(merchant)
  })
})

describe('the command ops accounts', () => {
  it('ops accounts check reports whether the acquirer accepts the credentials', async () => {
    expect(await ops(['accounts', 'check', ...which('acme')])).toMatchObject({
      code: 0,
      stdout: `${JSON.stringify({ name: 'cashfree:acme', accepted: true })}\n`,
    })
    const wrong = linesOf('acme', 'a-wrong-secret').replace('CLIENT_ID=acme', 'CLIENT_ID=nobody')
    await ops(['accounts', 'add', ...which('wrong')], wrong)
    const checked = await ops(['accounts', 'check', ...which('wrong')])
    expect([checked.code, checked.stderr]).toEqual([1, expect.stringContaining('401')])
  })

  it('ops accounts never shows, audits or stores a secret or an invalid line in plain text', async () => {
    const outputs = [
      await ops(['accounts', 'list']),
      await ops(['accounts', 'add', ...which('bad')], 'CASHFREE_CLIENT_ID=x\nPASSWORD=never-shown'),
      await ops(['accounts', 'add', ...which('bad')], 'CASHFREE_CLIENT_ID=x'),
      await ops(['accounts', 'add', ...which('acme')], linesOf('acme')),
      await ops(['audit']),
    ]
    expect(outputs.map(({ code }) => code)).toEqual([0, 1, 1, 1, 0])
    const { rows } = await service.db.query('select a.*, secrets::text, encode(secrets, $1) from acquirer_accounts a', [
      'escape',
    ])
    const all = JSON.stringify([outputs, rows])
    for (const secret of [SECRETS.acme, SECRETS.other, 'never-shown']) expect(all).not.toContain(secret)
  })

  it('ops accounts reseal encrypts an account with only the new key, and /readyz names an account that cannot be decrypted', async () => {
    const newer = randomBytes(32).toString('base64')
    const errorsWith = async (keys: string) =>
      JSON.parse((await ops(['accounts', 'list'], '', keys)).stdout).map(({ fault }: { fault: string | null }) => fault)
    expect(new Set(await errorsWith(newer))).toEqual(new Set([expect.stringContaining('WEBHOOK_SEALING_KEY')]))
    expect(JSON.parse((await ops(['accounts', 'reseal'], '', `${newer},${KEY}`)).stdout)).toMatchObject({ unopened: 0 })
    expect(new Set(await errorsWith(newer))).toEqual(new Set([null]))
    // The service still has only the earlier key.
    await expect
      .poll(async () => (await service.app.inject('/readyz')).json().data.warnings)
      .toContainEqual(expect.stringContaining('cashfree:acme cannot accept payments: a secret cannot be decrypted'))
    expect(JSON.parse((await ops(['accounts', 'reseal'], '', `${KEY},${newer}`)).stdout)).toMatchObject({ unopened: 0 })
    await create(await newMerchantOf('acme'))
  })

  it('ops accounts reseal does not overwrite a rotation that starts or finishes at the same time', async () => {
    const stored = async () =>
      (await createAcquirerAccounts(service.db).list()).find(({ name }) => name === 'cashfree:acme') as StoredAccount
    for (const rotation of [() => ops(['accounts', 'rotate', ...which('acme')], linesOf('acme')), finish]) {
      let rotated: StoredAccount | undefined
      const db = {
        async query(...of: unknown[]) {
          const result = await (service.db.query as (...of: unknown[]) => Promise<unknown>)(...of)
          if (rotated === undefined) {
            await rotation()
            rotated = await stored()
          }
          return result
        },
      }
      await createAcquirerAccounts(db as never).reencryptSecrets((encrypted) => encrypted)
      expect(await stored()).toEqual(rotated)
    }
  })

  it('ops merchants rejects an acquirer account that does not exist or is disabled', async () => {
    const { mid } = await newMerchantOf('acme')
    const update = (account: string) => ops(['merchants', 'update', '--mid', mid, '--account', account])
    expect((await update('nobody')).stderr).toContain('ops accounts add --account nobody --acquirer cashfree')
    expect((await update('default')).stderr).toContain('set CASHFREE_CLIENT_ID')
    await ops(['accounts', 'disable', ...which('other')])
    expect((await update('other')).stderr).toContain('disabled')
    await ops(['accounts', 'enable', ...which('other')])
    expect((await update('other')).code).toBe(0)
    const both = ['merchants', 'update', '--mid', mid, '--acquirer', 'cashfree:acme,cashfree:other']
    expect((await ops(both)).code).toBe(0)
    expect((await update('other')).stderr).toContain('--acquirer must name two different accounts')
  })

  it('ops accounts rotate enables an account whose stored secrets are invalid', async () => {
    const lines = (api: string) =>
      `CASHFREE_API_URL=https://${api}/pg\nCASHFREE_CLIENT_ID=x\nCASHFREE_CLIENT_SECRET=of-${api}`
    const config = { acquirers: { direct: [] }, webhooks: { encryptionKeys: ENCRYPTION_KEYS }, production: true }
    const opened = () =>
      openAccounts(service.db, { ...config, publicUrl: 'https://pay.example' }, LIMITS.lookUps).find('cashfree:tried')
    const add = ['accounts', 'add', ...which('tried')]
    const sandbox = lines('sandbox.cashfree.com')
    const inProduction = (args: string[], input = '') =>
      runOps(service.databaseUrl, [...args, '--json'], input, { WEBHOOK_SEALING_KEY: KEY, NODE_ENV: 'production' })
    expect(await inProduction(add, sandbox)).toMatchObject({ code: 1, stderr: expect.stringContaining(REJECTED) })
    await ops(add, sandbox)
    expect((await opened())?.error).toContain(REJECTED)
    const listed: { name: string; state: string }[] = JSON.parse((await inProduction(['accounts', 'list'])).stdout)
    // In production, the accounts of Razorpay's test mode are rejected too.
    const rejected = listed.filter(({ name, state }) => state === 'rejected' && !name.startsWith('razorpay:'))
    expect(rejected).toMatchObject([{ name: 'cashfree:tried', fault: expect.stringContaining(REJECTED) }])
    const { mid } = await newMerchantOf('acme')
    const moved = await inProduction(['merchants', 'update', '--mid', mid, '--account', 'tried'])
    expect([moved.code, moved.stderr]).toEqual([1, expect.stringContaining(REJECTED)])
    await ops(['accounts', 'rotate', ...which('tried')], lines('api.cashfree.com'))
    expect(await opened()).toMatchObject({
      settings: { cashfree: { notificationSecrets: ['of-api.cashfree.com'] } },
    })
    expect((await opened())?.error).toBeUndefined()
    const back = await inProduction(['accounts', 'rotate', ...which('tried'), '--back'])
    expect([back.code, back.stderr]).toEqual([1, expect.stringContaining(REJECTED)])
    expect((await opened())?.error).toBeUndefined()
  })

  it('the service’s database role can read but not change accounts', async () => {
    const { Pool } = (await import('pg')).default
    const pool = new Pool({ connectionString: asRole(service.databaseUrl, 'upi_service') })
    await expect(pool.query('select name from acquirer_accounts')).resolves.toBeDefined()
    await expect(pool.query('update acquirer_accounts set disabled_at = null')).rejects.toMatchObject({ code: '42501' })
    await pool.end()
  })
})
