import type { Database } from '../../platform/db/pool.ts'
import { addDays } from '../ledger/bank-days.ts'
import type { Difference } from '../ledger/differences.ts'
import { createLedger, type Ledger } from '../ledger/read-ledger.ts'
import { type ClosedBase, daysSince, readClosedBase } from './closed-items.ts'
import { type WithMerchantOrderId, withMerchantOrderIds } from './merchant-order-ids.ts'
import { inSnapshot, type Merchants, midsOf } from './reconcile.ts'
import { differencesOfDays } from './reconcile-merchant.ts'

/**
 * Everything that is open in the books of all days until `to`: merchant after merchant, oldest first. A month's report lists only
 * the differences of its own days, and a difference of a closed month stays open until something ends it.
 */
export function openDifferences(
  db: Database,
  { to, now, ...merchants }: Merchants & { to: string; now: Date },
): AsyncGenerator<WithMerchantOrderId<Difference>> {
  return inSnapshot(db, now, async function* (snapshot) {
    const closed = await readClosedBase(snapshot.client, now, addDays(to, 1))
    for await (const mid of midsOf(snapshot.client, merchants)) {
      const ledger = createLedger(snapshot, mid)
      yield* withMerchantOrderIds(ledger, openOfMerchant(ledger, closed, to))
    }
  })
}

/** The open differences of one merchant until `to`, oldest first. `closed` is where reading may begin. */
export async function* openOfMerchant(
  ledger: Ledger,
  closed: ClosedBase | undefined,
  to: string,
): AsyncGenerator<Difference> {
  const first = closed === undefined ? await ledger.firstDay() : undefined
  const runs = closed === undefined ? [{ from: first ?? addDays(to, 1), to }] : await daysSince(ledger, closed, to)
  for (const days of runs) {
    if (days.from > days.to) continue
    for await (const difference of differencesOfDays(ledger, days)) {
      if (difference.resolution === null) yield difference
    }
  }
}
