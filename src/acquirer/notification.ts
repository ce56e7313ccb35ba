import { createHmac, timingSafeEqual } from 'node:crypto'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import * as z from 'zod'
import { Failure, notificationRefused, orderNotFound } from '../errors.ts'
import { errorText, utr } from '../fields.ts'
import { registerSignedJson } from '../http/input.ts'
import { success } from '../http/operation.ts'
import { isOrderId } from '../payments/intent.ts'
import type { Report } from '../payments/outcome.ts'
import type { Reports } from '../payments/reports.ts'
import type { RefundWord } from '../refunds/end-refund.ts'
import type { OwnRefund } from '../refunds/own-refund.ts'
import type { Progress } from '../refunds/progress.ts'

/** What the notifications of every acquirer need. */
export type NotificationDependencies = {
  reports: Reports
  refunds: Pick<Progress, 'tellOfNamed' | 'tellOfOwn'>
  now: () => Date
  log: Pick<Logger, 'error'>
}

/** What a notification tells: of a payment, of one of our refunds, or of one that the acquirer has made by itself. */
export type News = Report | RefundNews
export type RefundNews = ({ ourRefundId: string; acquirer: string; word: RefundWord } | OwnRefund) & {
  /** The acquirer's word for its state, where we do not know that. */
  strangeStatus?: string | undefined
}

/** The log line of such a word. */
export const STRANGE_REFUND = 'the state of a refund is not known: if it lasts, ask the acquirer'

/** The fields of a notification, as they came. */
export type Fields = Record<string | symbol, unknown>

/** How an acquirer's notifications are taken. */
export type Notifications = {
  /** Adds its route: that of an operation, or of `routeOfOwnForm`. */
  register: (app: FastifyInstance, dependencies: NotificationDependencies) => void
  /** Throws the 401 unless `body` is signed. */
  requireSignature: (request: FastifyRequest, body: Buffer, now: Date) => void
  /** The orderId, for the log line of a refusal too: nothing of the notification is checked yet. */
  orderIdOf: (fields: Fields) => unknown
  /** Returns the part of an unreadable signed body that may be kept: nothing of the customer. */
  keep: (body: Buffer) => Buffer
}

/** When the money moved, or an attempt failed, as acquirers write it. */
export const isoTime = z.iso
  .datetime({ offset: true, ...errorText('must be a time in ISO 8601 with its zone') })
  .transform((time) => new Date(time))

/** A payment's UTR. Absent where it is in no form that is known: only a success needs it. */
export const bankReference = utr.optional().catch(undefined)

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

/** Records what an acquirer tells of a payment. Throws 404 for an unknown order, 409 where it contradicts what we know. */
export async function recordNotification(
  { reports, now }: Pick<NotificationDependencies, 'reports' | 'now'>,
  report: Report,
) {
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

/** Stores what an acquirer tells of a refund. Throws 404 for an unknown one, 409 where it differs from what we sent. */
async function recordRefundNews({ refunds, now, log }: NotificationDependencies, news: RefundNews) {
  const { acquirer, strangeStatus: status } = news
  const which = 'ourRefundId' in news ? { ourRefundId: news.ourRefundId } : { orderId: news.orderId }
  if (status !== undefined) log.error({ acquirer, ...which, status }, STRANGE_REFUND)
  const told = await ('ourRefundId' in news
    ? refunds.tellOfNamed(news, news.word, now())
    : refunds.tellOfOwn(news, now()))
  if (told === undefined) throw orderNotFound()
  if (told.exception === 'refund differs') throw notificationRefused('refund differs')
  return {}
}

/**
 * The route of notifications in an acquirer's own form, which our documents do not describe. `read` returns undefined
 * for a notification that changes nothing, and throws the 400 for one that it cannot read. `body` are the signed bytes.
 */
export function routeOfOwnForm(
  path: string,
  read: (fields: Fields, body: Buffer) => News | undefined,
): Notifications['register'] {
  return (app, dependencies) => {
    app.post<{ Body: Fields }>(path, async ({ body, signedBody }) => {
      const news = read(body, signedBody as Buffer)
      if (news === undefined) return NOTIFICATION_RECORDED.toBody({})
      const record = 'word' in news ? recordRefundNews(dependencies, news) : recordNotification(dependencies, news)
      return NOTIFICATION_RECORDED.toBody(await record)
    })
  }
}

/** Lets `app`, a scope of its own, take the signed notifications of one acquirer. */
export function takeNotifications(
  app: FastifyInstance,
  { register, requireSignature, orderIdOf, keep }: Notifications,
  { fieldLimit, ...dependencies }: NotificationDependencies & { fieldLimit: number },
) {
  const { reports, now } = dependencies
  registerSignedJson(app, fieldLimit, (request, body) => requireSignature(request, body, now()))
  app.addHook('preValidation', (request, _reply, done) => {
    const orderId = orderIdOf(request.body as Fields)
    if (typeof orderId === 'string' && isOrderId(orderId)) request.orderId = orderId
    done()
  })
  // A signed body that is refused with 400 is kept: it may be about money, and the acquirer may not send it again.
  app.setErrorHandler(async (error, { signedBody }) => {
    if (signedBody && error instanceof Failure && error.code === 'badRequest') {
      await reports.keepUnreadable(keep(signedBody), now())
    }
    throw error
  })
  register(app, dependencies)
}

/** Whether `header` is the base64 of the HMAC-SHA256 of `parts` with one of `secrets`, found out in constant time. */
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

/** Of a body that cannot be read, the fields of these names, at any depth: what is beside them may be the customer's. */
export function keepFields(body: Buffer, names: string[]): Buffer {
  try {
    return Buffer.from(JSON.stringify(JSON.parse(body.toString('utf8')), names))
  } catch {
    return Buffer.from('not JSON')
  }
}
