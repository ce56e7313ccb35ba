import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type * as z from 'zod'
import { FAILURE_REASONS } from '../../src/gateway/payments/failure-reasons.ts'
import { NewPayment } from '../../src/gateway/payments/new-payment.ts'
import { OPERATIONS } from '../../src/operations.ts'
import { storedEmail } from '../../src/platform/fields.ts'
import { runs } from '../support/generated.ts'
import { DOCUMENT, POSTS } from '../support/openapi.ts'

type Body = Record<string, unknown>
/** Enough runs that accepted and rejected bodies are both frequent. */
const RUNS = runs(4_000, 400)

type Values = Record<string, fc.Arbitrary<unknown>>

/**
 * Rules that JSON Schema cannot express. The schema describes a body after the service has trimmed blanks, omitted empty
 * fields and rejected repeated ones.
 */
const BEYOND_JSON_SCHEMA: Record<string, (body: Body) => boolean> = {
  'blanks and line breaks of a note are mended before it is measured': ({ note }) =>
    typeof note === 'string' && /^[\s\u0085]|[\s\u0085]$|\r\n/.test(note),
  'a redirect_url is one that a browser can read': ({ redirect_url }) =>
    typeof redirect_url === 'string' && !isReadable(redirect_url),
  'a redirect_url is measured in UTF-16 units': ({ redirect_url }) =>
    typeof redirect_url === 'string' && redirect_url.length > 2048 && [...redirect_url].length <= 2048,
  'a domain beyond ASCII consists of letters and digits': ({ customer_email }) =>
    typeof customer_email === 'string' && /@.*[^\p{L}\p{M}\p{Nd}\p{ASCII}]/u.test(customer_email),
  'a date exists': ({ s_date, e_date }) => [s_date, e_date].some((date) => isNoDay(date)),
  's_date is not after e_date': ({ s_date, e_date }) => sortable(e_date) !== '' && sortable(s_date) > sortable(e_date),
  'a number has at most two decimals': ({ status, amount }) =>
    status !== undefined && typeof amount === 'number' && !/^-?\d+(\.\d{1,2})?$/.test(String(amount)),
}

/** Not URL.canParse, which Node.js 20 gets wrong once it is optimised. */
const isReadable = (address: string) => {
  try {
    return new URL(address) !== null
  } catch {
    return false
  }
}

const DATE = /^(\d\d)-(\d\d)-(\d{4})$/
/** yyyy-mm-dd, or nothing that is before or after anything. */
const sortable = (date: unknown) => (DATE.test(String(date)) ? String(date).replace(DATE, '$3-$2-$1') : '')
const isNoDay = (date: unknown) => {
  const day = sortable(date)
  // A day that does not exist is read as one of the next month, or not at all.
  return day !== '' && (day < '0001' || !isDay(day))
}
const isDay = (day: string) => {
  const read = new Date(`${day}T00:00:00Z`)
  return !Number.isNaN(read.getTime()) && read.toISOString().startsWith(day)
}

const CHARACTERS = ['a', 'Z', '0', '9', '_', '-', '.', '@', ':', '/', '?', '#', '+', ' ', '\t', '\n', '\r', '\u0000', '\u007f', '\u0085', '\u00a0', '\u2028', '\ud800', '\udc00', 'é', '₹', '५', '😀', '\\', '"', '%'] // biome-ignore format: one line
const wildText = fc.oneof(
  fc.string({ unit: fc.constantFrom(...CHARACTERS), maxLength: 12 }),
  fc
    .tuple(
      fc.constantFrom(1, 9, 10, 35, 36, 63, 64, 65, 99, 100, 101, 254, 255, 256, 2048),
      fc.constantFrom('a', '7', '😀', 'é'),
    )
    .map(([length, character]) => character.repeat(length)),
)
const wild = fc.oneof(
  wildText,
  fc.constantFrom<unknown>(
    null,
    true,
    0,
    -1,
    1,
    100_000,
    100_001,
    500_000,
    500_001,
    200.5,
    1e300,
    1e12,
    999_999_999_999,
    [],
    ['a'],
    {},
  ),
)

const identifier = fc.constantFrom('DEMO_MERCHANT', 'M-1_x', 'a'.repeat(64))
const text = fc.constantFrom('1001', 'Asha Rao', 'ओम', '😀'.repeat(64), '"')
const day = (...years: string[]) =>
  fc
    .tuple(fc.integer({ min: 1, max: 32 }), fc.integer({ min: 1, max: 13 }), fc.constantFrom(...years))
    .map(([d, m, y]) => `${String(d).padStart(2, '0')}-${String(m).padStart(2, '0')}-${y}`)

const NEW_PAYMENT: Values = {
  mid: identifier,
  amount: fc.constantFrom<unknown>('1', '200', '200.0', '200.00', '007', '100000', '0100000.00', 1, 200, 100_000),
  order_id: text,
  redirect_url: fc.constantFrom(
    'https://shop.example/ok?a=b#c',
    'HTTP://x',
    'http://[::1]/',
    'https://ü.example/ñ',
    `https://x/${'y'.repeat(2038)}`,
  ),
  note: fc.constantFrom('Two cups', 'a\nb', '😀'.repeat(255), 'x\u0085y'),
  customer_name: text,
  customer_email: fc.oneof(
    fc.constantFrom('a@b.co', "o'neil+x@shop-1.example.in", 'r&d#1@xn--p1b6ci4b4b3a.xn--h2brj9c', 'आशा@उदाहरण.भारत'),
    // Near each limit.
    fc
      .tuple(fc.integer({ min: 1, max: 66 }), fc.integer({ min: 180, max: 195 }), fc.constantFrom('a', 'é', '𑀅'))
      .map(([name, domain, letter]) => `${letter.repeat(name)}@${letter.repeat(domain)}.in`),
    fc
      .array(fc.constantFrom('a', '.', '@', '-', 'x', 'भा', '_', ' ', '#', '9'), { minLength: 3, maxLength: 9 })
      .map((parts) => parts.join('')),
  ),
  customer_mobile: fc.constantFrom('0000000000', '9876543210'),
  expiry_minutes: fc.constantFrom<unknown>('5', '9', '10', '999', '1000', '1439', '1440', 5, 1_440),
}

const REFUND_AMOUNT = fc.constantFrom<unknown>('1', '200.00', '007', '499999', '500000', '0500000.00', 200, 500_000)

const NEAR_MISSES: Record<string, unknown[]> = {
  amount: ['0', '100001', '500001', '200.50', '200.', '1e3', '0x10', '+5', '५०', '200.000', 0, 100_001, 0.5, '00', '0.00'],
  redirect_url: ['ftp://x', 'javascript:alert(1)', 'https://', 'https://bank@evil', 'https://u:p@x/', '//x', 'https://x y', `https://x/${'y'.repeat(2039)}`],
  customer_email: ['a@b', 'a@b..co', '.a@c.in', 'a.@c.in', 'a@c.in.', 'a@.c.in', 'a b@c.in', 'a@@b.co', 'a@b_c.in', 'a@b.co\n', `${'a'.repeat(65)}@c.in`],
  customer_mobile: ['987654321', '98765432100', '987654321a', '९८७६५४३२१०', '987654321\n'],
  expiry_minutes: ['4', '0', '1441', '1450', '2000', '10000', '05', '5.0', '6.5', '1e2', '५०', '-5', 4, 1_441, 5.5],
  s_date: ['1-1-2026', '01/01/2026', '2026-01-01', '00-01-2026', '01-00-2026', '29-02-2025', '31-04-2026'],
  refund_id: ['R 1', 'r'.repeat(41), 'é', ''],
  status: ['success', 'PENDING', ''],
  UTR: ['A-1', 'é1', ''],
  paidAt: ['2026-11-21T15:40:12', '2026-11-21', '2026-02-30T00:00:00Z', '2026-11-21T24:00:00Z', '2026-12-31T23:59:60Z', '2026-11-21 15:40:12', '2026-11-21T15:40:12+15:00', '2026-11-21T15:40:12.Z'],
} // biome-ignore format: one line a field

const DAYS = { s_date: day('0000', '0001', '2024'), e_date: day('2024', '2026', '9999') }

/** What each kind of body may hold, by its name in the document. */
const BODIES: Record<string, Values> = {
  NewPayment: NEW_PAYMENT,
  WhichPayment: { mid: identifier, order_id: text },
  NewRefund: {
    ...{ mid: identifier, order_id: text, amount: REFUND_AMOUNT },
    refund_id: fc.constantFrom('R-1_x', 'r'.repeat(40)),
    note: fc.constantFrom('Two cups', 'a\nb', '😀'.repeat(100), 'x\u0085y', 'cup'),
  },
  WhichRefund: { mid: identifier, refund_id: fc.constantFrom('R-1_x', 'r'.repeat(40)) },
  WhichSettlements: { pid: identifier, mid: identifier, ...DAYS },
  WhichTransactions: { pid: identifier, mid: identifier, ...DAYS },
  WhichOwnTransactions: { mid: identifier, ...DAYS },
  WhichOwnSettlements: { mid: identifier, ...DAYS },
  WhichOrders: { mid: identifier, ...DAYS, status: fc.constantFrom('PENDING', 'SUCCESS', 'FAIL', 'REJECT') },
  WhichRefunds: { mid: identifier, ...DAYS },
  WhichDisputes: { mid: identifier, ...DAYS, status: fc.constantFrom('OPEN', 'UNDER_REVIEW', 'WON', 'CLOSED') },
  WhichMerchants: { pid: identifier },
  PaymentNotification: {
    orderId: text,
    status: fc.constantFrom('SUCCESS', 'FAIL', 'REJECT'),
    UTR: fc.constantFrom('523504870405', 'A'.repeat(35)),
    amount: fc.constantFrom<unknown>('200', '200.5', '0.00', '999999999999.99', 200, 200.1, 0.07, 999_999_999_999.99),
    paidAt: fc.constantFrom(
      '2026-11-21T15:40:12+05:30',
      '2024-02-29T00:00:00Z',
      '2026-11-21T15:40:12.123456789Z',
      '2026-11-21T15:40+0530',
      '2026-11-21 15:40:12z',
    ),
    reason: fc.constantFrom(...FAILURE_REASONS),
    code: fc.constantFrom('ZM', '!', '~'.repeat(64)),
  },
}

/** A body that is right, or wrong in one or two fields: one that is wrong in all of them would show nothing of each. */
function bodies(values: Values, schema: z.ZodObject): fc.Arbitrary<Body> {
  const names = Object.keys(values)
  const wrong = fc
    .constantFrom(...names)
    .chain((name) =>
      fc.oneof(wild, fc.constantFrom(...(NEAR_MISSES[name] ?? ['']), undefined)).map((value) => ({ [name]: value })),
    )
  return fc
    .tuple(
      fc.record(values, { requiredKeys: names.filter((name) => !schema.shape[name]?.safeParse(undefined).success) }),
      fc.array(wrong, { maxLength: 2 }),
      fc.constantFrom({}, { udf1: 'x', toString: 1 }),
    )
    .map(([right, wrongs, extras]) => Object.assign({}, right, extras, ...wrongs))
    .map((body) => Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined)))
}

// Formats are what JSON Schema calls annotations: they say what a pattern beside them decides.
const ajv = new Ajv2020({ strict: false, validateFormats: false })

function resolved(schema: { $ref?: string }): object {
  const name = schema.$ref?.split('/').at(-1) as keyof typeof DOCUMENT.components.schemas | undefined
  return name === undefined ? schema : (DOCUMENT.components.schemas[name] as object)
}

const withBody = Object.values(OPERATIONS)
  .flat()
  .flatMap(({ path, body }) => (body ? [{ path, body }] : []))

/** The rule for e-mail addresses, in a second form. */
function isEmail(text: string): boolean {
  const [name = '', domain = '', ...more] = text.split('@')
  const labels = domain.split('.')
  return (
    more.length === 0 &&
    [...text].length <= 254 &&
    [...name].length >= 1 &&
    [...name].length <= 64 &&
    !/[\s\p{Cc}\p{Cs}]/u.test(name) &&
    !name.startsWith('.') &&
    !name.endsWith('.') &&
    labels.length >= 2 &&
    labels.every((label) => /^[\p{L}\p{M}\p{Nd}-]+$/u.test(label))
  )
}

it('the service accepts exactly the e-mail addresses that the documented rule allows, and stores each address in a stable form', () => {
  const email = NewPayment.shape.customer_email
  const seen = { taken: 0, refused: 0 }
  fc.assert(
    fc.property(
      fc.oneof(
        NEW_PAYMENT.customer_email as fc.Arbitrary<string>,
        fc.constantFrom(...(NEAR_MISSES.customer_email as string[])),
        wildText,
      ),
      (text) => {
        const { success, data } = email.safeParse(text)
        seen[success ? 'taken' : 'refused']++
        expect(success, text).toBe(isEmail(text))
        if (success) expect(storedEmail(data), text).toBe(data)
      },
    ),
    { numRuns: RUNS },
  )
  expect(Math.min(seen.taken, seen.refused)).toBeGreaterThan(RUNS / 20)
})

describe('the request schemas of the OpenAPI document', () => {
  it.each(withBody)(
    'the OpenAPI schema of $path accepts exactly the bodies that the service accepts',
    ({ path, body: { name, schema } }) => {
      const values = BODIES[name] ?? {}
      const help = `BODIES of test/docs/request-schemas.gen.test.ts: give each field of ${name} a generator of what it takes`
      expect(new Set(Object.keys(values)), help).toEqual(new Set(Object.keys(schema.shape)))
      const { content } = POSTS[path]?.requestBody ?? { content: {} }
      const [form, json] = ['application/x-www-form-urlencoded', 'application/json'].map((type) =>
        content[type] ? ajv.compile(resolved(content[type].schema)) : undefined,
      )
      const seen = { taken: 0, refused: 0 }
      fc.assert(
        fc.property(bodies(values, schema), (body) => {
          if (Object.values(BEYOND_JSON_SCHEMA).some((rule) => rule(body))) return
          const { success } = schema.safeParse(body)
          seen[success ? 'taken' : 'refused']++
          expect(json?.(body), JSON.stringify(body)).toBe(success)
          const allText = Object.entries(body).every(([name, value]) => !(name in values) || typeof value === 'string')
          if (form && allText) expect(form(body), JSON.stringify(body)).toBe(success)
        }),
        { numRuns: RUNS },
      )
      expect(Math.min(seen.taken, seen.refused)).toBeGreaterThan(RUNS / 10)
    },
  )
})
