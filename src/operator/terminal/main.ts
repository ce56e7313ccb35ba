import { randomUUID } from 'node:crypto'
import { userInfo } from 'node:os'
import { setTimeout } from 'node:timers/promises'
import pg from 'pg'
import { BUILD } from '../../build-info.ts'
import { readDatabaseConfig } from '../../config.ts'
import { readDatabaseTime } from '../../platform/db/clock.ts'
import { createPool } from '../../platform/db/pool.ts'
import { accountCommands } from '../commands/accounts.ts'
import { auditCommands } from '../commands/audit.ts'
import { bankHolidayCommands } from '../commands/bank-holidays.ts'
import { bookCommands } from '../commands/books.ts'
import { closeMonthCommands } from '../commands/close-month.ts'
import type { Command, DatabaseTime, PreparedCommand, Sleep } from '../commands/command.ts'
import { databaseCommands } from '../commands/database.ts'
import { CommandError, explain, UsageError } from '../commands/errors.ts'
import { exceptionCommands } from '../commands/exceptions.ts'
import { findPaymentCommands } from '../commands/find-payments.ts'
import { keyCommands } from '../commands/keys.ts'
import { layoutCommands, statementLayoutCommands } from '../commands/layouts.ts'
import { listPaymentCommands } from '../commands/list-payments.ts'
import { merchantCommands } from '../commands/merchants.ts'
import { partnerCommands } from '../commands/partners.ts'
import { paymentCommands } from '../commands/payments.ts'
import { reconcileCommands } from '../commands/reconcile.ts'
import { refundCommands } from '../commands/refunds.ts'
import { settlementCommands } from '../commands/settlements.ts'
import { statementCommands } from '../commands/statements.ts'
import { todayCommands } from '../commands/today.ts'
import { webhookCommands } from '../commands/webhooks.ts'
import { consoleCommands } from '../console/command.ts'
import { optionsOf } from './options.ts'
import { print, printNote, say, type Terminal, toOutput } from './print.ts'

const WORK: Readonly<Record<string, readonly Command[]>> = {
  Overview: [...todayCommands, ...auditCommands],
  Database: databaseCommands,
  'Merchants, partners and API keys': [...merchantCommands, ...partnerCommands, ...keyCommands],
  'Acquirer accounts': accountCommands,
  Payments: [...findPaymentCommands, ...listPaymentCommands, ...paymentCommands, ...exceptionCommands],
  Refunds: refundCommands,
  Webhooks: webhookCommands,
  Settlements: [...settlementCommands, ...layoutCommands],
  'Bank statements': [...statementCommands, ...statementLayoutCommands],
  Reconciliation: [...reconcileCommands, ...bookCommands, ...closeMonthCommands],
  'Bank holidays': bankHolidayCommands,
}
const GROUPS = { ...WORK, Console: consoleCommands(Object.values(WORK).flat()) }
export const COMMANDS: readonly Command[] = Object.values(GROUPS).flat()

const wordsIn = (name: string) => name.split(' ').length

/** The commands in look-up order: longer names first, so that `reconcile close` precedes `reconcile`. */
const LONGEST_FIRST = [...COMMANDS].sort((a, b) => wordsIn(b.name) - wordsIn(a.name))

/**
 * The timeout is longer than the service's, because a busy database may need seconds to connect and an operator can
 * wait.
 */
const CONNECT_TIMEOUT_MS = 10_000

const EXIT_FAILURE = 1
const EXIT_USAGE = 2

/**
 * Runs the command in `args`, the words after `ops`. Returns the exit code: 0 for success, 1 for an error, 2 for
 * invalid arguments. Writes the result to stdout and everything else to stderr.
 */
export async function main(
  args: string[],
  terminal: Terminal & { env: NodeJS.ProcessEnv; sleep?: Sleep; databaseTime?: DatabaseTime },
): Promise<number> {
  const wantsHelp = args[0] === 'help' || args.includes('--help') || args.includes('-h')
  const typed = wordsOf(args[0] === 'help' ? args.slice(1) : args)
  const command = LONGEST_FIRST.find(({ name }) => name === typed.slice(0, wordsIn(name)).join(' '))
  try {
    if (wantsHelp || args[0] === '--version') {
      say(terminal.stdout, wantsHelp ? help(command, typed) : `ops ${BUILD.version} (commit ${BUILD.commit})`)
      return 0
    }
    if (command === undefined) {
      const meant = LONGEST_FIRST.find(({ name }) => isNearly(typed, name))
      if (meant === undefined) throw new UsageError(args.length === 0 ? 'no command given' : 'unknown command')
      printNote(terminal, `unknown command; did you mean ops ${meant.name}?`)
      return EXIT_USAGE
    }
    await withDatabase(command.prepare(args.slice(wordsIn(command.name))), terminal)
    return 0
  } catch (error) {
    if (error instanceof UsageError) {
      printNote(terminal, error.message)
      say(terminal.stderr, shortHelp(command, typed))
      return EXIT_USAGE
    }
    printNote(terminal, explain(error), error instanceof CommandError ? error.details : [])
    return EXIT_FAILURE
  }
}

async function withDatabase({ form, by, run }: PreparedCommand, terminal: Parameters<typeof main>[1]): Promise<void> {
  const config = readDatabaseConfig(terminal.env)
  const url = config.databaseMigrateUrl
  printNote(terminal, `using ${nameDatabase(url)}`)
  // Drops the pool's warning about a lost connection, because the query on that connection also fails, and `main`
  // reports the error from the query.
  const log = { warn: () => undefined }
  // Queries have no time limit, because an import may take minutes and the operator can press Ctrl-C. The import of a
  // daily transaction report needs nine connections: one for the file and eight for its lines. Other commands need
  // fewer connections.
  const limits = { queryTimeoutMs: 0, connectTimeoutMs: CONNECT_TIMEOUT_MS }
  const db = createPool({ url, size: 9, log, preparedStatements: config.preparedStatements, ...limits })
  try {
    const person = by ?? config.operator ?? loginName()
    const { sleep = setTimeout, databaseTime = readDatabaseTime } = terminal
    const asJson = form === 'json'
    const clocks = { now: new Date(), sleep, databaseTime }
    const context = { config, db, ...clocks, person, asJson, terminal, auditId: randomUUID() }
    const output = toOutput(await run(context))
    await print(terminal, output, form)
    const failure = output.failure?.()
    if (failure) throw failure
  } finally {
    await db.end()
  }
}

/** Returns the login name, or `uid …` in a container whose user has no name. */
function loginName(): string {
  try {
    return userInfo().username
  } catch {
    return `uid ${process.getuid?.()}`
  }
}

/** Describes the database in `url` by host and user, as the driver parses them, without the password. */
function nameDatabase(url: string): string {
  const { database, host, port, user } = new pg.Client({ connectionString: url })
  return `database ${database} at ${host}:${port} as ${user}`
}

function wordsOf(args: string[]): string[] {
  const firstFlag = args.findIndex((arg) => arg.startsWith('-'))
  return firstFlag === -1 ? args : args.slice(0, firstFlag)
}

/**
 * Returns whether each typed word is a prefix of the corresponding word in `name`, or the reverse, as in `merchant
 * lists`.
 */
function isNearly(typed: readonly string[], name: string): boolean {
  return name.split(' ').every((word, index) => {
    const given = typed[index] ?? ''
    return given !== '' && (word.startsWith(given) || given.startsWith(word))
  })
}

/**
 * Returns the help for `command`. Without `command`, returns the help for all commands whose first word is `word`,
 * otherwise the overview.
 */
function help(command: Command | undefined, [word = '']: string[]): string {
  if (command) {
    const subcommands = COMMANDS.filter(({ name }) => name.startsWith(`${command.name} `))
    const summary = [`${command.summary}.`, command.note ?? ''].join(' ').trimEnd()
    return [
      `usage:\n${usageOf(command)}`,
      wrap(summary, ''),
      `Options:\n${optionLines(command).join('\n')}`,
      ...(subcommands.length === 0 ? [] : [`Subcommands:\n${summaryLines(subcommands)}`]),
    ].join('\n\n')
  }
  const commands = COMMANDS.filter(({ name }) => name.split(' ')[0] === word)
  if (commands.length === 0) return OVERVIEW
  return `usage:\n${commands.map((one) => `${usageOf(one)}\n      ${one.summary}`).join('\n')}\n\n${MORE}`
}

/**
 * Returns the help to print below the error for a mistyped command. Options are omitted, so that the error stays on the
 * screen.
 */
function shortHelp(command: Command | undefined, typed: string[]): string {
  return command ? `usage:\n${usageOf(command)}\n\n${MORE}` : help(undefined, typed)
}

const MORE = 'Run "ops COMMAND --help" for the options of a command.'

/** Breaks the usage into lines that fit the terminal. A flag stays on the same line as its value. */
const usageOf = ({ name, usage }: Command) =>
  wrap(`  ops ${name} ${usage}`.trimEnd().replace(/(--[a-z-]+) (?=[A-Za-z])/g, '$1\u00a0'), '      ').replaceAll(
    '\u00a0',
    ' ',
  )

const LINE_WIDTH = 80

/** Breaks text at spaces into lines of LINE_WIDTH. Every line except the first begins with `indent`. */
function wrap(text: string, indent: string): string {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(/(?<=\S) /)) {
    if (line !== '' && line.length + 1 + word.length > LINE_WIDTH) {
      lines.push(line)
      line = `${indent}${word}`
    } else line = line === '' ? word : `${line} ${word}`
  }
  return [...lines, line].join('\n')
}

function optionLines(command: Command): string[] {
  const options = optionsOf(command)
  const width = Math.min(OPTION_WIDTH, Math.max(...options.map(([name]) => name.length)))
  const indent = ' '.repeat(width + 4)
  return options.map(([name, text]) => {
    const lead = name.length > width ? `  ${name}\n${indent}` : `  ${name.padEnd(width)}  `
    return lead + wrap(`${indent}${text}`, indent).slice(indent.length)
  })
}

/** Width of the longest option whose text starts on the same line. */
const OPTION_WIDTH = 26

const summaryLines = (commands: readonly Command[]) =>
  commands.map(({ name, summary }) => `  ${name.padEnd(NAME_WIDTH)}  ${summary}`).join('\n')

const NAME_WIDTH = Math.max(...COMMANDS.map(({ name }) => name.length))
const OVERVIEW = [
  'usage:\n  ops COMMAND [options]',
  ...Object.entries(GROUPS).map(([title, commands]) => `${title}\n${summaryLines(commands)}`),
  MORE,
].join('\n\n')
