import type { FastifyInstance, FastifyRequest } from 'fastify'
import { idempotencyKeyReused, orderIdExists, orderNotFound } from '../errors.ts'
import { ok, txn } from '../http/envelope.ts'
import type { ZodTypeProvider } from '../http/input.ts'
import { authorizeMerchant } from '../merchants/authorize.ts'
import type { Merchant } from '../merchants/merchants.ts'
import { readIdempotency } from './idempotency.ts'
import { buildIntent, type Intent } from './intent.ts'
import { outcome } from './outcome.ts'
import type { Intents } from './repository.ts'
import { CheckPaymentStatus, CreatePaymentIntent } from './schema.ts'
import { toOrderRequestWire, toWire } from './wire.ts'

export type PaymentRoutes = {
  intents: Pick<Intents, 'insert' | 'findStatus'>
  now: () => Date
  expiryMinutes: number
  publicUrl: string
  /** The field dynamicQR: a link, or the image itself, as the merchant is set. */
  dynamicQr: (intent: Intent, merchant: Merchant) => string
}

/** A merchant makes intents, and asks what became of them. */
export function paymentRoutes(v1: FastifyInstance, deps: PaymentRoutes) {
  const { intents, now, expiryMinutes, publicUrl, dynamicQr } = deps
  const app = v1.withTypeProvider<ZodTypeProvider>()

  app.post('/payments/createPaymentIntent', { schema: { body: CreatePaymentIntent } }, async (request) => {
    const { intent, merchant } = await create('createPaymentIntent', request)
    return ok('Payment intent created successfully', toWire(intent, dynamicQr(intent, merchant)))
  })

  app.post('/payments/createOrderRequest', { schema: { body: CreatePaymentIntent } }, async (request) => {
    const { intent } = await create('createOrderRequest', request)
    return ok('Order request created successfully', toOrderRequestWire(intent, publicUrl))
  })

  // Plugins call a paid order failed when this call is 503.
  const statusOptions = { schema: { body: CheckPaymentStatus }, config: { patient: true } } as const
  app.post('/payments/checkPaymentStatus', statusOptions, async (request) => {
    const { body, caller } = request
    const { mid } = authorizeMerchant(caller, body.mid)
    const payment = await request.patiently(() => intents.findStatus(mid, body.order_id))
    if (!payment) throw orderNotFound()
    const { txnStatus, msg } = outcome(payment, now())
    if (txnStatus === 'PENDING') return txn(txnStatus, msg)
    const data = { amount: payment.amount, UTR: payment.utr ?? '', order_id: body.order_id }
    return txn(txnStatus, msg, { data })
  })

  type CreateRequest = Pick<FastifyRequest, 'caller' | 'headers'> & { body: CreatePaymentIntent }

  /** One guard for both ways to make an intent. */
  async function create(operation: string, { body, caller, headers }: CreateRequest) {
    const merchant = authorizeMerchant(caller, body.mid)
    const idempotency = readIdempotency(headers['idempotency-key'], operation, body)
    const stored = await intents.insert(buildIntent(body, merchant, now(), expiryMinutes, idempotency))
    if ('intent' in stored) return { intent: stored.intent, merchant }
    throw stored.refused === 'order id exists' ? orderIdExists() : idempotencyKeyReused()
  }
}
