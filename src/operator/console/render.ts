import { type Html, html } from '../../platform/html.ts'
import { toDecimalText, toIndianRupees } from '../../platform/money.ts'
import { toIstText } from '../../platform/time.ts'
import type { Command } from '../cli/command.ts'
import { type Cell, type Data, Money, RecordData, TableData } from '../cli/data.ts'
import { cellText } from '../cli/write-text.ts'
import { addressOf, addressOfCell, amountOf, changesOf, labelsOf, type OperatorView, type PageFields } from './view.ts'

/** Renders the data of a command as HTML, with the figures of its text output and links between records. */
export async function renderData(data: Data, view: OperatorView): Promise<Html> {
  if (typeof data === 'function') return renderData(data(), view)
  if (typeof data === 'string') return data === '' ? html`` : html`<p class="text">${data}</p>\n`
  if (data instanceof TableData) return renderTable(data, view)
  if (data instanceof RecordData && data.parts === undefined) return fieldList(data.fields as Record<string, Cell>)
  const parts: Html[] = []
  for await (const part of data instanceof RecordData ? (data.parts ?? []) : data) {
    parts.push(await renderData(part, view))
  }
  return html`${parts}`
}

/** Renders fields by name, such as those of a record, without the empty ones. */
export const fieldList = (fields: Cells): Html =>
  html`<dl class="fields">
${Object.entries(fields).map(([name, cell]) => (isEmpty(cell) ? undefined : html`<div><dt>${inWords(name)}</dt><dd>${rendered(name, cell)}</dd></div>\n`))}</dl>
`

export type Cells = Readonly<Record<string, Cell | undefined>>

async function renderTable(table: TableData, view: OperatorView): Promise<Html> {
  const { title, empty, last, changes, records } = table.views
  const rows: { cells: Cells; links: Html[][] }[] = []
  let isCut = false
  for await (const row of table.rows) {
    isCut = rows.length === view.rows
    if (isCut) break
    const cells = table.shown(row)
    rows.push({ cells, links: changes?.(row as never).map((fields) => changeLinks(fields, cells, view)) ?? [] })
  }
  if (rows.length === 0) return empty === undefined ? html`` : html`<p class="empty">${empty}</p>\n`
  const columns = table.columns.filter((column) => rows.some(({ cells }) => !isEmpty(cells[column])))
  const begin = (links?: Html[][]) => (changes ? html`<td>${links}</td>` : undefined)
  const lines = rows.map(
    ({ cells, links }) =>
      html`<tr>${begin(links)}${columns.map((column) => renderCell(column, cells[column], records?.[column]))}</tr>\n`,
  )
  // The sums of a table that is cut would be those of its first rows.
  const sums: Cells | undefined = isCut ? undefined : last?.()
  if (sums) lines.push(html`<tr>${begin()}${columns.map((column) => renderCell(column, sums[column]))}</tr>\n`)
  const label = title?.replace(/:$/, '')
  return html`${label && html`<h2>${label}</h2>\n`}<div class="table" tabindex="0" role="region" aria-label="${label ?? 'rows'}">
<table>
<thead><tr>${begin()}${columns.map((column) => html`<th scope="col"${isNumber(rows[0]?.cells[column])}>${inWords(column)}</th>`)}</tr></thead>
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

const renderCell = (column: string, cell: Cell | undefined, flag?: string): Html =>
  html`<td${isNumber(cell)} data-name="${inWords(column)}">${rendered(column, cell, flag)}</td>`

/**
 * Returns links to the forms of the changes that a record permits. The first of `fields` names the record. An order's
 * amount is filled in. An exception is refunded as a whole, so the label contains its amount.
 */
export function changeLinks(fields: Record<string, string>, record: PageFields, view: OperatorView): Html[] {
  const [[flag = ''] = [], ...others] = Object.entries(fields)
  return changesOf(view, flag, record).map((command) => {
    const { paise = 0 } = amountOf(command, record) ?? {}
    const filled = { ...fields, ...(flag === 'order-id' && { amount: toDecimalText(paise) }) }
    const figure = flag === 'exception' && command.flags.includes('amount') ? ` ${toIndianRupees(paise)}` : '…'
    return changeLink(command, filled, view, [...others.map((one) => ` ${one.join(' ')}`), figure].join(''))
  })
}

/** Returns a link to the form of a change, filled in with `fields`. */
export const changeLink = (command: Command, fields: Record<string, string>, { here }: OperatorView, figure = '…') =>
  html`<a class="button" href="${addressOf(command.name, { ...fields, back: here })}">${labelsOf(command.name).label}${figure}</a> `

/** Renders a status, in the colour of its success or failure. */
export const statusOf = (status: string, text = status): Html => html`<span class="status ${status}">${text}</span>`

/** An identifier that is too long for a column, and the number of characters above which a text has several lines. */
const [IDENTIFIER, LONG] = [/^(?=.*\d)[\w.-]{20,}$/, 40]

/** Renders a cell, with a link if the cell identifies a record with a page. `flag` names the record. */
function rendered(name: string, cell: Cell | undefined, flag?: string): Html {
  if (isEmpty(cell)) return html``
  const text = cell instanceof Date ? toIstText(cell) : cellText(cell)
  if (name === 'status') return statusOf(text)
  const to = addressOfCell(name, text, flag)
  const size = IDENTIFIER.test(text) ? 'id' : text.length > LONG ? 'long' : undefined
  const sized = size ? html`<span class="${size}">${text}</span>` : html`${text}`
  return to === undefined ? sized : html`<a href="${to}">${sized}</a>`
}

/** Formats the name of a field in words: `merchantOrderId` becomes `merchant order ID`. */
export const inWords = (name: string) =>
  name
    .replace(/(?<=[a-z])[A-Z]/g, (capital) => ` ${capital.toLowerCase()}`)
    .replace(/[_-](?=[a-z])/g, ' ')
    .replace(/\b(?:id|mid|pid|utr|url|vpa|mcc|qr|sha256)\b/g, (short) => short.toUpperCase())
