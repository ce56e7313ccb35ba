import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

const SANE_REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/

export function newRequestId(): string {
  return randomUUID()
}

/** The caller's own x-request-id where it is safe to repeat in a header and a log line, else a new one. */
export function requestIdOf(request: Pick<IncomingMessage, 'headers'>): string {
  const sent = request.headers['x-request-id']
  return typeof sent === 'string' && SANE_REQUEST_ID.test(sent) ? sent : newRequestId()
}
