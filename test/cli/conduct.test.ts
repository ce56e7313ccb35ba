import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { COMMANDS } from '../../src/operator/terminal/main.ts'
import { flagsOf, parseArguments } from '../../src/operator/terminal/parse.ts'
import { spreadDatabase } from '../support/citus.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { ON_CITUS } from '../support/installed-postgres.ts'
import { runOps } from '../support/ops.ts'
import { ROOT } from '../support/processes.ts'

let empty: TestDatabase

beforeAll(async () => {
  empty = await createTestDatabase({ empty: true })
})

describe('a command with invalid arguments exits with 2, prints its usage on stderr and nothing on stdout', () => {
  it.each([
    ['no command', [], 'no command given'],
    ['an unknown command', ['merchants', 'delete'], 'unknown command'],
    ['an unknown flag', ['merchants', 'list', '--all'], "Unknown option '--all'"],
    ['a missing flag', ['merchants', 'add', '--name', 'x'], '--vpa is required'],
    ['a flag without its value', ['merchants', 'disable', '--mid'], "Option '--mid <value>' argument missing"],
    ['a repeated flag', ['merchants', 'disable', '--mid', 'M1', '--mid', 'M2'], '--mid must be given only once'],
    [
      'a value that may be a flag',
      ['merchants', 'disable', '--mid', '-M1'],
      "Option '--mid' argument is ambiguous. Did you forget to specify the option argument for '--mid'? " +
        "To specify an option argument starting with a dash use '--mid=-XYZ'.",
    ],
    ['an extra argument', ['merchants', 'list', 'M1'], 'too many arguments'],
    ['a missing file argument', ['settlements', 'import'], 'FILE is required'],
    [
      'both --mid and --pid',
      ['keys', 'create', '--mid', 'M1', '--pid', 'P1'],
      'give one of --mid, --pid and --operator',
    ],
    [
      'nothing to change',
      ['merchants', 'update', '--mid', 'M1'],
      'give at least one of --name, --vpa, --mcc, --dynamic-qr, --acquirer, --account, --acquirer-merchant-id, --input, --expiry-minutes, --max-expiry-minutes, --return-call, --payee, --max-amount, --fee, --tax, --logo, --colour, --website, --support',
    ],
    [
      'several invalid values',
      ['merchants', 'add', '--mid', 'M 1', '--name', 'a\u0007', '--vpa', 'x', '--mcc', '١٢٣٤', '--dynamic-qr', 'x'],
      '--mid must be 1 to 64 characters of A-Z a-z 0-9 _ -; --name must be text of 1 to 99 characters, without control characters; ' +
        '--vpa must be a UPI address such as shop@bank; --mcc must be 4 digits, such as 5814; --dynamic-qr must be link or image',
    ],
  ])(
    'ops with %s exits with 2, prints the error and usage on stderr and nothing on stdout',
    async (_, args, message) => {
      // Without a database, because `ops` checks arguments before it connects.
      const { code, stdout, stderr } = await runOps(undefined, args)
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
      expect(stderr.split('\nusage:\n  ops ')).toEqual([`ops: ${message}`, expect.any(String)])
    },
  )
})

describe('a negative amount', () => {
  const command = (name: string) => COMMANDS.find((one) => one.name === name) as (typeof COMMANDS)[number]
  const statement = ['day.csv', '--layout', 'l', '--mid', 'M1', '--month', '2026-10']

  it.each([
    ['statements import', '--closing', statement],
    ['statements import', '--opening', statement],
    ['settlements import', '--total', ['day.csv']],
  ])('ops %s accepts a negative amount after %s as written', (name, flag, args) => {
    for (const amount of ['-7765262.02', '-77,65,262.02', '-1'])
      for (const typed of [[flag, amount], [`${flag}=${amount}`]])
        expect(() => command(name).prepare(parseArguments(command(name), [...args, ...typed]).values)).not.toThrow()
  })

  it('ops rejects a negative amount after a flag without a value as an unknown option', () => {
    const parse = () => parseArguments(command('settlements import'), ['day.csv', '--dry-run', '-1'])
    expect(parse).toThrow("Unknown option '-1'")
  })
})

describe('a misspelled command exits with 2 and one line with the suggested command', () => {
  it.each([
    [['merchant', 'list'], 'merchants list'],
    [['merchant', 'add', '--name', 'x'], 'merchants add'],
    [['settlement', 'import', 'day.csv'], 'settlements import'],
    [['payments', 'forget-customer'], 'payments forget-customers'],
    [['todays'], 'today'],
  ])(
    'ops exits with 2 and suggests the correct command in one line for the misspelled command %j',
    async (args, meant) => {
      const stderr = `ops: unknown command; did you mean ops ${meant}?\n`
      expect(await runOps(undefined, args)).toEqual({ code: 2, stdout: '', stderr })
    },
  )
})

describe('ops --help', () => {
  const overview = async () => (await runOps(undefined, ['--help'])).stdout

  it('ops --help prints one line of at most 80 columns with a distinct summary for each command', async () => {
    const text = await overview()
    for (const line of text.split('\n')) expect([line, line.length <= 80]).toEqual([line, true])
    for (const { name, summary } of COMMANDS) {
      expect(summary).toMatch(/^[A-Z][^.\n]{8,}[^.\n]$/)
      const lines = text.split('\n').filter((line) => line.startsWith(`  ${name}  `))
      expect([name, lines.map((line) => line.slice(name.length + 2).trim())]).toEqual([name, [summary]])
    }
    expect(text).toMatch(/^usage:\n {2}ops COMMAND \[options\]\n\n\S.*\n {2}today {2,}\S/)
    expect(new Set(COMMANDS.map(({ summary }) => summary)).size).toBe(COMMANDS.length)
    // Options belong to the help of each command.
    expect(text).not.toMatch(/--mid|--order-id/)
  })

  it('--help prints a command’s usage and options after ops keys revoke, and each command’s usage after ops keys', async () => {
    const revoke = await runOps(undefined, ['keys', 'revoke', '--help'])
    expect(revoke.code).toBe(0)
    expect(revoke.stdout).toMatch(
      /^usage:\n {2}ops keys revoke --public-key KEY\n\nRevoke an API key permanently\.\n\nOptions:\n {2}--public-key KEY {2}/,
    )
    expect(await runOps(undefined, ['help', 'keys', 'revoke'])).toEqual(revoke)
    expect((await runOps(undefined, ['help', 'reconcile', 'close'])).stdout).toMatch(
      /^usage:\n {2}ops reconcile close --month/,
    )
    expect((await runOps(undefined, ['help', 'reconcile'])).stdout).toContain('  ops reconcile (--from DAY --to DAY')
    const group = await runOps(undefined, ['keys', '--help'])
    expect(group.stdout.match(/^ {2}ops .*$/gm)?.map((line) => line.split(' ').slice(2, 5).join(' '))).toEqual([
      ...['ops keys create', 'ops keys rotate', 'ops keys list', 'ops keys revoke'],
    ])
    expect(await runOps(undefined, ['help'])).toEqual(await runOps(undefined, ['--help']))
  })

  it('ops COMMAND --help describes every option of the command in lines of at most 80 columns', async () => {
    for (const command of COMMANDS) {
      const { name } = command
      const flags = Object.keys(flagsOf(command))
      const { stdout } = await runOps(undefined, [...name.split(' '), '--help'])
      const [usage = '', options = ''] = stdout.split('\n\nOptions:\n')
      for (const flag of flags)
        expect([name, flag, options]).toEqual([
          name,
          flag,
          expect.stringMatching(new RegExp(`^  --${flag}( .*)?\\n? {2,}\\S`, 'm')),
        ])
      for (const flag of flags.filter((one) => one !== 'by' && one !== 'json'))
        expect([name, usage]).toEqual([name, expect.stringContaining(`--${flag}`)])
      for (const line of stdout.split('\n')) expect([line, line.length <= 80]).toEqual([line, true])
    }
  })

  it('ops reconcile --help lists the commands below reconcile', async () => {
    const { stdout } = await runOps(undefined, ['reconcile', '--help'])
    expect(stdout).toMatch(/\n\nSubcommands:\n(?: {2}reconcile .*\n)* {2}reconcile close {2,}Close a past month/)
  })

  it('ops --version prints the version of the service and the commit of its build', async () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
    const stdout = `ops ${version} (commit unknown)\n`
    expect(await runOps(undefined, ['--version'])).toEqual({ code: 0, stdout, stderr: '' })
  })
})

describe('a failing command exits with 1 and one line on stderr, without a stack trace', () => {
  it('ops exits with 1 and names DATABASE_URL if the setting is missing', async () => {
    const { code, stderr } = await runOps(undefined, ['merchants', 'list'])
    expect({ code, stderr }).toEqual({ code: 1, stderr: 'ops: DATABASE_URL is required\n' })
  })

  it.each([[['merchants', 'list', '--json']], [['migrate']], [['settlements', 'import', '-']]])(
    'ops exits with 1 and prints one line if the database is unreachable: %j',
    async (args) => {
      const { code, stdout, stderr } = await runOps('postgres://postgres@127.0.0.1:1/away', args)
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
      expect(stderr).toMatch(/^ops: database unavailable: [^\n]*ECONNREFUSED[^\n]*\n$/)
    },
  )

  it.each([[['merchants', 'list']], [['settlements', 'import', '-']]])(
    'ops instructs the operator to run ops migrate if the database has no tables: %j',
    async (args) => {
      const { code, stderr } = await runOps(empty.url, args)
      expect({ code, stderr }).toEqual({ code: 1, stderr: 'ops: the database is not migrated: run ops migrate\n' })
    },
  )
})

it('ops migrate --json lists the applied migrations, and lists none on the second run', async () => {
  const database = await createTestDatabase({ empty: true })
  const first = await runOps(database.url, ['migrate', '--json'])
  expect(JSON.parse(first.stdout).applied[0]).toMatch(/^0001_/)
  if (ON_CITUS) await spreadDatabase(database.url)
  expect(await runOps(database.url, ['migrate', '--json'])).toEqual({
    code: 0,
    stdout: '{"applied":[],"forgotten":[]}\n',
    stderr: '',
  })
})
