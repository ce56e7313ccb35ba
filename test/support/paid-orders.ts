import { newId } from '../../src/gateway/payments/intent.ts'
import type { Database } from '../../src/platform/db/pool.ts'

type Paid = { mid: string; utr: string; paidAt: Date; madeAt?: Date; reportedAt?: Date; orderId?: string } & {
  rupees?: number
  acquirer?: string
}

/** Stores a paid order, by default of ₹200, as a notification would have, and returns its orderId. */
export async function storePaidOrder(
  db: Database,
  { mid, utr, paidAt, madeAt = paidAt, reportedAt = paidAt, orderId = newId(madeAt), ...paid }: Paid,
) {
  const { rupees = 200, acquirer = 'direct' } = paid
  const paise = rupees * 100
  await db.query(
    `insert into payment_intents (mid, order_id, merchant_order_id, amount_paise, redirect_url, note, customer_name, customer_email,
       customer_mobile, payee_vpa, payee_name, payee_mcc, created_at, expires_at, status, utr)
     values ($1, $2, $2, $5, 'https://shop.example/', 'Order', 'Asha Rao', 'asha@shop.example', '9876543210',
       'chaipoint@examplebank', 'Chai Point', '5814', $3, $3, 'SUCCESS', $4)`,
    [mid, orderId, madeAt, utr, paise],
  )
  await db.query(
    `insert into payments (mid, utr, order_id, amount_paise, paid_at, received_at, kind, acquirer, source)
     values ($1, $2, $3, $6, $4, $5, 'first', $7, 'notification')`,
    [mid, utr, orderId, paidAt, reportedAt, paise, acquirer],
  )
  return orderId
}
