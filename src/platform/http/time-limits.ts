import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { Failure, unavailable } from '../../errors.ts'
import type { Limits } from '../../limits.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * Requests to the route wait while the database is briefly unavailable, because the callers of the route treat a
     * 503 as a final result.
     */
    waitsForDatabase?: true
    /** The response has no time limit, because its text is prepared at the start of the service. */
    isStatic?: true
  }
  interface FastifyRequest {
    /**
     * Latest time, on the clock `elapsedMs`, until which a request may wait for the database; 0 if the route does not
     * wait.
     */
    waitsUntil: number
    /** The timer that sends the 503 error; undefined before the handler begins and after the 503 is sent. */
    responseTimer: NodeJS.Timeout | undefined
  }
}

/**
 * The time limit of one response. A change is rolled back at its deadline, so that a 503 means that nothing was stored.
 */
export type Deadline = {
  /**
   * Throws 503 if the request has already received 503 at its deadline, because its caller no longer waits for the
   * change.
   */
  check: () => void
  /**
   * Checks the deadline, then restarts the limit with `commitMs`, which covers the commit and a look-up of whether the
   * change was stored. The caller must send the commit in the same tick.
   */
  claim: () => void
  /** Restarts the limit, extended by `ms` for a call to an acquirer. */
  extend: (ms: number) => void
}

export type DeadlineOf = (request: FastifyRequest, reply: FastifyReply) => Deadline

/**
 * Returns the result of `read`. On a route with `waitsForDatabase`, `read` is repeated while the database is
 * unavailable. `read` must change nothing, because a failed call may have reached the database.
 */
export type WaitForDatabase = <T>(request: FastifyRequest, read: () => Promise<T>) => Promise<T>

/**
 * Responds to every request to `app` within `response.ms`, whatever the handler waits for. A request that waits for the
 * database may take `databaseWait.ms`. The handler is not stopped, so a handler that changes something checks its
 * deadline. Fastify's handlerTimeout would include the time to receive the body, so a slow sender would get 503 instead
 * of 408.
 */
export function registerTimeLimits(
  app: FastifyInstance,
  { response, databaseWait }: Pick<Limits, 'response' | 'databaseWait'>,
  { isOutage, elapsedMs, log }: TimeLimits,
): { deadlineOf: DeadlineOf; waitForDatabase: WaitForDatabase } {
  app.decorateRequest('waitsUntil', 0)
  app.decorateRequest('responseTimer', undefined)
  // Hooks use callbacks, because an async hook costs every request a promise.
  app.addHook('onRequest', (request, _reply, done) => {
    if (request.routeOptions.config?.waitsForDatabase) request.waitsUntil = elapsedMs() + databaseWait.ms
    done()
  })
  // The limit starts in preHandler, because the client decides how long sending the body takes.
  app.addHook('preHandler', (request, reply, done) => {
    if (request.routeOptions.config?.isStatic) return done()
    respondWithin(Math.max(response.ms, request.waitsUntil - elapsedMs()), request, reply)
    // Uses the event `close`, because Fastify's hook onResponse adds and removes two listeners for each response.
    reply.raw.once('close', () => clearTimeout(request.responseTimer))
    done()
  })

  // From here on the response takes no time but that of its compression, and the timer's 503 would be a second response.
  app.addHook('onSend', (request, _reply, payload, done) => {
    clearTimeout(request.responseTimer)
    done(null, payload)
  })

  const deadlineOf: DeadlineOf = (request, reply) => {
    const check = () => {
      if (request.responseTimer === undefined) throw unavailable()
    }
    const restart = (ms: number) => {
      check()
      clearTimeout(request.responseTimer)
      respondWithin(ms, request, reply)
    }
    return { check, claim: () => restart(response.commitMs), extend: (ms) => restart(response.ms + ms) }
  }
  return { deadlineOf, waitForDatabase: createDatabaseWait(isOutage, databaseWait, elapsedMs) }

  function respondWithin(ms: number, request: FastifyRequest, reply: FastifyReply) {
    request.responseTimer = setTimeout(rejectLate, ms, request, reply)
  }

  function rejectLate(request: FastifyRequest, reply: FastifyReply) {
    request.responseTimer = undefined
    reply.send(unavailable())
    // Fastify ignores what the handler returns after the response, and passes what it throws to this log.
    const error = ({ err }: { err: Error & { code?: unknown } }) => {
      if (err instanceof Failure) return
      const { name, message, stack, code } = err
      log.warn({ id: request.id, error: { name, message, code, stack } }, 'Request failed after its response')
    }
    reply.log = Object.assign(Object.create(reply.log), { error })
  }
}

type TimeLimits = {
  isOutage: (error: unknown) => boolean
  elapsedMs: () => number
  log: Pick<Logger, 'warn'>
}

export function createDatabaseWait(
  isOutage: (error: unknown) => boolean,
  { pauseMs, waiting: limit }: Pick<Limits['databaseWait'], 'pauseMs' | 'waiting'>,
  elapsedMs: () => number,
): WaitForDatabase {
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
