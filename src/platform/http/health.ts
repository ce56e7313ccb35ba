import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import * as z from 'zod'
import { internalError, unavailable } from '../../errors.ts'
import { type Operation, operation, success } from './operation.ts'

export const livez = operation({
  path: '/livez',
  tag: 'Operator',
  summary: 'Check liveness',
  description: 'For process supervisors and container platforms. Does not check the database.',
  access: 'anyone',
  errors: [],
  response: success('Alive', {
    description: 'The process responds.',
    name: 'Alive',
    data: z.strictObject({}),
    example: {},
  }),
  handle: (_dependencies: unknown) => async () => ({}),
})

export const readyz = operation({
  path: '/readyz',
  tag: 'Operator',
  summary: 'Check readiness',
  description: 'For load balancers: route no traffic to an instance while this returns 503.',
  access: 'anyone',
  errors: [
    unavailable('The database does not respond'),
    unavailable('The database is a standby and accepts no writes. Set DATABASE_URL to the primary.'),
    unavailable('Shutting down'),
    internalError(),
  ],
  response: success('Ready', {
    description: 'The instance can serve requests.',
    name: 'Ready',
    data: z.strictObject({
      warnings: z
        .array(z.string())
        .meta({ description: 'Problems that the operator should fix, although the service can serve requests.' }),
    }),
    example: { warnings: [] },
  }),
  handle: ({ unreadyReason, warnings }: Readiness) => {
    return async () => {
      const reason = await unreadyReason()
      if (reason !== undefined) throw unavailable(reason)
      return { warnings: await warnings() }
    }
  },
})

/** Registers `/livez` and `/readyz`. Warnings are also logged when the service starts. */
export function healthRoutes(
  app: FastifyInstance,
  operations: readonly Operation<Readiness>[],
  { readiness, config, log }: { readiness: Readiness; config: { warnings: string[] }; log: Pick<Logger, 'warn'> },
) {
  for (const operation of operations) operation.register(app, readiness)
  app.addHook('onListen', async () => {
    for (const warning of await readiness.warnings().catch(() => config.warnings)) log.warn(warning)
  })
}

export type Readiness = {
  /** Returns the reason why the service cannot serve requests; undefined if the service can serve requests. */
  unreadyReason: () => Promise<string | undefined>
  /** Returns the configuration errors that do not prevent the service from working. */
  warnings: () => Promise<string[]>
}
