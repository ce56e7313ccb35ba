import fc from 'fast-check'
import { expect, it } from 'vitest'
import { addDays } from '../../src/books/ledger/bank-days.ts'
import { groupBy } from '../../src/books/ledger/match-deductions.ts'
import { runs } from '../support/generated.ts'
import { istMoment } from './rows.ts'
import { judgeStory, type Line, type Story } from './story.ts'

/** A Monday. All payouts of these days are due by `TODAY`. */
const FIRST_DAY = '2026-05-04'
const DAYS = { from: '2026-04-20', to: '2026-06-20' }
const TODAY = '2026-06-30'
const KNOWN = { from: DAYS.from, madeAt: istMoment(DAYS.from, '12:00:00') }

const amount = fc.constantFrom<number[]>(50_00, 100_00, 150_00, 195_00, 200_00)
const movement = (paise: fc.Arbitrary<number>) =>
  fc.record({ paise, number: fc.nat(9), acquirer: fc.constantFrom('direct', 'setu'), isFailed: fc.boolean() })
/** Generates a payment or none, the settlement lines meanwhile, and its refunds. */
const item = fc.record({
  ...{
    amount,
    number: fc.nat(9),
    kind: fc.constantFrom('first', 'second', undefined),
    acquirer: fc.constantFrom('direct', 'setu'),
  },
  lines: fc.array(movement(fc.oneof(amount, fc.constantFrom(-200_00, -150_00, -50_00, 5_00))), { maxLength: 5 }),
  refunds: fc.array(movement(fc.constantFrom(50_00, 100_00, 200_00)), { maxLength: 3 }),
})
const items = fc.array(item, { maxLength: 4 })

/**
 * Turns generated items into a story. With `areNamed`, lines name their payment; otherwise, with `haveAcquirer`, their
 * acquirer.
 */
function storyOf(
  all: (typeof item extends fc.Arbitrary<infer T> ? T : never)[],
  areNamed: boolean,
  haveAcquirer: boolean,
) {
  const story: Story = { mid: 'M1', payments: [], lines: [], refunds: [], exceptions: [] }
  for (const [index, { amount, number, kind, acquirer, lines, refunds }] of all.entries()) {
    const [utr, day] = [`P${index}`, addDays(FIRST_DAY, number)]
    const payment = { ...KNOWN, utr, orderId: `O${index}`, amount, day, at: istMoment(day, '12:00:00'), acquirer }
    if (kind !== undefined) {
      story.payments.push({ ...payment, kind })
      story.refunds.push(
        ...refunds.map(({ paise, number }, count) => {
          const on = addDays(day, number)
          const sent = { refundId: `R${index}N${count}`, day: on, at: istMoment(on, '13:00:00'), reference: '' }
          return { ...payment, ...sent, amount: paise }
        }),
      )
    }
    story.lines.push(
      ...lines.map(
        ({ paise, number, acquirer, isFailed }, count): Line => ({
          ...{ from: DAYS.from, utr: `N${index}L${count}`, day: addDays(FIRST_DAY, number), gross: paise },
          ...(areNamed ? { paymentUtr: utr } : { acquirer: haveAcquirer ? acquirer : null }),
          ...(isFailed && { failedOn: TODAY }),
        }),
      ),
    )
  }
  return story
}

type Movement = { utr: string; paymentUtr?: string | undefined; failedOn?: string | undefined }

/** Returns the sum of all movements, or of those of the item `utr`. */
function balanceOf({ payments, lines, refunds }: Story, utr?: string): number {
  const isOf = (one: Movement) =>
    one.failedOn === undefined && (utr === undefined || (one.paymentUtr ?? one.utr) === utr)
  const sum = (all: readonly (Movement & { amount: number })[]) =>
    all.filter(isOf).reduce((sum, one) => sum + one.amount, 0)
  return sum(payments) - sum(refunds) - sum(lines.map((line) => ({ ...line, amount: line.gross })))
}
const owedBy = (found: readonly { owed: number }[] = []) => found.reduce((sum, { owed }) => sum + owed, 0)

it("the discrepancies of an item add up to the item's balance for any bank lines, if lines name their payments", () => {
  // One settled payment makes the file one whose lines name payments.
  const acquirer = 'direct' as const
  const settled = { paise: 50_00, number: 1, acquirer, isFailed: false }
  const first = { amount: 50_00, number: 0, kind: 'first' as const, acquirer, lines: [settled], refunds: [] }
  fc.assert(
    fc.property(items, (all) => {
      const story = storyOf([first, ...all], true, false)
      const found = groupBy(judgeStory(story, DAYS, TODAY).found, ({ utr }) => utr ?? '')
      for (const utr of ['P0', ...all.map((_, index) => `P${index + 1}`)]) {
        expect(owedBy(found.get(utr)), utr).toBe(balanceOf(story, utr))
      }
    }),
    { numRuns: runs(20_000, 300) },
  )
})

it('the discrepancies of payouts by totals add up to payments less settlements and refunds', () => {
  fc.assert(
    fc.property(items, fc.boolean(), (all, haveAcquirer) => {
      const story = storyOf(all, false, haveAcquirer)
      expect(owedBy(judgeStory(story, DAYS, TODAY).found)).toBe(balanceOf(story))
    }),
    { numRuns: runs(20_000, 300) },
  )
})
