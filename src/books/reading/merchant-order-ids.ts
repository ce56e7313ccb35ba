import { query } from '../../platform/db/query.ts'
import type { MerchantSnapshot } from './merchant.ts'

/** A row with the merchant's own `order_id`, which is null if no order is known. */
export type WithMerchantOrderId<T> = T & { merchantOrderId: string | null }

/** Adds the merchant's own `order_id` to each row. */
export async function withMerchantOrderIds<T extends { orderId: string | null }>(
  { client, mid }: Pick<MerchantSnapshot, 'client' | 'mid'>,
  all: readonly T[],
): Promise<WithMerchantOrderId<T>[]> {
  const orderIds = [...new Set(all.flatMap(({ orderId }) => (orderId === null ? [] : [orderId])))]
  const rows = orderIds.length === 0 ? [] : await MERCHANT_ORDER_IDS(client, { mid, orderIds })
  const ids = new Map<string | null, string>(rows.map((row) => [row.orderId, row.merchantOrderId]))
  return all.map((one) => ({ ...one, merchantOrderId: ids.get(one.orderId) ?? null }))
}

const MERCHANT_ORDER_IDS = query<{ orderId: string; merchantOrderId: string }, { mid: string; orderIds: string[] }>(`
  select order_id, merchant_order_id
    from payment_intents
   where mid = :mid and order_id = any (:orderIds)`)
