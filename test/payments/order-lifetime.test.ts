import { describe, expect, it } from 'vitest'
import { CASHFREE, newCashfreeMerchant } from '../support/fake-cashfree.ts'
import { newPhonepeMerchant, PHONEPE } from '../support/fake-phonepe.ts'
import { opsOn } from '../support/ops.ts'
import { reportPayment } from '../support/orders.ts'
import {
  CREATE,
  errorResponse,
  intentFields,
  newMerchant,
  ORDER,
  post,
  postJson,
  STATUS,
  startService,
  type TestService,
} from '../support/service.ts'
import { startServiceBeside } from '../support/service-with-bank.ts'
import type { NewMerchant } from '../support/tenants.ts'
import { until } from '../support/wait.ts'

const DAY_SECONDS = 24 * 60 * 60
const THREE_DAYS = { expiry_minutes: '4320', order_id: 'LINK-1' }
const LONGEST = { maxExpiryMinutes: 43_200 }

const service = await startService()
const { ops, json } = opsOn(() => service.databaseUrl, ['merchants'])

const create = ({ app }: TestService, { mid, key }: NewMerchant, changes: Record<string, string>, headers = {}) =>
  post(app, CREATE, intentFields(mid, changes), key, headers)

const statusOf = async ({ app }: TestService, { mid, key }: NewMerchant) =>
  (await post(app, STATUS, { mid, order_id: 'LINK-1' }, key)).body

const countOrders = async ({ db }: TestService, { mid }: NewMerchant) =>
  (await db.query('select from payment_intents where mid = $1', [mid])).rowCount

/** Minutes from creation to expiry of the merchant's orders, oldest first. */
const lifetimesOf = async ({ mid }: NewMerchant) => {
  const { rows } = await service.db.query(
    `select extract(epoch from expires_at - created_at)::integer / 60 as minutes
       from payment_intents where mid = $1 order by order_id`,
    [mid],
  )
  return rows.map(({ minutes }) => minutes)
}

const rule = (max: number) => errorResponse(400, `expiry_minutes must be a whole number from 5 to ${max}`)

describe('expiry_minutes', () => {
  it.each([
    [{}, 1_440],
    [{ maxExpiryMinutes: 60 }, 60],
    [{ ...LONGEST, input: 'shop' as const }, 43_200],
  ])(
    'sets the expiry of an order of a merchant with %j, up to %i minutes, in both create operations',
    async (settings, max) => {
      const merchant = await newMerchant(service.db, settings)
      const { mid, key } = merchant
      for (const url of [CREATE, ORDER]) {
        for (const minutes of ['5', String(max)]) {
          expect((await post(service.app, url, intentFields(mid, { expiry_minutes: minutes }), key)).status).toBe(200)
          const asJson = { ...intentFields(mid), expiry_minutes: Number(minutes) }
          expect((await postJson(service.app, url, asJson, key)).status).toBe(200)
        }
      }
      expect((await lifetimesOf(merchant)).toSorted((a, b) => a - b)).toEqual([
        ...Array(4).fill(5),
        ...Array(4).fill(max),
      ])
    },
  )

  it.each(['4', '0', '-5', '05', '5.5', '60.0', '1e2', '0x10', '+60', '1441', '10080', '६०', 'default'])(
    'rejects %s in both create operations, and creates nothing',
    async (minutes) => {
      const merchant = await newMerchant(service.db)
      const { mid, key } = merchant
      for (const url of [CREATE, ORDER]) {
        const fields = intentFields(mid, { expiry_minutes: minutes })
        expect((await post(service.app, url, fields, key)).body).toEqual(rule(1_440))
        const number = Number(minutes)
        if (minutes === '60.0' || Number.isNaN(number) || (number >= 5 && number <= 1_440 && Number.isInteger(number)))
          continue
        expect((await postJson(service.app, url, { ...fields, expiry_minutes: number }, key)).body).toEqual(rule(1_440))
      }
      expect(await countOrders(service, merchant)).toBe(0)
    },
  )

  it('leaves orders without it at the merchant’s own time to pay, whatever the merchant’s maximum is', async () => {
    const [usual, own] = [
      await newMerchant(service.db, LONGEST),
      await newMerchant(service.db, { expiryMinutes: 1_440, maxExpiryMinutes: 5 }),
    ]
    for (const merchant of [usual, own]) {
      for (const changes of [{}, { expiry_minutes: '' }]) {
        expect((await create(service, merchant, changes)).status).toBe(200)
      }
    }
    expect(await lifetimesOf(usual)).toEqual([15, 15])
    expect(await lifetimesOf(own)).toEqual([1_440, 1_440])
  })

  it('belongs to the fields that a retry with the same Idempotency-Key must repeat', async () => {
    const merchant = await newMerchant(service.db, LONGEST)
    const key = { 'idempotency-key': 'link-1' }
    const first = await create(service, merchant, THREE_DAYS, key)
    service.clock.advance(60)
    expect((await create(service, merchant, THREE_DAYS, key)).body).toEqual(first.body)
    expect((await create(service, merchant, { order_id: 'LINK-1' }, key)).status).toBe(422)
    expect((await create(service, merchant, { ...THREE_DAYS, expiry_minutes: '4321' }, key)).status).toBe(422)
    expect(await lifetimesOf(merchant)).toEqual([4_320])
  })

  it('is limited by ops merchants --max-expiry-minutes, which takes effect within 5 seconds', async () => {
    const merchant = await newMerchant(service.db)
    const update = (...args: string[]) => json('update', '--mid', merchant.mid, '--max-expiry-minutes', ...args)
    for (const [typed, max] of [
      ['43200', 43_200],
      ['5', 5],
      ['default', 1_440],
    ] as const) {
      expect(await update(typed)).toMatchObject({ maxExpiryMinutes: max })
      service.clock.advance(5)
      expect((await create(service, merchant, { expiry_minutes: String(max + 1) })).body).toEqual(rule(max))
      expect((await create(service, merchant, { expiry_minutes: String(max) })).status).toBe(200)
    }
    const names = ['--name', 'Shop', '--vpa', 'shop@examplebank', '--mcc', '5814']
    expect(await json('add', ...names, '--max-expiry-minutes', '43200')).toMatchObject(LONGEST)
    for (const typed of ['4', '43201', '05', '60.5', 'none', '-1']) {
      const { code, stderr } = await ops('update', '--mid', merchant.mid, `--max-expiry-minutes=${typed}`)
      expect([code, stderr.split('\n')[0]]).toEqual([
        2,
        'ops: --max-expiry-minutes must be a whole number of minutes, 5 to 43200, or default',
      ])
    }
  })
})

describe('an order with expiry_minutes of 3 days that is paid on day 2', () => {
  it('succeeds through direct: link, pay page and QR code are open until its own expiry', async () => {
    service.clock.set('2026-03-31T18:29:59.000Z')
    const merchant = await newMerchant(service.db, LONGEST)
    const { data } = (await create(service, merchant, THREE_DAYS)).body
    expect(data.expiry).toBe('2026-04-03 23:59:59')
    expect(new URL(data.intent).searchParams.get('QRexpire')).toBe('2026-04-03T23:59:59+05:30')

    service.clock.advance(1.5 * DAY_SECONDS)
    const page = await service.app.inject(`/pay/${data.orderId}`)
    expect(page.body).toContain(`data-state="open"`)
    expect(page.body).toContain(`data-seconds="${3 * DAY_SECONDS}"`)
    expect(page.body).toContain('<time>3 Apr 2026, 11:59\u00a0pm\u00a0IST</time>')
    expect((await service.app.inject(`/pay/${data.orderId}/qr.png`)).statusCode).toBe(200)
    expect(await statusOf(service, merchant)).toMatchObject({ txnStatus: 'PENDING' })

    await reportPayment(service, data.orderId, { paidAt: service.clock.now().toISOString() })
    expect(await statusOf(service, merchant)).toMatchObject({ txnStatus: 'SUCCESS' })
    const exceptions = 'select from payment_exceptions where order_id = $1'
    expect((await service.db.query(exceptions, [data.orderId])).rowCount).toBe(0)
  })

  it('has its final status 10 minutes after its own expiry if it is not paid', async () => {
    const merchant = await newMerchant(service.db, LONGEST)
    await create(service, merchant, THREE_DAYS)
    service.clock.advance(3 * DAY_SECONDS + 599)
    expect(await statusOf(service, merchant)).toMatchObject({ txnStatus: 'PENDING' })
    service.clock.advance(1)
    expect(await statusOf(service, merchant)).toMatchObject({ txnStatus: 'FAIL', msg: 'Payment intent expired' })
  })

  it('succeeds through PhonePe, whose order and status checks have the same expiry', async () => {
    const { service, bank } = await startServiceBeside(PHONEPE, { limits: { webhooks: { lookIntervalMs: 100 } } })
    const merchant = await newPhonepeMerchant(service, LONGEST)
    const { orderId } = (await create(service, merchant, THREE_DAYS)).body.data
    const expiry = service.clock.now().getTime() + 3 * DAY_SECONDS * 1_000
    expect(bank.orders.get(orderId)?.expiresAt.getTime()).toBe(expiry)
    const checkAt = 'select status_check_at as at from acquirer_intents where order_id = $1'
    const { rows } = await service.db.query(checkAt, [orderId])
    expect(rows[0].at.getTime()).toBe(expiry + 90_000)

    service.clock.advance(1.5 * DAY_SECONDS)
    await bank.pay(orderId)
    await until('PhonePe reports the payment', async () => (await statusOf(service, merchant)).txnStatus === 'SUCCESS')
  })
})

describe('a merchant of an acquirer that allows at most a day', () => {
  it('gets 400 for 1,441 minutes at Cashfree, which creates no order, and for 1,440 an order with its own expiry', async () => {
    const { service, bank } = await startServiceBeside(CASHFREE)
    const merchant = await newCashfreeMerchant(service)
    expect((await create(service, merchant, { expiry_minutes: '1441' })).body).toEqual(rule(1_440))
    expect([bank.requests, await countOrders(service, merchant)]).toEqual([[], 0])
    const { orderId } = (await create(service, merchant, { expiry_minutes: '1440' })).body.data
    expect(bank.orders.get(orderId)?.expiresAt.getTime()).toBe(service.clock.now().getTime() + DAY_SECONDS * 1_000)
  })

  it.each([
    ['cashfree', { CASHFREE_CLIENT_ID: 'id', CASHFREE_CLIENT_SECRET: 'secret' }, []],
    [
      'setu',
      { SETU_CLIENT_ID: 'id', SETU_CLIENT_SECRET: 'secret', SETU_NOTIFICATION_SECRETS: 'a'.repeat(20) },
      ['--acquirer-merchant-id', '01ARZ3NDEKTSV4RRFFQ69G5FAV'],
    ],
  ])('cannot have a higher --max-expiry-minutes with %s', async (acquirer, settings, id) => {
    const message = `${acquirer} accepts orders of at most 1440 minutes: set --expiry-minutes and --max-expiry-minutes to 1440 or less`
    const refused = { code: 1, stderr: expect.stringContaining(message) }
    const { ops } = opsOn(() => service.databaseUrl, ['merchants'], settings)
    const { mid } = await newMerchant(service.db, LONGEST)
    const move = ['update', '--mid', mid, '--acquirer', acquirer, ...id]
    expect(await ops(...move)).toMatchObject(refused)
    expect((await ops(...move, '--max-expiry-minutes', '1440')).code).toBe(0)
    expect(await ops('update', '--mid', mid, '--max-expiry-minutes', '1441')).toMatchObject(refused)
    const names = ['--name', 'Shop', '--vpa', 'shop@examplebank', '--mcc', '5814']
    const added = ['add', ...names, '--acquirer', acquirer, ...id, '--max-expiry-minutes', '1441']
    expect(await ops(...added)).toMatchObject(refused)
  })

  it('cannot name such an acquirer as fallback with a higher --max-expiry-minutes', async () => {
    const settings = {
      CASHFREE_CLIENT_ID: 'id',
      CASHFREE_CLIENT_SECRET: 'secret',
      PHONEPE_CLIENT_ID: 'id',
      PHONEPE_CLIENT_VERSION: '1',
      PHONEPE_CLIENT_SECRET: 'secret',
      PHONEPE_WEBHOOK_PASSWORD: 'Passw0rd9',
    }
    const { ops } = opsOn(() => service.databaseUrl, ['merchants'], settings)
    const { mid } = await newMerchant(service.db, LONGEST)
    expect((await ops('update', '--mid', mid, '--acquirer', 'phonepe')).code).toBe(0)
    const { stderr } = await ops('update', '--mid', mid, '--acquirer', 'phonepe,cashfree')
    expect(stderr).toContain('cashfree accepts orders of at most 1440 minutes')
  })
})
