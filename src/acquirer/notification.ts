import type { FastifyInstance, FastifyRequest, RouteShorthandOptions } from 'fastify'
import * as z from 'zod'
import { Failure, notificationRefused, orderNotFound } from '../errors.ts'
import { errorText } from '../fields.ts'
import { registerSignedJson } from '../http/input.ts'
import { type Operation, success } from '../http/operation.ts'
import { isOrderId } from '../payments/intent.ts'
import type { Report } from '../payments/outcome.ts'
import type { Reports } from '../payments/reports.ts'

/** What the notifications of every acquirer need. */
export type NotificationDependencies = { reports: Reports; now: () => Date }

/** How an acquirer's notifications are taken. */
export type Notifications = {
  operation: Operation<NotificationDependencies>
  /** Throws the 401 unless `body` is signed. */
  requireSignature: (request: FastifyRequest, body: Buffer, now: Date) => void
  /** What may be kept of a signed body that could not be read: nothing of the customer. */
  keep: (body: Buffer) => Buffer
}

/** When the money moved, or an attempt failed, as acquirers write it. */
export const isoTime = z.iso
  .datetime({ offset: true, ...errorText('must be a time in ISO 8601 with its zone') })
  .transform((time) => new Date(time))

export const NOTIFICATION_RECORDED = success('Notification recorded', {
  description: 'Recorded.',
  name: 'NotificationRecorded',
  data: z.strictObject({}),
  example: {},
})

export const NOTIFICATION_REFUSALS = [
  orderNotFound(),
  notificationRefused('amount differs'),
  notificationRefused('UTR of another order'),
]

/**
 * The route's hook that gives the log line of a refusal the orderId, which `field` holds: it runs before the fields are
 * checked.
 */
export function logOrderOf(field: string): RouteShorthandOptions {
  return {
    preValidation: (request, _reply, done) => {
      const orderId = (request.body as Record<string, unknown> | null)?.[field]
      if (typeof orderId === 'string' && isOrderId(orderId)) request.orderId = orderId
      done()
    },
  }
}

/** Records what an acquirer tells of a payment. Throws 404 for an unknown order, 409 where it contradicts what we know. */
export async function recordNotification({ reports, now }: NotificationDependencies, report: Report) {
  const recorded = await reports.record(report, { reason: 'notification', now })
  if (!('exception' in recorded)) return {}
  switch (recorded.exception) {
    case 'double payment':
    case 'failure after success':
      return {}
    case 'unknown order':
      throw orderNotFound()
    default:
      throw notificationRefused(recorded.exception)
  }
}

/** Lets `app`, a scope of its own, take the signed notifications of one acquirer. */
export function takeNotifications(
  app: FastifyInstance,
  { operation, requireSignature, keep }: Notifications,
  { fieldLimit, ...dependencies }: NotificationDependencies & { fieldLimit: number },
) {
  const { reports, now } = dependencies
  registerSignedJson(app, fieldLimit, (request, body) => requireSignature(request, body, now()))
  // What is refused with 400 although it is signed may be money, and the acquirer may not send it again.
  app.setErrorHandler(async (error, { signedBody }) => {
    if (signedBody && error instanceof Failure && error.code === 'badRequest') {
      await reports.keepUnreadable(keep(signedBody), now())
    }
    throw error
  })
  operation.register(app, dependencies)
}
