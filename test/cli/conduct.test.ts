import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { COMMANDS } from '../../src/operator/cli/run.ts'
import { spreadDatabase } from '../support/citus.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { ON_CITUS } from '../support/installed-postgres.ts'
import { runOps } from '../support/ops.ts'
import { ROOT } from '../support/processes.ts'

let empty: TestDatabase

beforeAll(async () => {
  empty = await createTestDatabase({ empty: true })
})

describe('a mistyped command exits with 2, short help and nothing on stdout', () => {
  it.each([
    ['no command', [], 'name a command'],
    ['an unknown command', ['merchants', 'delete'], 'there is no such command'],
    ['an unknown flag', ['merchants', 'list', '--all'], "Unknown option '--all'"],
    ['a missing flag', ['merchants', 'add', '--name', 'x'], '--vpa is required'],
    ['a flag without its value', ['merchants', 'disable', '--mid'], "Option '--mid <value>' argument missing"],
    ['a flag twice', ['merchants', 'disable', '--mid', 'M1', '--mid', 'M2'], '--mid is given twice'],
    ['an argument too many', ['merchants', 'list', 'M1'], 'there are too many arguments'],
    ['no file', ['settlements', 'import'], 'FILE is required'],
    ['both owners', ['keys', 'create', '--mid', 'M1', '--pid', 'P1'], 'give one of --mid and --pid'],
    [
      'no change',
      ['merchants', 'update', '--mid', 'M1'],
      'give at least one of --name, --vpa, --mcc, --dynamic-qr, --acquirer, --account, --acquirer-merchant-id, --input, --expiry-minutes, --return-call, --payee, --max-amount, --fee',
    ],
    [
      'every wrong value',
      ['merchants', 'add', '--mid', 'M 1', '--name', 'a\u0007', '--vpa', 'x', '--mcc', '١٢٣٤', '--dynamic-qr', 'x'],
      '--mid must be 1 to 64 characters of A-Z a-z 0-9 _ -; --name must be text of 1 to 99 characters, without control characters; ' +
        '--vpa must be a UPI address such as shop@bank; --mcc must be 4 digits, such as 5814; --dynamic-qr must be link or image',
    ],
  ])('the mistyped command %s exits with 2, short help and nothing on stdout', async (_, args, message) => {
    // No database: a mistake in typing is told before anything is connected.
    const { code, stdout, stderr } = await runOps(undefined, args)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr.split('\nusage:\n  ops ')).toEqual([`ops: ${message}`, expect.any(String)])
  })
})

describe('a command that is nearly one of ours exits with 2 and one line that names ours', () => {
  it.each([
    [['merchant', 'list'], 'merchants list'],
    [['merchant', 'add', '--name', 'x'], 'merchants add'],
    [['settlement', 'import', 'day.csv'], 'settlements import'],
    [['payments', 'forget-customer'], 'payments forget-customers'],
    [['todays'], 'today'],
  ])('%j, nearly a command of ops, exits with 2 and one line that names the command', async (args, meant) => {
    const stderr = `ops: there is no such command; did you mean ops ${meant}?\n`
    expect(await runOps(undefined, args)).toEqual({ code: 2, stdout: '', stderr })
  })
})

describe('ops --help', () => {
  const overview = async () => (await runOps(undefined, ['--help'])).stdout

  it('ops --help prints one line of at most 80 columns for each command, which says what the command does', async () => {
    const text = await overview()
    for (const line of text.split('\n')) expect([line, line.length <= 80]).toEqual([line, true])
    for (const { name, summary } of COMMANDS) {
      expect(summary).toMatch(/^[A-Z][^.\n]{8,}[^.\n]$/)
      const lines = text.split('\n').filter((line) => line.startsWith(`  ${name}  `))
      expect([name, lines.map((line) => line.slice(name.length + 2).trim())]).toEqual([name, [summary]])
    }
    expect(text).toMatch(/^usage:\n {2}ops COMMAND \[flags\]\n\n\S.*\n {2}today {2,}\S/)
    expect(new Set(COMMANDS.map(({ summary }) => summary)).size).toBe(COMMANDS.length)
    // Flags stand in the help of each command.
    expect(text).not.toMatch(/--mid|--order-id/)
  })

  it('ops keys revoke --help prints the flags of this command, and ops keys --help those of every keys command', async () => {
    const revoke = await runOps(undefined, ['keys', 'revoke', '--help'])
    expect(revoke.code).toBe(0)
    expect(revoke.stdout).toMatch(/^usage:\n {2}ops keys revoke --public-key pk_…\n {6}End a key for good\n/)
    expect(await runOps(undefined, ['help', 'keys', 'revoke'])).toEqual(revoke)
    expect((await runOps(undefined, ['help', 'reconcile', 'close'])).stdout).toMatch(
      /^usage:\n {2}ops reconcile close --month/,
    )
    expect((await runOps(undefined, ['help', 'reconcile'])).stdout).toContain('  ops reconcile (--from D --to D')
    const group = await runOps(undefined, ['keys', '--help'])
    expect(group.stdout.match(/^ {2}ops .*$/gm)?.map((line) => line.split(' ').slice(2, 5).join(' '))).toEqual([
      ...['ops keys create', 'ops keys rotate', 'ops keys list', 'ops keys revoke'],
    ])
    expect(await runOps(undefined, ['help'])).toEqual(await runOps(undefined, ['--help']))
  })

  it('ops --version prints the version of the service and the commit of its build', async () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
    const stdout = `ops ${version} (commit unknown)\n`
    expect(await runOps(undefined, ['--version'])).toEqual({ code: 0, stdout, stderr: '' })
  })
})

describe('a failing command exits with 1 and one line on stderr, no stack trace', () => {
  it('a command without DATABASE_URL exits with 1 and one line that names the variable', async () => {
    const { code, stderr } = await runOps(undefined, ['merchants', 'list'])
    expect({ code, stderr }).toEqual({ code: 1, stderr: 'ops: DATABASE_URL is required\n' })
  })

  it.each([[['merchants', 'list', '--json']], [['migrate']], [['settlements', 'import', '-']]])(
    'a command exits with 1 and one line when the database is away: %j',
    async (args) => {
      const { code, stdout, stderr } = await runOps('postgres://postgres@127.0.0.1:1/away', args)
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
      expect(stderr).toMatch(/^ops: the database cannot be used: [^\n]*ECONNREFUSED[^\n]*\n$/)
    },
  )

  it.each([[['merchants', 'list']], [['settlements', 'import', '-']]])(
    'a command says what to run when the database has no schema: %j',
    async (args) => {
      const { code, stderr } = await runOps(empty.url, args)
      expect({ code, stderr }).toEqual({ code: 1, stderr: 'ops: the database is not migrated: run ops migrate\n' })
    },
  )
})

it('ops migrate tells a script which migrations it applied, and none the second time', async () => {
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
