import type { Answer } from './http-client.ts'
import type { Names } from './operations.ts'

export type Kind = 'create' | 'status' | 'notification' | 'short list' | 'long list' | 'page' | 'readyz' | 'livez'

export type Entry = {
  kind: Kind
  /** Moments of performance.now(). */
  sentAt: number
  answeredAt: number | undefined
  answer: Answer | undefined
  /** Of a creation. */
  names?: Names
  operation?: string
  /** Every orderId that a creation was ever answered with, repeats included. */
  orderIds: Set<string>
  /** The order_id of a creation that was found to be stored though it was never answered with ours. */
  storedAs?: string
  /** Of a notification. */
  paid?: { orderId: string; utr: string }
}

/** Everything that was asked and answered, in memory. */
export type Journal = Entry[]

export const statusOf = ({ answer }: Entry) => (answer && 'status' in answer ? answer.status : undefined)

/** Whether the client cannot know what became of its request: no answer, or 503. */
export function isUnsure(entry: Entry): boolean {
  const status = statusOf(entry)
  return status === undefined || status === 503
}

/** Whether it is a long list that broke off, which its reader notices: contract B15. */
export const isBrokenOff = ({ kind, answer }: Entry) =>
  kind === 'long list' && answer !== undefined && 'unanswered' in answer && answer.begun

/** What is wrong with the form of an answer (contract A1, B1, B2); undefined when nothing is. */
export function faultOfForm(entry: Entry): string | undefined {
  const { answer, kind } = entry
  if (answer === undefined || 'unanswered' in answer) return undefined
  const { status, headers, text } = answer
  if (status === 503 && !/^\d+$/.test(String(headers['retry-after']))) return '503 without Retry-After'
  if (kind === 'page') return text.startsWith('<!doctype html>') ? undefined : 'a pay page that is no page'
  const keys = status === 200 ? undefined : ['status', 'statusCode', 'msg']
  const body = parse(text)
  if (body?.statusCode !== status) return `${status} that is no envelope: ${text.slice(0, 100)}`
  if (keys && JSON.stringify(Object.keys(body)) !== JSON.stringify(keys)) return `${status} with ${Object.keys(body)}`
  return undefined
}

/** Our orderId in the answer to a creation; undefined when it was none. */
export function createdOrderId(answer: Answer): string | undefined {
  return 'status' in answer && answer.status === 200 ? parse(answer.text)?.data?.orderId : undefined
}

// biome-ignore lint/suspicious/noExplicitAny: a test asserts what a body is, it cannot know
function parse(text: string): any {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
