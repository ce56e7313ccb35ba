import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { runs } from '../support/generated.ts'
import { FORM } from '../support/requests.ts'
import { basic, CREATE, form, intentFields, LIST, ORDER, unique } from '../support/service.ts'
import { expectEnvelope, startTarget } from './target.ts'

const target = startTarget()

const post = (path: string, body: Uint8Array | string) =>
  target.post(path, body, {
    'content-type': FORM,
    authorization: basic(path === LIST ? target.partner.key : target.key),
  })

const bytes = (text: string) => Buffer.from(text, 'latin1')
const NAMES = ['mid', 'pid', 'amount', 'order_id', 'redirect_url', 'note', 'customer_name', 'customer_email', 's_date']
const STRANGE_NAMES = ['__proto__', 'constructor', 'toString', 'mid[]', 'mid[0]', 'mid.x', '', ' mid', 'MID', '%6Did']
const SHARP_TEXTS = ['%', '%z', '%zz', '%00', '%0d%0a', '%E0%A4', '%ED%A0%80', '%C0%AF', '%F4%90%80%80', '+', '=', ';']

const encoded = fc.string({ unit: 'binary' }).map(encodeURIComponent)
const name = fc.oneof(fc.constantFrom(...NAMES, ...STRANGE_NAMES), encoded)
const value = fc.oneof(fc.constantFrom('200', '01-01-2026', ...SHARP_TEXTS), encoded)
const rawBytes = fc.uint8Array({ maxLength: 60 }).map((array) => Buffer.from(array))
const pair = fc.oneof(
  fc.tuple(name, value).map((both) => bytes(both.join('='))),
  name.map(bytes),
  rawBytes,
)
const pairs = fc
  .tuple(fc.array(pair, { maxLength: 130 }), fc.constantFrom('&', '&&', ';', '\r\n'))
  .map(([parts, separator]) => Buffer.concat(parts.flatMap((part) => [part, bytes(separator)])))

/** 16 KiB of characters that are parsed one by one, and text in another encoding. */
const strange = fc.constantFrom(
  ...['&', '%', '=', 'a&'].map((text) => bytes(text.repeat(16_384 / text.length))),
  Buffer.from('\ufeffmid=M1'),
  Buffer.from('mid=M1', 'utf16le'),
)

/** A valid body of the operation with some bytes overwritten, so that it passes more checks than random bytes do. */
const scratched = (path: string) =>
  fc
    .array(fc.tuple(fc.nat({ max: 400 }), fc.oneof(fc.nat({ max: 255 }), fc.constantFrom(37, 38, 61))), {
      maxLength: 4,
    })
    .map((scratches) => {
      const body = bytes(goodBody(path))
      for (const [at, byte] of scratches) body[at % body.length] = byte
      return body
    })

function goodBody(path: string): string {
  const { mid, partner } = target
  return path === LIST
    ? form({ pid: partner.pid, mid, s_date: '01-01-2026', e_date: '31-12-2026' })
    : form(intentFields(mid, { order_id: unique('o') }))
}

describe('form body', () => {
  it('returns a JSON envelope and never 500 for a random or almost valid form body', async () => {
    const request = fc
      .constantFrom(CREATE, ORDER, LIST)
      .chain((path) => fc.tuple(fc.constant(path), fc.oneof(pairs, rawBytes, strange, scratched(path))))
    const statuses = new Set<number>()
    await fc.assert(
      fc.asyncProperty(request, async ([path, body]) => {
        const response = await post(path, body)
        expectEnvelope(response)
        statuses.add(response.status)
      }),
      { numRuns: runs(550, 100) },
    )
    expect([...statuses]).toEqual(expect.arrayContaining([200, 400]))
  })

  it('stores every text of a form body exactly as the text was encoded, or rejects the body', async () => {
    const text = fc.oneof(
      fc.string({ unit: 'grapheme', maxLength: 40 }),
      fc.string({ unit: 'binary', maxLength: 40 }),
      fc.string({
        unit: fc.constantFrom(' ', '\u00a0', '\t', '\n', '\u2028', '\ufeff', '+', '%', '&', '=', 'é', '𝒳'),
        maxLength: 8,
      }),
    )
    const results = { stored: 0, rejected: 0 }
    await fc.assert(
      fc.asyncProperty(text, text, text, async (note, customer_name, order) => {
        const order_id = `${unique('o')}${order}`
        const { status } = await post(CREATE, form(intentFields(target.mid, { order_id, note, customer_name })))
        const expected = {
          order_id: stored(order_id, 64),
          note: stored(unbroken(note), 255),
          name: stored(customer_name, 100),
        }
        const isGood = Object.values(expected).every((value) => value !== undefined)
        expect(status).toBe(isGood ? 200 : 400)
        results[isGood ? 'stored' : 'rejected'] += 1
        if (!isGood) return
        const { rows } = await target.db.query(
          `select merchant_order_id as order_id, note, customer_name as name
             from payment_intents where mid = $1 and merchant_order_id = $2`,
          [target.mid, expected.order_id],
        )
        expect(rows).toEqual([expected])
      }),
      { numRuns: runs(300) },
    )
    expect(Math.min(results.stored, results.rejected)).toBeGreaterThan(5)
  })
})

/** The stored form of a text of 1 to `max` characters, which is trimmed; undefined if it is rejected. */
function stored(text: string, max: number): string | undefined {
  const trimmed = text.replace(/^\p{Zs}+/u, '').replace(/\p{Zs}+$/u, '')
  const size = Array.from(trimmed).length
  return size >= 1 && size <= max && !/\p{Cc}/u.test(trimmed) ? trimmed : undefined
}

/** A note whose line breaks and tabs have become spaces; a byte order mark at its ends is treated as one. */
function unbroken(note: string): string {
  return note
    .replaceAll('\r\n', ' ')
    .replace(/[\t\n\v\f\r\u0085\u2028\u2029]/g, ' ')
    .replace(/^[\p{Zs}\ufeff]+/u, '')
    .replace(/[\p{Zs}\ufeff]+$/u, '')
}
