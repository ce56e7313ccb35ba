import { parseArgs } from 'node:util'
import * as z from 'zod'
import { personName } from '../../platform/fields.ts'
import { type Command, takesFile } from '../commands/command.ts'
import { UsageError } from '../commands/errors.ts'
import { type Field, flag, flagsIn, optional, toggle, type Values } from '../commands/field.ts'
import type { OutputFormat } from './print.ts'

/** What the command line adds to the fields of a command: its values, who runs it and how the result is printed. */
export type Arguments = { values: Values; by: string | undefined; format: OutputFormat }

const BY = optional(flag(personName, 'NAME', 'Operator for the audit', 'default: OPS_BY, otherwise the login name'))
const CSV = toggle('Print CSV')
const FOR = flag(z.literal('excel'), 'excel', 'Format the CSV for this program')
const JSON_FLAG = toggle('Print JSON for scripts')

/** Returns the flags of a command in the order of its help. */
export const flagsOf = (command: Command): Record<string, Field> => {
  const { file: _, ...own } = flagsIn(command.fields)
  return {
    ...own,
    ...(command.changes && { by: BY }),
    ...(command.csv && { csv: CSV }),
    ...(command.csv === 'plain' && { for: FOR }),
    json: JSON_FLAG,
  }
}

/** Parses the arguments of a command. Throws a UsageError for an unknown flag. */
export function parseArguments(command: Command, args: string[]): Arguments {
  const flags = flagsOf(command)
  const options = Object.fromEntries(
    Object.entries(flags).map(([name, { placeholder, isRepeatable = false }]) => [
      name,
      { type: placeholder === undefined ? ('boolean' as const) : ('string' as const), multiple: isRepeatable },
    ]),
  )
  const { values, positionals, tokens } = parse(joinNegativeAmounts(args, flags), options)
  const named = tokens.flatMap((token) => (token.kind === 'option' ? [token.name] : []))
  const twice = named.find((name, index) => named.indexOf(name) !== index && !flags[name]?.isRepeatable)
  if (twice !== undefined) throw new UsageError(`--${twice} must be given only once`)
  if (positionals.length > (takesFile(command) ? 1 : 0)) throw new UsageError('too many arguments')
  const { json, csv, for: reader, ...own } = values as Record<string, Values[string]>
  const { by } = command.changes ? own : {}
  if (command.changes) delete own.by
  const format = named.find((name) => flags[name]?.isFormat)
  if (format !== undefined && (json || csv)) throw new UsageError(`--${format} cannot be combined with --json or --csv`)
  const person = BY.schema.safeParse(by)
  if (!person.success) throw new UsageError(person.error.issues.map(({ message }) => `--by ${message}`).join('; '))
  const file = positionals[0]
  return {
    values: { ...own, ...(file !== undefined && { file }) },
    by: person.data,
    format: formatOf(command, { json, csv, reader }),
  }
}

function formatOf({ csv: csvOf }: Command, { json, csv, reader }: Values): OutputFormat {
  if (json && csv) throw new UsageError('give either --json or --csv')
  if (reader !== undefined && reader !== 'excel') throw new UsageError('--for must be excel')
  if (reader !== undefined && !csv) throw new UsageError('--for excel requires --csv')
  if (!csv) return json ? 'json' : 'text'
  return csvOf === 'plain' && reader === undefined ? 'csv' : 'excel'
}

function parse(args: string[], options: Record<string, { type: 'string' | 'boolean'; multiple: boolean }>) {
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
function joinNegativeAmounts(typed: readonly string[], flags: Record<string, Field>): string[] {
  const args: string[] = []
  for (const arg of typed) {
    const flag = args.at(-1) ?? ''
    const isAmount = /^-[\d.]/.test(arg) && flag.startsWith('--') && flags[flag.slice(2)]?.placeholder !== undefined
    if (isAmount) args.splice(-1, 1, `${flag}=${arg}`)
    else args.push(arg)
  }
  return args
}
