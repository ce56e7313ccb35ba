import type { FastifyInstance } from 'fastify'
import type { Limits } from '../../limits.ts'
import { refuseWhileLate } from '../../platform/http/time-limits.ts'
import { pageEvents } from './events.ts'
import { simulation } from './simulate.ts'

type Dependencies = Parameters<typeof pageEvents>[1] &
  Parameters<typeof simulation>[1] & { sandbox: boolean; limits: Pick<Limits, 'lateness'>; latenessMs: () => number }

/** The events of the pay page, and in a sandbox its form: routes that are no documented operations. */
export function pageRoutes(app: FastifyInstance, dependencies: Dependencies) {
  refuseWhileLate(app, dependencies.latenessMs, dependencies.limits.lateness.pagesMs)
  pageEvents(app, dependencies)
  if (dependencies.sandbox) simulation(app, dependencies)
}
