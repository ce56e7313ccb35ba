import { describe, expect, it } from 'vitest'
import { AcquirerError } from '../../src/errors.ts'
import { readPaymentLink } from '../../src/gateway/acquirers/payment-link.ts'

const PAYEE = 'cf.kulfi@icici'
const PAYEE_OF_ORDER = { vpa: 'merchant@bank', name: 'Chai Point', mcc: '5812' }
const QUERY = `pa=${PAYEE}&pn=Chai%20Point&am=588.80&cu=INR&tr=AB12`

const read = (
  query: string,
  { amount = 58_880, payees = [PAYEE] as readonly string[], link = `upi://pay?${query}` } = {},
) => readPaymentLink({ link, requestId: 'R1' }, { orderId: 'O1', amount, payee: PAYEE_OF_ORDER }, payees)

describe('payment links of an acquirer whose links need no currency', () => {
  const readOptional = (query: string) =>
    readPaymentLink(
      { link: `upi://pay?${query}`, requestId: 'R1', isCurrencyOptional: true },
      { orderId: 'O1', amount: 58_880, payee: PAYEE_OF_ORDER },
      [PAYEE],
    )

  it.each([QUERY, QUERY.replace('&cu=INR', '')])('accepts a payment link with or without the currency: %s', (query) => {
    expect(readOptional(query)).toEqual({ reference: 'AB12', payeeVpa: PAYEE })
  })

  it.each(['cu=USD', 'cu=', 'cu=inr', 'cu=INR&cu=INR', 'cu=INR&CU=USD'])(
    'rejects a payment link with the currency parameters %s',
    (cu) => {
      expect(() => readOptional(QUERY.replace('cu=INR', cu))).toThrow(AcquirerError)
    },
  )
})

/** Returns the error for a rejected link; undefined for an accepted one. */
function errorOf(...args: Parameters<typeof read>): AcquirerError | undefined {
  try {
    read(...args)
  } catch (error) {
    if (error instanceof AcquirerError) return error
    throw error
  }
  return undefined
}

describe('the payment link of an acquirer', () => {
  it.each([
    ['plain parameters', QUERY],
    ['parameters in capitals', QUERY.replace('pa=', 'PA=').replace('am=', 'Am=').replace('tr=', 'TR=')],
    ['unknown parameters, including a signature', `${QUERY}&mode=16&purpose=00&sign=MEQCIA%2Bb%3D%3D&x=1&x=2`],
    ['an encoded @', QUERY.replace('@', '%40')],
    ['a minimum amount equal to the amount', `${QUERY}&mam=588.8`],
    ['the parameters in another order', QUERY.split('&').reverse().join('&')],
  ])('accepts a payment link with %s', (_, query) => {
    expect(read(query)).toEqual({ reference: 'AB12', payeeVpa: PAYEE })
  })

  it.each([
    ['no pa', QUERY.replace('pa=', 'x=')],
    ['an empty pa', QUERY.replace(PAYEE, '')],
    ['two payees', `${QUERY}&pa=${PAYEE}`],
    ['two payees, one in capitals', `${QUERY}&PA=other@icici`],
    ['two payees, one with an encoded name', `${QUERY}&p%61=other@icici`],
    ['a payee that is no UPI address', QUERY.replace(PAYEE, 'cf.chai')],
    ['a letter that only looks like the expected letter', QUERY.replace('kulfi', '%E2%84%AAulfi')],
    ['a payee with two @ characters', QUERY.replace(PAYEE, `${PAYEE}@other`)],
    ['a payee with a space', QUERY.replace(PAYEE, `${PAYEE}+`)],
    ['no am', QUERY.replace('am=', 'x=')],
    ['two amounts', `${QUERY}&am=588.80`],
    ['two amounts, one in capitals', `${QUERY}&AM=1.00`],
    ['a minimum amount below the amount', `${QUERY}&mam=1.00`],
    ['an empty minimum amount', `${QUERY}&mam=`],
    ['no cu', QUERY.replace('cu=', 'x=')],
    ['another currency', QUERY.replace('INR', 'USD')],
    ['two currencies', `${QUERY}&CU=USD`],
    ['no tr', QUERY.replace('tr=', 'x=')],
    ['two tr parameters', `${QUERY}&tr=AB12`],
    ['a tr with other characters', QUERY.replace('AB12', 'AB-12')],
    ['a tr that is too long', QUERY.replace('AB12', 'A'.repeat(36))],
    ['an empty tr', QUERY.replace('AB12', '')],
    ['an encoded name', `${QUERY}&s%69gn=1`],
    ['a fragment', `${QUERY}#x`],
    ['a quotation mark', `${QUERY}&x="`],
    ['a space', `${QUERY}&x= y`],
    ['a letter that is not ASCII', `${QUERY}&x=é`],
    ['no parameter at all', ''],
  ])('rejects a payment link with %s', (_, query) => {
    expect(errorOf(query)).toMatchObject({ outcome: 'bad answer', facts: { requestId: 'R1', orderId: 'O1' } })
  })

  it.each(['https://pay?', 'UPI://pay?', 'upi://collect?', 'upi:pay?', 'upi://pay/?', ' upi://pay?', 'phonepe://pay?'])(
    'rejects a payment link with the prefix %j',
    (prefix) => {
      expect(errorOf('', { link: `${prefix}${QUERY}` })).toMatchObject({ outcome: 'bad answer' })
    },
  )

  it('accepts a payment link of at most 2048 characters', () => {
    const filler = 'x'.repeat(2_048 - `upi://pay?${QUERY}&x=`.length)
    expect(read(`${QUERY}&x=${filler}`).reference).toBe('AB12')
    expect(errorOf(`${QUERY}&x=${filler}x`)?.outcome).toBe('bad answer')
  })
})

describe('the amount of a payment link', () => {
  it.each([
    ['10.00', 1_000],
    ['10.0', 1_000],
    ['10', 1_000],
    ['010.00', 1_000],
    ['3', 300],
    ['588.8', 58_880],
    ['588.82', 58_882],
    ['500000', 50_000_000],
    ['500000.00', 50_000_000],
  ])('accepts the link amount %s only for an order of %i paise', (am, amount) => {
    expect(errorOf(QUERY.replace('588.80', am), { amount })).toBeUndefined()
    expect(errorOf(QUERY.replace('588.80', am), { amount: amount + 1 })?.outcome).toBe('bad answer')
    expect(errorOf(QUERY.replace('588.80', am), { amount: amount * 100 })?.outcome).toBe('bad answer')
  })

  it.each([
    '1e1',
    '10.',
    '.10',
    '+10',
    '-10',
    '0xa',
    '10,00',
    '1,000',
    '10.000',
    '10%20',
    '१०',
    '9.999999999999999999',
    '',
  ])('rejects the link amount "%s"', (am) => {
    expect(errorOf(QUERY.replace('588.80', am), { amount: 1_000 })?.outcome).toBe('bad answer')
  })
})

describe('the payee of a payment link', () => {
  it.each([
    ['cf.chai@icici', 'cf.chai@icici'],
    ['CF.Chai@ICICI', 'cf.chai@icici'],
    ['cf.chai@icici', 'Cf.Chai@Icici'],
    ['cf.chai@icici', 'cf.*@icici'],
    ['cf.@icici', 'cf.*@icici'],
    ['CF.CHAI_1-x@ICICI', 'cf.*@icici'],
  ])('accepts the payee %s in a link if the merchant accepts %s', (payeeVpa, accepted) => {
    expect(read(QUERY.replace(PAYEE, payeeVpa), { payees: ['other@bank', accepted] }).payeeVpa).toBe(payeeVpa)
  })

  it.each([
    ['cf.chai@icici', 'cf.chai@ici'],
    ['cf.chai@icici', 'f.chai@icici'],
    ['cf.chai@icici', 'cf_chai@icici'],
    ['cf-chai@icici', 'cf.*@icici'],
    ['xcf.chai@icici', 'cf.*@icici'],
    ['cf.chai@icici.evil', 'cf.*@icici'],
    ['cf.chai@xicici', 'cf.*@icici'],
    ['cf.chai.icici@evil', 'cf.*@icici'],
    ['cf@icici', 'cf.*@icici'],
  ])('rejects the payee %s in a link if the merchant accepts %s, and names both in the error', (payeeVpa, accepted) => {
    expect(errorOf(QUERY.replace(PAYEE, payeeVpa), { payees: [accepted] })).toMatchObject({
      outcome: 'bad answer',
      facts: { requestId: 'R1', orderId: 'O1', payee: payeeVpa, accepted: [accepted] },
    })
  })

  it('does not log the payee of a link with a wrong amount, whether or not the payee is correct', () => {
    const fault = errorOf(QUERY.replace('588.80', '1'), { payees: ['other@bank'] })
    expect([fault?.facts.payee, fault?.message]).toEqual([
      undefined,
      'the acquirer created a link that does not match the order',
    ])
  })
})
