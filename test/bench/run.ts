// npm run bench [-- [--quick] [SECTION…]]: measures every target of the service side by side with what it is compared to,
// on this machine and in one run. Exits 1 when a target is missed. Without sections it runs them all.
import { join } from 'node:path'
import { type Bench, openBench } from './bench.ts'
import { ROOT, run } from './processes.ts'
import { type Finding, printFinding, printVerdict, progress, writeResults } from './report.ts'
import { measureCreate } from './sections/create.ts'

const SECTIONS: Record<string, (bench: Bench) => Promise<Finding[]>> = {
  create: measureCreate,
}
const RESULTS = join(ROOT, 'bench-results.json')

const words = process.argv.slice(2)
const quick = words.includes('--quick')
const chosen = words.filter((word) => word !== '--quick')
const unknown = chosen.filter((word) => !(word in SECTIONS))
if (unknown.length > 0) {
  console.error(
    `Unknown: ${unknown.join(' ')}. Sections are ${Object.keys(SECTIONS).join(', ')}; --quick takes smaller tables.`,
  )
  process.exit(2)
}

try {
  process.exit((await benchmark()) ? 0 : 1)
} catch (error) {
  console.error(error)
  process.exit(1)
}

async function benchmark(): Promise<boolean> {
  const startedAt = performance.now()
  const date = new Date().toISOString()
  progress('building')
  await run('npm', ['run', '--silent', 'build'])
  const bench = await openBench({ quick })
  const findings: Finding[] = []
  for (const [name, measure] of Object.entries(SECTIONS)) {
    if (chosen.length > 0 && !chosen.includes(name)) continue
    for (const finding of await measure(bench)) {
      findings.push(finding)
      printFinding(finding)
    }
  }
  const seconds = (performance.now() - startedAt) / 1000
  writeResults(RESULTS, findings, { date, quick, seconds: Math.round(seconds) })
  return printVerdict(findings, seconds)
}
