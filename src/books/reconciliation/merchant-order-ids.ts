import { prepared } from '../../platform/db/prepared.ts'
import type { Ledger } from '../ledger/read-ledger.ts'

/** The shop's own number of an order; null where no order is known. */
export type WithMerchantOrderId<T> = T & { merchantOrderId: string | null }

/** Orders that are looked up at once. */
const LOOKED_UP = 500

const MERCHANT_ORDER_IDS = prepared(`
  select order_id as "orderId", merchant_order_id as "merchantOrderId"
    from payment_intents
   where mid = $1 and order_id = any ($2)`)

/** What is about one merchant's orders, in its order, each with the shop's own number of the order. */
export async function* withMerchantOrderIds<T extends { orderId: string | null }>(
  { client, mid }: Pick<Ledger, 'client' | 'mid'>,
  all: AsyncIterable<T> | Iterable<T>,
): AsyncGenerator<WithMerchantOrderId<T>> {
  let found: T[] = []
  for await (const one of all) {
    found.push(one)
    if (found.length < LOOKED_UP) continue
    yield* await lookUp(found)
    found = []
  }
  yield* await lookUp(found)

  async function lookUp(some: readonly T[]): Promise<WithMerchantOrderId<T>[]> {
    const orderIds = some.flatMap(({ orderId }) => (orderId === null ? [] : [orderId]))
    if (orderIds.length === 0) return some.map((one) => ({ ...one, merchantOrderId: null }))
    const { rows } = await client.query<{ orderId: string; merchantOrderId: string }>(MERCHANT_ORDER_IDS(mid, orderIds))
    const names = new Map<string | null, string>(rows.map((row) => [row.orderId, row.merchantOrderId]))
    return some.map((one) => ({ ...one, merchantOrderId: names.get(one.orderId) ?? null }))
  }
}
