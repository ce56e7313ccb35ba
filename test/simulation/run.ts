/**
 * Lets worlds of the simulation happen until one breaks an invariant.
 *
 *   npm run test:simulation [-- --seed N --days D --minutes M]
 *
 * The seed determines what everybody does; the next world has the next seed. Without `--minutes`, one world happens. See
 * README.md.
 */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

const { values } = parseArgs({
  options: { seed: { type: 'string' }, days: { type: 'string' }, minutes: { type: 'string' } },
})
const settings = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, Number(value)]))
const root = join(import.meta.dirname, '../..')
const { status } = spawnSync(
  process.execPath,
  [join(root, 'node_modules/vitest/vitest.mjs'), 'run', '--project', 'generated', 'test/simulation'],
  { cwd: root, stdio: 'inherit', env: { ...process.env, SIMULATION: JSON.stringify(settings) } },
)
process.exitCode = status ?? 1
