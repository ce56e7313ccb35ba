import type { HttpResponse } from './http-client.ts'

export type Kind = 'create' | 'status' | 'notification' | 'short list' | 'long list' | 'page' | 'readyz' | 'livez'

/** The merchant's identifiers of a create request, with which it can check a lost response. */
export type Names = { orderId: string | undefined; idempotencyKey: string | undefined }

export type Entry = {
  kind: Kind
  /** Values of performance.now(). */
  sentAt: number
  respondedAt: number | undefined
  response: HttpResponse | undefined
  /** Set for create requests. */
  names?: Names
  operation?: string
  /** Every orderId returned for a create request, including repeats. */
  orderIds: Set<string>
  /** The order_id of a stored order for which no response with an orderId arrived. */
  storedAs?: string
  /** Set for notifications. */
  paid?: { orderId: string; utr: string }
}

/** Every request and response, in memory. */
export type Journal = Entry[]

export const statusOf = ({ response }: Entry) => response?.status

/** Whether the client cannot know the result of its request: no response, or 503. */
export function isUnsure(entry: Entry): boolean {
  const status = statusOf(entry)
  return status === undefined || status === 503
}

/** Whether a long list was cut off, which its reader notices because the JSON is incomplete. */
export const isBrokenOff = ({ kind, response }: Entry) => kind === 'long list' && response?.isCutOff === true

/** Returns how the format of a response is wrong: a page that is not HTML, or JSON that is not an envelope. */
export function formError(entry: Entry): string | undefined {
  const { response, kind } = entry
  if (response?.status === undefined) return undefined
  const { status, headers, text } = response
  if (status === 503 && !/^\d+$/.test(String(headers['retry-after']))) return '503 without Retry-After'
  if (kind === 'page') return text.startsWith('<!doctype html>') ? undefined : 'a pay page that is not HTML'
  const keys = status === 200 ? undefined : ['status', 'statusCode', 'msg']
  const body = parse(text)
  if (body?.statusCode !== status) return `${status} that is not an envelope: ${text.slice(0, 100)}`
  if (keys && JSON.stringify(Object.keys(body)) !== JSON.stringify(keys)) return `${status} with ${Object.keys(body)}`
  return undefined
}

// biome-ignore lint/suspicious/noExplicitAny: a test asserts what a body is, it cannot know
function parse(text: string): any {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
