import { countDays } from '../../books/ledger/bank-days.ts'
import type { OpenOfMerchant } from '../../books/reconciliation/open-discrepancies.ts'
import { counted, toDecimalText } from '../../platform/money.ts'
import { toIstDay } from '../../platform/time.ts'
import type { WrittenAs } from './long-list.ts'
import {
  formatDiscrepancy,
  formatUnlisted,
  line,
  spreadsheet,
  wireDifference,
  wireUnlisted,
} from './reconcile-report.ts'

const COLUMNS =
  'mid, day, ageDays, kind, differenceId, orderId, merchantOrderId, utr, settlementUtr, exceptionId, owed, cause'.split(
    ', ',
  )

/** The open discrepancies for people, scripts or spreadsheets, and their sum. Ages are in days of India. */
export function writeOpen(merchants: AsyncIterable<OpenOfMerchant>, now: Date, form: WrittenAs): AsyncIterable<string> {
  const withAge = <T extends { day: string }>(one: T) => ({ ...one, ageDays: countDays(one.day, toIstDay(now)) - 1 })
  if (form === 'csv') return spreadsheet(COLUMNS, csvRows())
  return form === 'json' ? toJson() : toText()

  async function* toText(): AsyncGenerator<string> {
    const total = noTotal()
    for await (const of of merchants) {
      yield `${of.mid}\n`
      for (const one of of.discrepancies)
        yield line(`${counted(withAge(one).ageDays, 'day')}: ${formatDiscrepancy(one)}`)
      for (const one of of.unlisted) yield line(formatUnlisted(one))
      addTo(total, of)
    }
    const { count, owed } = total
    yield count === 0 ? 'nothing is open\n' : line(`${count} open, together ${toDecimalText(owed)}`).trimStart()
  }

  async function* toJson(): AsyncGenerator<string> {
    const total = noTotal()
    const unlisted: object[] = []
    let separator = ''
    yield '{"differences":['
    for await (const of of merchants) {
      addTo(total, of)
      unlisted.push(...of.unlisted.map((one) => ({ mid: of.mid, ...wireUnlisted(one) })))
      for (const one of of.discrepancies) {
        yield `${separator}${JSON.stringify(wireDifference(withAge(one)))}`
        separator = ','
      }
    }
    const end = { unlisted, count: total.count, owed: toDecimalText(total.owed) }
    yield `],${JSON.stringify(end).slice(1)}\n`
  }

  async function* csvRows(): AsyncGenerator<Record<string, unknown>> {
    for await (const of of merchants)
      for (const { id, ...one } of of.discrepancies) yield { ...withAge(one), differenceId: id }
  }
}

const noTotal = () => ({ count: 0, owed: 0 })

function addTo(total: ReturnType<typeof noTotal>, { discrepancies, unlisted }: OpenOfMerchant): void {
  total.count += unlisted.reduce((sum, { count }) => sum + count, discrepancies.length)
  total.owed += [...discrepancies, ...unlisted].reduce((sum, { owed }) => sum + owed, 0)
}
