import { parseArgs } from 'node:util'
import type * as z from 'zod'
import type { DatabaseConfig } from '../config.ts'
import type { Database } from '../db/pool.ts'

/**
 * What a command returns: one JSON document for `--json`, and the same as text for people. `warnings` are for people too, a line
 * each on stderr; a script reads of them in the document.
 */
export type Output = { json: unknown; text: string; warnings?: readonly string[] }

/** What a command works with. The pool connects at its first query. */
export type Context = { config: DatabaseConfig; db: Database; now: Date }

export type Command = {
  /** As it is typed: `merchants add`. */
  name: string
  /** The flags and arguments that follow the name. */
  usage: string
  /** Checks the arguments and returns the function that runs the command. Throws a UsageError. */
  prepare: (args: string[]) => { asJson: boolean; run: (context: Context) => Promise<Output> }
}

/** The command was typed wrongly: exit 2, with help. */
export class UsageError extends Error {}

/** The command is typed correctly but cannot be done; the message is one line for the operator: exit 1. */
export class CommandFault extends Error {}

/**
 * A command whose flags are the keys of `schema`, in kebab-case: dynamicQr is `--dynamic-qr`. A flag that its schema takes
 * as `true` stands for itself, any other has a value. The key that `argument` names is not a flag but the one word that
 * follows.
 */
export function command<S extends z.ZodObject>(definition: {
  name: string
  usage: string
  schema: S
  argument?: keyof S['shape'] & string
  run: (input: z.output<S>, context: Context) => Promise<Output>
}): Command {
  const { name, usage, schema, argument, run } = definition
  const spell = (key: string) => (key === argument ? key.toUpperCase() : `--${kebabCase(key)}`)
  return {
    name,
    usage,
    prepare(args) {
      const flags = Object.keys(schema.shape).filter((key) => key !== argument)
      const { values, words } = readArguments(
        args,
        Object.fromEntries(flags.map((key) => [kebabCase(key), { type: typeOf(schema.shape[key]) }])),
      )
      if (words.length > (argument === undefined ? 0 : 1)) throw new UsageError('there are too many arguments')
      const typed = Object.fromEntries(flags.map((key) => [key, values[kebabCase(key)]]))
      const result = schema.safeParse(argument === undefined ? typed : { ...typed, [argument]: words[0] })
      if (!result.success) {
        const faults = result.error.issues.map(({ path: [key], message }) =>
          key === undefined ? message : `${spell(String(key))} ${message}`,
        )
        throw new UsageError(faults.join('; '))
      }
      return { asJson: values.json === true, run: (context) => run(result.data, context) }
    },
  }
}

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
