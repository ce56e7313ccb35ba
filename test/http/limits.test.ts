import { describe, expect, it } from 'vitest'
import {
  basic,
  CREATE,
  errorResponse,
  type HttpResponse,
  intentFields,
  type Key,
  newMerchant,
  post,
  startService,
  unique,
} from '../support/service.ts'

const REQUESTS_PER_SECOND = 30
const FAILURES_PER_MINUTE = 20
const UNKNOWN_KEYS_PER_MINUTE = 100

const service = await startService({ rateLimitPerSecond: REQUESTS_PER_SECOND, standsStill: true })

const create = (mid: string, key: Key) => post(service.app, CREATE, intentFields(mid), key)

async function statuses(count: number, send: () => Promise<{ status: number }>): Promise<number[]> {
  const seen: number[] = []
  for (let i = 0; i < count; i++) seen.push((await send()).status)
  return seen
}

describe('rate limits', () => {
  it('returns 429 with Retry-After and RateLimit headers for an API key above its limit per second, but not for other keys', async () => {
    const busy = await newMerchant(service.db)
    const responses = await Promise.all(
      Array.from({ length: REQUESTS_PER_SECOND + 1 }, () => create(busy.mid, busy.key)),
    )
    expect(responses.filter(({ status }) => status === 200)).toHaveLength(REQUESTS_PER_SECOND)
    const { status, body, headers } = responses.find(({ status }) => status !== 200) as HttpResponse
    expect([status, body]).toEqual([
      429,
      errorResponse(
        429,
        `Too many requests: the limit is ${REQUESTS_PER_SECOND} a second. Try again after Retry-After seconds.`,
      ),
    ])
    expect(headers).toMatchObject({
      'ratelimit-limit': '30',
      'ratelimit-remaining': '0',
      'x-error-code': 'rate_limited',
    })
    expect(headers['retry-after']).toBe('1')
    expect(headers['ratelimit-reset']).toBe(headers['retry-after'])
    const other = await newMerchant(service.db)
    expect((await create(other.mid, other.key)).status).toBe(200)
  })

  it('returns 429 for too many wrong secrets of one public key, while the right secret is always accepted', async () => {
    const { mid, key } = await newMerchant(service.db)
    const guess = () => create(mid, { ...key, secretKey: 'sk_guess' })
    expect(new Set(await statuses(FAILURES_PER_MINUTE, guess))).toEqual(new Set([401]))
    const { status, body, headers } = await guess()
    expect([status, headers['x-error-code'], body]).toEqual([
      429,
      'too_many_invalid_credentials',
      errorResponse(
        429,
        `Too many invalid credentials: the limit is ${FAILURES_PER_MINUTE} a minute. Correct both keys and repeat the request: valid credentials are accepted immediately.`,
      ),
    ])
    expect((await create(mid, key)).status).toBe(200)
  })

  it('counts failed log-ins per key, so that another key behind the same address is not locked out', async () => {
    const [noisy, quiet] = [await newMerchant(service.db), await newMerchant(service.db)]
    await statuses(FAILURES_PER_MINUTE + 1, () => create(noisy.mid, { ...noisy.key, secretKey: 'sk_guess' }))
    expect((await create(quiet.mid, { ...quiet.key, secretKey: 'sk_typo' })).status).toBe(401)
  })

  it('counts failed log-ins per address, so that guesses from another address do not lock out the holder of a key', async () => {
    const { mid, key } = await newMerchant(service.db)
    const wrong = { ...key, secretKey: 'sk_guess' }
    await statuses(FAILURES_PER_MINUTE + 1, () => create(mid, wrong))
    const { statusCode } = await service.app.inject({
      method: 'POST',
      url: CREATE,
      remoteAddress: '203.0.113.9',
      headers: { authorization: basic(wrong) },
    })
    expect(statusCode).toBe(401)
  })

  it('returns 429 for random public keys from one address, while every valid key is always accepted', async () => {
    const [used, fresh] = [await newMerchant(service.db), await newMerchant(service.db)]
    expect((await create(used.mid, used.key)).status).toBe(200)
    const guess = async () => (await create(used.mid, { publicKey: unique('pk_'), secretKey: 'sk_guess' })).status
    const guesses: number[] = []
    const good: number[] = []
    for (let i = 0; i < 15; i++) {
      const some = Promise.all(Array.from({ length: 20 }, guess))
      good.push((await create(used.mid, used.key)).status)
      guesses.push(...(await some))
    }
    // A merchant's key that was not used before, from the address of the guesses.
    good.push((await create(fresh.mid, fresh.key)).status)
    expect(good).toEqual(Array.from({ length: 16 }, () => 200))
    const rejected = Array.from({ length: 300 - UNKNOWN_KEYS_PER_MINUTE }, () => 429)
    expect(guesses.sort()).toEqual([...Array.from({ length: UNKNOWN_KEYS_PER_MINUTE }, () => 401), ...rejected])
    const another = await newMerchant(service.db)
    expect((await create(another.mid, another.key)).status).toBe(200)
  })

  it('returns 429 above a rate limit before reading the body', async () => {
    const { mid, key } = await newMerchant(service.db)
    const used = Array.from({ length: REQUESTS_PER_SECOND }, () => create(mid, key))
    expect((await post(service.app, CREATE, 'x'.repeat(20_000), key)).status).toBe(429)
    await Promise.all(used)
  })
})
