import type { Command } from '../commands/command.ts'
import { Money } from '../commands/result.ts'
import type { Output } from '../terminal/print.ts'
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
  /** Returns the names of merchants by MID. */
  namesOf: (mids: readonly string[]) => Promise<ReadonlyMap<string, string>>
  /** Runs a command in the operator's name. Throws a UsageError for invalid arguments, before anything is run. */
  run: (command: Command, args: string[], run?: Run) => Promise<Output>
}

/** One run of a command: `auditId` identifies a change in the audit, and `sha256` the uploaded file that it reads. */
export type Run = { auditId?: string; sha256?: string | undefined }

/** Fields of a query string or a form, by flag. */
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
 * Returns the values of the fields that are flags of the command. Spaces separate the values of a repeatable flag.
 * Ignores all other fields, and the argument after the command's name, because it may name a file of this machine.
 */
export function valuesOf(command: Command, fields: PageFields): Record<string, string[]> {
  const given = flagsOf(command).map((flag): [string, string[]] => {
    const sent = [fields[flag]].flat().filter((value): value is string => typeof value === 'string' && value !== '')
    const values = command.repeatable.includes(flag) ? sent.flatMap((value) => value.trim().split(/\s+/)) : sent
    return [flag, values.map(inIst)]
  })
  return Object.fromEntries(given.filter(([, values]) => values.length > 0))
}

/** Formats the local time of an input, `2026-11-26T00:00`, as a time in IST for the command. */
const inIst = (value: string) => value.replace(/^(\d{4}-\d\d-\d\d)T(\d\d:\d\d)$/, '$1 $2:00')

/** Returns the arguments of the command line for the fields that are flags of the command. */
export const toArguments = (command: Command, fields: PageFields): string[] =>
  Object.entries(valuesOf(command, fields)).flatMap(([flag, values]) =>
    values.map((value) => (command.switches.includes(flag) ? `--${flag}` : `--${flag}=${value}`)),
  )

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

/** Returns the column with the identifiers of the records that `flag` names; empty if no column has them. */
export const columnOf = (flag: string) => RECORDS[flag]?.column ?? ''

/** Returns the flag that names the records whose identifiers a column contains; undefined for any other column. */
const flagOf = (column: string) => RECORD_FLAGS.find((flag) => columnOf(flag) === column)

/** Returns the command whose page shows a record; undefined if the record has no page. */
export const pageOfRecord = (flag: string) => RECORDS[flag]?.page

/** Returns the flag with which the fields of a change name a record; undefined if they name none. */
export const recordOf = ({ changes, flags }: Command, fields: PageFields) =>
  RECORD_FLAGS.find((flag) => changes && flags.includes(flag) && fields[flag])

/** Returns the changes in the group of a list that name no record, such as `settlements pull`. */
export const changesBeside = ({ commands }: OperatorView, list: Command) =>
  commands.filter(({ name, changes, flags }) => {
    const isOfRecord = RECORD_FLAGS.some((flag) => flags.includes(flag))
    return changes && !isOfRecord && name.split(' ')[0] === list.name.split(' ')[0]
  })

/** The flags of `payments find` with which the search of every page finds a payment by one text. */
export const IDENTIFIERS = ['utr', 'order-id', 'merchant-order-id', 'payment-id', 'refund', 'exception']

/** Columns with numbers of other systems, which link to their search. */
const NUMBERS = ['order_id', 'merchantOrderId', 'utr']

/** Returns the address of the record or search that a cell identifies; undefined if neither. */
export function addressOfCell(column: string, text: string): string | undefined {
  if (NUMBERS.includes(column)) return addressOf('search', { q: text })
  const flag = flagOf(column)
  const page = flag && pageOfRecord(flag)
  return flag && page && addressOf(page, { [flag]: text })
}

/** Labels of commands and groups for which the word of the command is not clear. */
const LABELS: Readonly<Record<string, string>> = {
  reconcile: 'Reconciliation',
  statements: 'Bank statements',
  'payments find': 'Payments',
  'payments list': 'Orders',
  'payments confirm': 'Confirm payment',
  'payments enquire': 'Check status',
  'reconcile differences': 'Discrepancies',
  'reconcile statement': 'Account statement',
  'refunds create': 'Refund',
  'refunds done': 'Mark as done',
  'refunds fail': 'Mark as failed',
  'refunds returned': 'Record return',
  'webhooks resend': 'Resend webhook',
}

/** Returns the title of a command that reads: `List payment exceptions` becomes `Payment exceptions`. */
export const titleOf = ({ summary }: Command) => capital(summary.replace(/^(?:List|Show|Export) (?:the |an? )?/, ''))

export const capital = (text: string) => text.replace(/^./, (first) => first.toUpperCase())

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

/** Returns the amount of a record to which a change applies; a refund applies to the rest that is not refunded. */
export function amountOf(change: Command, { amount, refundable }: PageFields): Money | undefined {
  const money = isRefund(change) ? (refundable ?? amount) : amount
  return money instanceof Money ? money : undefined
}

/** Whether the state of a record permits a change, which the command itself checks again. */
function isPermitted(name: string, record: PageFields): boolean {
  const { kind, status, refundable, enquiries, acquirer, resolution, endedAt, undone } = record
  if (name === 'refunds returned') return acquirer === 'direct' && status === 'SUCCESS'
  if (resolution || endedAt || undone) return false
  const isRefundable = refundable instanceof Money ? refundable.paise > 0 : /^(double|late) payment$/.test(String(kind))
  if (isRefund({ name })) return isRefundable
  if (name === 'refunds retry') return acquirer !== 'direct'
  return !(name === 'payments enquire' && enquiries === null) && !(name === 'payments confirm' && status === 'SUCCESS')
}
