import { idempotencyKeyReused, orderIdExists } from '../errors.ts'
import type { OperationRequest } from '../http/operation.ts'
import { authorizeMerchant } from '../merchants/authorize.ts'
import type { Merchant } from '../merchants/merchants.ts'
import { readIdempotency } from './idempotency.ts'
import { buildIntent, type Intent } from './intent.ts'
import type { Intents } from './intents.ts'
import type { NewPayment } from './new-payment.ts'

export type NewPaymentDependencies = { intents: Pick<Intents, 'insert'>; now: () => Date; expiryMinutes: number }

/**
 * Stores the intent that `request` asks `operation` for, or finds the one that it repeats. Throws 403 for another merchant,
 * 409 where the order_id is taken, 422 where the Idempotency-Key stands for another request.
 */
export async function storeNewPayment(
  operation: string,
  { body, caller, headers }: OperationRequest<typeof NewPayment>,
  { intents, now, expiryMinutes }: NewPaymentDependencies,
): Promise<{ intent: Intent; merchant: Merchant }> {
  const merchant = authorizeMerchant(caller, body.mid)
  const idempotency = readIdempotency(headers['idempotency-key'], operation, body)
  const stored = await intents.insert(buildIntent(body, merchant, now(), expiryMinutes, idempotency))
  if ('intent' in stored) return { intent: stored.intent, merchant }
  throw stored.refused === 'order id exists' ? orderIdExists() : idempotencyKeyReused()
}
