import { describe, expect, it } from 'vitest'
import * as z from 'zod'
import * as cashfree from '../../src/acquirer/cashfree-http.ts'
import * as setu from '../../src/acquirer/setu-fields.ts'
import { FAILURE_REASONS, failureIn } from '../../src/payments/failure-reasons.ts'

/** NPCI's codes for links and QRs by reason, copied from its table by hand; the service has a table of its own. */
const REASONS: Record<string, string[]> = {
  wrong_pin: ['ZM'],
  pin_tries_exceeded: ['Z6'],
  insufficient_funds: ['Z9', 'IE'],
  limit_exceeded: ['Z7', 'Z8', 'ZU', 'U02', 'U03', 'FL'],
  bank_unavailable: [
    ...['U28', 'U30', 'XY', 'XT', 'U08', 'U09', 'U13', 'U18', 'U20', 'U22', 'U23', 'U24', 'U27', 'U40', 'U41', 'U44'],
    ...['U45', 'U72', 'U80', 'U81', 'U84', 'U85', 'U86', 'U89', 'U90', 'U91', 'U92', 'U93', 'U94', 'S93', 'S94', 'S96'],
    ...['S97', 'S98', 'HS1', 'HS2', 'HS3', 'Y1', 'XU', 'U78', 'X7', 'YG', 'U31', 'U26', 'U53', 'U67', 'U68', 'U70'],
    ...['U82', 'U87', 'U88', 'S95', 'UT', 'BT', 'UP'],
  ],
  declined_by_customer: ['ZA'],
  not_authorised_in_time: ['U69', 'X1'],
  risk_declined: ['U16', 'M16', '59', 'K1', 'ZI', 'CI', 'XV', 'FP'],
  account_problem: [
    ...['B1', 'AM', 'U66', 'ZF', 'ZX', 'YE', 'B3', 'XH', 'XJ', 'XL', 'XN', 'XP', 'XR', 'XX', 'YA', 'YC', '15', 'QU'],
    ...['U74', 'MR', 'VO', 'VP', 'VQ', 'VR', 'VZ'],
  ],
  payee_not_allowed: [
    ...['ZH', 'UX', 'ZG', 'ZE', 'ZB', 'YF', 'ZY', 'XI', 'YD', 'XW', 'X6', 'XK', 'XM', 'XO', 'XQ', 'XS', 'YB', 'YH'],
    ...['Z5', 'ZN', 'ZO', 'ZP', 'PS', 'LC', 'MB', 'MQ7', 'CA', 'U71', 'U77', 'U95'],
  ],
  other: [
    ...['XB', 'XC', 'XD', 'XE', 'XF', 'XG', 'ZD', 'B6', 'U17', 'U19', 'U29', 'U34', 'U39', 'U43', 'U48', 'U54', 'U96'],
    ...['12', '52', 'NO', '21', 'Q99', 'not a code of NPCI’s'.replace(/[^!-~]/g, '_')],
  ],
}
const CASES = Object.entries(REASONS).flatMap(([reason, codes]) => codes.map((code) => ({ code, reason })))
const UNDER_WAY = 'RB RR RP 32 ZQ U32 U33 U37 96 U01 DT DF U35 U36 U38 U42 01'.split(' ')
const WITHOUT_CAUSE = 'U19 U29 U30 U31 U34 U39 U43'.split(' ')

function ofSetu(reason: unknown) {
  const payment = { productInstanceId: 'Q1', amount: 100, rrn: '523504870405', reason }
  return setu.toPaymentReport('setu', 'O', 'FAIL', z.object(setu.paymentFields).parse(payment))
}

function ofCashfree(changes: object) {
  const payment = { order_id: 'O', payment_status: 'FAILED', payment_amount: '1.00', bank_reference: null, ...changes }
  return cashfree.toPaymentReport('cashfree', 'O', z.object(cashfree.paymentFields).parse(payment))
}

const details = (changes: object) => ({ error_code: 'TRANSACTION_DECLINED', error_reason: 'auth_declined', ...changes })

it('the reasons are a closed set', () => {
  expect([...FAILURE_REASONS].sort()).toEqual(Object.keys(REASONS).sort())
})

describe.each(CASES)('the code $code', ({ code, reason }) => {
  it(`means ${reason} with every acquirer, and is kept`, () => {
    const failure = { reason, code }
    expect(ofSetu({ npciRespCode: code })?.failure).toEqual(failure)
    expect(ofSetu({ npciErrCode: code, code: 'declined' })?.failure).toEqual(failure)
    expect(ofCashfree({ error_details: details({ error_code_raw: code }) })?.failure).toEqual(failure)
    if (/^[A-Z0-9]{2,3}$/.test(code)) {
      expect(ofCashfree({ payment_message: `${code}::REJECTED` })?.failure).toEqual(failure)
    }
    expect(failureIn({ status: 'FAIL', code })).toEqual(failure)
  })
})

it.each(REASONS.other?.slice(0, 18) ?? [])('the code %s means other, whatever else the acquirer says', (code) => {
  const failure = { reason: 'other', code }
  expect(ofSetu({ npciRespCode: code, npciErrCategory: 'TD' })?.failure).toEqual(failure)
  const told = {
    payment_status: 'USER_DROPPED',
    error_details: { error_code_raw: code, error_reason: 'bank_rejected' },
  }
  expect(ofCashfree(told)?.failure).toEqual(failure)
})

it.each(UNDER_WAY)('the code %s leaves the attempt open, though the acquirer calls it failed', (code) => {
  expect(ofSetu({ npciRespCode: code })).toBeUndefined()
  expect(ofCashfree({ error_details: details({ error_code_raw: code }) })).toBeUndefined()
  expect(failureIn({ status: 'FAIL', code })).toBe('under way')
})

it.each(WITHOUT_CAUSE)('of the code %s and a second code, the second one gives the reason', (code) => {
  expect(ofSetu({ npciRespCode: code, npciErrCode: 'Z9' })?.failure).toEqual({
    reason: 'insufficient_funds',
    code: 'Z9',
  })
  expect(ofSetu({ npciRespCode: 'Z9', npciErrCode: code })?.failure).toEqual({
    reason: 'insufficient_funds',
    code: 'Z9',
  })
})

describe('a reason of Setu', () => {
  it('follows from the category of NPCI when no code is known', () => {
    expect(ofSetu({ npciRespCode: 'Q9', npciErrCategory: 'TD' })?.failure).toEqual({
      reason: 'bank_unavailable',
      code: 'Q9',
    })
    expect(ofSetu({ npciRespCode: 'Q9', npciErrCategory: 'BD' })?.failure).toEqual({ reason: 'other', code: 'Q9' })
    expect(ofSetu({ npciErrCategory: 'TD' })?.failure).toEqual({ reason: 'bank_unavailable' })
  })

  it.each([
    undefined,
    null,
    {},
    'text',
    7,
    { npciRespCode: 'x'.repeat(65) },
    { npciRespCode: 'two words' },
    { npciRespCode: 7 },
  ])('in an unknown form (%j) leaves the report readable and counts as not told', (reason) => {
    expect(ofSetu(reason)).toMatchObject({ status: 'FAIL', failure: undefined })
  })
})

describe('a reason of Cashfree', () => {
  it.each([
    [{ error_details: details({}) }, undefined],
    [{ error_details: { error_reason: 'bank_rejected', error_source: 'bank' } }, { reason: 'bank_unavailable' }],
    [{ payment_status: 'USER_DROPPED' }, { reason: 'not_authorised_in_time' }],
    [{ payment_status: 'CANCELLED' }, { reason: 'not_authorised_in_time' }],
    [{ payment_status: 'VOID' }, undefined],
    // Cashfree's document has this message with a payment that has failed.
    [{ payment_message: '01::REJECTED' }, undefined],
    [{ payment_message: 'Transaction failed', error_details: null }, undefined],
    [{ error_details: 'text', payment_message: 7 }, undefined],
    [{ payment_message: { toString: 1, valueOf: 1 } }, undefined],
    // The raw code is more reliable than the message, if NPCI's table has it.
    [
      { payment_message: 'Z9::X', error_details: details({ error_code_raw: 'ZM' }) },
      { reason: 'wrong_pin', code: 'ZM' },
    ],
    [
      { payment_message: 'Z9::X', error_details: details({ error_code_raw: 'Q99' }) },
      { reason: 'insufficient_funds', code: 'Z9' },
    ],
  ])('of %j is %j', (payment, failure) => {
    expect(ofCashfree(payment)).toMatchObject({ status: 'FAIL' })
    expect(ofCashfree(payment)?.failure).toEqual(failure)
  })
})

it('a report in our own form may name the reason itself, which a code does not change', () => {
  expect(failureIn({ status: 'REJECT', reason: 'risk_declined', code: 'ZM' })).toEqual({
    reason: 'risk_declined',
    code: 'ZM',
  })
  expect(failureIn({ status: 'FAIL' })).toBeUndefined()
  expect(failureIn({ status: 'SUCCESS', code: 'RB' })).toBeUndefined()
})
