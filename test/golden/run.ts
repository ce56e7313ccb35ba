// npm run golden -- DIR: runs every command of the catalogue in this process, with fixed clocks and random values.
// Creates the folder DIR with one file per command: exit codes, audit rows, JSON, CSV and texts. Exits with 1 if a
// command or a flag has no case in cases.txt, or if a case has another exit code.
// npm run golden -- --compare BEFORE AFTER: lists the differences of two such folders. Exits with 1 if exit codes,
// audit rows, JSON or CSV differ, and with 0 if only text, help and messages do.
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { startEmbeddedPostgres } from '../../src/dev/embedded-postgres.ts'
import { COMMANDS, main } from '../../src/operator/terminal/main.ts'
import { flagsOf } from '../../src/operator/terminal/parse.ts'
import { databaseUrl } from '../support/database-url.ts'
import { INSTALLED_POSTGRES } from '../support/installed-postgres.ts'
import { ROOT } from '../support/processes.ts'
import { advanceClock, clockSql, fixClockOf, query, restartRandom, setClock } from './fixed.ts'
import { compare, format, type Recorded } from './output.ts'
import { onStage, startOthers } from './stage.ts'
import { CHANGES } from './story.ts'

const MINUTE_MS = 60_000
const START = '2026-09-01T10:00'
const AUDIT = `
  select audit_id, person, command, arguments, outcome, detail
    from audit_commands left join audit_outcomes using (audit_id)
   order by begun_at, audit_id`
const ALWAYS = ['--help', '--no-such-flag', 'one two']
const WITHOUT_COMMAND = ['', '--help', 'help payments', 'merchants', 'merchant list', 'no-such-command', '--version']

/** A line of cases.txt. `typed` is what the operator types at a terminal, which then replaces standard input. */
type Case = { code: number; command: string; args: string; stops: boolean; names: string } & {
  file?: string | undefined
  setting?: string | undefined
  typed?: string
}
const CASE = /^(?:([12]) )?(.*?)(?: < (\S+))?( \^C)?(?: with (\S+))?(?: > (.*))?$/

const [first = '', before = '', after = ''] = process.argv.slice(2)
if (first === '--compare' && after !== '') process.exit(compare(before, after) ? 0 : 1)
if (first === '' || first.startsWith('-') || before !== '') {
  console.error('usage: npm run golden -- DIR\n       npm run golden -- --compare BEFORE AFTER')
  process.exit(2)
}

// Fails if it exists, because a file of an earlier run could hide that a command has gone.
mkdirSync(first)
const directory = mkdtempSync(join(tmpdir(), 'upi-golden-'))
const postgres = await startEmbeddedPostgres({ directory, durable: false, installed: INSTALLED_POSTGRES })
process.on('exit', () => {
  postgres.stop()
  rmSync(directory, { recursive: true, force: true })
})
const [admin, golden, copy] = ['postgres', 'golden', 'copy'].map((name) => databaseUrl(postgres.url, name)) as Urls
type Urls = [string, string, string]
const others = await startOthers()
const values = new Map([['root', ROOT], ...Object.entries(others.urls)])
const records = new Map<string, string[]>()
const used = new Set<string>()
/** Commands that a case runs without arguments. */
const bare = new Set<string>()
let failures = 0

setClock(START)
await query(admin, 'create database golden')
await query(golden, fixClockOf('golden'))
for (const [part, line] of readFileSync(join(import.meta.dirname, 'cases.txt'), 'utf8')
  .split('\n')
  .entries()) {
  restartRandom(part)
  advanceClock(MINUTE_MS)
  const [verb, object = ''] = line.split(' ')
  if (line === '' || verb === '#') continue
  if (verb === 'at') setClock(object)
  else if (verb === 'do') await change(object)
  else await runCase(parse(line), part)
}
for (const { name } of COMMANDS) {
  const always = bare.has(name) ? ALWAYS : ['', ...ALWAYS]
  for (const args of always) await record(golden, { ...parse(name), args })
}
for (const args of WITHOUT_COMMAND) await record(golden, { ...parse(''), args })

for (const [command, runs] of records) {
  writeFileSync(join(first, `${command.replaceAll(' ', '-') || 'ops'}.txt`), `${runs.join('\n\n')}\n`)
}
for (const command of COMMANDS) {
  const { name } = command
  if (!used.has(name)) fail(`ops ${name} has no case`)
  for (const flag of Object.keys(flagsOf(command)).filter((one) => one !== 'json'))
    if (!used.has(`${name} --${flag}`)) fail(`ops ${name} --${flag} has no case`)
}
process.exit(failures === 0 ? 0 : 1)

function fail(error: string): void {
  failures += 1
  console.error(error)
}

function parse(line: string): Case {
  const [, code = '0', words = '', file, stop, setting, names = ''] = CASE.exec(line) ?? []
  const commands = COMMANDS.map(({ name }) => name).filter((name) => `${words} `.startsWith(`${name} `))
  const command = commands.sort((one, other) => other.length - one.length)[0] ?? ''
  const args = words.slice(command.length).trim()
  return { code: Number(code), command, args, file, stops: stop !== undefined, setting, names }
}

async function change(name: string): Promise<void> {
  const work = CHANGES[name]
  if (!work) throw new Error(`story.ts has no ${name}`)
  await query(golden, clockSql())
  for (const entry of Object.entries(await onStage(golden, { others, value }, work))) values.set(...entry)
}

/** Runs a case in all its variants. Later lines find the change of the last variant; all others change a copy. */
async function runCase(given: Case, part: number): Promise<void> {
  const { code, command, args, stops, names } = given
  const found = COMMANDS.find(({ name }) => name === command)
  const fields = found ? flagsOf(found) : {}
  const flags = Object.keys(fields)
  const hasOwnFormat = flags.some((flag) => fields[flag]?.isFormat && args.includes(`--${flag}`))
  used.add(command)
  if (args === '') bare.add(command)
  const json = code > 0 || stops || hasOwnFormat ? '' : ` --json${found?.changes ? ' --by meera' : ''}`
  const asText: Partial<Case>[] = json === '' ? [] : [{}]
  if (json !== '' && flags.includes('csv')) asText.push({ args: `${args} --csv` })
  if (json !== '' && flags.includes('for')) asText.push({ args: `${args} --csv --for excel` })
  if (json !== '' && flags.includes('dry-run')) {
    asText.push({ args: `${args} --dry-run` }, { args: `${args} --dry-run --json` })
  }
  if (args.includes(' --yes')) {
    const open = { args: args.replace(' --yes', '') }
    asText.push(open, { ...open, typed: 'n\n' }, { ...open, typed: 'y\n' })
  }
  for (const variant of asText) {
    restartRandom(part)
    if (flags.includes('by')) await query(admin, 'create database copy template golden')
    if (flags.includes('by')) await query(copy, fixClockOf('copy'))
    await record(flags.includes('by') ? copy : golden, { ...given, ...variant })
    await query(admin, 'drop database if exists copy with (force)')
  }
  restartRandom(part)
  const last = { ...given, args: `${args}${json}`.trim() }
  const recorded = await record(golden, last)
  if (recorded.code !== code) fail(`ops ${command} ${last.args}: exit code ${recorded.code}\n${recorded.stderr}`)
  else for (const [, name = '', path = ''] of names.matchAll(/(\S+)=(\S+)/g)) values.set(name, pick(recorded, path))
}

function pick({ stdout }: Recorded, path: string): string {
  return String(path.split('.').reduce((found, key) => found?.[key], JSON.parse(stdout)))
}

/** Runs a command on the database `url` and adds it to the command's records. */
async function record(url: string, given: Case): Promise<Recorded> {
  const { command, args, file, typed, setting } = given
  for (const [, flag] of args.matchAll(/(?:^| )--([a-z-]+)/g)) used.add(`${command} --${flag}`)
  await query(url, clockSql())
  const known = new Set((await auditOf(url)).map(({ audit_id }) => audit_id))
  const ended = await runMain(url, given)
  const audit = (await auditOf(url))
    .filter(({ audit_id }) => !known.has(audit_id))
    .map(({ audit_id: _, ...row }) => row)
  const beside = [file && `< ${file}`, setting && `with ${setting}`, typed && `typing ${JSON.stringify(typed)}`]
  const line = [command, args, ...beside].filter(Boolean).join(' ')
  const names = new Map([...values].map(([name, found]) => [found, name]))
  records.set(command, [...(records.get(command) ?? []), format(line, { ...ended, audit }, names)])
  return { ...ended, audit }
}

async function runMain(url: string, { command, args, file, stops, setting, typed }: Case) {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()]
  const said = Promise.all([text(stdout), text(stderr)])
  const input = typed ?? (file ? fill(readFileSync(join(import.meta.dirname, 'files', file), 'utf8')) : '')
  const stdin = Object.assign(Readable.from([Buffer.from(input)]), { isTTY: typed !== undefined })
  const env = {
    ...others.settings,
    ...Object.fromEntries([setting?.split('=') ?? []]),
    DATABASE_URL: url,
    CONSOLE_DATABASE_URL: url,
  }
  const words = [...`${command} ${args}`.matchAll(/(?:[^\s"]|"[^"]*")+/g)].map(([word]) =>
    fill(word.replaceAll('"', '')),
  )
  const clocks = { sleep: async () => undefined, databaseTime: async () => new Date() }
  if (stops) once(stdout, 'data').then(() => setImmediate(() => process.emit('SIGINT')))
  const code = await main(words, { stdin, stdout, stderr, env, ...clocks })
  // A console that has stopped would end this process at the next Ctrl-C.
  process.removeAllListeners('SIGINT')
  stdout.end()
  stderr.end()
  const [out, err] = await said
  return { code, stdout: out, stderr: err }
}

/** Replaces `{name}` by the value with this name. */
function fill(typed: string): string {
  return typed.replace(/\{([^{}]+)\}/g, (_, name) => values.get(name) ?? `no-${name}`)
}

function value(name: string): string {
  const found = values.get(name)
  if (found === undefined) throw new Error(`no line of cases.txt names ${name}`)
  return found
}

async function auditOf(url: string): Promise<{ audit_id: string }[]> {
  const [found] = await query<{ audit: string | null }>(url, "select to_regclass('audit_outcomes') as audit")
  return found?.audit ? query(url, AUDIT) : []
}
