import type { Database } from '../../platform/db/pool.ts'
import { type ClosedMonth, daysOfMonth, type MonthChange, readClosedMonths } from './closed-months.ts'
import { reconcile } from './reconcile.ts'

type ChangedMonth = Omit<ClosedMonth, 'figures'> & {
  changed: ({ mid: string } & Pick<MonthChange, 'figures' | 'by'>)[]
}

/** The closed months, newest first, and what the books of each merchant say otherwise by now. Reconciles each month. */
export async function changesOfClosedMonths(db: Database, now: Date): Promise<ChangedMonth[]> {
  const months: ChangedMonth[] = []
  for (const { figures: _, ...closed } of await readClosedMonths({ client: db, known: now })) {
    const changed: ChangedMonth['changed'] = []
    for await (const finding of reconcile(db, { ...daysOfMonth(closed.month), now })) {
      if (finding.type !== 'changed') continue
      const { mid, figures, by } = finding
      changed.push({ mid, figures, by })
    }
    months.push({ ...closed, changed })
  }
  return months
}
