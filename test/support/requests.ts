import { setTimeout as sleep } from 'node:timers/promises'
import type { NewPayment } from '../../src/gateway/payments/new-payment.ts'
import type { Answer, HttpClient, Request } from './http-client.ts'
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

export const FORM = 'application/x-www-form-urlencoded'

/** What a patient client does with a 503: 30 tries take 6 s. */
const MOST_TRIES = 30
const RETRY_MS = 200

/** A complete and correct createPaymentIntent of `mid`. What is changed to undefined is left out. */
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

/** The same, as it is when it has been checked: what an intent is built of. */
export function newPayment(mid: string): NewPayment {
  const fields = intentFields(mid) as Record<keyof NewPayment, string>
  return { ...fields, amount: 20_000, order_id: undefined }
}

export function form(fields: Record<string, string>): string {
  return new URLSearchParams(fields).toString()
}

/** A form that is sent over and over by a load generator too, so it is all text. */
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

/** The settlements of `mid` from the day `from` to the day `till`, both dd-mm-yyyy. */
export function listRequest({ pid, key }: NewPartner, mid: string, from: string, till: string): FormRequest {
  return formRequest(LIST, key, { pid, mid, s_date: from, e_date: till })
}

export const getRequest = (path: string): Request => ({ method: 'GET', path })

/** The same form with other fields; an Idempotency-Key goes into its header. */
export function withFields(request: FormRequest, fields: Record<string, string>, idempotencyKey?: string): FormRequest {
  const body = new URLSearchParams(request.body)
  for (const [name, value] of Object.entries(fields)) body.set(name, value)
  const headers = { ...request.headers, ...(idempotencyKey !== undefined && { 'idempotency-key': idempotencyKey }) }
  return { ...request, headers, body: body.toString() }
}

/** Our orderId in the answer to a create; undefined when the create failed. */
export function createdOrderId({ status, text }: Answer): string | undefined {
  return status === 200 ? JSON.parse(text).data.orderId : undefined
}

/**
 * Sends again what is answered by 503 with Retry-After, since a busy machine refuses some requests. For results that must be
 * right in the end, as opposed to requests that must never be refused.
 */
export async function sendPatiently({ send }: HttpClient, url: string, request: Request): Promise<Answer> {
  for (let tries = 1; ; tries++) {
    const answer = await send(url, request)
    const mayRetry = answer.status === 503 && answer.headers['retry-after'] !== undefined && tries < MOST_TRIES
    if (!mayRetry) return answer
    await sleep(RETRY_MS)
  }
}

/** Does `work` for every item, for at most `atOnce` of them at the same time; returns the results in order. */
export async function forEach<Item, Result>(
  items: readonly Item[],
  atOnce: number,
  work: (item: Item, index: number) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = []
  const entries = items.entries()
  const takeTurns = async () => {
    for (const [index, item] of entries) results[index] = await work(item, index)
  }
  await Promise.all(Array.from({ length: atOnce }, takeTurns))
  return results
}
