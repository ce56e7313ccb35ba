import { type Cell, cellText, type Data, RecordData, TableData, withoutZeros } from '../commands/result.ts'

/** Writes data for a terminal, with aligned columns and an empty line between parts. */
export async function* writeText(data: Data): AsyncGenerator<string> {
  if (typeof data === 'function') yield* writeText(data())
  else if (data instanceof TableData) yield* data.views.line ? writeLines(data, data.views.line) : writeTable(data)
  else if (data instanceof RecordData && data.parts) yield* writeParts(data.parts)
  else if (data instanceof RecordData) {
    yield alignColumns(Object.entries(data.fields).map(([name, cell]) => [name, cellText(cell as Cell)]))
  } else if (typeof data === 'string') yield* data === '' ? [] : [`${data}\n`]
  else yield* writeParts(data)
}

async function* writeParts(parts: Iterable<Data> | AsyncIterable<Data>): AsyncGenerator<string> {
  let [isFirst, gap] = [true, '']
  for await (const part of parts) {
    // Rows printed as lines follow the heading above without an empty line.
    if (!isFirst) gap = part instanceof TableData && part.views.line ? '' : '\n'
    for await (const chunk of writeText(part)) {
      yield gap + chunk
      gap = ''
      isFirst = false
    }
  }
}

/**
 * Number of first rows that determine the column widths, because the table may be too long for memory. Wider cells in
 * later rows are not aligned, and a longer table shows columns of 0.00 too.
 */
const MEASURED_ROWS = 500

async function* writeLines({ rows, views }: TableData, line: (row: never) => string): AsyncGenerator<string> {
  let empty = views.empty ?? ''
  for await (const row of rows) {
    empty = ''
    yield `${line(row as never)}\n`
  }
  if (empty !== '') yield `${empty}\n`
}

async function* writeTable(table: TableData): AsyncGenerator<string> {
  const { title, empty = '' } = table.views
  const above = title === undefined ? '' : `${title}\n`
  const held: Cells[] = []
  let widths: number[] | undefined
  const linesOf = (rows: readonly Cells[], columns = table.shownColumns) =>
    rows.map((cells) => columns.map((name) => cellText(cells[name])))
  for await (const cells of cellsOf(table)) {
    if (widths !== undefined) yield alignColumns(linesOf([cells]), widths)
    else if (held.push(cells) > MEASURED_ROWS) {
      const lines = [table.shownColumns, ...linesOf(held)]
      widths = widthsOf(lines)
      yield above + alignColumns(lines, widths)
    }
  }
  if (widths !== undefined) return
  const columns = withoutZeros(table.shownColumns, held)
  if (held.length > 0) yield above + alignColumns([columns, ...linesOf(held, columns)])
  else if (empty !== '') yield `${empty}\n`
}

type Cells = Partial<Record<string, Cell>>

async function* cellsOf(table: TableData): AsyncGenerator<Cells> {
  const { empty, last } = table.views
  let isEmpty = true
  for await (const row of table.rows) {
    isEmpty = false
    yield table.shown(row)
  }
  if (last && !(isEmpty && empty !== undefined)) yield last()
}

const widthsOf = (lines: readonly (readonly string[])[]): number[] =>
  lines[0]?.map((_, column) => lines.reduce((width, line) => Math.max(width, line[column]?.length ?? 0), 0)) ?? []

function alignColumns(lines: readonly (readonly string[])[], widths = widthsOf(lines)): string {
  const align = (line: readonly string[]) => line.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')
  return lines.map((line) => `${align(line).trimEnd()}\n`).join('')
}
