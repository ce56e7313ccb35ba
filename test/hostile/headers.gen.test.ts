import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { runs } from '../support/generated.ts'
import { FORM } from '../support/requests.ts'
import { basic, CREATE, errorResponse, form, intentFields, unique } from '../support/service.ts'
import { expectEnvelope, startTarget } from './target.ts'

const target = startTarget()

const goodBody = (order_id = unique('o')) => form(intentFields(target.mid, { order_id }))

/** A request of createPaymentIntent with `headers` as raw bytes in addition to the required ones. */
function request(headers: (string | Buffer)[], body = goodBody(), credentials = basic(target.key)): Buffer {
  const head = `POST ${CREATE} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: ${FORM}\r\n`
  const authorization = credentials && `Authorization: ${credentials}\r\n`
  const lines = headers.flatMap((line) => [Buffer.from(line), Buffer.from('\r\n')])
  return Buffer.concat([
    Buffer.from(`${head}Content-Length: ${body.length}\r\n${authorization}`),
    ...lines,
    Buffer.from(`\r\n${body}`),
  ])
}

/** Sends the request again if a busy machine has rejected it temporarily. */
async function send(...args: Parameters<typeof request>) {
  for (let triesLeft = 30; ; triesLeft--) {
    const [response, ...more] = await target.raw(request(...args))
    if (response === undefined || more.length > 0) throw new Error('no single response')
    if (response.status === 503 && triesLeft > 0) continue
    expectEnvelope(response)
    return response
  }
}

const line = (name: string, value: Buffer) => Buffer.concat([Buffer.from(`${name}: `), value])

/** Values that a header can and cannot contain; a line break would begin another header. */
const anyValue = fc.oneof(
  fc.uint8Array({ maxLength: 80 }).map((bytes) => Buffer.from(bytes.filter((byte) => byte !== 10 && byte !== 13))),
  fc.string({ unit: 'grapheme-ascii', maxLength: 80 }).map((text) => Buffer.from(text)),
  // Lengths around the maximum.
  fc.stringMatching(/^[a-z]{63,65}$/).map((text) => Buffer.from(text)),
  fc.string({ unit: 'binary', maxLength: 20 }).map((text) => Buffer.from(text.replace(/[\r\n]/g, ''))),
)

/** The value that a receiver may read according to RFC 9110, section 5.5; undefined if it must reject the value. */
function received(value: Buffer): string | undefined {
  const text = value.toString('latin1')
  return /[\x00-\x08\x0a-\x1f\x7f]/.test(text) ? undefined : text.replace(/^[ \t]+|[ \t]+$/g, '')
}

describe('request headers', () => {
  it('returns the first response again for an Idempotency-Key of 1 to 64 printable ASCII characters, and rejects any other key', async () => {
    await fc.assert(
      fc.asyncProperty(anyValue, async (value) => {
        const key = line('Idempotency-Key', value)
        const body = goodBody()
        const { status, text } = await send([key], body)
        const name = received(value)
        // A short key may have been used before, with another order.
        const expected = name !== undefined && /^[ -~]{1,64}$/.test(name) ? [200, 422] : [400]
        expect(expected).toContain(status)
        if (status !== 200) return
        expect((await send([key], body)).text).toBe(text)
        expect((await send([key])).status).toBe(422)
      }),
      { numRuns: runs(150) },
    )
  })

  it('returns an X-Request-Id of 1 to 64 safe characters, and otherwise returns the service’s own id', async () => {
    const almostSane = fc
      .tuple(fc.stringMatching(/^[A-Za-z0-9._-]{1,65}$/), fc.string({ maxLength: 1 }))
      .map(([text, other]) => Buffer.from(text.slice(0, 5) + other + text.slice(5)))
    await fc.assert(
      fc.asyncProperty(fc.oneof(anyValue, almostSane), async (value) => {
        const { headers } = await send([line('X-Request-Id', value)], 'mid=')
        const text = received(value) ?? ''
        if (/^[A-Za-z0-9._-]{1,64}$/.test(text)) expect(headers['x-request-id']).toBe(text)
        else expect(headers['x-request-id']).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
      }),
      { numRuns: runs(200) },
    )
  })

  it('accepts only callers with a valid key and secret, whatever the Authorization header contains', async () => {
    const { publicKey, secretKey } = target.key
    const good = `${publicKey}:${secretKey}`
    const near = fc
      .tuple(fc.nat({ max: good.length }), fc.string({ unit: 'binary', minLength: 1, maxLength: 2 }))
      .map(([at, text]) => good.slice(0, at) + text + good.slice(at))
    const userAndSecret = fc
      .tuple(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }))
      .map((both) => both.join(':'))
    const cut = fc.nat({ max: good.length - 1 }).map((at) => good.slice(0, at))
    const value = fc.oneof(
      fc.oneof(near, userAndSecret, cut).map((text) => Buffer.from(`Basic ${Buffer.from(text).toString('base64')}`)),
      anyValue,
    )
    await fc.assert(
      fc.asyncProperty(value, async (credentials) => {
        const { status } = await send([line('Authorization', credentials)], goodBody(), '')
        expect(received(credentials) === undefined ? [400] : [401, 429]).toContain(status)
      }),
      { numRuns: runs(200) },
    )
    expect((await send([])).status).toBe(200)
  })

  it('rejects a request with more than 100 headers, so that no header is silently dropped', async () => {
    const necessary = 5
    const fill = (count: number) => Array.from({ length: count - necessary }, (_, i) => `h${i}:`)
    expect((await send([...fill(99), `Idempotency-Key: ${unique('k')}`])).status).toBe(200)
    for (const count of [101, 200, 1_001, 1_800]) {
      const { status, text } = await send(fill(count))
      expect([status, JSON.parse(text)]).toEqual([
        431,
        errorResponse(431, 'The request has too many headers. Send at most 100 headers.'),
      ])
    }
  })
})

describe('encoded body', () => {
  it.each(['gzip', 'GZIP', 'identity, gzip', 'utf-8'])(
    'rejects a body with Content-Encoding %s, with an instruction to send the body uncompressed',
    async (coding) => {
      const { status, text, headers } = await send([`Content-Encoding: ${coding}`])
      expect([status, JSON.parse(text)]).toEqual([
        415,
        errorResponse(415, 'The body is encoded. Send it uncompressed, without Content-Encoding.'),
      ])
      expect(headers['accept-encoding']).toBe('identity')
    },
  )

  it('accepts a body with Content-Encoding identity, and rejects other codings only after checking the credentials', async () => {
    expect((await send(['Content-Encoding: Identity'])).status).toBe(200)
    expect((await send(['Content-Encoding: gzip'], goodBody(), 'Basic nobody')).status).toBe(401)
  })
})
