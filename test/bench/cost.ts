import type { Bench } from './bench.ts'
import { type LoadRequest, type LoadResult, load } from './load.ts'
import { cpuSeconds, type Service } from './processes.ts'
import type { Series } from './report.ts'

/** What a load came to, and what each of its requests cost; 0 where the system does not tell processor time. */
export type Cost = LoadResult & { serviceMicroseconds: number; databaseMicroseconds: number }

/** As `load`, for one service and what PostgreSQL does for it. */
export async function loadWithCost(
  { postgresPid }: Bench,
  service: Service,
  requests: LoadRequest | LoadRequest[],
  options: { seconds: number },
): Promise<Cost> {
  const before = { service: cpuSeconds(service.pid), database: cpuSeconds(postgresPid) }
  const result = await load(service.url, requests, options)
  const perRequest = (seconds: number) => (seconds * 1e6) / result.requests
  return {
    ...result,
    serviceMicroseconds: perRequest(cpuSeconds(service.pid) - before.service),
    databaseMicroseconds: perRequest(cpuSeconds(postgresPid) - before.database),
  }
}

/** One series a figure of `costs`. */
export function costSeries(contender: string, costs: Cost[]): Series[] {
  return [
    {
      contender: `${contender}, service`,
      unit: 'µs a request',
      samples: costs.map((cost) => cost.serviceMicroseconds),
    },
    {
      contender: `${contender}, database`,
      unit: 'µs a request',
      samples: costs.map((cost) => cost.databaseMicroseconds),
    },
  ]
}
