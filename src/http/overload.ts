import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { FastifyInstance } from 'fastify'
import { unavailable } from '../errors.ts'

/** Mean lateness of timers over a second: beyond it more requests come than can be served, and new ones get 503 at once. */
const EVENT_LOOP_DELAY_LIMIT_MS = 250
const SAMPLE_INTERVAL_MS = 1_000
/** How often the lateness is measured; a timer that is in time counts as this late. */
const RESOLUTION_MS = 10

/**
 * Refuses requests to `app` with 503 while the event loop is late. Not @fastify/under-pressure, which also reads the
 * process's memory from a file each second, in a timer: without a free file descriptor that ended the process.
 */
export function refuseWhileOverloaded(app: FastifyInstance) {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  delay.enable()
  let meanMs = 0
  const timer = setInterval(() => {
    // Without one measurement in a whole second the loop was blocked for all of it.
    meanMs = delay.count === 0 ? Number.POSITIVE_INFINITY : delay.mean / 1e6 - RESOLUTION_MS
    delay.reset()
  }, SAMPLE_INTERVAL_MS).unref()
  app.addHook('onRequest', (_request, _reply, done) =>
    done(meanMs > EVENT_LOOP_DELAY_LIMIT_MS ? unavailable() : undefined),
  )
  app.addHook('onClose', async () => {
    clearInterval(timer)
    delay.disable()
  })
}
