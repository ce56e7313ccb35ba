import { describe, expect, it } from 'vitest'
import { LIMITS } from '../../src/limits.ts'
import { ZONED_MOMENT_RULE } from '../../src/platform/time.ts'
import { NOTIFY, newUtr, notification, notify, sign } from '../support/acquirer.ts'
import { createOrder } from '../support/orders.ts'
import { errorResponse, newMerchant, post, startService, type TestService } from '../support/service.ts'

const RECORDED = { status: true, statusCode: 200, msg: 'Notification recorded', data: {} }
const UNSIGNED = errorResponse(
  401,
  'The signature is missing, invalid or more than 5 minutes old. Send X-Signature: t=<unix seconds>,v1=<hex HMAC-SHA256 of "t.body">.',
)
/** From then on, checkPaymentStatus returns FAIL for an unpaid order. */
const OVER_SECONDS = 25 * 60

const service = await startService()
const { mid, key } = await newMerchant(service.db)

const newOrder = (of = { mid, key }) => createOrder(service, of)

/** Returns what is stored of an order: its status, its failed attempts and payment, and its exceptions. */
async function stored(orderId: string) {
  const linesOf = async (sql: string) => (await service.db.query(sql, [orderId])).rows.map(({ line }) => line as string)
  const [end] = await linesOf(`select concat_ws(' ', status, utr) as line from payment_intents where order_id = $1`)
  const history = await linesOf(
    `select 'SUCCESS ' || utr as line, received_at from payments where order_id = $1 and kind <> 'second'
     union all
     select concat_ws(' ', status, utr), received_at from payment_attempts where order_id = $1
     union all
     select 'CANCELLED', cancelled_at from payment_intents where order_id = $1 and cancelled_at is not null
      order by received_at`,
  )
  const exceptions = await linesOf(
    `select concat_ws(' ', e.kind || ':', e.status, e.utr) as line
       from payment_exceptions e
       join payment_intents i on i.mid = e.mid and i.order_id = e.order_id
      -- The merchants of several tests share UTRs.
      where e.order_id = $1 and e.kind <> 'UTR of another merchant'
      order by e.received_at, e.utr`,
  )
  return { end, history, exceptions }
}

describe('a valid notification', () => {
  it('records a successful payment with UTR and times once, however often the notification is sent', async () => {
    const orderId = await newOrder()
    const body = notification(orderId, { UTR: '523504870405' })
    for (let i = 0; i < 3; i++) {
      const { status, body: response } = await notify(service, body)
      expect([status, response]).toEqual([200, RECORDED])
      service.clock.advance(1)
    }
    expect(await stored(orderId)).toMatchObject({ end: 'SUCCESS 523504870405', exceptions: [] })
    const { rows } = await service.db.query(
      'select utr, kind, source, reported_by, note, received_at, paid_at from payments where order_id = $1',
      [orderId],
    )
    const times = { received_at: expect.any(Date), paid_at: new Date('2026-03-31T18:29:59Z') }
    const reporter = { source: 'notification', reported_by: null, note: null }
    expect(rows).toEqual([{ utr: '523504870405', kind: 'first', ...reporter, ...times }])
  })

  it.each([
    ['without seconds', '2026-03-31T23:59+05:30', '00.000'],
    ['with a time zone without its colon', '2026-03-31T23:59:58+0530', '58.000'],
    ['with a space instead of T', '2026-03-31 23:59:58+05:30', '58.000'],
    ['with a space, without seconds and without a colon', '2026-03-31 23:59+0530', '00.000'],
    ['in lower case', '2026-03-31t18:29:58.5z', '58.500'],
    ['with nanoseconds', '2026-03-31T18:29:58.123999999Z', '58.123'],
  ])('records a payment whose time is %s', async (_form, paidAt, seconds) => {
    const orderId = await newOrder()
    expect((await notify(service, notification(orderId, { paidAt }))).body).toEqual(RECORDED)
    const { rows } = await service.db.query('select paid_at from payments where order_id = $1', [orderId])
    expect(rows).toEqual([{ paid_at: new Date(`2026-03-31T18:29:${seconds}Z`) }])
    expect(await stored(orderId)).toMatchObject({ end: expect.stringMatching(/^SUCCESS/), exceptions: [] })
  })

  /**
   * Formats a notification from status, UTR and time, such as `FAIL A1 23:50`. A UTR without a time gets 23:55; a
   * status alone has neither.
   */
  function toNotification(orderId: string, reported: string): string {
    const [status, utr = '-', time = utr === '-' ? '-' : '23:55'] = reported.split(' ')
    const paidAt = time === '-' ? undefined : `2026-03-31T${time}:00+05:30`
    return notification(orderId, { status, UTR: utr === '-' ? undefined : utr, paidAt })
  }

  const ATTEMPTS = ['FAIL', 'FAIL aTT1', 'REJECT ATT2', 'FAIL - 23:56']
  it.each<[string, string[], string[], string[], number?]>([
    ['accepts a payment after a REJECT', ['REJECT', 'SUCCESS A1'], ['REJECT', 'SUCCESS A1'], []],
    ...['FAIL A1', 'REJECT A1'].map((later): [string, string[], string[], string[]] => [
      `leaves the order paid and stores one exception for a report of ${later} after a success`,
      ['SUCCESS A1', later, later],
      ['SUCCESS A1'],
      [`failure after success: ${later}`],
    ]),
    [
      'names another attempt that failed after a success by its own UTR, and a failure without a UTR by that of the payment (simulation, seed 4)',
      ['SUCCESS A1', 'FAIL A2', 'FAIL'],
      ['SUCCESS A1'],
      ['failure after success: FAIL A2', 'failure after success: FAIL A1'],
    ],
    [
      'stores a failure reported after a success as an exception, even if an earlier failed attempt had the same UTR',
      ['FAIL A1 23:50', 'SUCCESS A1', 'FAIL A1 23:58', 'FAIL A1 23:58', 'FAIL A1 23:50'],
      ['FAIL A1', 'SUCCESS A1'],
      ['failure after success: FAIL A1'],
    ],
    [
      'stores each failed attempt once, distinguished by UTR or time, in whatever sequence they are repeated',
      [...ATTEMPTS, ...ATTEMPTS.toReversed(), 'FAIL ATT1'],
      ['FAIL', 'FAIL ATT1', 'REJECT ATT2', 'FAIL'],
      [],
    ],
    ['accepts a payment after the expiry', ['SUCCESS A1'], ['SUCCESS A1'], [], OVER_SECONDS - 16],
    [
      'records a payment after the final status FAIL and stores one late payment',
      ['SUCCESS A1', 'SUCCESS A1'],
      ['SUCCESS A1'],
      ['late payment: SUCCESS A1'],
      OVER_SECONDS - 15,
    ],
  ])('the service %s', async (_name, reported, history, exceptions, afterSeconds = 0) => {
    const orderId = await newOrder(await newMerchant(service.db))
    service.clock.advance(afterSeconds)
    for (const one of reported) {
      expect((await notify(service, toNotification(orderId, one))).body).toEqual(RECORDED)
      service.clock.advance(1)
    }
    expect(await stored(orderId)).toEqual({ end: history.at(-1), history, exceptions })
  })

  it('stores a late payment and its exception together or not at all', async () => {
    const orderId = await newOrder()
    service.clock.advance(OVER_SECONDS)
    await service.db.query(
      `alter table payment_exceptions add constraint no_late check (kind <> 'late payment') not valid`,
    )
    const body = notification(orderId, { UTR: 'BOTH1' })
    expect((await notify(service, body)).status).toBe(500)
    expect(await stored(orderId)).toEqual({ end: 'PENDING', history: [], exceptions: [] })
    await service.db.query('alter table payment_exceptions drop constraint no_late')
    expect((await notify(service, body)).status).toBe(200)
    expect(await stored(orderId)).toMatchObject({ end: 'SUCCESS BOTH1', exceptions: ['late payment: SUCCESS BOTH1'] })
  })

  it('records a payment of a disabled merchant', async () => {
    const other = await newMerchant(service.db)
    const orderId = await newOrder(other)
    await service.db.query('update merchants set disabled_at = now() where mid = $1', [other.mid])
    expect((await notify(service, notification(orderId))).status).toBe(200)
  })
})

describe('concurrent notifications', () => {
  const oneOfMany = (i: number) => ({ status: i === 10 ? 'SUCCESS' : i % 2 ? 'FAIL' : 'REJECT' })
  it.each([
    ['one success and one duplicate payment from two UTRs', 10, [{ UTR: 'A1' }, { UTR: 'A2' }], 2],
    [
      'one success and all twenty failed attempts of one order',
      1,
      Array.from({ length: 21 }, (_, i) => oneOfMany(i)),
      21,
    ],
  ] as const)('stores %s, in %i rounds of concurrent notifications', async (_name, times, reported, saved) => {
    for (let i = 0; i < times; i++) {
      const orderId = await newOrder(await newMerchant(service.db))
      const responses = await Promise.all(reported.map((changes) => notify(service, notification(orderId, changes))))
      expect(responses.map(({ body }) => body)).toEqual(reported.map(() => RECORDED))
      const { end, history, exceptions } = await stored(orderId)
      expect(history.filter((line) => line === end)).toHaveLength(1)
      expect([end?.split(' ')[0], history.length + exceptions.length]).toEqual(['SUCCESS', saved])
    }
  })

  it('accepts one UTR for exactly one of four orders from concurrent notifications, in each of 5 rounds', async () => {
    for (let i = 0; i < 5; i++) {
      const orderIds = [await newOrder(), await newOrder(), await newOrder(), await newOrder()]
      for (const orderId of orderIds.slice(2)) await notify(service, notification(orderId))
      const UTR = newUtr()
      const responses = await Promise.all(orderIds.map((orderId) => notify(service, notification(orderId, { UTR }))))
      expect(responses.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409])
      const { rows } = await service.db.query(
        `select order_id from payment_intents where utr = $1
         union all
         select order_id from payment_exceptions where utr = $1 and kind = 'double payment'`,
        [UTR],
      )
      expect(rows).toHaveLength(1)
    }
  })

  it('leaves database connections free for new payment intents while all notifications wait for one order', async () => {
    const orderId = await newOrder()
    const holder = await service.db.connect()
    await holder.query('begin')
    await holder.query('select from payment_intents where mid = $1 and order_id = $2 for update', [mid, orderId])
    const body = notification(orderId)
    const reports = Promise.all(Array.from({ length: 50 }, () => notify(service, body)))
    const { reports: pool } = service.pools
    await expect.poll(() => pool.totalCount - pool.idleCount).toBe(LIMITS.reports.concurrentOfAccount)
    await newOrder()
    await holder.query('commit')
    holder.release()
    expect((await reports).map(({ status }) => status)).toEqual(Array(50).fill(200))
  })
})

describe('a notification that contradicts its order', () => {
  const DIFFERS = errorResponse(409, 'The amount differs from that of the order')
  it.each([
    ...['200', '200.0', '"200"', '"200.0"', '"200.00"'].map((amount) => [amount, RECORDED, 'SUCCESS A1', []] as const),
    ...['199', '201', '"200.01"', '0'].map(
      (amount) => [amount, DIFFERS, 'PENDING', ['amount differs: SUCCESS A1']] as const,
    ),
    // As floats these would equal 200.
    ...['199.99999999999999999', '200.0000000000000001', '2000000000000000000001e-19'].map(
      (amount) =>
        [amount, errorResponse(400, 'amount must be rupees with at most two decimals'), 'PENDING', []] as const,
    ),
  ])(
    'compares a notification’s amount exactly with the order’s amount, not as a float: %s',
    async (amount, response, end, exceptions) => {
      const orderId = await newOrder(await newMerchant(service.db))
      const body = notification(orderId, { UTR: 'A1' }).replace('"amount":200', `"amount":${amount}`)
      expect((await notify(service, body)).body).toEqual(response)
      expect(await stored(orderId)).toMatchObject({ end, exceptions })
    },
  )

  it('stores a failure and a success of one UTR with a wrong amount as two exceptions, and the success with its payment time', async () => {
    const orderId = await newOrder()
    const wrong = { UTR: 'FACT1', amount: 150 }
    await notify(service, notification(orderId, { ...wrong, status: 'FAIL', paidAt: undefined }))
    const paidAt = service.clock.now()
    await notify(service, notification(orderId, { ...wrong, paidAt: paidAt.toISOString() }))
    const { rows } = await service.db.query(
      'select status, (amount_paise * 0.01)::text as amount, paid_at from payment_exceptions where order_id = $1 order by status',
      [orderId],
    )
    expect(rows).toEqual([
      { status: 'FAIL', amount: '150.00', paid_at: null },
      { status: 'SUCCESS', amount: '150.00', paid_at: paidAt },
    ])
  })

  const USED = errorResponse(409, 'This UTR was already used by another order')
  it.each([
    ['that paid another order of the merchant, in any letter case', ['abcX1'], ['ABCX1', 'AbCx1']],
    ['of a duplicate payment that is to be refunded', ['A1', 'B1'], ['B1']],
  ])(
    'returns 409 for a UTR %s, stores the notification, and accepts the UTR for another merchant',
    async (_name, UTRs, again) => {
      const merchant = await newMerchant(service.db)
      const [first, second] = [await newOrder(merchant), await newOrder(merchant)]
      for (const UTR of UTRs) await notify(service, notification(first, { UTR }))
      for (const UTR of again) expect((await notify(service, notification(second, { UTR }))).body).toEqual(USED)
      const exceptions = [`UTR of another order: SUCCESS ${again[0]}`]
      expect(await stored(second)).toEqual({ end: 'PENDING', history: [], exceptions })
      expect((await stored(first)).end).toBe(`SUCCESS ${UTRs[0]?.toUpperCase()}`)
      const elsewhere = await newOrder(await newMerchant(service.db))
      expect((await notify(service, notification(elsewhere, { UTR: again[0] }))).status).toBe(200)
    },
  )
})

describe('the signature of a notification', () => {
  const send = (body: string | Buffer | undefined, signature: string | undefined, type = 'application/json') =>
    post(service.app, NOTIFY, body, undefined, {
      'content-type': type,
      ...(signature !== undefined && { 'x-signature': signature }),
    })
  type Signer = (body: string, now: Date) => string | undefined
  const aged =
    (seconds: number): Signer =>
    (body, now) =>
      sign(body, new Date(now.getTime() + seconds * 1000))

  it.each<[string, 200 | 401, Signer]>([
    ['with the first secret', 200, sign],
    ['among several signatures', 200, (body, now) => `${sign(body, now, 'x')},v1=${sign(body, now).split('v1=')[1]}`],
    ['with an empty secret', 401, (body, now) => sign(body, now, '')],
    ['for a body with one byte less', 401, (body, now) => sign(body.slice(0, -1), now)],
    ['for another amount', 401, (body, now) => sign(body.replace('200', '201'), now)],
    ['299 s old', 200, aged(-299)],
    ['301 s old', 401, aged(-301)],
    ['299 s early', 200, aged(299)],
    ['301 s early', 401, aged(301)],
    ['that is garbage', 401, () => 'garbage,,=,='],
    ['without t', 401, (body, now) => sign(body, now).split(',')[1]],
    ['without v1', 401, (body, now) => sign(body, now).split(',')[0]],
    ['with two times', 401, (body, now) => `${sign(body, now)},t=1`],
    ['with a negative time', 401, () => `t=-1,v1=${'0'.repeat(64)}`],
    ['with a short v1', 401, (body, now) => sign(body, now).slice(0, -62)],
    ['of 10 kB', 401, (body, now) => sign(body, now) + `,v1=${'0'.repeat(64)}`.repeat(150)],
  ])('returns the expected status for a notification with a signature %s: %i', async (_name, status, signer) => {
    const body = notification(await newOrder())
    const response = await send(body, signer(body, service.clock.now()))
    expect(response.body).toEqual(status === 200 ? RECORDED : UNSIGNED)
  })

  it.each([
    ['{', 'application/json'],
    ['', 'application/json'],
    ['x', 'text/plain'],
    [undefined, 'application/json'],
  ])(
    'checks the signature before the body, and returns 401 for the unsigned body %j of the type %s',
    async (body, type) => {
      expect((await send(body, undefined, type)).status).toBe(401)
    },
  )
})

describe('an unreadable notification', () => {
  it.each([
    [
      { orderId: undefined, status: 'MAYBE', UTR: 'x y', amount: '1e3', paidAt: 'yesterday' },
      'orderId is required; status must be SUCCESS, FAIL or REJECT; UTR must be 1 to 35 letters and digits; amount must be rupees with at most two decimals; paidAt must be a time in ISO 8601 with a time zone (2026-01-31T09:30:00Z)',
    ],
    [{ UTR: undefined, paidAt: undefined }, 'UTR is required with SUCCESS; paidAt is required with SUCCESS'],
    ...[
      '2026-03-31T23:59:59',
      '2026-03-31 23:59:59',
      '2026-03-31T24:00:00Z',
      '2026-12-31T23:59:60Z',
      '2026-02-29T00:00Z',
    ].map((paidAt): [object, string] => [{ paidAt }, `paidAt ${ZONED_MOMENT_RULE}`]),
  ])('returns 400 and names every invalid field of the notification %j', async (changes, msg) => {
    expect((await notify(service, notification('0'.repeat(32), changes))).body).toEqual(errorResponse(400, msg))
  })

  const unreadable = async () =>
    (
      await service.db.query<{ body: string }>(`select body from payment_exceptions where kind = 'unreadable'`)
    ).rows.map(({ body }) => body)

  it.each([
    ['an unknown status', '{"orderId":"kept","status":"DONE"}', '{"orderId":"kept","status":"DONE"}'],
    ['no JSON', 'no JSON, stored', 'no JSON, stored'],
    ['no fields', '[]', '[]'],
    ['nothing', 'null', 'null'],
    ['a NUL', '{"a\u0000":', '{"a\ufffd":'],
    ['bytes that are not UTF-8', Buffer.from([0x7b, 0xff, 0xfe, 0x01]), '{\ufffd\ufffd\u0001'],
    ['16 kB of letters', 'x'.repeat(16_000), 'x'.repeat(2_048)],
    ['16 kB of bytes that are not UTF-8', Buffer.alloc(16_000, 0xff), '\ufffd'.repeat(682)],
    ['16 kB of four-byte characters after a one-byte character', `x${'😀'.repeat(3_999)}`, `x${'😀'.repeat(511)}`],
  ])('stores the first 2 KiB of an unreadable notification once as text: %s', async (_name, body, text) => {
    const headers = { 'content-type': 'application/json', 'x-signature': sign(body, service.clock.now()) }
    for (let i = 0; i < 2; i++) expect((await post(service.app, NOTIFY, body, undefined, headers)).status).toBe(400)
    expect((await unreadable()).filter((saved) => saved === text)).toHaveLength(1)
    expect(service.log.join()).not.toContain('kept')
  })

  it('stores no unreadable notification without a valid signature', async () => {
    await post(service.app, NOTIFY, '{"unsigned":1}', undefined, { 'x-signature': 't=1,v1=00' })
    expect((await unreadable()).join()).not.toContain('unsigned')
  })

  it('returns 404 for a notification if ACQUIRER_SECRETS is not set', async () => {
    const bare = await startService({ acquirers: { direct: [] } })
    expect((await notify(bare, notification('0'.repeat(32)))).body).toEqual(
      errorResponse(404, 'This URL does not exist. Check its path.'),
    )
  })
})

describe('the metric of payment exceptions', () => {
  const metricOf = async (counted: TestService) =>
    Object.fromEntries(
      [
        ...(await counted.metrics()).matchAll(/^payment_exceptions_total\{kind="(.*)",acquirer="direct"\} (\d+)$/gm),
      ].map(([, kind = '', count]) => [kind, Number(count)]),
    )

  it('the exception metric starts at 0 for every kind and counts each exception once', async () => {
    const counted = await startService()
    const once = {
      'unknown order': 1,
      'amount differs': 1,
      'UTR of another order': 0,
      'UTR of another merchant': 0,
      'double payment': 1,
      'late payment': 1,
      'failure after success': 1,
      unreadable: 1,
      'refund unsure': 0,
      'refund without an end': 0,
      'refund failed after success': 0,
      'refunded above what was paid': 0,
      'refund differs': 0,
      'unknown dispute': 0,
      'dispute differs': 0,
      'refund of a disputed payment': 0,
    }
    expect(await metricOf(counted)).toEqual(Object.fromEntries(Object.keys(once).map((kind) => [kind, 0])))
    const orderId = await createOrder(counted, await newMerchant(counted.db))
    counted.clock.advance(OVER_SECONDS)
    const changes = [{}, {}, { status: 'FAIL' }, { amount: 7 }, { orderId: '0'.repeat(32) }]
    const bodies = [...changes.map((change) => notification(orderId, change)), '{']
    for (const body of [...bodies, ...bodies]) await notify(counted, body)
    expect(await metricOf(counted)).toEqual(once)
  })

  it('the exception metric counts unreadable notifications beyond the 1,000 open exceptions that the service stores for one account', async () => {
    const full = await startService()
    await full.db.query(
      `insert into payment_exceptions (mid, order_id, kind, utr, amount_paise, dedup_key, body, received_at, acquirer_account)
       select '', '', 'unreadable', '', 0, i, '', now(), 'direct' from generate_series(1, 999) i`,
    )
    for (let i = 0; i < 3; i++) expect((await notify(full, `no JSON ${i}`)).status).toBe(400)
    const { rows } = await full.db.query(`select count(*)::integer as stored from payment_exceptions`)
    expect(rows).toEqual([{ stored: 1_000 }])
    expect(await metricOf(full)).toMatchObject({ unreadable: 3 })
  })
})
