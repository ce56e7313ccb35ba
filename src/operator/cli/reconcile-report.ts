import { pipeline } from 'node:stream'
import { stringify } from 'csv-stringify'
import type { Days } from '../../books/ledger/bank-days.ts'
import type { Discrepancy } from '../../books/ledger/discrepancies.ts'
import type { Unlisted } from '../../books/reconciliation/book.ts'
import type { LedgerChange, MonthChange } from '../../books/reconciliation/closed-months.ts'
import type { WithMerchantOrderId } from '../../books/reconciliation/merchant-order-ids.ts'
import type { OpenException } from '../../books/reconciliation/read-open.ts'
import { type End, isEnd, type MerchantBook } from '../../books/reconciliation/reconcile.ts'
import { type Balance, formatSums, type Sums } from '../../books/reconciliation/sums.ts'
import { groupRupees, type Paise, toDecimalText } from '../../platform/money.ts'
import { toIstDay, toIstTime } from '../../platform/time.ts'
import { balanceText } from '../texts.ts'
import { forPeople, table, toOneLine, toRupees } from './output.ts'

type Books = AsyncIterable<MerchantBook | End>

/** The report as text: each merchant's discrepancies, then its days; the last line says whether the books balance. */
export async function* toText(books: Books, period: Days): AsyncGenerator<string> {
  const total = (sums: Sums & Balance) => ({ day: 'total', ...cells(sums) })
  let merchants = 0
  for await (const book of books) {
    if (isEnd(book)) {
      if (book.changed.length > 0)
        yield `all merchants since the month was closed: ${formatFigures({ figures: book.changed })}\n`
      if (merchants > 1) yield `all merchants\n${table(COLUMNS, [total(book.total)], '')}\n\n`
      yield `${formatEnd(book, period)}\n`
      continue
    }
    merchants += 1
    yield book.mid === '' ? 'orders that nobody knows\n' : `${book.mid}, paid out ${FORMS[book.form]}\n`
    for (const one of book.discrepancies) yield line(formatDiscrepancy(one))
    for (const one of book.unlisted) yield line(formatUnlisted(one))
    for (const one of book.exceptions) yield line(formatException(one))
    if (book.changed) {
      yield line(
        `closed by ${book.changed.closedBy} at ${toIstTime(book.changed.closedAt)}; since then: ${formatFigures(book.changed)}`,
      )
      yield* changeLines(book.changed)
    }
    const days = book.days.map((day) => ({ ...cells(day), day: day.day }))
    yield book.mid === '' ? '\n' : `${table(COLUMNS, [...days, total(book.total)], '')}\n\n`
  }
}

/** How the rows of the bank speak of payments, in the words of finance. */
const FORMS = {
  'by payment': 'payment by payment',
  'by sums': 'in daily totals',
  'by payment and by sums': 'payment by payment and in daily totals',
}

/** An indented line of the report. The digits of rupee amounts are grouped, also inside free text such as a reason. */
export const line = (text: string) => `  ${toOneLine(groupRupees(text))}\n`

/** Each line adds up: brought forward + paid + duplicates - settled - refunded + both resolved = carried forward. */
const COLUMNS =
  'day, brought forward, paid, duplicates, settled, refunded, resolved +, resolved -, carried forward, fee, tax, net, payments, settlements, awaited, differences'

const cells = (sums: Sums & Balance) => {
  const { broughtForward, carriedForward, resolvedPlus, resolvedMinus, ...rest } = forPeople(formatSums(sums))
  const resolved = { 'resolved +': resolvedPlus, 'resolved -': resolvedMinus }
  return { ...rest, ...resolved, 'brought forward': broughtForward, 'carried forward': carriedForward }
}

/** `019a…, the shop's 1001`; the shop may have given it no number of its own. */
function formatOrder({ orderId, merchantOrderId }: WithMerchantOrderId<{ orderId: string | null }>): string | null {
  const isOwn = merchantOrderId !== null && merchantOrderId !== orderId
  return isOwn ? `${orderId}, the shop's ${merchantOrderId}` : orderId || null
}

/** `2026-11-03 duplicate settlement 261103…: order 019a…, the shop's 1001, UTR 5235…, settlement N12, paid 200.00, settled 200.00: settlement N11 has paid it before` */
export function formatDiscrepancy(discrepancy: WithMerchantOrderId<Discrepancy>): string {
  const { id, day, kind, utr, settlementUtr, paid, settled } = discrepancy
  const facts = {
    order: formatOrder(discrepancy),
    UTR: utr,
    settlement: settlementUtr === utr ? null : settlementUtr,
    paid: orNull(paid),
    settled: orNull(settled),
  }
  const known = Object.entries(facts).flatMap(([name, fact]) => (fact === null ? [] : `${name} ${fact}`))
  return [`${day} ${kind} ${id}`, ...(known.length > 0 ? [known.join(', ')] : []), causeOf(discrepancy)].join(': ')
}

const causeOf = ({ cause, resolution }: Pick<Discrepancy, 'cause' | 'resolution'>) =>
  resolution === null ? cause : `${cause}; resolved: ${resolution}`

/** `399,000 more missing settlement, together 79800000.00: is a settlement file missing?` */
export const formatUnlisted = ({ kind, count, owed }: Unlisted) =>
  `${count} more ${kind}, together ${toDecimalText(owed)}: is a settlement file missing?`

export const wireUnlisted = ({ owed, ...unlisted }: Unlisted) => ({ ...unlisted, owed: toDecimalText(owed) })

/** `open exception 5f0c…: double payment, order 019a…, UTR 5235…, 200.00, received 2026-11-03 09:30:00 IST` */
function formatException(exception: WithMerchantOrderId<OpenException>): string {
  const { exceptionId, kind, utr, amount, receivedAt } = exception
  const order = formatOrder(exception)
  const facts = [kind, order && `order ${order}`, utr && `UTR ${utr}`, orNull(amount)].filter(Boolean)
  return `open exception ${exceptionId}: ${facts.join(', ')}, received ${toIstTime(receivedAt)}`
}

/** `settled 100.00 → 200.00`; or why no figure differs. */
export function formatFigures({
  figures,
  rows = [],
}: Pick<MonthChange, 'figures'> & { rows?: MonthChange['rows'] }): string {
  const changed =
    figures.map(({ figure, was, is }) => `${figure} ${was} → ${is}`).join(', ') || 'every figure is as it was'
  return rows.length === 0
    ? `${changed}; no row was recorded or replaced: payments became due, or bank holidays changed`
    : changed
}

/** A line for each row of the ledger: `2026-12-02 10:00:00 IST recorded: settlement N12 of 2026-11-03, -200.00, import 14` */
export const changeLines = ({ rows }: Pick<MonthChange, 'rows'>): string[] =>
  rows.map(({ changedAt, change, kind, reference, day, orderId, amount, importId, exceptionId }) => {
    const sources = [
      ...[orderId && `order ${orderId}`, toDecimalText(amount)],
      ...[importId !== null && `import ${importId}`, exceptionId && `exception ${exceptionId}`],
    ].filter(Boolean)
    return line(`  ${toIstTime(changedAt)} ${change}: ${kind} ${reference} of ${day}, ${sources.join(', ')}`)
  })

const wireChange = ({ amount, ...row }: LedgerChange) => ({ ...row, amount: toDecimalText(amount) })

export const wireChanges = <T extends Pick<MonthChange, 'rows'>>(change: T) => ({
  ...change,
  rows: change.rows.map(wireChange),
})

/** A closed month for scripts, with what has changed. */
export const wireMonth = <T extends { changed: Pick<MonthChange, 'rows'>[] }>(month: T) => ({
  ...month,
  changed: month.changed.map(wireChanges),
})

function formatEnd({ total, newestImport }: End, { from, to }: Days): string {
  const imported = newestImport
    ? `newest settlement file: import ${newestImport.import} of ${toIstTime(newestImport.at)}`
    : 'no settlement file was imported yet'
  return `${imported}\n${balanceText({ from, to, ...total, carriedForward: total.carried })}`
}

/**
 * The report as one JSON document `{from, to, merchants, total, balances, changed, newestImport}`. A merchant has `{mid, file,
 * differences, unlisted, exceptions, days, changed, total}`; `changed` is null unless the days are a closed month.
 * Amounts are decimal text in rupees.
 */
export async function* toJson(books: Books, { from, to }: Days): AsyncGenerator<string> {
  let separator = ''
  yield `{"from":"${from}","to":"${to}","merchants":[`
  for await (const book of books) {
    if (isEnd(book)) {
      const { total, ...end } = book
      yield `],${JSON.stringify({ total: formatSums(total), ...end }).slice(1)}\n`
    } else yield `${separator}${JSON.stringify(wireBook(book))}`
    separator = ','
  }
}

const wireBook = ({ mid, form, discrepancies, unlisted, exceptions, days, changed, total }: MerchantBook) => ({
  ...{ mid, file: form, differences: discrepancies.map(({ mid, ...one }) => wireDifference(one)) },
  unlisted: unlisted.map(wireUnlisted),
  exceptions: exceptions.map(({ mid, amount, ...one }) => ({ ...one, amount: orNull(amount) })),
  days: days.map((day) => ({ day: day.day, ...formatSums(day) })),
  ...{ changed: changed && wireChanges(changed), total: formatSums(total) },
})

const orNull = (paise: Paise | null) => (paise === null ? null : toDecimalText(paise))

export const wireDifference = <T extends Pick<Discrepancy, 'paid' | 'settled' | 'owed'>>(difference: T) => ({
  ...difference,
  paid: orNull(difference.paid),
  settled: orNull(difference.settled),
  owed: toDecimalText(difference.owed),
})

/**
 * The report as CSV: a line for each discrepancy, exception, day and total, told apart by `type`; the last line is of type `end`, and
 * its `kind` says whether the books balance.
 */
export function toCsv(books: Books, { from, to }: Days): AsyncIterable<string> {
  return spreadsheet(CSV_COLUMNS, csvRows(books, `${from} to ${to}`))
}

/** A CSV file of these columns, with a header in snake_case. `forExcel` says whether ids of digits are written as formulas. */
export function spreadsheet(
  columns: readonly string[],
  rows: AsyncIterable<Record<string, unknown>> | Iterable<Record<string, unknown>>,
  forExcel = true,
): AsyncIterable<string> {
  const csv = stringify({
    header: true,
    columns: columns.map((key) => ({
      key,
      header: key.replace(/[A-Z]/g, (capital) => `_${capital.toLowerCase()}`),
    })),
    // Free text, such as a resolution, must not be a formula for a spreadsheet.
    escape_formulas: true,
    cast: {
      number: (value, { column }) => String(toRupees(String(column), value)),
      date: toIstTime,
      string: forExcel ? keepDigits : keepSign,
    },
  })
  // An error of the pipeline reaches the reader of `csv`, so it is not handled here.
  pipeline(rows, csv, () => undefined)
  return csv.setEncoding('utf8')
}

/**
 * Ids of digits are written as formulas: Excel would show 523504870405 as 5.23505E+11, and 12345678e901 as a number. A
 * negative amount is not escaped: as text it would be in no sum.
 */
const keepDigits = (field: string, { column }: { column?: PropertyKey }) => {
  const isName = NAMES.some((name) => name === column)
  if (isName && /^[0-9]+(E[0-9]+)?$/i.test(field)) return { value: `="${field}"`, escape_formulas: false }
  return keepSign(field)
}

const keepSign = (field: string) =>
  /^-[0-9]+\.[0-9]{2}$/.test(field) ? { value: field, escape_formulas: false } : field

const NAMES = [
  'utr',
  'settlementUtr',
  'differenceId',
  'exceptionId',
  'orderId',
  'bankReference',
  'merchantOrderId',
  'reference',
  'voucher',
] as const

const CSV_COLUMNS = (
  'type, mid, day, kind, differenceId, orderId, merchantOrderId, utr, settlementUtr, exceptionId, payments, broughtForward, paid, ' +
  'duplicates, settlements, settled, fee, tax, net, refunded, resolved, resolvedPlus, resolvedMinus, carriedForward, ' +
  'awaited, differences, openExceptions, owed, cause'
).split(', ')

async function* csvRows(books: Books, days: string): AsyncGenerator<Record<string, unknown>> {
  for await (const book of books) {
    if (isEnd(book)) {
      yield { type: 'end', day: days, kind: book.balances ? 'balances' : 'does not balance', ...formatSums(book.total) }
      continue
    }
    const { mid, changed } = book
    for (const one of book.discrepancies)
      yield { type: 'difference', ...one, differenceId: one.id, cause: causeOf(one) }
    for (const { kind, owed, ...one } of book.unlisted)
      yield { type: 'unlisted', mid, day: days, kind, owed, cause: formatUnlisted({ kind, owed, ...one }) }
    for (const one of book.exceptions)
      yield { type: 'exception', ...one, day: toIstDay(one.receivedAt), paid: one.amount }
    if (changed) yield { type: 'changed', mid, day: days, cause: formatFigures(changed) }
    for (const day of book.days) yield { type: 'day', mid, ...day, ...formatSums(day) }
    yield { type: 'total', mid, day: days, ...formatSums(book.total) }
  }
}
