// npm run test:deployment [-- SECTION…]: tests deployments on several machines, with real proxy and database servers,
// in about eight minutes on this machine. Exits with 1 if a promise is broken; without sections, it runs all of them.
import { existsSync, readFileSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { findSystemProgram } from '../support/processes.ts'
import { progress } from '../support/workspace.ts'
import { type Check, INSTANCE_LOG, openDeployment, type Section } from './deployment.ts'
import { citus, noCitus } from './sections/citus.ts'
import { noPsql, operatorConsole } from './sections/console.ts'
import { scaled } from './sections/scaled.ts'

const noHaproxy = () =>
  findSystemProgram('haproxy') ? undefined : 'HAProxy is missing. Install it with apt-get install haproxy.'

/** `leftOut` returns the reason why a section cannot run on this machine, or undefined if it can. */
const SECTIONS: Record<string, { run: Section; leftOut: () => string | undefined }> = {
  scaled: { run: scaled, leftOut: noHaproxy },
  console: { run: operatorConsole, leftOut: noPsql },
  citus: { run: citus, leftOut: noCitus },
}

/** Longer than an instance buffers log lines: see FLUSH_INTERVAL_MS in log.ts. */
const LOG_FLUSH_MS = 1_000

const words = process.argv.slice(2)
const unknown = words.filter((word) => !(word in SECTIONS))
if (unknown.length > 0) {
  console.error(`Unknown section: ${unknown.join(' ')}. Use ${Object.keys(SECTIONS).join(', ')}.`)
  process.exit(2)
}
const chosen = Object.entries(SECTIONS).filter(([name, { leftOut }]) => {
  if (words.length > 0 && !words.includes(name)) return false
  const reason = leftOut()
  if (reason !== undefined) console.error(`SKIPPED: ${name}: ${reason}`)
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
    // Reports the failure and continues, because the results of the other sections are useful without this one.
    const checks = await run(deployment).catch((error): Check[] => {
      console.error(error)
      return [{ promise: 'the section completes', found: String(error), kept: false }]
    })
    broken += checks.filter(({ kept: stored }) => !stored).length
    print(name, checks)
  }
  const seconds = Math.round((performance.now() - startedAt) / 1000)
  if (broken > 0) {
    const logFile = join(deployment.directory, INSTANCE_LOG)
    if (existsSync(logFile)) await printFaults(logFile)
    // Prints the load, because the service rejects requests that it cannot serve in time and other programs on the
    // machine may cause that.
    console.error(`Load of the machine in the last minute: ${loadavg()[0]?.toFixed(1)} on ${cpus().length} processors`)
  }
  console.log(`\n${broken === 0 ? 'Every promise was met' : `${broken} broken`}, in ${seconds} s.`)
  return broken === 0
}

function print(section: string, checks: Check[]): void {
  console.log(`\n| ${section} | result | |\n|---|---|---|`)
  for (const { promise, found, kept: stored } of checks)
    console.log(`| ${promise} | ${found} | ${stored ? 'kept' : 'BROKEN'} |`)
}

/** Prints the errors of failed requests in the instances' log, each error once. */
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
