import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import * as z from 'zod'
import { internalError, unavailable } from '../../errors.ts'
import { type Operation, operation, success } from './operation.ts'

export const livez = operation({
  path: '/livez',
  tag: 'Operator',
  summary: 'Whether the process answers',
  description: 'For whoever restarts processes. Says nothing of the database.',
  access: 'anyone',
  refusals: [],
  answer: success('Alive', { description: 'It does.', name: 'Alive', data: z.strictObject({}), example: {} }),
  handle: (_dependencies: unknown) => async () => ({}),
})

export const readyz = operation({
  path: '/readyz',
  tag: 'Operator',
  summary: 'Whether the service can serve',
  description: 'For load balancers: send nothing here while it is 503.',
  access: 'anyone',
  refusals: [
    unavailable('The database does not answer'),
    unavailable('The database is a standby and accepts no writes: let DATABASE_URL name the primary'),
    unavailable('Shutting down'),
    internalError(),
  ],
  answer: success('Ready', {
    description: 'It can.',
    name: 'Ready',
    data: z.strictObject({
      warnings: z
        .array(z.string())
        .meta({ description: 'What the operator should mend although the service can serve.' }),
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

/** `/livez` and `/readyz`; warnings are logged at the start. */
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
  /** Why the service is not ready for requests; undefined when it is ready. */
  unreadyReason: () => Promise<string | undefined>
  /** Faults of the configuration that do not keep the service from working. */
  warnings: () => Promise<string[]>
}
