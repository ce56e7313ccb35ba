import { type ClosedItems, readClosedBalances, readClosedItems, storeClosedItems } from '../../books/closing/close.ts'
import {
  ALL,
  type ClosedMonth,
  closeMonth,
  daysOfMonth,
  type Figures,
  figuresOf,
  findClosedMonth,
  isEmptyMonth,
  type MonthChange,
  nextMonth,
  readCloses,
  sha256Of,
} from '../../books/closing/closed-months.ts'
import type { Days } from '../../books/ledger/bank-days.ts'
import { isMerchantError, type MerchantError, merchantErrorText } from '../../books/reading/snapshot.ts'
import { type ArrivedPayout, isOpenPayout, listArrivals } from '../../books/reports/arrivals.ts'
import { changesOfClosedMonths, isEnd, type Requested, reconcile } from '../../books/reports/reconcile.ts'
import type { Database, Queryable } from '../../platform/db/pool.ts'
import { addPaise, counted, type Paise, toPaise } from '../../platform/money.ts'
import { nextDay, startOfDay, toIstTime } from '../../platform/time.ts'
import { errorsText, openPayoutText } from '../texts.ts'
import { timeOfClose } from './barrier.ts'
import { changeInSteps, read } from './command.ts'
import { CommandError, UsageError } from './errors.ts'
import { LAST_MONTH, YES } from './fields.ts'
import { failureOf } from './merchant-errors.ts'
import { changeLine, changesTable, figuresInRupees, figuresText, indented } from './reconcile-report.ts'
import { document, Money, type Output, table } from './result.ts'

export const closeMonthCommands = [
  read('reconcile closed', 'List closed months and what changed since', {
    title: 'Closed months',
    isLong: true,
    async run(_, { db, now }) {
      const months = await changesOfClosedMonths(db, now)
      const data = table('month, closedAt, closedBy, changed, sha256', months, {
        cells: ({ changed, ...month }) => ({ ...month, changed: changed.map(changeText).join('; ') || 'nothing' }),
        links: ({ month }) => ({ month: { name: 'reconcile', flags: { month } } }),
        empty: 'No closed months.',
        json: ({ changed, ...month }) => ({
          ...month,
          changed: changed.map((one) => (isMerchantError(one) ? one : { ...one, rows: changesTable(one.rows) })),
        }),
        line: ({ month, closedAt, closedBy, sha256, changed }) =>
          [
            `${month} was closed by ${closedBy} at ${toIstTime(closedAt)}, sha256 ${sha256}`,
            ...changed.flatMap((one) =>
              isMerchantError(one)
                ? indented(merchantErrorText(one))
                : [indented(`${one.mid}: ${figuresText(one)}`), ...one.rows.map(changeLine)],
            ),
            ...(changed.length === 0 ? [indented('no changes since')] : []),
          ].join('\n'),
      })
      return { data, failure: () => failureOf(months.flatMap(({ changed }) => changed.filter(isMerchantError))) }
    },
  }),

  changeInSteps('reconcile close', 'Close a past month and store its figures', {
    title: 'Close month',
    isLong: true,
    fields: { month: LAST_MONTH, yes: YES },
    asks: ({ yes }, { isTerminal }) => !yes && isTerminal,
    async confirm({ month }, context, isFinal): Promise<Plan> {
      const { db, now } = context
      const days = daysOfMonth(month)
      if (nextDay(startOfDay(days.to)) > now)
        throw new UsageError(`--month must be in the past: ${month} ends on ${days.to}`)
      const before = await findClosedMonth(db, month)
      if (before) return { days, before, shown: figuresTable(before.figures) }
      const newest = (await readCloses(db, { known: new Date() })).at(-1)
      if (newest !== undefined && month !== nextMonth(newest.month)) throw notNext(month, newest.month)
      const closedAt = isFinal ? await timeOfClose(context) : now
      const stored = await readFigures(db, { ...days, now: closedAt })
      const items = await readClosedItems(db, { to: days.to, closedAt })
      if (!Array.isArray(items)) throw notClosed(month, items)
      const isEmpty = await isEmptyMonth(db, month, stored)
      const question = `close ${month}${isEmpty ? `, which ${IS_EMPTY},` : ''} with these figures`
      const figures = { ...figuresOfClose(stored, items), 'SHA-256 of all figures': sha256Of(stored) }
      const warnings = isEmpty ? [`${month} ${IS_EMPTY}`] : []
      return { days, closedAt, stored, items, isEmpty, question, figures, warnings, shown: figuresTable(stored) }
    },
    async run({ month, yes }, { change, db, now, person, isConfirmed }, { days, ...plan }) {
      if (plan.before) return outputOf(db, plan.before, await warnOfPayouts(db, { ...days, now }), false)
      const { closedAt, stored: figures, items, isEmpty } = plan
      if (isEmpty && !yes && !isConfirmed)
        throw new CommandError(`${month} ${IS_EMPTY}: check the month, or add --yes to close it anyway`)
      const openPayouts = await warnOfPayouts(db, { ...days, now: closedAt })
      // Stores after reading, because a transaction that stays open while it reads would block every change that waits
      // for the next close.
      return change(async (client) => {
        const { stored, isNew } = await closeMonth(client, { month, closedAt, closedBy: person, figures })
        if (isNew) await storeClosedItems(client, month, items)
        return outputOf(client, stored, openPayouts, isNew)
      })
    },
  }),
]

/** A change after a close is posted in the next month, so months are closed in order. */
const notNext = (month: string, newest: string) =>
  new CommandError(
    `${month} cannot be closed: close months in order, next ops reconcile close --month ${nextMonth(newest)}`,
  )

const changeText = (one: (Pick<MonthChange, 'figures' | 'rows'> & { mid: string }) | MerchantError) =>
  isMerchantError(one) ? merchantErrorText(one) : `${one.mid}: ${figuresText(one)}`

/** What a close will store, or the close that was made before. */
type Plan = Output & { days: Days } & (
    | { before: ClosedMonth }
    | { closedAt: Date; stored: ClosedMonth['figures']; items: ClosedItems[]; isEmpty: boolean; before?: undefined }
  )

/**
 * Returns the figures of all merchants together, and the two parts of the sum that is carried forward: payments less
 * refunds whose payout is not judged yet, and open discrepancies.
 */
function figuresOfClose(figures: ClosedMonth['figures'], all: readonly ClosedItems[]) {
  const { carriedForward, ...others } = figures[ALL] as Figures
  const items = all.flatMap((one) => one.items).filter(({ item }) => item !== '')
  const open = items.reduce((sum, { balance }) => addPaise(sum, balance), 0)
  return {
    ...{ merchants: Object.keys(figures).length - 1, 'merchants left out': 0, ...figuresInRupees(others) },
    ...figuresInRupees({ carriedForward }),
    'of it not judged yet': new Money(addPaise(toPaise(carriedForward), -open)),
    [`of it ${counted(items.length, 'open discrepancy', 'open discrepancies')}`]: new Money(open),
  }
}

/** Returns the command's output. `isNew` is false if the month was closed before. */
async function outputOf(db: Queryable, stored: ClosedMonth, openPayouts: readonly string[], isNew: boolean) {
  const { month, closedAt, closedBy, sha256, figures } = stored
  const errors = errorsText(figures[ALL] as Figures)
  const warnings = [...(errors ? [`${month} was closed with ${errors}`] : []), ...openPayouts]
  const closed = `${month} ${isNew ? 'closed' : 'was already closed'} by ${closedBy} at ${toIstTime(closedAt)}.`
  const hash = `SHA-256 of these figures: ${sha256}`
  const balances = await readClosedBalances(db, { month })
  const shown = balances.filter(
    ({ mid, account }) => account === 'unknown' || balances.filter((one) => one.mid === mid).length > 1,
  )
  const json = { ...stored, accounts: balancesTable(balances), warnings }
  const data = document(json, figuresTable(figures), balancesTable(shown), `${hash}\n${closed}`)
  return { data, created: { sha256 }, warnings }
}

/** Returns the figures for these days by `mid`. The key `ALL` has the figures of all merchants together. */
async function readFigures(db: Database, days: Requested): Promise<Record<string, Figures>> {
  const figures: Record<string, Figures> = {}
  for await (const book of reconcile(db, days)) {
    if (isMerchantError(book)) throw notClosed(days.from.slice(0, 7), book)
    figures[isEnd(book) ? ALL : book.mid] = figuresOf(book.total)
  }
  return figures
}

const notClosed = (month: string, error: MerchantError) =>
  new CommandError(`${month} cannot be closed: ${merchantErrorText(error)}`)

/** Largest number of payouts that a warning lists. Further payouts are only counted. */
const PAYOUTS_NAMED = 10

/**
 * Returns warnings about open payouts, and about merchants whose payouts cannot be read. Payouts to bank accounts without
 * imported statements are excluded.
 */
async function warnOfPayouts(db: Database, days: Requested): Promise<string[]> {
  const open: (ArrivedPayout | MerchantError)[] = []
  for await (const payout of listArrivals(db, { ...days, ofStatements: true }))
    if (isOpenPayout(payout)) open.push(payout)
  const toText = (one: ArrivedPayout | MerchantError) =>
    isMerchantError(one) ? merchantErrorText(one) : openPayoutText(one)
  const named = open.slice(0, PAYOUTS_NAMED).map(toText)
  const more = open.length - named.length
  return more > 0 ? [...named, `and ${more} more: see ops reconcile payouts --open`] : named
}

const IS_EMPTY = 'has no payments and no imports'

function figuresTable(figures: ClosedMonth['figures']) {
  const columns =
    'merchant, broughtForward, paid, duplicates, settled, refunded, disputed, resolved, carriedForward, fee, tax, net, payments, settlements, differences, openExceptions'
  const rows = Object.entries(figures).map(([mid, { openExceptions = 0, ...sums }]) => {
    return { ...figuresInRupees(sums), openExceptions, merchant: mid === ALL ? 'all' : mid }
  })
  return table(columns, rows)
}

const balancesTable = (balances: readonly { mid: string; account: string; carriedForward: Paise }[]) =>
  table('mid, account, ₹carriedForward', balances, { title: 'By acquirer account' })
