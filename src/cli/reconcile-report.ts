import type { Difference } from '../books/differences.ts'
import type { OpenException } from '../books/merchant-books.ts'
import type { Finding, Sums, Totals } from '../books/reconcile.ts'
import { toIstText } from '../ist.ts'
import { toSumText } from '../money.ts'
import { printable, table } from './output.ts'

/** What `ops reconcile` was asked for; days are `YYYY-MM-DD`, both included. */
type Asked = { from: string; to: string }

type Findings = AsyncIterable<Finding>

/** For people: of each merchant what differs, then its days, and in the last line whether it all balances. */
export async function* toText(findings: Findings, { from, to }: Asked): AsyncGenerator<string> {
  let days: Record<(typeof COLUMNS)[number], string | number>[] = []
  let merchants = 0
  for await (const finding of findings) {
    switch (finding.type) {
      case 'merchant':
        merchants += 1
        yield finding.mid === '' ? 'orders that nobody knows\n' : `${finding.mid}, settled ${finding.file}\n`
        break
      case 'difference':
        yield `  ${printable(spellDifference(finding))}\n`
        break
      case 'exception':
        yield `  ${printable(spellException(finding))}\n`
        break
      case 'day':
        days.push({ day: finding.day, ...cells(finding) })
        break
      case 'total':
        if (finding.mid !== '') yield `${table(COLUMNS, [...days, { day: 'total', ...cells(finding.sums) }], '')}\n`
        yield '\n'
        days = []
        break
      case 'end':
        if (merchants > 1) yield `all merchants\n${table(COLUMNS, [{ day: 'total', ...cells(finding.sums) }], '')}\n\n`
        yield `${spellEnd(finding, { from, to })}\n`
    }
  }
}

const COLUMNS = [
  'day',
  'payments',
  'paid',
  'by day file',
  'settlements',
  'settled',
  'fee',
  'tax',
  'open',
  'differences',
] as const

function cells(sums: Sums) {
  return {
    payments: sums.paidCount,
    paid: toSumText(sums.paid),
    'by day file': sums.fromDayFile,
    settlements: sums.settledCount,
    settled: toSumText(sums.gross),
    fee: toSumText(sums.fee),
    tax: toSumText(sums.tax),
    open: toSumText(sums.open),
    differences: sums.differences,
  }
}

/** `2026-11-03 settled twice: order 019a…, UTR 5235…, settlement N12, paid 200.00, settled 200.00: settlement N11 has paid it before` */
function spellDifference({ day, kind, cause, resolution, ...difference }: Difference): string {
  const { orderId, utr, settlementUtr, paid, settled } = difference
  const facts = [
    ...(orderId === null ? [] : [`order ${orderId}`]),
    ...(utr === null ? [] : [`UTR ${utr}`]),
    ...(settlementUtr === null || settlementUtr === utr ? [] : [`settlement ${settlementUtr}`]),
    ...(paid === null ? [] : [`paid ${toSumText(paid)}`]),
    ...(settled === null ? [] : [`settled ${toSumText(settled)}`]),
  ]
  const ended = resolution === null ? '' : `; resolved: ${resolution}`
  return `${day} ${kind}: ${facts.join(', ')}: ${cause}${ended}`
}

/** `open exception 5f0c…: double payment, order 019a…, UTR 5235…, 200.00, received 2026-11-03T04:00:00.000Z` */
function spellException({ exceptionId, kind, orderId, utr, amount, receivedAt }: OpenException): string {
  const facts = [
    kind,
    ...(orderId === '' ? [] : [`order ${orderId}`]),
    ...(utr === '' ? [] : [`UTR ${utr}`]),
    ...(amount === null ? [] : [toSumText(amount)]),
    `received ${receivedAt.toISOString()}`,
  ]
  return `open exception ${exceptionId}: ${facts.join(', ')}`
}

function spellEnd({ sums, balances, newestImport }: Extract<Finding, { type: 'end' }>, { from, to }: Asked): string {
  const imported = newestImport
    ? `newest settlement file: import ${newestImport.import} of ${newestImport.at.toISOString()}`
    : 'no settlement file was imported yet'
  const days = from === to ? from : `${from} to ${to}`
  if (balances) return `${imported}\n${days} balances`
  const { differences, openExceptions } = sums
  const faults = [
    ...(differences === 0 ? [] : [differences === 1 ? '1 difference' : `${differences} differences`]),
    ...(openExceptions === 0 ? [] : [openExceptions === 1 ? '1 open exception' : `${openExceptions} open exceptions`]),
  ]
  return `${imported}\n${days} does not balance: ${faults.join(', ')}`
}

/**
 * For scripts: one JSON document `{from, to, merchants, total, balances, newestImport}`, where a merchant has `{mid, file,
 * differences, exceptions, days, total}`. Amounts are decimal text in rupees.
 */
export async function* toJson(findings: Findings, { from, to }: Asked): AsyncGenerator<string> {
  const LISTS = ['differences', 'exceptions', 'days']
  let list = 0
  let isFirst = true
  /** What leads from the list that is open to the one of that number. */
  const lead = (next: number) => {
    const text = LISTS.slice(list + 1, next + 1).map((name) => `],"${name}":[`)
    if (next > list) isFirst = true
    list = next
    return text.join('')
  }
  const item = (next: number, value: unknown) => {
    const text = `${lead(next)}${isFirst ? '' : ','}${JSON.stringify(value)}`
    isFirst = false
    return text
  }
  let merchants = 0
  yield `{"from":"${from}","to":"${to}","merchants":[`
  for await (const finding of findings) {
    switch (finding.type) {
      case 'merchant':
        yield `${merchants++ === 0 ? '' : ','}{"mid":"${finding.mid}","file":"${finding.file}","${LISTS[0]}":[`
        list = 0
        isFirst = true
        break
      case 'difference': {
        const { type, mid, paid, settled, ...difference } = finding
        yield item(0, { ...difference, paid: orNull(paid), settled: orNull(settled) })
        break
      }
      case 'exception': {
        const { type, mid, amount, ...exception } = finding
        yield item(1, { ...exception, amount: orNull(amount) })
        break
      }
      case 'day':
        yield item(2, { day: finding.day, ...wire(finding) })
        break
      case 'total':
        yield `${lead(2)}],"total":${JSON.stringify(wireTotal(finding.sums))}}`
        break
      case 'end': {
        const { sums, balances, newestImport } = finding
        const end = { total: wireTotal(sums), balances, newestImport }
        yield `],${JSON.stringify(end).slice(1)}\n`
      }
    }
  }
}

const orNull = (paise: bigint | null) => (paise === null ? null : toSumText(paise))

const wire = ({ paidCount, fromDayFile, settledCount, differences, paid, gross, fee, tax, open }: Sums) => ({
  payments: paidCount,
  paid: toSumText(paid),
  fromDayFile,
  settlements: settledCount,
  settled: toSumText(gross),
  fee: toSumText(fee),
  tax: toSumText(tax),
  open: toSumText(open),
  differences,
})

const wireTotal = (totals: Totals) => ({ ...wire(totals), openExceptions: totals.openExceptions })

const CSV_COLUMNS = [
  'type',
  'mid',
  'day',
  'kind',
  'order_id',
  'utr',
  'settlement_utr',
  'exception_id',
  'payments',
  'paid',
  'from_day_file',
  'settlements',
  'settled',
  'fee',
  'tax',
  'open',
  'differences',
  'open_exceptions',
  'cause',
] as const

type CsvRow = Partial<Record<(typeof CSV_COLUMNS)[number], string | number | null>>

/**
 * For spreadsheets: one line for each finding, day and total, told apart by `type`; the last line is of type `end`, and its
 * `kind` says whether it balances.
 */
export async function* toCsv(findings: Findings, { from, to }: Asked): AsyncGenerator<string> {
  yield `${CSV_COLUMNS.join(',')}\n`
  for await (const finding of findings) {
    const row = toCsvRow(finding, `${from} to ${to}`)
    if (row) yield `${CSV_COLUMNS.map((column) => csvField(row[column])).join(',')}\n`
  }
}

function toCsvRow(finding: Finding, days: string): CsvRow | undefined {
  switch (finding.type) {
    case 'merchant':
      return undefined
    case 'difference': {
      const { type, mid, day, kind, orderId, utr, settlementUtr, exceptionId, paid, settled, cause, resolution } =
        finding
      const money = { paid: orNull(paid), settled: orNull(settled) }
      const why = resolution === null ? cause : `${cause}; resolved: ${resolution}`
      const names = { order_id: orderId, utr, settlement_utr: settlementUtr, exception_id: exceptionId }
      return { type, mid, day, kind, ...names, ...money, cause: why }
    }
    case 'exception': {
      const { type, mid, kind, orderId, utr, exceptionId, amount, receivedAt } = finding
      const names = { order_id: orderId, utr, exception_id: exceptionId }
      return { type, mid, day: toIstText(receivedAt).slice(0, 10), kind, ...names, paid: orNull(amount) }
    }
    case 'day':
      return { type: 'day', mid: finding.mid, day: finding.day, ...csvSums(finding) }
    case 'total':
      return { type: 'total', mid: finding.mid, day: days, ...csvTotals(finding.sums) }
    case 'end': {
      const kind = finding.balances ? 'balances' : 'does not balance'
      return { type: 'end', day: days, kind, ...csvTotals(finding.sums) }
    }
  }
}

function csvSums(sums: Sums): CsvRow {
  const { fromDayFile, ...rest } = wire(sums)
  return { ...rest, from_day_file: fromDayFile }
}

const csvTotals = (totals: Totals): CsvRow => ({ ...csvSums(totals), open_exceptions: totals.openExceptions })

/** What somebody else wrote, such as a resolution, must not be a formula for a spreadsheet. */
function csvField(value: string | number | null | undefined): string {
  if (value === null || value === undefined) return ''
  const text = String(value)
  const harmless = /^[=+@\t]|^-(?![0-9.]+$)/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless
}
