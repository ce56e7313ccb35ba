import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { unavailable } from '../errors.ts'
import type { Limits } from '../limits.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Requests of the route wait for a database that is briefly away, because callers take a 503 for a final answer. */
    waitsForDatabase?: true
  }
  interface FastifyRequest {
    /** Moment of `elapsedMs` until which a request may wait for the database; 0 where its route does not wait. */
    waitsUntil: number
    /** The timer of the 503; undefined before the handler begins, and after the 503. */
    answerTimer: NodeJS.Timeout | undefined
  }
}

/** The time limit of one answer. A change ends at its deadline, so that a 503 means that nothing was changed. */
export type Deadline = {
  /** Throws 503 when the deadline has answered the request, so that nobody waits for the change any more. */
  check: () => void
  /**
   * Checks, then leaves `commitMs` to the commit and the look-up behind it to decide the answer. The commit must be sent in the same
   * tick.
   */
  claim: () => void
  /** Restarts the limit with `ms` on top of it, for a call of an acquirer. */
  extend: (ms: number) => void
}

export type DeadlineOf = (request: FastifyRequest, reply: FastifyReply) => Deadline

/**
 * Returns the result of `read`, which is repeated while the database is away if the route waits for it. `read` must change nothing,
 * because a failed call may have reached the database.
 */
export type Patiently = <T>(request: FastifyRequest, read: () => Promise<T>) => Promise<T>

/**
 * Answers every request to `app` within `answer.ms`, whatever its handler waits for; a request that waits for the database may take
 * `patience.ms`. The handler is not stopped: a handler that changes something checks its deadline. Fastify's handlerTimeout counts the
 * time of the body too, so that a slow sender would get 503 instead of 408.
 */
export function registerTimeLimits(
  app: FastifyInstance,
  { answer, patience }: Pick<Limits, 'answer' | 'patience'>,
  isOutage: (error: unknown) => boolean,
  elapsedMs: () => number,
): { deadlineOf: DeadlineOf; patiently: Patiently } {
  app.decorateRequest('waitsUntil', 0)
  app.decorateRequest('answerTimer', undefined)
  // Hooks have callbacks, because an async hook costs a promise.
  app.addHook('onRequest', (request, _reply, done) => {
    if (request.routeOptions.config?.waitsForDatabase) request.waitsUntil = elapsedMs() + patience.ms
    done()
  })
  // The limit starts in preHandler, because the client decides how long its body takes.
  app.addHook('preHandler', (request, reply, done) => {
    answerWithin(Math.max(answer.ms, request.waitsUntil - elapsedMs()), request, reply)
    // Fastify's hook onResponse would add and remove two listeners for each response.
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
  // A long list that has begun has no deadline.
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
/** Interval of the measurement. Each measured delay includes it, so it is subtracted. */
const RESOLUTION_MS = 10

/**
 * Returns a function for the mean delay of timers in the last second, in ms, until `app` closes. @fastify/under-pressure also reads
 * the process's memory from a file each second, in a timer: without a free file descriptor that ended the process.
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
