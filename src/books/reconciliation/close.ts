import type { Database, Queryable } from '../../platform/db/pool.ts'
import { query } from '../../platform/db/query.ts'
import { addPaise, type Paise } from '../../platform/money.ts'
import { addDays, boundsOf } from '../ledger/bank-days.ts'
import { lockSettlements } from '../settlements/imports.ts'
import { readClosedBase } from './closed-items.ts'
import { readMerchant } from './merchant.ts'
import { type MerchantError, readOne } from './merchant-errors.ts'
import { findOpen } from './open-discrepancies.ts'
import { readMids, readSnapshot } from './snapshot.ts'

/**
 * Blocks closes until the end of the transaction. Must be the first lock of the transaction, because a close may wait
 * for a transaction that waits for one of the later locks.
 */
export const blockCloses = (client: Queryable) => BLOCK_CLOSES(client, {})

const BLOCK_CLOSES = query('lock table closed_months in row exclusive mode')

/**
 * Waits for imports of settlements and for transactions with `blockCloses`, and blocks both until the end of the
 * transaction. Locks the settlements first: an import may take minutes, in which a payment must not wait.
 */
export async function lockForClose(client: Queryable): Promise<void> {
  await lockSettlements(client)
  await BLOCK_CHANGES(client, {})
}

const BLOCK_CHANGES = query('lock table closed_months in share row exclusive mode')

type Item = { item: string; day: string; balance: Paise }

/** The balance that a month carries forward for one merchant: each open discrepancy, and the remainder of the sum. */
export type ClosedItems = { mid: string; items: Item[] }

/**
 * Returns the balance that all movements until `to` carry forward, merchant by merchant, as known at `closedAt`. Stops at
 * the first merchant that cannot be reconciled, and returns its error.
 */
export function readClosedItems(
  db: Database,
  { to, closedAt }: { to: string; closedAt: Date },
): Promise<ClosedItems[] | MerchantError> {
  return readSnapshot(db, closedAt, async (snapshot) => {
    const all: ClosedItems[] = []
    const closed = await readClosedBase(snapshot, addDays(to, 1))
    const sums = await SUMS(snapshot.client, { known: closedAt, end: boundsOf({ from: to, to }).end })
    const rests = new Map(sums.map(({ mid, sum }) => [mid, sum]))
    for (const mid of new Set([...(await readMids(snapshot.client, {})), ...rests.keys()])) {
      const items: Item[] = []
      const read = await readOne(snapshot, mid, async () => {
        await findOpen(await readMerchant(snapshot, mid), { closed, to }, (open) => {
          items.push(...open.map(({ id, day, owed }) => ({ item: id, day, balance: owed })))
        })
        return items.reduce((left, { balance }) => addPaise(left, -balance), rests.get(mid) ?? 0)
      })
      if (typeof read !== 'number') return read
      if (read !== 0) items.push({ item: '', day: to, balance: read })
      if (items.length > 0) all.push({ mid, items })
    }
    return all
  })
}

const SUMS = query<{ mid: string; sum: Paise }, { known: Date; end: Date }>(`
  select mid, sum(amount_paise)::bigint as sum
    from ledger
   where at < :end and (recorded_at <= :known) is true and replaced_at > :known
   group by mid`)

/** Stores the balance that a month carries forward. */
export async function storeClosedItems(client: Queryable, month: string, all: readonly ClosedItems[]): Promise<void> {
  for (const { mid, items } of all) await INSERT(client, { mid, month, items: JSON.stringify(items) })
}

const INSERT = query<object, { mid: string; month: string; items: string }>(`
  insert into closed_items (mid, month, item, day, balance_paise)
  select :mid, :month, item, day, balance
    from json_to_recordset(:items) as i (item text, day date, balance bigint)`)
