import type { Database } from '../../platform/db/pool.ts'
import { type ClosedMonth, daysOfMonth, type MonthChange, readClosedMonths } from '../closing/closed-months.ts'
import { isMerchantError, type MerchantError } from '../reading/merchant-errors.ts'
import { isEnd, reconcile } from './reconcile.ts'

type ChangedMonth = Omit<ClosedMonth, 'figures'> & {
  changed: (({ mid: string } & Pick<MonthChange, 'figures' | 'rows'>) | MerchantError)[]
}

/**
 * Returns the closed months, newest first, with each merchant's changes since the month was closed. Reconciles every
 * closed month again, which may be slow.
 */
export async function changesOfClosedMonths(db: Database, now: Date): Promise<ChangedMonth[]> {
  const months: ChangedMonth[] = []
  for (const { figures: _, ...closed } of await readClosedMonths(db, { known: now })) {
    const changed: ChangedMonth['changed'] = []
    for await (const book of reconcile(db, { ...daysOfMonth(closed.month), now })) {
      if (isEnd(book)) continue
      if (isMerchantError(book)) changed.push(book)
      else if (book.changed) changed.push({ mid: book.mid, figures: book.changed.figures, rows: book.changed.rows })
    }
    months.push({ ...closed, changed })
  }
  return months
}
