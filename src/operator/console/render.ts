import { type Html, html } from '../../platform/html.ts'
import type { Command } from '../cli/command.ts'
import { type Cell, type Data, Money, RecordData, TableData } from '../cli/data.ts'
import { neutralize } from '../cli/harmless.ts'
import { cellText } from '../cli/write-text.ts'
import { addressOf, addressOfColumn, addressOfRecord, changesOf, type OperatorView } from './view.ts'

/** Renders the data of a command as HTML, with the figures of its text output and links between records. */
export async function renderData(data: Data, view: OperatorView): Promise<Html> {
  if (typeof data === 'function') return renderData(data(), view)
  if (typeof data === 'string') return data === '' ? html`` : html`<p class="text">${neutralize(data)}</p>\n`
  if (data instanceof TableData) return renderTable(data, view)
  if (data instanceof RecordData && data.parts === undefined) return fieldList(data.fields as Record<string, Cell>)
  const parts: Html[] = []
  for await (const part of data instanceof RecordData ? (data.parts ?? []) : data) {
    parts.push(await renderData(part, view))
  }
  return html`${parts}`
}

/** Renders fields by name, such as those of a record. */
export const fieldList = (fields: Readonly<Record<string, Cell | undefined>>): Html =>
  html`<dl class="fields">
${Object.entries(fields).map(([name, cell]) => html`<div><dt>${inWords(name)}</dt><dd>${linked(name, cell)}</dd></div>\n`)}</dl>
`

async function renderTable(table: TableData, view: OperatorView): Promise<Html> {
  const { title, empty, words, last, changes } = table.views
  const lines: Html[] = []
  let isCut = false
  for await (const row of table.rows) {
    isCut = lines.length === view.rows
    if (isCut) break
    const cells: Record<string, Cell | undefined> = { ...table.cells(row), ...words?.(row as never) }
    lines.push(renderRow(table, cells, changes && rowChanges(changes(row as never), view)))
  }
  if (lines.length === 0) return empty === undefined ? html`` : html`<p>${empty}</p>\n`
  // The sums of a table that is cut would be those of its first rows.
  if (last && !isCut) lines.push(renderRow(table, last(), changes && []))
  const label = title ?? 'rows'
  return html`${title === undefined ? undefined : html`<h2>${title.replace(/:$/, '')}</h2>\n`}<div class="table" tabindex="0" role="region" aria-label="${label}">
<table>
<thead><tr>${table.columns.map((column) => html`<th scope="col">${inWords(column)}</th>`)}${changes && html`<td></td>`}</tr></thead>
<tbody>
${lines}</tbody>
</table>
</div>
${isCut ? html`<p class="note">Only the first ${view.rows} rows are shown. Narrow the filters, or use the command line.</p>\n` : undefined}`
}

const rowChanges = (changes: readonly Record<string, string>[], view: OperatorView) =>
  changes.map((fields) => changeLinks(changesOf(view, Object.keys(fields)[0] ?? ''), fields, view))

function renderRow(
  { columns, views }: TableData,
  cells: Readonly<Record<string, Cell | undefined>>,
  changes: Html[][] | undefined,
): Html {
  return html`<tr>${columns.map((column) => {
    const cell = cells[column]
    const isNumber = typeof cell === 'number' || cell instanceof Money
    const flag = views.records?.[column]
    const address = flag && typeof cell === 'string' ? addressOfRecord(flag, cell) : undefined
    return html`<td${isNumber ? html` class="number"` : undefined}>${linked(column, cell, address)}</td>`
  })}${changes && html`<td>${changes}</td>`}</tr>\n`
}

/** Returns links to the forms of changes, filled in with `fields`. The first field names the record. */
export const changeLinks = (commands: readonly Command[], fields: Record<string, string>, { here }: OperatorView) => {
  const others = Object.entries(fields)
    .slice(1)
    .map(([flag, value]) => ` ${flag} ${value}`)
  return commands.map(
    ({ name, summary }) =>
      html`<a class="button" href="${addressOf(name, { ...fields, back: here })}">${summary}${others}</a> `,
  )
}

/** Returns the text of a cell, as a link if the cell identifies a record with a page. */
function linked(column: string, cell: Cell | undefined, address?: string): Html {
  const to = address ?? (typeof cell === 'string' && cell !== '' ? addressOfColumn(column, cell) : undefined)
  return to === undefined ? html`${cellText(cell)}` : html`<a href="${to}">${cellText(cell)}</a>`
}

/** Formats the name of a field in words: `merchantOrderId` becomes `merchant order id`. */
const inWords = (name: string) =>
  name.replace(/(?<=[a-z])[A-Z]/g, (capital) => ` ${capital.toLowerCase()}`).replaceAll('_', ' ')
