import type { MonthChange } from '../../src/books/closing/closed-months.ts'
import type { Discrepancy } from '../../src/books/ledger/discrepancies.ts'
import type { FileForm } from '../../src/books/ledger/judge.ts'
import type { Balance, Sums, Totals } from '../../src/books/ledger/sums.ts'
import type { WithMerchantOrderId } from '../../src/books/reading/merchant.ts'
import { isMerchantError, type MerchantError, merchantErrorText } from '../../src/books/reading/snapshot.ts'
import { type End, isEnd, type OpenException, type Requested, reconcile } from '../../src/books/reports/reconcile.ts'
import type { Database } from '../../src/platform/db/pool.ts'

/** A part of a reconciliation report, with its merchant. */
export type Finding =
  | { type: 'merchant'; mid: string; file: FileForm }
  | ({ type: 'difference' } & WithMerchantOrderId<Discrepancy>)
  | ({ type: 'exception' } & WithMerchantOrderId<OpenException>)
  | ({ type: 'changed'; mid: string } & MonthChange)
  | ({ type: 'day'; mid: string; day: string } & Sums & Balance)
  | { type: 'total'; mid: string; sums: Totals }
  | ({ type: 'end'; sums: Totals } & Omit<End, 'total'>)

/** Returns the report as a flat list of its parts, in sequence, which is easy to filter. */
export async function findingsOf(db: Database, requested: Requested): Promise<Finding[]> {
  const findings: Finding[] = []
  for (const book of await readAll(reconcile(db, requested))) {
    if (isEnd(book)) {
      const { total, ...end } = book
      findings.push({ type: 'end', sums: total, ...end })
      continue
    }
    const { mid, changed } = book
    findings.push(
      { type: 'merchant', mid, file: book.form },
      ...book.discrepancies.map((one) => ({ type: 'difference' as const, ...one })),
      ...book.exceptions.map((one) => ({ type: 'exception' as const, ...one })),
      ...(changed ? [{ type: 'changed' as const, mid, ...changed }] : []),
      ...book.days.map((day) => ({ type: 'day' as const, mid, ...day })),
      { type: 'total', mid, sums: book.total },
    )
  }
  return findings
}

/** Returns all rows. Throws if a merchant cannot be reconciled. */
export async function readAll<T extends object>(rows: AsyncIterable<T | MerchantError>): Promise<T[]> {
  const found: T[] = []
  for await (const row of rows) {
    if (isMerchantError(row)) throw new Error(merchantErrorText(row))
    found.push(row)
  }
  return found
}
