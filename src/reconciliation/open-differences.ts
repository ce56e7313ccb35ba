import type { Database } from '../db/pool.ts'
import { toIstDay } from '../ist.ts'
import type { Difference } from './differences.ts'
import { createMerchantBooks } from './merchant-books.ts'
import { inSnapshot, type Merchants, midsOf } from './reconcile.ts'
import { reconcileMerchant } from './reconcile-merchant.ts'

/** A difference that nobody has ended. `merchantOrderId` is the shop's own name of its order; null where no order is known. */
export type OpenDifference = Difference & { merchantOrderId: string | null }

/** Differences whose orders are looked up at once. */
const LOOKED_UP = 500

/**
 * Everything that is open in the books of all days until `to`: merchant after merchant, oldest first. A month's report lists only
 * the differences of its own days, and a difference of a closed month stays open until something ends it.
 */
export function openDifferences(
  db: Database,
  { to, now, ...merchants }: Merchants & { to: string; now: Date },
): AsyncGenerator<OpenDifference> {
  return inSnapshot(db, now, async function* (snapshot, bankDays) {
    for await (const mid of midsOf(snapshot.client, merchants)) {
      const books = createMerchantBooks(snapshot, mid)
      const from = await books.firstDay()
      if (from === undefined || from > to) continue
      let found: Difference[] = []
      for await (const finding of reconcileMerchant(books, { from, to, today: toIstDay(now), bankDays }, 0n)) {
        if (finding.type !== 'difference' || finding.resolution !== null) continue
        found.push(finding)
        if (found.length < LOOKED_UP) continue
        yield* await books.withMerchantOrderIds(found)
        found = []
      }
      yield* await books.withMerchantOrderIds(found)
    }
  })
}
