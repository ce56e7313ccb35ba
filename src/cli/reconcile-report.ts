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

/** The report for people: each merchant's differences, then its days; the last line says whether all of it balances. */
export async function* toText(findings: Findings, asked: Asked): AsyncGenerator<string> {
  const total = ({ sums }: { sums: Sums }) => ({ day: 'total', ...cells(sums) })
  let days: ReturnType<typeof total>[] = []
  let merchants = 0
  for await (const finding of findings) {
    switch (finding.type) {
      case 'merchant':
        merchants += 1
        days = []
        yield finding.mid === '' ? 'orders that nobody knows\n' : `${finding.mid}, settled ${finding.file}\n`
        break
      case 'difference':
        yield `  ${printable(spellDifference(finding))}\n`
        break
      case 'exception':
        yield `  ${printable(spellException(finding))}\n`
        break
      case 'day':
        days.push({ ...cells(finding), day: finding.day })
        break
      case 'total':
        yield finding.mid === '' ? '\n' : `${table(COLUMNS, [...days, total(finding)], '')}\n\n`
        break
      case 'end':
        if (merchants > 1) yield `all merchants\n${table(COLUMNS, [total(finding)], '')}\n\n`
        yield `${spellEnd(finding, asked)}\n`
    }
  }
}

const COLUMNS = 'day, payments, paid, by day file, settlements, settled, fee, tax, open, differences'

const cells = (sums: Sums) => ({ ...wire(sums), 'by day file': sums.fromDayFile })

/** `2026-11-03 settled twice: order 019a…, UTR 5235…, settlement N12, paid 200.00, settled 200.00: settlement N11 has paid it before` */
function spellDifference({ day, kind, orderId, utr, settlementUtr, paid, settled, ...why }: Difference): string {
  const facts = {
    order: orderId,
    UTR: utr,
    settlement: settlementUtr === utr ? null : settlementUtr,
    paid: orNull(paid),
    settled: orNull(settled),
  }
  const told = Object.entries(facts).flatMap(([name, fact]) => (fact === null ? [] : `${name} ${fact}`))
  return `${day} ${kind}: ${told.join(', ')}: ${spellCause(why)}`
}

const spellCause = ({ cause, resolution }: Pick<Difference, 'cause' | 'resolution'>) =>
  resolution === null ? cause : `${cause}; resolved: ${resolution}`

/** `open exception 5f0c…: double payment, order 019a…, UTR 5235…, 200.00, received 2026-11-03T04:00:00.000Z` */
function spellException({ exceptionId, kind, orderId, utr, amount, receivedAt }: OpenException): string {
  const facts = [kind, orderId && `order ${orderId}`, utr && `UTR ${utr}`, orNull(amount)].filter(Boolean)
  return `open exception ${exceptionId}: ${facts.join(', ')}, received ${receivedAt.toISOString()}`
}

function spellEnd({ sums, balances, newestImport }: Extract<Finding, { type: 'end' }>, { from, to }: Asked): string {
  const imported = newestImport
    ? `newest settlement file: import ${newestImport.import} of ${newestImport.at.toISOString()}`
    : 'no settlement file was imported yet'
  const days = from === to ? from : `${from} to ${to}`
  if (balances) return `${imported}\n${days} balances`
  const { differences, openExceptions } = sums
  const faults = [counted(differences, 'difference'), counted(openExceptions, 'open exception')].flat()
  return `${imported}\n${days} does not balance: ${faults.join(', ')}`
}

const counted = (count: number, what: string) => (count === 0 ? [] : [`${count} ${what}${count === 1 ? '' : 's'}`])

/**
 * The report for scripts: one JSON document `{from, to, merchants, total, balances, newestImport}`, where a merchant
 * has `{mid, file, differences, exceptions, days, total}`. Amounts are decimal text in rupees. Differences are written
 * one by one, because they may be too many to hold: where no file came there is one for each payment.
 */
export async function* toJson(findings: Findings, { from, to }: Asked): AsyncGenerator<string> {
  let [merchants, differences] = [0, 0]
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
        yield endOfList({ exceptions, days, total: wire(finding.sums) })
        break
      case 'end':
        yield `${endOfList({ total: wire(finding.sums), balances: finding.balances, newestImport: finding.newestImport })}\n`
    }
  }
}

/** Ends a list, and the object that it is in: by the other fields of that. */
const endOfList = (fields: object) => `],${JSON.stringify(fields).slice(1)}`

const orNull = (paise: bigint | null) => (paise === null ? null : toSumText(paise))

/** Sums as JSON; only totals have `openExceptions`. */
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

/**
 * For spreadsheets: one line for each finding, day and total, told apart by `type`; the last line is of type `end`, and its
 * `kind` says whether it balances.
 */
export function toCsv(findings: Findings, { from, to }: Asked): AsyncIterable<string> {
  const csv = stringify({
    header: true,
    columns: CSV_COLUMNS.map((key) => ({
      key,
      header: key.replace(/[A-Z]/g, (capital) => `_${capital.toLowerCase()}`),
    })),
    // What somebody else wrote, such as a resolution, must not be a formula for a spreadsheet.
    escape_formulas: true,
    cast: { bigint: toSumText },
  })
  // A failure of the pipeline is not handled here: it ends the loop of the reader of `csv`.
  pipeline(csvRows(findings, `${from} to ${to}`), csv, () => undefined)
  return csv.setEncoding('utf8')
}

const CSV_COLUMNS = (
  'type, mid, day, kind, orderId, utr, settlementUtr, exceptionId, payments, paid, fromDayFile, settlements, settled, ' +
  'fee, tax, open, differences, openExceptions, cause'
).split(', ')

async function* csvRows(findings: Findings, days: string): AsyncGenerator<Record<string, unknown>> {
  for await (const finding of findings) {
    switch (finding.type) {
      case 'difference':
        yield { ...finding, cause: spellCause(finding) }
        break
      case 'exception':
        yield { ...finding, day: toIstText(finding.receivedAt).slice(0, 10), paid: finding.amount }
        break
      case 'day':
        yield { ...finding, ...wire(finding) }
        break
      case 'total':
        yield { ...finding, day: days, ...wire(finding.sums) }
        break
      case 'end':
        yield {
          type: 'end',
          day: days,
          kind: finding.balances ? 'balances' : 'does not balance',
          ...wire(finding.sums),
        }
    }
  }
}
