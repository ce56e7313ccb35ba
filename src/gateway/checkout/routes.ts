import type { FastifyInstance } from 'fastify'
import { pageEvents } from './events.ts'
import { simulation } from './simulate.ts'

type Dependencies = Parameters<typeof pageEvents>[1] & Parameters<typeof simulation>[1] & { sandbox: boolean }

/**
 * Registers routes that are not documented operations: the pay page's events and, in a sandbox, its simulation form.
 */
export function pageRoutes(app: FastifyInstance, dependencies: Dependencies) {
  pageEvents(app, dependencies)
  if (dependencies.sandbox) simulation(app, dependencies)
}
