// npm run bench [-- [--quick] [--superuser] [SECTION…]]: measures every target of the service against its comparison on
// this machine in one run. Exits with 1 if a target is missed; without sections, it runs all of them.
import { join } from 'node:path'
import { ROOT } from '../support/processes.ts'
import { build, openWorkspace, progress } from '../support/workspace.ts'
import { openBench, type Section } from './bench.ts'
import { type Finding, printFinding, printVerdict, writeResults } from './report.ts'
import { create } from './sections/create.ts'
import { list, longList, orderList } from './sections/list.ts'
import { notifications } from './sections/notification.ts'
import { payment } from './sections/payment.ts'
import { status } from './sections/status.ts'

const SECTIONS: Record<string, Section> = {
  create,
  status,
  list,
  'long-list': longList,
  'order-list': orderList,
  notification: notifications,
  payment,
}
const RESULTS = join(ROOT, 'bench-results.json')

const words = process.argv.slice(2)
const quick = words.includes('--quick')
const superuser = words.includes('--superuser')
const chosen = words.filter((word) => !word.startsWith('--'))
const unknown = words.filter((word) => !(word in SECTIONS) && word !== '--quick' && word !== '--superuser')
if (unknown.length > 0) {
  console.error(
    `Unknown section or option: ${unknown.join(' ')}. Use ${Object.keys(SECTIONS).join(', ')}, --quick for smaller tables, or --superuser for a service without its role.`,
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
  await build()
  const bench = await openBench(await openWorkspace(), { quick, superuser })
  progress('preparing (filling the large tables takes most of the time)')
  const sections = Object.entries(SECTIONS).filter(([name]) => chosen.length === 0 || chosen.includes(name))
  const prepared = await Promise.all(sections.map(async ([name, prepare]) => ({ name, measure: await prepare(bench) })))
  await bench.settle()
  const findings: Finding[] = []
  const broken: string[] = []
  for (const { name, measure } of prepared) {
    try {
      const found = await measure()
      findings.push(...found)
      found.forEach(printFinding)
    } catch (error) {
      // Reports the failure and continues, because the results of the other sections took minutes to measure.
      console.error(error)
      broken.push(name)
    }
  }
  const seconds = (performance.now() - startedAt) / 1000
  writeResults(RESULTS, findings, { date, quick, superuser, seconds: Math.round(seconds), broken })
  return printVerdict(findings, broken, seconds)
}
