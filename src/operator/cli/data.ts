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

  toJSON(): string | number {
    return this.asNumber ? toJsonNumber(this.paise) : toDecimalText(this.paise)
  }
}

export const rupees = (paise: Paise | null): Money | null => (paise === null ? null : new Money(paise))

/** Text that consists of digits is an identifier: a number is a `number`, an amount is `Money`. */
export type Cell = string | number | boolean | Date | Money | null | readonly string[]

/** Text for people only; a table; fields; or a function that the writer calls when it comes to that part. */
export type Data = string | TableData | RecordData | (() => Data)

/** Fields of one thing. JSON has `fields`, of which each may be a table. People read `parts`, or else the fields. */
export class RecordData {
  readonly fields: Readonly<Record<string, unknown>>
  readonly parts: readonly Data[] | undefined

  constructor(fields: Readonly<Record<string, unknown>>, parts?: readonly Data[]) {
    this.fields = fields
    this.parts = parts
  }
}

/** The fields, one in each line, and for people what stands below them. */
export const record = (fields: Readonly<Record<string, Cell>>, ...below: Data[]) =>
  new RecordData(fields, below.length === 0 ? undefined : [new RecordData(fields), ...below])

/** Programs read all the fields, people read the parts, one below the other. */
export const document = (fields: Readonly<Record<string, unknown>>, ...parts: Data[]) => new RecordData(fields, parts)

/** Rows under named columns, perhaps too many for memory. */
export class TableData {
  readonly columns: readonly string[]
  readonly rows: Iterable<object> | AsyncIterable<object>
  readonly #amounts: readonly string[]
  readonly #views: Views<never, string>

  constructor(columns: string, rows: TableData['rows'], views: Views<never, string>) {
    const names = columns.split(', ')
    this.columns = names.map((name) => name.replace('₹', ''))
    this.rows = rows
    this.#amounts = names.flatMap((name) => (name.startsWith('₹') ? [name.slice(1)] : []))
    this.#views = views
  }

  /** The text that people read instead of a table without rows. */
  get empty(): string {
    return this.#views.empty ?? ''
  }

  /** The row as people read it, by column. */
  cells(row: object): Record<string, Cell> {
    return this.#inRupees(this.#views.cells?.(row as never) ?? row) as Record<string, Cell>
  }

  /** The row as programs read it: all of its fields. */
  json(row: object): object {
    return this.#inRupees(this.#views.json?.(row as never) ?? row)
  }

  /** For a table inside a row, whose own rows are in memory. */
  toJSON(): object[] {
    return Array.from(this.rows as Iterable<object>, (row) => this.json(row))
  }

  #inRupees(row: object): object {
    const fields: Record<string, unknown> = { ...row }
    for (const name of this.#amounts) {
      const paise = fields[name]
      if (typeof paise === 'number') fields[name] = new Money(paise)
    }
    return fields
  }
}

/** `empty` is the text without rows. `cells` and `json` make what people and programs read of a row, else it is the row. */
type Views<R, C extends string> = { empty?: string; cells?: (row: R) => Row<C>; json?: (row: R) => object }

type Row<C extends string> = Record<Names<C>, Cell>

/** The union of the names in a list: `'mid' | 'fee'` for `'mid, ₹fee'`. */
type Names<S extends string> = S extends `${infer Name}, ${infer Rest}` ? Names<Name> | Names<Rest> : Bare<S>
type Bare<S extends string> = S extends `₹${infer Name}` ? Name : S

type Rows<R> = Iterable<R> | AsyncIterable<R>

/** A table of `columns` such as `mid, ₹amount`, in which ₹ stands before the names of paise. */
export function table<C extends string, R extends Row<C>>(
  columns: C,
  rows: Rows<R>,
  views?: Omit<Views<R, C>, 'cells'>,
): TableData
export function table<C extends string, R extends object>(
  columns: C,
  rows: Rows<R>,
  views: Views<R, C> & Required<Pick<Views<R, C>, 'cells'>>,
): TableData
export function table(columns: string, rows: Rows<object>, views: Views<never, string> = {}): TableData {
  return new TableData(columns, rows, views)
}
