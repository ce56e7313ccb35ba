import { type Html, html } from '../../platform/html.ts'
import { toIstText } from '../../platform/time.ts'
import type { Command } from '../commands/command.ts'
import {
  type Cell,
  type CommandLink,
  cellText,
  type Data,
  Money,
  RecordData,
  TableData,
  withoutZeros,
} from '../commands/result.ts'
import { withLinks } from './command-links.ts'
import { addressOf, addressOfCell, capital, changesOf, type OperatorView, type PageFields } from './view.ts'

/** Renders the data of a command as HTML, with the figures of its text output and links between records. */
export async function renderData(data: Data, view: OperatorView): Promise<Html> {
  if (typeof data === 'function') return renderData(data(), view)
  if (typeof data === 'string') return data === '' ? html`` : html`<p class="text">${withLinks(data, view)}</p>\n`
  if (data instanceof TableData) return renderTable(data, view)
  if (data instanceof RecordData && data.parts === undefined) return fieldList(data.fields as Cells, view)
  const parts: Html[] = []
  for await (const part of data instanceof RecordData ? (data.parts ?? []) : data) {
    parts.push(await renderData(part, view))
  }
  return html`${parts}`
}

/** Renders fields by name, such as those of a record, without the empty ones. */
export async function fieldList(fields: Cells, view: OperatorView): Promise<Html> {
  const names = await namesIn([fields], view)
  return html`<dl class="fields">
${Object.entries(fields).map(([name, cell]) => (isEmpty(cell) ? undefined : html`<div><dt>${inWords(name)}</dt><dd>${rendered(name, cell, { view, names })}</dd></div>\n`))}</dl>
`
}

/** Returns the names of the merchants in records that have no column for the name. */
async function namesIn(records: readonly Cells[], view: OperatorView): Promise<Shown['names']> {
  const cells = records.filter(({ name }) => name === undefined).map(({ mid }) => mid)
  const mids = [...new Set(cells.filter((mid) => typeof mid === 'string'))]
  return mids.length === 0 ? new Map() : view.namesOf(mids)
}

/** How a cell is shown: with the names of merchants by MID, and with `link` in place of the link to its record. */
type Shown = { view: OperatorView; names: ReadonlyMap<string, string>; link?: CommandLink | undefined }

export type Cells = Readonly<Record<string, Cell | undefined>>

async function renderTable(table: TableData, view: OperatorView): Promise<Html> {
  const { title, empty, last, changes } = table.views
  const rows: { row: object; cells: Cells }[] = []
  let isCut = false
  for await (const row of table.rows) {
    isCut = rows.length === view.rows
    if (isCut) break
    rows.push({ row, cells: table.shown(row) })
  }
  if (rows.length === 0) return empty === undefined ? html`` : html`<p class="empty">${empty}</p>\n`
  // The sums of a table that is cut would be those of its first rows.
  const sums: Cells | undefined = isCut ? undefined : last?.()
  const all = rows.map(({ cells }) => cells)
  const columns = withoutZeros(table.shownColumns, sums ? [...all, sums] : all).filter((column) =>
    all.some((cells) => !isEmpty(cells[column])),
  )
  const names = await namesIn(all, view)
  const cellsOf = (cells: Cells, links?: Partial<Record<string, CommandLink>>) =>
    columns.map((column) => renderCell(column, cells[column], { view, names, link: links?.[column] }))
  const begin = (links?: Html[][]) => (changes ? html`<td>${links}</td>` : undefined)
  const lines = rows.map(({ row, cells }) => {
    const toChanges = changes?.(row as never).map((fields) => changeLinks(fields, cells, view))
    return html`<tr>${begin(toChanges)}${cellsOf(cells, table.views.links?.(row as never))}</tr>\n`
  })
  if (sums) lines.push(html`<tr>${begin()}${cellsOf(sums)}</tr>\n`)
  const label = title?.replace(/:$/, '')
  return html`${label && html`<h2>${label}</h2>\n`}<div class="table" tabindex="0" role="region" aria-label="${label ?? 'rows'}">
<table>
<thead><tr>${begin()}${columns.map((column) => html`<th scope="col"${isNumber(rows[0]?.cells[column])}>${headOf(column)}</th>`)}</tr></thead>
<tbody>
${lines}</tbody>
</table>
</div>
${isCut ? html`<p class="note">Only the first ${view.rows} rows are shown. Narrow the filters, or use the command line.</p>\n` : undefined}`
}

const isEmpty = (cell: Cell | undefined) => cell === false || cellText(cell) === '-'

/** Returns the class of a cell with a number. */
const isNumber = (cell: Cell | undefined) =>
  typeof cell === 'number' || cell instanceof Money ? html` class="number"` : undefined

const renderCell = (column: string, cell: Cell | undefined, shown: Shown): Html =>
  html`<td${isNumber(cell)} data-name="${headOf(column)}">${rendered(column, cell, shown)}</td>`

/** Returns the head of a column, which is beside each cell where the screen is narrow. */
const headOf = (column: string) => capital(inWords(column))

/**
 * Returns links to the forms of the changes that a record permits. The first of `fields` names the record. The links name
 * those of the others that the record does not show.
 */
export function changeLinks(fields: Record<string, string>, record: PageFields, view: OperatorView): Html[] {
  const [[flag = ''] = [], ...others] = Object.entries(fields)
  const more = others.flatMap(([name, value]) => (record[name] === value ? [] : ` ${name} ${value}`)).join('')
  return changesOf(view, flag, record).map((command) => changeLink(command, fields, view, more))
}

/** Returns a link to the form of a change, filled in with `fields`. */
export const changeLink = (command: Command, fields: Record<string, string>, { here }: OperatorView, more = '') =>
  html`<a class="button" href="${addressOf(command, { ...fields, back: here })}">${command.title}${more}…</a> `

/** Renders a status, in the colour of its success or failure. */
export const statusOf = (status: string, text = status): Html => html`<span class="status ${status}">${text}</span>`

/** An identifier that is too long for a column, and the number of characters above which a text has several lines. */
const [IDENTIFIER, LONG] = [/^(?=.*\d)[\w.-]{20,}$/, 40]

/** Renders a cell, with `link` or, without one, a link to the record that the cell identifies. */
function rendered(column: string, cell: Cell | undefined, { view, names, link }: Shown) {
  if (isEmpty(cell)) return html``
  const text = cell instanceof Date ? toIstText(cell) : cellText(cell)
  if (column === 'status') return statusOf(text)
  const name = column === 'mid' ? names.get(text) : undefined
  if (name !== undefined) return html`<span>${name} <small class="quiet">${text}</small></span>`
  const to = link ? addressOf(link, link.flags) : addressOfCell(column, text)
  const size = IDENTIFIER.test(text) ? 'id' : text.length > LONG ? 'long' : undefined
  const shown = to === undefined && size === 'long' ? withLinks(text, view) : withUtrs(text)
  const sized = size ? html`<span class="${size}">${shown}</span>` : shown
  return to === undefined ? sized : html`<a href="${to}">${sized}</a>`
}

/** Returns a text in which each UTR of 12 digits is shown in groups of four, and copied without spaces. */
export function withUtrs(text: string): Html {
  const inFours = (utr: string) => utr.match(/.{4}/g)?.map((four) => html`<span>${four}</span>`)
  const parts = text.split(/\b(\d{12})\b/)
  return html`${parts.map((part, index) => (index % 2 ? html`<span class="utr">${inFours(part)}</span>` : part))}`
}

/** Formats the name of a field in words: `merchantOrderId` becomes `merchant order ID`. */
export const inWords = (name: string) =>
  name
    .replace(/(?<=[a-z])[A-Z]/g, (capital) => ` ${capital.toLowerCase()}`)
    .replace(/[_-](?=[a-z])/g, ' ')
    .replace(/\b(?:id|mid|pid|utr|url|vpa|mcc|qr|sha256)\b/g, (short) => short.toUpperCase())
