import type { Database, Queryable } from '../../platform/db/pool.ts'
import { query } from '../../platform/db/query.ts'
import { addPaise, type Paise } from '../../platform/money.ts'
import { addDays, boundsOf } from '../ledger/bank-days.ts'
import { readClosedBase } from './closed-items.ts'
import { readMerchant } from './merchant.ts'
import { findOpen } from './open-discrepancies.ts'
import { readMids, readSnapshot } from './snapshot.ts'

type Item = { item: string; day: string; balance: Paise }

/**
 * Stores the balance that a month carries forward, merchant by merchant: each open discrepancy, and the remainder of
 * the sum of all movements. Runs in the transaction of `client`.
 */
export function storeClosedItems(
  db: Database,
  client: Queryable,
  { month, to, closedAt }: { month: string; to: string; closedAt: Date },
): Promise<void> {
  return readSnapshot(db, closedAt, async (snapshot) => {
    const closed = await readClosedBase(snapshot, addDays(to, 1))
    const sums = await SUMS(snapshot.client, { known: closedAt, end: boundsOf({ from: to, to }).end })
    const rests = new Map(sums.map(({ mid, sum }) => [mid, sum]))
    for (const mid of new Set([...(await readMids(snapshot.client, {})), ...rests.keys()])) {
      const items: Item[] = []
      await findOpen(await readMerchant(snapshot, mid), { closed, to }, (open) => {
        items.push(...open.map(({ id, day, owed }) => ({ item: id, day, balance: owed })))
      })
      const rest = items.reduce((left, { balance }) => addPaise(left, -balance), rests.get(mid) ?? 0)
      if (rest !== 0) items.push({ item: '', day: to, balance: rest })
      await INSERT(client, { mid, month, items: JSON.stringify(items) })
    }
  })
}

const SUMS = query<{ mid: string; sum: Paise }, { known: Date; end: Date }>(`
  select mid, sum(amount_paise)::bigint as sum
    from ledger
   where at < :end and (recorded_at <= :known) is true and replaced_at > :known
   group by mid`)

const INSERT = query<object, { mid: string; month: string; items: string }>(`
  insert into closed_items (mid, month, item, day, balance_paise)
  select :mid, :month, item, day, balance
    from json_to_recordset(:items) as i (item text, day date, balance bigint)`)
