import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { FastifyInstance } from 'fastify'
import { unavailable } from '../errors.ts'
import type { Limits } from '../limits.ts'

/**
 * Returns how late timers were on average in the last second, in ms, until `app` closes. Not @fastify/under-pressure, which
 * also reads the process's memory from a file each second, in a timer: without a free file descriptor that ended the process.
 */
export function measureLateness(
  app: FastifyInstance,
  { sampleIntervalMs, resolutionMs }: Limits['lateness'],
): () => number {
  const delay = monitorEventLoopDelay({ resolution: resolutionMs })
  delay.enable()
  let meanMs = 0
  const timer = setInterval(() => {
    // No measurement in a whole second: the event loop was blocked all the time.
    meanMs = delay.count === 0 ? Number.POSITIVE_INFINITY : delay.mean / 1e6 - resolutionMs
    delay.reset()
  }, sampleIntervalMs).unref()
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
