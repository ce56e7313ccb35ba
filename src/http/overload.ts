import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { FastifyInstance } from 'fastify'
import { unavailable } from '../errors.ts'

/** Mean lateness of timers over a second, beyond which more requests come than can be served: new ones get 503 at once. */
export const LATENESS_LIMITS = {
  operationsMs: 250,
  /** Pay pages are refused first: anybody who knows an address may ask for them, and they ask again by themselves. */
  pagesMs: 100,
}

export type LatenessLimits = typeof LATENESS_LIMITS

const SAMPLE_INTERVAL_MS = 1_000
/** How often the lateness is measured; a timer that is in time counts as this late. */
const RESOLUTION_MS = 10

/**
 * Returns how late timers were in the last second, in ms, until `app` closes. Not @fastify/under-pressure, which also reads
 * the process's memory from a file each second, in a timer: without a free file descriptor that ended the process.
 */
export function measureLateness(app: FastifyInstance): () => number {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  delay.enable()
  let meanMs = 0
  const timer = setInterval(() => {
    // Without one measurement in a whole second the loop was blocked for all of it.
    meanMs = delay.count === 0 ? Number.POSITIVE_INFINITY : delay.mean / 1e6 - RESOLUTION_MS
    delay.reset()
  }, SAMPLE_INTERVAL_MS).unref()
  app.addHook('onClose', async () => {
    clearInterval(timer)
    delay.disable()
  })
  return () => meanMs
}

/** Refuses requests to `app` with 503 while timers are later than `limitMs`. */
export function refuseWhileLate(app: FastifyInstance, latenessMs: () => number, limitMs: number) {
  app.addHook('onRequest', (_request, _reply, done) => done(latenessMs() > limitMs ? unavailable() : undefined))
}
