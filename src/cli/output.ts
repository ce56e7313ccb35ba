type Cell = string | number | boolean | Date | null | readonly string[]

/** Records under the names of `columns`, aligned; `none` when there are no records. */
export function table<K extends string>(columns: readonly K[], rows: readonly Record<K, Cell>[], none: string): string {
  if (rows.length === 0) return none
  const lines = [columns.map((column) => column), ...rows.map((row) => columns.map((column) => show(row[column])))]
  return alignColumns(lines)
}

/**
 * Shows the progress of a long command in one line on stderr, which is removed at the end. Shows nothing unless stderr
 * is a terminal.
 */
export function progressLine(unit: string): { show: ((count: number) => void) | undefined; clear: () => void } {
  if (!process.stderr.isTTY) return { show: undefined, clear: () => undefined }
  return {
    show: (count) => process.stderr.write(`${CLEAR_LINE}${count} ${unit}`),
    clear: () => process.stderr.write(CLEAR_LINE),
  }
}

const CLEAR_LINE = '\r\u001b[K'

/** One record, with one field on each line. */
export function record(fields: Readonly<Record<string, Cell>>): string {
  return alignColumns(Object.entries(fields).map(([name, value]) => [name, show(value)]))
}

function show(cell: Cell): string {
  if (cell === null || cell === '') return '-'
  if (cell instanceof Date) return cell.toISOString()
  if (typeof cell === 'object') return cell.length === 0 ? '-' : printable(cell.join(' '))
  return printable(String(cell))
}

/** What somebody else wrote may hold control characters and marks that turn the writing direction, which a terminal would obey. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cs}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, '\ufffd')
}

function alignColumns(lines: readonly (readonly string[])[]): string {
  const widths: number[] = []
  for (const line of lines) {
    line.forEach((cell, column) => {
      widths[column] = Math.max(widths[column] ?? 0, cell.length)
    })
  }
  return lines
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}
