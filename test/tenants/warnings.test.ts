import { describe, expect, it } from 'vitest'
import { CATEGORY_RULE_DATE, categoryLimits, merchantWarnings } from '../../src/gateway/tenants/warnings.ts'
import { chapterText } from '../guides/guides.ts'

const DIRECT = { acquirer: 'direct', maxAmount: 100_000 }
const fiveLakh = (mcc: string): [string, number] => [mcc, 500_000]

describe('warnings about a merchant', () => {
  it('warns the operator of a merchant without a category', () => {
    expect(merchantWarnings({ ...DIRECT, mcc: '0000', vpa: 'chaipoint@examplebank' })).toEqual(['no category'])
  })

  it.each([
    '9876543210@examplebank',
    '919876543210@examplebank',
    '9876543210-2@ybl',
    'asha.rao@oksbi',
    'asha.rao-1@okaxis',
    'asha@okhdfcbank',
    'asha@okicici',
    'asha@ybl',
    'asha@ibl',
    'asha@axl',
    'asha@paytm',
    'asha@ptyes',
    'asha@ptsbi',
    'asha@pthdfc',
    'asha@ptaxis',
    'asha@upi',
    'Asha@YBL',
  ])('warns the operator of a merchant with the UPI address of an individual: %s', (vpa) => {
    expect(merchantWarnings({ ...DIRECT, mcc: '5814', vpa })).toEqual(['private address'])
  })

  it.each(['Q123456789@ybl', 'q1@ybl', 'paytmqr1abc2def@paytm', 'paytmqr5abcde@ptys', 'PAYTMQR1abc@ptyes'])(
    'warns the operator of a merchant whose address was assigned for a QR at a counter: %s',
    (vpa) => {
      expect(merchantWarnings({ ...DIRECT, mcc: '5814', vpa })).toEqual(['QR-only address'])
    },
  )

  it.each([
    ['5814', 100_000],
    ['0000', 100_000],
    ['6051', 100_000],
    ['5094', 200_000],
    ['5944', 200_000],
    // First payment into a new bank account; term deposits.
    ['7409', 200_000],
    ['7410', 500_000],
    // Insurance, capital market, travel, government, card bills, collections; then health; then education.
    ...'5960 6300 6381 6529 6012 6211 4511 4722 7011 9311 9399 5413 7322'.split(' ').map(fiveLakh),
    ...'0742 8011 8021 8031 8041 8042 8049 8050 8062 8071 8099'.split(' ').map(fiveLakh),
    ...'8211 8220 8241 8244 8249 8299'.split(' ').map(fiveLakh),
  ])('warns the operator of a maximum amount above NPCI’s limit for mcc %s: %i rupees', (mcc, maxRupees) => {
    const warned = (maxAmount: number) =>
      merchantWarnings({ ...DIRECT, mcc, vpa: 'chaipoint@examplebank', maxAmount }).includes('high max amount')
    expect([1, 100_000, maxRupees, maxRupees + 1].map(warned)).toEqual([false, false, false, true])
  })

  it('the operator manual lists the categories with other limits, the sums per 24 hours, and the date of the rule', () => {
    const [, rule = ''] = /^## Maximum amount\n(.*?)^## /ms.exec(chapterText('operator/merchants')) ?? []
    expect(rule).toContain(CATEGORY_RULE_DATE)
    const rupees = (text = '') => Number(text.replaceAll(',', ''))
    const rows = rule.matchAll(/^\| [^|]+ \| ([\d, ]+) \| ₹([\d,]+) \| ₹([\d,]+) \|$/gm)
    const named = [...rows].flatMap(([, codes = '', max, day]) =>
      codes.split(', ').map((mcc) => [mcc, { maxRupees: rupees(max), dayRupees: rupees(day) }] as const),
    )
    const others = Array.from({ length: 10_000 }, (_, code) => String(code).padStart(4, '0'))
      .map((mcc) => [mcc, categoryLimits(mcc)] as const)
      .filter(([, { dayRupees }]) => dayRupees !== undefined)
    expect(others.map(([mcc]) => mcc)).toEqual(expect.arrayContaining(['7409', '7410']))
    expect(new Map(named)).toEqual(new Map(others))
  })

  it.each([
    ['6211', 1_000_000],
    ['5413', 600_000],
    ['5944', 600_000],
    ['7410', 500_000],
    ['7409', 200_000],
    ['5814', undefined],
  ])('includes the sum of a customer’s payments in 24 hours in the limits for mcc %s: %s rupees', (mcc, dayRupees) => {
    expect(categoryLimits(mcc).dayRupees).toBe(dayRupees)
  })

  it('warns the operator of both a missing category and the UPI address of an individual', () => {
    expect(merchantWarnings({ ...DIRECT, mcc: '0000', vpa: '9876543210@upi' })).toEqual([
      'no category',
      'private address',
    ])
  })
})

it.each([
  'chaipoint@examplebank',
  // The address of the demo merchant.
  'demo@not-a-bank.invalid',
  'chaipoint@okbizaxis',
  'chaipoint.rzp@axisbank',
  // Addresses of Paytm's online merchants.
  'paytm.s1abc2d@pty',
  'paytm-12345@paytm',
  'paytm.s1abc2d@ptsbi',
  // Numbers that are not Indian mobile numbers.
  '1234567890@examplebank',
  '98765432101@examplebank',
  '50100123456789@hdfc0000001.ifsc.npci',
])('the service does not warn the operator of a merchant with a category and %s', (vpa) => {
  expect(merchantWarnings({ ...DIRECT, mcc: '5814', vpa })).toEqual([])
})

it('the service does not warn of a missing category code or a high amount if the acquirer creates the payment links', () => {
  const setu = { acquirer: 'setu', mcc: '0000', maxAmount: 500_000 }
  expect(merchantWarnings({ ...setu, vpa: 'chaipoint@examplebank' })).toEqual([])
  expect(merchantWarnings({ ...setu, vpa: '9876543210@upi' })).toEqual(['private address'])
})
