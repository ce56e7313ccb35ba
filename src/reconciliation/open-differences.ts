import type { Database } from '../db/pool.ts'
import { addDays } from '../ledger/bank-days.ts'
import type { Difference } from '../ledger/differences.ts'
import { createLedger, type Ledger } from '../ledger/read-ledger.ts'
import { type ClosedBase, daysSince, readClosedBase } from './closed-items.ts'
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
    const closed = await readClosedBase(snapshot.client, now, addDays(to, 1))
    for await (const mid of midsOf(snapshot.client, merchants)) {
      const ledger = createLedger(snapshot, mid)
      let found: Difference[] = []
      for await (const difference of openOfMerchant(ledger, closed, to)) {
        found.push(difference)
        if (found.length < LOOKED_UP) continue
        yield* await withMerchantOrderIds(ledger, found)
        found = []
      }
      yield* await withMerchantOrderIds(ledger, found)
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
