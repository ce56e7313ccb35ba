import { countDays } from '../../books/ledger/bank-days.ts'
import type { Difference } from '../../books/ledger/differences.ts'
import type { WithMerchantOrderId } from '../../books/reconciliation/merchant-order-ids.ts'
import { counted, toSumText } from '../../platform/money.ts'
import { toIstDay } from '../../platform/time.ts'
import type { WrittenAs } from './long-list.ts'
import { line, spellDifference, spreadsheet, wireDifference } from './reconcile-report.ts'

const COLUMNS =
  'mid, day, ageDays, kind, differenceId, orderId, merchantOrderId, utr, settlementUtr, exceptionId, owed, cause'.split(
    ', ',
  )

/** The open differences for people, scripts or spreadsheets, and what they add up to. Ages are in days of India. */
export function writeOpen(
  differences: AsyncIterable<WithMerchantOrderId<Difference>>,
  now: Date,
  form: WrittenAs,
): AsyncIterable<string> {
  const withAges = aged(differences, toIstDay(now))
  if (form === 'csv') return spreadsheet(COLUMNS, csvRows(withAges))
  return form === 'json' ? toJson(withAges) : toText(withAges)
}

type Aged = WithMerchantOrderId<Difference> & { ageDays: number }

async function* aged(differences: AsyncIterable<WithMerchantOrderId<Difference>>, today: string): AsyncGenerator<Aged> {
  for await (const one of differences) yield { ...one, ageDays: countDays(one.day, today) - 1 }
}

async function* toText(differences: AsyncIterable<Aged>): AsyncGenerator<string> {
  let [mid, count, owed] = ['', 0, 0n]
  for await (const one of differences) {
    if (count === 0 || one.mid !== mid) yield `${one.mid}\n`
    mid = one.mid
    count += 1
    owed += one.owed
    yield line(`${counted(one.ageDays, 'day')}: ${spellDifference(one)}`)
  }
  yield count === 0 ? 'nothing is open\n' : line(`${count} open, together ${toSumText(owed)}`).trimStart()
}

async function* toJson(differences: AsyncIterable<Aged>): AsyncGenerator<string> {
  let [count, owed] = [0, 0n]
  yield '{"differences":['
  for await (const one of differences) {
    yield `${count === 0 ? '' : ','}${JSON.stringify(wireDifference(one))}`
    count += 1
    owed += one.owed
  }
  yield `],"count":${count},"owed":"${toSumText(owed)}"}\n`
}

async function* csvRows(differences: AsyncIterable<Aged>): AsyncGenerator<Record<string, unknown>> {
  for await (const { id, ...one } of differences) yield { ...one, differenceId: id }
}
