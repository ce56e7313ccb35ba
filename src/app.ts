import type { FastifyInstance } from 'fastify'
import { docsRoutes } from './docs/routes.ts'
import { acquirerRoutes } from './gateway/acquirers/routes.ts'
import { pageRoutes } from './gateway/checkout/routes.ts'
import { requireKey } from './gateway/tenants/authenticate.ts'
import { WEBHOOKS } from './gateway/webhooks/events.ts'
import { startJobs } from './jobs.ts'
import { documentedOperations, OPERATIONS } from './operations.ts'
import { isOutage } from './platform/db/outage.ts'
import { healthRoutes } from './platform/http/health.ts'
import { createHttpApp } from './platform/http/http-app.ts'
import { registerTimeLimits } from './platform/http/time-limits.ts'
import type { Services } from './services.ts'

/**
 * Builds the service with all its routes and jobs, ready to listen. A request passes, in this order:
 *  1. the socket: limits on connections and on the time for headers and body; malformed HTTP (connections, broken-http)
 *  2. the request id, and later an entry in the request log (request-log)
 *  3. errors that are detected before the body is read, such as an unknown path or Content-Type (error-handler, input)
 *  4. the route
 *  5. credentials, with the limit for wrong secrets (authenticate, rate-limits)
 *  6. the rate limit of the API key (rate-limits)
 *  7. the body: size, form or JSON (input); for a notification, its signature replaces step 5 (acquirers/notification)
 *  8. the time limit for the response (time-limits)
 *  9. the fields (the operation's schema)
 * 10. authorization: the merchant or partner to which the key belongs, and the key's rights (authorize)
 * 11. the operation: rules without SQL, then one statement
 * 12. the response: envelope and headers (envelope, operation)
 * 13. metrics and the log line (request-log)
 */
export async function buildApp(services: Services): Promise<FastifyInstance> {
  const { config, metrics, now, publicUrl, sandbox } = services
  const app = await createHttpApp({
    ...services,
    isOutage,
    trustProxy: config.trustProxy,
    onRequest: (request, durationMs) => metrics.request(request, durationMs, now()),
  })
  const time = registerTimeLimits(app, services.limits, { ...services, isOutage })

  healthRoutes(app, OPERATIONS.health, services)
  await app.register(async (pages) => {
    pageRoutes(pages, services)
    for (const operation of OPERATIONS.pages) operation.register(pages, services)
    const acceptsNotifications = config.acquirers.direct.length > 0
    const operations = documentedOperations(acceptsNotifications)
    docsRoutes(pages, { publicUrl, operations, webhooks: WEBHOOKS, acceptsNotifications, sandbox })
  })
  await app.register(async (acquirer) => acquirerRoutes(acquirer, services))
  await app.register(async (v1) => {
    const dependencies = { ...services, ...time }
    await requireKey(v1, dependencies)
    for (const operation of OPERATIONS.v1) operation.register(v1, dependencies)
  })

  const jobs = startJobs(services)
  app.addHook('preClose', jobs.stop)
  return app
}
