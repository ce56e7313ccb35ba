import fc from 'fast-check'
import { expect, it } from 'vitest'
import { addDays, type Days } from '../../src/books/ledger/bank-days.ts'
import { judge, undeductedOf } from '../../src/books/ledger/judge.ts'
import { groupBy } from '../../src/books/ledger/match-deductions.ts'
import { addSums, carriedBy, noSums } from '../../src/books/ledger/sums.ts'
import { runs } from '../support/generated.ts'
import { istMoment } from './rows.ts'
import { bankDaysAt, judgeKnown, judgeStory, knownAt, type Line, type Story } from './story.ts'

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
        ...refunds.map(({ paise, number, isFailed }, count) => {
          const on = addDays(day, number)
          const returned = isFailed ? { returnedOn: addDays(on, number % 4) } : {}
          const sent = { refundId: `R${index}N${count}`, day: on, at: istMoment(on, '13:00:00'), reference: '' }
          return { ...payment, ...sent, ...returned, amount: paise }
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
  const standing = refunds.filter(({ returnedOn }) => returnedOn === undefined)
  return sum(payments) - sum(standing) - sum(lines.map((line) => ({ ...line, amount: line.gross })))
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

const mixedLine = fc.record({
  ...{ paise: fc.oneof(amount, fc.constantFrom(-200_00, -100_00, -50_00, 5_00, 300_00, 350_00)), number: fc.nat(12) },
  ...{ isNamed: fc.boolean(), isFailed: fc.integer({ min: 0, max: 5 }).map((number) => number === 0) },
  acquirer: fc.constantFrom(null, 'direct', 'setu', 'cashfree'),
})
const acquirers = fc.constantFrom('direct', 'setu', 'cashfree')
/** Generates a payment or none, lines that name it or are part of totals, its refunds, and whether the bank reported its failure. */
const mixedItem = fc.record({
  ...{ amount, number: fc.nat(9), kind: fc.constantFrom('first', 'first', 'second', undefined), acquirer: acquirers },
  ...{
    lines: fc.array(mixedLine, { maxLength: 3 }),
    hasFailed: fc.integer({ min: 0, max: 7 }).map((one) => one === 0),
  },
  refunds: fc.array(
    fc.record({
      ...{ paise: fc.constantFrom(50_00, 100_00, 200_00), number: fc.nat(9) },
      returnedAfter: fc.constantFrom(undefined, undefined, undefined, undefined, 0, 1, 4),
    }),
    { maxLength: 2 },
  ),
})
const mixedItems = fc.array(mixedItem, { minLength: 1, maxLength: 7 })

/** Days after the first day when the payouts of all returns are judged. */
const ALL_JUDGED = 26
const withoutReturns = (one: Mixed): Mixed => ({
  ...one,
  refunds: one.refunds.map((refund) => ({ ...refund, returnedAfter: undefined })),
})
type Mixed = typeof mixedItem extends fc.Arbitrary<infer T> ? T : never

/** A story of mixed files, in which each fact becomes known on the day after it. Lines are dated on bank days. */
function mixedStoryOf(all: readonly Mixed[]): Story {
  const story: Story = { mid: 'M1', payments: [], lines: [], refunds: [], exceptions: [] }
  const { bankDayFrom } = bankDaysAt(TODAY)
  for (const [index, { amount, number, kind, acquirer, lines, refunds, hasFailed }] of all.entries()) {
    const [utr, orderId, day] = [`P${index}`, `O${index}`, addDays(FIRST_DAY, number)]
    const at = istMoment(day, '12:00:00')
    const payment = { utr, orderId, amount, day, at, madeAt: at, acquirer, from: addDays(day, 1) }
    if (kind !== undefined) story.payments.push({ ...payment, kind })
    if (kind === 'first' && hasFailed) {
      const reported = { receivedAt: at, resolvedOn: addDays(day, 2), createdOn: day }
      story.exceptions.push({ ...payment, ...reported, kind: 'failure after success' })
    }
    for (const [count, { paise, number, returnedAfter }] of kind === undefined ? [] : refunds.entries()) {
      const on = addDays(day, number)
      const returned = returnedAfter === undefined ? {} : { returnedOn: addDays(on, returnedAfter) }
      const sent = { refundId: `R${index}N${count}`, at: istMoment(on, '13:00:00'), reference: '' }
      story.refunds.push({ ...payment, ...sent, ...returned, day: on, from: addDays(on, 1), amount: paise })
    }
    for (const [count, { paise, number, isNamed, isFailed, acquirer }] of lines.entries()) {
      const on = bankDayFrom(addDays(FIRST_DAY, number))
      const line: Line = { utr: `N${index}L${count}`, day: on, from: addDays(on, 1), gross: paise, acquirer }
      story.lines.push({
        ...line,
        ...(isNamed && { paymentUtr: utr }),
        ...(isFailed && { failedOn: addDays(on, 3) }),
      })
    }
  }
  return story
}

const judgeMixed = (story: Story, days: Days, today: string) => {
  const facts = knownAt(story, today).factsOf(days)
  return { facts, ...judge(facts), ...judgeStory(story, days, today) }
}

it('mixed files: carried forward is what open discrepancies owe, and payments less refunds whose payout is not judged yet', () => {
  fc.assert(
    fc.property(mixedItems, fc.integer({ min: 1, max: 30 }), (all, after) => {
      // A refund that was not deducted cancels its return, which may be a pending return of a refund that is judged.
      const story = mixedStoryOf(after < ALL_JUDGED ? all.map(withoutReturns) : all)
      const today = addDays(FIRST_DAY, after)
      const { facts, found, byDay, isMissed } = judgeMixed(story, { ...DAYS, to: addDays(today, -1) }, today)
      const total = noSums()
      for (const sums of byDay.values()) addSums(total, sums)
      const { nextBankDay } = facts.bankDays
      const isPending = ({ day }: { day: string }) => nextBankDay(day) >= today
      const unpaid = facts.paid.filter(({ day, settledDay }) => settledDay === null && isPending({ day }))
      const refunds = undeductedOf(facts).filter(({ day, paidOn, acquirer, settled }) => {
        return isPending({ day }) && !(settled === null && isMissed({ day: paidOn, acquirer }))
      })
      const pending =
        unpaid.reduce((sum, { paid }) => sum + paid, 0) - refunds.reduce((sum, { amount }) => sum + amount, 0)
      expect(carriedBy(0, total)).toBe(owedBy(found.filter(({ resolution }) => resolution === null)) + pending)
    }),
    { numRuns: runs(20_000, 300) },
  )
})

it('mixed files: the reports of the days and weeks of a month list the same discrepancies as the report of the month', {
  timeout: 900_000,
}, () => {
  const last = addDays(FIRST_DAY, 27)
  const periods = [1, 7].map((length) =>
    Array.from({ length: 28 / length }, (_, index) => {
      const from = addDays(FIRST_DAY, index * length)
      return { from, to: addDays(from, length - 1) }
    }),
  )
  fc.assert(
    fc.property(mixedItems, fc.integer({ min: 1, max: 40 }), (all, after) => {
      const story = mixedStoryOf(all)
      const today = addDays(FIRST_DAY, after)
      const known = knownAt(story, today)
      const idsOf = (days: Days) =>
        judgeKnown(story, known, days)
          .map(({ id, owed }) => `${id} ${owed}`)
          .sort()
      const whole = idsOf({ from: FIRST_DAY, to: last })
      for (const parts of periods) expect(parts.flatMap(idsOf).sort()).toEqual(whole)
    }),
    { numRuns: runs(20_000, 60) },
  )
})
