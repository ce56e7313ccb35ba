import pg from 'pg'
import { readDatabaseConfig } from '../config.ts'
import { isForbiddenToRole } from '../db/grants.ts'
import { isOutage } from '../db/outage.ts'
import { createPool } from '../db/pool.ts'
import { hasState, UNDEFINED_COLUMN, UNDEFINED_TABLE } from '../db/sqlstates.ts'
import { type Command, CommandFault, type Context, type Output, UsageError } from './command.ts'
import { keyCommands } from './keys.ts'
import { merchantCommands } from './merchants.ts'
import { migrateCommands } from './migrate.ts'
import { partnerCommands } from './partners.ts'
import { paymentCommands } from './payments.ts'
import { settlementCommands } from './settlements.ts'
import { webhookCommands } from './webhooks.ts'

const COMMANDS: readonly Command[] = [
  ...migrateCommands,
  ...merchantCommands,
  ...partnerCommands,
  ...keyCommands,
  ...settlementCommands,
  ...paymentCommands,
  ...webhookCommands,
]

/** A busy database may take seconds to accept a connection. A payment cannot wait that long; an operator can. */
const CONNECT_TIMEOUT_MS = 10_000

const EXIT_FAULT = 1
const EXIT_USAGE = 2

// The reader of a pipe may stop early, as in `ops merchants list | head -1`: that is not an error.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
  })
}

process.exitCode = await main(process.argv.slice(2))

async function main(args: string[]): Promise<number> {
  const typed = wordsOf(args)
  const command = COMMANDS.find(({ name }) => name === typed.slice(0, name.split(' ').length).join(' '))
  try {
    if (args.includes('--help') || args.includes('-h')) {
      process.stdout.write(help(command, typed))
      return 0
    }
    if (command === undefined) {
      throw new UsageError(args.length === 0 ? 'name a command' : 'there is no such command')
    }
    const { asJson, run } = command.prepare(args.slice(command.name.split(' ').length))
    const { json, text, warnings = [] } = await withDatabase(run)
    process.stdout.write(`${asJson ? JSON.stringify(json) : text}\n`)
    if (!asJson) for (const warning of warnings) process.stderr.write(`ops: warning: ${warning}\n`)
    return 0
  } catch (error) {
    if (error instanceof UsageError) {
      process.stderr.write(`ops: ${error.message}\n${help(command, typed)}`)
      return EXIT_USAGE
    }
    process.stderr.write(`ops: ${explain(error)}\n`)
    return EXIT_FAULT
  }
}

async function withDatabase(run: (context: Context) => Promise<Output>): Promise<Output> {
  const config = readDatabaseConfig(process.env)
  const url = config.databaseMigrateUrl
  process.stderr.write(`ops: works on ${nameDatabase(url)}\n`)
  // A lost connection also fails the query that waits on it, and main reports that error.
  const log = { warn: () => undefined }
  // Without a limit on queries: an import may take minutes, and the operator has Ctrl-C.
  // All commands need one, but the import of a day file: it keeps the file in one and records by two.
  const db = createPool({ url, size: 3, log, queryTimeoutMs: 0, connectTimeoutMs: CONNECT_TIMEOUT_MS })
  try {
    return await run({ config, db, now: new Date() })
  } finally {
    await db.end()
  }
}

/** The database that `url` names, without its password, as the driver understands it. */
function nameDatabase(url: string): string {
  const { database, host, port, user } = new pg.Client({ connectionString: url })
  return `the database ${database} at ${host}:${port} as ${user}`
}

/** The words before the first flag. */
function wordsOf(args: string[]): string[] {
  const firstFlag = args.findIndex((arg) => arg.startsWith('-'))
  return firstFlag === -1 ? args : args.slice(0, firstFlag)
}

/** How to type `command`; else the commands of the group that was typed; else all of them. */
function help(command: Command | undefined, [group = '']: string[]): string {
  const inGroup = COMMANDS.filter(({ name }) => name.split(' ')[0] === group)
  const commands = command ? [command] : inGroup.length > 0 ? inGroup : COMMANDS
  const lines = commands.map(({ name, usage }) => `  ops ${name} ${usage}`.trimEnd())
  return `usage:\n${lines.join('\n')}\nEvery command takes --json for scripts, and --help.\n`
}

/** A failure in one line, for the operator. */
function explain(error: unknown): string {
  if (error instanceof CommandFault) return error.message
  const { code, message } = error as NodeJS.ErrnoException
  if (hasState(error, UNDEFINED_TABLE, UNDEFINED_COLUMN)) return 'the database is not migrated: run ops migrate'
  const cause = message || code || 'unknown failure'
  const line = cause.split('\n')[0]
  if (isForbiddenToRole(error)) {
    return `${line}: run it as the owner of the tables, by DATABASE_MIGRATE_URL; in compose: docker compose run --rm ops …`
  }
  return isOutage(error) ? `the database cannot be used: ${line}` : String(line)
}
