import { newId } from '../../src/gateway/payments/intent.ts'
import type { Database } from '../../src/platform/db/pool.ts'

type Paid = { mid: string; utr: string; paidAt: Date; madeAt?: Date; reportedAt?: Date; orderId?: string }

/** Stores a paid order of ₹200 as a notification would have, and returns its orderId. */
export async function storePaidOrder(
  db: Database,
  { mid, utr, paidAt, madeAt = paidAt, reportedAt = paidAt, orderId = newId(madeAt) }: Paid,
) {
  await db.query(
    `insert into payment_intents (mid, order_id, merchant_order_id, amount_paise, redirect_url, note, customer_name, customer_email,
       customer_mobile, payee_vpa, payee_name, payee_mcc, created_at, expires_at, status, utr)
     values ($1, $2, $2, 20000, 'https://shop.example/', 'Order', 'Asha Rao', 'asha@shop.example', '9876543210',
       'chaipoint@examplebank', 'Chai Point', '5814', $3, $3, 'SUCCESS', $4)`,
    [mid, orderId, madeAt, utr],
  )
  await db.query(
    `insert into payments (mid, utr, order_id, amount_paise, paid_at, received_at, kind, acquirer, source)
     values ($1, $2, $3, 20000, $4, $5, 'first', 'direct', 'notification')`,
    [mid, utr, orderId, paidAt, reportedAt],
  )
  return orderId
}
