import { cpuSeconds } from '../support/processes.ts'
import type { FormRequest } from '../support/requests.ts'
import type { Bench } from './bench.ts'
import type { Service } from './contenders.ts'
import { type LoadMode, type LoadResult, load } from './load.ts'
import type { Series } from './report.ts'

/** The result of a load and the processor time of each request; 0 on systems that do not report processor time. */
export type Cost = LoadResult & { serviceMicroseconds: number; databaseMicroseconds: number }

/** Runs `load` against one service. Its cost includes PostgreSQL's work until `settled` resolves. */
export async function loadWithCost(
  { postgres }: Bench,
  service: Service,
  requests: FormRequest | FormRequest[],
  {
    settled,
    ...options
  }: {
    seconds: number
    mode?: LoadMode | undefined
    connections?: number
    settled?: (() => Promise<void>) | undefined
  },
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

/** Two series of `costs`: the service's processor time, then the database's. */
export function costSeries(contender: string, costs: Cost[]): [Series, Series] {
  return [
    {
      contender: `${contender}, service`,
      unit: 'µs/request',
      samples: costs.map((cost) => cost.serviceMicroseconds),
    },
    {
      contender: `${contender}, database`,
      unit: 'µs/request',
      samples: costs.map((cost) => cost.databaseMicroseconds),
    },
  ]
}
