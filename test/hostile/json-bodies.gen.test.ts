import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { NOTIFY, notification, sign } from '../support/acquirer.ts'
import { runs } from '../support/generated.ts'
import { basic, CREATE, errorResponse, intentFields, LIST, STATUS, unique } from '../support/service.ts'
import { expectEnvelope, JSON_TYPE, startTarget } from './target.ts'

const target = startTarget()

const post = (path: string, body: Uint8Array | string) =>
  target.post(path, body, {
    'content-type': JSON_TYPE,
    authorization: basic(path === LIST ? target.partner.key : target.key),
  })

const notify = (body: Uint8Array | string) =>
  target.post(NOTIFY, body, { 'content-type': JSON_TYPE, 'x-signature': sign(Buffer.from(body), new Date()) })

const fields = (changes: Record<string, string> = {}) => intentFields(target.mid, { order_id: unique('o'), ...changes })

const FIELDS = Object.keys(intentFields('')).concat('order_id')
const NOTIFICATION_FIELDS = ['orderId', 'status', 'UTR', 'amount', 'paidAt']

/** JSON text, because it includes values that JSON.stringify would never write. */
const anyJson = fc.oneof(
  fc.json({ depthSize: 'medium', maxDepth: 4 }),
  fc.constantFrom(
    '-0',
    '1e400',
    '-1e400',
    '1E5',
    '2e2',
    '200.5',
    '1e-400',
    `1${'0'.repeat(400)}`,
    '"\\ud800"',
    '"\\u0000"',
  ),
  fc.constantFrom(
    '"9999-12-31T23:59:59Z"',
    '"0000-01-01T00:00:00Z"',
    '"2026-02-30T00:00:00Z"',
    '"-000001-01-01T00:00:00Z"',
  ),
)

const anyBytes = fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes))

/** Nested objects and arrays, and backslashes, as many as a body can contain. */
const deep = fc.constantFrom(
  `${'{"a":'.repeat(2_500)}1${'}'.repeat(2_500)}`,
  `{"mid":${'['.repeat(8_000)}${']'.repeat(8_000)}}`,
  `{"mid":"${'\\'.repeat(16_000)}"}`,
)

describe('JSON body', () => {
  it('returns a JSON envelope and never 500 for a random or almost valid JSON body', async () => {
    const dictionary = fc
      .dictionary(fc.oneof(fc.constantFrom(...FIELDS, '__proto__'), fc.string()), fc.jsonValue())
      .map((value) => JSON.stringify(value))
    const good = fc
      .tuple(fc.constantFrom(...FIELDS, '__proto__', 'constructor'), anyJson)
      .map(([name, json]) => withValue(fields(), name, json))
    const body = fc.oneof(anyJson, anyBytes, deep, dictionary, good)
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(CREATE, LIST, STATUS), body, async (path, sent) =>
        expectEnvelope(await post(path, sent)),
      ),
      { numRuns: runs(550, 100) },
    )
  })

  it('checks the amount of a JSON body by the digits that were sent, not by the nearest float', async () => {
    const byValue = fc
      .oneof(
        fc.double().map((value) => (Number.isFinite(value) ? String(value) : '1e400')),
        fc.integer({ min: -5, max: 100_005 }).map(String),
        fc.tuple(fc.integer({ min: 0, max: 12 }), fc.integer({ min: -2, max: 6 })).map((both) => both.join('e')),
      )
      .map((text) => ({ text, isWhole: Number.isInteger(Number(text)), rupees: Number(text) }))
    // A whole number in 1,000 notations: shifted by a power of ten, with zeros around it, and with or without one more
    // digit.
    const byDigits = fc
      .tuple(fc.integer({ min: 0, max: 100_005 }), fc.integer({ min: 0, max: 400 }), fc.nat({ max: 9 }), fc.boolean())
      .map(([rupees, zeros, digit, asPower]) => {
        const decimals = `${'0'.repeat(zeros)}${digit}`
        const text = asPower ? `${rupees || ''}${decimals}E-${zeros + 1}` : `${rupees}.${decimals}`
        return { text, isWhole: digit === 0, rupees }
      })
    await fc.assert(
      fc.asyncProperty(fc.oneof(byValue, byDigits), async ({ text: amount, isWhole, rupees }) => {
        const { status, text } = await post(CREATE, withValue(fields(), 'amount', amount))
        const isGood = isWhole && rupees > 0 && rupees <= 100_000
        expect([status, JSON.parse(text).data?.amount]).toEqual(isGood ? [200, rupees.toFixed(0)] : [400, undefined])
      }),
      { numRuns: runs(400, 100) },
    )
  })

  it('accepts a number of 12,000 digits in an unknown JSON field', async () => {
    for (const number of [`1${'0'.repeat(12_000)}1`, `0.${'0'.repeat(12_000)}1`, `1e${'9'.repeat(12_000)}`]) {
      expect((await post(CREATE, withValue(fields(), 'extra', number))).status).toBe(200)
      expect((await post(CREATE, withValue(fields(), 'amount', number))).status).toBe(400)
    }
  })
})

describe('a repeated JSON field', () => {
  it('rejects a repeated JSON field and names the field, however the name is escaped and whatever separates the repeats', async () => {
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...FIELDS), fc.boolean(), fc.json(), async (name, escaped, between) => {
        const formatted = escaped ? name.replace(/./g, (c) => `\\u00${c.charCodeAt(0).toString(16)}`) : name
        const whole = JSON.stringify({ order_id: 'x', ...fields() })
        const body = `${whole.slice(0, -1)},"between":${between},"${formatted}" : "1"}`
        const { status, text } = await post(CREATE, body)
        expect([status, JSON.parse(text)]).toEqual([400, errorResponse(400, `${name} must be sent once`)])
      }),
      { numRuns: runs(100) },
    )
  })

  it('rejects a notification with a repeated JSON field', async () => {
    const { status, text } = await notify(notification('0'.repeat(32)).replace('{', '{"amount":1,'))
    expect([status, JSON.parse(text)]).toEqual([400, errorResponse(400, 'amount must be sent once')])
  })

  it('accepts a JSON field whose name occurs again only inside another value or text', async () => {
    const inner = fc.json().map((json) => `{"a":[{"amount":${json}},{"amount":1,"amount":2}]}`)
    const text = fc.string().map((part) => JSON.stringify(`","amount":"1\\${part}`))
    await fc.assert(
      fc.asyncProperty(fc.oneof(inner, text), async (json) => {
        expect((await post(CREATE, withValue(fields(), 'extra', json))).status).toBe(200)
      }),
      { numRuns: runs(100) },
    )
  })
})

describe('signed notification', () => {
  it('returns a JSON envelope and never 500 for a signed notification of any value or bytes', async () => {
    const orderId = '0'.repeat(32)
    const good = fc
      .tuple(fc.constantFrom(...NOTIFICATION_FIELDS), anyJson)
      .map(([name, json]) => withValue(JSON.parse(notification(orderId)), name, json))
    await fc.assert(
      fc.asyncProperty(fc.oneof(good, anyJson, anyBytes), async (body) => {
        const response = await notify(body)
        expectEnvelope(response)
        expect([400, 404]).toContain(response.status)
      }),
      { numRuns: runs(300) },
    )
  })
})

/** The JSON of `values` with the field `name` set to the given JSON text. */
function withValue(values: Record<string, unknown>, name: string, json: string): string {
  const others = Object.entries(values).filter(([key]) => key !== name)
  const members = others.map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`)
  return `{${[...members, `${JSON.stringify(name)}:${json}`].join()}}`
}
