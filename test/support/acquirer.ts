import { createHmac } from 'node:crypto'
import type { Request } from './http-client.ts'
import { type HttpResponse, post } from './inject.ts'
import type { TestService } from './service.ts'

export const NOTIFY = '/acquirer/paymentNotification'

/** Both secrets are valid during a rotation; the second one is the newer. */
export const ACQUIRER_SECRETS = ['first-secret-of-a-test', 'second-secret-of-a-test']

export function sign(body: string | Buffer, at: Date, secret = ACQUIRER_SECRETS[0] as string): string {
  const t = Math.floor(at.getTime() / 1000)
  return `t=${t},v1=${createHmac('sha256', secret).update(`${t}.`).update(body).digest('hex')}`
}

// Above the fixed UTRs of tests, such as 523504870405.
let lastUtr = 523_510_000_000

/** Returns a UTR that no other test has used. */
export const newUtr = () => String(++lastUtr)

export type Notification = {
  orderId?: unknown
  status?: unknown
  UTR?: unknown
  amount?: unknown
  paidAt?: unknown
  reason?: unknown
}

/** A notification of a ₹200 success, with `changes`; a field changed to undefined is omitted. */
export function notification(orderId: string, changes: Notification = {}): string {
  const paidAt = '2026-03-31T23:59:59+05:30'
  return JSON.stringify({ orderId, status: 'SUCCESS', UTR: newUtr(), amount: 200, paidAt, ...changes })
}

/** Sends `body`, signed like the acquirer at the time of the service's clock. */
export function notify({ app, clock }: TestService, body: string): Promise<HttpResponse> {
  const headers = { 'content-type': 'application/json', 'x-signature': sign(body, clock.now()) }
  return post(app, NOTIFY, body, undefined, headers)
}

/** A notification of a ₹200 success, paid and signed at the current time. */
export function notificationRequest(orderId: string, utr: string): Request {
  const now = new Date()
  const body = notification(orderId, { UTR: utr, paidAt: now.toISOString() })
  const headers = { 'content-type': 'application/json', 'x-signature': sign(body, now) }
  return { method: 'POST', path: NOTIFY, headers, body }
}
