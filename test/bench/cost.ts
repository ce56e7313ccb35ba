import { cpuSeconds } from '../support/processes.ts'
import type { FormRequest } from '../support/requests.ts'
import type { Bench } from './bench.ts'
import type { Service } from './contenders.ts'
import { type LoadMode, type LoadResult, load } from './load.ts'
import type { Series } from './report.ts'

/** What a load came to, and what each of its requests cost; 0 where the system does not tell processor time. */
export type Cost = LoadResult & { serviceMicroseconds: number; databaseMicroseconds: number }

/** As `load`, for one service and what PostgreSQL does for it until `settled` resolves. */
export async function loadWithCost(
  { postgres }: Bench,
  service: Service,
  requests: FormRequest | FormRequest[],
  {
    settled,
    ...options
  }: { seconds: number; mode?: LoadMode | undefined; settled?: (() => Promise<void>) | undefined },
): Promise<Cost> {
  const before = { service: cpuSeconds(service.pid), database: cpuSeconds(postgres.pid()) }
  const result = await load(service.url, requests, options)
  await settled?.()
  const perRequest = (seconds: number) => (seconds * 1e6) / result.requests
  return {
    ...result,
    serviceMicroseconds: perRequest(cpuSeconds(service.pid) - before.service),
    databaseMicroseconds: perRequest(cpuSeconds(postgres.pid()) - before.database),
  }
}

/** One series a figure of `costs`: the service first. */
export function costSeries(contender: string, costs: Cost[]): [Series, Series] {
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
