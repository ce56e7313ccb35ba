import { createRequest, type FormRequest } from '../../support/requests.ts'
import { newKey } from '../../support/tenants.ts'
import type { WorkspaceDatabase } from '../../support/workspace.ts'
import { progress } from '../../support/workspace.ts'
import type { Section } from '../bench.ts'
import { type Service, startOurs } from '../contenders.ts'
import { type Cost, loadWithCost } from '../cost.ts'
import { CONNECTIONS, load } from '../load.ts'
import { type Finding, format } from '../report.ts'
import { alternate, median, ratios } from '../statistics.ts'
import { addMerchants, fillIntents, MERCHANTS, merchantId } from '../tables.ts'

const ROUNDS = 5
const ROUND_SECONDS = 3
const WARM_UP_SECONDS = 3
const SIZES = [1_000, 100_000, 10_000_000]
const QUICK_SIZES = [1_000, 100_000, 1_000_000]

type Stage = { database: WorkspaceDatabase; requests: FormRequest[]; service: Service }

/** What a request costs as intents gather, and what a second instance adds. */
export const growth: Section = async (bench) => {
  const prepared = await Promise.all(
    (bench.quick ? QUICK_SIZES : SIZES).map(async (size) => {
      const database = await bench.createDatabase(`growth_${size}`)
      await addMerchants(database.db)
      const requests: FormRequest[] = []
      // Every merchant has its own place in the indexes, so that pages of all of the table are asked for.
      for (let i = 0; i < MERCHANTS; i++) {
        const mid = merchantId(i)
        requests.push(createRequest({ mid, key: await newKey(database.db, { mid }) }))
      }
      await fillIntents(database.db, size)
      return { size: String(size), database, requests }
    }),
  )
  return async () => {
    const stages: Record<string, Stage> = {}
    for (const { size, database, requests } of prepared) {
      stages[size] = { database, requests, service: await startOurs(database.url) }
      await load(stages[size].service.url, requests, { seconds: WARM_UP_SECONDS })
    }
    const bySize = await alternate(Object.keys(stages), ROUNDS, async (size, round) => {
      const { service, requests } = stages[size] as Stage
      const cost = await loadWithCost(bench, service, requests, { seconds: ROUND_SECONDS })
      progress(`growth: round ${round} of ${ROUNDS}, ${size} intents: ${Math.round(cost.requestsPerSecond)} requests/s`)
      return cost
    })
    const instances = await oneAndTwo(stages[String(SIZES[0])] as Stage)
    await Promise.all(Object.values(stages).map(({ service }) => service.stop()))
    return [costFinding(bySize), instances]
  }
}

function costFinding(bySize: Record<string, Cost[]>): Finding {
  const rows = Object.entries(bySize).map(([size, costs]) => ({
    stored: Number(size).toLocaleString('en'),
    samples: (figure: keyof Cost) => costs.map((cost) => cost[figure]),
  }))
  const table = [
    `| stored intents | requests/s | processor time of the service, µs a request | of PostgreSQL, µs a request |`,
    '|--:|--:|--:|--:|',
    ...rows.map(({ stored, samples }) => {
      const figures = (['requestsPerSecond', 'serviceMicroseconds', 'databaseMicroseconds'] as const).map(samples)
      return `| ${[stored, ...figures.map((figure) => format(median(figure)))].join(' | ')} |`
    }),
  ]
  return {
    title: `createPaymentIntent of ${MERCHANTS} merchants as intents gather`,
    series: rows.map(({ stored, samples }) => {
      return { contender: `${stored} stored`, unit: 'requests/s', samples: samples('requestsPerSecond') }
    }),
    figures: [],
    notes: [`For test/bench/README.md:\n\n${table.join('\n')}`],
  }
}

async function oneAndTwo({ database, requests, service }: Stage): Promise<Finding> {
  const second = await startOurs(database.url)
  await load(second.url, requests, { seconds: WARM_UP_SECONDS })
  const urls = { one: [service.url], two: [service.url, second.url] }
  const series = await alternate(['one', 'two'], ROUNDS, async (name, round) => {
    const { requestsPerSecond } = await load(urls[name], requests, { seconds: ROUND_SECONDS })
    progress(`growth: round ${round} of ${ROUNDS}, instances: ${name}: ${Math.round(requestsPerSecond)} requests/s`)
    return requestsPerSecond
  })
  await second.stop()
  const row = (samples: number[]) => format(median(samples))
  return {
    title: `createPaymentIntent by one and two instances, ${CONNECTIONS} connections in all`,
    series: [
      { contender: '1 instance', unit: 'requests/s', samples: series.one },
      { contender: '2 instances', unit: 'requests/s', samples: series.two },
    ],
    figures: [{ what: '2 instances / 1 instance', samples: ratios(series.two, series.one), unit: '×' }],
    notes: [
      `For test/bench/README.md:\n\n| instances | requests/s |\n|--:|--:|\n| 1 | ${row(series.one)} |\n| 2 | ${row(series.two)} |`,
      'Load generator, PostgreSQL and every instance share the cores of this machine.',
    ],
  }
}
