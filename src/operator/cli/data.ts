import { type Paise, toDecimalText, toJsonNumber } from '../../platform/money.ts'

/** The result of a command as data. The terminal, JSON and CSV have one writer each, which knows no command. */

/** An amount in a cell. JSON has rupees as decimal text; `asNumber` as a number, like the merchant API. */
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

/** Text that consists of digits is an identifier: a count is a `number`, an amount is `Money`. */
export type Cell = string | number | boolean | Date | Money | null | readonly string[]

/** Text for people only, a table, fields, parts that come one by one, or a function that the writer calls in its turn. */
export type Data = string | TableData | RecordData | AsyncIterable<Data> | (() => Data)

/**
 * Fields of one thing. JSON has `fields`, of which each may be data. People read `parts`, or else the fields. CSV has
 * `csv`, or else the first table among the fields.
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

/** The fields, one in each line, and for people what stands below them. */
export const record = (fields: Readonly<Record<string, Cell>>, ...below: Data[]) =>
  new RecordData(fields, below.length === 0 ? undefined : [new RecordData(fields), ...below])

/** Programs read all the fields, people read the parts, one below the other. */
export const document = (fields: RecordData['fields'], ...parts: Data[]) => new RecordData(fields, parts)

/** How the rows of a table are read; each row by itself unless a function makes something else of it. */
type Views<R, C extends string> = {
  /** The line above the table, if it has rows. */
  title?: string | undefined
  /** The text instead of a table without rows. */
  empty?: string | undefined
  cells?: (row: R) => Partial<Row<C>>
  json?: (row: R) => object
  /** Cells for people, in other words than those for programs. */
  words?: (row: R) => Partial<Row<C>>
  /** The row as a line of text, where columns would be too wide for a terminal. */
  line?: (row: R) => string
  /** The last row for people, once all rows are read. */
  last?: () => Partial<Row<C>>
}

/** Rows under named columns, perhaps too many for memory. */
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
  /** For a table inside a row, whose own rows are in memory. */
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

/** A table of `columns` such as `mid, ₹amount`, in which ₹ stands before the names of paise. */
export function table<C extends string, R extends Row<C>>(columns: C, rows: Rows<R>, empty?: string): TableData
export function table<C extends string, R extends object>(columns: C, rows: Rows<R>, views: Views<R, C>): TableData
export function table(columns: string, rows: Rows<object>, views: string | Views<never, string> = {}): TableData {
  return new TableData(columns, rows, typeof views === 'string' ? { empty: views } : views)
}

/** A list that ends with the sums of the amounts that Σ stands before; in JSON they are `total`, after the list of this name. */
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
