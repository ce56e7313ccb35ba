import { pipeline } from 'node:stream'
import { stringify } from 'csv-stringify'
import type { Difference } from '../books/differences.ts'
import type { OpenException } from '../books/merchant-books.ts'
import type { Finding, Sums } from '../books/reconcile.ts'
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

const cells = (sums: Sums) => ({ ...wire(sums), 'by day file': sums.fromDayFile })

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
  return `${day} ${kind}: ${facts.join(', ')}: ${spellCause({ cause, resolution })}`
}

const spellCause = ({ cause, resolution }: Pick<Difference, 'cause' | 'resolution'>) =>
  resolution === null ? cause : `${cause}; resolved: ${resolution}`

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
 * differences, exceptions, days, total}`. Amounts are decimal text in rupees. Only differences are too many to hold: where no file
 * came there is one for each payment.
 */
export async function* toJson(findings: Findings, { from, to }: Asked): AsyncGenerator<string> {
  let merchants = 0
  let differences = 0
  let exceptions: unknown[] = []
  let days: unknown[] = []
  yield `{"from":"${from}","to":"${to}","merchants":[`
  for await (const finding of findings) {
    switch (finding.type) {
      case 'merchant':
        yield `${merchants++ === 0 ? '' : ','}{"mid":"${finding.mid}","file":"${finding.file}","differences":[`
        ;[differences, exceptions, days] = [0, [], []]
        break
      case 'difference': {
        const { type, mid, paid, settled, ...difference } = finding
        const wired = { ...difference, paid: orNull(paid), settled: orNull(settled) }
        yield `${differences++ === 0 ? '' : ','}${JSON.stringify(wired)}`
        break
      }
      case 'exception': {
        const { type, mid, amount, ...exception } = finding
        exceptions.push({ ...exception, amount: orNull(amount) })
        break
      }
      case 'day':
        days.push({ day: finding.day, ...wire(finding) })
        break
      case 'total':
        yield `],${JSON.stringify({ exceptions, days, total: wire(finding.sums) }).slice(1)}`
        break
      case 'end': {
        const { sums, balances, newestImport } = finding
        yield `],${JSON.stringify({ total: wire(sums), balances, newestImport }).slice(1)}\n`
      }
    }
  }
}

const orNull = (paise: bigint | null) => (paise === null ? null : toSumText(paise))

/** Only totals have open exceptions. */
const wire = ({ paidCount, fromDayFile, settledCount, ...sums }: Sums & { openExceptions?: number }) => ({
  payments: paidCount,
  paid: toSumText(sums.paid),
  fromDayFile,
  settlements: settledCount,
  settled: toSumText(sums.gross),
  fee: toSumText(sums.fee),
  tax: toSumText(sums.tax),
  open: toSumText(sums.open),
  differences: sums.differences,
  openExceptions: sums.openExceptions,
})

/** The name of each field in the first line of the CSV. */
const CSV_COLUMNS = {
  type: 'type',
  mid: 'mid',
  day: 'day',
  kind: 'kind',
  orderId: 'order_id',
  utr: 'utr',
  settlementUtr: 'settlement_utr',
  exceptionId: 'exception_id',
  paidCount: 'payments',
  paid: 'paid',
  fromDayFile: 'from_day_file',
  settledCount: 'settlements',
  gross: 'settled',
  fee: 'fee',
  tax: 'tax',
  open: 'open',
  differences: 'differences',
  openExceptions: 'open_exceptions',
  cause: 'cause',
}

/**
 * For spreadsheets: one line for each finding, day and total, told apart by `type`; the last line is of type `end`, and its
 * `kind` says whether it balances.
 */
export function toCsv(findings: Findings, { from, to }: Asked): AsyncIterable<string> {
  const csv = stringify({
    header: true,
    columns: CSV_COLUMNS,
    // What somebody else wrote, such as a resolution, must not be a formula for a spreadsheet.
    escape_formulas: true,
    cast: { bigint: toSumText },
  })
  // Its failure ends the loop of whoever reads the lines.
  pipeline(csvRows(findings, `${from} to ${to}`), csv, () => undefined)
  return csv.setEncoding('utf8')
}

type CsvRow = Partial<Record<keyof typeof CSV_COLUMNS, string | number | bigint | null>>

async function* csvRows(findings: Findings, days: string): AsyncGenerator<CsvRow> {
  for await (const finding of findings) {
    switch (finding.type) {
      case 'difference':
        yield { ...finding, gross: finding.settled, cause: spellCause(finding) }
        break
      case 'exception':
        yield { ...finding, day: toIstText(finding.receivedAt).slice(0, 10), paid: finding.amount }
        break
      case 'day':
        yield finding
        break
      case 'total':
        yield { type: 'total', mid: finding.mid, day: days, ...finding.sums }
        break
      case 'end':
        yield { type: 'end', day: days, kind: finding.balances ? 'balances' : 'does not balance', ...finding.sums }
    }
  }
}
