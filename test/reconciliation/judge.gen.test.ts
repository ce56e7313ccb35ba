import fc from 'fast-check'
import { expect, it } from 'vitest'
import { addDays } from '../../src/books/ledger/bank-days.ts'
import { groupBy } from '../../src/books/ledger/match-deductions.ts'
import { runs } from '../support/generated.ts'
import { istMoment } from './rows.ts'
import { judgeStory, type Line, type Payment, type Story } from './story.ts'

/** A Monday; every payout of the days is judged as of `TODAY`. */
const FIRST_DAY = '2026-05-04'
const DAYS = { from: '2026-04-20', to: '2026-06-20' }
const TODAY = '2026-06-30'

const MADE = { from: DAYS.from, madeAt: istMoment(DAYS.from, '12:00:00') }
const paymentOf = (utr: string, amount: number, number: number): Payment => {
  const day = addDays(FIRST_DAY, number)
  return {
    ...MADE,
    utr,
    orderId: `O${utr}`,
    amount,
    day,
    at: istMoment(day, '12:00:00'),
    kind: 'first',
    acquirer: 'direct',
  }
}
const refundOf = (refundId: string, { utr, orderId, day }: Payment, amount: number, number: number) => {
  const on = addDays(day, number)
  return { ...MADE, refundId, orderId, utr, amount, day: on, at: istMoment(on, '13:00:00'), reference: '' }
}
const lineOf = (utr: string, gross: number, number: number): Line => ({
  ...{ from: DAYS.from, utr, day: addDays(FIRST_DAY, number), gross },
})

/** What the movements of these items add up to. */
const balanceOf = ({ payments, lines, refunds }: Story) =>
  [
    ...payments,
    ...refunds.map(({ amount }) => ({ amount: -amount })),
    ...lines.filter(({ failedOn }) => !failedOn).map(({ gross }) => ({ amount: -gross })),
  ].reduce((sum, { amount }) => sum + amount, 0)

const AMOUNTS = [50_00, 100_00, 150_00, 195_00, 200_00]
const amount = fc.constantFrom(...AMOUNTS)
const moved = fc.record({
  amount: fc.constantFrom(...AMOUNTS, -200_00, -150_00, -50_00, 5_00),
  day: fc.nat(9),
  isFailed: fc.boolean(),
})
const refunds = fc.array(fc.record({ amount: fc.constantFrom(50_00, 100_00, 200_00), day: fc.nat(6) }), {
  maxLength: 3,
})

it('the discrepancies of an item add up to its balance, whatever the bank does where its lines name payments', () => {
  const item = fc.record({
    isPaid: fc.boolean(),
    isSecond: fc.boolean(),
    day: fc.nat(5),
    lines: fc.array(moved, { maxLength: 6 }),
    refunds,
  })
  fc.assert(
    fc.property(fc.array(item, { minLength: 1, maxLength: 4 }), (items) => {
      // One payment is settled, so that the file is one that names payments.
      const story: Story = {
        mid: 'M1',
        payments: [paymentOf('P', 1_00, 0)],
        lines: [{ ...lineOf('NP', 1_00, 1), paymentUtr: 'P' }],
        refunds: [],
        exceptions: [],
      }
      for (const [index, one] of items.entries()) {
        const utr = `P${index}`
        const payment = {
          ...paymentOf(utr, 200_00, one.day),
          kind: one.isSecond ? ('second' as const) : ('first' as const),
        }
        if (one.isPaid) {
          story.payments.push(payment)
          story.refunds.push(
            ...one.refunds.map(({ amount, day }, number) => refundOf(`R${index}N${number}`, payment, amount, day)),
          )
        }
        story.lines.push(
          ...one.lines.map(({ amount, day, isFailed }, number) => ({
            ...lineOf(`N${index}L${number}`, amount, day),
            paymentUtr: utr,
            ...(isFailed && { failedOn: TODAY }),
          })),
        )
      }
      const found = groupBy(judgeStory(story, DAYS, TODAY).found, ({ utr }) => utr ?? '')
      for (const utr of ['P', ...items.map((_, index) => `P${index}`)]) {
        const isOf = (one: { utr: string; paymentUtr?: string | undefined }) => (one.paymentUtr ?? one.utr) === utr
        const movements = {
          ...story,
          payments: story.payments.filter(isOf),
          refunds: story.refunds.filter(isOf),
          lines: story.lines.filter(isOf),
        }
        expect(
          (found.get(utr) ?? []).reduce((sum, { owed }) => sum + owed, 0),
          utr,
        ).toBe(balanceOf(movements))
      }
    }),
    { numRuns: runs(20_000, 300) },
  )
})

it('the discrepancies of payouts by totals add up to what was paid, less what was settled and sent back', () => {
  const day = fc.nat(12)
  const acquirer = fc.constantFrom('direct', 'setu')
  const payment = fc.record({ amount, day, acquirer, refunds })
  const line = fc.record({ moved, day, acquirer })
  fc.assert(
    fc.property(
      fc.array(payment, { maxLength: 6 }),
      fc.array(line, { maxLength: 8 }),
      fc.boolean(),
      (payments, lines, areNamed) => {
        const story: Story = { mid: 'M1', payments: [], lines: [], refunds: [], exceptions: [] }
        for (const [index, one] of payments.entries()) {
          const payment = { ...paymentOf(`P${index}`, one.amount, one.day), acquirer: one.acquirer }
          story.payments.push(payment)
          story.refunds.push(
            ...one.refunds.map(({ amount, day }, number) => refundOf(`R${index}N${number}`, payment, amount, day)),
          )
        }
        for (const [index, { moved, day, acquirer }] of lines.entries()) {
          story.lines.push({
            ...lineOf(`S${index}`, moved.amount, day),
            acquirer: areNamed ? acquirer : null,
            ...(moved.isFailed && { failedOn: TODAY }),
          })
        }
        const { found } = judgeStory(story, DAYS, TODAY)
        expect(found.reduce((sum, { owed }) => sum + owed, 0)).toBe(balanceOf(story))
      },
    ),
    { numRuns: runs(20_000, 300) },
  )
})
