import { Agent, request as httpRequest, type IncomingHttpHeaders } from 'node:http'

export type Request = { method: 'GET' | 'POST'; path: string; headers?: Record<string, string>; body?: string }

type Outcome =
  | { status: number; headers: IncomingHttpHeaders; text: string }
  /** `begun`: it had a status, but no end. */
  | { unanswered: string; begun: boolean }

/** What came back, or why nothing did. `tookMs` is until the last byte. */
export type Answer = { tookMs: number } & Outcome

/** Only bounds a service that hangs: the promises are far below. */
const PATIENCE_MS = 15_000

export type HttpClient = { send: (url: string, request: Request) => Promise<Answer>; close: () => void }

/** A client with connections that are kept open, as a shop's server has; from `localAddress` where it is given. */
export function createHttpClient({ localAddress }: { localAddress?: string } = {}): HttpClient {
  const agent = new Agent({ keepAlive: true, ...(localAddress !== undefined && { localAddress }) })
  return {
    send: (url, { method, path, headers = {}, body }) =>
      new Promise((resolve) => {
        const startedAt = performance.now()
        let begun = false
        const end = (outcome: Outcome) => {
          clearTimeout(timer)
          resolve({ tookMs: performance.now() - startedAt, ...outcome })
        }
        const fail = (error: Error) => end({ unanswered: error.message, begun })
        const call = httpRequest(url + path, { method, headers, agent }, (response) => {
          begun = true
          let text = ''
          response.setEncoding('utf8').on('data', (part: string) => {
            text += part
          })
          response.on('end', () => end({ status: response.statusCode ?? 0, headers: response.headers, text }))
          response.on('error', fail)
        })
        const timer = setTimeout(() => call.destroy(new Error(`no answer within ${PATIENCE_MS} ms`)), PATIENCE_MS)
        call.on('error', fail).end(body)
      }),
    close: () => agent.destroy(),
  }
}
