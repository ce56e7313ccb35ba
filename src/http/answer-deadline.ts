import type { FastifyInstance, FastifyReply } from 'fastify'
import { unavailable } from '../errors.ts'

declare module 'fastify' {
  interface FastifyRequest {
    answerTimer: NodeJS.Timeout | undefined
  }
}

/**
 * Longest time from a complete request to the first byte of its answer; then it is 503. A handler may wait for a place in
 * a batch, for a connection and for several queries in turn, each with a limit of its own: only here is their sum known.
 * With the look-up of credentials, which comes before the body, it stays below 2 s, however the database is away. A patient
 * request has longer: see patience.ts.
 */
const ANSWER_LIMIT_MS = 1_100

/** Answers every request to `app` in time, whatever its handler waits for. What the handler still does is not undone. */
export function registerAnswerDeadline(app: FastifyInstance) {
  app.decorateRequest('answerTimer', undefined)
  // Not earlier: how long a body takes to arrive is up to the client. Hooks by callback: an async one costs a promise.
  app.addHook('preHandler', (request, reply, done) => {
    const patienceMs = (request.patience?.until ?? 0) - performance.now()
    request.answerTimer = setTimeout(refuseLate, Math.max(ANSWER_LIMIT_MS, patienceMs), reply)
    done()
  })
  app.addHook('onResponse', (request, _reply, done) => {
    clearTimeout(request.answerTimer)
    done()
  })
}

function refuseLate(reply: FastifyReply) {
  // A long list that has begun may take its time.
  if (!reply.raw.headersSent) reply.send(unavailable())
}
