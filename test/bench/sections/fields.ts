import fastify, { type FastifyInstance } from 'fastify'
import { OPERATIONS } from '../../../src/app.ts'
import { registerInput } from '../../../src/http/input.ts'
import { LIMITS } from '../../../src/limits.ts'
import { progress } from '../../support/workspace.ts'
import type { Section } from '../bench.ts'

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

type Body = { name: string; type: string; payload: string | Buffer }
type Operation = { path: string; app: FastifyInstance; right: Record<string, string> }

const JSON_TYPE = 'application/json'
const FORM_TYPE = 'application/x-www-form-urlencoded'

/** No field can hold up the others' requests: the slowest body of the largest size beside a plain one. */
export const fields: Section = async () => async () => {
  const ratios: number[] = []
  const slow: string[] = []
  const operations = await everyOperation()
  const compare = async (app: FastifyInstance, plain: Body, bodies: Iterable<Body>) => {
    for (const body of bodies) {
      const once = await bestMs(1, app, body)
      if (once <= (await bestMs(1, app, plain)) * RATIO_LIMIT) continue
      // What is slow once may have been interrupted.
      const ratio = (await bestMs(TRIES, app, body)) / (await bestMs(TRIES, app, plain))
      ratios.push(ratio)
      if (ratio > RATIO_LIMIT) slow.push(`${body.name}: ${ratio.toFixed(1)} times`)
    }
  }
  for (const { path, app, right } of operations) {
    progress(`fields: ${path}`)
    await compare(app, plainBody(right), wildBodies(path, right))
  }
  const [{ app, right }] = operations as [Operation]
  await compare(app, plainBody(right), wildForms())
  return [
    {
      title: 'Reading a body of 15 KiB, beside a plain one of the same size',
      series: [],
      figures: [{ what: 'the slowest field', unit: '×', samples: [Math.max(1, ...ratios)], atMost: RATIO_LIMIT }],
      notes: slow,
    },
  ]
}

/** Each operation that takes a body, with nothing behind its checks. */
async function everyOperation(): Promise<Operation[]> {
  const bodies = Object.values(OPERATIONS)
    .flat()
    .flatMap(({ path, body }) => {
      if (!body) return []
      return [body.schema, ...(body.other ? [body.other.schema] : [])].map((schema) => ({ path, schema, body }))
    })
  return Promise.all(
    bodies.map(async ({ path, schema, body }) => {
      const app = fastify({ bodyLimit: LIMITS.body.bytes })
      await registerInput(app, LIMITS.body)
      app.post('/', { schema: { body: schema } }, async () => 'taken')
      await app.ready()
      return { path, app, right: body.example }
    }),
  )
}

function plainBody(right: Record<string, string>): Body {
  const other = 'a'.repeat(LARGEST_BYTES - JSON.stringify(right).length)
  return { name: 'plain', type: JSON_TYPE, payload: JSON.stringify({ ...right, other }) }
}

function* wildBodies(path: string, right: Record<string, string>): Generator<Body> {
  for (const [field, value] of Object.entries(right)) {
    for (const [name, pattern] of Object.entries(PATTERNS)) {
      for (const bytes of SIZES_BYTES) {
        for (const text of around(String(value), pattern, bytes)) {
          const payload = JSON.stringify({ ...right, [field]: text })
          yield { name: `${path} ${field}, ${bytes} bytes of ${name}`, type: JSON_TYPE, payload }
        }
      }
    }
  }
}

function wildForms(): Body[] {
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
  return bodies.map(([name, type, payload]) => ({ name, type, payload }))
}

async function bestMs(tries: number, app: FastifyInstance, { type, payload }: Body): Promise<number> {
  let best = Infinity
  for (let i = 0; i < tries; i++) {
    const since = performance.now()
    await app.inject({ method: 'POST', url: '/', headers: { 'content-type': type }, payload })
    best = Math.min(best, performance.now() - since)
  }
  return best
}
