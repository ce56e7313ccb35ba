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
  const { only } = view
  const withLinks = changes !== undefined && only === undefined
  const lines: Html[] = []
  let isCut = false
  for await (const row of table.rows) {
    const sets = changes?.(row as never).map((fields) => ({ fields, flag: Object.keys(fields)[0] ?? '' })) ?? []
    if (only && changes && !sets.some(({ fields, flag }) => fields[flag] === only[flag])) continue
    isCut = lines.length === view.rows
    if (isCut) break
    const cells: Record<string, Cell | undefined> = { ...table.cells(row), ...words?.(row as never) }
    const links = sets.map(({ fields, flag }) => changeLinks(changesOf(view, flag), fields, view))
    lines.push(renderRow(table, cells, withLinks ? links : undefined))
  }
  if (lines.length === 0) return empty === undefined || only ? html`` : html`<p>${empty}</p>\n`
  // The sums of a table that is cut would be those of its first rows.
  if (last && !isCut && !only) lines.push(renderRow(table, last(), withLinks ? [] : undefined))
  const label = title ?? 'rows'
  return html`${title === undefined ? undefined : html`<h2>${title.replace(/:$/, '')}</h2>\n`}<div class="table" tabindex="0" role="region" aria-label="${label}">
<table>
<thead><tr>${withLinks ? html`<td></td>` : undefined}${table.columns.map((column) => html`<th scope="col">${inWords(column)}</th>`)}</tr></thead>
<tbody>
${lines}</tbody>
</table>
</div>
${isCut ? html`<p class="note">Only the first ${view.rows} rows are shown. Narrow the filters, or use the command line.</p>\n` : undefined}`
}

function renderRow({ columns, views }: TableData, cells: Partial<Record<string, Cell>>, links?: Html[][]): Html {
  return html`<tr>${links && html`<td>${links}</td>`}${columns.map((column) => {
    const cell = cells[column]
    const isNumber = typeof cell === 'number' || cell instanceof Money
    return html`<td${isNumber ? html` class="number"` : undefined}>${linked(column, cell, views.records?.[column])}</td>`
  })}</tr>\n`
}

/** Returns links to the forms of changes, filled in with `fields`. The first field names the record. */
export const changeLinks = (commands: readonly Command[], fields: Record<string, string>, { here }: OperatorView) => {
  const [, ...others] = Object.entries(fields)
  const note = others.map(([flag, value]) => ` ${flag} ${value}`)
  return commands.map(
    ({ name, summary }) =>
      html`<a class="button" href="${addressOf(name, { ...fields, back: here })}">${summary}${note}</a> `,
  )
}

/** Returns the text of a cell, as a link if the cell identifies a record with a page. `flag` names the record. */
function linked(column: string, cell: Cell | undefined, flag?: string): Html {
  if (typeof cell !== 'string' || cell === '') return html`${cellText(cell)}`
  const to = flag === undefined ? addressOfColumn(column, cell) : addressOfRecord(flag, cell)
  return to === undefined ? html`${cellText(cell)}` : html`<a href="${to}">${cellText(cell)}</a>`
}

/** Formats the name of a field in words: `merchantOrderId` becomes `merchant order id`. */
const inWords = (name: string) =>
  name.replace(/(?<=[a-z])[A-Z]/g, (capital) => ` ${capital.toLowerCase()}`).replaceAll('_', ' ')
