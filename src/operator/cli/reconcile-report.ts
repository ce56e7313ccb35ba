import { pipeline } from 'node:stream'
import { stringify } from 'csv-stringify'
import type { Days } from '../../books/ledger/bank-days.ts'
import type { Difference } from '../../books/ledger/differences.ts'
import type { MonthChange } from '../../books/reconciliation/closed-months.ts'
import type { WithMerchantOrderId } from '../../books/reconciliation/merchant-order-ids.ts'
import type { OpenException } from '../../books/reconciliation/read-open.ts'
import type { Finding } from '../../books/reconciliation/reconcile.ts'
import { type Balance, type Sums, spellSums, type Totals } from '../../books/reconciliation/sums.ts'
import { groupRupees, type Paise, toDecimalText } from '../../platform/money.ts'
import { toIstDay, toIstTime } from '../../platform/time.ts'
import { balanceText } from '../texts.ts'
import { forPeople, table, toOneLine, toRupees } from './output.ts'

type Findings = AsyncIterable<Finding>

/** The report as text: each merchant's differences, then its days; the last line says whether the books balance. */
export async function* toText(findings: Findings, period: Days): AsyncGenerator<string> {
  const total = ({ sums }: { sums: Totals }) => ({ day: 'total', ...cells(sums) })
  let days: ReturnType<typeof total>[] = []
  let merchants = 0
  for await (const finding of findings) {
    switch (finding.type) {
      case 'merchant':
        merchants += 1
        days = []
        yield finding.mid === '' ? 'orders that nobody knows\n' : `${finding.mid}, paid out ${FORMS[finding.file]}\n`
        break
      case 'difference':
        yield line(spellDifference(finding))
        break
      case 'exception':
        yield line(spellException(finding))
        break
      case 'changed':
        yield line(spellChange(finding))
        break
      case 'day':
        days.push({ ...cells(finding), day: finding.day })
        break
      case 'total':
        yield finding.mid === '' ? '\n' : `${table(COLUMNS, [...days, total(finding)], '')}\n\n`
        break
      case 'end':
        if (finding.changed.length > 0)
          yield `all merchants since the month was closed: ${spellFigures(finding.changed)}\n`
        if (merchants > 1) yield `all merchants\n${table(COLUMNS, [total(finding)], '')}\n\n`
        yield `${spellEnd(finding, period)}\n`
    }
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

/** Each line adds up: brought forward + paid - settled - refunded + both resolved = carried forward. */
const COLUMNS =
  'day, brought forward, paid, settled, refunded, resolved +, resolved -, carried forward, fee, tax, net, payments, settlements, awaited, differences'

const cells = (sums: Sums & Balance) => {
  const { broughtForward, carriedForward, resolvedPlus, resolvedMinus, ...rest } = forPeople(spellSums(sums))
  const resolved = { 'resolved +': resolvedPlus, 'resolved -': resolvedMinus }
  const carried = { 'brought forward': broughtForward, 'carried forward': carriedForward }
  return { ...rest, ...resolved, ...carried }
}

/** `019a…, the shop's 1001`; the shop may have given it no number of its own. */
function spellOrder({ orderId, merchantOrderId }: WithMerchantOrderId<{ orderId: string | null }>): string | null {
  const isOwn = merchantOrderId !== null && merchantOrderId !== orderId
  return isOwn ? `${orderId}, the shop's ${merchantOrderId}` : orderId || null
}

/** `2026-11-03 duplicate settlement 261103…: order 019a…, the shop's 1001, UTR 5235…, settlement N12, paid 200.00, settled 200.00: settlement N11 has paid it before` */
export function spellDifference(difference: WithMerchantOrderId<Difference>): string {
  const { id, day, kind, utr, settlementUtr, paid, settled } = difference
  const facts = {
    order: spellOrder(difference),
    UTR: utr,
    settlement: settlementUtr === utr ? null : settlementUtr,
    paid: orNull(paid),
    settled: orNull(settled),
  }
  const told = Object.entries(facts).flatMap(([name, fact]) => (fact === null ? [] : `${name} ${fact}`))
  return [`${day} ${kind} ${id}`, ...(told.length > 0 ? [told.join(', ')] : []), spellCause(difference)].join(': ')
}

const spellCause = ({ cause, resolution }: Pick<Difference, 'cause' | 'resolution'>) =>
  resolution === null ? cause : `${cause}; resolved: ${resolution}`

/** `open exception 5f0c…: double payment, order 019a…, UTR 5235…, 200.00, received 2026-11-03 09:30:00 IST` */
function spellException(exception: WithMerchantOrderId<OpenException>): string {
  const { exceptionId, kind, utr, amount, receivedAt } = exception
  const order = spellOrder(exception)
  const facts = [kind, order && `order ${order}`, utr && `UTR ${utr}`, orNull(amount)].filter(Boolean)
  return `open exception ${exceptionId}: ${facts.join(', ')}, received ${toIstTime(receivedAt)}`
}

const spellFigures = (figures: MonthChange['figures']) =>
  figures.map(({ figure, was, is }) => `${figure} ${was} → ${is}`).join(', ')

/** `closed by asha at 2026-11-02 10:00:00 IST; since then: settled 100.00 → 200.00; by import 14 (2)` */
const spellChange = ({ closedAt, closedBy, ...change }: MonthChange) =>
  `closed by ${closedBy} at ${toIstTime(closedAt)}; since then: ${spellSince(change)}`

/** `settled 100.00 → 200.00; by import 14 (2)` */
export function spellSince({ figures, by }: Pick<MonthChange, 'figures' | 'by'>): string {
  const changed = spellFigures(figures) || 'every figure is as it was'
  return `${changed}; by ${by.join(', ') || 'nobody'}`
}

function spellEnd({ sums, newestImport }: Extract<Finding, { type: 'end' }>, { from, to }: Days): string {
  const imported = newestImport
    ? `newest settlement file: import ${newestImport.import} of ${toIstTime(newestImport.at)}`
    : 'no settlement file was imported yet'
  return `${imported}\n${balanceText({ from, to, ...sums, carriedForward: sums.carried })}`
}

/**
 * The report as one JSON document `{from, to, merchants, total, balances, changed, newestImport}`. A merchant has `{mid, file,
 * differences, exceptions, days, changed, total}`; `changed` is null unless the days are a closed month.
 * Amounts are decimal text in rupees. Differences are written one by one: a missing file makes one for each payment,
 * too many for memory.
 */
export async function* toJson(findings: Findings, { from, to }: Days): AsyncGenerator<string> {
  let [merchants, differences] = [0, 0]
  let lists = emptyLists()
  yield `{"from":"${from}","to":"${to}","merchants":[`
  for await (const finding of findings) {
    switch (finding.type) {
      case 'merchant':
        yield `${merchants++ === 0 ? '' : ','}{"mid":"${finding.mid}","file":"${finding.file}","differences":[`
        differences = 0
        lists = emptyLists()
        break
      case 'difference': {
        const { type, mid, ...difference } = finding
        yield `${differences++ === 0 ? '' : ','}${JSON.stringify(wireDifference(difference))}`
        break
      }
      case 'exception': {
        const { type, mid, amount, ...rest } = finding
        lists.exceptions.push({ ...rest, amount: orNull(amount) })
        break
      }
      case 'changed': {
        const { type, mid, ...change } = finding
        lists.changed = change
        break
      }
      case 'day':
        lists.days.push({ day: finding.day, ...spellSums(finding) })
        break
      case 'total':
        yield endOfList({ ...lists, total: spellSums(finding.sums) })
        break
      case 'end':
        yield `${endOfList({ total: spellSums(finding.sums), balances: finding.balances, changed: finding.changed, newestImport: finding.newestImport })}\n`
    }
  }
}

type MerchantLists = Record<'exceptions' | 'days', unknown[]> & { changed: MonthChange | null }

const emptyLists = (): MerchantLists => ({ exceptions: [], days: [], changed: null })

/** Closes a list and its object, whose other fields are `fields`. */
const endOfList = (fields: object) => `],${JSON.stringify(fields).slice(1)}`

const orNull = (paise: Paise | null) => (paise === null ? null : toDecimalText(paise))

export const wireDifference = <T extends Pick<Difference, 'paid' | 'settled' | 'owed'>>(difference: T) => ({
  ...difference,
  paid: orNull(difference.paid),
  settled: orNull(difference.settled),
  owed: toDecimalText(difference.owed),
})

/**
 * The report as CSV: a line for each finding, day and total, told apart by `type`; the last line is of type `end`, and
 * its `kind` says whether the books balance.
 */
export function toCsv(findings: Findings, { from, to }: Days): AsyncIterable<string> {
  return spreadsheet(CSV_COLUMNS, csvRows(findings, `${from} to ${to}`))
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
  'settlements, settled, fee, tax, net, refunded, resolved, resolvedPlus, resolvedMinus, carriedForward, ' +
  'awaited, differences, openExceptions, owed, cause'
).split(', ')

async function* csvRows(findings: Findings, days: string): AsyncGenerator<Record<string, unknown>> {
  for await (const finding of findings) {
    switch (finding.type) {
      case 'difference':
        yield { ...finding, differenceId: finding.id, cause: spellCause(finding) }
        break
      case 'exception':
        yield { ...finding, day: toIstDay(finding.receivedAt), paid: finding.amount }
        break
      case 'changed':
        yield { type: finding.type, mid: finding.mid, day: days, cause: spellChange(finding) }
        break
      case 'day':
        yield { ...finding, ...spellSums(finding) }
        break
      case 'total':
        yield { ...finding, day: days, ...spellSums(finding.sums) }
        break
      case 'end':
        yield {
          type: 'end',
          day: days,
          kind: finding.balances ? 'balances' : 'does not balance',
          ...spellSums(finding.sums),
        }
    }
  }
}
