import type { Readable } from 'node:stream'
import type pg from 'pg'
import type { DatabaseConfig } from '../../config.ts'
import type { Database, Queryable } from '../../platform/db/pool.ts'
import { UsageError } from './errors.ts'
import {
  type CommandFields,
  fieldsByKey,
  flagOf,
  type InputOf,
  parse,
  type RecordFields,
  type Values,
} from './field.ts'
import { type Output, type Result, toOutput } from './result.ts'
import { type Change, type ChangeOf, FiguresChanged, requireConfirmed, runAudited, runDry } from './run.ts'

/** Resolves after `ms` milliseconds. */
export type Sleep = (ms: number) => Promise<unknown>

export type DatabaseTime = (db: Queryable) => Promise<Date>

/** A file of the operator. `name` is its name on the operator's machine. */
export type OpenedFile = { stream: Readable; name: string }

/** Shows a count in the format of `counted`; undefined without a screen. */
export type ShowProgress = (unit: string, many?: string) => ((count: number) => void) | undefined

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
  /** Identifier of the audit row of a change. The console uses the nonce of the confirmation. */
  auditId: string
  /** Opens a file of the operator: in the console the uploaded file, otherwise the file at a path, or `-`. */
  open: (path: string) => Promise<OpenedFile>
  /** The name of the uploaded file. */
  fileName?: string | undefined
  /** Notifies the operator about a command that runs. */
  note: (message: string) => void
  /** Like `note`, but not with `--json`. */
  noteInText: (message: string) => void
  /** Whether an operator sits at a terminal. */
  isTerminal: boolean
  /** Asks about a preview with a question. Returns what was confirmed; throws if the operator does not confirm. */
  ask: (preview: Output) => Promise<string | undefined>
  withProgress: <T>(work: (progress: ShowProgress) => Promise<T>) => Promise<T>
  /** Returns a signal for the moment at which the operator stops the command. */
  stopSignal: () => AbortSignal
}

/**
 * `change` runs work in the command's transaction. Commands with their own transactions do not call `change`.
 * `isConfirmed` is whether an operator has confirmed the figures.
 */
export type ChangingContext = Context & { change: Change; isConfirmed: boolean }

/** `client` is the database connection that runs the transaction. */
type InTransaction = Context & { client: pg.PoolClient }

export type Command = {
  /** The words after `ops`, such as `merchants add`. */
  name: string
  /** The heading, link and button of the command in the console; empty on the command line only. */
  title: string
  /** The command's line in `ops --help`. */
  summary: string
  /** One or two sentences that the command's own help prints below the summary. */
  note: string | undefined
  fields: CommandFields
  /**
   * Whether the command accepts `--csv`. The value `true` writes CSV for spreadsheets. The value `plain` writes CSV for
   * programs, or with `--for excel` for spreadsheets.
   */
  csv: true | 'plain' | undefined
  changes: boolean
  /** Whether the state of a record permits the change, which the command itself checks again. Default: it is open. */
  permits: (record: RecordFields) => boolean
  /** Whether the console offers the change before others. */
  isUsual: boolean
  /**
   * Whether the command may take minutes. The console shows the progress of such a change, and reads few such lists at a
   * time. `in parts` means that a part of the change stays stored if the process ends, and that a repeat completes it.
   */
  isLong: boolean | 'in parts'
  /** Checks the values by flag. Throws a UsageError for invalid values. */
  prepare: (values: Values) => Prepared
}

/** A command with checked values. */
export type Prepared = {
  /** Runs the command. A change whose figures differ from the confirmed ones throws FiguresChanged and stores nothing. */
  run: (context: Context, confirmed?: string) => Promise<Output>
  /** Returns what a change will do, and stores nothing. */
  preview: (context: Context) => Promise<Output>
}

type Definition<F extends CommandFields> = Partial<Pick<Command, 'title' | 'note' | 'csv' | 'isLong'>> & {
  fields?: F
  /** Returns an error about several fields; undefined if there is none. */
  check?: (input: InputOf<F>) => string | undefined
}

type ChangeDefinition<F extends CommandFields> = Definition<F> &
  Partial<Pick<Command, 'permits' | 'isUsual'>> & {
    /** What the audit stores in place of values that may contain a secret or customer data. */
    audited?: { readonly [key: string]: (given: string) => string }
    /** True for `migrate`, which creates the audit's tables. The tables may not exist when the command begins. */
    makesAudit?: boolean
    /** Whether the command line asks before the change. */
    asks?: (input: InputOf<F>, context: Context) => boolean
  }

/** Defines a command that changes nothing. */
export const read = <F extends CommandFields>(
  name: string,
  summary: string,
  { run, ...definition }: Definition<F> & { run: (input: InputOf<F>, context: Context) => Promise<Result> },
): Command =>
  define({ name, summary, changes: false, ...definition }, (input) => {
    const runRead = async (context: Context) => toOutput(await run(input, context))
    return { run: runRead, preview: runRead }
  })

/**
 * Defines a command that makes its whole change in one transaction. What an operator confirms is the same run, rolled
 * back.
 */
export const change = <F extends CommandFields>(
  name: string,
  summary: string,
  { run, ...definition }: ChangeDefinition<F> & { run: (input: InputOf<F>, context: InTransaction) => Promise<Result> },
): Command =>
  changeInSteps(name, summary, {
    ...definition,
    run: (input: InputOf<F>, { change, isConfirmed: _, ...context }: ChangingContext) =>
      change((client) => run(input, { ...context, client })),
  })

/**
 * Defines a command that reads files before its transaction, or that has transactions of its own. The latter returns
 * from `confirm` what it will do: for the operator, and then, with `isFinal`, for `run`.
 */
export function changeInSteps<F extends CommandFields, P extends Output>(
  name: string,
  summary: string,
  {
    run,
    confirm,
    audited = {},
    makesAudit = false,
    asks,
    ...definition
  }: ChangeDefinition<F> & {
    confirm?: (input: InputOf<F>, context: Context, isFinal: boolean) => Promise<P>
    run: (input: InputOf<F>, context: ChangingContext, plan: P) => Promise<Result>
  },
): Command {
  return define({ name, summary, changes: true, ...definition }, (input, given) => {
    const stored = Object.entries(given).map(([key, value]) => [key, audited[key]?.(String(value)) ?? value])
    const preview = (context: Context) =>
      confirm
        ? confirm(input, context, false)
        : runDry(context.db, (change) => run(input, { ...context, change, isConfirmed: false }, undefined as never))
    const attempt = async (context: Context, signed: string | undefined, changeOf: ChangeOf): Promise<Result> => {
      const confirmed = signed ?? (asks?.(input, context) ? await context.ask(await preview(context)) : undefined)
      const isConfirmed = confirmed !== undefined
      try {
        const plan = await confirm?.(input, context, true)
        if (plan) requireConfirmed(plan, confirmed)
        return await run(input, { ...context, change: changeOf(confirmed), isConfirmed }, plan as P)
      } catch (error) {
        if (signed !== undefined || !(error instanceof FiguresChanged)) throw error
        context.note(error.message)
        return attempt(context, signed, changeOf)
      }
    }
    return {
      preview,
      async run(context, signed) {
        if (given.dryRun) return preview(context)
        const { fileName } = context
        const row = { command: name, arguments: { ...Object.fromEntries(stored), ...(fileName && { file: fileName }) } }
        return runAudited({ ...row, makesAudit }, context, (changeOf) => attempt(context, signed, changeOf))
      },
    }
  })
}

/** Returns the command of a definition. `given` has the values by key. */
function define<F extends CommandFields>(
  {
    fields = {} as F,
    check,
    ...definition
  }: Definition<F> & Pick<Command, 'name' | 'summary' | 'changes'> & Partial<Command>,
  toPrepared: (input: InputOf<F>, given: Readonly<Record<string, unknown>>) => Prepared,
): Command {
  return {
    ...{
      title: '',
      note: undefined,
      csv: undefined,
      permits: isOpen,
      isUsual: false,
      isLong: false,
      fields,
      ...definition,
    },
    prepare(values) {
      const { input, errors } = parse(fields, values)
      const all = errors.length > 0 ? errors : [check?.(input as InputOf<F>) ?? []].flat()
      if (all.length > 0) throw new UsageError(all.join('; '))
      return toPrepared(input as InputOf<F>, byKey(fields, values))
    },
  }
}

function byKey(fields: CommandFields, values: Values): Record<string, unknown> {
  const given = Object.keys(fieldsByKey(fields)).map((key) => [key, values[flagOf(key)]] as const)
  return Object.fromEntries(given.filter(([, value]) => value !== undefined))
}

/** Whether a record is neither resolved, nor ended, nor undone. */
export const isOpen = ({ resolution, endedAt, undone }: RecordFields) => !(resolution || endedAt || undone)

/** Returns the text that the audit stores in place of a secret or of customer data. */
export const withhold = () => 'withheld'

/** Whether a command reads a file that an operator uploads. */
export const takesFile = ({ fields }: Command) => 'file' in fields
