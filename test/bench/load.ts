import { rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from '../support/processes.ts'
import type { FormRequest } from '../support/requests.ts'
import { SECRET } from './contenders.ts'

export type LoadResult = { requests: number; requestsPerSecond: number; p50Ms: number; p99Ms: number }

/** As many as the throughput targets speak of. */
export const CONNECTIONS = 64

/** `once` sends each request once; `payments` makes whole payments of which the requests are the creates. */
export type LoadMode = 'once' | 'payments'

type LoadOptions = { seconds: number; rate?: number; connections?: number; mode?: LoadMode | undefined }

const GENERATOR = join(import.meta.dirname, 'load-generator.mjs')

/**
 * Sends `requests` in turn to the services at `urls` from a process of its own: as fast as they answer, or `rate` times a
 * second. autocannon spends a second's share as fast as it can and then waits for the next one: `rate` comes in bursts.
 * With the mode `once` there have to be more requests than are answered in that time.
 * Throws when an answer is not a success: a refusal is quicker than what is to be measured.
 */
export async function load(
  urls: string | string[],
  requests: FormRequest | FormRequest[],
  { seconds, rate, connections = CONNECTIONS, mode }: LoadOptions,
): Promise<LoadResult> {
  const file = join(tmpdir(), `upi-payments-requests-${process.pid}.json`)
  if (mode) writeFileSync(file, JSON.stringify([requests].flat()))
  const options = {
    url: urls,
    ...(mode === undefined && { requests: [requests].flat() }),
    ...(mode === 'once' && { once: file }),
    ...(mode === 'payments' && { creates: file, secret: SECRET }),
    connections,
    duration: seconds,
    ...(rate !== undefined && { overallRate: Math.round(rate) }),
  }
  const output = await run(process.execPath, [GENERATOR, JSON.stringify(options)]).finally(() =>
    rmSync(file, { force: true }),
  )
  const { errors, non2xx, statusCodeStats, ...result } = JSON.parse(output)
  if (errors > 0 || non2xx > 0 || result.requests === 0) {
    throw new Error(`${options.url}: ${errors} errors, answers ${JSON.stringify(statusCodeStats)}`)
  }
  return result
}

/** The answer to `request`, once; throws when it is not a success. */
export async function answerTo(url: string, { method, path, headers, body }: FormRequest): Promise<string> {
  const response = await fetch(url + path, { method, headers, body })
  const text = await response.text()
  if (response.status !== 200) throw new Error(`${url}${path} answered ${response.status}: ${text}`)
  return text
}
