import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { to as copyTo } from 'pg-copy-streams'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { NOTIFY, notification, sign } from '../support/acquirer.ts'
import {
  ACQUIRER_SECRETS,
  CREATE,
  CREATE_UNAVAILABLE,
  intentFields,
  type Key,
  LIST,
  newKey,
  newMerchant,
  newPartner,
  post,
  responseOf,
  STATUS,
  startService,
  type TestService,
  UNAVAILABLE,
} from '../support/service.ts'
import { until } from '../support/wait.ts'

/**
 * The response deadline passes long before a query times out, except for the look-up of credentials, which comes before
 * the deadline starts.
 */
const LIMITS_HERE = {
  database: { queryTimeoutMs: 400 },
  response: { ms: 200 },
  databaseWait: { ms: 1_000, pauseMs: 20 },
  inserts: { waitingMs: 150 },
}
const WAIT_MS = LIMITS_HERE.databaseWait.ms

let service: TestService
let mid: string
let key: Key
/** A key that no request has used yet, because used keys are cached for a second. */
let unseen: Key
let partner: { pid: string; key: Key }
let orderId: string
beforeAll(async () => {
  service = await startService({ acquirers: { direct: ACQUIRER_SECRETS }, limits: LIMITS_HERE })
  ;({ mid, key } = await newMerchant(service.db))
  unseen = await newKey(service.db, { mid })
  partner = await newPartner(service.db, mid)
  // On a busy machine, a create may wait longer than this service allows.
  await until('an order is stored', async () => {
    orderId = (await post(service.app, CREATE, intentFields(mid), key)).body.data?.orderId
    return orderId !== undefined
  })
})

/** Holds back statements that contain `part`, so that no response arrives, until `release` is called. */
function silence(part: string) {
  const stubs = [pg.Query.prototype, Object.getPrototypeOf(copyTo(''))].map((query) => {
    const { submit } = query
    query.submit = function (this: { text: string }, ...args: unknown[]) {
      return this.text.includes(part) ? null : submit.apply(this, args)
    }
    return () => {
      query.submit = submit
    }
  })
  return {
    release() {
      for (const restore of stubs) restore()
    },
  }
}

describe('response deadline while the database does not respond', () => {
  const list = () =>
    post(service.app, LIST, { pid: partner.pid, mid, s_date: '01-01-2026', e_date: '01-01-2026' }, partner.key)
  const body = () => notification(orderId)
  const notify = (text: string) =>
    post(service.app, NOTIFY, text, undefined, {
      'content-type': 'application/json',
      'x-signature': sign(text, service.clock.now()),
    })
  it.each([
    ['credentials', 'access_keys', () => post(service.app, CREATE, intentFields(mid), unseen), CREATE_UNAVAILABLE],
    [
      'createPaymentIntent',
      'insert into payment_intents',
      () => post(service.app, CREATE, intentFields(mid), key),
      CREATE_UNAVAILABLE,
    ],
    ['the link of a partner', 'partner_merchants', list, UNAVAILABLE],
    ['a list', 'from settlements', list, UNAVAILABLE],
    ['a notification', 'update payment_intents', () => notify(body()), UNAVAILABLE],
    ['readiness', 'schema_migrations', async () => responseOf(await service.app.inject('/readyz')), UNAVAILABLE],
    [
      'the events of a page',
      'join merchants',
      async () => responseOf(await service.app.inject(`/pay/${orderId}/events`)),
      UNAVAILABLE,
    ],
  ])('returns 503 before the deadline while the database does not respond: %s', async (_name, part, send, rejected) => {
    const silent = silence(part)
    const response = await send()
    silent.release()
    expect([response.status, response.body, response.headers['retry-after']]).toEqual([503, rejected, '1'])
  })

  it('returns 503 as HTML for a pay page before the deadline while the database does not respond', async () => {
    const silent = silence('join merchants')
    const response = responseOf(await service.app.inject(`/pay/${orderId}`))
    silent.release()
    expect([response.status, response.headers['retry-after']]).toEqual([503, '1'])
    expect(response.headers['content-type']).toContain('text/html')
  })
})

describe('longest wait of checkPaymentStatus while the database does not respond', () => {
  it.each([
    ['its own query', 'merchant_order_id = $2'],
    ['the look-up of its key', 'access_keys'],
  ])(
    'returns 503 for checkPaymentStatus after its longest wait while the database does not respond to %s',
    async (_name, part) => {
      const caller = part === 'access_keys' ? await newKey(service.db, { mid }) : key
      const silent = silence(part)
      const startedAt = performance.now()
      const response = await post(service.app, STATUS, { mid, order_id: orderId }, caller)
      const tookMs = performance.now() - startedAt
      silent.release()
      expect([response.status, response.body, response.headers['retry-after']]).toEqual([503, UNAVAILABLE, '1'])
      expect(tookMs).toBeGreaterThan(WAIT_MS - 100)
    },
  )
})

it('the service never stores an intent whose request was rejected while the intent waited for its batch', async () => {
  // Statements wait for a lock in this test, so that PostgreSQL responds once the lock is released.
  const { response, inserts } = LIMITS_HERE
  const slow = await startService({ limits: { response, inserts } })
  const merchant = await newMerchant(slow.db)
  const create = (number: number) =>
    post(slow.app, CREATE, intentFields(merchant.mid, { order_id: String(number) }), merchant.key)
  expect((await create(0)).status).toBe(200)
  const locker = new pg.Client({ connectionString: slow.databaseUrl })
  await locker.connect()
  onTestFinished(() => locker.end())
  await locker.query('begin; lock table payment_intents in share mode')
  const responses: ReturnType<typeof create>[] = []
  // One by one, so that each of the first ones forms its own batch, until no more batches may be in progress.
  for (let number = 1; number <= 8; number++) {
    responses.push(create(number))
    await sleep(20)
  }
  for (const { status } of await Promise.all(responses)) expect(status).toBe(503)
  await locker.query('rollback')
  // Uses the same queue, so it comes after all requests that waited.
  expect((await create(9)).status).toBe(200)
  const { rows } = await slow.db.query<{ id: string }>(
    'select merchant_order_id as id from payment_intents where mid = $1 order by 1',
    [merchant.mid],
  )
  const stored = rows.map(({ id }) => id)
  expect(stored).toContain('9')
  // Earlier ones may be stored, because they had already been sent to the database.
  expect(stored).not.toContain('8')
})
