import type { Paise } from '../../platform/money.ts'
import { UsageError } from './errors.ts'
import { forPeople, inRupees, longTable } from './output.ts'
import { spreadsheet } from './reconcile-report.ts'

type Cell = string | number | null

/** How a list is written: its name in JSON, its columns as in `table`, and those of them that are summed up at the end. */
type ListForm<C extends string> = { name: string; columns: string; sums: readonly C[] }

export type WrittenAs = 'text' | 'json' | 'csv'

/** How the flags `--csv` and `--json` ask for a list. Throws a UsageError for both. */
export function formOf(csv: true | undefined, asJson: boolean): WrittenAs {
  if (csv && asJson) throw new UsageError('give --json or --csv, not both')
  return csv ? 'csv' : asJson ? 'json' : 'text'
}

/**
 * Writes records that may be too many for memory. Amounts become rupees. Text and JSON end with the
 * sums, if any; a spreadsheet makes its own. `plain csv` is for programs.
 */
export function writeList<Row extends Record<keyof Row, Cell>, C extends keyof Row & string>(
  rows: AsyncIterable<Row> | Iterable<Row>,
  { name, columns, sums }: ListForm<C>,
  form: WrittenAs | 'plain csv',
): AsyncIterable<string> {
  const total = Object.fromEntries(sums.map((column) => [column, 0])) as Record<C, Paise>
  let count = 0
  const columnNames = columns.split(', ')
  if (form === 'csv' || form === 'plain csv') return spreadsheet(columnNames, rows, form === 'csv')
  return form === 'json' ? toJson() : longTable(columns as never, withTotal())

  async function* counted() {
    for await (const row of rows) {
      count += 1
      for (const column of sums) total[column] += row[column] as Paise
      yield inRupees(row)
    }
  }

  async function* withTotal() {
    for await (const row of counted()) yield forPeople(row)
    if (sums.length === 0) return
    const nothing = Object.fromEntries(columnNames.map((column) => [column, '']))
    yield { ...nothing, [columnNames[0] as string]: count === 0 ? 'nothing' : 'total', ...forPeople(inRupees(total)) }
  }

  async function* toJson() {
    yield `{"${name}":[`
    for await (const row of counted()) yield `${count === 1 ? '' : ','}${JSON.stringify(row)}`
    yield sums.length === 0 ? ']}\n' : `],"total":${JSON.stringify(inRupees(total))}}\n`
  }
}
