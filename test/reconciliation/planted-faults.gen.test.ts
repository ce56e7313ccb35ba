import fc from 'fast-check'
import { expect, it } from 'vitest'
import { addDays, type Days } from '../../src/books/ledger/bank-days.ts'
import { runs } from '../support/generated.ts'
import { namesOf, plantFaults } from './planted-faults.ts'
import { expectedReport, reportOf } from './planted-reports.ts'
import { FORMS, isUnsettled, lastWord, type Planted } from './plants.ts'
import { ALWAYS, judgeStory } from './story.ts'

/** Checks that the reports of the days before `second`, and from it on, match the injected discrepancies as of `today`. */
function checkReports({ story, ...planted }: Planted, second: string, today: string): void {
  let brought = 0
  for (const days of [
    { from: planted.days.from, to: addDays(second, -1) },
    { from: second, to: lastWord(planted.days) },
  ]) {
    const { byDay, found } = judgeStory(story, days, today)
    const report = reportOf({ found, byDay, brought })
    expect(report, `${story.mid} as of ${today}`).toEqual(expectedReport({ story, ...planted }, days, today))
    brought = report.carried
  }
}

const weeksFrom = (from: string, weeks: number): Days => ({ from, to: addDays(from, 7 * weeks - 1) })

it.each(FORMS.flatMap((form) => namesOf(form).map((name) => ({ form, name }))))(
  'the judge reports an injected discrepancy exactly while the discrepancy exists: $form, $name',
  ({ form, name }) => {
    const from = '2026-05-04'
    const planted = plantFaults({ number: 1, form, days: weeksFrom(from, 2), perDay: 4, plants: new Map([[1, name]]) })
    const changes = planted.differences.flatMap(({ from, until = from, resolvedFrom }) => [from, until, resolvedFrom])
    const days = changes.filter((day) => day < ALWAYS).flatMap((day) => [addDays(day, -1), day])
    for (const today of new Set([...days, ...[4, 8, 12, 24, 50].map((number) => addDays(from, number))])) {
      checkReports(planted, addDays(from, 5), today)
    }
  },
)

it('the judge reports all injected discrepancies and no other discrepancy, for any combination, day and period', () => {
  const plan = fc.record({
    form: fc.constantFrom(...FORMS),
    // Without a file before the late holidays, nothing determines the form of the payouts.
    from: fc.oneof(fc.nat(13), fc.integer({ min: 30, max: 55 })),
    plants: fc.array(fc.tuple(fc.nat(34), fc.nat(99)), { maxLength: 25 }),
    splits: fc.array(fc.tuple(fc.integer({ min: 5, max: 32 }), fc.nat(60)), { minLength: 1, maxLength: 6 }),
  })
  fc.assert(
    fc.property(plan, ({ form, from, plants, splits }) => {
      const names = namesOf(form)
      const days = weeksFrom(addDays('2026-04-01', from), 5)
      const named = plants.map(([slot, number]) => [slot, names[number % names.length] as string] as const)
      const planted = plantFaults({ number: 1, form, days, perDay: 5, plants: new Map(named) })
      for (const [split, today] of splits) {
        // A period that starts on days without a file would compare totals, since its own lines decide the form.
        const first = addDays(days.from, split)
        if (!isUnsettled(first)) checkReports(planted, first, addDays(days.from, today))
      }
    }),
    { numRuns: runs(3_000, 30) },
  )
})
