import { expect, it } from 'vitest'
import { readUpiLink, readUpiQr } from '../support/upi-link-reader.ts'

const QUERY =
  'ver=01&mode=22&pa=chaipoint@examplebank&pn=Chai%20%E0%A4%9A%E0%A4%BE%E0%A4%AF&mc=5814&tr=order-1&tn=A%26b&am=588.82&cu=INR&qrMedium=06&QRts=2026-03-31T23%3A44%3A59%2B05%3A30&QRexpire=2026-03-31T23:59:59%2B05:30'
const LINK = `upi://pay?${QUERY}`
const BEFORE_EXPIRY = new Date('2026-03-31T18:29:58Z')
const READ = {
  payeeAddress: 'chaipoint@examplebank',
  payeeName: 'Chai चाय',
  merchantCategory: '5814',
  amount: 58_882,
  reference: 'order-1',
  note: 'A&b',
  mode: '22',
  qrMedium: '06',
  qrCreatedAt: new Date('2026-03-31T18:14:59Z'),
  qrExpiresAt: new Date('2026-03-31T18:29:59Z'),
}

it.each([
  LINK,
  `phonepe://pay?${QUERY}`,
  `paytmmp://upi/pay?${QUERY}`,
  `intent://pay?${QUERY}#Intent;scheme=upi;package=com.phonepe.app;end`,
])('the tests’ link reader returns the data that a payer sees: %s', (link) => {
  expect(readUpiLink(link, BEFORE_EXPIRY)).toMatchObject(READ)
})

const changed = (from: string, to: string) => LINK.replace(from, to)

it.each([
  ['no wallet opens', LINK.replace('upi://pay?', 'upi://pay/?')],
  ['no wallet opens', LINK.replace('upi://pay?', 'UPI://pay?')],
  ['no wallet opens', `phonepe://upi/pay?${QUERY}`],
  ['does not end as an Android intent', `intent://pay?${QUERY}`],
  ['does not end as an Android intent', `intent://pay?${QUERY}&x=#1#Intent;scheme=upi;end`],
  ['scheme of the intent', `intent://pay?${QUERY}#Intent;scheme=tez;end`],
  ['no package of Android', `intent://pay?${QUERY}#Intent;scheme=upi;package=phonepe;end`],
  ['tn contains a plus', changed('A%26b', 'A+b')],
  ['tn contains a character that is not encoded', changed('A%26b', 'A b')],
  ['tn contains a character that is not encoded', changed('A%26b', 'A#b')],
  ['tn contains a character that is not encoded', changed('A%26b', 'A=b')],
  ['tn contains a character that is not encoded', changed('A%26b', 'A%b')],
  ['pn is not UTF-8', changed('%E0%A4%9A', '%E0%A4')],
  ['tn contains a control character', changed('A%26b', 'A%0Ab')],
  ['is not a parameter and its value', changed('A%26b', 'A&b')],
  ['is not a parameter and its value', changed('tn=A%26b', 'tn=')],
  ['AM is given twice', `${LINK}&AM=1.00`],
  ['Pa is no parameter', changed('&pa=', '&Pa=')],
  ['extra is no parameter', `${LINK}&extra=1`],
  ['pa is missing', changed('&pa=chaipoint@examplebank', '')],
  ['tr is missing', changed('&tr=order-1', '')],
  ['cu is missing', changed('&cu=INR', '')],
  ['cu is not of its form', changed('INR', 'USD')],
  ['pn is not of its form', changed('pn=Chai', `pn=${'x'.repeat(96)}`)],
  ['tn is not of its form', changed('A%26b', '%E0%A4%9A'.repeat(51))],
  ['tr is not of its form', changed('order-1', 'x'.repeat(36))],
  ['tr is not of its form', changed('order-1', 'order/1')],
  ...['588', '588.8', '588.820', '0588.82', '5,88.82', '-1.00', '5e2'].map((am): [string, string] => [
    'am ',
    changed('588.82', am),
  ]),
  ['am is zero', changed('588.82', '0.00')],
  ...['chaipoint', '@examplebank', 'chaipoint@', 'chai%20point@examplebank', 'a@b@examplebank', 'a@example.bank'].map(
    (pa): [string, string] => ['pa is not of its form', changed('chaipoint@examplebank', pa)],
  ),
  ['mc is not of its form', changed('5814', '581')],
  ['mode is not of its form', changed('mode=22', 'mode=25')],
  ['QRts is no date', changed('2026-03-31T23%3A44', '2026-02-30T23%3A44')],
  ['QRts is not of its form', changed('59%2B05%3A30', '59Z')],
  ['QRexpire is not of its form', changed('59%2B05:30', '59%2B05:00')],
  ['QRts is after QRexpire', changed('T23%3A44', 'T23%3A59').replace('23:59:59', '23:59:58')],
])('the tests’ link reader rejects a link with the error "%s": %s', (reason, link) => {
  expect(() => readUpiLink(link, BEFORE_EXPIRY)).toThrow(reason)
})

it('the tests’ QR reader rejects the link of one wallet', () => {
  expect(readUpiQr(LINK, BEFORE_EXPIRY)).toMatchObject(READ)
  expect(() => readUpiQr(`phonepe://pay?${QUERY}`, BEFORE_EXPIRY)).toThrow('a QR contains upi://pay?')
})

it('the tests’ link reader rejects an expired link, and a link from the future', () => {
  expect(() => readUpiLink(LINK, READ.qrExpiresAt)).toThrow('the link has expired')
  expect(() => readUpiLink(LINK, new Date(READ.qrCreatedAt.getTime() - 1))).toThrow('QRts is in the future')
})
