import { beforeAll, describe, expect, it } from 'vitest'
import { openDifferences } from '../../src/books/reconciliation/open-differences.ts'
import { enterResolution } from '../../src/books/reconciliation/resolutions.ts'
import type { Database } from '../../src/platform/db/pool.ts'
import { createTestDatabase } from '../support/database.ts'
import { isGenerated } from '../support/generated.ts'
import { type Finding, findingsOf } from './findings.ts'
import { dayAfter, istMoment } from './months.ts'
import {
  type Book,
  carriedForward,
  type Difference,
  isKnown,
  LAST_WORD,
  MONTHS,
  owedAsItShould,
  type Planted,
  plantFaults,
  QUARTER,
  storePlanted,
} from './planted-faults.ts'

type Days = { from: string; to: string }
type Found<Type extends Finding['type']> = Extract<Finding, { type: Type }>

/** Days at whose end a report is made: amid late holidays, before a file that comes late, and the last of the quarter. */
const BETWEEN = ['2026-04-28', '2026-05-14', '2026-06-30']
if (isGenerated()) {
  BETWEEN.push('2026-04-12', '2026-04-24', '2026-04-27', '2026-04-30', '2026-05-09', '2026-05-16', '2026-05-29')
  BETWEEN.push('2026-06-13', '2026-06-16', '2026-06-18', '2026-07-06')
}
/** After everything is known, and after every exception has come to an end. */
const AT_LAST = '2026-07-27'

let db: Database
let planted: Planted
/** Reports of some days as they were made at the end of others, by the day on which they were made. */
const made = new Map<string, Record<string, unknown>[]>()
const utrs = new Map<string, string>()
const importedOn = new Map<string, string>()

beforeAll(async () => {
  db = (await createTestDatabase()).db
  const seed = isGenerated() ? Date.now() % 100_000 : 3
  if (isGenerated()) console.log(`the planted faults of seed ${seed}`)
  planted = plantFaults({ ...(isGenerated() ? { sets: 2, perDay: 24 } : { sets: 1, perDay: 6 }), seed })
  await storePlanted(db, planted, async (day) => {
    if (BETWEEN.includes(day)) made.set(day, await reportsAsOf(day))
  })
  await db.query('vacuum analyze')
}, 900_000)

/** What is known of names that the database gives: they are those of UTRs and days in the planted causes. */
async function readNames(): Promise<void> {
  const { rows } = await db.query<{ id: string; utr: string }>(
    `select exception_id as id, utr from payment_exceptions
      union all
     select import_id::text, to_char(imported_at at time zone interval '330 minutes', 'YYYY-MM-DD') from settlement_imports`,
  )
  for (const { id, utr } of rows) (/^\d{4}-/.test(utr) ? importedOn : utrs).set(id, utr)
}
const withNames = (cause: string) =>
  cause
    .replace(/\bexception ([0-9a-f]{12})\b/g, (_, id) => `exception of ${utrs.get(id)}`)
    .replace(/\bby import (\d+)\b/g, (_, id) => `by import of ${importedOn.get(id)}`)

async function find(days: Days, asOf: string): Promise<Finding[]> {
  const findings: Finding[] = []
  for (const one of await findingsOf(db, { ...days, now: istMoment(asOf, '23:59:59') })) findings.push(one)
  return findings
}

const spelt = ({
  day,
  kind,
  orderId,
  utr,
  settlementUtr,
  cause,
  ...one
}: Omit<Difference, 'mid' | 'from' | 'until' | 'resolvedFrom'>) =>
  [
    ...[day, kind, orderId, utr, settlementUtr, `paid ${one.paid}`, `settled ${one.settled}`, `owed ${one.owed}`],
    cause,
  ].join(' | ')

/** What the report of these days says as of a day: of each merchant its differences, its exceptions and each day's figures. */
async function reportOf(days: Days, asOf: string) {
  const findings = await find(days, asOf)
  await readNames()
  const of = <Type extends Finding['type']>(type: Type, mid: string) =>
    findings.filter((one): one is Found<Type> => one.type === type && (one as { mid?: string }).mid === mid)
  const numberOf = (sum: number | null) => (sum === null ? null : Number(sum))
  return Object.fromEntries(
    [...planted.books.map(({ mid }) => mid), ''].map((mid) => [
      mid,
      {
        differences: of('difference', mid)
          .map(({ paid, settled, owed, cause, resolution, ...one }) => {
            const amounts = { paid: numberOf(paid), settled: numberOf(settled), owed: Number(owed) }
            return `${spelt({ ...one, ...amounts, cause: withNames(cause) })}${resolution === null ? '' : ' | resolved'}`
          })
          .sort(),
        exceptions: of('exception', mid)
          .map(({ kind, orderId, utr, amount }) => [kind, orderId, utr, amount].join(' | '))
          .sort(),
        days: of('day', mid).map(({ day, paid, gross, refunded, fee, tax, net, resolved, carried, ...one }) =>
          [
            ...[day, `payments ${one.paidCount} ${paid}`, `settled ${one.settledCount} ${gross}`],
            ...[`refunded ${refunded}`, `fee ${fee}`, `tax ${tax}`, `net ${net}`, `resolved ${resolved}`],
            ...[`differences ${one.differences}`, `carried ${carried}`],
          ].join(', '),
        ),
        carriedForward: String(of('total', mid)[0]?.sums.carried ?? 0),
      },
    ]),
  )
}

/** The same by the planted ledger. */
function reportOfPlanted({ from, to }: Days, asOf: string) {
  const exceptions = planted.books.flatMap((book) => book.exceptions)
  const exceptionsOf = (mid: string) =>
    exceptions
      .filter((one) => one.mid === mid && one.receivedOn <= asOf && one.resolvedOn > asOf)
      .filter(({ receivedOn, madeOn }) => [receivedOn, madeOn].some((day) => day >= from && day <= to))
      .map(({ kind, orderId, utr, amount }) => [kind, orderId, utr, amount].join(' | '))
      .sort()
  const books = planted.books.map((book): [string, unknown] => {
    const differences = book.differences.filter((one) => one.day >= from && one.day <= to && isKnown(one, asOf))
    const movements = book.movements.filter((one) => one.day >= from && one.day <= to && isKnown(one, asOf))
    const days = [...new Set([...differences, ...movements].map(({ day }) => day))].sort()
    return [
      book.mid,
      {
        differences: differences.map((one) => `${spelt(one)}${one.resolvedFrom <= asOf ? ' | resolved' : ''}`).sort(),
        exceptions: exceptionsOf(book.mid),
        days: days.map((day) => dayOfPlanted(book, day, asOf)),
        carriedForward: String(carriedForward(book, to, asOf)),
      },
    ]
  })
  return Object.fromEntries([
    ...books,
    ['', { differences: [], exceptions: exceptionsOf(''), days: [], carriedForward: '0' }],
  ])
}

function dayOfPlanted(book: Book, day: string, asOf: string): string {
  const movements = book.movements.filter((one) => one.day === day && isKnown(one, asOf))
  const of = (what: string) => movements.filter((one) => one.what === what)
  const sumOf = (what: string, name: 'gross' | 'fee' | 'tax') => of(what).reduce((sum, one) => sum + one[name], 0)
  const [gross, fee, tax] = (['gross', 'fee', 'tax'] as const).map((name) => sumOf('settled', name)) as [
    number,
    number,
    number,
  ]
  const differences = book.differences.filter((one) => one.day === day && isKnown(one, asOf))
  const resolved = differences.filter(({ resolvedFrom }) => resolvedFrom <= asOf)
  return [
    ...[day, `payments ${of('paid').length} ${sumOf('paid', 'gross')}`],
    ...[`settled ${of('settled').length} ${gross}`],
    ...[`refunded ${sumOf('refunded', 'gross')}`, `fee ${fee}`, `tax ${tax}`, `net ${gross - fee - tax}`],
    ...[`resolved ${0 - resolved.reduce((sum, { owed }) => sum + owed, 0)}`],
    ...[`differences ${differences.length - resolved.length}`, `carried ${carriedForward(book, day, asOf)}`],
  ].join(', ')
}

const begunBy = (asOf: string) => MONTHS.filter(({ from }) => from <= asOf)
const reportsAsOf = async (asOf: string) => {
  const reports: Record<string, unknown>[] = []
  for (const days of begunBy(asOf)) reports.push(await reportOf(days, asOf))
  return reports
}
const reportsOfPlanted = (asOf: string) => begunBy(asOf).map((days) => reportOfPlanted(days, asOf))

it('the planted ledger adds up: what is carried forward without its differences is what is not due yet', () => {
  for (const book of planted.books) {
    for (const { to } of MONTHS) {
      expect(carriedForward(book, to, AT_LAST, true), `${book.mid} ${to}`).toBe(owedAsItShould(book, to))
    }
    expect(owedAsItShould(book, MONTHS[3].to), book.mid).toBe(0)
  }
  for (const [plant, times] of planted.plants) expect(times, plant).toBeGreaterThan(0)
})

describe('the reports of a quarter with planted faults', () => {
  it.each(BETWEEN)('the reports that were made on %s say what the planted ledger says', (asOf) => {
    expect(made.get(asOf)).toEqual(reportsOfPlanted(asOf))
  })

  it.each(BETWEEN)('the reports as of %s are those that were made then', async (asOf) => {
    expect(await reportsAsOf(asOf)).toEqual(reportsOfPlanted(asOf))
  })

  it.each([dayAfter(LAST_WORD, -1), AT_LAST])(
    'the reports as of %s name every planted difference with its cause and no other',
    async (asOf) => {
      expect(await reportsAsOf(asOf)).toEqual(reportsOfPlanted(asOf))
    },
  )

  it('every difference is open among all until it comes to an end, as in the report of its month', async () => {
    const open: Record<string, string[]> = {}
    for await (const { mid, id } of openDifferences(db, { to: MONTHS[3].to, now: istMoment(AT_LAST, '23:59:59') })) {
      open[mid] = [...(open[mid] ?? []), id]
    }
    for (const { mid, differences } of planted.books) {
      const expected = differences.filter((one) => isKnown(one, AT_LAST) && one.resolvedFrom > AT_LAST)
      expect(open[mid], mid).toHaveLength(expected.length)
    }
  })

  it('every month balances once all faults are resolved, and only what is not due yet is carried forward', async () => {
    const now = istMoment(AT_LAST, '12:00:00')
    const whole = { from: QUARTER.from, to: MONTHS[3].to }
    const differences = (await find(whole, AT_LAST)).filter((one) => one.type === 'difference')
    for (const one of differences) {
      if (one.resolution !== null) continue
      expect(await enterResolution(db, one, { reason: 'looked into', by: 'asha', now })).toBe(true)
    }
    let brought = new Map<string, number>()
    for (const days of MONTHS) {
      const findings = await find(days, AT_LAST)
      expect(findings.at(-1), days.from).toMatchObject({ type: 'end', balances: true })
      const totals = findings.filter((one) => one.type === 'total')
      for (const book of planted.books) {
        const total = totals.find(({ mid }) => mid === book.mid)
        expect(total?.sums.carried, `${book.mid} ${days.to}`).toBe(owedAsItShould(book, days.to))
        expect(total?.sums.brought, `${book.mid} ${days.from}`).toBe(brought.get(book.mid) ?? 0)
      }
      brought = new Map(totals.map(({ mid, sums }) => [mid, sums.carried]))
    }
  })
})
