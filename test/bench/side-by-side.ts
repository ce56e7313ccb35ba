import type { FormRequest } from '../support/requests.ts'
import { progress } from '../support/workspace.ts'
import type { Bench } from './bench.ts'
import { floor, type Service, startContender } from './contenders.ts'
import { type Cost, costSeries, loadWithCost } from './cost.ts'
import { answerTo, CONNECTIONS, type LoadMode } from './load.ts'
import type { Finding } from './report.ts'
import { alternate, ratios } from './statistics.ts'

const ROUNDS = 9
const ROUND_SECONDS = 4
const WARM_UP_SECONDS = 4

/**
 * Where requests go, and which of them the next round sends, as often as it takes or as `mode` says. The cost is what is
 * used until `settled` resolves.
 */
export type Side = {
  service: Service
  requests: (seconds: number) => FormRequest[]
  mode?: LoadMode
  settled?: () => Promise<void>
}

type Targets = {
  /** Processor time of service and database of ours / of typical. */
  costAtMost: number
  /** Answers a second of ours / of typical. */
  rateAtLeast?: number
}

/**
 * Measures an operation beside what is written first, and beside a bare Fastify that logs and answers the same bytes: in turns, in
 * one run, by processor time and by requests a second.
 */
export async function sideBySide(
  bench: Bench,
  operation: string,
  { ours, typical }: { ours: Side; typical: Side },
  { costAtMost, rateAtLeast }: Targets,
): Promise<Finding> {
  const [first] = ours.requests(0)
  const answer = await answerTo(ours.service.url, first as FormRequest)
  const bare: Side = {
    service: await startContender(floor(answer, true)),
    requests: () => [first as FormRequest],
    ...(ours.mode === 'payments' && { mode: ours.mode }),
  }
  const sides = { ours, typical, floor: bare }
  const names = ['ours', 'typical', 'floor'] as const
  const run = (name: (typeof names)[number], seconds: number) => {
    const { service, requests, mode, settled } = sides[name]
    return loadWithCost(bench, service, requests(seconds), { seconds, mode, settled })
  }
  for (const name of names) {
    progress(`${operation}: warming ${name} up`)
    await run(name, WARM_UP_SECONDS)
  }
  const costs = await alternate(names, ROUNDS, async (name, round) => {
    const cost = await run(name, ROUND_SECONDS)
    progress(`${operation}: round ${round} of ${ROUNDS}, ${name}: ${Math.round(cost.requestsPerSecond)} /s`)
    return cost
  })
  await sides.floor.service.stop()
  const ofService = (of: Cost[]) => of.map((cost) => cost.serviceMicroseconds)
  const inAll = (of: Cost[]) => of.map((cost) => cost.serviceMicroseconds + cost.databaseMicroseconds)
  const perSecond = (of: Cost[]) => of.map((cost) => cost.requestsPerSecond)
  return {
    title: `${operation} at ${CONNECTIONS} connections (an answer of ${answer.length} bytes)`,
    series: [
      ...costSeries('ours', costs.ours),
      ...costSeries('typical', costs.typical),
      costSeries('floor that logs', costs.floor)[0],
      ...names.map((name) => ({ contender: name, unit: 'requests/s', samples: perSecond(costs[name]) })),
    ],
    figures: [
      {
        what: 'service and database of ours / of typical',
        samples: ratios(inAll(costs.ours), inAll(costs.typical)),
        unit: '×',
        atMost: costAtMost,
      },
      {
        what: 'ours a second / typical',
        samples: ratios(perSecond(costs.ours), perSecond(costs.typical)),
        unit: '×',
        ...(rateAtLeast !== undefined && { atLeast: rateAtLeast }),
      },
      {
        what: 'service of ours / floor that logs',
        samples: ratios(ofService(costs.ours), ofService(costs.floor)),
        unit: '×',
      },
    ],
  }
}
