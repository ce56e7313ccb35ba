import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { unavailable } from '../errors.ts'

/**
 * Answers every request to `app` within what `limitMs` grants it, whatever its handler waits for; a patient request may take
 * longer, see patience.ts. The handler is not stopped. Not Fastify's handlerTimeout, which counts the time of the body too: a
 * slow sender would get 503 for 408.
 */
export function registerAnswerDeadline(
  app: FastifyInstance,
  limitMs: (request: FastifyRequest) => number,
  elapsedMs: () => number,
) {
  // Not in an earlier hook, because the client decides how long its body takes. Hooks with a callback: an async hook
  // costs a promise.
  app.addHook('preHandler', (request, reply, done) => {
    const timer = setTimeout(refuseLate, Math.max(limitMs(request), request.patientUntil - elapsedMs()), reply)
    // Not the hook onResponse: for it Fastify adds and removes two listeners of every response, 3 % of a create.
    reply.raw.once('close', () => clearTimeout(timer))
    done()
  })
}

function refuseLate(reply: FastifyReply) {
  // A long list that has begun has no deadline.
  if (!reply.raw.headersSent) reply.send(unavailable())
}
