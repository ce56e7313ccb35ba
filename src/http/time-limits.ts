import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { unavailable } from '../errors.ts'
import type { Limits } from '../limits.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Its requests wait for a database that is briefly away, because their callers take a 503 for a final answer. */
    waitsForDatabase?: true
  }
  interface FastifyRequest {
    /** Until when a request may wait for the database, by `elapsedMs`; 0 where its route does not wait. */
    waitsUntil: number
    /** Answers the request with 503; undefined before its handler begins, and after the 503. */
    answerTimer: NodeJS.Timeout | undefined
  }
}

/** The time limit of one answer. A change ends with its deadline, so that a 503 means that nothing was changed. */
export type Deadline = {
  /** Throws 503 when the deadline has answered already: nobody waits for the change any more. */
  check: () => void
  /**
   * The same; else the answer is left to the commit that is sent in this very tick, and to the look-up behind it, for `commitMs`
   * at most.
   */
  claim: () => void
  /** Begins the limit anew with `ms` on top of it, for a call of an acquirer. */
  extend: (ms: number) => void
}

export type DeadlineOf = (request: FastifyRequest, reply: FastifyReply) => Deadline

/**
 * Returns the result of `read`. A request that waits for the database reads again while the database is away. `read` must change
 * nothing: whether an earlier one reached the database is not known.
 */
export type Patiently = <T>(request: FastifyRequest, read: () => Promise<T>) => Promise<T>

/**
 * Answers every request to `app` within `answer.ms`, whatever its handler waits for; a request that waits for the database may take
 * `patience.ms`. The handler is not stopped: a handler that changes something asks the deadline of its request. Not Fastify's
 * handlerTimeout, which counts the time of the body too: a slow sender would get 503 for 408.
 */
export function registerTimeLimits(
  app: FastifyInstance,
  { answer, patience }: Pick<Limits, 'answer' | 'patience'>,
  isOutage: (error: unknown) => boolean,
  elapsedMs: () => number,
): { deadlineOf: DeadlineOf; patiently: Patiently } {
  app.decorateRequest('waitsUntil', 0)
  app.decorateRequest('answerTimer', undefined)
  // Hooks with a callback: an async hook costs a promise.
  app.addHook('onRequest', (request, _reply, done) => {
    if (request.routeOptions.config?.waitsForDatabase) request.waitsUntil = elapsedMs() + patience.ms
    done()
  })
  // Not in an earlier hook, because the client decides how long its body takes.
  app.addHook('preHandler', (request, reply, done) => {
    answerWithin(Math.max(answer.ms, request.waitsUntil - elapsedMs()), request, reply)
    // Not Fastify's hook onResponse, which adds and removes two listeners for each response.
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
/** How often the delay is measured. The measurement itself is this late, which is subtracted. */
const RESOLUTION_MS = 10

/**
 * Returns how late timers were on average in the last second, in ms, until `app` closes. Not @fastify/under-pressure, which
 * also reads the process's memory from a file each second, in a timer: without a free file descriptor that ended the process.
 */
export function measureLateness(app: FastifyInstance): () => number {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  delay.enable()
  let meanMs = 0
  const timer = setInterval(() => {
    // No measurement in a whole second: the event loop was blocked all the time.
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
