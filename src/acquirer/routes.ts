import type { FastifyInstance } from 'fastify'
import { notificationRefused, notificationUnsigned, orderNotFound } from '../errors.ts'
import { ok } from '../http/envelope.ts'
import { registerSignedJson, type ZodTypeProvider } from '../http/input.ts'
import { recordReport } from '../payments/record-report.ts'
import type { Reports } from '../payments/report-repository.ts'
import { PaymentNotification } from './schema.ts'
import { isSigned } from './signature.ts'

export type AcquirerRoutes = { reports: Reports; secrets: readonly string[]; now: () => Date }

/** Contract C5: how the service learns of a payment. `app` must be a scope of its own: only its bodies are signed. */
export function acquirerRoutes(app: FastifyInstance, { reports, secrets, now }: AcquirerRoutes) {
  registerSignedJson(app, (request, body) => {
    if (!isSigned(request.headers['x-signature'], body, secrets, now())) throw notificationUnsigned()
  })

  app
    .withTypeProvider<ZodTypeProvider>()
    .post('/acquirer/paymentNotification', { schema: { body: PaymentNotification } }, async ({ body }) => {
      const { orderId, status, UTR: utr, amount, paidAt } = body
      const report = { orderId, status, utr, amount, paidAt }
      const recorded = await recordReport(reports, report, { reason: 'notification', now: now() })
      if (!('exception' in recorded) || recorded.exception === 'double payment') return ok('Notification recorded', {})
      if (recorded.exception === 'unknown order') throw orderNotFound()
      throw notificationRefused(recorded.exception)
    })
}
