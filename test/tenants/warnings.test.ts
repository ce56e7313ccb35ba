import { describe, expect, it } from 'vitest'
import { merchantWarnings } from '../../src/tenants/warnings.ts'

const DIRECT = { acquirer: 'direct' }

describe('the operator is warned of a merchant', () => {
  it('the operator is warned of a merchant without a category', () => {
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
  ])('the operator is warned of a merchant with the address of a private person: %s', (vpa) => {
    expect(merchantWarnings({ ...DIRECT, mcc: '5814', vpa })).toEqual(['private address'])
  })

  it('the operator is warned of both a missing category and the address of a private person', () => {
    expect(merchantWarnings({ ...DIRECT, mcc: '0000', vpa: '9876543210@upi' })).toEqual([
      'no category',
      'private address',
    ])
  })
})

it.each([
  'chaipoint@examplebank',
  // Of the demo.
  'demo@not-a-bank.invalid',
  'chaipoint@okbizaxis',
  'chaipoint.rzp@axisbank',
  // The shop QR codes of PhonePe and Paytm.
  'Q123456789@ybl',
  'paytmqr1abc2def@paytm',
  'paytm.s1abc2d@pty',
  // Numbers that are no mobile numbers of India.
  '1234567890@examplebank',
  '98765432101@examplebank',
  '50100123456789@hdfc0000001.ifsc.npci',
])('the operator is not warned of a merchant with a category and %s', (vpa) => {
  expect(merchantWarnings({ ...DIRECT, mcc: '5814', vpa })).toEqual([])
})

it('the operator is not warned of a missing merchant category code where the acquirer makes the payment links', () => {
  const setu = { acquirer: 'setu', mcc: '0000' }
  expect(merchantWarnings({ ...setu, vpa: 'chaipoint@examplebank' })).toEqual([])
  expect(merchantWarnings({ ...setu, vpa: '9876543210@upi' })).toEqual(['private address'])
})
