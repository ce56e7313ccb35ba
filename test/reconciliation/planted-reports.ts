import type { Days } from '../../src/books/ledger/bank-days.ts'
import type { Discrepancy } from '../../src/books/ledger/discrepancies.ts'
import { addSums, carriedBy, noSums, type Sums } from '../../src/books/ledger/sums.ts'
import type { Difference, Planted } from './plants.ts'
import { ALWAYS, isKnownAt } from './story.ts'

/** A merchant's report, computed by the judge or expected from the injected discrepancies, with the figures of each day. */
type Report = { discrepancies: object[]; days: object[]; carried: number }

type Found = {
  found: readonly Omit<Discrepancy, 'id' | 'mid' | 'exceptionId' | 'entries'>[]
  byDay: ReadonlyMap<string, Sums>
  brought: number
}

export function reportOf({ found, byDay, brought }: Found): Report {
  let carried = brought
  const days = [...byDay]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([day, { awaited: _, ...sums }]) => {
      carried = carriedBy(carried, { awaited: 0, ...sums })
      return { day, ...sums, carried }
    })
  const discrepancies = found.map((one) => {
    const { day, kind, orderId, utr, settlementUtr, paid, settled, owed, cause, resolution } = one
    const isResolved = resolution !== null
    return {
      day,
      kind,
      orderId,
      utr,
      settlementUtr,
      paid,
      settled,
      owed,
      isResolved,
      cause: cause.replace(/by import (\d{4})(\d\d)/g, 'by import of $1-$2-'),
    }
  })
  return { discrepancies: discrepancies.sort(byText), days, carried }
}

const byText = (a: object, b: object) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)

/** Returns the expected report of these days as known at the end of `today`. */
export function expectedReport({ story, differences }: Planted, { from, to }: Days, today: string): Report {
  const moved = sumsByDay({ story, differences }, today)
  const found = differences
    .filter((one) => isKnownAt(one, today) && one.day >= from && one.day <= to)
    .map((one) => ({
      ...one,
      kind: one.kind as Discrepancy['kind'],
      owed: owedBy(one),
      resolution: one.resolvedFrom <= today ? 'seen to' : null,
    }))
  const before = noSums()
  for (const [day, sums] of moved) if (day < from) addSums(before, sums)
  const byDay = new Map([...moved].filter(([day]) => day >= from && day <= to))
  return reportOf({ found, byDay, brought: carriedBy(0, before) })
}

const owedBy = ({ kind, paid, settled }: Difference) =>
  (kind === 'duplicate settlement' ? 0 : (paid ?? 0)) - (settled ?? 0)

function sumsByDay({ story, differences }: Pick<Planted, 'story' | 'differences'>, today: string): Map<string, Sums> {
  const byDay = new Map<string, Sums>()
  const add = (day: string, more: Partial<Sums>) => {
    const sums = byDay.get(day) ?? noSums()
    byDay.set(day, sums)
    for (const [name, amount] of Object.entries(more)) sums[name as keyof Sums] += amount
  }
  const isKnown = (one: Parameters<typeof isKnownAt>[0]) => isKnownAt(one, today)
  for (const { day, amount, kind } of story.payments.filter(isKnown)) {
    add(day, kind === 'second' ? { duplicates: amount } : { paid: amount, paidCount: 1 })
  }
  for (const { day, gross, fee = 0, tax = 0, failedOn = ALWAYS } of story.lines.filter(isKnown)) {
    if (failedOn > today) add(day, { gross, fee, tax, net: gross - fee - tax, settledCount: 1 })
  }
  for (const { day, amount } of story.refunds.filter(isKnown)) add(day, { refunded: amount })
  for (const one of differences.filter(isKnown)) {
    const resolved = -owedBy(one)
    if (one.resolvedFrom > today) add(one.day, { differences: 1 })
    else add(one.day, { resolved, resolvedPlus: Math.max(0, resolved) })
  }
  return byDay
}
