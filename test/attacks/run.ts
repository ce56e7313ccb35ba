// npm run test:attacks [-- NAME…]: attacks the service as shipped, one attack after another, while an uninvolved
// merchant creates payments. Attackers have no key, or that of one merchant. Exits with 1 if the uninvolved merchant
// was rejected or had to wait too long, as defined in verdict.ts. All traffic stays on 127.0.0.1 and ends within five
// minutes.
import { cpus, loadavg } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { cpuSeconds, residentMB } from '../support/processes.ts'
import { build, progress } from '../support/workspace.ts'
import { ATTACKS, type Attack, type Outcome, QUIET } from './attacks.ts'
import { figuresOf, startBystander } from './bystander.ts'
import { hasBalancer, type Scene, setScene } from './scene.ts'
import { printTable, type Result } from './table.ts'
import { brokenPromises, percentOf } from './verdict.ts'

const MEMORY_INTERVAL_MS = 100
/** Time in which the after-effects of an attack are still measured. */
const AFTERMATH_MS = 1_000
/** Pause between two attacks. */
const REST_MS = 1_500

const chosen = process.argv.slice(2)
const unknown = chosen.filter((name) => !(name in ATTACKS))
if (unknown.length > 0) {
  console.error(`Unknown: ${unknown.join(' ')}. Choose from ${Object.keys(ATTACKS).join(', ')}.`)
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
  await build()
  const scene = await setScene()
  const requested = Object.entries(ATTACKS).filter(([name]) => chosen.length === 0 || chosen.includes(name))
  const attacks = requested.filter(([, { entrance }]) => entrance !== 'balancer' || hasBalancer())
  const leftOut = requested.filter((attack) => !attacks.includes(attack))

  progress('quiet')
  const quiet = await runBeside(scene, 'quiet', QUIET.service)
  const hasToBalance = attacks.some(([, { entrance }]) => entrance === 'balancer')
  const quietBehindBalancer = hasToBalance
    ? await runBeside(scene, 'quiet, behind HAProxy', QUIET.balancer, quiet)
    : undefined
  const results: Result[] = []
  for (const [name, attack] of attacks) {
    progress(name)
    const compared = attack.entrance === 'balancer' ? (quietBehindBalancer ?? quiet) : quiet
    results.push(await runBeside(scene, name, attack, compared))
    await sleep(REST_MS)
  }
  // Measures the after-effects of the attacks.
  progress('quiet afterwards')
  results.push(await runBeside(scene, 'quiet afterwards', QUIET.afterwards, quiet))
  printTable([quiet, ...(quietBehindBalancer ? [quietBehindBalancer] : []), ...results])
  for (const [name] of leftOut) console.log(`SKIPPED: ${name}: HAProxy is not installed (apt-get install haproxy)`)
  const broken = brokenPromises(results, chosen.length === 0 ? quiet.figures : undefined)
  for (const { name, broken: promises } of broken) {
    for (const promise of promises) console.log(`BROKEN: ${name}: ${promise}`)
  }
  const held = broken.length === 0
  const all = figuresOf(results.flatMap(({ creates }) => creates))
  console.log(
    `\nAll attacks: ${all.successes} of ${all.creates} creates were 200 (${percentOf(all).toFixed(1)} %), ` +
      `with a p99 of ${all.p99Ms.toFixed(1)} ms (${(all.p99Ms / quiet.figures.p99Ms).toFixed(1)} times the quiet one).`,
  )
  console.log(`Load average of the last minute: ${loadBefore} before, ${load()} after, on ${cpus().length} processors.`)
  const seconds = Math.round((performance.now() - startedAt) / 1_000)
  console.log(held ? `Every promise was met, in ${seconds} s.` : `Promises were broken, in ${seconds} s.`)
  return held
}

/** Runs one attack while the bystander creates payments. */
async function runBeside(
  scene: Scene,
  name: string,
  { entrance, seconds, run }: Attack,
  quiet?: Result,
): Promise<Result> {
  const { url, service } = await scene.open(entrance)
  let memoryPeakMB = 0
  const sampling = setInterval(() => {
    memoryPeakMB = Math.max(memoryPeakMB, residentMB(service.pid))
  }, MEMORY_INTERVAL_MS)
  const [cpuBefore, startedAt] = [cpuSeconds(service.pid), performance.now()]
  const bystander = startBystander(url, scene.bystander.merchant)
  const outcome = await run(scene, url, seconds).catch(
    (error: Error): Outcome => ({ sent: error.message, broken: [`the attack itself: ${error.stack}`] }),
  )
  const serviceCores = (cpuSeconds(service.pid) - cpuBefore) / ((performance.now() - startedAt) / 1_000)
  await sleep(AFTERMATH_MS)
  const creates = await bystander.end()
  clearInterval(sampling)
  const figures = figuresOf(creates)
  const alive = !service.hasEnded()
  return {
    name,
    sent: outcome.sent,
    creates,
    figures,
    p99Ratio: figures.p99Ms / (quiet?.figures ?? figures).p99Ms,
    memoryPeakMB,
    alive,
    attackerCores: outcome.cores,
    serviceCores: alive ? serviceCores : undefined,
    broken: [...(outcome.broken ?? []), ...(alive ? [] : ['the service keeps running'])],
  }
}

function load(): string | undefined {
  return loadavg()[0]?.toFixed(1)
}
