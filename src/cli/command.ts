import { parseArgs } from 'node:util'
import type pg from 'pg'
import * as z from 'zod'
import type { DatabaseConfig } from '../config.ts'
import type { Database } from '../db/pool.ts'
import { text } from '../fields.ts'
import { type Audited, inOneTransaction, inSteps } from './audited.ts'
import { UsageError } from './faults.ts'
import type { Output, Terminal } from './output.ts'

/** What a command works with. The pool connects at its first query. `person` is who runs it. */
export type Context<Db = Database> = {
  config: DatabaseConfig
  db: Db
  now: Date
  person: string
  asJson: boolean
  terminal: Terminal
}

export type Command = {
  /** As it is typed: `merchants add`. */
  name: string
  /** The flags and arguments that follow the name. */
  usage: string
  /** Whether it changes something, and takes `--by`. */
  changes: boolean
  /**
   * Checks the arguments and returns the function that runs the command. `by` is who runs it, if they said so. Throws a
   * UsageError.
   */
  prepare: (args: string[]) => {
    asJson: boolean
    by: string | undefined
    run: (context: Context) => Promise<Output>
  }
}

type Definition<S extends z.ZodObject, Db> = {
  name: string
  usage: string
  schema: S
  argument?: keyof S['shape'] & string
  run: (input: z.output<S>, context: Context<Db>) => Promise<Output>
}

/** `audited` says what the audit keeps of a flag's value, where it may hold a secret or the customer's data. */
type ChangeDefinition<S extends z.ZodObject, Db> = Definition<S, Db> & {
  audited?: Partial<Record<keyof S['shape'], (typed: string) => string>>
  /** Runs once the change is stored. */
  afterwards?: (context: Context) => Promise<void>
}

/**
 * A command that changes nothing. Its flags are the keys of `schema`, in kebab-case: dynamicQr is `--dynamic-qr`. A flag that
 * its schema takes as `true` stands for itself, any other has a value. The key that `argument` names is not a flag but the one
 * word that follows.
 */
export function command<S extends z.ZodObject>(definition: Definition<S, Database>): Command {
  return define(definition, false, ({ run }) => run)
}

/** The same for a command that makes its change in one transaction, which `db` is in and which holds its outcome too. */
export function changingCommand<S extends z.ZodObject>(definition: ChangeDefinition<S, pg.PoolClient>): Command {
  return define(definition, true, ({ run, audited }) => {
    const change = inOneTransaction<Context, Output>(audited, run)
    return async (context) => {
      const output = await change(context)
      await definition.afterwards?.(context)
      return output
    }
  })
}

/**
 * The same for a command that makes several transactions itself. One that is killed may leave a part of its change, and no
 * outcome. With `makesAudit` there may be nowhere to write before it has run.
 */
export function steppingCommand<S extends z.ZodObject>(
  definition: ChangeDefinition<S, Database> & { makesAudit?: boolean },
): Command {
  return define(definition, true, ({ run, audited }) => inSteps({ ...audited, makesAudit: definition.makesAudit }, run))
}

type Run<Db> = (context: Context<Db>) => Promise<Output>

function define<S extends z.ZodObject, Db>(
  { name, usage, schema, argument, run, audited = {} }: ChangeDefinition<S, Db>,
  changes: boolean,
  toRun: (command: { run: Run<Db>; audited: Audited }) => Run<Database>,
): Command {
  const spell = (key: string) => (key === argument ? key.toUpperCase() : `--${kebabCase(key)}`)
  const flags = Object.keys(schema.shape).filter((key) => key !== argument)
  const types: Record<string, Flag> = Object.fromEntries(
    flags.map((key) => [kebabCase(key), { type: typeOf(schema.shape[key]) }]),
  )
  if (changes) types.by = { type: 'string' }
  return {
    name,
    usage,
    changes,
    prepare(args) {
      const { values, words } = readArguments(args, types)
      if (words.length > (argument === undefined ? 0 : 1)) throw new UsageError('there are too many arguments')
      const typed: Record<string, unknown> = Object.fromEntries(flags.map((key) => [key, values[kebabCase(key)]]))
      if (argument !== undefined) typed[argument] = words[0]
      const result = schema.safeParse(typed)
      const by = PERSON.optional().safeParse(values.by)
      if (!result.success || !by.success) {
        const faults = (result.error?.issues ?? []).map(({ path: [key], message }) =>
          key === undefined ? message : `${spell(String(key))} ${message}`,
        )
        throw new UsageError(
          [...faults, ...(by.error?.issues ?? []).map(({ message }) => `--by ${message}`)].join('; '),
        )
      }
      const given = Object.entries(typed).filter(([, value]) => value !== undefined)
      const kept = given.map(([key, value]) => [key, audited[key]?.(String(value)) ?? value])
      return {
        asJson: values.json === true,
        by: by.data,
        run: toRun({
          run: (context) => run(result.data, context),
          audited: { command: name, arguments: Object.fromEntries(kept) },
        }),
      }
    },
  }
}

/** Who runs a command. */
const PERSON = z.string().trim().pipe(text(64))

/** For what the audit must not keep. */
export const withhold = () => 'withheld'

const typeOf = (schema: z.ZodType) => (schema.safeParse(true).success ? 'boolean' : 'string')

function readArguments(args: string[], flags: Record<string, Flag>) {
  const { values, positionals, tokens } = parse(args, { ...flags, json: { type: 'boolean' } })
  const named = tokens.flatMap((token) => (token.kind === 'option' ? [token.name] : []))
  const twice = named.find((flag, index) => named.indexOf(flag) !== index)
  if (twice !== undefined) throw new UsageError(`--${twice} is given twice`)
  return { values, words: positionals }
}

type Flag = { type: 'string' | 'boolean' }

function parse(args: string[], options: Record<string, Flag>) {
  try {
    return parseArgs({ args, options, allowPositionals: true, strict: true, tokens: true })
  } catch (error) {
    // Its messages go on to explain the `--` of shells; the first sentence names the flag.
    throw new UsageError((error as Error).message.split(/\. |\n/)[0] ?? '')
  }
}

const kebabCase = (key: string) => key.replace(/[A-Z]/g, (capital) => `-${capital.toLowerCase()}`)
