// npm run test:deployment [-- SECTION…]: tries the deployments past one machine with real servers between the parts, on this
// machine and within about eight minutes. Exits 1 when a promise is broken. Without sections it tries them all.
import { readFileSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { findSystemProgram } from '../support/processes.ts'
import { progress } from '../support/workspace.ts'
import { type Check, INSTANCE_LOG, openDeployment, type Section } from './deployment.ts'
import { citus, noCitus } from './sections/citus.ts'
import { scaled } from './sections/scaled.ts'

const noHaproxy = () => (findSystemProgram('haproxy') ? undefined : 'HAProxy is missing: apt-get install haproxy')

/** `leftOut` says why a section cannot be tried here; undefined if it can. */
const SECTIONS: Record<string, { run: Section; leftOut: () => string | undefined }> = {
  scaled: { run: scaled, leftOut: noHaproxy },
  citus: { run: citus, leftOut: noCitus },
}

/** Longer than lines wait in an instance: see FLUSH_INTERVAL_MS in log.ts. */
const LOG_FLUSH_MS = 1_000

const words = process.argv.slice(2)
const unknown = words.filter((word) => !(word in SECTIONS))
if (unknown.length > 0) {
  console.error(`Unknown: ${unknown.join(' ')}. Sections are ${Object.keys(SECTIONS).join(', ')}.`)
  process.exit(2)
}
const chosen = Object.entries(SECTIONS).filter(([name, { leftOut }]) => {
  if (words.length > 0 && !words.includes(name)) return false
  const reason = leftOut()
  if (reason !== undefined) console.error(`LEFT OUT: ${name}: ${reason}`)
  return reason === undefined
})
if (chosen.length === 0) process.exit(1)

try {
  process.exit((await tryDeployments()) ? 0 : 1)
} catch (error) {
  console.error(error)
  process.exit(1)
}

async function tryDeployments(): Promise<boolean> {
  const startedAt = performance.now()
  const deployment = await openDeployment()
  let broken = 0
  for (const [name, { run }] of chosen) {
    progress(name)
    // What the other sections find out is worth having all the same.
    const checks = await run(deployment).catch((error): Check[] => {
      console.error(error)
      return [{ promise: 'the trial goes to its end', found: String(error), kept: false }]
    })
    broken += checks.filter(({ kept }) => !kept).length
    print(name, checks)
  }
  const seconds = Math.round((performance.now() - startedAt) / 1000)
  if (broken > 0) {
    await printFaults(join(deployment.directory, INSTANCE_LOG))
    // The service refuses what it cannot serve in time, and no promise says that the machine is its own.
    console.error(`Load of the machine in the last minute: ${loadavg()[0]?.toFixed(1)} on ${cpus().length} processors`)
  }
  console.log(`\n${broken === 0 ? 'Every promise kept' : `${broken} broken`}, in ${seconds} s.`)
  return broken === 0
}

function print(section: string, checks: Check[]): void {
  console.log(`\n| ${section} | found | |\n|---|---|---|`)
  for (const { promise, found, kept } of checks) console.log(`| ${promise} | ${found} | ${kept ? 'kept' : 'BROKEN'} |`)
}

/** What the instances said of requests that failed, each fault once. */
async function printFaults(logFile: string): Promise<void> {
  await sleep(LOG_FLUSH_MS)
  const counts = new Map<string, number>()
  for (const line of readFileSync(logFile, 'utf8').split('\n')) {
    if (!line.includes('"error"')) continue
    const { msg, error } = JSON.parse(line)
    const fault = `${msg}: ${typeof error === 'string' ? error : error.message}`
    counts.set(fault, (counts.get(fault) ?? 0) + 1)
  }
  for (const [fault, count] of counts) console.error(`${count} × ${fault}`)
}
