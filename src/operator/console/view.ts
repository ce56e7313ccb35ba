import type { Command } from '../commands/command.ts'
import { type Choice, type Field, flagsIn, groupsWith, isChoice, isRequired, type Values } from '../commands/field.ts'
import { RECORDS } from '../commands/fields.ts'
import type { Output } from '../commands/result.ts'
import type { OperatorKey } from './operator-keys.ts'
import type { UploadedFile } from './uploads.ts'

/** The part of the console that one operator may use. */
export type OperatorView = {
  operator: OperatorKey
  /** The commands that the console offers and the operator's key has the right to run, by the title of their group. */
  groups: Readonly<Record<string, readonly Command[]>>
  /** The address of the page that is shown, to which a change returns. */
  here: string
  /** Numbers of open exceptions and refunds by the command that lists them; empty while the database does not count. */
  open: ReadonlyMap<Command, number>
  /** Largest number of rows of a table on a page. */
  rows: number
  now: Date
  /** Returns the names of merchants by MID. */
  namesOf: (mids: readonly string[]) => Promise<ReadonlyMap<string, string>>
  /** Returns the values that the form of a field offers. */
  choicesOf: (field: Field) => Promise<readonly { value: string; text?: string }[]>
  /** Runs a command in the operator's name. Throws a UsageError for invalid values, before anything is run. */
  run: (command: Command, values: Values, run?: Run) => Promise<Output>
  /** Ends the queries of this view's pages. Changes continue. */
  leave: () => void
}

/**
 * One run of a command: as a preview, which stores nothing, or of what the operator has confirmed. `auditId` identifies a
 * change in the audit.
 */
export type Run = { file?: UploadedFile | undefined; onProgress?: (text: string) => void } & (
  | { isPreview: true }
  | { auditId: string; confirmed: string; isPreview?: undefined }
)

/** Fields of a query string or a form, by flag. */
export type PageFields = Readonly<Record<string, unknown>>

export const commandsOf = ({ groups }: Pick<OperatorView, 'groups'>) => Object.values(groups).flat()

/** Returns the title of a command's group and the commands in the group. */
export const groupOf = ({ groups }: OperatorView, command: Command): readonly [string, readonly Command[]] =>
  Object.entries(groups).find(([, all]) => all.includes(command)) ?? ['', []]

/** Flags that no field sets: the confirmation is the console's own, a page ends, and each import has a dry run. */
const OWN_FLAGS = ['file', 'yes', 'watch', 'dry-run']

/**
 * Returns the groups of a choice that a form offers: those with `record`, the flag of the record that a change is about.
 * A group that a switch selects is for the command line.
 */
const groupsIn = (choice: Choice, { changes }: Command, record?: string) =>
  groupsWith(choice, record).filter(
    (group) =>
      !Object.values(group).some((field) =>
        field.placeholder === undefined ? isRequired(field) : changes && !record && field.record,
      ),
  )

/** Returns the fields of a form by flag. */
export function fieldsOf(command: Command, record?: string): Record<string, Field> {
  const offered = Object.entries(command.fields).map(([key, one]) => {
    return [key, isChoice(one) ? { ...one, groups: groupsIn(one, command, record) } : one]
  })
  const all = Object.entries(flagsIn(Object.fromEntries(offered)))
  return Object.fromEntries(all.filter(([flag]) => !OWN_FLAGS.includes(flag)))
}

/** The name of a command's page. It is one segment, so that relative links work under the path of a proxy. */
export const pageName = ({ name }: Pick<Command, 'name'>) => name.replaceAll(' ', '-')

/** Returns the address of a command's page, relative to every other page. */
export const addressOf = (command: Pick<Command, 'name'>, fields: Record<string, string> = {}) =>
  `${pageName(command)}${Object.keys(fields).length > 0 ? `?${new URLSearchParams(fields)}` : ''}`

/**
 * Returns the values of the fields that a form of the command has. Spaces separate the values of a repeatable flag.
 * Ignores all other fields, and the file after the command's name, because it may be a file of this machine.
 */
export function valuesOf(command: Command, fields: PageFields): Values {
  const values: Record<string, string | string[] | true> = {}
  for (const [flag, { placeholder, isRepeatable }] of Object.entries(fieldsOf(command, recordOf(command, fields)))) {
    const sent = [fields[flag]].flat().filter((value): value is string => typeof value === 'string' && value !== '')
    const [first, another] = sent
    if (first === undefined) continue
    if (placeholder === undefined) values[flag] = true
    else if (isRepeatable) values[flag] = sent.flatMap((value) => value.trim().split(/\s+/))
    else values[flag] = another === undefined ? first : sent
  }
  return values
}

/** Returns values as the fields of a form. */
export const toFields = (values: Values): PageFields =>
  Object.fromEntries(
    Object.entries(values).map(([flag, value]) => [flag, value === true ? 'on' : [value ?? []].flat().join(' ')]),
  )

/** Returns the flag with which the fields of a change name a record; undefined if they name none. */
export const recordOf = ({ changes, fields }: Command, given: PageFields) =>
  changes ? Object.entries(flagsIn(fields)).find(([flag, { record }]) => record && given[flag])?.[0] : undefined

/** Returns the column with the identifiers of the records that a field names; empty if no column has them. */
export const columnOf = ({ record }: Field) => record?.column ?? ''

/** Returns the changes in the group of a list that name no record, such as an import. */
export const changesBeside = (view: OperatorView, list: Command) =>
  groupOf(view, list)[1].filter(
    (command) =>
      command.changes &&
      Object.values(command.fields).every((one) => (isChoice(one) ? groupsIn(one, command).length > 0 : !one.record)),
  )

/** Columns with numbers of other systems, which link to their search. */
const NUMBERS = ['order_id', 'merchantOrderId', 'utr']

/** Returns the address of the record or search that a cell identifies; undefined if neither. */
export function addressOfCell(column: string, text: string): string | undefined {
  if (NUMBERS.includes(column)) return addressOf({ name: 'search' }, { q: text })
  const [flag, { record } = {}] = Object.entries(RECORDS).find(([, field]) => columnOf(field) === column) ?? []
  return flag && record?.page && addressOf({ name: record.page }, { [flag]: text })
}

export const capital = (text: string) => text.replace(/^./, (first) => first.toUpperCase())

/** Returns the changes that a record permits, the usual ones before the others. `flag` names the record. */
export const changesOf = (view: Pick<OperatorView, 'groups'>, flag: string, record: PageFields): readonly Command[] =>
  commandsOf(view)
    .filter(({ changes, fields, permits }) => changes && flagsIn(fields)[flag]?.record && permits(record))
    .sort((one, other) => Number(other.isUsual) - Number(one.isUsual))
