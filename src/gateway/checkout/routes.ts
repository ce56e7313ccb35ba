import type { FastifyInstance } from 'fastify'
import { pageEvents } from './events.ts'
import { simulation } from './simulate.ts'

type Dependencies = Parameters<typeof pageEvents>[1] & Parameters<typeof simulation>[1] & { sandbox: boolean }

/** The events of the pay page, and in a sandbox its form: routes that are no documented operations. */
export function pageRoutes(app: FastifyInstance, dependencies: Dependencies) {
  pageEvents(app, dependencies)
  if (dependencies.sandbox) simulation(app, dependencies)
}
