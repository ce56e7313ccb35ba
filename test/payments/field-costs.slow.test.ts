import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import fastify, { type FastifyInstance } from 'fastify'
import { beforeAll, describe, expect, it } from 'vitest'
import { OPERATIONS } from '../../src/app.ts'
import { registerInput } from '../../src/http/input.ts'
import { LIMITS } from '../../src/limits.ts'
import { POSTS } from '../support/openapi.ts'
import { startService } from '../support/service.ts'

/**
 * Reading a body blocks the event loop for everybody, and a key may send 1,000 bodies a second. A plain body of 16 KiB takes
 * about 0.07 ms here, so this is 2 ms. A ratio, since a busy machine is slow with both.
 */
const RATIO_LIMIT = 30
/** What is slow once may have been interrupted; what is slow in the best of so many tries is slow. */
const TRIES = 15
/** Room for the other fields of the body and for their names. */
const LARGEST_BYTES = LIMITS.body.bytes - 1_024
/** The largest that arrives, and those about as large as fields may be: the checks of those that pass go further. */
const SIZES_BYTES = [LARGEST_BYTES, 2_000, 750]

const range = (first: number, count: number) =>
  Array.from({ length: count }, (_, i) => String.fromCodePoint(first + i)).join('')

/** What field checks have stumbled over: repeated to whatever size, or cut to it. */
const PATTERNS: Record<string, string> = {
  letters: 'a',
  'different CJK characters': range(0x4e00, 5_400),
  'different CJK characters of four bytes': range(0x20000, 4_000),
  'CJK labels': [...range(0x4e00, 4_000)].join('.'),
  emoji: '😀',
  'joined emoji': '👩‍👩‍👧‍👦',
  'combining marks': range(0x300, 112),
  'one combining mark': '\u0301',
  'zero width': '\u200b\u200d\u2060',
  'characters that become several': '㌀ﬃǅẞ',
  jamo: 'ᄀ각ᆨ',
  'wide blanks': '\u3000',
  blanks: ' ',
  'line breaks': '\n',
  'line breaks of two': '\r\n',
  'line separators': '\u2028\u0085',
  tabs: '\t',
  'control characters': '\u0001',
  'halves of surrogate pairs': '\ud800',
  quotes: `'`,
  backslashes: '\\',
  percents: '%',
  'percent-encoded letters': '%61',
  'percent-encoded CJK': encodeURIComponent(range(0x4e00, 1_000)),
  punycode: 'xn--4gq48lf9j.',
  'long punycode': `xn--${'z9'.repeat(8_000)}`,
  digits: '1',
  zeros: '0',
  'zeros and dots': '0.',
  'at signs': '@',
  dots: '.',
  'labels of a letter': 'a.',
  'labels with dashes': 'a-.',
  dashes: '-',
  slashes: '/',
  colons: ':',
  brackets: '[',
}

function ofSize(pattern: string, bytes: number): string {
  const repeated = pattern.repeat(Math.ceil(bytes / Buffer.byteLength(pattern)))
  // Halves of pairs are cut, too: those are characters that a field has to bear.
  return Buffer.byteLength(repeated) <= bytes ? repeated : cut(repeated, bytes)
}

function cut(text: string, bytes: number): string {
  let end = Math.min(text.length, bytes)
  while (Buffer.byteLength(text.slice(0, end)) > bytes) end -= 1 + (end >> 6)
  return text.slice(0, end)
}

/** `pattern` before, after and within a value that is right: a check may begin well. */
function* around(right: string, pattern: string, bytes: number): Generator<string> {
  const room = bytes - Buffer.byteLength(right)
  const text = ofSize(pattern, Math.max(1, room))
  const joints = [...right.matchAll(/[^A-Za-z0-9]+/g)].map(({ index, 0: joint }) => index + joint.length)
  for (const at of new Set([0, ...joints, right.length])) yield right.slice(0, at) + text + right.slice(at)
}

type Operation = { path: string; schema: unknown; app: FastifyInstance; right: Record<string, string> }
const operations: Operation[] = []

beforeAll(async () => {
  // Every route with a body, as the service itself registers it.
  const schemas: [string, unknown][] = []
  const watch = (message: unknown) => {
    ;(message as { fastify: FastifyInstance }).fastify.addHook('onRoute', ({ url, schema }) => {
      if (schema?.body) schemas.push([url, schema.body])
    })
  }
  subscribe('fastify.initialization', watch)
  await startService()
  unsubscribe('fastify.initialization', watch)
  // Those that are checked by the schema of their caller.
  for (const { path, body } of Object.values(OPERATIONS).flat()) {
    if (body?.other) schemas.push([path, body.schema], [path, body.other.schema])
  }
  for (const [path, schema] of schemas) {
    const app = fastify({ bodyLimit: LIMITS.body.bytes })
    await registerInput(app, LIMITS.body)
    app.post('/', { schema: { body: schema } }, async () => 'taken')
    await app.ready()
    const [media] = Object.values(POSTS[path]?.requestBody.content ?? {})
    operations.push({ path, schema, app, right: media?.example ?? {} })
  }
})

async function bestMs(tries: number, work: () => Promise<unknown>): Promise<number> {
  let best = Infinity
  for (let i = 0; i < tries; i++) {
    const since = performance.now()
    await work()
    best = Math.min(best, performance.now() - since)
  }
  return best
}

const send = (app: FastifyInstance, type: string, payload: string | Buffer) =>
  app.inject({ method: 'POST', url: '/', headers: { 'content-type': type }, payload })
const JSON_TYPE = 'application/json'
const FORM_TYPE = 'application/x-www-form-urlencoded'

/** How many times as long as a plain body of the largest size each of `bodies` takes, where that is too long. */
async function tooSlow(
  app: FastifyInstance,
  plain: [string, string],
  bodies: Iterable<[string, string, string | Buffer]>,
) {
  const found: string[] = []
  const plainMs = await bestMs(TRIES, () => send(app, ...plain))
  for (const [name, type, payload] of bodies) {
    if ((await bestMs(1, () => send(app, type, payload))) / plainMs <= RATIO_LIMIT) continue
    const bodyMs = await bestMs(TRIES, () => send(app, type, payload))
    const ratio = bodyMs / (await bestMs(TRIES, () => send(app, ...plain)))
    if (ratio > RATIO_LIMIT) found.push(`${name}: ${ratio.toFixed(1)} times, ${bodyMs.toFixed(2)} ms`)
  }
  return found
}

describe('no field can hold up the others’ requests', () => {
  it('has fields to try in every operation', () => {
    expect([...new Set(operations.map(({ path }) => path))].sort()).toEqual(
      Object.keys(POSTS)
        .filter((path) => POSTS[path])
        .sort(),
    )
  })

  it('whatever stands in it: every field is checked in the time of a plain body, or a little more', async () => {
    const found: string[] = []
    const tried = new Set<unknown>()
    for (const { path, schema, app, right } of operations) {
      if (tried.has(schema)) continue
      tried.add(schema)
      const plain = JSON.stringify({ ...right, other: 'a'.repeat(LARGEST_BYTES - JSON.stringify(right).length) })
      function* bodies(): Generator<[string, string, string]> {
        for (const [field, value] of Object.entries(right)) {
          for (const [name, pattern] of Object.entries(PATTERNS)) {
            for (const bytes of SIZES_BYTES) {
              for (const text of around(String(value), pattern, bytes)) {
                yield [
                  `${path} ${field}, ${bytes} bytes of ${name}`,
                  JSON_TYPE,
                  JSON.stringify({ ...right, [field]: text }),
                ]
              }
            }
          }
        }
      }
      found.push(...(await tooSlow(app, [JSON_TYPE, plain], bodies())))
    }
    expect(found).toEqual([])
  }, 240_000)

  it('however the body is written: both parsers take the time of a plain body, or a little more', async () => {
    const [{ app, right }] = operations as [Operation]
    const size = LARGEST_BYTES
    const many = (text: (i: number) => string, separator = '') => {
      let all = ''
      for (let i = 0; all.length + text(i).length < size; i++) all += (i > 0 ? separator : '') + text(i)
      return all
    }
    const bodies: [string, string, string | Buffer][] = [
      ['JSON names', JSON_TYPE, `{${many((i) => `"${i.toString(36)}":1`, ',')}}`],
      ['one JSON name again and again', JSON_TYPE, `{${many(() => '"a":1', ',')}}`],
      ['JSON names with escapes', JSON_TYPE, `{${many((i) => `"\\u0061${i}":1`, ',')}}`],
      ['nested arrays', JSON_TYPE, `{"mid":${'['.repeat(size / 2)}${']'.repeat(size / 2)}}`],
      ['nested objects', JSON_TYPE, `${'{"a":'.repeat(size / 6)}1${'}'.repeat(size / 6)}`],
      ['arrays side by side', JSON_TYPE, `{"mid":[${many(() => '[]', ',')}]}`],
      ['strings side by side', JSON_TYPE, `{"mid":[${many(() => '""', ',')}]}`],
      ['strings and blanks', JSON_TYPE, `{"mid":["",""${' '.repeat(size)}]}`],
      ['escapes', JSON_TYPE, `{"mid":"${'\\u0061'.repeat(size / 6)}"}`],
      ['quotes without end', JSON_TYPE, '"\\'.repeat(size / 2)],
      ['backslashes', JSON_TYPE, `{"mid":"${'\\\\'.repeat(size / 2)}"}`],
      ['a long number', JSON_TYPE, `{"amount":${'9'.repeat(size)}}`],
      ['many decimals', JSON_TYPE, `{"amount":0.${'9'.repeat(size)}}`],
      ['bytes that are not UTF-8', JSON_TYPE, Buffer.alloc(size, 0xff)],
      ['form fields without end', FORM_TYPE, '&'.repeat(size)],
      ['form fields', FORM_TYPE, many((i) => `${i.toString(36)}=`, '&')],
      ['equals signs', FORM_TYPE, '='.repeat(size)],
      ['percent-encoded letters', FORM_TYPE, `note=${'%61'.repeat(size / 3)}`],
      ['percent-encoded CJK', FORM_TYPE, `note=${encodeURIComponent(range(0x4e00, size / 9))}`],
      ['broken percents', FORM_TYPE, `note=${'%'.repeat(size)}`],
      ['blanks', FORM_TYPE, `note=${'+'.repeat(size)}a`],
      ['encoded line breaks', FORM_TYPE, `note=a${'%0A'.repeat(size / 3)}`],
      ['raw line breaks', FORM_TYPE, `note=a${'\n'.repeat(size)}b`],
      ['raw wide blanks', FORM_TYPE, `note=${'\u3000'.repeat(size / 3)}`],
      ['bytes that are not UTF-8', FORM_TYPE, Buffer.alloc(size, 0xff)],
    ]
    const plain = JSON.stringify({ ...right, other: 'a'.repeat(size - JSON.stringify(right).length) })
    expect(await tooSlow(app, [JSON_TYPE, plain], bodies)).toEqual([])
  }, 60_000)
})

describe('redirect_url is bounded by what a name can be', () => {
  const taken = async (redirectUrl: string) => {
    const { app, right } = operations.find(({ path }) => path.endsWith('createPaymentIntent')) as Operation
    const { statusCode } = await send(app, JSON_TYPE, JSON.stringify({ ...right, redirect_url: redirectUrl }))
    return statusCode === 200
  }

  it.each([
    ['a name of 253 characters and a port', `https://${`${'a'.repeat(49)}.`.repeat(5)}com:65535/x`],
    ['an internationalised name', 'https://दुकान.भारत/धन्यवाद?आदेश=१'],
    ['the same in Punycode', 'https://xn--11b4d3a.xn--h2brj9c/'],
    ['a percent-encoded name', 'https://%E0%A4%AD.example/'],
    ['an address of IPv6', 'http://[2001:db8:85a3:8d3:1319:8a2e:370:7348]:8080/x'],
    ['2,048 characters', `https://shop.example/${'y'.repeat(2_027)}`],
  ])('takes %s', async (_name, redirectUrl) => {
    expect(await taken(redirectUrl)).toBe(true)
  })

  it.each([
    ['a name that is longer', `https://${'a.'.repeat(130)}com/`],
    ['2,049 characters', `https://shop.example/${'y'.repeat(2_028)}`],
  ])('refuses %s', async (_name, redirectUrl) => {
    expect(await taken(redirectUrl)).toBe(false)
  })
})
