import type { FastifyInstance } from 'fastify'
import { orderIdExists } from '../errors.ts'
import { ok } from '../http/envelope.ts'
import type { ZodTypeProvider } from '../http/input.ts'
import { authorizeMerchant } from '../merchants/authorize.ts'
import type { Merchant } from '../merchants/merchants.ts'
import { buildIntent, type Intent } from './intent.ts'
import type { Intents } from './repository.ts'
import { CreatePaymentIntent } from './schema.ts'
import { toWire } from './wire.ts'

export type PaymentRoutes = {
  intents: Intents
  now: () => Date
  expiryMinutes: number
  /** The field dynamicQR: a link, or the image itself, as the merchant is set. */
  dynamicQr: (intent: Intent, merchant: Merchant) => string
}

/** Contract A2. */
export function paymentRoutes(v1: FastifyInstance, { intents, now, expiryMinutes, dynamicQr }: PaymentRoutes) {
  const app = v1.withTypeProvider<ZodTypeProvider>()

  app.post('/payments/createPaymentIntent', { schema: { body: CreatePaymentIntent } }, async ({ body, caller }) => {
    const merchant = authorizeMerchant(caller, body.mid)
    const intent = buildIntent(body, merchant, now(), expiryMinutes)
    const saved = await intents.insert(intent)
    if (!saved) throw orderIdExists()
    return ok('Payment intent created successfully', toWire(saved, dynamicQr(saved, merchant)))
  })
}
