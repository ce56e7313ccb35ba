import type { MerchantError } from '../../books/reading/snapshot.ts'
import { type Paise, toDecimalText, toIndianRupees, toJsonNumber } from '../../platform/money.ts'
import { toOneLine } from '../../platform/printable.ts'
import { toIstTime } from '../../platform/time.ts'
import type { CommandError } from './errors.ts'

/**
 * Types for the result of a command. Three writers print the result as text, JSON or CSV, and are independent of the
 * command.
 */

/**
 * An amount in a cell. In JSON, the amount is a decimal string in rupees, or with `asNumber` a number, as in the
 * merchant API. A bigint is a sum of a list, which is exact however large the amounts in the list are.
 */
export class Money {
  readonly paise: Paise | bigint
  readonly asNumber: boolean

  constructor(paise: Paise | bigint, asNumber = false) {
    this.paise = paise
    this.asNumber = asNumber
  }

  toJSON = (): string | number => (this.asNumber ? toJsonNumber(Number(this.paise)) : toDecimalText(this.paise))
}

export const rupees = (paise: Paise | bigint | null): Money | null => (paise === null ? null : new Money(paise))

/**
 * The value of one cell. A string of digits is an identifier, because counts have the type number and amounts the type
 * Money.
 */
export type Cell = string | number | boolean | Date | Money | null | readonly string[]

/**
 * Text (omitted from JSON and CSV), a table, a record, a stream of parts, or a function that the writer calls when it
 * reaches the function.
 */
export type Data = string | TableData | RecordData | AsyncIterable<Data> | (() => Data)

/**
 * Named fields, each of which may contain data. JSON output contains `fields`. Text output contains `parts`, or the
 * fields if the record has no parts. CSV output contains `csv`, or the first table among the fields if the record has
 * no `csv`.
 */
export class RecordData {
  readonly fields: Readonly<Record<string, unknown>>
  readonly parts: readonly Data[] | undefined
  readonly csv: TableData | undefined

  constructor(fields: RecordData['fields'], parts?: readonly Data[], csv?: TableData) {
    this.fields = fields
    this.parts = parts
    this.csv = csv ?? Object.values(fields).find((field) => field instanceof TableData)
  }
}

/** Creates a record whose text output has one field per line, followed by `below`. */
export const record = (fields: Readonly<Record<string, Cell>>, ...below: Data[]) =>
  new RecordData(fields, below.length === 0 ? undefined : [new RecordData(fields), ...below])

/** Creates a record whose JSON output contains the fields and whose text output contains the parts. */
export const document = (fields: RecordData['fields'], ...parts: Data[]) => new RecordData(fields, parts)

/** A command that reads, with its flags, to which the console links. */
export type CommandLink = { name: string; flags: Record<string, string> }

/** How the writers print the rows of a table. Without a function, the writer prints the row itself. */
export type Views<R, C extends string> = {
  /** Line above the table; printed only if the table has rows. */
  title?: string | undefined
  /** Text that replaces a table without rows. */
  empty?: string | undefined
  cells?: (row: R) => Partial<Row<C>>
  json?: (row: R) => object
  /** Cells whose text output differs from their CSV output. */
  words?: (row: R) => Partial<Row<C>>
  /** Columns that text output and pages show before all others. CSV output has the order of the columns. */
  first?: readonly Names<C>[]
  /** Returns the commands, with their flags, that show the record or list to which a cell leads, by column. */
  links?: (row: R) => Partial<Record<Names<C>, CommandLink>>
  /** Returns flags with values, such as `{ exception: id }`, with which commands change the row. */
  changes?: (row: R) => Record<string, string>[]
  /** Formats a row as one line of text, for tables that are too wide for a terminal. */
  line?: (row: R) => string
  /** Returns the last row of the text output, such as a total. The writer calls this function after all other rows. */
  last?: () => Partial<Row<C>>
}

/** Rows under named columns. The rows may be a stream that is too long for memory. */
export class TableData {
  readonly columns: readonly string[]
  /** The columns in the order in which text output and pages show them. */
  readonly shownColumns: readonly string[]
  readonly rows: Rows<object>
  readonly views: Views<never, string>
  readonly #amounts: readonly string[]

  constructor(columns: string, rows: Rows<object>, views: Views<never, string>) {
    this.columns = columns.replace(/[₹Σ]/g, '').split(', ')
    this.shownColumns = [...new Set([...(views.first ?? []), ...this.columns])]
    this.rows = rows
    this.views = views
    this.#amounts = [...columns.matchAll(/[₹Σ](\w+)/g)].map(([, name = '']) => name)
  }

  cells = (row: object) => this.#inRupees(this.views.cells?.(row as never) ?? row) as Record<string, Cell>
  /** Returns the cells of a row as the text output shows them. */
  shown = (row: object) => ({ ...this.cells(row), ...this.views.words?.(row as never) })
  json = (row: object) => this.#inRupees(this.views.json?.(row as never) ?? row)
  /** Serializes a table inside a row. The rows of the inner table must be in memory. */
  toJSON = () => Array.from(this.rows as Iterable<object>, this.json)

  #inRupees(row: object): object {
    const fields = { ...row } as Record<string, unknown>
    for (const name of this.#amounts) {
      const paise = fields[name]
      if (typeof paise === 'number') fields[name] = new Money(paise)
    }
    return fields
  }
}

type Rows<R> = Iterable<R> | AsyncIterable<R>
type Row<C extends string> = Record<Names<C>, Cell>
/** The union of the column names in a list: `'mid' | 'fee'` for `'mid, ₹fee'`. */
type Names<S extends string> = S extends `${infer Name}, ${infer Rest}`
  ? Names<Name> | Names<Rest>
  : S extends `₹${infer Name}` | `Σ${infer Name}`
    ? Name
    : S

/** Creates a table with `columns` such as `mid, ₹amount`. ₹ marks a column in paise. */
export function table<C extends string, R extends Row<C>>(columns: C, rows: Rows<R>, empty?: string): TableData
export function table<C extends string, R extends object>(columns: C, rows: Rows<R>, views: Views<R, C>): TableData
export function table(columns: string, rows: Rows<object>, views: string | Views<never, string> = {}): TableData {
  return new TableData(columns, rows, typeof views === 'string' ? { empty: views } : views)
}

/**
 * Creates a table that ends with the sums of the columns marked with Σ. In JSON, the list is called `name` and the sums
 * are called `total`. Errors of merchants among the rows are not part of the sums.
 */
export function summed<C extends string, R extends Row<C> | MerchantError>(
  name: string,
  columns: C,
  rows: AsyncIterable<R>,
  views: Views<R, C> = {},
): RecordData {
  const sums: Record<string, bigint> = {}
  for (const [, sum = ''] of columns.matchAll(/Σ(\w+)/g)) sums[sum] = 0n
  async function* adding() {
    for await (const row of rows) {
      for (const sum in sums)
        sums[sum] = (sums[sum] ?? 0n) + BigInt(((row as Row<string>)[sum] as Paise | undefined) ?? 0)
      yield row
    }
  }
  const total = () => Object.fromEntries(Object.entries(sums).map(([sum, paise]) => [sum, new Money(paise)]))
  const last = () => ({ [columns.split(', ', 1)[0] as string]: 'total', ...total() }) as Partial<Row<C>>
  const list = table(columns, adding(), { ...views, last, empty: 'No rows.' })
  return document({ [name]: list, total }, list)
}

/**
 * The output of a command. `screens` replace one another on the terminal. `warnings` are printed on stderr, one per
 * line; with `--json`, the JSON document contains the warnings instead. `failure` returns the error with which the command
 * ends after its output. `created` is the detail for the audit, such as a new identifier.
 */
export type Output = {
  data?: Data
  screens?: AsyncIterable<Data>
  /** What an operator confirms: what a change does, without values that differ in each run. */
  figures?: Readonly<Record<string, Cell>>
  /** What the command line asks before the change, such as `erase 2 payments`, and what it shows above. */
  question?: string | undefined
  shown?: Data
  warnings?: readonly string[]
  failure?: () => CommandError | undefined
  created?: Readonly<Record<string, unknown>>
}

/** The value that a command returns: an output, or only the data of an output. */
export type Result = Output | TableData | RecordData

export const toOutput = (result: Result): Output =>
  result instanceof TableData || result instanceof RecordData ? { data: result } : result

/** Formats a cell as text. */
export function cellText(cell: Cell | undefined): string {
  if (cell === undefined || cell === null || cell === '') return '-'
  if (cell instanceof Date) return toIstTime(cell)
  if (cell instanceof Money) return toIndianRupees(cell.paise)
  if (typeof cell === 'object') return cell.length === 0 ? '-' : toOneLine(cell.join(' '))
  return toOneLine(String(cell))
}

/** Returns the columns without those that contain nothing but 0.00 in all rows, the total among them. */
export const withoutZeros = (columns: readonly string[], rows: readonly Partial<Record<string, Cell>>[]): string[] =>
  columns.filter((column) => {
    const texts = rows.map((cells) => cellText(cells[column])).filter((text) => text !== '-')
    return texts.length === 0 || texts.some((text) => text !== ZERO)
  })

const ZERO = toIndianRupees(0)
