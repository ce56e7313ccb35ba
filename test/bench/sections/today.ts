import { run } from '../../support/processes.ts'
import { BUILT_OPS, BUILT_SERVER, type ServerProcess, startServerProcess } from '../../support/server-process.ts'
import { until } from '../../support/wait.ts'
import { progress } from '../../support/workspace.ts'
import type { Section } from '../bench.ts'
import type { Finding } from '../report.ts'
import { addMerchants, fillIntents } from '../tables.ts'

const INTENTS = 10_000_000
const QUICK_INTENTS = 1_000_000
const DAYS = 30
const STARTS = 5
const LATER_OPENS = 20
const WHOLE_TIMEOUT_MS = 120_000
const OPEN_LIMIT_MS = 1_000

/** How soon the operator sees today and the last days. */
export const today: Section = async (bench) => {
  const { url, db } = await bench.createDatabase('today')
  const count = bench.quick ? QUICK_INTENTS : INTENTS
  await addMerchants(db)
  await fillIntents(db, count, { days: DAYS, paidShare: 0.8 })
  return async () => {
    const times = { first: [] as number[], whole: [] as number[], later: [] as number[], command: [] as number[] }
    for (let start = 0; start < STARTS; start++) {
      const server = await startServerProcess(url, {}, { built: BUILT_SERVER })
      const began = performance.now()
      times.first.push((await open(server)).ms)
      await until('all is counted', async () => (await open(server)).isWhole, {
        timeoutMs: WHOLE_TIMEOUT_MS,
        pollMs: 1_000,
      })
      times.whole.push(performance.now() - began)
      for (let i = 0; i < LATER_OPENS; i++) times.later.push((await open(server)).ms)
      await server.stop()
      times.command.push(await timeCommand(url))
      progress(`today: start ${start + 1} of ${STARTS}`)
    }
    return [finding(count, times)]
  }
}

async function open({ opsUrl }: ServerProcess): Promise<{ ms: number; isWhole: boolean }> {
  const began = performance.now()
  const answer = await fetch(opsUrl)
  const page = await answer.text()
  const ms = performance.now() - began
  if (answer.status !== 200) throw new Error(`The operator’s page was answered ${answer.status}`)
  return { ms, isWhole: !page.includes('Still counting') }
}

async function timeCommand(url: string): Promise<number> {
  const began = performance.now()
  const env = { PATH: process.env.PATH, NODE_ENV: 'production', DATABASE_URL: url }
  await run(process.execPath, [BUILT_OPS, 'today', '--json'], { env })
  return performance.now() - began
}

function finding(count: number, { first, whole, later, command }: Record<string, number[]>): Finding {
  return {
    title: `The operator’s page and ops today, with ${count.toLocaleString('en')} intents in ${DAYS} days`,
    series: [{ contender: 'until all days are counted', unit: 'ms', samples: whole ?? [] }],
    figures: [
      { what: 'first open after a start', unit: 'ms', samples: first ?? [], atMost: OPEN_LIMIT_MS },
      { what: 'later opens', unit: 'ms', samples: later ?? [], atMost: OPEN_LIMIT_MS },
      { what: 'ops today, the process with it', unit: 'ms', samples: command ?? [], atMost: OPEN_LIMIT_MS },
    ],
  }
}
