import type { Issuer } from '../acquirer/issuer.ts'
import { isRefusedRow } from '../db/outage.ts'
import { idempotencyKeyReused, orderIdExists } from '../errors.ts'
import type { OperationRequest } from '../http/operation.ts'
import { authorizeMerchant } from '../tenants/authorize.ts'
import type { Merchant } from '../tenants/merchants.ts'
import { readIdempotency } from './idempotency.ts'
import { buildIntent, type Intent } from './intent.ts'
import type { InsertOutcome, Intents } from './intents.ts'
import type { NewPayment } from './new-payment.ts'

export type NewPaymentDependencies = {
  intents: Pick<Intents, 'insert' | 'findEarlier'>
  now: () => Date
  elapsedMs: () => number
  expiryMinutes: number
  /** The acquirer that makes the links of a merchant; undefined where we make them. Throws 503 if it is not set up. */
  issuerOf: (merchant: Merchant) => Issuer | undefined
}

/**
 * Stores the intent that `request` asks `operation` for, or finds the one that it repeats. Throws 403 for another merchant,
 * 409 where the order_id is taken, 422 where the Idempotency-Key stands for another request.
 */
export async function storeNewPayment(
  operation: string,
  { body, caller, headers }: OperationRequest<typeof NewPayment>,
  { intents, now, elapsedMs, expiryMinutes, issuerOf }: NewPaymentDependencies,
): Promise<{ intent: Intent; merchant: Merchant }> {
  const merchant = authorizeMerchant(caller, body.mid)
  const idempotency = readIdempotency(headers['idempotency-key'], operation, body)
  const intent = buildIntent(body, merchant, now(), expiryMinutes, idempotency)
  const issuer = issuerOf(merchant)
  const stored = issuer
    ? await insertWithLink(intent, merchant, issuer, { intents, began: elapsedMs() })
    : await intents.insert(intent)
  if ('intent' in stored) return { intent: stored.intent, merchant }
  throw stored.refused === 'order id exists' ? orderIdExists() : idempotencyKeyReused()
}

/**
 * Asks the acquirer for a link, then stores the intent with it. A repeat costs no call of the acquirer. When another request
 * with the same order_id was faster, or PostgreSQL refuses the intent, nobody has seen this link, and it is closed. Throws 503
 * without a link; nothing is stored then.
 */
async function insertWithLink(
  intent: Intent,
  { acquirerMerchantId }: Merchant,
  issuer: Issuer,
  { intents, began }: { intents: Pick<Intents, 'insert' | 'findEarlier'>; began: number },
): Promise<InsertOutcome> {
  const earlier = await intents.findEarlier(intent)
  if (earlier) return earlier
  const issued = await issuer.prepare(intent, acquirerMerchantId ?? '', began)
  const stored = await intents.insert({ ...intent, issued }).catch((error) => {
    // After any other failure the intent may be stored all the same, and a repeat finds it: its link has to stay open.
    if (isRefusedRow(error)) issuer.close(issued)
    throw error
  })
  const isOurs = 'intent' in stored && stored.intent.orderId === intent.orderId
  if (!isOurs) issuer.close(issued)
  return stored
}
