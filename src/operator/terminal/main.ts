import { randomUUID } from 'node:crypto'
import { open } from 'node:fs/promises'
import { userInfo } from 'node:os'
import { basename, resolve } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import pg from 'pg'
import { BUILD } from '../../build-info.ts'
import { type DatabaseConfig, readConsoleConfig, readDatabaseConfig } from '../../config.ts'
import { readDatabaseTime } from '../../platform/db/clock.ts'
import { createPool } from '../../platform/db/pool.ts'
import { GROUPS } from '../commands/catalog.ts'
import type { Command, Context, DatabaseTime, OpenedFile, Prepared, Sleep } from '../commands/command.ts'
import { CommandError, explain, UsageError } from '../commands/errors.ts'
import type { Output } from '../commands/result.ts'
import { toConfirm } from '../commands/run.ts'
import { consoleCommand } from '../console/command.ts'
import { createHelp, type Groups } from './help.ts'
import { type Arguments, parseArguments } from './parse.ts'
import { print, printNote, requireConfirmation, say, type Terminal, withProgress } from './print.ts'

const CONSOLE = consoleCommand(GROUPS)
const ALL: Groups = { ...GROUPS, Console: [CONSOLE] }
export const COMMANDS: readonly Command[] = Object.values(ALL).flat()
const help = createHelp(ALL)

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

type Surroundings = Terminal & { env: NodeJS.ProcessEnv; sleep?: Sleep; databaseTime?: DatabaseTime }

/**
 * Runs the command in `args`, the words after `ops`. Returns the exit code: 0 for success, 1 for an error, 2 for
 * invalid arguments. Writes the result to stdout and everything else to stderr.
 */
export async function main(args: string[], terminal: Surroundings): Promise<number> {
  const wantsHelp = args[0] === 'help' || args.includes('--help') || args.includes('-h')
  const typed = wordsOf(args[0] === 'help' ? args.slice(1) : args)
  const command = LONGEST_FIRST.find(({ name }) => name === typed.slice(0, wordsIn(name)).join(' '))
  try {
    if (wantsHelp || args[0] === '--version') {
      say(terminal.stdout, wantsHelp ? help.long(command, typed) : `ops ${BUILD.version} (commit ${BUILD.commit})`)
      return 0
    }
    if (command === undefined) {
      const meant = LONGEST_FIRST.find(({ name }) => isNearly(typed, name))
      if (meant === undefined) throw new UsageError(args.length === 0 ? 'no command given' : 'unknown command')
      printNote(terminal, `unknown command; did you mean ops ${meant.name}?`)
      return EXIT_USAGE
    }
    const given = parseArguments(command, args.slice(wordsIn(command.name)))
    const readConfig = command === CONSOLE ? readConsoleConfig : readDatabaseConfig
    await withDatabase(command.prepare(given.values), readConfig(terminal.env), given, terminal)
    return 0
  } catch (error) {
    if (error instanceof UsageError) {
      printNote(terminal, error.message)
      say(terminal.stderr, help.short(command, typed))
      return EXIT_USAGE
    }
    printNote(terminal, explain(error), error instanceof CommandError ? error.details : [])
    return EXIT_FAILURE
  }
}

async function withDatabase(
  prepared: Prepared,
  config: DatabaseConfig,
  { by, format }: Arguments,
  terminal: Surroundings,
) {
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
    const context: Context = {
      ...{ config, db, now: new Date(), sleep, databaseTime, person, auditId: randomUUID() },
      isTerminal: terminal.stdin.isTTY === true,
      ask: (preview) => ask(terminal, preview),
      note: (message) => printNote(terminal, message),
      noteInText: format === 'json' ? () => undefined : (message) => printNote(terminal, message),
      open: (path: string) => openFile(path, terminal),
      withProgress: withProgress(terminal),
      stopSignal,
    }
    const output = await prepared.run(context)
    await print(terminal, output, format)
    const failure = output.failure?.()
    if (failure) throw failure
  } finally {
    await db.end()
  }
}

/** Opens the file at a path, or standard input for `-`. */
async function openFile(path: string, { stdin }: Terminal): Promise<OpenedFile> {
  if (path === '-') return { stream: stdin, name: path }
  const file = await open(path).catch((error: NodeJS.ErrnoException) => {
    throw new CommandError(
      error.code === 'ENOENT' ? `file ${resolve(path)} does not exist` : `${path} cannot be read: ${error.code}`,
    )
  })
  if (!(await file.stat()).isDirectory()) return { stream: file.createReadStream(), name: basename(path) }
  await file.close()
  throw new CommandError(`${path} is a directory: give a file`)
}

/** Asks about a preview. Returns what the operator has confirmed; undefined if there is no question. */
async function ask(terminal: Terminal, preview: Output): Promise<string | undefined> {
  const { question, shown, warnings = [] } = preview
  if (question === undefined) return undefined
  if (shown) await print({ ...terminal, stdout: terminal.stderr }, { data: shown }, 'text')
  for (const warning of warnings) printNote(terminal, `warning: ${warning}`)
  await requireConfirmation(terminal, question)
  return toConfirm(preview)
}

/** Returns a signal for Ctrl-C. */
function stopSignal(): AbortSignal {
  const stopped = new AbortController()
  process.once('SIGINT', () => stopped.abort())
  return stopped.signal
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
