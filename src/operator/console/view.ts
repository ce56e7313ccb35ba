import type { Command } from '../cli/command.ts'
import { Money } from '../cli/data.ts'
import type { Output } from '../cli/output.ts'
import type { OperatorKey } from './operator-keys.ts'

/** The part of the console that one operator may use. */
export type OperatorView = {
  operator: OperatorKey
  /** The commands that the console offers and the operator's key has the right to run. */
  commands: readonly Command[]
  /** The address of the page that is shown, to which a change returns. */
  here: string
  /** Numbers of open exceptions and refunds by the command that lists them; empty while the database does not count. */
  open: Readonly<Record<string, number>>
  /** Largest number of rows of a table on a page. */
  rows: number
  now: Date
  /** The fields of the change before which the page is shown: it omits rows of other records, and links to changes. */
  only?: PageFields
  /** Runs a command in the operator's name. Throws a UsageError for invalid arguments, before anything is run. */
  run: (command: Command, args: string[], run?: Run) => Promise<Output>
}

/** One run of a command: `auditId` identifies a change in the audit, and `sha256` the uploaded file that it reads. */
export type Run = { auditId?: string; sha256?: string | undefined }

/** PageFields of a query string or a form, by flag. */
export type PageFields = Readonly<Record<string, unknown>>

/**
 * Flags that no field sets: the operator, the format and the confirmation are the console's own, a page ends, and each
 * import has a dry run.
 */
const OWN_FLAGS = ['by', 'csv', 'for', 'all', 'yes', 'watch', 'dry-run']

/** The flags of a command that a form or a link may set. */
export const flagsOf = ({ flags }: Command) => flags.filter((flag) => !OWN_FLAGS.includes(flag))

/** The name of a command's page. It is one segment, so that relative links work under the path of a proxy. */
export const pageName = (command: string) => command.replaceAll(' ', '-')

/** Returns the address of a command's page, relative to every other page. */
export const addressOf = (command: string, fields: Record<string, string>) =>
  `${pageName(command)}?${new URLSearchParams(fields)}`

/**
 * Returns the arguments of the command line for the fields that are flags of the command. Spaces separate the values of
 * a repeatable flag. Ignores all other fields, and the argument after the command's name, because it may name a file of
 * this machine.
 */
export function toArguments(command: Command, fields: PageFields): string[] {
  return flagsOf(command).flatMap((flag) => {
    const sent = [fields[flag]].flat().filter((value): value is string => typeof value === 'string' && value !== '')
    const values = command.repeatable.includes(flag) ? sent.flatMap((value) => value.trim().split(/\s+/)) : sent
    return values.map(inIst).map((value) => (command.switches.includes(flag) ? `--${flag}` : `--${flag}=${value}`))
  })
}

/** Formats the local time of an input, `2026-11-26T00:00`, as a time in IST for the command. */
const inIst = (value: string) => value.replace(/^(\d{4}-\d\d-\d\d)T(\d\d:\d\d)$/, '$1 $2:00')

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
  import: {},
  statement: {},
}

const RECORD_FLAGS = Object.keys(RECORDS)

/** Returns the flag with which the fields of a change name a record; undefined if they name none. */
export const recordOf = ({ changes, flags }: Command, fields: PageFields) =>
  RECORD_FLAGS.find((flag) => changes && flags.includes(flag) && fields[flag])

/** Returns the commands that read lists. A command that reads one record by the record's column is no list. */
export const listsOf = ({ commands }: OperatorView) =>
  commands.filter(({ changes, flags }) => !changes && !flags.some((flag) => RECORDS[flag]?.column))

/** Returns the flags that the usage excludes beside `flag`, as in `(--delivery ID | --mid MID --since TIME)`. */
export function alternativesTo(flag: string, { usage, flags }: Command): readonly string[] {
  const flagsIn = (text: string) => flags.filter((one) => new RegExp(`--${one}(?![\\w-])`).test(text))
  const group = usage.match(/\([^()]*\)/g)?.find((text) => flagsIn(text).includes(flag)) ?? ''
  const alternatives = group.split(' | ').map(flagsIn)
  const own = alternatives.filter((one) => one.includes(flag)).flat()
  return alternatives.flat().filter((one) => !own.includes(one))
}

/** Returns the command whose page shows a record; undefined if the record has no page. */
export const pageOfRecord = (flag: string, { commands }: OperatorView) =>
  commands.find(({ name }) => name === RECORDS[flag]?.page)

/** Returns the changes in the group of a list that name no record, such as `settlements pull`. */
export const changesBeside = ({ commands }: OperatorView, list: Command) =>
  commands.filter(({ name, changes, flags }) => {
    const isOfRecord = RECORD_FLAGS.some((flag) => flags.includes(flag))
    return changes && !isOfRecord && name.split(' ')[0] === list.name.split(' ')[0]
  })

/** Returns the address of the page of a record; undefined if the record has no page. */
export function addressOfRecord(flag: string, id: string): string | undefined {
  const page = RECORDS[flag]?.page
  return page && addressOf(page, { [flag]: id })
}

/** Columns with numbers of other systems, which link to their search. */
const NUMBERS = ['order_id', 'merchantOrderId', 'utr']

/** Returns the address of the record that a column names; undefined if the column names no record with a page. */
export function addressOfColumn(column: string, id: string): string | undefined {
  if (NUMBERS.includes(column)) return addressOf('search', { q: id })
  const flag = RECORD_FLAGS.find((one) => RECORDS[one]?.column === column)
  return flag && addressOfRecord(flag, id)
}

/** Labels of commands and groups for which the word of the command is not clear. */
const LABELS: Readonly<Record<string, string>> = {
  reconcile: 'Reconciliation',
  statements: 'Bank statements',
  'payments confirm': 'Confirm payment',
  'payments enquire': 'Check status',
  'reconcile differences': 'Discrepancies',
  'reconcile statement': 'Account statement',
  'refunds create': 'Refund',
  'refunds done': 'Mark as done',
  'refunds fail': 'Mark as failed',
  'webhooks resend': 'Resend webhook',
}

/** Returns the title of a command that reads: `List payment exceptions` becomes `Payment exceptions`. */
export const titleOf = ({ summary }: Command) => capital(summary.replace(/^(?:List|Show|Export) (?:the |an? )?/, ''))

const capital = (text: string) => text.replace(/^./, (first) => first.toUpperCase())

/** Returns a command's group, and the label of links and buttons to it. A list has the label of its group. */
export function labelsOf(name: string): { group: string; label: string } {
  const [group = '', own = ''] = name.split(/ (.*)/).map((word) => LABELS[word] ?? capital(word))
  return { group, label: LABELS[name] ?? (own === '' || own === 'List' ? group : own) }
}

/** The changes that are offered first, from the last. */
const FIRST = ['payments enquire', 'refunds create']

/** Returns the changes that a record permits, `FIRST` before the others. `flag` names the record, whose fields are `record`. */
export const changesOf = ({ commands }: OperatorView, flag: string, record: PageFields): readonly Command[] =>
  commands
    .filter(({ name, changes, flags }) => changes && flags.includes(flag) && isPermitted(name, record))
    .sort((one, other) => FIRST.indexOf(other.name) - FIRST.indexOf(one.name))

export const isRefund = ({ name }: Pick<Command, 'name'>) => name === 'refunds create'

/** Whether the state of a record permits a change, which the command itself checks again. */
function isPermitted(name: string, { kind, status, refundable, enquiries, acquirer }: PageFields): boolean {
  const isRefundable = refundable instanceof Money ? refundable.paise > 0 : /^(double|late) payment$/.test(String(kind))
  if (isRefund({ name })) return isRefundable
  if (name === 'refunds retry') return acquirer !== 'direct'
  return !(name === 'payments enquire' && enquiries === null) && !(name === 'payments confirm' && status === 'SUCCESS')
}
