import { userInfo } from 'node:os'
import { setTimeout } from 'node:timers/promises'
import pg from 'pg'
import { BUILD } from '../../build-info.ts'
import { readDatabaseConfig } from '../../config.ts'
import { isForbiddenToRole } from '../../platform/db/grants.ts'
import { hasState, isOutage, UNDEFINED_COLUMN, UNDEFINED_TABLE } from '../../platform/db/outage.ts'
import { createPool } from '../../platform/db/pool.ts'
import { accountCommands } from './accounts.ts'
import { auditCommands } from './audit.ts'
import { bankHolidayCommands } from './bank-holidays.ts'
import { bookCommands } from './books.ts'
import { closeMonthCommands } from './close-month.ts'
import type { Command, PreparedCommand, Sleep } from './command.ts'
import { databaseCommands } from './database.ts'
import { CommandError, UsageError } from './errors.ts'
import { exceptionCommands } from './exceptions.ts'
import { findPaymentCommands } from './find-payments.ts'
import { keyCommands } from './keys.ts'
import { layoutCommands, statementLayoutCommands } from './layouts.ts'
import { merchantCommands } from './merchants.ts'
import { print, printNote, say, type Terminal, toOutput } from './output.ts'
import { partnerCommands } from './partners.ts'
import { paymentCommands } from './payments.ts'
import { reconcileCommands } from './reconcile.ts'
import { refundCommands } from './refunds.ts'
import { settlementCommands } from './settlements.ts'
import { statementCommands } from './statements.ts'
import { todayCommands } from './today.ts'
import { webhookCommands } from './webhooks.ts'

const GROUPS: Readonly<Record<string, readonly Command[]>> = {
  'Look and install': [...todayCommands, ...databaseCommands],
  'Merchants, partners and their keys': [...merchantCommands, ...partnerCommands, ...keyCommands, ...accountCommands],
  Payments: [...findPaymentCommands, ...paymentCommands, ...exceptionCommands],
  'Money that goes back': refundCommands,
  'What merchants are told': webhookCommands,
  'Settlements and books': [
    ...settlementCommands,
    ...layoutCommands,
    ...statementCommands,
    ...statementLayoutCommands,
    ...bookCommands,
    ...closeMonthCommands,
    ...reconcileCommands,
    ...bankHolidayCommands,
    ...auditCommands,
  ],
}
export const COMMANDS: readonly Command[] = Object.values(GROUPS).flat()

/** Longer than the limit of the service: a busy database may take seconds to connect, and an operator can wait. */
const CONNECT_TIMEOUT_MS = 10_000

const WHO =
  'A command that changes something takes --by NAME: who runs it, for the audit; else OPS_BY, else the login name.\n'

const EXIT_FAULT = 1
const EXIT_USAGE = 2

/**
 * Runs the command in `args`, the words after `ops`. Returns the exit code: 0, 1 for an error, 2 for a command that
 * was typed wrongly. The result goes to stdout, everything else to stderr.
 */
export async function main(
  args: string[],
  terminal: Terminal & { env: NodeJS.ProcessEnv; sleep?: Sleep },
): Promise<number> {
  const asksHelp = args[0] === 'help' || args.includes('--help') || args.includes('-h')
  const typed = wordsOf(args[0] === 'help' ? args.slice(1) : args)
  const command = COMMANDS.find(({ name }) => name === typed.slice(0, name.split(' ').length).join(' '))
  try {
    if (asksHelp || args[0] === '--version') {
      say(terminal.stdout, asksHelp ? help(command, typed) : `ops ${BUILD.version} (commit ${BUILD.commit})`)
      return 0
    }
    if (command === undefined) {
      const meant = COMMANDS.find(({ name }) => isNearly(typed, name))
      if (meant === undefined) throw new UsageError(args.length === 0 ? 'name a command' : 'there is no such command')
      printNote(terminal, `there is no such command; did you mean ops ${meant.name}?`)
      return EXIT_USAGE
    }
    await withDatabase(command.prepare(args.slice(command.name.split(' ').length)), terminal)
    return 0
  } catch (error) {
    if (error instanceof UsageError) {
      printNote(terminal, error.message)
      say(terminal.stderr, help(command, typed))
      return EXIT_USAGE
    }
    printNote(terminal, explain(error), error instanceof CommandError ? error.details : [])
    return EXIT_FAULT
  }
}

async function withDatabase({ form, by, run }: PreparedCommand, terminal: Parameters<typeof main>[1]): Promise<void> {
  const config = readDatabaseConfig(terminal.env)
  const url = config.databaseMigrateUrl
  printNote(terminal, `works on ${nameDatabase(url)}`)
  // The pool's warning of a lost connection is dropped: the query on it fails too, and `main` reports that error.
  const log = { warn: () => undefined }
  // Queries have no time limit: an import may take minutes, and the operator can press Ctrl-C. The import of a day file
  // takes nine connections, one for the file and eight for its lines. Other commands take fewer.
  const limits = { queryTimeoutMs: 0, connectTimeoutMs: CONNECT_TIMEOUT_MS }
  const db = createPool({ url, size: 9, log, preparedStatements: config.preparedStatements, ...limits })
  try {
    const person = by ?? config.operator ?? loginName()
    const { sleep = setTimeout } = terminal
    const context = { config, db, now: new Date(), sleep, person, asJson: form === 'json', terminal }
    await print(terminal, toOutput(await run(context)), form)
  } finally {
    await db.end()
  }
}

/** The name of the system's user, or `uid …`: in a container the user may have no name. */
function loginName(): string {
  try {
    return userInfo().username
  } catch {
    return `uid ${process.getuid?.()}`
  }
}

/** Names the database of `url` with host and user, as the driver reads them, but without the password. */
function nameDatabase(url: string): string {
  const { database, host, port, user } = new pg.Client({ connectionString: url })
  return `the database ${database} at ${host}:${port} as ${user}`
}

function wordsOf(args: string[]): string[] {
  const firstFlag = args.findIndex((arg) => arg.startsWith('-'))
  return firstFlag === -1 ? args : args.slice(0, firstFlag)
}

/** Whether each word of `typed` is the start of a word of `name`, or the reverse, as in `merchant lists`. */
function isNearly(typed: readonly string[], name: string): boolean {
  return name.split(' ').every((word, index) => {
    const given = typed[index] ?? ''
    return given !== '' && (word.startsWith(given) || given.startsWith(word))
  })
}

/** The help for `command`. Without one: the help for all commands whose first word is `word`, or the overview. */
function help(command: Command | undefined, [word = '']: string[]): string {
  const commands = command ? [command] : COMMANDS.filter(({ name }) => name.split(' ')[0] === word)
  if (commands.length === 0) return OVERVIEW
  const lines = commands.map(({ name, usage, summary }) => `${`  ops ${name} ${usage}`.trimEnd()}\n      ${summary}`)
  const taken = commands.some(({ changes }) => changes) ? WHO : ''
  return `usage:\n${lines.join('\n')}\n${taken}Every command takes --json for scripts, and --help.`
}

const NAME_WIDTH = Math.max(...COMMANDS.map(({ name }) => name.length))
const OVERVIEW = [
  'usage:\n  ops COMMAND [flags]',
  ...Object.entries(GROUPS).map(([title, commands]) =>
    [title, ...commands.map(({ name, summary }) => `  ${name.padEnd(NAME_WIDTH)}  ${summary}`)].join('\n'),
  ),
  'ops COMMAND --help shows its flags. Every command takes --json, for scripts.',
].join('\n\n')

/** The text of an error for the operator, in one line. */
function explain(error: unknown): string {
  if (error instanceof CommandError) return error.message
  const { code, message } = error as NodeJS.ErrnoException
  if (hasState(error, UNDEFINED_TABLE, UNDEFINED_COLUMN)) return 'the database is not migrated: run ops migrate'
  const cause = message || code || 'unknown failure'
  const line = cause.split('\n')[0]
  if (isForbiddenToRole(error)) {
    return `${line}: run it as the owner of the tables, by DATABASE_MIGRATE_URL; in compose: docker compose run --rm ops …`
  }
  return isOutage(error) ? `the database cannot be used: ${line}` : String(line)
}
