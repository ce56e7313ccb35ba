import { parseArgs } from 'node:util'
import type pg from 'pg'
import * as z from 'zod'
import type { DatabaseConfig } from '../../config.ts'
import type { Database, Queryable } from '../../platform/db/pool.ts'
import { personName } from '../../platform/fields.ts'
import type { ConsoleRight } from '../console/operator-keys.ts'
import type { OutputFormat, Result, Terminal } from '../terminal/print.ts'
import { UsageError } from './errors.ts'
import { type Change, runAudited, runDry } from './run.ts'

/** Resolves after `ms` milliseconds. */
export type Sleep = (ms: number) => Promise<unknown>

export type DatabaseTime = (db: Queryable) => Promise<Date>

/**
 * Dependencies of every command. `person` is the name of the operator. `db` connects at the first query. `databaseTime`
 * returns the time of PostgreSQL's clock.
 */
export type Context = {
  config: DatabaseConfig
  db: Database
  now: Date
  sleep: Sleep
  databaseTime: DatabaseTime
  person: string
  asJson: boolean
  terminal: Terminal
  /** Identifier of the audit row of a change. The console uses the nonce of the confirmation. */
  auditId: string
}

/** `change` runs work in the command's transaction. Commands with their own transactions do not call `change`. */
export type ChangingContext = Context & { change: Change }

/** `client` is the database connection that runs the transaction. */
type TransactionContext = Context & { client: pg.PoolClient }

export type Command = {
  /** The words after `ops`, such as `merchants add`. */
  name: string
  /** The command's line in `ops --help`. */
  summary: string
  /** Flags and arguments, as the help prints them after the command's name. */
  usage: string
  /** One or two sentences that the command's own help prints below the summary. */
  note: string | undefined
  /** The flags in kebab-case, in the order in which the help lists them. */
  flags: readonly string[]
  /** The flags that may be given more than once, and the flags without a value. */
  repeatable: readonly string[]
  switches: readonly string[]
  /** Whether the word after the command's name is a file. */
  takesFile: boolean
  /** Whether the command changes data and therefore accepts `--by`. */
  changes: boolean
  /** The right with which an operator may run the command in the console; undefined on the command line only. */
  console: ConsoleRight | undefined
  /** Checks the arguments and returns a function that runs the command. Throws a UsageError for invalid arguments. */
  prepare: (args: string[]) => PreparedCommand
}

/** A command with checked arguments. `by` is the value of `--by`. */
export type PreparedCommand = { form: OutputFormat; by: string | undefined; run: (context: Context) => Promise<Result> }

type CommandDefinition<S extends z.ZodObject, C = Context, R extends ConsoleRight = 'read'> = {
  /** Flags and arguments in the command's help. A command without flags has neither `usage` nor `schema`. */
  usage?: string
  note?: string
  schema?: S
  /** The key in `schema` for the word after the command's name. Every other key is a flag. */
  argument?: keyof S['shape'] & string
  /**
   * Whether the command accepts `--csv`. The value `true` writes CSV for spreadsheets. The value `plain` writes CSV for
   * programs, or with `--for excel` for spreadsheets.
   */
  csv?: true | 'plain'
  /** The console offers the command to operators with this right: `act` for a command that changes data. */
  console?: R
  run: (input: z.output<S>, context: C) => Promise<Result>
}

/**
 * Definition of a command that changes data. The audit stores the results of the functions in `audited` instead of flag
 * values that may contain a secret or customer data.
 */
type ChangeDefinition<S extends z.ZodObject, C = ChangingContext> = CommandDefinition<S, C, 'act'> & {
  audited?: Partial<Record<keyof S['shape'], (typed: string) => string>>
  /** True for `migrate`, which creates the audit's tables. The tables may not exist when the command begins. */
  makesAudit?: boolean
}

/**
 * Defines a command that changes nothing. Its flags are the keys of `schema` in kebab-case: `dynamicQr` becomes
 * `--dynamic-qr`. A flag whose schema accepts `true` has no value, a flag whose schema accepts a list is repeatable,
 * and every other flag has one value.
 */
export function command<S extends z.ZodObject>(
  name: string,
  summary: string,
  { run, ...definition }: CommandDefinition<S>,
): Command {
  return define({ name, summary, ...definition }, false, (input) => (context) => run(input, context))
}

/** Defines a command that changes data. The audit stores the operator, the arguments and the outcome. */
export function changingCommand<S extends z.ZodObject>(
  name: string,
  summary: string,
  { run, makesAudit = false, audited = {}, ...definition }: ChangeDefinition<S>,
): Command {
  return define({ name, summary, ...definition }, true, (input, typed) => {
    const given = Object.entries(typed).filter(([, value]) => value !== undefined)
    const stored = Object.fromEntries(given.map(([key, value]) => [key, audited[key]?.(String(value)) ?? value]))
    return (context) => {
      const { fileName } = context.terminal.stdin
      const row = { command: name, arguments: fileName ? { ...stored, file: fileName } : stored, makesAudit }
      const runIn = (change: Change) => run(input, { ...context, change })
      return typed.dryRun ? runDry(context.db, runIn) : runAudited(row, context, runIn)
    }
  })
}

/** Defines a command that makes its whole change in one transaction. */
export function atomicCommand<S extends z.ZodObject>(
  name: string,
  summary: string,
  { run, ...definition }: ChangeDefinition<S, TransactionContext>,
): Command {
  const inTransaction = (input: z.output<S>, { change, ...context }: ChangingContext) =>
    change((client) => run(input, { ...context, client }))
  return changingCommand(name, summary, { ...definition, run: inTransaction })
}

type NamedCommand<S extends z.ZodObject> = Pick<Command, 'name' | 'summary'> &
  Omit<CommandDefinition<S, never, ConsoleRight>, 'run'>

function define<S extends z.ZodObject>(
  { usage = '', note, schema = z.object({}) as unknown as S, argument, csv, console, ...named }: NamedCommand<S>,
  changes: boolean,
  toRun: (input: z.output<S>, typed: Readonly<Record<string, unknown>>) => PreparedCommand['run'],
): Command {
  const formatValue = (key: string) => (key === argument ? key.toUpperCase() : `--${kebabCase(key)}`)
  const flags = Object.keys(schema.shape).filter((key) => key !== argument)
  const types: Record<string, Flag> = Object.fromEntries(
    flags.map((key) => [kebabCase(key), flagOf(schema.shape[key])]),
  )
  if (changes) types.by = { type: 'string' }
  if (csv) types.csv = { type: 'boolean' }
  if (csv === 'plain') types.for = { type: 'string' }
  return {
    ...named,
    usage,
    note,
    flags: Object.keys(types),
    repeatable: Object.keys(types).filter((flag) => types[flag]?.multiple),
    switches: Object.keys(types).filter((flag) => types[flag]?.type === 'boolean'),
    takesFile: argument === 'file',
    changes,
    console,
    prepare(args) {
      const { values, words } = readArguments(args, types)
      if (words.length > (argument === undefined ? 0 : 1)) throw new UsageError('too many arguments')
      const typed: Record<string, unknown> = Object.fromEntries(flags.map((key) => [key, values[kebabCase(key)]]))
      if (argument !== undefined) typed[argument] = words[0]
      const input = schema.safeParse(typed)
      const by = personName.optional().safeParse(values.by)
      if (!input.success || !by.success) {
        const errors = (input.error?.issues ?? []).map(({ path: [key], message }) =>
          key === undefined ? message : `${formatValue(String(key))} ${message}`,
        )
        throw new UsageError([...errors, ...(by.error?.issues ?? []).map((one) => `--by ${one.message}`)].join('; '))
      }
      return { form: formOf(values, csv), by: by.data, run: toRun(input.data, typed) }
    },
  }
}

function formOf({ json, csv, for: reader }: Values, csvOf: true | 'plain' | undefined): OutputFormat {
  if (json && csv) throw new UsageError('give either --json or --csv')
  if (reader !== undefined && reader !== 'excel') throw new UsageError('--for must be excel')
  if (reader !== undefined && !csv) throw new UsageError('--for excel requires --csv')
  if (!csv) return json ? 'json' : 'text'
  return csvOf === 'plain' && reader === undefined ? 'csv' : 'excel'
}

type Values = ReturnType<typeof readArguments>['values']

/** Returns the text that the audit stores in place of a secret or of customer data. */
export const withhold = () => 'withheld'

type Flag = { type: 'string' | 'boolean'; multiple?: boolean }

const flagOf = (schema: z.ZodType): Flag => ({
  type: schema.safeParse(true).success ? 'boolean' : 'string',
  multiple: schema.safeParse([]).success,
})

function readArguments(args: string[], flags: Record<string, Flag>) {
  const { values, positionals, tokens } = parse(args, { ...flags, json: { type: 'boolean' } })
  const named = tokens.flatMap((token) => (token.kind === 'option' ? [token.name] : []))
  const twice = named.find((flag, index) => named.indexOf(flag) !== index && !flags[flag]?.multiple)
  if (twice !== undefined) throw new UsageError(`--${twice} must be given only once`)
  return { values, words: positionals }
}

function parse(typed: string[], options: Record<string, Flag>) {
  const args = joinNegativeAmounts(typed, options)
  try {
    return parseArgs({ args, options, allowPositionals: true, strict: true, tokens: true })
  } catch (error) {
    // The sentence on positional arguments is omitted, because no command accepts an argument that starts with `-`.
    throw new UsageError((error as Error).message.replace(/\. To specify a positional.*/s, '').replaceAll('\n', ' '))
  }
}

/**
 * Joins a flag and a negative amount after it to one argument, such as `--closing=-450.50`, because parseArgs takes the
 * amount for a flag.
 */
function joinNegativeAmounts(typed: readonly string[], options: Record<string, Flag>): string[] {
  const args: string[] = []
  for (const arg of typed) {
    const flag = args.at(-1) ?? ''
    const isAmount = /^-[\d.]/.test(arg) && flag.startsWith('--') && options[flag.slice(2)]?.type === 'string'
    if (isAmount) args.splice(-1, 1, `${flag}=${arg}`)
    else args.push(arg)
  }
  return args
}

const kebabCase = (key: string) => key.replace(/[A-Z]/g, (capital) => `-${capital.toLowerCase()}`)
