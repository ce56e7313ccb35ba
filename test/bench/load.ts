import { rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from '../support/processes.ts'
import type { FormRequest } from '../support/requests.ts'
import { SECRET } from './contenders.ts'

export type LoadResult = { requests: number; requestsPerSecond: number; p50Ms: number; p99Ms: number }

/** A complete response; the headers are in the order in which they were sent. */
export type Response = { status: number; headers: Record<string, string>; body: string }

/** The number of connections in the throughput targets. */
export const CONNECTIONS = 64

/** `once` sends each request once. `payments` sends all requests of a payment for each create. */
export type LoadMode = 'once' | 'payments'

type LoadOptions = { seconds: number; rate?: number; connections?: number; mode?: LoadMode | undefined }

const GENERATOR = join(import.meta.dirname, 'load-generator.mjs')

/**
 * Sends `requests` in turn to the services at `urls` from a separate process: as fast as they respond, or `rate` times
 * a second. autocannon sends each second's share in a burst and then waits. The mode `once` needs more requests than
 * can complete in the time. Throws on an error response, because rejecting a request is faster than the measured
 * operation.
 */
export async function load(
  urls: string | string[],
  requests: FormRequest | FormRequest[],
  { seconds, rate, connections = CONNECTIONS, mode }: LoadOptions,
): Promise<LoadResult> {
  return generate(urls, requests, mode, {
    connections,
    duration: seconds,
    ...(rate !== undefined && { overallRate: Math.round(rate) }),
  })
}

/** Sends each of `requests`, or all requests of one payment, one after the other, and returns the responses. */
export async function responsesTo(url: string, requests: FormRequest[], mode?: LoadMode): Promise<Response[]> {
  const { responses } = await generate(url, requests, mode, { connections: 1, returnsResponses: true })
  return responses as Response[]
}

async function generate(
  urls: string | string[],
  requests: FormRequest | FormRequest[],
  mode: LoadMode | undefined,
  options: Record<string, unknown>,
): Promise<LoadResult & { responses?: Response[] }> {
  const file = join(tmpdir(), `upi-payments-requests-${process.pid}.json`)
  if (mode) writeFileSync(file, JSON.stringify([requests].flat()))
  const allOptions = {
    url: urls,
    ...(mode === undefined && { requests: [requests].flat() }),
    ...(mode === 'once' && { once: file }),
    ...(mode === 'payments' && { creates: file, secret: SECRET }),
    ...options,
  }
  const output = await run(process.execPath, [GENERATOR, JSON.stringify(allOptions)]).finally(() =>
    rmSync(file, { force: true }),
  )
  const { errors, non2xx, statusCodeStats, ...result } = JSON.parse(output)
  if (errors > 0 || non2xx > 0 || result.requests === 0) {
    throw new Error(`${urls}: ${errors} errors, responses ${JSON.stringify(statusCodeStats)}`)
  }
  return result
}
