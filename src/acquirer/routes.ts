import type { FastifyInstance } from 'fastify'
import { notificationRefused, notificationUnsigned, orderNotFound } from '../errors.ts'
import { ok } from '../http/envelope.ts'
import { registerSignedJson, type ZodTypeProvider } from '../http/input.ts'
import { isOrderId } from '../payments/intent.ts'
import { recordReport } from '../payments/record-report.ts'
import type { Reports } from '../payments/report-repository.ts'
import { PaymentNotification } from './schema.ts'
import { isSigned } from './signature.ts'

export type AcquirerRoutes = { reports: Reports; secrets: readonly string[]; now: () => Date }

/** How the service learns of a payment. `app` must be a scope of its own: only its bodies are signed. */
export function acquirerRoutes(app: FastifyInstance, { reports, secrets, now }: AcquirerRoutes) {
  registerSignedJson(app, (request, body) => {
    if (!isSigned(request.headers['x-signature'], body, secrets, now())) throw notificationUnsigned()
  })

  // Before the fields are judged: a refusal of a known order can then be found by it.
  app.addHook('preValidation', async (request) => {
    const orderId = (request.body as { orderId?: unknown } | null)?.orderId
    if (typeof orderId === 'string' && isOrderId(orderId)) request.orderId = orderId
  })

  const options = { schema: { body: PaymentNotification }, attachValidation: true }
  app.withTypeProvider<ZodTypeProvider>().post('/acquirer/paymentNotification', options, async (request) => {
    if (request.validationError) {
      // It may be money, and the acquirer may not send it again after a 400.
      await reports.keepUnreadable(request.signedBody, now())
      throw request.validationError
    }
    const { orderId, status, UTR: utr, amount, paidAt } = request.body
    const report = { orderId, status, utr, amount, paidAt }
    const recorded = await recordReport(reports, report, { reason: 'notification', now })
    if (!('exception' in recorded)) return ok('Notification recorded', {})
    switch (recorded.exception) {
      case 'double payment':
      case 'failure after success':
        return ok('Notification recorded', {})
      case 'unknown order':
        throw orderNotFound()
      default:
        throw notificationRefused(recorded.exception)
    }
  })
}
