import type { FastifyInstance } from 'fastify'
import { notReady } from '../errors.ts'
import { ok } from './envelope.ts'

export type Health = {
  /** Why the service should get no traffic now; undefined when it should. */
  unreadyReason: () => Promise<string | undefined>
  /** What the operator should mend although the service can serve. */
  warnings: readonly string[]
}

/** `/livez`: the process answers. `/readyz`: it can serve, and what should be mended, else 503 with the reason. */
export function healthRoutes(app: FastifyInstance, { unreadyReason, warnings }: Health) {
  app.get('/livez', async () => ok('Alive', {}))
  app.get('/readyz', async () => {
    const reason = await unreadyReason()
    if (reason !== undefined) throw notReady(reason)
    return ok('Ready', { warnings })
  })
}
