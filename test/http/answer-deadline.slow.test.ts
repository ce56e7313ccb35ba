import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { NOTIFY, notification, sign } from '../support/acquirer.ts'
import {
  ACQUIRER_SECRETS,
  answerOf,
  CREATE,
  intentFields,
  type Key,
  LIST,
  newKey,
  newMerchant,
  newPartner,
  post,
  refusal,
  STATUS,
  startService,
  type TestService,
  unique,
} from '../support/service.ts'

/** Long before any other limit would end the wait. */
const LIMITS_HERE = {
  database: { queryTimeoutMs: 100 },
  answer: { ms: 200 },
  patience: { ms: 1_000 },
  inserts: { waitingMs: 150 },
}
const PATIENCE_MS = LIMITS_HERE.patience.ms
const UNAVAILABLE = refusal(503, 'The service is briefly unavailable; try again in a moment')

let service: TestService
let mid: string
let key: Key
/** A key that no request has used yet: those are remembered for a second. */
let unseen: Key
let partner: { pid: string; key: Key }
let orderId: string
beforeAll(async () => {
  service = await startService({ acquirerSecrets: ACQUIRER_SECRETS, limits: LIMITS_HERE })
  ;({ mid, key } = await newMerchant(service.db))
  unseen = await newKey(service.db, { mid })
  partner = await newPartner(service.db, mid)
  orderId = (await post(service.app, CREATE, intentFields(mid), key)).body.data.orderId
})

/** Statements that contain `part` get no answer until `release` is called. */
function silence(part: string) {
  const { query } = pg.Client.prototype
  let release: () => void = () => undefined
  const released = new Promise<void>((done) => {
    release = done
  })
  pg.Client.prototype.query = function (this: pg.Client, ...args: [string | { text: string }]) {
    const text = typeof args[0] === 'string' ? args[0] : args[0].text
    const send = () => query.apply(this, args as never)
    return text.includes(part) ? released.then(send) : send()
  } as never
  return {
    release() {
      pg.Client.prototype.query = query
      release()
    },
  }
}

describe('503 in time when no answer comes', () => {
  const list = () =>
    post(service.app, LIST, { pid: partner.pid, mid, s_date: '01-01-2026', e_date: '01-01-2026' }, partner.key)
  const body = () => notification(orderId)
  const notify = (text: string) =>
    post(service.app, NOTIFY, text, undefined, {
      'content-type': 'application/json',
      'x-signature': sign(text, service.clock.now()),
    })
  it.each([
    ['credentials', 'access_keys', () => post(service.app, CREATE, intentFields(mid), unseen)],
    ['createPaymentIntent', 'insert into payment_intents', () => post(service.app, CREATE, intentFields(mid), key)],
    ['the link of a partner', 'partner_merchants', list],
    ['a list', 'from settlements', list],
    ['a notification', 'update payment_intents', () => notify(body())],
    ['readiness', 'schema_migrations', async () => answerOf(await service.app.inject('/readyz'))],
    [
      'the events of a page',
      'join merchants',
      async () => answerOf(await service.app.inject(`/pay/${orderId}/events`)),
    ],
  ])('to %s', async (_name, part, send) => {
    const silent = silence(part)
    const answer = await send()
    silent.release()
    expect([answer.status, answer.body, answer.headers['retry-after']]).toEqual([503, UNAVAILABLE, '1'])
  })

  it('to a pay page, as a page', async () => {
    const silent = silence('join merchants')
    const answer = answerOf(await service.app.inject(`/pay/${orderId}`))
    silent.release()
    expect([answer.status, answer.headers['retry-after']]).toEqual([503, '1'])
    expect(answer.headers['content-type']).toContain('text/html')
  })
})

describe('503 after its patience to checkPaymentStatus when no answer comes', () => {
  it.each([
    ['to its own query', 'merchant_order_id = $2'],
    ['to the look-up of its key', 'access_keys'],
  ])('%s', async (_name, part) => {
    const caller = part === 'access_keys' ? await newKey(service.db, { mid }) : key
    const silent = silence(part)
    const startedAt = performance.now()
    const answer = await post(service.app, STATUS, { mid, order_id: orderId }, caller)
    const tookMs = performance.now() - startedAt
    silent.release()
    expect([answer.status, answer.body, answer.headers['retry-after']]).toEqual([503, UNAVAILABLE, '1'])
    expect(tookMs).toBeGreaterThan(PATIENCE_MS - 100)
  })
})

it('an intent that was refused while it waited for its batch is not stored afterwards', async () => {
  const silent = silence('insert into payment_intents')
  const prefix = unique('waiting')
  const create = (number: number) =>
    post(service.app, CREATE, intentFields(mid, { order_id: `${prefix}-${number}` }), key)
  const answers: ReturnType<typeof create>[] = []
  // One by one, so that each of the first makes a batch of its own, until no more may be under way.
  for (let number = 1; number <= 8; number++) {
    answers.push(create(number))
    await sleep(20)
  }
  for (const { status } of await Promise.all(answers)) expect(status).toBe(503)
  silent.release()
  // Through the same queue, so behind all that waited.
  expect((await create(9)).status).toBe(200)
  await sleep(200)
  const { rows } = await service.db.query<{ id: string }>(
    'select merchant_order_id as id from payment_intents where mid = $1 and merchant_order_id like $2 order by 1',
    [mid, `${prefix}-%`],
  )
  const stored = rows.map(({ id }) => id)
  expect(stored).toContain(`${prefix}-9`)
  // Earlier ones may be stored: they had already been sent to the database.
  expect(stored).not.toContain(`${prefix}-8`)
})
