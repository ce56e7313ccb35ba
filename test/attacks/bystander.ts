import { randomUUID } from 'node:crypto'
import { createHttpClient, type HttpResponse, tally } from '../support/http-client.ts'
import { createRequest } from '../support/requests.ts'
import type { NewMerchant } from '../support/tenants.ts'

const CREATES_PER_SECOND = 25

/**
 * Different from the attackers' address, so that a limit per address affects only them. Only on Linux is all of
 * 127.0.0.0/8 local.
 */
export const BYSTANDER_ADDRESS = process.platform === 'linux' ? '127.0.0.2' : '127.0.0.1'

/** The HTTP client of every bystander. */
export const bystanderClient = () => createHttpClient({ localAddress: BYSTANDER_ADDRESS })

/** A create request and its response; both times are values of performance.now(). */
export type Create = { sentAt: number; respondedAt: number; response: HttpResponse }

export type Bystander = {
  /** Stops sending, and returns all creates once they are complete. */
  end: () => Promise<Create[]>
}

/** A merchant who creates payments at a steady rate on persistent connections, whatever the responses. */
export function startBystander(url: string, merchant: NewMerchant): Bystander {
  const client = bystanderClient()
  const creates: Promise<Create>[] = []
  const timer = setInterval(() => creates.push(create()), 1_000 / CREATES_PER_SECOND)

  async function create(): Promise<Create> {
    const sentAt = performance.now()
    const response = await client.send(url, createRequest(merchant, { order_id: randomUUID() }))
    return { sentAt, respondedAt: performance.now(), response }
  }

  return {
    async end() {
      clearInterval(timer)
      const done = await Promise.all(creates)
      client.close()
      return done
    },
  }
}

/** Summary of some creates. The times include rejected ones. */
export type Figures = { creates: number; successes: number; p50Ms: number; p99Ms: number; others: string }

export function figuresOf(creates: Create[]): Figures {
  const responses = creates.map(({ response }) => response)
  const times = responses.map(({ tookMs }) => tookMs).sort((a, b) => a - b)
  const quantile = (share: number) => times[Math.min(times.length - 1, Math.floor(share * times.length))] ?? Number.NaN
  const others = responses.filter(({ status }) => status !== 200)
  return {
    creates: responses.length,
    successes: responses.length - others.length,
    p50Ms: quantile(0.5),
    p99Ms: quantile(0.99),
    others: tally(others),
  }
}
