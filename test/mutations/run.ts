/**
 * Changes one place of src at a time and reports the changes that no quick test detects.
 *
 *   npm run test:mutations -- --seed 1 --count 60 [--list FILE]
 *
 * The seed selects the places, spread over the areas below; `--list` writes them to FILE, or repeats those in FILE.
 * Changes a copy of the checkout, never the checkout. Takes about a minute per change.
 */
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type Mutant, mutantsOf } from './mutants.ts'

const root = join(import.meta.dirname, '../..')
/** Folders of src, with the folders of the tests that run first. */
const AREAS = {
  'platform/http': 'http',
  'gateway/tenants': 'tenants',
  'gateway/payments': 'payments',
  'gateway/refunds': 'refunds',
  'gateway/webhooks': 'webhooks',
  'platform/lists': 'payments',
  'gateway/acquirers': 'acquirer',
  'books/settlements': 'settlements',
  'books/statements': 'statements',
  'books/ledger': 'ledger',
  'books/reading': 'reconciliation',
  'books/closing': 'reconciliation',
  'books/reports': 'reconciliation',
}
const COPIED = ['src', 'test', 'migrations', '.ci']

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    count: { type: 'string', default: '60' },
    list: { type: 'string' },
  },
})

const mutants = values.list && existsSync(values.list) ? readList(values.list) : choose(Number(values.count))
if (values.list && !existsSync(values.list)) writeFileSync(values.list, JSON.stringify(mutants, null, 2))
const copy = copyCheckout()
process.on('exit', () => rmSync(copy, { recursive: true, force: true }))

let noticed = 0
for (const [at, mutant] of mutants.entries()) {
  const by = notice(mutant)
  if (by !== undefined) noticed++
  const { file, line, operator, before, after } = mutant
  console.log(
    `${at + 1} of ${mutants.length}: ${by ? `detected by ${by}` : 'NOT DETECTED'}: ${operator} in ${file}:${line}`,
  )
  if (!by) console.log(`  - ${before.trim()}\n  + ${after.trim()}`)
}
console.log(`${noticed} of ${mutants.length} detected`)

function readList(file: string): Mutant[] {
  return JSON.parse(readFileSync(file, 'utf8'))
}

/** Selects the same number of mutants from each area. */
function choose(count: number): Mutant[] {
  const random = randomOf(Number(values.seed))
  const pools = Object.keys(AREAS).map((area) =>
    readdirSync(join(root, 'src', area), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .sort()
      .flatMap((name) => mutantsOf(root, `src/${area}/${name}`)),
  )
  return Array.from({ length: count }, (_, at) => {
    const pool = pools[at % pools.length] as Mutant[]
    return pool.splice(Math.floor(random() * pool.length), 1)[0] as Mutant
  })
}

/** The generator mulberry32. */
function randomOf(seed: number) {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

function copyCheckout(): string {
  const directory = mkdtempSync(join(tmpdir(), 'upi-payments-mutations-'))
  const files = readdirSync(root, { withFileTypes: true }).filter((entry) => entry.isFile() && entry.name !== '.env')
  for (const name of [...COPIED, ...files.map((entry) => entry.name)]) {
    cpSync(join(root, name), join(directory, name), { recursive: true })
  }
  symlinkSync(join(root, 'node_modules'), join(directory, 'node_modules'))
  return directory
}

/** Returns the file of the first failing test; tests of the same area run first. */
function notice({ file, before, after, line }: Mutant): string | undefined {
  const path = join(copy, file)
  const text = readFileSync(path, 'utf8')
  const lines = text.split('\n')
  // A later version may have the line elsewhere.
  const at = lines[line - 1] === before ? line - 1 : lines.indexOf(before)
  if (at === -1) return 'nothing: the line is gone'
  lines[at] = after
  writeFileSync(path, lines.join('\n'))
  const area = Object.entries(AREAS).find(([folder]) => file.startsWith(`src/${folder}/`))?.[1]
  try {
    return (area && firstFailure([`test/${area}/`])) ?? firstFailure([])
  } finally {
    writeFileSync(path, text)
  }
}

function firstFailure(files: string[]): string | undefined {
  const args = [
    'node_modules/vitest/vitest.mjs',
    'run',
    '--project',
    'quick',
    '--bail',
    '1',
    '--reporter',
    'json',
    ...files,
  ]
  const { status, stdout } = spawnSync(process.execPath, args, {
    cwd: copy,
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
    timeout: 8 * 60_000,
    killSignal: 'SIGKILL',
  })
  if (status === 0) return undefined
  const begin = stdout.indexOf('{"numTotal')
  if (begin === -1) return 'the run itself'
  const { testResults } = JSON.parse(stdout.slice(begin)) as { testResults: { name: string; status: string }[] }
  return testResults.find(({ status }) => status === 'failed')?.name.slice(copy.length + 1) ?? 'the run itself'
}
