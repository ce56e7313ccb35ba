import fc from 'fast-check'
import { describe, it } from 'vitest'
import { type Payment, upiLinkQuery, upiLinks, upiQrLink } from '../../src/payments/upi-links.ts'
import { runs } from '../support/generated.ts'

/** Of both kinds together: each run makes the links of one payment and the one inside its QR. */
const RUNS = runs(50_000, 2_000)

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

const PREFIXES = {
  intent: 'upi://pay?',
  phonepe: 'phonepe://pay?',
  paytm: 'paytmmp://pay?',
  gpay: 'tez://upi/pay?',
}

describe('generated UPI links', () => {
  it('UPI links hold each parameter once, as it was given, whatever the note and the names', () => {
    fc.assert(
      fc.property(anyPayment, ({ minutes, ...made }) => {
        const expiresAt = new Date(made.createdAt.getTime() + minutes * 60_000)
        const payment = { ...made, expiresAt }
        const forApps = upiLinks(upiLinkQuery(payment))
        const query = forApps.intent.slice(PREFIXES.intent.length)
        for (const [app, prefix] of Object.entries(PREFIXES))
          same(forApps[app as keyof typeof PREFIXES], prefix + query)
        const note = hold(forApps.intent, payment, { mode: '04', QRexpire: inIndia(expiresAt) })
        const forQr = upiQrLink(payment)
        const times = { QRts: inIndia(payment.createdAt), QRexpire: inIndia(expiresAt) }
        const noteInQr = hold(forQr, payment, { mode: '22', qrMedium: '06', ...times })
        // A note that is not ASCII would make the QR too fine.
        same(noteInQr ?? 'none', /^[ -~]+$/.test(note ?? '') ? (note ?? '') : 'none')
      }),
      { numRuns: RUNS },
    )
  }, 60_000)
})

/**
 * Reads `link` in two ways that know nothing of how it was made, and compares both with what it must say. Returns its
 * note, which only a QR may be without.
 */
function hold(
  link: string,
  { orderId, amount, note, payee }: Payment,
  rest: Record<string, string>,
): string | undefined {
  if (!/^upi:\/\/pay\?[A-Za-z0-9=&%@._~-]+$/.test(link)) throw new Error(`a character that must be encoded: ${link}`)
  const query = link.slice(link.indexOf('?') + 1)
  const split = query.split('&').map((pair) => {
    const [name = '', value = '', ...more] = pair.split('=')
    if (more.length > 0) throw new Error(`a second = in ${pair}`)
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
  if (tn !== undefined) holdNote(tn, note)
  return tn
}

/** `tn` is the beginning of the note without what apps reject: never empty, never too long, never another text. */
function holdNote(tn: string, note: string): void {
  const size = Array.from(tn).length
  if (size < 1 || size > 50 || /[^\p{L}\p{M}\p{N} .,_:-]/u.test(tn)) throw new Error(`a bad tn: ${JSON.stringify(tn)}`)
  const kept = Array.from(note, (c) => (/[\p{L}\p{M}\p{N}.,_:-]/u.test(c) ? c : ' ')).join('')
  const words = kept.split(' ').filter((word) => word !== '')
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

/** Not expect, which would take most of the time of so many links. */
function same(actual: string, expected: string): void {
  if (actual !== expected) throw new Error(`${JSON.stringify(actual)} is not ${JSON.stringify(expected)}`)
}
