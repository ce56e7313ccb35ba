import { createHmac } from 'node:crypto'
import { type Agent, request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { readList } from '../bench/list-reader.ts'
import type { LoadRequest } from '../bench/load.ts'

/** `statusCode` 0 is no answer at all: refused, reset, or cut off in the middle. */
export type Answer = { statusCode: number; headers: IncomingHttpHeaders; text: string }

const MOST_TRIES = 30
const RETRY_MS = 200

export const ACQUIRER_SECRET = 'only-known-to-this-trial'

/** Sends a request once and never again: what a connection breaks is what the trial looks for. */
export function send(url: string, { path, headers, body }: LoadRequest, agent: Agent): Promise<Answer> {
  return new Promise((resolve) => {
    const fail = (error: Error) => resolve({ statusCode: 0, headers: {}, text: error.message })
    const request = httpRequest(url + path, { method: 'POST', headers, agent }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (part: string) => {
        text += part
      })
      response.on('end', () => resolve({ statusCode: response.statusCode ?? 0, headers: response.headers, text }))
      response.on('error', fail)
    })
    request.on('error', fail).end(body)
  })
}

/**
 * As `send`, but does what a 503 with Retry-After asks for: a machine that is busy with other things refuses some. For what is
 * to be right in the end, as opposed to what is never to be refused.
 */
export async function sendPatiently(url: string, request: LoadRequest, agent: Agent): Promise<Answer> {
  for (let tries = 1; ; tries++) {
    const answer = await send(url, request, agent)
    const mayRetry = answer.statusCode === 503 && answer.headers['retry-after'] !== undefined && tries < MOST_TRIES
    if (!mayRetry) return answer
    await sleep(RETRY_MS)
  }
}

/** How many rows a list has, whatever its length; as patiently. */
export async function countRowsPatiently(url: string, list: LoadRequest): Promise<number> {
  for (let tries = 1; ; tries++) {
    try {
      return await readList(url, list)
    } catch (error) {
      // A list that was cut off says 200 here.
      if (tries === MOST_TRIES || !(error as Error).message.includes('ended with 503')) throw error
      await sleep(RETRY_MS)
    }
  }
}

/** The same form with other fields; an Idempotency-Key goes into its header. */
export function withFields(request: LoadRequest, fields: Record<string, string>, idempotencyKey?: string): LoadRequest {
  const form = new URLSearchParams(request.body)
  for (const [name, value] of Object.entries(fields)) form.set(name, value)
  const headers = { ...request.headers, ...(idempotencyKey !== undefined && { 'idempotency-key': idempotencyKey }) }
  return { ...request, headers, body: form.toString() }
}

/** What the acquirer tells of a payment of ₹200, signed now. */
export function paymentNotification(orderId: string, utr: string): LoadRequest {
  const now = new Date()
  const body = JSON.stringify({ orderId, status: 'SUCCESS', UTR: utr, amount: 200, paidAt: now.toISOString() })
  const t = Math.floor(now.getTime() / 1000)
  const signature = createHmac('sha256', ACQUIRER_SECRET).update(`${t}.${body}`).digest('hex')
  const headers = { 'content-type': 'application/json', 'x-signature': `t=${t},v1=${signature}` }
  return { path: '/acquirer/paymentNotification', headers, body }
}

/** Does `work` for every item, at most `atOnce` at the same time; answers the results in order. */
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

/** How many answers there were of each kind, such as `200 × 1999, 409 × 1`. */
export function tally(answers: readonly { statusCode: number }[]): string {
  const counts = new Map<number, number>()
  for (const { statusCode } of answers) counts.set(statusCode, (counts.get(statusCode) ?? 0) + 1)
  const parts = [...counts].sort(([a], [b]) => a - b).map(([code, count]) => `${code || 'no answer'} × ${count}`)
  return parts.join(', ')
}
