import { createHmac, timingSafeEqual } from 'node:crypto'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import * as z from 'zod'
import { Failure, notFound, notificationRejected, orderNotFound, requestTimeout } from '../../errors.ts'
import type { Limits } from '../../limits.ts'
import { reportedUtr, utrOfId } from '../../platform/fields.ts'
import { registerSignedJson } from '../../platform/http/input.ts'
import { success } from '../../platform/http/operation.ts'
import type { DisputeReport } from '../disputes/dispute.ts'
import type { Disputes } from '../disputes/record-dispute.ts'
import { isOrderId } from '../payments/intent.ts'
import type { Contradiction, PaymentReport } from '../payments/outcome.ts'
import type { Reports } from '../payments/reports.ts'
import type { StatusChecks } from '../payments/status-checks.ts'
import type { RefundUpdates } from '../refunds/record-update.ts'
import type { RefundUpdate } from '../refunds/refund.ts'
import { accountKind, accountName } from './accounts.ts'
import type { DisputeReader } from './check-disputes.ts'
import { createPlaces, type Place } from './places.ts'

export type NotificationDependencies = {
  reports: Reports
  refunds: Pick<RefundUpdates, 'recordNotification' | 'scheduleSoon'>
  disputes: Pick<Disputes, 'record'>
  readDisputesSoon: DisputeReader['readSoon']
  statusChecks: Pick<StatusChecks, 'scheduleSoon'>
  now: () => Date
}

/**
 * Content of a notification. An unauthenticated notification only names an order or a refund, or states that a dispute
 * changed, and the service then checks the status at the acquirer.
 */
export type Notification =
  | { payment: PaymentReport }
  | { refund: RefundUpdate }
  | { dispute: DisputeReport }
  | { readDisputes: true }
  | { orderId: string }
  | { ourRefundId: string }

/** The fields of a notification before validation. */
export type Fields = Record<string | symbol, unknown>

/** Reads and verifies the notifications of one acquirer account. */
export type Notifications = {
  /** Parses the body; JSON.parse by default. */
  parse?: (json: string) => unknown
  /**
   * Reads a notification in the acquirer's own format. Returns undefined for an event that changes nothing; throws 400
   * for an unreadable event. Absent if the acquirer uses a documented operation of the service.
   */
  read?: (fields: Fields) => Notification | undefined
  /** Throws 401 unless the signature of `body` is valid. */
  requireSignature: (request: FastifyRequest, body: Buffer, now: Date) => void
  /**
   * Returns the orderId for the log. Reads the orderId before validation, because rejected notifications are logged
   * too.
   */
  orderIdOf: (fields: Fields) => unknown
  /** Returns the part of an unreadable signed body that may be stored, without customer data. */
  toStored: (body: Buffer) => Buffer
}

/**
 * The bank reference of a payment. A value in an unknown format is treated as absent, because the acquirer's payment id
 * also identifies the payment.
 */
export const bankReference = reportedUtr.optional().catch(undefined)

/**
 * The acquirer's payment id. A value in an unknown format is treated as absent. A placeholder is also treated as
 * absent, because many payments would share it. An id has a letter or digit, so that the id can replace
 * the UTR.
 */
export const paymentId = z
  .string()
  .regex(/^[A-Za-z0-9_-]{1,64}$/)
  .refine((id) => reportedUtr.safeParse(utrOfId(id)).data !== undefined)
  .optional()
  .catch(undefined)

/**
 * A zod refinement: an object whose field `status` is `success` needs a bank reference or the acquirer's payment id.
 */
export const namedWithSuccess =
  <Name extends string>(status: Name, success: string, [reference, id]: readonly [Name, Name]) =>
  (payment: { [Field in Name]?: unknown }, context: z.core.$RefinementCtx) => {
    if (payment[status] !== success || payment[reference] !== undefined || payment[id] !== undefined) return
    context.addIssue({ code: 'custom', path: [reference], message: `or ${id} is required with ${success}` })
  }

/** A zod refinement: an object whose field `status` is `success` needs every field in `needed`. */
export const requiredWithSuccess =
  <Name extends string>(status: Name, success: string, needed: readonly Name[]) =>
  (payment: { [Field in Name]?: unknown }, context: z.core.$RefinementCtx) => {
    if (payment[status] !== success) return
    for (const name of needed) {
      if (payment[name] !== undefined) continue
      context.addIssue({ code: 'custom', path: [name], message: `is required with ${success}` })
    }
  }

export const NOTIFICATION_RECORDED = success('Notification recorded', {
  description: 'Recorded.',
  name: 'NotificationRecorded',
  data: z.strictObject({}),
  example: {},
})

export const NOTIFICATION_ERRORS = [
  orderNotFound(),
  notificationRejected('amount differs'),
  notificationRejected('UTR of another order'),
]

/**
 * Records an acquirer's payment report. Throws 404 for an unknown order and 409 for a report that contradicts the
 * stored data. A disabled account stores no exception for an unknown order. A success waits for its batch without a
 * slot, so that the batch contains more notifications of an account than the account has slots.
 */
export async function recordNotification(
  { reports, now }: NotificationDependencies,
  report: PaymentReport,
  { place, isDisabled }: Pick<FastifyRequest, 'place'> & { isDisabled: boolean },
) {
  if (report.status === 'SUCCESS') {
    place.free()
    if (await reports.recordFirst(report, now, place.check)) return {}
    await place.take()
  }
  const saves = (kind: Contradiction) => !(isDisabled && kind === 'unknown order')
  const recorded = await reports.record(report, { source: 'notification', now, saves })
  if (!('exception' in recorded)) return {}
  switch (recorded.exception) {
    case 'double payment':
    case 'failure after success':
      return {}
    case 'unknown order':
      throw orderNotFound()
    default:
      throw notificationRejected(recorded.exception)
  }
}

/**
 * Records an acquirer's refund update. Throws 404 for an unknown refund and 409 for an update that contradicts the
 * stored refund.
 */
async function recordRefund(account: string, { refunds, now }: NotificationDependencies, update: RefundUpdate) {
  const recorded = await refunds.recordNotification(account, update, now())
  if (recorded === undefined) throw orderNotFound()
  if (recorded.exception === 'refund differs') throw notificationRejected('refund differs')
  return {}
}

/** Records an acquirer's report of a dispute. Throws 404 for an unknown payment, so that the acquirer repeats it. */
async function recordDispute(
  { account, isDisabled }: Notifier,
  { disputes, now }: NotificationDependencies,
  report: DisputeReport,
) {
  const recorded = await disputes.record(account, report, { source: 'notification', now, isDisabled })
  if ('exception' in recorded && recorded.exception === 'unknown dispute') throw orderNotFound()
  return {}
}

/**
 * Records a notification in the acquirer's own format. Schedules a status check instead if the notification only names
 * an order or a refund.
 */
async function recordOwnForm(
  { notified, place }: FastifyRequest,
  dependencies: NotificationDependencies,
  notification: Notification,
) {
  const { account, isDisabled } = notified
  if ('payment' in notification) return recordNotification(dependencies, notification.payment, { place, isDisabled })
  if ('refund' in notification) return recordRefund(account, dependencies, notification.refund)
  if ('dispute' in notification) return recordDispute(notified, dependencies, notification.dispute)
  if ('readDisputes' in notification) {
    dependencies.readDisputesSoon(account)
    return {}
  }
  const { statusChecks, refunds, now } = dependencies
  const isKnown =
    'orderId' in notification
      ? await statusChecks.scheduleSoon(account, notification.orderId, now())
      : await refunds.scheduleSoon(account, notification.ourRefundId, now())
  if (!isKnown) throw orderNotFound()
  return {}
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The acquirer whose notifications the route receives. */
    acquirer?: string
  }
  interface FastifyRequest {
    /** The acquirer account that sent the notification, on routes registered by `acceptNotifications`. */
    notified: Notifier
    /** The concurrency slot of the notification at its acquirer account. */
    place: Place
    /** Whether the response to the notification is being sent. */
    hasResponse: boolean
  }
}

/**
 * An acquirer account that sends notifications. A disabled account may report only on its own orders and refunds. The
 * service rejects all other notifications from a disabled account with the usual error, and does not store them.
 */
export type Notifier = { account: string; isDisabled: boolean; notifications: Notifications }

/** The path under PUBLIC_URL at which the service receives an account's notifications in the acquirer's own format. */
export const notificationPath = (acquirer: string, account?: string) =>
  `/acquirer/${acquirer}/notification${account === undefined ? '' : `/${account}`}`

/**
 * Registers the notification routes of an acquirer: one route for the account `default`, one route for all other
 * accounts. The OpenAPI documents omit these routes.
 */
export function routesOfOwnForm(app: FastifyInstance, acquirer: string, dependencies: NotificationDependencies) {
  for (const path of [notificationPath(acquirer), notificationPath(acquirer, ':account')]) {
    app.post<{ Body: Fields }>(path, { config: { acquirer } }, async (request) => {
      const notification = request.notified.notifications.read?.(request.body)
      const recorded = notification ? await recordOwnForm(request, dependencies, notification) : {}
      return NOTIFICATION_RECORDED.toBody(recorded)
    })
  }
}

export type Receiving = Pick<NotificationDependencies, 'reports' | 'now'> & {
  notifierOf: (account: string) => Promise<Notifier | undefined>
  limits: Pick<Limits, 'body' | 'reports'>
}

/**
 * Verifies and accepts signed notifications on the routes of `app`. `notifierOf` returns the notifications of an
 * account that is set up. `app` must be a separate Fastify scope, because this function sets its error handler.
 */
export function acceptNotifications(app: FastifyInstance, { reports, now, notifierOf, limits }: Receiving) {
  const placeOf = createPlaces(limits.reports.concurrentOfAccount)
  // Registers each route with a trailing slash too, because operators type the URL by hand at the acquirer, whose
  // server cannot correct a wrong URL.
  app.addHook('onRoute', (route) => {
    if (!route.url.endsWith('/')) app.route({ ...route, url: `${route.url}/` })
  })
  app.decorateRequest('notified')
  app.decorateRequest('place')
  app.decorateRequest('hasResponse', false)
  app.addHook('onRequest', async (request) => {
    const { account } = request.params as { account?: string }
    const name = accountName(request.routeOptions.config.acquirer ?? '', account)
    const notifier = await notifierOf(name)
    request.accountKind = accountKind(name, notifier?.isDisabled ?? false)
    if (notifier === undefined) throw notFound()
    request.notified = notifier
    request.acquirerAccount = notifier.account
  })
  registerSignedJson(app, {
    fieldLimit: limits.body.fields,
    parse: ({ notified }, json) => (notified.notifications.parse ?? JSON.parse)(json),
    async accept(request, body, reply) {
      const { account, notifications } = request.notified
      notifications.requireSignature(request, body, now())
      // Skips the notification if its sender has disconnected or has received an error, because the acquirer sends the
      // notification again.
      request.place = placeOf(account, () => {
        if (reply.raw.closed || request.hasResponse) throw requestTimeout()
      })
      await request.place.take()
    },
  })
  // Releases the slot on response, not on disconnect, because a client may disconnect while its notification is being
  // stored.
  app.addHook('onSend', async (request) => {
    request.hasResponse = true
    request.place?.free()
  })
  app.addHook('preValidation', (request, _reply, done) => {
    const orderId = request.notified.notifications.orderIdOf(request.body as Fields)
    if (typeof orderId === 'string' && isOrderId(orderId)) request.orderId = orderId
    done()
  })
  // Stores a signed body that is rejected with 400, because the body may report a payment and may never be sent again.
  app.setErrorHandler(async (error, { signedBody, notified }) => {
    if (signedBody && !notified.isDisabled && error instanceof Failure && error.statusCode === 400) {
      await reports.saveUnreadable(notified.notifications.toStored(signedBody), notified.account, now())
    }
    throw error
  })
}

/** Whether `header` is the base64 HMAC-SHA256 of `parts` under one of `secrets`, compared in constant time. */
export function isSigned(header: unknown, secrets: readonly string[], ...parts: readonly (string | Buffer)[]): boolean {
  if (typeof header !== 'string' || header.length > 64) return false
  const signature = Buffer.from(header, 'base64')
  let signed = false
  for (const secret of secrets) {
    const hmac = createHmac('sha256', secret)
    for (const part of parts) hmac.update(part)
    const expected = hmac.digest()
    signed = (signature.length === expected.length && timingSafeEqual(expected, signature)) || signed
  }
  return signed
}

/**
 * Returns the JSON of `body` with only the fields in `names`, at any depth. Other fields may contain customer data.
 */
export function onlyFields(body: Buffer, names: string[]): Buffer {
  try {
    return Buffer.from(JSON.stringify(JSON.parse(body.toString('utf8')), names))
  } catch {
    return Buffer.from('not JSON')
  }
}
