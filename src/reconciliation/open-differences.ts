import type { Database } from '../db/pool.ts'
import type { Difference } from '../ledger/differences.ts'
import { createLedger, type Ledger } from '../ledger/read-ledger.ts'
import { inSnapshot, type Merchants, midsOf } from './reconcile.ts'
import { differencesOfDays } from './reconcile-merchant.ts'

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
  return inSnapshot(db, now, async function* (snapshot) {
    for await (const mid of midsOf(snapshot.client, merchants)) {
      const ledger = createLedger(snapshot, mid)
      const from = await ledger.firstDay()
      if (from === undefined || from > to) continue
      let found: Difference[] = []
      for await (const difference of differencesOfDays(ledger, { from, to })) {
        if (difference.resolution !== null) continue
        found.push(difference)
        if (found.length < LOOKED_UP) continue
        yield* await withMerchantOrderIds(ledger, found)
        found = []
      }
      yield* await withMerchantOrderIds(ledger, found)
    }
  })
}

/** The same differences with the shop's own names of their orders. */
async function withMerchantOrderIds(
  { client, mid }: Ledger,
  differences: readonly Difference[],
): Promise<OpenDifference[]> {
  const { rows } = await client.query<{ orderId: string; merchantOrderId: string }>(
    `select order_id as "orderId", merchant_order_id as "merchantOrderId"
       from payment_intents
      where mid = $1 and order_id = any ($2)`,
    [mid, differences.map(({ orderId }) => orderId)],
  )
  const names = new Map<string | null, string>(rows.map((row) => [row.orderId, row.merchantOrderId]))
  return differences.map((one) => ({ ...one, merchantOrderId: names.get(one.orderId) ?? null }))
}
