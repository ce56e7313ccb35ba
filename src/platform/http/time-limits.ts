import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { unavailable } from '../../errors.ts'
import type { Limits } from '../../limits.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Requests of the route wait while the database is briefly away, because callers take a 503 for a final answer. */
    waitsForDatabase?: true
  }
  interface FastifyRequest {
    /** Moment of `elapsedMs` until which a request may wait for the database; 0 where its route does not wait. */
    waitsUntil: number
    /** The timer that answers 503; undefined before the handler begins, and after the 503. */
    answerTimer: NodeJS.Timeout | undefined
  }
}

/** The time limit of one answer. A change is given up at its deadline, so that a 503 means that nothing was changed. */
export type Deadline = {
  /** Throws 503 when the request was already answered 503 at its deadline, so that no caller waits for the change. */
  check: () => void
  /**
   * Checks the deadline, then restarts the limit with `commitMs`, for the commit and a look-up of whether it was stored. The caller
   * must send the commit in the same tick.
   */
  claim: () => void
  /** Restarts the limit, prolonged by `ms` for a call of an acquirer. */
  extend: (ms: number) => void
}

export type DeadlineOf = (request: FastifyRequest, reply: FastifyReply) => Deadline

/**
 * Returns the result of `read`. On a route with `waitsForDatabase`, `read` is repeated while the database is
 * unavailable, and must change nothing, because a failed call may have reached the database.
 */
export type Patiently = <T>(request: FastifyRequest, read: () => Promise<T>) => Promise<T>

/**
 * Answers every request to `app` within `answer.ms`, whatever its handler waits for; a request that waits for the
 * database may take `patience.ms`. The handler is not stopped: a handler that changes something checks its deadline.
 * Fastify's handlerTimeout would count the time of the body too, so that a slow sender would get 503 instead of 408.
 */
export function registerTimeLimits(
  app: FastifyInstance,
  { answer, patience }: Pick<Limits, 'answer' | 'patience'>,
  isOutage: (error: unknown) => boolean,
  elapsedMs: () => number,
): { deadlineOf: DeadlineOf; patiently: Patiently } {
  app.decorateRequest('waitsUntil', 0)
  app.decorateRequest('answerTimer', undefined)
  // Hooks have callbacks, because an async hook costs every request a promise.
  app.addHook('onRequest', (request, _reply, done) => {
    if (request.routeOptions.config?.waitsForDatabase) request.waitsUntil = elapsedMs() + patience.ms
    done()
  })
  // The limit starts in preHandler, because the client decides how long its body takes.
  app.addHook('preHandler', (request, reply, done) => {
    answerWithin(Math.max(answer.ms, request.waitsUntil - elapsedMs()), request, reply)
    // The event `close`, because Fastify's hook onResponse adds and removes two listeners for each response.
    reply.raw.once('close', () => clearTimeout(request.answerTimer))
    done()
  })

  const deadlineOf: DeadlineOf = (request, reply) => {
    const check = () => {
      if (request.answerTimer === undefined) throw unavailable()
    }
    const restart = (ms: number) => {
      check()
      clearTimeout(request.answerTimer)
      answerWithin(ms, request, reply)
    }
    return { check, claim: () => restart(answer.commitMs), extend: (ms) => restart(answer.ms + ms) }
  }
  return { deadlineOf, patiently: createPatience(isOutage, patience, elapsedMs) }
}

function answerWithin(ms: number, request: FastifyRequest, reply: FastifyReply) {
  request.answerTimer = setTimeout(refuseLate, ms, request, reply)
}

function refuseLate(request: FastifyRequest, reply: FastifyReply) {
  request.answerTimer = undefined
  // A list that is already being streamed has no deadline.
  if (!reply.raw.headersSent) reply.send(unavailable())
}

export function createPatience(
  isOutage: (error: unknown) => boolean,
  { pauseMs, waiting: limit }: Pick<Limits['patience'], 'pauseMs' | 'waiting'>,
  elapsedMs: () => number,
): Patiently {
  let waiting = 0

  return (request, read) => (request.waitsUntil > 0 ? readAgain(request, read) : read())

  async function readAgain<T>(request: FastifyRequest, read: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await read()
      } catch (error) {
        const isOver = elapsedMs() + pauseMs > request.waitsUntil || request.socket.destroyed
        if (isOver || waiting >= limit || !isOutage(error)) throw error
      }
      waiting++
      await sleep(pauseMs)
      waiting--
    }
  }
}

const SAMPLE_INTERVAL_MS = 1_000
/** Interval of the measuring timer. Each measured delay includes the interval, which is therefore subtracted. */
const RESOLUTION_MS = 10

/**
 * Measures until `app` closes, and returns a function for the mean delay of timers in the last second, in ms. Without
 * the plugin @fastify/under-pressure, which ends the process when it cannot open the file with the memory in use.
 */
export function measureLateness(app: FastifyInstance): () => number {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  delay.enable()
  let meanMs = 0
  const timer = setInterval(() => {
    // No measurement means that the event loop was blocked for the whole second.
    meanMs = delay.count === 0 ? Number.POSITIVE_INFINITY : delay.mean / 1e6 - RESOLUTION_MS
    delay.reset()
  }, SAMPLE_INTERVAL_MS).unref()
  app.addHook('onClose', async () => {
    clearInterval(timer)
    delay.disable()
  })
  return () => meanMs
}

/** Refuses requests to `app` with 503 while timers are more than `limitMs` late. */
export function refuseWhileLate(app: FastifyInstance, latenessMs: () => number, limitMs: number) {
  app.addHook('onRequest', (_request, _reply, done) => done(latenessMs() > limitMs ? unavailable() : undefined))
}
