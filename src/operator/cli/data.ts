import { type Paise, toDecimalText, toJsonNumber } from '../../platform/money.ts'

/** Types for the result of a command. Three writers, independent of the command, print it as text, JSON or CSV. */

/** An amount in a cell. In JSON it is decimal text in rupees, or with `asNumber` a number, as in the merchant API. */
export class Money {
  readonly paise: Paise
  readonly asNumber: boolean

  constructor(paise: Paise, asNumber = false) {
    this.paise = paise
    this.asNumber = asNumber
  }

  toJSON = (): string | number => (this.asNumber ? toJsonNumber(this.paise) : toDecimalText(this.paise))
}

export const rupees = (paise: Paise | null): Money | null => (paise === null ? null : new Money(paise))

/** A string of digits is an identifier, because counts are of type number and amounts of type Money. */
export type Cell = string | number | boolean | Date | Money | null | readonly string[]

/** Text (not in JSON and CSV), a table, a record, a stream of parts, or a function that the writer calls when it gets to it. */
export type Data = string | TableData | RecordData | AsyncIterable<Data> | (() => Data)

/**
 * Named fields, each of which may be data. JSON output contains `fields`; text output `parts`, or the fields without
 * parts; CSV output `csv`, or the first table among the fields without it.
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

/** A record whose text output has one field per line, followed by `below`. */
export const record = (fields: Readonly<Record<string, Cell>>, ...below: Data[]) =>
  new RecordData(fields, below.length === 0 ? undefined : [new RecordData(fields), ...below])

/** A record whose JSON output has the fields and whose text output has the parts. */
export const document = (fields: RecordData['fields'], ...parts: Data[]) => new RecordData(fields, parts)

/** How the writers print the rows of a table; without a function, the row itself is used. */
type Views<R, C extends string> = {
  /** Line above the table, if it has rows. */
  title?: string | undefined
  /** Text in place of a table without rows. */
  empty?: string | undefined
  cells?: (row: R) => Partial<Row<C>>
  json?: (row: R) => object
  /** Cells of the text output that differ from CSV. */
  words?: (row: R) => Partial<Row<C>>
  /** The row as one line of text, for tables that are too wide for a terminal. */
  line?: (row: R) => string
  /** Last row of the text output, computed after all rows, such as a total. */
  last?: () => Partial<Row<C>>
}

/** Rows under named columns, which may be a stream too long for memory. */
export class TableData {
  readonly columns: readonly string[]
  readonly rows: Rows<object>
  readonly views: Views<never, string>
  readonly #amounts: readonly string[]

  constructor(columns: string, rows: Rows<object>, views: Views<never, string>) {
    this.columns = columns.replace(/[₹Σ]/g, '').split(', ')
    this.rows = rows
    this.views = views
    this.#amounts = [...columns.matchAll(/[₹Σ](\w+)/g)].map(([, name = '']) => name)
  }

  cells = (row: object) => this.#inRupees(this.views.cells?.(row as never) ?? row) as Record<string, Cell>
  json = (row: object) => this.#inRupees(this.views.json?.(row as never) ?? row)
  /** For a table inside a row. Its rows must be in memory. */
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
/** The union of the names in a list: `'mid' | 'fee'` for `'mid, ₹fee'`. */
type Names<S extends string> = S extends `${infer Name}, ${infer Rest}`
  ? Names<Name> | Names<Rest>
  : S extends `₹${infer Name}` | `Σ${infer Name}`
    ? Name
    : S

/** Creates a table of `columns` such as `mid, ₹amount`. ₹ marks a column of paise. */
export function table<C extends string, R extends Row<C>>(columns: C, rows: Rows<R>, empty?: string): TableData
export function table<C extends string, R extends object>(columns: C, rows: Rows<R>, views: Views<R, C>): TableData
export function table(columns: string, rows: Rows<object>, views: string | Views<never, string> = {}): TableData {
  return new TableData(columns, rows, typeof views === 'string' ? { empty: views } : views)
}

/** Creates a table that ends with the sums of the columns marked with Σ. In JSON the list is called `name` and the sums `total`. */
export function summed<C extends string, R extends Row<C>>(
  name: string,
  columns: C,
  rows: AsyncIterable<R>,
  views: Views<R, C> = {},
): RecordData {
  const sums: Record<string, Paise> = {}
  for (const [, sum = ''] of columns.matchAll(/Σ(\w+)/g)) sums[sum] = 0
  async function* adding() {
    for await (const row of rows) {
      for (const sum in sums) sums[sum] = (sums[sum] ?? 0) + Number((row as Row<string>)[sum])
      yield row
    }
  }
  const total = () => Object.fromEntries(Object.entries(sums).map(([sum, paise]) => [sum, new Money(paise)]))
  const last = () => ({ [columns.split(', ', 1)[0] as string]: 'total', ...total() }) as Partial<Row<C>>
  const list = table(columns, adding(), { ...views, last, empty: 'nothing' })
  return document({ [name]: list, total }, list)
}
