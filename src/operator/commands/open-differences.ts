import { countDays } from '../../books/ledger/bank-days.ts'
import type { Unlisted } from '../../books/reconciliation/book.ts'
import { isMerchantError, type MerchantError } from '../../books/reconciliation/merchant-errors.ts'
import type { OpenOfMerchant } from '../../books/reconciliation/open-discrepancies.ts'
import { counted, toIndianRupees } from '../../platform/money.ts'
import { toIstDay } from '../../platform/time.ts'
import { withErrors } from './merchant-errors.ts'
import { discrepancyText, indented, unlistedTable } from './reconcile-report.ts'
import { document, Money, rupees, type TableData, table } from './result.ts'

const COLUMNS =
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
  const views = withErrors<OpenRow, typeof COLUMNS>('cause', {
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
  const differences = table(COLUMNS, rows(), views)
  const more = () => unlistedTable(unlisted)
  const number = () => counted(count, 'open discrepancy', 'open discrepancies')
  const sum = () => (count === 0 ? 'No open discrepancies.' : `${number()}, total ${toIndianRupees(owed)}`)
  const fields = { differences, unlisted: more, count: () => count, owed: () => new Money(owed), payouts }
  return document(fields, differences, more, sum, payouts)
}
