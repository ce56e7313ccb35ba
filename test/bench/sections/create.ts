import { residentMB } from '../../support/processes.ts'
import { createRequest, type FormRequest } from '../../support/requests.ts'
import { newMerchant } from '../../support/tenants.ts'
import { progress } from '../../support/workspace.ts'
import type { Bench, Section } from '../bench.ts'
import { floor, type Service, startContender, startOurs, typical } from '../contenders.ts'
import { type Cost, costSeries, loadWithCost } from '../cost.ts'
import { CONNECTIONS, load, type Response, responsesTo } from '../load.ts'
import { preparePgbench } from '../pgbench.ts'
import type { Finding } from '../report.ts'
import { requireSameBytes } from '../same-bytes.ts'
import { alternate, median, ratios } from '../statistics.ts'

const MID = 'BENCH_MERCHANT'
const ROUNDS = 5
const ROUND_SECONDS = 5
const WARM_UP_SECONDS = 6
/** V8 grows its heap a little when it can; a leak of 100 bytes a request exceeds this limit within a run. */
const MEMORY_GROWTH_LIMIT = 1.25

type Contender = { service: Service; request: FormRequest }
type Contenders = Record<'floor' | 'logging' | 'ours' | 'typical', Contender>

/** Measures createPaymentIntent: processor time, requests per second, latency at half of the peak rate, and memory. */
export const create: Section = async (bench) => {
  const oursDatabase = await bench.createDatabase('create_ours')
  const typicalDatabase = await bench.createComparedDatabase('create_typical')
  const pgbenchDatabase = await bench.createComparedDatabase('create_pgbench')
  await newMerchant(pgbenchDatabase.db, { mid: MID })
  const pgbench = preparePgbench(bench.directory, pgbenchDatabase.url, MID)
  const request = createRequest(await newMerchant(oursDatabase.db, { mid: MID }))
  const typicalRequest = createRequest(await newMerchant(typicalDatabase.db, { mid: MID }))

  return async () => {
    const ours = { service: await startOurs(oursDatabase.url), request }
    const [response] = (await responsesTo(ours.service.url, [request])) as [Response]
    const contenders = {
      floor: { service: await startContender(floor(response)), request },
      logging: { service: await startContender(floor(response, true)), request },
      ours,
      typical: { service: await startContender(typical(typicalDatabase.url)), request: typicalRequest },
    }
    const sent = Object.entries(contenders).map(async ([name, { service, request }]) => [
      name,
      await responsesTo(service.url, [request]),
    ])
    requireSameBytes(Object.fromEntries(await Promise.all(sent)))
    const { findings, peak, responded } = await atFullLoad(bench, contenders, pgbench)
    const { rows } = await oursDatabase.db.query<{ count: string }>('select count(*) from payment_intents')
    if (Number(rows[0]?.count) < responded) throw new Error('The service returned 200 for more intents than it stored.')
    const paced = await pacedLatency(contenders, peak / 2)
    await Promise.all(Object.values(contenders).map(({ service }) => service.stop()))
    return [...findings, paced]
  }
}

async function atFullLoad(bench: Bench, contenders: Contenders, pgbench: ReturnType<typeof preparePgbench>) {
  const names = ['floor', 'logging', 'ours', 'typical'] as const
  const costs: Record<(typeof names)[number], Cost[]> = { floor: [], logging: [], ours: [], typical: [] }
  const memoryMB: number[] = []
  let responded = 0

  const loadFor = async (name: (typeof names)[number], seconds: number) => {
    const { service, request } = contenders[name]
    const cost = await loadWithCost(bench, service, request, { seconds })
    if (name === 'ours') responded += cost.requests
    return cost
  }
  for (const name of names) {
    progress(`createPaymentIntent: warming up: ${name}`)
    await loadFor(name, WARM_UP_SECONDS)
  }
  const all = [...names, ...(pgbench ? (['database'] as const) : [])]
  const rates = await alternate(all, ROUNDS, async (name, round) => {
    const perSecond = name === 'database' ? await pgbench?.({ seconds: ROUND_SECONDS }) : await record(name)
    progress(`createPaymentIntent: round ${round} of ${ROUNDS}, ${name}: ${Math.round(perSecond ?? 0)} /s`)
    return perSecond ?? 0
  })
  return { findings: [processorTime(costs), throughput(rates, memoryMB)], peak: median(rates.ours), responded }

  async function record(name: (typeof names)[number]): Promise<number> {
    const cost = await loadFor(name, ROUND_SECONDS)
    costs[name].push(cost)
    if (name === 'ours') memoryMB.push(residentMB(contenders.ours.service.pid))
    return cost.requestsPerSecond
  }
}

/**
 * Processor time is the main figure, because programs that share the cores slow every contender down but hardly change
 * the cost of a request.
 */
function processorTime({ floor, logging, ours, typical }: Record<keyof Contenders, Cost[]>): Finding {
  const ofService = (costs: Cost[]) => costs.map((cost) => cost.serviceMicroseconds)
  const inAll = (costs: Cost[]) => costs.map((cost) => cost.serviceMicroseconds + cost.databaseMicroseconds)
  return {
    title: `Processor time of createPaymentIntent at ${CONNECTIONS} connections, Node.js ${process.versions.node}`,
    series: [
      ...costSeries('this service', ours),
      ...costSeries('reference', typical),
      costSeries('bare Fastify', floor)[0],
      costSeries('bare Fastify with log', logging)[0],
    ],
    figures: [
      {
        what: 'processor time: this service / bare Fastify',
        samples: ratios(ofService(ours), ofService(floor)),
        unit: '×',
      },
      {
        what: 'processor time: this service / bare Fastify with log',
        samples: ratios(ofService(ours), ofService(logging)),
        unit: '×',
        atMost: 2,
      },
      {
        what: 'processor time: reference / bare Fastify',
        samples: ratios(ofService(typical), ofService(floor)),
        unit: '×',
      },
      {
        what: 'processor time with database: reference / this service',
        samples: ratios(inAll(typical), inAll(ours)),
        unit: '×',
        atLeast: 3,
      },
    ],
    notes: [
      'This service runs as shipped, with all features on. Only RATE_LIMIT_PER_SECOND is raised, because one key sends all requests.',
    ],
  }
}

function throughput(
  { floor, ours, typical, database }: Record<'floor' | 'ours' | 'typical', number[]> & { database?: number[] },
  memoryMB: number[],
): Finding {
  return {
    title: `createPaymentIntent at ${CONNECTIONS} connections, with load generator and PostgreSQL on the same cores`,
    series: [
      ...Object.entries({ 'bare Fastify': floor, 'this service': ours, reference: typical }).map(
        ([contender, samples]) => ({
          contender,
          unit: 'requests/s',
          samples,
        }),
      ),
      ...(database ? [{ contender: 'database alone (pgbench)', unit: 'inserts/s', samples: database }] : []),
      { contender: 'this service, resident memory', unit: 'MB', samples: memoryMB },
    ],
    figures: [
      { what: 'this service / bare Fastify', samples: ratios(ours, floor), unit: '×' },
      { what: 'this service / reference', samples: ratios(ours, typical), unit: '×' },
      {
        what: 'memory after the last round / after the first',
        samples: [(memoryMB.at(-1) ?? 0) / (memoryMB[0] ?? 0)],
        unit: '×',
        atMost: MEMORY_GROWTH_LIMIT,
      },
    ],
  }
}

async function pacedLatency({ floor, ours }: Contenders, rate: number): Promise<Finding> {
  const series = await alternate(['floor', 'ours'], ROUNDS, async (name, round) => {
    const { service, request } = name === 'floor' ? floor : ours
    const result = await load(service.url, request, { seconds: ROUND_SECONDS, rate })
    progress(`createPaymentIntent: paced round ${round} of ${ROUNDS}, ${name}: p99 ${result.p99Ms.toFixed(2)} ms`)
    return result
  })
  const samples = (name: 'floor' | 'ours', figure: 'p50Ms' | 'p99Ms') => series[name].map((result) => result[figure])
  return {
    title: `createPaymentIntent at ${Math.round(rate)} requests/s, half of this service's peak rate`,
    series: [
      { contender: 'bare Fastify, p99', unit: 'ms', samples: samples('floor', 'p99Ms') },
      { contender: 'this service, p99', unit: 'ms', samples: samples('ours', 'p99Ms') },
      { contender: 'bare Fastify, p50', unit: 'ms', samples: samples('floor', 'p50Ms') },
      { contender: 'this service, p50', unit: 'ms', samples: samples('ours', 'p50Ms') },
    ],
    figures: [
      {
        what: 'p99 at the same rate: this service / bare Fastify',
        samples: ratios(samples('ours', 'p99Ms'), samples('floor', 'p99Ms')),
        unit: '×',
        atMost: 3,
      },
    ],
  }
}
