import { describe, expect, it } from 'vitest'
import * as z from 'zod'
import * as cashfree from '../../src/gateway/acquirers/cashfree/http.ts'
import { readPayments } from '../../src/gateway/acquirers/phonepe/client.ts'
import * as setu from '../../src/gateway/acquirers/setu/http.ts'
import { FAILURE_REASONS, failureIn } from '../../src/gateway/payments/failure-reasons.ts'

/** NPCI's codes for links and QRs by reason, copied from its table by hand; the service has its own table. */
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

function ofPhonepe(changes: object, ofOrder: object = {}) {
  const attempt = { state: 'FAILED', amount: 100, ...changes }
  const body = { orderId: 'O', state: 'FAILED', amount: 100, ...ofOrder, paymentDetails: [attempt] }
  return readPayments('phonepe', { orderId: 'O', id: body.orderId }, { status: 200, body, requestId: undefined })[0]
}

const details = (changes: object) => ({ error_code: 'TRANSACTION_DECLINED', error_reason: 'auth_declined', ...changes })

it('the service accepts only the documented failure reasons', () => {
  expect([...FAILURE_REASONS].sort()).toEqual(Object.keys(REASONS).sort())
})

describe.each(CASES)('NPCI’s code $code', ({ code, reason }) => {
  it(`the service maps NPCI’s code to the reason ${reason} for every acquirer, and stores the reason`, () => {
    const failure = { reason, code }
    expect(ofSetu({ npciRespCode: code })?.failure).toEqual(failure)
    expect(ofSetu({ npciErrCode: code, code: 'declined' })?.failure).toEqual(failure)
    expect(ofCashfree({ error_details: details({ error_code_raw: code }) })?.failure).toEqual(failure)
    if (/^[A-Z0-9]{2,3}$/.test(code)) {
      expect(ofCashfree({ payment_message: `${code}::REJECTED` })?.failure).toEqual(failure)
    }
    expect(ofPhonepe({ detailedErrorCode: code, errorCode: 'TXN_NOT_ALLOWED' })?.failure?.reason).toBe(reason)
    expect(failureIn({ status: 'FAIL', code })).toEqual(failure)
  })
})

it.each(REASONS.other?.slice(0, 18) ?? [])(
  'the service reports the reason `other` for the code %s, whatever else the acquirer states',
  (code) => {
    const failure = { reason: 'other', code }
    expect(ofSetu({ npciRespCode: code, npciErrCategory: 'TD' })?.failure).toEqual(failure)
    const reported = {
      payment_status: 'USER_DROPPED',
      error_details: { error_code_raw: code, error_reason: 'bank_rejected' },
    }
    expect(ofCashfree(reported)?.failure).toEqual(failure)
  },
)

it.each(UNDER_WAY)(
  'the service leaves the attempt with the code %s open, although the acquirer reports the attempt as failed',
  (code) => {
    expect(ofSetu({ npciRespCode: code })).toBeUndefined()
    expect(ofCashfree({ error_details: details({ error_code_raw: code }) })).toBeUndefined()
    expect(ofPhonepe({ detailedErrorCode: code, errorCode: 'PAYMENT_ERROR' })).toBeUndefined()
    expect(failureIn({ status: 'FAIL', code })).toBe('under way')
  },
)

it.each(WITHOUT_CAUSE)(
  'the service reports the reason of the second code if the first code, %s, has no reason',
  (code) => {
    expect(ofSetu({ npciRespCode: code, npciErrCode: 'Z9' })?.failure).toEqual({
      reason: 'insufficient_funds',
      code: 'Z9',
    })
    expect(ofSetu({ npciRespCode: 'Z9', npciErrCode: code })?.failure).toEqual({
      reason: 'insufficient_funds',
      code: 'Z9',
    })
  },
)

describe('reason of a Setu payment', () => {
  it('the service derives Setu’s failure reason from NPCI’s category if no code is known', () => {
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
  ])('the service ignores Setu’s failure reason in the unknown format %j, and still reads the report', (reason) => {
    expect(ofSetu(reason)).toMatchObject({ status: 'FAIL', failure: undefined })
  })
})

describe('reason of a Cashfree payment', () => {
  it.each([
    [{ error_details: details({}) }, undefined],
    [{ error_details: { error_reason: 'bank_rejected', error_source: 'bank' } }, { reason: 'bank_unavailable' }],
    [{ payment_status: 'USER_DROPPED' }, { reason: 'not_authorised_in_time' }],
    [{ payment_status: 'CANCELLED' }, { reason: 'not_authorised_in_time' }],
    [{ payment_status: 'VOID' }, undefined],
    // Cashfree's documentation has this message with a failed payment.
    [{ payment_message: '01::REJECTED' }, undefined],
    [{ payment_message: 'Transaction failed', error_details: null }, undefined],
    [{ error_details: 'text', payment_message: 7 }, undefined],
    [{ payment_message: { toString: 1, valueOf: 1 } }, undefined],
    // The raw code is more reliable than the message if NPCI's table contains it.
    [
      { payment_message: 'Z9::X', error_details: details({ error_code_raw: 'ZM' }) },
      { reason: 'wrong_pin', code: 'ZM' },
    ],
    [
      { payment_message: 'Z9::X', error_details: details({ error_code_raw: 'Q99' }) },
      { reason: 'insufficient_funds', code: 'Z9' },
    ],
  ])('the service reads Cashfree’s fields %j as the failure reason %j', (payment, failure) => {
    expect(ofCashfree(payment)).toMatchObject({ status: 'FAIL' })
    expect(ofCashfree(payment)?.failure).toEqual(failure)
  })
})

/** PhonePe's codes by reason, copied from its page of error codes by hand. */
const OF_PHONEPE: Record<string, string[]> = {
  wrong_pin: ['INVALID_MPIN'],
  pin_tries_exceeded: ['MPIN_LIMIT_BREACHED'],
  insufficient_funds: ['INSUFFICIENT_BALANCE'],
  limit_exceeded: ['TXN_LIMIT_BREACHED', 'TXN_FREQ_LIMIT_BREACHED', 'TRANSACTION_LIMIT_EXCEEDED'],
  bank_unavailable: [
    ...['BANK_TECHNICAL_ISSUE', 'TECHNICAL_ISSUE', 'TECHNICAL_ISSUE_BANK', 'BANK_ERROR', 'BANK_NOT_ABLE_TO_PROCESS'],
    ...['GENERIC_NPCI_ERROR', 'GENERIC_ERROR', 'PROCESSOR_ERROR', 'CONNECTION_TIMEOUT', 'AUTH_TIMEOUT'],
    'INTERNAL_SERVER_ERROR',
  ],
  declined_by_customer: [
    ...['TXN_CANCELLED', 'CANCELLED_BY_USER', 'ORDER_CANCELLED_BY_USER', 'REQUEST_DECLINE_BY_REQUESTEE'],
  ],
  not_authorised_in_time: [
    ...['TXN_NOT_COMPLETED', 'ORDER_EXPIRED', 'TXN_AUTO_FAILED', 'REQUEST_TIME_OUT', 'TIMED_OUT'],
    'TRANSACTION_TIME_OUT',
  ],
  risk_declined: ['TXN_BLOCKED', 'BUSINESS_RISK_RULES', 'INTERNAL_SECURITY_BLOCK', 'USER_BLACKLISTED'],
  account_problem: [
    ...['ACCOUNT_BLOCKED', 'ACCOUNT_INACTIVE', 'ACCOUNT_DOES_NOT_EXIST', 'ACCOUNT_NOT_ELIGIBLE', 'MPIN_NOT_SET'],
    'DEVICE_FINGERPRINT_MISMATCH',
  ],
  payee_not_allowed: ['INVALID_VPA', 'MERCHANT_CONFIG_NOT_FOUND', 'BANK_MERCHANT_CONFIG', 'MERCHANT_ERROR'],
  other: [
    ...['TXN_NOT_ALLOWED', 'VALIDATION_ERROR', 'TXN_FAILED', 'PAYMENT_ERROR', 'PAYMENT_DECLINED'],
    ...['TRANSACTION_DECLINED', 'AUTHORIZATION_ERROR', 'TXN_AMOUNT_MISMATCH', 'NEVER_SEEN'],
  ],
}

describe('reason of a PhonePe payment', () => {
  const codes = Object.entries(OF_PHONEPE).flatMap(([reason, names]) => names.map((code) => [code, reason] as const))
  it.each(codes)('the service reads PhonePe’s code %s alone as the failure reason %s', (code, reason) => {
    expect(ofPhonepe({ errorCode: code })?.failure).toEqual({ reason, code })
    expect(ofPhonepe({}, { errorCode: code })?.failure).toEqual({ reason, code })
  })

  it.each([
    // The part before the first _ is NPCI's code, and more exact.
    [
      { errorCode: 'TXN_BLOCKED', detailedErrorCode: 'XP' },
      { reason: 'account_problem', code: 'XP' },
    ],
    [
      { errorCode: 'TXN_BLOCKED', detailedErrorCode: 'U16_NPCI_TXNRISK' },
      { reason: 'risk_declined', code: 'U16' },
    ],
    [
      { errorCode: 'TXN_NOT_COMPLETED', detailedErrorCode: 'TXN_AUTO_FAILED' },
      { reason: 'not_authorised_in_time', code: 'TXN_AUTO_FAILED' },
    ],
    [{ errorCode: 7, detailedErrorCode: { a: 1 } }, undefined],
    [{}, undefined],
  ])('the service reads PhonePe’s fields %j as the failure reason %j', (reported, failure) => {
    expect(ofPhonepe(reported)).toMatchObject({ status: 'FAIL' })
    expect(ofPhonepe(reported)?.failure).toEqual(failure)
  })

  it('the service reads PhonePe’s failure reason from the attempt, otherwise from the attempt’s order', () => {
    const ofOrder = { errorCode: 'TXN_NOT_COMPLETED', detailedErrorCode: 'ORDER_EXPIRED' }
    expect(ofPhonepe({ errorCode: 'INVALID_MPIN' }, ofOrder)?.failure?.reason).toBe('wrong_pin')
    expect(ofPhonepe({ state: 'PENDING' }, ofOrder)?.failure?.reason).toBe('not_authorised_in_time')
  })
})

it('the service accepts a failure reason in its own report format, and does not change the reason because of a code', () => {
  expect(failureIn({ status: 'REJECT', reason: 'risk_declined', code: 'ZM' })).toEqual({
    reason: 'risk_declined',
    code: 'ZM',
  })
  expect(failureIn({ status: 'FAIL' })).toBeUndefined()
  expect(failureIn({ status: 'SUCCESS', code: 'RB' })).toBeUndefined()
})
