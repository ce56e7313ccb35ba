import type { Database } from '../../platform/db/pool.ts'
import { addDays } from '../ledger/bank-days.ts'
import type { Discrepancy } from '../ledger/discrepancies.ts'
import { createList, judgeDays, type Unlisted } from '../reading/book.ts'
import {
  type MerchantSnapshot,
  readMerchant,
  type WithMerchantOrderId,
  withMerchantOrderIds,
} from '../reading/merchant.ts'
import {
  inSnapshot,
  isMerchantError,
  type MerchantError,
  type Merchants,
  readMids,
  readOne,
} from '../reading/snapshot.ts'
import { type ClosedBase, daysSince, firstDayOf, readClosedBase } from './closed-items.ts'

/** Open discrepancies of one merchant, oldest first. */
export type OpenOfMerchant = { mid: string; discrepancies: WithMerchantOrderId<Discrepancy>[]; unlisted: Unlisted[] }

/**
 * Yields every open discrepancy until `to`, merchant by merchant. A monthly report lists only discrepancies of its own
 * days, but a discrepancy of a closed month stays open until an entry or a settlement line clears it.
 */
export function openDiscrepancies(
  db: Database,
  { to, now, ...merchants }: Merchants & { to: string; now: Date },
): AsyncGenerator<OpenOfMerchant | MerchantError> {
  return inSnapshot(db, now, async function* (snapshot) {
    const closed = await readClosedBase(snapshot, addDays(to, 1))
    for (const mid of await readMids(snapshot.client, merchants)) {
      const open = await readOne(snapshot, mid, async () => {
        const merchant = await readMerchant(snapshot, mid)
        const list = createList()
        await findOpen(merchant, { closed, to }, list.add)
        const { discrepancies, unlisted } = list.end()
        return { mid, discrepancies: await withMerchantOrderIds(merchant, discrepancies), unlisted }
      })
      if (isMerchantError(open) || open.discrepancies.length > 0) yield open
    }
  })
}

/**
 * Passes the merchant's open discrepancies until `to` to `onFound` in batches. With `closed`, continues from the closed
 * month instead of judging all earlier days.
 */
export async function findOpen(
  merchant: MerchantSnapshot,
  { closed, to }: { closed: ClosedBase | undefined; to: string },
  onFound: (open: readonly Discrepancy[], items: number) => void,
): Promise<void> {
  const runs =
    closed === undefined ? [{ from: await firstDayOf(merchant, to), to }] : await daysSince(merchant, closed, to)
  for (const days of runs) {
    if (days.from > days.to) continue
    await judgeDays(merchant, days, (found, items) => {
      onFound(
        found.filter(({ resolution }) => resolution === null),
        items,
      )
    })
  }
}
