import pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { NOTIFY, newUtr, notification, notify, sign } from '../support/acquirer.ts'
import { createOrder } from '../support/orders.ts'
import {
  ACQUIRER_SECRETS,
  CREATE,
  intentFields,
  type Key,
  newMerchant,
  post,
  refusal,
  startService,
  type TestService,
} from '../support/service.ts'

const RECORDED = { status: true, statusCode: 200, msg: 'Notification recorded', data: {} }
const UNSIGNED = refusal(401, 'Send X-Signature: t=<unix seconds>,v1=<hex HMAC-SHA256 of "t.body">, within 5 minutes')

let service: TestService
let mid: string
let key: Key
beforeAll(async () => {
  service = await startService()
  ;({ mid, key } = await newMerchant(service.db))
})

const newOrder = (of = { mid, key }) => createOrder(service, of)

async function stored(orderId: string) {
  const intent = await service.db.query('select status, utr from payment_intents where order_id = $1', [orderId])
  const changes = await service.db.query(
    `select status, utr, reason, changed_at, paid_at from payment_changes where order_id = $1
     union all
     select status, utr, reason, reported_at, paid_at from payment_attempts where order_id = $1
      order by changed_at`,
    [orderId],
  )
  const exceptions = await service.db.query(
    'select kind, status, utr, amount, mid from payment_exceptions where order_id = $1 order by received_at, utr',
    [orderId],
  )
  return { ...intent.rows[0], changes: changes.rows, exceptions: exceptions.rows }
}

describe('200', () => {
  it('records a success with its UTR and times, once, however often it is told', async () => {
    const orderId = await newOrder()
    const body = notification(orderId, { UTR: '523504870405' })
    for (let i = 0; i < 3; i++) {
      const { status, body: answer } = await notify(service, body)
      expect([status, answer]).toEqual([200, RECORDED])
      service.clock.advance(1)
    }
    const { status, utr, changes, exceptions } = await stored(orderId)
    expect({ status, utr, exceptions }).toEqual({ status: 'SUCCESS', utr: '523504870405', exceptions: [] })
    expect(changes).toEqual([
      {
        status: 'SUCCESS',
        utr: '523504870405',
        reason: 'notification',
        changed_at: expect.any(Date),
        paid_at: new Date('2026-03-31T18:25:00Z'),
      },
    ])
  })

  it.each([[200], ['200'], ['200.00'], ['200.0'], [200.0]])('takes the amount as %j', async (amount) => {
    expect((await notify(service, notification(await newOrder(), { amount }))).status).toBe(200)
  })

  it.each(['FAIL', 'REJECT'])('records %s, without UTR and paidAt too, and lets it become SUCCESS', async (status) => {
    const orderId = await newOrder()
    await notify(service, notification(orderId, { status, UTR: undefined, paidAt: undefined }))
    expect(await stored(orderId)).toMatchObject({ status, utr: null })
    service.clock.advance(1)
    await notify(service, notification(orderId, { UTR: newUtr() }))
    const { status: now, changes } = await stored(orderId)
    expect([now, changes.map((change: { status: string }) => change.status)]).toEqual(['SUCCESS', [status, 'SUCCESS']])
  })

  it.each(['FAIL', 'REJECT'])(
    'never undoes a success by a later %s, and keeps that for the operator',
    async (status) => {
      const orderId = await newOrder()
      const UTR = newUtr()
      await notify(service, notification(orderId, { UTR }))
      for (let i = 0; i < 2; i++) {
        expect((await notify(service, notification(orderId, { status, UTR }))).body).toEqual(RECORDED)
      }
      expect(await stored(orderId)).toMatchObject({
        status: 'SUCCESS',
        exceptions: [{ kind: 'failure after success', status, utr: UTR, amount: '200.00', mid }],
      })
    },
  )

  it('takes a failed attempt that is told again after the success for what it is', async () => {
    const orderId = await newOrder()
    const failed = notification(orderId, { status: 'FAIL' })
    for (const body of [failed, notification(orderId), failed]) await notify(service, body)
    expect(await stored(orderId)).toMatchObject({ status: 'SUCCESS', exceptions: [] })
  })

  it('keeps each failed attempt, by its UTR or else its time, however often and in whatever order they are told', async () => {
    const orderId = await newOrder()
    const attempts = [
      notification(orderId, { status: 'FAIL', UTR: undefined, paidAt: undefined }),
      notification(orderId, { status: 'FAIL', UTR: 'aTT1' }),
      notification(orderId, { status: 'REJECT', UTR: 'ATT2' }),
      notification(orderId, { status: 'FAIL', UTR: undefined, paidAt: '2026-03-31T23:56:00+05:30' }),
    ]
    for (const body of [
      ...attempts,
      ...attempts.toReversed(),
      notification(orderId, { status: 'FAIL', UTR: 'ATT1' }),
    ]) {
      await notify(service, body)
      service.clock.advance(1)
    }
    const { status, changes } = await stored(orderId)
    expect(status).toBe('FAIL')
    expect(changes.map((change: { status: string; utr: string }) => [change.status, change.utr])).toEqual([
      ['FAIL', null],
      ['FAIL', 'ATT1'],
      ['REJECT', 'ATT2'],
      ['FAIL', null],
    ])
  })

  it('makes one success of a success and twenty failed attempts at once, and loses none of them', async () => {
    const orderId = await newOrder()
    const failed = Array.from({ length: 20 }, (_, i) =>
      notification(orderId, { status: i % 2 === 0 ? 'FAIL' : 'REJECT' }),
    )
    failed.splice(10, 0, notification(orderId))
    const answers = await Promise.all(failed.map((body) => notify(service, body)))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    const { status, changes, exceptions } = await stored(orderId)
    expect([status, changes.length + exceptions.length]).toEqual(['SUCCESS', 21])
  })

  it('counts money that comes after expiry', async () => {
    const orderId = await newOrder()
    service.clock.advance(25 * 60 - 16)
    expect((await notify(service, notification(orderId))).body).toEqual(RECORDED)
    expect(await stored(orderId)).toMatchObject({ status: 'SUCCESS', exceptions: [] })
  })

  it('keeps money that comes after the shop was told the end as a late payment, once, though it counts', async () => {
    const orderId = await newOrder()
    service.clock.advance(25 * 60)
    const body = notification(orderId, { UTR: 'LATE1' })
    for (let i = 0; i < 2; i++) expect((await notify(service, body)).body).toEqual(RECORDED)
    const { status, exceptions } = await stored(orderId)
    expect([status, exceptions]).toEqual([
      'SUCCESS',
      [{ kind: 'late payment', status: 'SUCCESS', utr: 'LATE1', amount: '200.00', mid }],
    ])
  })

  it('stores no late success whose exception could not be stored: both or nothing', async () => {
    const orderId = await newOrder()
    service.clock.advance(25 * 60)
    await service.db.query(
      `alter table payment_exceptions add constraint no_late check (kind <> 'late payment') not valid`,
    )
    const body = notification(orderId)
    expect((await notify(service, body)).status).toBe(500)
    expect(await stored(orderId)).toMatchObject({ status: 'PENDING', changes: [], exceptions: [] })
    await service.db.query('alter table payment_exceptions drop constraint no_late')
    expect((await notify(service, body)).status).toBe(200)
    expect(await stored(orderId)).toMatchObject({ status: 'SUCCESS', exceptions: [{ kind: 'late payment' }] })
  })

  it('takes upper and lower case in a UTR for the same', async () => {
    const [first, second] = [await newOrder(), await newOrder()]
    for (const UTR of ['abcX1', 'ABCX1', 'AbCx1']) {
      expect((await notify(service, notification(first, { UTR }))).status).toBe(200)
      expect((await notify(service, notification(second, { UTR }))).status).toBe(409)
    }
    expect(await stored(first)).toMatchObject({ status: 'SUCCESS', utr: 'ABCX1', exceptions: [] })
    expect(await stored(second)).toMatchObject({ status: 'PENDING', exceptions: [{ kind: 'UTR of another order' }] })
  })

  it('lets the UTR of a double payment, which is to be refunded, pay no other order', async () => {
    const [paidTwice, other] = [await newOrder(), await newOrder()]
    const [first, second] = [newUtr(), newUtr()]
    for (const UTR of [first, second]) await notify(service, notification(paidTwice, { UTR }))
    expect((await notify(service, notification(other, { UTR: second }))).status).toBe(409)
    expect(await stored(other)).toMatchObject({ status: 'PENDING', exceptions: [{ kind: 'UTR of another order' }] })
  })

  it('keeps a reversal also where an earlier attempt of the same UTR had failed', async () => {
    const orderId = await newOrder()
    const UTR = newUtr()
    const failedAt = (paidAt: string) => notification(orderId, { status: 'FAIL', UTR, paidAt })
    await notify(service, failedAt('2026-03-31T23:50:00+05:30'))
    await notify(service, notification(orderId, { UTR }))
    for (let i = 0; i < 2; i++) await notify(service, failedAt('2026-03-31T23:58:00+05:30'))
    expect((await stored(orderId)).exceptions).toMatchObject([{ kind: 'failure after success' }])
    // A repeat of the earlier one changes nothing.
    await notify(service, failedAt('2026-03-31T23:50:00+05:30'))
    expect((await stored(orderId)).exceptions).toHaveLength(1)
  })

  it('keeps a second success with another UTR as a double payment, and answers 200', async () => {
    const orderId = await newOrder()
    await notify(service, notification(orderId, { UTR: '900000000001' }))
    const second = notification(orderId, { UTR: '900000000002' })
    for (let i = 0; i < 2; i++) expect((await notify(service, second)).body).toEqual(RECORDED)
    const { utr, exceptions } = await stored(orderId)
    expect(utr).toBe('900000000001')
    expect(exceptions).toEqual([
      { kind: 'double payment', status: 'SUCCESS', utr: '900000000002', amount: '200.00', mid },
    ])
  })

  it('counts for a merchant that is disabled', async () => {
    const other = await newMerchant(service.db)
    const orderId = await newOrder(other)
    await service.db.query('update merchants set disabled_at = now() where mid = $1', [other.mid])
    expect((await notify(service, notification(orderId))).status).toBe(200)
  })

  it('makes one change and one answer of two at once, 50 times over', async () => {
    for (let i = 0; i < 50; i++) {
      const orderId = await newOrder()
      const body = notification(orderId, { UTR: newUtr() })
      const answers = await Promise.all([notify(service, body), notify(service, body)])
      expect(answers.map(({ status, body }) => [status, body])).toEqual([
        [200, RECORDED],
        [200, RECORDED],
      ])
      const { status, changes, exceptions } = await stored(orderId)
      expect([status, changes.length, exceptions.length]).toEqual(['SUCCESS', 1, 0])
    }
  })

  it('makes one success and one double payment of two at once with two UTRs, 20 times over', async () => {
    for (let i = 0; i < 20; i++) {
      const orderId = await newOrder()
      await Promise.all([notify(service, notification(orderId)), notify(service, notification(orderId))])
      const { status, changes, exceptions } = await stored(orderId)
      expect([status, changes.length, exceptions.length]).toEqual(['SUCCESS', 1, 1])
    }
  })
})

describe('many at once', () => {
  it('leave connections for payments, also where each waits for the one before it', async () => {
    const orderId = await newOrder()
    const UTR = newUtr()
    const other = new pg.Client({ connectionString: service.databaseUrl })
    await other.connect()
    await other.query('select pg_advisory_lock(hashtextextended($1, 0))', [UTR])
    const reports = Promise.all(Array.from({ length: 50 }, () => notify(service, notification(orderId, { UTR }))))
    const waits = `select from pg_locks where locktype = 'advisory' and not granted`
    await expect.poll(async () => (await other.query(waits)).rowCount).toBeGreaterThan(0)
    await newOrder()
    await other.end()
    expect((await reports).map(({ status }) => status)).toEqual(Array(50).fill(200))
  })

  it('are refused beyond what can wait, and may be sent again', async () => {
    const narrow = await startService({ limits: { reports: { atOnce: 1, waiting: 10 } } })
    const merchant = await newMerchant(narrow.db)
    const { orderId } = (await post(narrow.app, CREATE, intentFields(merchant.mid), merchant.key)).body.data
    const body = notification(orderId)
    const statuses = (await Promise.all(Array.from({ length: 15 }, () => notify(narrow, body)))).map((it) => it.status)
    expect(statuses.sort()).toEqual([...Array(10).fill(200), ...Array(5).fill(503)])
    expect((await notify(narrow, body)).status).toBe(200)
  })
})

describe('what contradicts', () => {
  it.each([[199], [201], ['200.01'], [0]])('409 for the amount %j, kept for the operator', async (amount) => {
    const orderId = await newOrder()
    const { status, body } = await notify(service, notification(orderId, { amount }))
    expect([status, body]).toEqual([409, refusal(409, 'The amount differs from the amount of the order')])
    expect(await stored(orderId)).toMatchObject({ status: 'PENDING', exceptions: [{ kind: 'amount differs' }] })
  })

  it('keeps a failure and a success of one UTR as two facts, with the time of the money', async () => {
    const orderId = await newOrder()
    const UTR = newUtr()
    await notify(service, notification(orderId, { status: 'FAIL', UTR, amount: 150, paidAt: undefined }))
    await notify(service, notification(orderId, { UTR, amount: 150 }))
    const { rows } = await service.db.query(
      'select status, amount, paid_at from payment_exceptions where order_id = $1 order by status',
      [orderId],
    )
    expect(rows).toEqual([
      { status: 'FAIL', amount: '150.00', paid_at: null },
      { status: 'SUCCESS', amount: '150.00', paid_at: new Date('2026-03-31T18:25:00Z') },
    ])
  })

  it.each(['199.99999999999999999', '200.0000000000000001', '2000000000000000000001e-19'])(
    'refuses the amount %s, which a float takes for 200: its digits are judged',
    async (amount) => {
      const orderId = await newOrder()
      const body = notification(orderId).replace('"amount":200', `"amount":${amount}`)
      expect((await notify(service, body)).body).toEqual(
        refusal(400, 'amount must be rupees with at most two decimals'),
      )
      expect((await stored(orderId)).status).toBe('PENDING')
    },
  )

  it('409 for a UTR that paid another order of the merchant, kept for the operator', async () => {
    const UTR = newUtr()
    const [first, second] = [await newOrder(), await newOrder()]
    await notify(service, notification(first, { UTR }))
    const { status, body } = await notify(service, notification(second, { UTR }))
    expect([status, body]).toEqual([409, refusal(409, 'This UTR was already used by another order')])
    expect(await stored(second)).toMatchObject({ status: 'PENDING', exceptions: [{ kind: 'UTR of another order' }] })
  })

  it('lets one UTR pay exactly one of two orders at once, 20 times over', async () => {
    for (let i = 0; i < 20; i++) {
      const orders = [await newOrder(), await newOrder()]
      const UTR = newUtr()
      const answers = await Promise.all(orders.map((orderId) => notify(service, notification(orderId, { UTR }))))
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 409])
    }
  })

  it('counts one UTR for exactly one of two open and two paid orders at once, 20 times over', async () => {
    for (let i = 0; i < 20; i++) {
      const [open, paid] = [
        [await newOrder(), await newOrder()],
        [await newOrder(), await newOrder()],
      ]
      for (const orderId of paid) await notify(service, notification(orderId))
      const UTR = newUtr()
      const answers = await Promise.all(
        [...paid, ...open].map((orderId) => notify(service, notification(orderId, { UTR }))),
      )
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409])
      const { rows } = await service.db.query(
        `select order_id from payment_intents where utr = $1
         union all
         select order_id from payment_exceptions where utr = $1 and kind = 'double payment'`,
        [UTR],
      )
      expect(rows).toHaveLength(1)
    }
  })

  it('lets two merchants have the same UTR', async () => {
    const UTR = newUtr()
    for (const orderId of [await newOrder(), await newOrder(await newMerchant(service.db))]) {
      expect((await notify(service, notification(orderId, { UTR }))).status).toBe(200)
    }
  })

  it('404 for an unknown order, kept for the operator once', async () => {
    const orderId = '0'.repeat(32)
    const body = notification(orderId, { UTR: newUtr() })
    for (let i = 0; i < 2; i++) {
      const { status, body: answer } = await notify(service, body)
      expect([status, answer]).toEqual([404, refusal(404, 'Order not found')])
    }
    const { exceptions } = await stored(orderId)
    expect(exceptions).toEqual([expect.objectContaining({ kind: 'unknown order', mid: '' })])
  })

  it('keeps exceptions and changes append-only', async () => {
    for (const table of ['payment_exceptions', 'payment_changes', 'payment_attempts']) {
      for (const sql of [`delete from ${table}`, `update ${table} set utr = ''`, `truncate ${table}`]) {
        await expect(service.db.query(sql)).rejects.toThrow(`${table} is append-only`)
      }
    }
  })
})

describe('401: the signature', () => {
  const send = (body: string | Buffer, signature: string | undefined, type = 'application/json') =>
    post(service.app, NOTIFY, body, undefined, {
      'content-type': type,
      ...(signature !== undefined && { 'x-signature': signature }),
    })

  it('is over the raw bytes: one byte more or less is refused', async () => {
    const body = notification(await newOrder())
    const signature = sign(body, service.clock.now())
    for (const other of [`${body} `, body.slice(0, -1), body.replace('200', '201')]) {
      const { status, body: answer } = await send(other, signature)
      expect([status, answer]).toEqual([401, UNSIGNED])
    }
    expect((await send(body, signature)).status).toBe(200)
  })

  it('is valid with any of the live secrets, in a list of several signatures too, and with no other', async () => {
    const order = async (signature: (body: string) => string) => {
      const body = notification(await newOrder())
      return (await send(body, signature(body))).status
    }
    const now = service.clock.now()
    expect(await order((body) => sign(body, now, ACQUIRER_SECRETS[1]))).toBe(200)
    expect(await order((body) => `${sign(body, now, 'x')},v1=${sign(body, now).split('v1=')[1]}`)).toBe(200)
    expect(await order((body) => sign(body, now, 'a-secret-that-is-not-live'))).toBe(401)
    expect(await order((body) => sign(body, now, ''))).toBe(401)
  })

  it('is valid for 5 minutes either way', async () => {
    const at = (seconds: number) => new Date(service.clock.now().getTime() + seconds * 1000)
    for (const [seconds, expected] of [
      [-299, 200],
      [299, 200],
      [-301, 401],
      [301, 401],
    ] as const) {
      const body = notification(await newOrder())
      expect((await send(body, sign(body, at(seconds)))).status).toBe(expected)
    }
  })

  it.each([
    ['none', undefined],
    ['an empty one', ''],
    ['no t', 'v1=00'],
    ['no v1', 't=1774981799'],
    ['garbage', 'garbage,,=,='],
    ['two times', 't=1,t=2,v1=00'],
    ['a negative time', `t=-1,v1=${'0'.repeat(64)}`],
    ['a short v1', 't=1774981799,v1=00'],
    ['10 kB', `t=1774981799,${`v1=${'0'.repeat(64)},`.repeat(150)}`],
  ])('is refused as %s', async (_name, signature) => {
    expect((await send(notification(await newOrder()), signature)).body).toEqual(UNSIGNED)
  })

  it('comes before the form: an unsigned body of any kind is 401', async () => {
    for (const [body, type] of [
      ['{', 'application/json'],
      ['', 'application/json'],
      ['x', 'text/plain'],
    ] as const) {
      expect((await send(body, undefined, type)).status).toBe(401)
    }
    expect((await post(service.app, NOTIFY, undefined)).status).toBe(401)
  })
})

describe('400 and the rest', () => {
  it('names every wrong field at once', async () => {
    const body = JSON.stringify({ status: 'MAYBE', UTR: 'x y', amount: '1e3', paidAt: 'yesterday' })
    expect((await notify(service, body)).body).toEqual(
      refusal(
        400,
        'orderId is required; status must be SUCCESS, FAIL or REJECT; UTR must be 1 to 35 letters and digits; amount must be rupees with at most two decimals; paidAt must be a time in ISO 8601 with its zone',
      ),
    )
  })

  it('asks for UTR and paidAt with SUCCESS', async () => {
    const body = notification(await newOrder(), { UTR: undefined, paidAt: undefined })
    expect((await notify(service, body)).body).toEqual(
      refusal(400, 'UTR is required with SUCCESS; paidAt is required with SUCCESS'),
    )
  })

  it.each(['[]', 'null', '{', ''])('400 for the signed body %j', async (body) => {
    expect((await notify(service, body)).status).toBe(400)
  })

  const unreadable = async () =>
    (
      await service.db.query<{ body: string }>(
        `select body from payment_exceptions where kind = 'unreadable' order by received_at, body`,
      )
    ).rows.map(({ body }) => body)

  it('keeps what was signed and could not be read, once, and nothing that was not signed', async () => {
    const before = await unreadable()
    const bodies = ['{"orderId":"kept","status":"DONE"}', 'no JSON, kept', '']
    for (let i = 0; i < 2; i++) for (const body of bodies) expect((await notify(service, body)).status).toBe(400)
    await post(service.app, NOTIFY, '{"unsigned":1}', undefined, { 'x-signature': 't=1,v1=00' })
    const kept = await unreadable()
    expect(kept.filter((body) => body.includes('kept')).sort()).toEqual([bodies[1], bodies[0]].sort())
    expect(kept.length).toBeLessThanOrEqual(before.length + 3)
    expect(kept.join()).not.toContain('unsigned')
    expect(service.log.join()).not.toContain('kept')
  })

  it.each([
    ['a NUL', Buffer.from('{"a\u0000":'), '{"a\ufffd":'],
    ['bytes that are not UTF-8', Buffer.from([0x7b, 0xff, 0xfe, 0x01]), '{\ufffd\ufffd\u0001'],
  ])('keeps a body with %s as text', async (_name, body, text) => {
    const headers = { 'content-type': 'application/json', 'x-signature': sign(body, service.clock.now()) }
    expect((await post(service.app, NOTIFY, body, undefined, headers)).status).toBe(400)
    expect(await unreadable()).toContain(text)
  })

  it.each([
    ['letters', Buffer.alloc(16_000, 'x'), 2_048],
    ['bytes that are not UTF-8', Buffer.alloc(16_000, 0xff), 2_046],
    ['characters of four bytes after one of one', Buffer.from(`x${'😀'.repeat(4_000)}`.slice(0, 8_001)), 2_045],
  ])('keeps at most 2 KiB of 16 KB of %s', async (_name, body, bytes) => {
    const headers = { 'content-type': 'application/json', 'x-signature': sign(body, service.clock.now()) }
    expect((await post(service.app, NOTIFY, body, undefined, headers)).status).toBe(400)
    expect((await unreadable()).map((text) => Buffer.byteLength(text))).toContain(bytes)
  })

  it('keeps 1,000 unreadable ones, and counts the rest', async () => {
    const full = await startService()
    await full.db.query(
      `insert into payment_exceptions (mid, order_id, kind, utr, amount, digest, body, received_at)
       select '', '', 'unreadable', '', 0, i, '', now() from generate_series(1, 999) i`,
    )
    for (let i = 0; i < 3; i++) expect((await notify(full, `no JSON ${i}`)).status).toBe(400)
    const { rows } = await full.db.query(`select count(*)::integer as kept from payment_exceptions`)
    expect(rows).toEqual([{ kept: 1_000 }])
    expect(await full.metrics()).toContain('payment_exceptions_total{kind="unreadable"} 3')
  })

  it('has no such route without ACQUIRER_SECRETS', async () => {
    const bare = await startService({ acquirerSecrets: [] })
    expect((await notify(bare, notification('0'.repeat(32)))).body).toEqual(
      refusal(404, 'There is nothing at this address'),
    )
  })
})

describe('the metric of exceptions', () => {
  it('begins at 0 for every kind, and counts each exception once', async () => {
    const counted = await startService()
    const { mid, key } = await newMerchant(counted.db)
    const metric = async () =>
      Object.fromEntries(
        [...(await counted.metrics()).matchAll(/^payment_exceptions_total\{kind="(.*)"\} (\d+)$/gm)].map(
          ([, kind = '', count]) => [kind, Number(count)],
        ),
      )
    const none = {
      'unknown order': 0,
      'amount differs': 0,
      'UTR of another order': 0,
      'double payment': 0,
      'late payment': 0,
      'failure after success': 0,
      unreadable: 0,
    }
    expect(await metric()).toEqual(none)
    const { orderId } = (await post(counted.app, CREATE, intentFields(mid), key)).body.data
    counted.clock.advance(25 * 60)
    const bodies = [
      notification(orderId),
      notification(orderId),
      notification(orderId, { status: 'FAIL' }),
      notification(orderId, { amount: 7 }),
      notification('0'.repeat(32)),
      '{',
    ]
    for (const body of [...bodies, ...bodies]) await notify(counted, body)
    expect(await metric()).toEqual({
      ...none,
      'unknown order': 1,
      'amount differs': 1,
      'double payment': 1,
      'late payment': 1,
      'failure after success': 1,
      unreadable: 1,
    })
  })
})
