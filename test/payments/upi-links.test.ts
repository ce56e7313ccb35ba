import { describe, expect, it } from 'vitest'
import {
  type Payment,
  transactionNote,
  upiLinkQuery,
  upiLinks,
  upiQrLink,
} from '../../src/gateway/payments/upi-links.ts'

const payment: Payment = {
  orderId: '019aa0b1c2d3e4f5a6b7c8d9e0f1a2b3',
  amount: 20_000,
  note: 'Order 1001',
  payee: { vpa: 'chai.point-1@examplebank', name: 'Chai & Point (Pune)', mcc: '5814' },
  expiresAt: new Date('2026-03-31T18:29:59Z'),
}
const createdAt = new Date('2026-03-31T18:14:59Z')

describe('UPI links', () => {
  it('UPI links percent-encode every value, encode spaces as %20, and leave only the @ of pa literal', () => {
    expect(upiLinks(upiLinkQuery(payment)).intent).toBe(
      'upi://pay?ver=01&mode=04&pa=chai.point-1@examplebank&pn=Chai%20%26%20Point%20%28Pune%29&mc=5814&tr=019aa0b1c2d3e4f5a6b7c8d9e0f1a2b3&tn=Order%201001&am=200.00&cu=INR&QRexpire=2026-03-31T23%3A59%3A59%2B05%3A30',
    )
  })

  it('UPI links never contain a +, a quote or a bracket, whatever the note', () => {
    expect(upiLinks(upiLinkQuery({ ...payment, note: `1+1 "=" '2'&am=1#x` })).intent).toContain(
      '&tn=1%201%202%20am%201%20x&am=200.00&',
    )
  })

  it.each([
    ['a right-to-left override', 'a\u202Eb', 'a b'],
    ['zero-width characters', 'a\u200B\u200Db', 'a b'],
    ['markup', '<b>x</b>', 'b x b'],
    ['emoji', 'thanks 🙏🏽!', 'thanks'],
    ['Devanagari', 'चाय का बिल', 'चाय का बिल'],
    ['only accepted characters', 'A-1, b.c: d_e', 'A-1, b.c: d_e'],
    ['no accepted character', '!!!', 'Payment'],
  ])('UPI links contain a tn that apps accept, built from a note with %s', (_name, note, expected) => {
    expect(transactionNote(note)).toBe(expected)
  })

  it('UPI links cut tn to 50 characters, and never within a character', () => {
    expect(transactionNote('x'.repeat(51))).toBe('x'.repeat(50))
    // क्षि is four code points that a reader sees as one character: it is included or left out as a whole.
    expect(transactionNote(`${'x'.repeat(47)}क्षि`)).toBe('x'.repeat(47))
    expect(transactionNote(`${'x'.repeat(46)}क्षि`)).toBe(`${'x'.repeat(46)}क्षि`)
    expect(transactionNote('𝒳'.repeat(60))).toBe('𝒳'.repeat(50))
  })
})

describe('the link inside the QR', () => {
  it('the link inside the QR has mode 22, qrMedium 06, and its creation and expiry times in IST', () => {
    expect(upiQrLink({ ...payment, createdAt })).toBe(
      'upi://pay?ver=01&mode=22&pa=chai.point-1@examplebank&pn=Chai%20%26%20Point%20(Pune)&mc=5814&tr=019aa0b1c2d3e4f5a6b7c8d9e0f1a2b3&tn=Order%201001&am=200.00&cu=INR&qrMedium=06&QRts=2026-03-31T23:44:59%2B05:30&QRexpire=2026-03-31T23:59:59%2B05:30',
    )
  })
})
