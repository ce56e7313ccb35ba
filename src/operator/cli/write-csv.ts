import { pipeline } from 'node:stream'
import { stringify } from 'csv-stringify'
import { toDecimalText } from '../../platform/money.ts'
import { toIstTime } from '../../platform/time.ts'
import { type Data, Money, RecordData, TableData } from './data.ts'

/** Writes the first table of the data as CSV with a header in snake_case; with `forExcel`, identifiers as formulas. */
export function writeCsv(data: Data, forExcel: boolean): AsyncIterable<string> {
  const csv = stringify({
    // A spreadsheet must not evaluate free text, such as a resolution, as a formula.
    escape_formulas: true,
    cast: {
      boolean: String,
      date: toIstTime,
      // A negative amount stays unescaped, because spreadsheets leave text out of sums.
      object: (cell) =>
        cell instanceof Money ? { value: toDecimalText(cell.paise), escape_formulas: false } : String(cell),
      string: (cell) => (forExcel && IDENTIFIER.test(cell) ? { value: `="${cell}"`, escape_formulas: false } : cell),
    },
  })
  // The reader of `csv` receives an error of the pipeline, so it is ignored here.
  pipeline(recordsOf(data), csv, () => undefined)
  return csv.setEncoding('utf8')
}

/** Digits, possibly with an E: Excel would show 523504870405 as 5.23505E+11 and 12345678e901 as a number. */
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
