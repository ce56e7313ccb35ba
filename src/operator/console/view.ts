import type { Command } from '../cli/command.ts'
import type { Output } from '../cli/output.ts'
import type { OperatorKey } from './operator-keys.ts'

/** The part of the console that one operator may use. */
export type OperatorView = {
  operator: OperatorKey
  /** The commands that the console offers and the operator's key has the right to run. */
  commands: readonly Command[]
  /** The address of the page that is shown, to which a change returns. */
  here: string
  /** Largest number of rows of a table on a page. */
  rows: number
  /**
   * Runs a command in the operator's name. `auditId` identifies a change in the audit. Throws a UsageError for invalid
   * arguments, before anything is run.
   */
  run: (command: Command, args: string[], auditId?: string) => Promise<Output>
}

/** PageFields of a query string or a form, by flag. */
export type PageFields = Readonly<Record<string, unknown>>

/** Flags that the console never sets: the operator is the one who signed in, and the format is a page. */
const OWN_FLAGS = ['by', 'csv', 'for']

/** The flags of a command that a form or a link may set. */
export const flagsOf = ({ flags }: Command) => flags.filter((flag) => !OWN_FLAGS.includes(flag))

/** The name of a command's page. It is one segment, so that relative links work under the path of a proxy. */
export const pageName = (command: string) => command.replaceAll(' ', '-')

/** Returns the address of a command's page, relative to every other page. */
export const addressOf = (command: string, fields: Record<string, string>) =>
  `${pageName(command)}?${new URLSearchParams(fields)}`

/**
 * Returns the arguments of the command line for the fields that are flags of the command. Ignores all other fields, and
 * the argument after the command's name, because it may name a file of this machine.
 */
export function toArguments(command: Command, fields: PageFields): string[] {
  return flagsOf(command).flatMap((flag) => {
    const values = [fields[flag]].flat().filter((value): value is string => typeof value === 'string' && value !== '')
    return values.map((value) => (command.switches.includes(flag) ? `--${flag}` : `--${flag}=${value}`))
  })
}

/** Formats a command for a shell. */
export function commandLine({ name }: Command, args: readonly string[]): string {
  const quoted = args.map((arg) => (/^[\w=:.,@/-]+$/.test(arg) ? arg : `'${arg.replaceAll("'", `'\\''`)}'`))
  return ['ops', name, ...quoted].join(' ')
}

/** Records by the flag that names them: the column with their identifiers, and the command that shows one of them. */
const RECORDS: Readonly<Record<string, { column?: string; page?: string }>> = {
  'order-id': { column: 'orderId', page: 'payments show' },
  refund: { column: 'refundId', page: 'refunds show' },
  exception: { column: 'exceptionId', page: 'payments find' },
  payout: { page: 'reconcile' },
  delivery: {},
  difference: {},
}

/** The flags that name the record of a change. */
export const RECORD_FLAGS = Object.keys(RECORDS)

/** Returns the commands that read lists. A command that reads one record by the record's column is no list. */
export const listsOf = ({ commands }: OperatorView) =>
  commands.filter(({ changes, flags }) => !changes && !flags.some((flag) => RECORDS[flag]?.column))

/** Returns the flags that the usage excludes beside `flag`, as in `(--delivery ID | --mid MID --since TIME)`. */
export function alternativesTo(flag: string | undefined, { usage, flags }: Command): readonly string[] {
  const has = (text: string, one: string) => new RegExp(`--${one}(?![\\w-])`).test(text)
  const isOwn = (text: string) => flag !== undefined && has(text, flag)
  const alternatives =
    usage
      .match(/\([^()]*\)/g)
      ?.find(isOwn)
      ?.split(' | ') ?? []
  return flags.filter(
    (one) => alternatives.some((text) => has(text, one)) && !has(alternatives.filter(isOwn).join(), one),
  )
}

/** Returns the address of the page of a record; undefined if the record has no page. */
export function addressOfRecord(flag: string, id: string): string | undefined {
  const page = RECORDS[flag]?.page
  return page && addressOf(page, { [flag]: id })
}

/** Returns the address of the record that a column names; undefined if the column names no record with a page. */
export function addressOfColumn(column: string, id: string): string | undefined {
  const flag = RECORD_FLAGS.find((one) => RECORDS[one]?.column === column)
  return flag && addressOfRecord(flag, id)
}

/** Returns the commands that change the record that `flag` names. */
export const changesOf = ({ commands }: OperatorView, flag: string) =>
  commands.filter(({ changes, flags }) => changes && flags.includes(flag))
