import { type Html, html } from '../../platform/html.ts'
import { counted, toDecimalText, toIndianRupees, toPaise } from '../../platform/money.ts'
import type { Command } from '../commands/command.ts'
import { CommandError, UsageError } from '../commands/errors.ts'
import { Money, RecordData, TableData } from '../commands/result.ts'
import type { Output } from '../terminal/print.ts'
import { withLinks } from './command-links.ts'
import type { PendingChange } from './confirmations.ts'
import { changeForm, confirmationForm, filterForm, type Page, sameCommand, withLabels } from './layout.ts'
import { orderPage } from './order-page.ts'
import { type Cells, changeLink, fieldList, renderData } from './render.ts'
import { todayPage } from './today-page.ts'
import type { Upload } from './uploads.ts'
import {
  addressOf,
  amountOf,
  changesBeside,
  columnOf,
  isRefund,
  type OperatorView,
  type PageFields,
  pageName,
  pageOfRecord,
  recordOf,
  titleOf,
  toArguments,
  valuesOf,
} from './view.ts'

/** Returns the page of a command that reads: its filters and its result. */
export async function readPage(command: Command, fields: PageFields, view: OperatorView): Promise<Page> {
  const args = toArguments(command, fields)
  const filters = filterForm(command, fields)
  const title = titleOf(command)
  const output = await view.run(command, args)
  const { data = '' } = output
  const same = sameCommand(command, args)
  const ownPage = OWN_PAGES[command.name]
  if (ownPage && data instanceof RecordData) return ownPage(data.fields as never, view, same)
  const toCsv = html`<a href="${view.here}${view.here.includes('?') ? '&' : '?'}csv=on">CSV of all rows</a>`
  const changes = changesBeside(view, command).map((one) => changeLink(one, {}, view))
  const links = html`<p class="actions">${changes}${command.flags.includes('csv') ? toCsv : undefined}</p>\n`
  return { title, body: html`${filters}${links}${notesOf(output, view)}${await renderData(data, view)}${same}` }
}

/** Pages of commands that are no lists, from the fields of the command's data. */
const OWN_PAGES: Readonly<Record<string, (fields: never, view: OperatorView, same: Html) => Promise<Page>>> = {
  'payments show': orderPage,
  today: todayPage,
}

/** Returns the form of a command, filled in, with the error of the command. Throws any other error. */
export async function errorPage(
  error: unknown,
  command: Command,
  fields: PageFields,
  view: OperatorView,
): Promise<Page> {
  if (!(error instanceof CommandError)) throw error
  const title = titleOf(command)
  const form = command.changes ? (await formPage(command, fields, view)).body : filterForm(command, fields)
  // The page of a command that requires filters begins with its empty form.
  if (!command.changes && error instanceof UsageError && Object.keys(fields).length === 0) return { title, body: form }
  const lines = [error.message, ...error.details].map((line) => withLabels(line, command))
  return { title, status: 400, body: html`${errorText(lines, view)}${form}` }
}

/** Returns the section with the lines of an error. */
export const errorText = (lines: readonly string[], view: OperatorView | undefined): Html =>
  html`<div class="error" role="alert">${lines.map((line) => html`<p>${view ? withLinks(line, view) : line}</p>\n`)}</div>\n`

/** Returns the page with the empty form of a change, and the record that it changes. */
export async function formPage(command: Command, fields: PageFields, view: OperatorView): Promise<Page> {
  const form = changeForm(command, fields, pageBefore(fields, view).page)
  const before = await beforeChange(await recordBefore(command, fields, view), view)
  const body = html`<div class="columns"><div>${form}</div>\n${before}</div>\n`
  return { title: command.summary, body }
}

/** Returns the page on which an operator confirms a change, with its arguments and the record as it is before. */
export async function confirmationPage(
  command: Command,
  { fields, upload }: { fields: PageFields; upload?: Upload },
  view: OperatorView,
  sign: (change: Omit<PendingChange, 'publicKey' | 'shownAt' | 'nonce'>) => Record<string, string>,
): Promise<Page> {
  const { page: back } = pageBefore(fields, view)
  const record = await recordBefore(command, fields, view)
  const whole = record && isRefund(command) && !fields.amount ? amountOf(command, record) : undefined
  // Signs the amount that the page shows, because another amount may be refundable when the operator confirms. The
  // amount of an exception does not change.
  const filled = whole && record?.refundable ? { ...fields, amount: toDecimalText(whole.paise) } : fields
  const flags = toArguments(command, filled)
  const args = upload === undefined ? flags : [...flags, '-']
  command.prepare(args)
  const isTried = command.flags.includes('dry-run')
  const dryRun = isTried ? await view.run(command, ['--dry-run', ...args], upload) : undefined
  const figures = dryRun && html`<h2>Dry run</h2>\n${notesOf(dryRun, view)}${await renderData(dryRun.data ?? '', view)}`
  const file = upload && { file: upload.name, size: counted(upload.bytes, 'byte'), 'SHA-256': upload.sha256 }
  const { amount: given, ...others } = valuesOf(command, filled)
  const money = given === undefined ? whole : new Money(toPaise(given.join()))
  const amount = money && toIndianRupees(money.paise)
  const signed = sign({ command: command.name, args, back, sha256: upload?.sha256 })
  const same = sameCommand(command, upload ? [`./${upload.name}`, ...flags] : flags)
  const body = html`<div class="columns"><section class="card">
${amount && html`<p class="amount">${amount}</p>\n`}${await fieldList({ ...file, ...others }, view)}${figures}<p class="quiet">Nothing is changed until you confirm. The audit stores the change under ${view.operator.operator}.</p>
${confirmationForm(command, signed, { back, amount })}</section>
<div>${await beforeChange(record, view)}${same}</div></div>
`
  return { title: `${command.summary}?`, body }
}

/** Returns the section with the record that a change names, as it is before the change. */
const beforeChange = async (record: Cells | undefined, view: OperatorView) =>
  record && html`<section class="card"><h2>Before the change</h2>\n${await fieldList(record, view)}</section>\n`

/** Returns the page that the field `back` names, with its command, or the start page if it names no page that reads. */
function pageBefore({ back }: PageFields, view: OperatorView) {
  const [name = '', query = ''] = typeof back === 'string' ? back.split('?') : []
  const command = view.commands.find((one) => pageName(one.name) === name && !one.changes)
  if (command === undefined) return { page: '.' }
  const fields = Object.fromEntries(new URLSearchParams(query))
  return { page: addressOf(command.name, fields), run: () => view.run(command, toArguments(command, fields)) }
}

/** Returns the record that a change names, from the record's page or the page before; undefined if neither shows it. */
async function recordBefore(change: Command, fields: PageFields, view: OperatorView): Promise<Cells | undefined> {
  const flag = recordOf(change, fields)
  if (flag === undefined) return undefined
  const page = view.commands.find(({ name }) => name === pageOfRecord(flag))
  const shown = page && (await findRecord((await view.run(page, [`--${flag}=${fields[flag]}`])).data, flag, fields))
  return shown ?? findRecord((await pageBefore(fields, view).run?.())?.data, flag, fields)
}

/** Returns the cells of the row or the fields of the record that `flag` names with its value in `change`. */
async function findRecord(data: unknown, flag: string, change: PageFields): Promise<Cells | undefined> {
  if (data instanceof TableData) {
    const { shownColumns, views, rows } = data
    for await (const row of rows) {
      if (!views.changes?.(row as never).some((one) => one[flag] === change[flag])) continue
      const cells = data.shown(row)
      return Object.fromEntries(shownColumns.map((column) => [column, cells[column]]))
    }
  } else if (data instanceof RecordData && data.parts === undefined) {
    return data.fields[columnOf(flag)] === change[flag] ? (data.fields as Cells) : undefined
  } else if (data instanceof RecordData || Symbol.asyncIterator in Object(data)) {
    const inner = data instanceof RecordData ? [...Object.values(data.fields), ...(data.parts ?? [])] : data
    for await (const one of inner as AsyncIterable<unknown>) {
      const found = await findRecord(one, flag, change)
      if (found) return found
    }
  }
  return undefined
}

/** Renders the result of a change. */
export const renderResult = async (output: Output, view: OperatorView) =>
  html`<section class="card done" role="status">${notesOf(output, view)}${await renderData(output.data ?? '', view)}</section>\n`

const notesOf = ({ warnings = [] }: Output, view: OperatorView) =>
  html`${warnings.map((one) => html`<p class="note">${withLinks(one, view)}</p>\n`)}`
