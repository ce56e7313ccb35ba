import type { LedgerChange, MonthChange } from '../../books/closing/closed-months.ts'
import type { OpenOfMerchant } from '../../books/closing/open-discrepancies.ts'
import { countDays, type Days } from '../../books/ledger/bank-days.ts'
import type { Discrepancy } from '../../books/ledger/discrepancies.ts'
import { type Balance, formatSums, type Sums } from '../../books/ledger/sums.ts'
import type { Unlisted } from '../../books/reading/book.ts'
import type { WithMerchantOrderId } from '../../books/reading/merchant.ts'
import { isMerchantError, type MerchantError, merchantErrorText } from '../../books/reading/snapshot.ts'
import { type End, isEnd, type MerchantBook, type OpenException } from '../../books/reports/reconcile.ts'
import { counted, groupRupees, toDecimalText, toIndianRupees, toPaise } from '../../platform/money.ts'
import { toOneLine } from '../../platform/printable.ts'
import { toIstDay, toIstTime } from '../../platform/time.ts'
import { balanceText } from '../texts.ts'
import { withErrors } from './merchant-errors.ts'
import { type Cell, document, Money, RecordData, rupees, type TableData, table } from './result.ts'

/**
 * Returns the reconciliation report: each merchant's discrepancies and days, followed by a last line with the balance.
 */
export function reportOf(books: AsyncIterable<MerchantBook | MerchantError | End>, period: Days): RecordData {
  let end: End
  let count = 0
  async function* merchants() {
    for await (const book of books) {
      if (isEnd(book)) end = book
      else if (isMerchantError(book)) yield document({ ...book }, merchantErrorText(book))
      else {
        count += 1
        yield merchantData(book)
      }
    }
  }
  async function* rows() {
    const day = `${period.from} to ${period.to}`
    for await (const book of books) {
      if (isMerchantError(book)) yield { type: 'error', mid: book.mid, day, cause: book.error }
      else if (!isEnd(book)) yield* rowsOf(book, day)
      else yield { type: 'end', day, kind: book.balances ? 'balances' : 'does not balance', ...figuresOf(book.total) }
    }
  }
  const ofMerchants = merchants()
  const fields = {
    ...{ ...period, merchants: ofMerchants, total: () => figuresOf(end.total), balances: () => end.balances },
    ...{ changed: () => end.changed, newestImport: () => end.newestImport },
  }
  const parts = [ofMerchants, () => allMerchants(end, count), () => endText(end, period)]
  return new RecordData(fields, parts, table(CSV_COLUMNS, rows(), { cells: (row: Record<string, Cell>) => row }))
}

function merchantData({ mid, form, changed, total, ...book }: MerchantBook): RecordData {
  const columns = 'day, kind, ₹owed, cause, differenceId, orderId, merchantOrderId, utr, settlementUtr, ₹paid, ₹settled'
  const differences = table(columns, book.discrepancies, {
    cells: ({ id, ...one }) => ({ ...one, differenceId: id, cause: causeOf(one) }),
    changes: ({ id }) => [{ difference: id }],
    line: (one) => indented(discrepancyText(one)),
    json: ({ mid, ...one }) => one,
  })
  const exceptions = table('exceptionId, kind, orderId, merchantOrderId, utr, ₹amount, receivedAt', book.exceptions, {
    line: (one) => indented(exceptionText(one)),
    json: ({ mid, ...one }) => one,
  })
  const unlisted = unlistedTable(book.unlisted)
  const days = book.days.map((sums) => ({ day: sums.day, ...figuresOf(sums) }))
  const heading = mid === '' ? 'Unknown orders' : `${mid}, paid out ${FORMS[form]}`
  const since = changed && changesTable(changed.rows)
  const balances = 'account, ₹broughtForward, ₹carriedForward'
  const accounts = table(balances, book.accounts, { title: 'By acquirer account' })
  const isOne = book.accounts.every(({ account }, index) => index === 0 && account !== 'unknown')
  const fields = {
    ...{ mid, file: form, differences, unlisted, exceptions, days, accounts },
    ...{ changed: changed && { ...changed, rows: since }, total: figuresOf(total) },
  }
  const sides = mid === '' ? [] : sidesOf([...days, { day: 'total', ...figuresOf(total) }])
  const parts = [differences, unlisted, exceptions, ...sides, ...(isOne ? [] : [accounts])]
  if (!changed || !since) return document(fields, heading, ...parts)
  const closed = `closed by ${changed.closedBy} at ${toIstTime(changed.closedAt)}; since then: ${figuresText(changed)}`
  return document(fields, `${heading}\n${indented(closed)}`, since, ...parts)
}

function allMerchants({ total, changed }: End, count: number): RecordData {
  const figures =
    changed.length > 0 ? `All merchants, since the month was closed: ${figuresText({ figures: changed })}` : ''
  const all = sidesOf([{ day: 'total', ...figuresOf(total) }], ', all merchants')
  return document({}, figures, ...(count > 1 ? all : []))
}

/** The form in which the bank pays a merchant out, in accounting terms. */
const FORMS = {
  'by payment': 'payment by payment',
  'by sums': 'in daily totals',
  'by payment and by sums': 'payment by payment and in daily totals',
}

/**
 * Formats an indented line of the report. Groups the digits of amounts, including amounts in free text such as a
 * reason.
 */
export const indented = (text: string) => `  ${toOneLine(groupRupees(text))}`

/**
 * Returns the figures of days in two tables, because one table would be wider than a terminal. For each day, brought
 * forward + paid + duplicates - refunded - disputed - settled + both resolved = carried forward.
 */
const sidesOf = (days: readonly FiguresOfDay[], of = ''): TableData[] => [
  table('day, broughtForward, payments, paid, duplicates, refunded, disputed, awaited', days, {
    title: `Customers paid${of}`,
  }),
  table('day, settlements, settled, fee, tax, net, resolvedPlus, resolvedMinus, carriedForward, differences', days, {
    title: `Acquirer settled${of}`,
  }),
]

type FiguresOfDay = { day: string } & ReturnType<typeof figuresOf>

const figuresOf = (sums: Sums & Balance) => figuresInRupees(formatSums(sums))

/** Converts stored figures to cells. A text is an amount, and a number is a count. */
export function figuresInRupees<T extends object>(figures: T) {
  const toCell = (figure: Cell) => (typeof figure === 'string' ? new Money(toPaise(figure)) : figure)
  return Object.fromEntries(Object.entries(figures).map(([name, one]) => [name, toCell(one)])) as Record<keyof T, Cell>
}

/**
 * Formats the identifiers of an order, such as `019a…, order_id 1001`, or only the orderId if the merchant sent no
 * order_id.
 */
function orderText({ orderId, merchantOrderId }: WithMerchantOrderId<{ orderId: string | null }>): string | null {
  const isOwn = merchantOrderId !== null && merchantOrderId !== orderId
  return isOwn ? `${orderId}, order_id ${merchantOrderId}` : orderId || null
}

const rupeesText = (paise: number | null) => (paise === null ? null : toDecimalText(paise))

/**
 * Formats a discrepancy as one line, such as `2026-11-03 duplicate settlement 261103…: order 019a…, order_id 1001, UTR
 * 5235…, settlement N12, customers paid 200.00, acquirer settled 200.00, owed -200.00: settlement N11 has paid it before`.
 */
function discrepancyText(discrepancy: WithMerchantOrderId<Discrepancy>): string {
  const { id, day, kind, utr, settlementUtr, paid, settled, owed } = discrepancy
  const facts = {
    order: orderText(discrepancy),
    UTR: utr,
    settlement: settlementUtr === utr ? null : settlementUtr,
    'customers paid': rupeesText(paid),
    'acquirer settled': rupeesText(settled),
    owed: rupeesText(owed),
  }
  const known = Object.entries(facts).flatMap(([name, fact]) => (fact === null ? [] : `${name} ${fact}`))
  return [`${day} ${kind} ${id}`, known.join(', '), causeOf(discrepancy)].join(': ')
}

const causeOf = ({ cause, resolution }: Pick<Discrepancy, 'cause' | 'resolution'>) =>
  resolution === null ? cause : `${cause}; resolved: ${resolution}`

/**
 * Returns one line per kind of unlisted discrepancy, such as `399,000 more missing settlement, total 79800000.00: a
 * settlement file may be missing`.
 */
const unlistedTable = (unlisted: readonly (Unlisted & { mid?: string })[]) =>
  table('kind, count, ₹owed', unlisted, {
    line: ({ mid, ...one }) => indented(`${mid === undefined ? '' : `${mid}: `}${unlistedText(one)}`),
  })

const unlistedText = ({ kind, count, owed }: Unlisted) =>
  `${count} more ${kind}, total ${toDecimalText(owed)}: a settlement file may be missing`

/**
 * Formats an exception as one line, such as `open exception 5f0c…: double payment, order 019a…, UTR 5235…, 200.00,
 * received 2026-11-03 09:30:00 IST`.
 */
function exceptionText(exception: WithMerchantOrderId<OpenException>): string {
  const { exceptionId, kind, utr, amount, receivedAt } = exception
  const order = orderText(exception)
  const facts = [kind, order && `order ${order}`, utr && `UTR ${utr}`, rupeesText(amount)].filter(Boolean)
  return `open exception ${exceptionId}: ${facts.join(', ')}, received ${toIstTime(receivedAt)}`
}

/** Formats the changed figures of a month, such as `settled 100.00 → 200.00`, or explains why no figure has changed. */
export function figuresText({ figures, rows }: Pick<MonthChange, 'figures'> & { rows?: MonthChange['rows'] }): string {
  const changed = figures.map(({ figure, was, is }) => `${figure} ${was} → ${is}`).join(', ') || 'no figure changed'
  return rows?.length === 0
    ? `${changed}; no row was recorded or replaced: payments became due or bank holidays changed`
    : changed
}

export const changesTable = (rows: readonly LedgerChange[]) =>
  table('changedAt, change, kind, reference, day, orderId, ₹amount, importId, exceptionId', rows, { line: changeLine })

/**
 * Formats a change in the ledger as one line, such as `2026-12-02 10:00:00 IST recorded: settlement N12 of 2026-11-03,
 * -200.00, import 14`.
 */
export function changeLine(row: LedgerChange): string {
  const { changedAt, change, kind, reference, day, orderId, amount, importId, exceptionId } = row
  const sources = [
    ...[orderId && `order ${orderId}`, toDecimalText(amount)],
    ...[importId !== null && `import ${importId}`, exceptionId && `exception ${exceptionId}`],
  ].filter(Boolean)
  return indented(`  ${toIstTime(changedAt)} ${change}: ${kind} ${reference} of ${day}, ${sources.join(', ')}`)
}

function endText({ total, errors, newestImport }: End, { from, to }: Days): string {
  const imported = newestImport
    ? `Newest settlement file: import ${newestImport.import} of ${toIstTime(newestImport.at)}`
    : 'No settlement file imported yet'
  return `${imported}\n${balanceText({ from, to, errors, ...total, carriedForward: total.carried })}`
}

/**
 * Columns of the CSV output, which has one row per discrepancy, exception, day and total. `type` distinguishes the
 * rows. The `kind` of the last row is the balance, and of an account its name.
 */
const CSV_COLUMNS =
  'type, mid, day, kind, differenceId, orderId, merchantOrderId, utr, settlementUtr, exceptionId, payments, broughtForward, ₹paid, ' +
  'duplicates, settlements, ₹settled, fee, tax, net, refunded, disputed, resolved, resolvedPlus, resolvedMinus, carriedForward, ' +
  'awaited, differences, openExceptions, ₹owed, cause'

function* rowsOf({ mid, changed, total, ...book }: MerchantBook, day: string) {
  for (const one of book.discrepancies) yield { type: 'difference', ...one, differenceId: one.id, cause: causeOf(one) }
  for (const one of book.unlisted)
    yield { type: 'unlisted', mid, day, kind: one.kind, owed: one.owed, cause: unlistedText(one) }
  for (const one of book.exceptions)
    yield { type: 'exception', ...one, day: toIstDay(one.receivedAt), paid: one.amount }
  if (changed) yield { type: 'changed', mid, day, cause: figuresText(changed) }
  for (const sums of book.days) yield { type: 'day', mid, day: sums.day, ...figuresOf(sums) }
  for (const { account: kind, broughtForward, carriedForward } of book.accounts) {
    const sums = { broughtForward: rupees(broughtForward), carriedForward: rupees(carriedForward) }
    yield { type: 'account', mid, day, kind, ...sums }
  }
  yield { type: 'total', mid, day, ...figuresOf(total) }
}

const OPEN_COLUMNS =
  'mid, day, ageDays, kind, differenceId, orderId, merchantOrderId, utr, settlementUtr, exceptionId, ₹owed, cause'

type OpenRow = OpenOfMerchant['discrepancies'][number] & { ageDays: number }

/** Returns the open discrepancies and their sum, then the open payouts. Ages are in IST days. */
export function openList(merchants: AsyncIterable<OpenOfMerchant | MerchantError>, payouts: TableData, now: Date) {
  const today = toIstDay(now)
  const unlisted: (Unlisted & { mid: string })[] = []
  let [count, owed] = [0, 0n]
  async function* rows() {
    for await (const merchant of merchants) {
      if (isMerchantError(merchant)) {
        yield merchant
        continue
      }
      const { mid, discrepancies, unlisted: more } = merchant
      unlisted.push(...more.map((one) => ({ mid, ...one })))
      count += more.reduce((sum, one) => sum + one.count, discrepancies.length)
      owed = [...discrepancies, ...more].reduce((sum, one) => sum + BigInt(one.owed), owed)
      for (const one of discrepancies) yield { ...one, ageDays: countDays(one.day, today) - 1 }
    }
  }
  let above = ''
  const views = withErrors<OpenRow, typeof OPEN_COLUMNS>('cause', {
    first: ['mid', 'day', 'ageDays', 'kind', 'owed', 'cause'],
    cells: ({ id, ...one }) => ({ ...one, differenceId: id }),
    changes: ({ id }) => [{ difference: id }],
    json: (one) => ({ ...one, paid: rupees(one.paid), settled: rupees(one.settled) }),
    line(one) {
      const heading = one.mid === above ? '' : `${one.mid}\n`
      above = one.mid
      return heading + indented(`${counted(one.ageDays, 'day')}: ${discrepancyText(one)}`)
    },
  })
  const differences = table(OPEN_COLUMNS, rows(), views)
  const more = () => unlistedTable(unlisted)
  const number = () => counted(count, 'open discrepancy', 'open discrepancies')
  const sum = () => (count === 0 ? 'No open discrepancies.' : `${number()}, total ${toIndianRupees(owed)}`)
  const fields = { differences, unlisted: more, count: () => count, owed: () => new Money(owed), payouts }
  return document(fields, differences, more, sum, payouts)
}
