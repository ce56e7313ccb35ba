import { describe, expect, it } from 'vitest'
import { isPayable, offersToPay, pageState, stateKey } from '../../src/gateway/checkout/page-state.ts'
import { FAILURE_REASONS, type FailureReason } from '../../src/gateway/payments/failure-reasons.ts'
import type { PaymentState } from '../../src/gateway/payments/intents.ts'

const CREATED = new Date('2026-03-31T18:00:00Z')
const at = (minutes: number) => new Date(CREATED.getTime() + minutes * 60_000)

type Facts = PaymentState & { refunded?: boolean }
const NEW: Facts = {
  status: 'PENDING',
  utr: null,
  expiresAt: at(15),
  isUnreadable: false,
  failureReason: null,
  attemptedAt: null,
  merchantDisabled: false,
  mismatch: null,
}
const failedAt = (minutes: number, failureReason: FailureReason): Facts => ({
  ...NEW,
  status: 'FAIL',
  failureReason,
  attemptedAt: at(minutes),
})
const MISMATCH = { amount: 150_000, utr: '523504870405' }

describe('the state of a pay page', () => {
  it.each<[string, Facts, number, object, boolean]>([
    ['a new order', NEW, 0, { name: 'open' }, true],
    ['an order until its expiry', NEW, 14.99, { name: 'open' }, true],
    ['an expired order while a payment may be reported', NEW, 15, { name: 'timeUp' }, false],
    ['an expired order with a failed attempt', failedAt(5, 'wrong_pin'), 15, { name: 'timeUp' }, false],
    ['an order 10 minutes after its expiry', NEW, 25, { name: 'expired' }, false],
    ['a failed order', failedAt(5, 'wrong_pin'), 25, { name: 'failed', reason: 'wrong_pin' }, false],
    ['a rejected order', { ...failedAt(5, 'other'), status: 'REJECT' }, 25, { name: 'failed', reason: 'other' }, false],
    [
      'an order whose status became unreadable',
      { ...NEW, isUnreadable: true, attemptedAt: at(2) },
      5,
      { name: 'attemptFailed', reason: 'unconfirmed', tone: 'wait', offersToPay: false },
      false,
    ],
    [
      'an expired order with an unreadable status',
      { ...NEW, isUnreadable: true, attemptedAt: at(2) },
      60,
      { name: 'timeUp' },
      false,
    ],
    ['a paid order', { ...NEW, status: 'SUCCESS', utr: '1' }, 60, { name: 'paid' }, false],
    ['a refunded order', { ...NEW, status: 'SUCCESS', utr: '1', refunded: true }, 60, { name: 'refunded' }, false],
    ['a cancelled order', { ...NEW, status: 'CANCELLED' }, 1, { name: 'cancelled' }, false],
    [
      'an order with a payment of another amount',
      { ...NEW, mismatch: MISMATCH },
      1,
      { name: 'amountMismatch', mismatch: MISMATCH },
      false,
    ],
    [
      'an expired order with a payment of another amount',
      { ...failedAt(5, 'wrong_pin'), mismatch: MISMATCH },
      60,
      { name: 'amountMismatch', mismatch: MISMATCH },
      false,
    ],
    [
      'a cancelled order with a payment of another amount',
      { ...NEW, status: 'CANCELLED', mismatch: MISMATCH },
      60,
      { name: 'amountMismatch', mismatch: MISMATCH },
      false,
    ],
  ])('of %s', (_what, facts, minutes, state, offers) => {
    expect(pageState(facts, at(minutes))).toEqual(state)
    expect(offersToPay(pageState(facts, at(minutes)))).toBe(offers)
  })

  const TONES: Record<FailureReason, string> = {
    wrong_pin: 'retry',
    pin_tries_exceeded: 'retry',
    insufficient_funds: 'retry',
    limit_exceeded: 'retry',
    bank_unavailable: 'wait',
    declined_by_customer: 'retry',
    not_authorised_in_time: 'wait',
    risk_declined: 'retry',
    account_problem: 'retry',
    payee_not_allowed: 'stop',
    other: 'wait',
  }
  it.each(FAILURE_REASONS)('after an attempt that failed with %s offers to pay by its tone', (reason) => {
    const facts = failedAt(5, reason)
    const tone = TONES[reason]
    const expected = (offers: boolean) => ({ name: 'attemptFailed', reason, tone, offersToPay: offers })
    expect(pageState(facts, at(6))).toEqual(expected(tone === 'retry'))
    // The customer confirms that this attempt has taken no money, which is not valid for a later attempt.
    expect(pageState(facts, at(6), { unpaidAttemptAt: at(5) })).toEqual(expected(tone !== 'stop'))
    expect(pageState(failedAt(6, reason), at(7), { unpaidAttemptAt: at(5) })).toEqual(expected(tone === 'retry'))
    // A time after the attempt, which only a forged link contains, confirms no attempt.
    expect(pageState(facts, at(6), { unpaidAttemptAt: at(60) })).toEqual(expected(tone === 'retry'))
  })

  it('is waiting after the customer returned from an app, until a result is reported or the order expires', () => {
    const visit = { openedAppAt: at(3) }
    expect(pageState(NEW, at(4), visit)).toEqual({ name: 'waiting' })
    expect(offersToPay(pageState(NEW, at(4), visit))).toBe(false)
    // The attempt was reported before the customer opened the app again.
    expect(pageState(failedAt(2, 'wrong_pin'), at(4), visit)).toEqual({ name: 'waiting' })
    expect(pageState(failedAt(3, 'wrong_pin'), at(4), visit).name).toBe('attemptFailed')
    expect(pageState({ ...NEW, mismatch: MISMATCH }, at(4), visit).name).toBe('amountMismatch')
    expect(pageState(NEW, at(15), visit).name).toBe('timeUp')
    expect(pageState({ ...NEW, status: 'SUCCESS' }, at(4), visit).name).toBe('paid')
  })

  it('has another key after each failed attempt and its later reason, so that open pages are drawn again', () => {
    const facts = [NEW, failedAt(2, 'other'), failedAt(2, 'wrong_pin'), failedAt(3, 'wrong_pin')]
    const keys = facts.map((one) => stateKey(one, at(4)))
    expect(new Set(keys).size).toBe(4)
    expect(keys[0]).toBe('open')
  })

  it('does not change whether the order can be paid, which only its status and its expiry decide', () => {
    expect([NEW, failedAt(5, 'payee_not_allowed')].map((facts) => isPayable(facts, at(6)))).toEqual([true, true])
    expect(isPayable(NEW, at(15))).toBe(false)
    expect((['SUCCESS', 'CANCELLED'] as const).map((status) => isPayable({ ...NEW, status }, at(1)))).toEqual([
      false,
      false,
    ])
  })
})
