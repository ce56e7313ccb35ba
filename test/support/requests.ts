import { setTimeout as sleep } from 'node:timers/promises'
import type { NewPayment } from '../../src/gateway/payments/new-payment.ts'
import type { HttpClient, HttpResponse, Request } from './http-client.ts'
import { basic, type Key, type NewMerchant, type NewPartner } from './tenants.ts'

export const CREATE = '/v1/payments/createPaymentIntent'
export const ORDER = '/v1/payments/createOrderRequest'
export const STATUS = '/v1/payments/checkPaymentStatus'
export const CANCEL = '/v1/payments/cancelPayment'
export const REFUND = '/v1/payments/refundPayment'
export const REFUND_STATUS = '/v1/payments/checkRefundStatus'
export const LIST = '/v1/partner/fetchSettlementList'
export const TRANSACTIONS = '/v1/partner/fetchTransactionList'
export const OWN_TRANSACTIONS = '/v1/payments/fetchTransactionList'
export const OWN_ORDERS = '/v1/payments/fetchOrderList'
export const OWN_REFUNDS = '/v1/payments/fetchRefundList'
export const OWN_SETTLEMENTS = '/v1/payments/fetchSettlementList'
export const LINKED_MERCHANTS = '/v1/partner/fetchMerchantList'

export const FORM = 'application/x-www-form-urlencoded'

/** Retries of a 503: 30 attempts take 6 s. */
const MOST_TRIES = 30
const RETRY_MS = 200

/** Fields of a complete and valid createPaymentIntent of `mid`. A field changed to undefined is omitted. */
export function intentFields(mid: string, changes: Record<string, string | undefined> = {}): Record<string, string> {
  const fields: Record<string, string | undefined> = {
    mid,
    amount: '200',
    redirect_url: 'https://shop.example.in/thanks?order=1001',
    note: 'Order 1001',
    customer_name: 'Asha Rao',
    customer_email: 'asha@example.in',
    customer_mobile: '0123456789',
    ...changes,
  }
  return Object.fromEntries(Object.entries(fields).filter((entry): entry is [string, string] => entry[1] !== undefined))
}

/** The same fields after validation, from which an intent is built. */
export function newPayment(mid: string): NewPayment {
  const fields = intentFields(mid) as Record<keyof NewPayment, string>
  return { ...fields, amount: 20_000, order_id: undefined, expiry_minutes: undefined }
}

export function form(fields: Record<string, string>): string {
  return new URLSearchParams(fields).toString()
}

/** A form that a load generator also sends repeatedly, so all its parts are text. */
export type FormRequest = { method: 'POST'; path: string; headers: Record<string, string>; body: string }

export function formRequest(path: string, key: Key, fields: Record<string, string>): FormRequest {
  return { method: 'POST', path, headers: { authorization: basic(key), 'content-type': FORM }, body: form(fields) }
}

export function createRequest(
  { mid, key }: NewMerchant,
  changes: Record<string, string | undefined> = {},
): FormRequest {
  return formRequest(CREATE, key, intentFields(mid, changes))
}

export function statusRequest({ mid, key }: NewMerchant, orderId: string): FormRequest {
  return formRequest(STATUS, key, { mid, order_id: orderId })
}

/** Requests the settlements of `mid` from the day `from` to the day `till`, both dd-mm-yyyy. */
export function listRequest({ pid, key }: NewPartner, mid: string, from: string, till: string): FormRequest {
  return formRequest(LIST, key, { pid, mid, s_date: from, e_date: till })
}

export const getRequest = (path: string): Request => ({ method: 'GET', path })

/** Returns the form with other fields; an Idempotency-Key is sent in its header. */
export function withFields(request: FormRequest, fields: Record<string, string>, idempotencyKey?: string): FormRequest {
  const body = new URLSearchParams(request.body)
  for (const [name, value] of Object.entries(fields)) body.set(name, value)
  const headers = { ...request.headers, ...(idempotencyKey !== undefined && { 'idempotency-key': idempotencyKey }) }
  return { ...request, headers, body: body.toString() }
}

/** Returns the service's orderId from the response to a create; undefined if the create failed. */
export function createdOrderId({ status, text }: HttpResponse): string | undefined {
  return status === 200 ? JSON.parse(text).data.orderId : undefined
}

/**
 * Repeats a request after 503 with Retry-After, because a busy machine rejects some requests. For tests of the final
 * result, not for requests that must never be rejected.
 */
export async function sendWithRetries({ send }: HttpClient, url: string, request: Request): Promise<HttpResponse> {
  for (let tries = 1; ; tries++) {
    const response = await send(url, request)
    const mayRetry = response.status === 503 && response.headers['retry-after'] !== undefined && tries < MOST_TRIES
    if (!mayRetry) return response
    await sleep(RETRY_MS)
  }
}

/** Runs `work` for every item, at most `concurrency` concurrently, and returns the results in order. */
export async function forEach<Item, Result>(
  items: readonly Item[],
  concurrency: number,
  work: (item: Item, index: number) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = []
  const entries = items.entries()
  const takeTurns = async () => {
    for (const [index, item] of entries) results[index] = await work(item, index)
  }
  await Promise.all(Array.from({ length: concurrency }, takeTurns))
  return results
}
