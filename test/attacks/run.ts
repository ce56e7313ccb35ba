// npm run test:attacks [-- NAME…]: attacks the service as it is shipped, in one way after the other, while a merchant who has
// nothing to do with it creates payments beside it; with one merchant's key at most, most of them without any. Exits 1 when that
// merchant was refused or waited too long. Everything stays on 127.0.0.1 and ends within five minutes.
import { cpus, loadavg } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { cpuSeconds, residentMB, run } from '../bench/processes.ts'
import { progress } from '../bench/report.ts'
import type { Journal } from '../faults/journal.ts'
import { ATTACKS, type Attack, type Blow, QUIET } from './attacks.ts'
import { type Field, hasBalancer, openField } from './field.ts'
import { type Figures, figuresOf, startInnocents } from './innocents.ts'
import { percentOf, printTable, type Result } from './table.ts'

const LEAST_SUCCESSES_PERCENT = 99
const MOST_TIMES_QUIET = 10
const MEMORY_INTERVAL_MS = 100
/** What an attack leaves behind is felt after it. */
const AFTERMATH_MS = 1_000
/** Between an attack and the next one. */
const REST_MS = 1_500

const chosen = process.argv.slice(2)
const unknown = chosen.filter((name) => !(name in ATTACKS))
if (unknown.length > 0) {
  console.error(`Unknown: ${unknown.join(' ')}. Attacks are ${Object.keys(ATTACKS).join(', ')}.`)
  process.exit(2)
}

try {
  process.exit((await attackAll()) ? 0 : 1)
} catch (error) {
  console.error(error)
  process.exit(1)
}

async function attackAll(): Promise<boolean> {
  const startedAt = performance.now()
  const loadBefore = load()
  progress('building')
  await run('npm', ['run', '--silent', 'build'])
  const field = await openField()
  const wanted = Object.entries(ATTACKS).filter(([name]) => chosen.length === 0 || chosen.includes(name))
  const attacks = wanted.filter(([, { door }]) => door !== 'balancer' || hasBalancer())
  const leftOut = wanted.filter((attack) => !attacks.includes(attack))

  progress('quiet')
  const quiet = { service: await strike(field, 'quiet', QUIET.service), balancer: undefined as Result | undefined }
  if (attacks.some(([, { door }]) => door === 'balancer')) {
    quiet.balancer = await strike(field, 'quiet, behind HAProxy', QUIET.balancer)
  }
  const results: Result[] = []
  for (const [name, attack] of attacks) {
    progress(name)
    const beside = attack.door === 'balancer' ? (quiet.balancer ?? quiet.service) : quiet.service
    results.push(judge(await strike(field, name, attack), beside.figures))
    await sleep(REST_MS)
  }
  // What the attacks have left behind.
  progress('quiet afterwards')
  results.push(judge(await strike(field, 'quiet afterwards', QUIET.afterwards), quiet.service.figures))
  printTable([quiet.service, ...(quiet.balancer ? [quiet.balancer] : []), ...results])
  for (const [name] of leftOut) console.log(`LEFT OUT: ${name}: HAProxy is not installed (apt-get install haproxy)`)
  const held = results.every(({ broken }) => broken.length === 0)
  const successes = sum(results.map(({ figures }) => figures.successes))
  const creates = sum(results.map(({ figures }) => figures.creates))
  console.log(
    `\nAll attacks: ${successes} of ${creates} creates were 200 (${((100 * successes) / creates).toFixed(1)} %).`,
  )
  console.log(
    `Load of the machine in the last minute: ${loadBefore} before, ${load()} after, on ${cpus().length} processors.`,
  )
  const seconds = Math.round((performance.now() - startedAt) / 1_000)
  console.log(held ? `Every promise held, in ${seconds} s.` : `Promises were broken; ${seconds} s.`)
  return held
}

/** One attack beside innocent creates. */
async function strike(field: Field, name: string, { door, seconds, strike }: Attack): Promise<Result> {
  const { url, service } = await field.enter(door)
  let memoryPeakMB = 0
  const sampling = setInterval(() => {
    memoryPeakMB = Math.max(memoryPeakMB, residentMB(service.pid))
  }, MEMORY_INTERVAL_MS)
  const [cpuBefore, startedAt] = [cpuSeconds(service.pid), performance.now()]
  const innocents = startInnocents(url, field.innocent)
  const blow = await strike(field, url, seconds).catch(
    (error: Error): Blow => ({ sent: error.message, broken: [`the attack itself: ${error.stack}`] }),
  )
  const serviceCores = (cpuSeconds(service.pid) - cpuBefore) / ((performance.now() - startedAt) / 1_000)
  await sleep(AFTERMATH_MS)
  const journal = await innocents.end()
  clearInterval(sampling)
  const { judged, notes } = withoutExcused(journal, blow)
  return {
    name,
    sent: blow.sent,
    figures: figuresOf(judged),
    p99Ratio: 1,
    memoryPeakMB,
    alive: !service.hasEnded(),
    attackerCores: blow.cores,
    serviceCores: service.hasEnded() ? undefined : serviceCores,
    broken: blow.broken ?? [],
    notes,
  }
}

function withoutExcused(journal: Journal, { excused }: Blow): { judged: Journal; notes: string[] } {
  if (excused === undefined) return { judged: journal, notes: [] }
  const { from, until, why } = excused
  const judged = journal.filter(({ sentAt, answeredAt }) => sentAt > until || (answeredAt ?? Infinity) < from)
  return { judged, notes: [`${journal.length - judged.length} creates are not judged: ${why}`] }
}

function judge(result: Result, quiet: Figures): Result {
  const { figures, alive } = result
  const p99Ratio = figures.p99Ms / quiet.p99Ms
  const broken = [...result.broken]
  const percent = percentOf(figures)
  if (!(percent >= LEAST_SUCCESSES_PERCENT)) {
    broken.push(`${LEAST_SUCCESSES_PERCENT} % of the creates are 200: ${percent.toFixed(1)} % are`)
  }
  if (!(p99Ratio <= MOST_TIMES_QUIET)) {
    broken.push(`the p99 is at most ${MOST_TIMES_QUIET} times the quiet one: it is ${p99Ratio.toFixed(1)} times`)
  }
  if (!alive) broken.push('the service lives on')
  return { ...result, p99Ratio, broken }
}

function load(): string | undefined {
  return loadavg()[0]?.toFixed(1)
}

function sum(values: number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
