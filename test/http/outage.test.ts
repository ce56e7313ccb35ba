import pg from 'pg'
import { describe, expect, it } from 'vitest'
import {
  CREATE,
  CREATE_UNAVAILABLE,
  intentFields,
  LIST,
  newKey,
  newMerchant,
  newPartner,
  post,
  startService,
  UNAVAILABLE,
} from '../support/service.ts'

const service = await startService()
const { mid, key } = await newMerchant(service.db)
const partner = await newPartner(service.db, mid)

const AWAY = Object.assign(new Error('connect ECONNREFUSED 10.0.0.7:5432'), { code: 'ECONNREFUSED' })
const SHUTTING_DOWN = Object.assign(new Error('terminating connection'), { code: '57P01', severity: 'FATAL' })

/** Runs `work` while every statement that contains `part` fails with `error`. */
async function failing<T>(part: string, error: Error, work: () => Promise<T>): Promise<T> {
  const query = pg.Client.prototype.query
  pg.Client.prototype.query = function (this: pg.Client, ...args: [string | { text: string }, unknown, unknown]) {
    const text = typeof args[0] === 'string' ? args[0] : args[0].text
    if (!text.includes(part)) return query.apply(this, args as never)
    // A query through the pool has a callback.
    const callback = args.find((arg) => typeof arg === 'function')
    if (callback) return void (callback as (error: Error) => void)(error)
    return Promise.reject(error)
  } as never
  try {
    return await work()
  } finally {
    pg.Client.prototype.query = query
  }
}

describe('database outage', () => {
  it.each([
    [
      'looks up credentials (never 401)',
      'access_keys',
      AWAY,
      () => post(service.app, CREATE, intentFields(mid), key),
      CREATE_UNAVAILABLE,
    ],
    [
      'stores an intent',
      'payment_intents',
      SHUTTING_DOWN,
      () => post(service.app, CREATE, intentFields(mid), key),
      CREATE_UNAVAILABLE,
    ],
    [
      'looks up a link (never 403)',
      'partner_merchants',
      AWAY,
      () => post(service.app, LIST, { pid: partner.pid, mid, s_date: '01-01-2026', e_date: '01-01-2026' }, partner.key),
      UNAVAILABLE,
    ],
  ])(
    'returns 503 with Retry-After in a database outage when the service %s',
    async (_name, part, error, send, rejected) => {
      const { status, body, headers, text } = await failing(part, error, send)
      expect([status, body]).toEqual([503, rejected])
      expect(headers).toMatchObject({ 'retry-after': '1', 'cache-control': 'no-store' })
      expect(text).not.toMatch(/10\.0\.0\.7|ECONN|terminating/)
    },
  )

  it('returns 500 instead of 401 if the look-up of credentials fails for a reason other than an outage', async () => {
    const fault = Object.assign(new Error('syntax error'), { code: '42601', severity: 'ERROR' })
    // A key that no request has used yet, because used keys are cached for a second.
    const unseen = await newKey(service.db, { mid })
    const send = () => post(service.app, CREATE, intentFields(mid), unseen)
    expect((await failing('access_keys', fault, send)).status).toBe(500)
  })
})
