import { type Html, html } from '../../platform/html.ts'
import { counted, toIndianRupees } from '../../platform/money.ts'
import { listAudit } from '../commands/audit.ts'
import type { Command } from '../commands/command.ts'
import { CommandError, UsageError } from '../commands/errors.ts'
import { flagsIn, type RecordFields, type Values } from '../commands/field.ts'
import { RECORDS } from '../commands/fields.ts'
import { showPayment } from '../commands/find-payments.ts'
import { type Cell, Money, type Output, RecordData, TableData } from '../commands/result.ts'
import { toConfirm } from '../commands/run.ts'
import { showToday } from '../commands/today.ts'
import { withLinks } from './command-links.ts'
import type { PendingChange } from './confirmations.ts'
import { changeForm, confirmationForm, filterForm, type Page, sameCommand, withLabels } from './layout.ts'
import { openExceptions, orderPage } from './order-page.ts'
import { type Cells, changeLink, fieldList, renderData } from './render.ts'
import { todayPage } from './today-page.ts'
import {
  addressOf,
  changesBeside,
  columnOf,
  commandsOf,
  fieldsOf,
  type OperatorView,
  type PageFields,
  pageName,
  recordOf,
  valuesOf,
} from './view.ts'

/** Returns the page of a command that reads: its filters and its result. */
export async function readPage(command: Command, fields: PageFields, view: OperatorView): Promise<Page> {
  const values = valuesOf(command, fields)
  const { title } = command
  const output = await view.run(command, values)
  const { data = '' } = output
  const same = sameCommand(command, values)
  const ownPage = OWN_PAGES.get(command)
  if (ownPage && data instanceof RecordData) return ownPage(data.fields as never, view, same)
  const changes = changesBeside(view, command).map((one) => {
    const filled = Object.entries(values).filter(([flag, value]) => flag in fieldsOf(one) && typeof value === 'string')
    return changeLink(one, Object.fromEntries(filled) as Record<string, string>, view)
  })
  const links = html`<p class="actions">${changes}${csvLinks(command, view.here)}</p>\n`
  const body = html`${command === listAudit ? ownKey(view) : undefined}${await filterForm(command, fields, view)}${links}${notesOf(output, view, command)}${await renderData(data, view)}${same}`
  return { title, body }
}

/** Returns the links to all rows of a page as CSV. */
function csvLinks({ csv }: Command, page: string): Html {
  const address = `${page}${page.includes('?') ? '&' : '?'}`
  const plain = csv === 'plain' ? html` <a href="${address}csv=plain">CSV for programs</a>` : undefined
  return html`${csv && html`<a href="${address}csv=on">CSV of all rows</a>`}${plain}`
}

/** Returns the reader's own key, and the command that revokes it. */
const ownKey = ({ operator: { operator, publicKey } }: OperatorView) =>
  html`<p>You are signed in as ${operator} with the key ${publicKey}. If anyone else may have it, run <code>ops keys revoke --public-key ${publicKey}</code>.</p>\n`

/** Pages of commands that are no lists, from the fields of the command's data. */
const OWN_PAGES = new Map<Command, (fields: never, view: OperatorView, same: Html) => Promise<Page>>([
  [showPayment, orderPage],
  [showToday, todayPage],
])

/** Returns the form of a command, filled in, with the error of the command. Throws any other error. */
export async function errorPage(error: unknown, command: Command, fields: PageFields, view: OperatorView) {
  if (!(error instanceof CommandError)) throw error
  const { title, changes } = command
  // The page of a command that requires filters begins with its form.
  if (!changes && error instanceof UsageError && Object.keys(fields).length === 0) return firstPage(command, view)
  const form = changes ? (await formPage(command, fields, view)).body : await filterForm(command, fields, view)
  const lines = [error.message, ...error.details].map((line) => withLabels(line, command))
  return { title, status: 400, body: html`${errorText(lines, view)}${form}` }
}

/** Returns the page of a command that requires filters: the form, and links to the usual filter, such as the last month. */
async function firstPage(command: Command, view: OperatorView): Promise<Page> {
  const fields = withPrefilled(command, {}, view)
  const address = addressOf(command, fields)
  const named = Object.entries(fields).map(([flag, value]) => `${labelOf(command, flag)} ${value}`)
  const links = html`<p class="actions"><a href="${address}">${named.join(', ')}</a> ${csvLinks(command, address)}</p>\n`
  const isComplete = accepts(command, valuesOf(command, fields))
  return { title: command.title, body: html`${await filterForm(command, {}, view)}${isComplete ? links : undefined}` }
}

function accepts(command: Command, values: Values): boolean {
  try {
    command.prepare(values)
    return true
  } catch (error) {
    if (error instanceof UsageError) return false
    throw error
  }
}

/** Returns the section with the lines of an error. */
export const errorText = (lines: readonly string[], view: OperatorView | undefined): Html =>
  html`<div class="error" role="alert">${lines.map((line) => html`<p>${view ? withLinks(line, view) : line}</p>\n`)}</div>\n`

/** Returns the page with the form of a change, filled in from the record that it changes. */
export async function formPage(command: Command, fields: PageFields, view: OperatorView): Promise<Page> {
  const flag = recordOf(command, fields)
  const record = flag === undefined ? undefined : await recordBefore(flag, fields, view)
  const form = await changeForm(
    command,
    withPrefilled(command, fields, view, record),
    view,
    pageBefore(fields, view).page,
  )
  const before =
    record &&
    html`<section class="card"><h2>Before the change</h2>\n${await fieldList(cellsIn(record), view)}</section>\n`
  const { exceptions } = record ?? {}
  const open = exceptions instanceof TableData ? openExceptions(exceptions, view) : undefined
  const body = html`${aboutOf(command)}<div class="columns"><div>${form}</div>\n<div>${open}${before}</div></div>\n`
  return { title: command.title, body }
}

/** Adds the values with which a form begins. */
function withPrefilled<F extends PageFields>(
  command: Command,
  fields: F,
  view: OperatorView,
  record: RecordFields = {},
) {
  const prefilled = Object.entries(fieldsOf(command, recordOf(command, fields))).flatMap(([name, { prefill }]) => {
    const value = fields[name] ?? prefill?.(record, view.now)
    return value === undefined ? [] : [[name, value]]
  })
  return { ...fields, ...(Object.fromEntries(prefilled) as Record<string, string>) }
}

/** A change before its confirmation: its values, the file that it reads, what it would do, and the page before. */
export type Previewed = Pick<PendingChange, 'values' | 'file'> & { output: Output; back: unknown }

type Sign = (change: Omit<PendingChange, 'publicKey' | 'shownAt' | 'nonce'>) => Record<string, string>

/** Returns the page on which an operator confirms what a change does. */
export async function confirmationPage(command: Command, previewed: Previewed, view: OperatorView, sign: Sign) {
  const { values, file, output } = previewed
  const { page: back } = pageBefore(previewed, view)
  const { amount, ...figures } = output.figures ?? {}
  const given = Object.entries(values).flatMap(([flag, value]) =>
    flag === 'file' || flag in { ...output.figures } ? [] : [[labelOf(command, flag), value] as const],
  )
  const shown = {
    ...(file && { file: file.name, size: counted(file.bytes, 'byte'), 'SHA-256': file.sha256 }),
    ...(Object.fromEntries(given) as Record<string, Cell>),
    ...figures,
  }
  const money = amount instanceof Money ? toIndianRupees(amount.paise) : undefined
  const signed = sign({ command: command.name, values, back, file, confirmed: toConfirm(output) })
  const same = sameCommand(command, file ? { ...values, file: file.name } : values)
  const body = html`${aboutOf(command)}<div class="columns"><section class="card">
${money && html`<p class="amount">${money}</p>\n`}${notesOf(output, view, command)}${await fieldList(shown, view)}<p class="quiet">Nothing is changed until you confirm. The audit stores the change under ${view.operator.operator}.</p>
${confirmationForm(command, signed, back, money)}</section>
<div>${same}</div></div>
${output.shown && (await renderData(output.shown, view))}`
  return { title: command.title, body }
}

/** Returns what a change does, in the words of its help. */
const aboutOf = (command: Command) =>
  html`<p class="quiet">${withLabels([command.summary, command.note].filter((text) => text).join('. '), command)}</p>\n`

const labelOf = ({ fields }: Command, flag: string) => flagsIn(fields)[flag]?.label ?? flag

/** Returns the page that the field `back` names, with its command, or the start page if it names no page that reads. */
function pageBefore({ back }: { back?: unknown }, view: OperatorView) {
  const [name = '', query = ''] = typeof back === 'string' ? back.split('?') : []
  const command = commandsOf(view).find((one) => pageName(one) === name && !one.changes)
  if (command === undefined) return { page: '.' }
  const fields = Object.fromEntries(new URLSearchParams(query))
  return { page: addressOf(command, fields), run: () => view.run(command, valuesOf(command, fields)) }
}

/** Returns the record that a change names, from the record's page or the page before; undefined if neither shows it. */
async function recordBefore(flag: string, fields: PageFields, view: OperatorView): Promise<RecordFields | undefined> {
  const { record } = RECORDS[flag as keyof typeof RECORDS] ?? {}
  const page = commandsOf(view).find(({ name }) => name === record?.page)
  const shown =
    page && (await findRecord((await view.run(page, valuesOf(page, { [flag]: fields[flag] }))).data, flag, fields))
  return shown ?? findRecord((await pageBefore(fields, view).run?.())?.data, flag, fields)
}

/** Returns the cells of the row or the fields of the record that `flag` names with its value in `change`. */
async function findRecord(data: unknown, flag: string, change: PageFields): Promise<RecordFields | undefined> {
  if (data instanceof TableData) {
    const { shownColumns, views, rows } = data
    for await (const row of rows) {
      if (!views.changes?.(row as never).some((one) => one[flag] === change[flag])) continue
      const cells = data.shown(row)
      return Object.fromEntries(shownColumns.map((column) => [column, cells[column]]))
    }
  } else if (data instanceof RecordData) {
    const { fields, parts = [] } = data
    const named = RECORDS[flag as keyof typeof RECORDS]
    const isNamed = named !== undefined && fields[columnOf(named)] === change[flag]
    for await (const one of [...parts, ...Object.values(fields)]) {
      const found = await findRecord(one, flag, change)
      if (found) return isNamed ? { ...found, exceptions: fields.exceptions } : found
    }
    return isNamed ? fields : undefined
  } else if (Symbol.asyncIterator in Object(data)) {
    for await (const one of data as AsyncIterable<unknown>) {
      const found = await findRecord(one, flag, change)
      if (found) return found
    }
  }
  return undefined
}

/** Returns the fields of a record that are cells, and not tables. */
const cellsIn = (record: RecordFields): Cells =>
  Object.fromEntries(
    Object.entries(record as Cells).filter(
      ([, cell]) => typeof cell !== 'object' || cell instanceof Money || cell instanceof Date || Array.isArray(cell),
    ),
  )

/** Renders the result of a change. */
export async function renderResult(output: Output, view: OperatorView, command: Command) {
  const error = output.failure?.()
  return html`<section class="card ${error ? 'error' : 'done'}" role="status">${error && html`<p>${withLinks(error.message, view)}</p>\n`}${notesOf(output, view, command)}${await renderData(output.data ?? '', view)}</section>\n`
}

const notesOf = ({ warnings = [] }: Output, view: OperatorView, command: Command) =>
  html`${warnings.map((one) => html`<p class="note">${withLinks(withLabels(one, command), view)}</p>\n`)}`
