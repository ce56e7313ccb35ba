import { randomUUID } from 'node:crypto'
import type { Request } from './http-client.ts'
import { signature, type Tenant } from './tenant.ts'

/** What names a created intent for its merchant, so that a lost answer can be asked for again. */
export type Names = { orderId: string | undefined; idempotencyKey: string | undefined }

export const FORM = 'application/x-www-form-urlencoded'
export const AMOUNT = 200

/** A creation that any of its three kinds of names, or both, make safe to repeat or to ask about. */
export function create(tenant: Tenant, { orderId, idempotencyKey }: Names, operation = 'createPaymentIntent'): Request {
  return form(
    `/v1/payments/${operation}`,
    tenant.merchantAuthorization,
    {
      mid: tenant.mid,
      amount: String(AMOUNT),
      ...(orderId !== undefined && { order_id: orderId }),
      redirect_url: 'https://shop.example.in/thanks?order=1001',
      note: 'Order 1001',
      customer_name: 'Asha Rao',
      customer_email: 'asha@example.in',
      customer_mobile: '0123456789',
    },
    idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey },
  )
}

export const newName = () => randomUUID()

export const checkStatus = ({ mid, merchantAuthorization }: Tenant, orderId: string) =>
  form('/v1/payments/checkPaymentStatus', merchantAuthorization, { mid, order_id: orderId })

export const shortList = (tenant: Tenant) => list(tenant, '01-01-2026')
export const longList = (tenant: Tenant) => list(tenant, '02-01-2026')

function list({ mid, pid, partnerAuthorization }: Tenant, day: string): Request {
  return form('/v1/partner/fetchSettlementList', partnerAuthorization, { pid, mid, s_date: day, e_date: day })
}

export function notification(orderId: string, utr: string): Request {
  const paidAt = new Date().toISOString()
  const body = JSON.stringify({ orderId, status: 'SUCCESS', UTR: utr, amount: AMOUNT, paidAt })
  const headers = { 'content-type': 'application/json', 'x-signature': signature(body) }
  return { method: 'POST', path: '/acquirer/paymentNotification', headers, body }
}

export const get = (path: string): Request => ({ method: 'GET', path })

function form(
  path: string,
  authorization: string,
  fields: Record<string, string>,
  headers: Record<string, string> = {},
): Request {
  const body = new URLSearchParams(fields).toString()
  return { method: 'POST', path, headers: { authorization, 'content-type': FORM, ...headers }, body }
}
