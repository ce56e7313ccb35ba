import { pipeline } from 'node:stream'
import { stringify } from 'csv-stringify'
import { toDecimalText } from '../../platform/money.ts'
import { toIstTime } from '../../platform/time.ts'
import { type Data, Money, RecordData, TableData } from '../commands/result.ts'

/**
 * Writes the first table in the data as CSV with a header in snake_case. With `forExcel`, writes identifiers as
 * formulas.
 */
export function writeCsv(data: Data, forExcel: boolean): AsyncIterable<string> {
  const csv = stringify({
    // Prevents spreadsheets from evaluating free text, such as a resolution, as a formula.
    escape_formulas: true,
    cast: {
      boolean: String,
      date: toIstTime,
      // Leaves a negative amount unescaped, because spreadsheets exclude text from sums.
      object: (cell) =>
        cell instanceof Money ? { value: toDecimalText(cell.paise), escape_formulas: false } : String(cell),
      string: (cell) => (forExcel && IDENTIFIER.test(cell) ? { value: `="${cell}"`, escape_formulas: false } : cell),
    },
  })
  // Ignores errors here, because the reader of `csv` also receives every error.
  pipeline(recordsOf(data), csv, () => undefined)
  return csv.setEncoding('utf8')
}

/** Digits, possibly with an E, because Excel would show 523504870405 as 5.23505E+11 and 12345678e901 as a number. */
const IDENTIFIER = /^[0-9]+(E[0-9]+)?$/i

async function* recordsOf(data: Data): AsyncGenerator<unknown[]> {
  const table = data instanceof RecordData ? data.csv : data
  if (!(table instanceof TableData)) return
  yield table.columns.map((name) => name.replace(/[A-Z]/g, (capital) => `_${capital.toLowerCase()}`))
  for await (const row of table.rows) {
    const cells = table.cells(row)
    yield table.columns.map((name) => cells[name])
  }
}
