import { countDays } from '../../books/ledger/bank-days.ts'
import type { Unlisted } from '../../books/reconciliation/book.ts'
import type { OpenOfMerchant } from '../../books/reconciliation/open-discrepancies.ts'
import { counted, toIndianRupees } from '../../platform/money.ts'
import { toIstDay } from '../../platform/time.ts'
import { document, type RecordData, rupees, table } from './data.ts'
import { discrepancyText, indented, unlistedTable } from './reconcile-report.ts'

const COLUMNS =
  'mid, day, ageDays, kind, differenceId, orderId, merchantOrderId, utr, settlementUtr, exceptionId, ₹owed, cause'

/** Returns the open discrepancies and their sum. Ages are in IST days. */
export function openList(merchants: AsyncIterable<OpenOfMerchant>, now: Date): RecordData {
  const today = toIstDay(now)
  const unlisted: (Unlisted & { mid: string })[] = []
  let [count, owed] = [0, 0]
  async function* rows() {
    for await (const { mid, discrepancies, unlisted: more } of merchants) {
      unlisted.push(...more.map((one) => ({ mid, ...one })))
      count += more.reduce((sum, one) => sum + one.count, discrepancies.length)
      owed += [...discrepancies, ...more].reduce((sum, one) => sum + one.owed, 0)
      for (const one of discrepancies) {
        yield { ...one, ageDays: countDays(one.day, today) - 1 }
      }
    }
  }
  let above = ''
  const differences = table(COLUMNS, rows(), {
    cells: ({ id, ...one }) => ({ ...one, differenceId: id }),
    changes: ({ id }) => [{ difference: id }],
    json: (one) => ({ ...one, paid: rupees(one.paid), settled: rupees(one.settled) }),
    line(one) {
      const heading = one.mid === above ? '' : `${one.mid}\n`
      above = one.mid
      return heading + indented(`${counted(one.ageDays, 'day')}: ${discrepancyText(one)}`)
    },
  })
  const more = () => unlistedTable(unlisted)
  return document(
    { differences, unlisted: more, count: () => count, owed: () => rupees(owed) },
    differences,
    more,
    () =>
      count === 0
        ? 'No open discrepancies.'
        : `${counted(count, 'open discrepancy', 'open discrepancies')}, total ${toIndianRupees(owed)}`,
  )
}
