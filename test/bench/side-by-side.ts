import type { FormRequest } from '../support/requests.ts'
import { progress } from '../support/workspace.ts'
import type { Bench } from './bench.ts'
import { floor, type Service, startContender } from './contenders.ts'
import { type Cost, costSeries, loadWithCost } from './cost.ts'
import { CONNECTIONS, type LoadMode, type Response, responsesTo } from './load.ts'
import type { Finding } from './report.ts'
import { requireSameBytes } from './same-bytes.ts'
import { alternate, ratios } from './statistics.ts'

const LABELS = { ours: 'this service', typical: 'reference', floor: 'bare Fastify with log' }
type Name = keyof typeof LABELS
const ROUNDS = 9
const ROUND_SECONDS = 4
const WARM_UP_SECONDS = 4

/**
 * One service and the requests of its next round, sent repeatedly or as `mode` says. Its cost includes all work until
 * `settled` resolves.
 */
export type Side = {
  service: Service
  requests: (seconds: number) => FormRequest[]
  mode?: LoadMode
  settled?: () => Promise<void>
  /** The first webhook, once it has been received. */
  webhook?: () => unknown
}

type Targets = {
  /** The largest ratio of this service's processor time, with the database's, to the reference's. */
  costAtMost: number
  /** The smallest ratio of this service's requests per second to the reference's. */
  rateAtLeast?: number
}

/**
 * Measures an operation of this service, of the reference and, unless it has a mode, of a bare Fastify that logs: in
 * alternating rounds, by processor time and by requests per second. All of them send the same bytes.
 */
export async function sideBySide(
  bench: Bench,
  operation: string,
  { ours, typical }: { ours: Side; typical: Side },
  { costAtMost, rateAtLeast }: Targets,
): Promise<Finding> {
  const sent = { 'this service': await messagesOf(ours), reference: await messagesOf(typical) }
  requireSameBytes(sent)
  const response = sent['this service'][0] as Response
  const sides: Partial<Record<Name, Side>> = { ours, typical }
  if (ours.mode === undefined) sides.floor = await bareSide(ours, response)
  const names = Object.keys(sides) as Name[]
  const run = (name: Name, seconds: number) => {
    const { service, requests, mode, settled } = sides[name] as Side
    return loadWithCost(bench, service, requests(seconds), { seconds, mode, settled })
  }
  for (const name of names) {
    progress(`${operation}: warming up: ${LABELS[name]}`)
    await run(name, WARM_UP_SECONDS)
  }
  const costs = await alternate(names, ROUNDS, async (name, round) => {
    const cost = await run(name, ROUND_SECONDS)
    progress(
      `${operation}: round ${round} of ${ROUNDS}, ${LABELS[name]}: ${Math.round(cost.requestsPerSecond)} requests/s`,
    )
    return cost
  })
  await sides.floor?.service.stop()
  const ofService = (of: Cost[]) => of.map((cost) => cost.serviceMicroseconds)
  const inAll = (of: Cost[]) => of.map((cost) => cost.serviceMicroseconds + cost.databaseMicroseconds)
  const perSecond = (of: Cost[]) => of.map((cost) => cost.requestsPerSecond)
  return {
    title: `${operation} at ${CONNECTIONS} connections (a response of ${response.body.length} bytes)`,
    series: [
      ...costSeries(LABELS.ours, costs.ours),
      ...costSeries(LABELS.typical, costs.typical),
      ...(sides.floor ? [costSeries(LABELS.floor, costs.floor)[0]] : []),
      ...names.map((name) => ({ contender: LABELS[name], unit: 'requests/s', samples: perSecond(costs[name]) })),
    ],
    figures: [
      {
        what: 'processor time with database: this service / reference',
        samples: ratios(inAll(costs.ours), inAll(costs.typical)),
        unit: '×',
        atMost: costAtMost,
      },
      {
        what: 'requests per second: this service / reference',
        samples: ratios(perSecond(costs.ours), perSecond(costs.typical)),
        unit: '×',
        ...(rateAtLeast !== undefined && { atLeast: rateAtLeast }),
      },
      ...(sides.floor
        ? [
            {
              what: 'processor time: this service / bare Fastify with log',
              samples: ratios(ofService(costs.ours), ofService(costs.floor)),
              unit: '×',
            },
          ]
        : []),
    ],
  }
}

async function messagesOf({ service, requests, mode, settled, webhook }: Side): Promise<unknown[]> {
  const responses = await responsesTo(service.url, requests(0), mode)
  await settled?.()
  return [...responses, webhook?.()]
}

/** A bare Fastify that returns `response` for all requests of `side`. */
async function bareSide({ requests }: Side, response: Response): Promise<Side> {
  const bare = { service: await startContender(floor(response, true)), requests }
  const [returned] = await messagesOf(bare)
  requireSameBytes({ 'this service': [response], 'bare Fastify': [returned] })
  return bare
}
