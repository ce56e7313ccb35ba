import { join } from 'node:path'
import { run } from './processes.ts'

/** A form that is sent over and over. */
export type LoadRequest = { path: string; headers: Record<string, string>; body: string }

export type LoadResult = { requests: number; requestsPerSecond: number; p50Ms: number; p99Ms: number }

/** As many as the throughput targets speak of. */
export const CONNECTIONS = 64

const GENERATOR = join(import.meta.dirname, 'load-generator.mjs')

/**
 * Sends `requests` in turn to the services at `urls` from a process of its own: as fast as they answer, or `rate` times a
 * second. autocannon spends a second's share as fast as it can and then waits for the next one: `rate` comes in bursts.
 * Throws when an answer is no success: a refusal is quicker than what is to be measured.
 */
export async function load(
  urls: string | string[],
  requests: LoadRequest | LoadRequest[],
  { seconds, rate, connections = CONNECTIONS }: { seconds: number; rate?: number; connections?: number },
): Promise<LoadResult> {
  const options = {
    url: urls,
    requests: [requests].flat().map((request) => ({ method: 'POST', ...request })),
    connections,
    duration: seconds,
    ...(rate !== undefined && { overallRate: Math.round(rate) }),
  }
  const output = await run(process.execPath, [GENERATOR, JSON.stringify(options)])
  const { errors, non2xx, statusCodeStats, ...result } = JSON.parse(output)
  if (errors > 0 || non2xx > 0 || result.requests === 0) {
    throw new Error(`${options.url}: ${errors} errors, answers ${JSON.stringify(statusCodeStats)}`)
  }
  return result
}
