import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Payment, upiLinkQuery, upiLinks, upiQrLink } from '../../src/gateway/payments/upi-links.ts'
import { decodePng } from '../support/decode-png.ts'
import { runs } from '../support/generated.ts'
import { CREATE, intentFields, newMerchant, PUBLIC_URL, post, responseOf, startService } from '../support/service.ts'
import { readUpiLink, readUpiQr } from '../support/upi-link-reader.ts'

/** For both kinds together: each run builds the links of one payment and the one inside its QR. */
const RUNS = runs(50_000, 500)

const SHARP = ['&', '=', '?', '#', '%', '+', ';', '/', ':', ' ', '\t', '\n', '"', "'", '<', '(', '\\', '\0', '\u202e']
const INJECTIONS = [
  '&am=1.00',
  '&pa=thief@bank',
  '#',
  '?pa=thief@bank',
  '%26am%3D1',
  ';am=1',
  '\r\nam=1',
  '&am',
  '&&',
  '&=',
]
const text = fc.oneof(
  fc.string({ unit: fc.constantFrom(...SHARP, 'a', 'é', 'क', 'ि', '🙏', '𝒳'), maxLength: 60 }),
  fc.string({ unit: 'binary', maxLength: 60 }),
  fc.array(fc.constantFrom(...INJECTIONS, 'Order', '1001'), { maxLength: 8 }).map((parts) => parts.join('')),
)
const LOCAL = [...'abzAZ09._-']
const vpa = fc
  .tuple(
    fc.string({ unit: fc.constantFrom(...LOCAL), minLength: 1, maxLength: 40 }),
    fc.string({ unit: fc.constantFrom('a', 'z', 'A', '0', '.', '-'), minLength: 1, maxLength: 20 }),
  )
  .map((both) => both.join('@'))

const anyPayment = fc.record({
  orderId: fc.bigInt({ min: 0n, max: 2n ** 128n - 1n }).map((id) => id.toString(16).padStart(32, '0')),
  amount: fc.integer({ min: 100, max: 50_000_000 }),
  note: text,
  payee: fc.record({ vpa, name: text, mcc: fc.constantFrom('0000', '5814', '9999') }),
  createdAt: fc.date({ min: new Date('2020-01-01'), max: new Date('2060-01-01'), noInvalidDate: true }),
  minutes: fc.integer({ min: 1, max: 1_440 }),
})

/**
 * Words that a merchant may send in a name or a note, with characters that could end a value or begin another
 * parameter.
 */
const words = (maxLength: number) =>
  fc
    .array(
      fc.constantFrom(...'&=%+#?;/:"\'<>()!*', ' ', 'Chai', 'é', 'क्षि', 'चाय', '🙏🏽', '𝒳', '%20', '&am=1.00', '+91'),
      { minLength: 1, maxLength: 30 },
    )
    .map((parts) => [...parts.join('')].slice(0, maxLength).join('').trim())
    .filter((created) => created !== '')

const anyOrder = fc.record({
  name: words(99),
  note: words(255),
  amount: fc.integer({ min: 100, max: 50_000_000 }),
  mcc: fc.constantFrom('0000', '5814', '9999'),
  minutes: fc.integer({ min: 1, max: 1_440 }),
  input: fc.constantFrom('strict' as const, 'shop' as const),
})

/** One second before the end of an IST day that is also the end of a month. */
const CREATED_AT = new Date('2028-02-29T18:29:59.000Z')

const PREFIXES = {
  intent: 'upi://pay?',
  phonepe: 'phonepe://pay?',
  paytm: 'paytmmp://pay?',
  gpay: 'tez://upi/pay?',
}

/** The apps that the wallet links of the pay page open on each system: a package of Android, or the app of a prefix. */
const PHONES = [
  [
    'Mozilla/5.0 (Linux; Android 10; K) Chrome/142.0.0.0 Mobile Safari/537.36',
    [
      'com.google.android.apps.nbu.paisa.user',
      'com.phonepe.app',
      'net.one97.paytm',
      'in.org.npci.upiapp',
      'com.dreamplug.androidapp',
      'upi://pay?',
    ],
  ],
  [
    'Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) Version/26.0 Mobile/15E148 Safari/604.1',
    ['gpay://upi/pay?', 'phonepe://pay?', 'paytmmp://upi/pay?', 'bhim://upi/pay?', 'credpay://upi/pay?', 'upi://pay?'],
  ],
  ['Mozilla/5.0 (X11; Linux x86_64)', ['tez://upi/pay?', 'phonepe://pay?', 'paytmmp://pay?', 'upi://pay?']],
] as const

/** The notes of a QR: others would make it too dense. */
const IN_QR = /^[ -~]{1,20}$/

/** The characters of a link, and those of a QR, which escapes only what a query requires and what may separate values. */
const LINK = /^upi:\/\/pay\?[A-Za-z0-9=&%@._~-]+$/
const QR = /^upi:\/\/pay\?[A-Za-z0-9=&%@._~:/?,$!'()*-]+$/

describe('generated UPI links', () => {
  it('generated UPI links contain each parameter once, exactly as given, whatever the note and the names', () => {
    fc.assert(
      fc.property(anyPayment, ({ minutes, ...created }) => {
        const expiresAt = new Date(created.createdAt.getTime() + minutes * 60_000)
        const payment = { ...created, expiresAt }
        const forApps = upiLinks(upiLinkQuery(payment))
        const query = forApps.intent.slice(PREFIXES.intent.length)
        for (const [app, prefix] of Object.entries(PREFIXES))
          same(forApps[app as keyof typeof PREFIXES], prefix + query)
        const note = expectValid(forApps.intent, payment, { mode: '04', QRexpire: inIndia(expiresAt) })
        const forQr = upiQrLink(payment)
        const times = { QRts: inIndia(payment.createdAt), QRexpire: inIndia(expiresAt) }
        const noteInQr = expectValid(forQr, payment, { mode: '22', qrMedium: '06', ...times })
        same(noteInQr ?? 'none', IN_QR.test(note ?? '') ? (note ?? '') : 'none')
      }),
      { numRuns: RUNS },
    )
  }, 900_000)

  it('the payer’s app reads every link and QR of any order, and finds the payee and the order in each link and QR', async () => {
    const service = await startService()
    service.clock.set(CREATED_AT.toISOString())
    await fc.assert(
      fc.asyncProperty(anyOrder, async ({ name, note, mcc, minutes, input, ...created }) => {
        // A merchant with the input strict sends whole rupees.
        const amount = input === 'shop' ? created.amount : Math.ceil(created.amount / 100) * 100
        const rupees = (amount / 100).toFixed(input === 'shop' ? 2 : 0)
        const payee = { name, mcc, vpa: 'chai.point-1@examplebank' }
        const settings = { ...payee, expiryMinutes: minutes, maxAmount: 500_000, input } as const
        const { mid, key } = await newMerchant(service.db, settings)
        const fields = intentFields(mid, { note, amount: rupees })
        const { status, body } = await post(service.app, CREATE, fields, key)
        expect(status).toBe(200)
        const { orderId, dynamicQR } = body.data as Record<string, string>
        const get = async (url: string, headers = {}) => {
          const response = await service.app.inject({ method: 'GET', url, headers })
          expect(response.statusCode).toBe(200)
          return response
        }
        const expiresAt = new Date(CREATED_AT.getTime() + minutes * 60_000)
        const expected = {
          payeeAddress: payee.vpa,
          payeeName: name,
          merchantCategory: mcc,
          amount,
          reference: orderId,
          qrExpiresAt: expiresAt,
        }

        const readUntilExpiry = (link: string, read = readUpiLink) => {
          expect(() => read(link, expiresAt)).toThrow('the link has expired')
          return read(link, new Date(expiresAt.getTime() - 1))
        }
        const links = Object.keys(PREFIXES).map((app) => readUntilExpiry(body.data[app]))
        expect(links.map(({ prefix }) => prefix)).toEqual(Object.values(PREFIXES))
        for (const [userAgent, opened] of PHONES) {
          const page = responseOf(await get(`/pay/${orderId}`, { 'user-agent': userAgent })).text
          const shown = [...page.matchAll(/<li><a href="([^"]*)"/g)].map(([, href = '']) =>
            readUntilExpiry(href.replaceAll('&#38;', '&')),
          )
          expect(shown.map(({ prefix, androidPackage }) => androidPackage ?? prefix)).toEqual(opened)
          links.push(...shown)
        }
        for (const link of links) {
          expect(link).toMatchObject({ ...expected, mode: '04', qrCreatedAt: undefined, note: links[0]?.note })
        }
        const tn = links[0]?.note ?? ''
        expectNote(tn, note)

        const image = await get(dynamicQR?.slice(PUBLIC_URL.length) ?? '')
        const qr = readUntilExpiry(decodePng(image.rawPayload) ?? '', readUpiQr)
        expect(qr).toMatchObject({ ...expected, mode: '22', qrMedium: '06', qrCreatedAt: CREATED_AT })
        expect(qr.note).toBe(IN_QR.test(tn) ? tn : undefined)
      }),
      { numRuns: runs(300, 5) },
    )
  }, 900_000)
})

/**
 * Parses `link` in two ways that are independent of the code that built it, and compares both with the expected values.
 * Returns its note, which only a QR may lack.
 */
function expectValid(
  link: string,
  { orderId, amount, note, payee }: Payment,
  rest: Record<string, string>,
): string | undefined {
  const isLink = rest.mode === '04'
  if (!(isLink ? LINK : QR).test(link)) throw new Error(`a character that must be encoded: ${link}`)
  const query = link.slice(link.indexOf('?') + 1)
  const split = query.split('&').map((pair) => {
    const [name = '', value = '', ...more] = pair.split('=')
    if (more.length > 0) throw new Error(`a second = in ${pair}`)
    if (isLink && name !== 'pa' && value.includes('@')) throw new Error(`an @ that must be encoded: ${pair}`)
    return [name, decodeURIComponent(value)] as const
  })
  const url = new URL(link)
  same(JSON.stringify([...url.searchParams]), JSON.stringify(split))
  same(url.hash, '')

  const { mode = '', ...others } = rest
  const tn = split.find(([name]) => name === 'tn')?.[1]
  if (tn === undefined && mode === '04') throw new Error(`no note: ${link}`)
  const expected = {
    ver: '01',
    mode,
    pa: payee.vpa,
    pn: payee.name,
    mc: payee.mcc,
    tr: orderId,
    ...(tn === undefined ? {} : { tn }),
    am: (amount / 100).toFixed(2),
    cu: 'INR',
    ...others,
  }
  same(JSON.stringify(split), JSON.stringify(Object.entries(expected)))
  if (tn !== undefined) expectNote(tn, note)
  return tn
}

/**
 * Checks that `tn` is a prefix of the note without the characters that apps reject: never empty, never too long, never
 * another text.
 */
function expectNote(tn: string, note: string): void {
  const size = Array.from(tn).length
  if (size < 1 || size > 50 || /[^\p{L}\p{M}\p{N} .,_:-]/u.test(tn)) throw new Error(`a bad tn: ${JSON.stringify(tn)}`)
  const stored = Array.from(note, (c) => (/[\p{L}\p{M}\p{N}.,_:-]/u.test(c) ? c : ' ')).join('')
  const words = stored.split(' ').filter((word) => word !== '')
  same(words.join(' ').slice(0, tn.length), words.length > 0 ? tn : '')
  if (words.length === 0) same(tn, 'Payment')
}

const INDIA = new Intl.DateTimeFormat('en-GB', {
  timeZone: 'Asia/Kolkata',
  dateStyle: 'short',
  timeStyle: 'medium',
  hourCycle: 'h23',
})

function inIndia(moment: Date): string {
  const [, day, month, year, time] = /^(\d\d)\/(\d\d)\/(\d{4}), (.{8})$/.exec(INDIA.format(moment)) ?? []
  return `${year}-${month}-${day}T${time}+05:30`
}

/** Used instead of expect, which would take most of the time for so many links. */
function same(actual: string, expected: string): void {
  if (actual !== expected) throw new Error(`${JSON.stringify(actual)} is not ${JSON.stringify(expected)}`)
}
