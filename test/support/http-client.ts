import { Agent, request as httpRequest, type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http'

export type Request = {
  method: 'GET' | 'POST'
  path: string
  headers?: OutgoingHttpHeaders
  body?: string | Uint8Array | undefined
}

export type HttpResponse = {
  /** Undefined without a complete response: refused, reset, cut off or timed out. */
  status: number | undefined
  headers: IncomingHttpHeaders
  text: string
  /** Time until the last byte of the response. */
  tookMs: number
  /** The reason if the response is incomplete or missing. */
  fault?: string
  /** The response had a status but no end. */
  isCutOff?: boolean
}

/** Only limits a test whose service hangs; the promised times are far below. */
const TIMEOUT_MS = 15_000

export type HttpClient = {
  /** Sends a request once and never repeats it, because tests look for requests broken by a lost connection. */
  send: (url: string, request: Request) => Promise<HttpResponse>
  close: () => void
}

/**
 * A client that reuses its connections, like a merchant's server, unless `keepAlive` is false. It opens at most
 * `maxSockets` connections from `localAddress`.
 */
export function createHttpClient(
  options: { localAddress?: string; maxSockets?: number; keepAlive?: boolean } = {},
): HttpClient {
  const agent = new Agent({ keepAlive: true, ...options })
  return {
    send: (url, { method, path, headers = {}, body }) =>
      new Promise((resolve) => {
        const startedAt = performance.now()
        let isBegun = false
        let text = ''
        const end = (result: Omit<HttpResponse, 'tookMs'>) => {
          clearTimeout(timer)
          resolve({ ...result, tookMs: performance.now() - startedAt })
        }
        const fail = ({ message }: Error) =>
          end({ status: undefined, headers: {}, text, fault: message, isCutOff: isBegun })
        const call = httpRequest(url + path, { method, headers, agent }, (response) => {
          isBegun = true
          response.setEncoding('utf8').on('data', (part: string) => {
            text += part
          })
          response.on('end', () => end({ status: response.statusCode, headers: response.headers, text }))
          response.on('error', fail)
        })
        const timer = setTimeout(() => call.destroy(new Error(`no response within ${TIMEOUT_MS} ms`)), TIMEOUT_MS)
        call.on('error', fail).end(body)
      }),
    close: () => agent.destroy(),
  }
}

/** Counts the responses of each status, such as `200 × 1999, 409 × 1`. */
export function tally(responses: readonly Pick<HttpResponse, 'status'>[]): string {
  const counts = new Map<number, number>()
  for (const { status = 0 } of responses) counts.set(status, (counts.get(status) ?? 0) + 1)
  const parts = [...counts].sort(([a], [b]) => a - b).map(([status, count]) => `${status || 'no response'} × ${count}`)
  return parts.join(', ')
}
