import { expect, it } from 'vitest'
import { chaptersOf } from '../../src/docs/chapters.ts'
import { Money } from '../../src/operator/commands/result.ts'
import { valuesOf } from '../../src/operator/console/view.ts'
import type { Today } from '../../src/operator/support/today.ts'
import { type Fact, factsOf, SEVERITIES } from '../../src/operator/support/today-facts.ts'
import { COMMANDS } from '../../src/operator/terminal/main.ts'

const AT = new Date('2026-11-18T06:00:00Z')
const ago = (minutes: number) => new Date(AT.getTime() - minutes * 60_000)

const NOTHING_OPEN = {
  open: { 'under 1 day': 0, '1 to 2 days': 0, 'over 2 days': 0 },
  amount: new Money(0),
  oldest: [],
}
const QUIET = {
  at: AT,
  exceptions: NOTHING_OPEN,
  refunds: { open: 0, overdue: 0, amount: new Money(0, true), oldest: [] },
  disputes: disputesOf({}),
  failures: [],
  byNextAcquirer: 0,
  webhooks: { behind: 0, longest: [] },
  returnCalls: { givenUp: 0, newest: [] },
  settlementImport: null,
  migration: '0009_operator_keys',
  databaseBytes: 12_300_000_000,
  balance: balanceOf({}),
  arrivals: [],
  arrivalErrors: [],
  expiringKeys: [],
  warnings: [],
} as unknown as Today

function balanceOf({ balances = true, count = 0 }): Today['balance'] {
  const days = { from: '2026-11-16', to: '2026-11-17', balances, differences: balances ? 0 : 1, openExceptions: 0 }
  const open = { count, owed: new Money(count * 100), oldest: count > 0 ? '2026-10-01' : null }
  return { ...days, errors: [], carriedForward: new Money(0), open }
}

const exceptionsOf = (age: string) => ({ ...NOTHING_OPEN, open: { ...NOTHING_OPEN.open, [age]: 1 } })
const refundsOf = (open: number, overdue: number) => ({ ...QUIET.refunds, open, overdue })
function disputesOf(counts: Partial<Today['disputes']>): Today['disputes'] {
  return { awaiting: 0, amount: new Money(0, true), passed: 0, unknown: 0, first: null, respondBy: null, ...counts }
}
const webhookOf = (problem: object) => ({
  behind: 1,
  longest: [{ mid: 'M1', endpointId: 'ep_1', dueSince: null, failingSince: null, switchedOffAt: null, ...problem }],
})
const arrivalOf = (arrival: string) => [{ arrival, payouts: 1, net: new Money(100) }]
const callbacks = { givenUp: 1, newest: [{ mid: 'M1', orderId: 'o', givenUpAt: ago(1) }] }
const key = { publicKey: 'pk_1', expiresOn: '2026-11-20' }

const CASES: [Fact['severity'], string, string, object][] = [
  ['now', 'configuration', 'a refund waits for a setting', { warnings: ['Refunds are waiting: set SETU_CLIENT_ID.'] }],
  ['now', 'exceptions', 'an exception is older than a day', { exceptions: exceptionsOf('1 to 2 days') }],
  ['today', 'exceptions', 'an exception is new', { exceptions: exceptionsOf('under 1 day') }],
  ['information', 'exceptions', 'no exception is open', {}],
  ['now', 'refunds', 'a refund is overdue', { refunds: refundsOf(2, 1) }],
  ['today', 'refunds', 'a refund is open', { refunds: refundsOf(2, 0) }],
  ['information', 'refunds', 'no refund is open', {}],
  ['now', 'disputes', 'a dispute awaits a response', { disputes: disputesOf({ awaiting: 1 }) }],
  ['now', 'disputes', 'the deadline of a dispute has passed', { disputes: disputesOf({ passed: 1 }) }],
  ['today', 'disputes', 'the deadline of a dispute is unknown', { disputes: disputesOf({ unknown: 1 }) }],
  ['now', 'webhooks', 'an endpoint is disabled', { webhooks: webhookOf({ switchedOffAt: ago(1) }) }],
  ['now', 'webhooks', 'an endpoint fails for 2 hours', { webhooks: webhookOf({ failingSince: ago(120) }) }],
  ['now', 'webhooks', 'an endpoint is late by 2 hours', { webhooks: webhookOf({ dueSince: ago(120) }) }],
  ['today', 'webhooks', 'an endpoint fails for less than 2 hours', { webhooks: webhookOf({ failingSince: ago(119) }) }],
  ['information', 'webhooks', 'no endpoint is behind', {}],
  ['now', 'reconciliation', 'the days do not balance', { balance: balanceOf({ balances: false }) }],
  ['information', 'reconciliation', 'the days balance', {}],
  ['information', 'reconciliation', 'the balance is not available', { balance: null }],
  ['today', 'discrepancies', 'a discrepancy is open', { balance: balanceOf({ count: 1 }) }],
  ['information', 'discrepancies', 'no discrepancy is open', {}],
  ...['taken back', 'arrived twice', 'amount differs', 'perhaps', 'not arrived'].map(
    (arrival): (typeof CASES)[number] => [
      'today',
      'payouts',
      `a payout is ${arrival}`,
      { arrivals: arrivalOf(arrival) },
    ],
  ),
  ['information', 'payouts', 'a payout was received', { arrivals: arrivalOf('arrived') }],
  ['today', 'keys', 'a key expires soon', { expiringKeys: [key] }],
  ['information', 'return-URL callbacks', 'a callback was abandoned', { returnCalls: callbacks }],
  ['information', 'failed attempts', 'attempts failed', { failures: [{ reason: 'wrong_pin', count: 2 }] }],
  ['information', 'failover', 'the fallback acquirer created orders', { byNextAcquirer: 1 }],
  ['information', 'settlements', 'no file was imported', {}],
  ['information', 'database', 'its size and newest migration are known', {}],
]

const factsWith = (changes: object) => factsOf({ ...QUIET, ...changes } as Today)

it.each(CASES)('ops today shows as %s, in the line %s, that %s', (severity, subject, _what, changes) => {
  expect(factsWith(changes).filter((fact) => fact.subject === subject)).toMatchObject([{ severity }])
})

it('ops today begins with the most urgent line, and shows no line for what did not occur', () => {
  const facts = factsWith(Object.assign({}, ...CASES.map(([, , , changes]) => changes)))
  const order = facts.map(({ severity }) => SEVERITIES.indexOf(severity))
  expect(order).toEqual(order.toSorted())
  expect(facts[0]?.subject).toBe('configuration')
  const shown = factsWith({}).map(({ subject }) => subject)
  for (const absent of ['configuration', 'disputes', 'payouts', 'keys', 'failed attempts', 'failover']) {
    expect(shown).not.toContain(absent)
  }
})

const ALL = CASES.flatMap(([, , , changes]) => factsWith(changes))

it.each([...new Set(ALL.flatMap(({ chapter = [] }) => chapter))])(
  'the operator manual has the chapter %s that ops today names',
  (chapter) => {
    expect(chaptersOf('operator')).toContain(`operator/${chapter}`)
  },
)

it('ops has each command that a line names, with its flags', () => {
  for (const { command } of ALL) {
    if (command === undefined) continue
    const found = COMMANDS.find(({ name }) => name === command.name) ?? expect.fail(command.name)
    expect(() => found.prepare(valuesOf(found, command.flags))).not.toThrow()
  }
})
