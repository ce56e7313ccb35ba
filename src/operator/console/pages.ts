import { type Html, html } from '../../platform/html.ts'
import { counted } from '../../platform/money.ts'
import type { Command } from '../cli/command.ts'
import { RecordData, type TableData } from '../cli/data.ts'
import { CommandError, UsageError } from '../cli/errors.ts'
import type { ShownPayment } from '../cli/find-payments.ts'
import type { Output } from '../cli/output.ts'
import type { Today } from '../cli/read-today.ts'
import type { PendingChange } from './confirmations.ts'
import { changeForm, confirmationForm, filterForm, type Page, sameCommand } from './layout.ts'
import { orderPage } from './order-page.ts'
import { changeLinks, fieldList, renderData } from './render.ts'
import { todayPage } from './today-page.ts'
import type { Upload } from './uploads.ts'
import {
  addressOf,
  changesBeside,
  commandLine,
  type OperatorView,
  type PageFields,
  pageName,
  recordOf,
  toArguments,
} from './view.ts'

/** A page and its HTTP status, which is 200 by default. */
type Shown = Omit<Page, 'view'> & { status?: number }

/** Returns the page of a command that reads: its filters and its result. */
export async function readPage(command: Command, fields: PageFields, view: OperatorView): Promise<Shown> {
  const args = toArguments(command, fields)
  const filters = filterForm(command, fields)
  const output = await view.run(command, args)
  const { data = '' } = output
  const same = sameCommand(commandLine(command, args))
  if (command.name === 'payments show' && data instanceof RecordData) {
    const { title, body } = await orderPage(data.fields as ShownPayment, view)
    return { title, body: html`${notesOf(output)}${body}${same}` }
  }
  if (command.name === 'today' && data instanceof RecordData) {
    const page = await todayPage(data.fields as Today, fields, view)
    return { ...page, body: html`${page.body}${same}` }
  }
  const toCsv = html`<a class="button" href="${view.here}${view.here.includes('?') ? '&' : '?'}csv=on">CSV of all rows</a>`
  const links = html`<p>${changeLinks(changesBeside(view, command), {}, view)}${command.flags.includes('csv') ? toCsv : undefined}</p>\n`
  return {
    title: command.summary,
    body: html`${filters}${links}${notesOf(output)}${await renderData(data, view)}${same}`,
  }
}

/** Returns the form of a command, filled in, with the error of the command. Throws any other error. */
export async function errorPage(
  error: unknown,
  command: Command,
  fields: PageFields,
  view: OperatorView,
): Promise<Shown> {
  if (!(error instanceof CommandError)) throw error
  const title = command.summary
  const form = command.changes ? (await formPage(command, fields, view)).body : filterForm(command, fields)
  // The page of a command that requires filters begins with its empty form.
  if (!command.changes && error instanceof UsageError && Object.keys(fields).length === 0) return { title, body: form }
  const details = error.details.map((line) => html`<p>${line}</p>\n`)
  return { title, status: 400, body: html`<p class="error" role="alert">${error.message}</p>\n${details}${form}` }
}

/** Returns the page with the form of a change, filled in with `fields`. */
export async function formPage(command: Command, fields: PageFields, view: OperatorView): Promise<Shown> {
  const { page } = pageBefore(fields, view)
  const record = recordOf(command, fields)
  const form = changeForm(command, fields, { back: page, send: 'Continue…' })
  return { title: command.summary, body: html`${record && fieldList({ [record]: String(fields[record]) })}${form}` }
}

/** Returns the page on which an operator confirms a change, with its arguments and the record as it is before. */
export async function confirmationPage(
  command: Command,
  { fields, upload }: { fields: PageFields; upload?: Upload },
  view: OperatorView,
  sign: (change: Omit<PendingChange, 'publicKey' | 'shownAt' | 'nonce'>) => Record<string, string>,
): Promise<Shown> {
  const { page: back, before } = pageBefore(fields, view)
  const flags = toArguments(command, fields)
  const args = upload === undefined ? flags : [...flags, '-']
  command.prepare(args)
  const [heading, output] = upload
    ? ['Dry run', await view.run(command, ['--dry-run', ...args], upload)]
    : ['Before the change', before && (await view.run(before.command, before.args))]
  const figures =
    output &&
    html`<h2>${heading}</h2>\n${notesOf(output)}${await renderData(output.data ?? '', upload ? view : { ...view, only: fields })}`
  const file = upload && { file: upload.name, size: counted(upload.bytes, 'byte'), 'SHA-256': upload.sha256 }
  const body = html`<p>Nothing is changed until you confirm. The audit stores the change under ${view.operator.operator}.</p>
${fieldList({ ...file, ...Object.fromEntries(flags.map(toField)) })}${upload && figures}${confirmationForm(command, sign({ command: command.name, args, back, sha256: upload?.sha256 }), back)}${upload ? undefined : figures}${sameCommand(commandLine(command, upload ? [`./${upload.name}`, ...flags] : flags))}`
  return { title: `${command.summary}?`, body }
}

/** Returns the page that the field `back` names, with its command, or the start page if it names no page that reads. */
function pageBefore({ back }: PageFields, { commands }: OperatorView) {
  const [name = '', query = ''] = String(back ?? '').split('?')
  const command = commands.find((one) => pageName(one.name) === name && !one.changes)
  if (command === undefined) return { page: '.' }
  const fieldsBefore = Object.fromEntries(new URLSearchParams(query))
  return { page: addressOf(command.name, fieldsBefore), before: { command, args: toArguments(command, fieldsBefore) } }
}

const notesOf = ({ warnings = [] }: Output) => html`${warnings.map((one) => html`<p class="note">${one}</p>\n`)}`

/** Returns the name of an argument's flag, and all values of the flag in `args`. */
function toField(arg: string, _index: number, args: readonly string[]): [string, readonly string[]] {
  const [flag = ''] = arg.split('=')
  const values = args.filter((one) => one.split('=')[0] === flag).map((one) => one.slice(flag.length + 1) || 'yes')
  return [flag.replace(/^--/, '').replaceAll('-', ' '), values]
}

/** The flags of `payments find` that may identify a payment by one text. */
const SEARCHED = ['order-id', 'refund', 'exception', 'merchant-order-id', 'utr']

/** Searches by every identifier that the text may be. `orderId` is defined if the only result is this order. */
export async function search(text: string, view: OperatorView): Promise<{ orderId?: string; body: Html }> {
  const find = view.commands.find(({ name }) => name === 'payments find') as Command
  const orderIds = new Set<string>()
  const parts: Html[] = []
  let hasOthers = false
  for (const flag of SEARCHED) {
    const { data } = await view.run(find, [`--${flag}=${text}`]).catch(nothingIfInvalid)
    if (!(data instanceof RecordData)) continue
    const [payments, exceptions, settlements] = ['payments', 'exceptions', 'settlements'].map((name) =>
      Array.from((data.fields[name] as TableData).rows as Iterable<{ orderId: string }>),
    )
    for (const { orderId } of payments ?? []) orderIds.add(orderId)
    hasOthers ||= exceptions?.length !== 0
    if ([payments, exceptions, settlements].some((rows) => rows?.length !== 0)) parts.push(await renderData(data, view))
  }
  const [orderId] = orderIds
  const body = parts.length > 0 ? html`${parts}` : html`<p>Nothing was found. Check the number, or open a list.</p>\n`
  return orderId !== undefined && orderIds.size === 1 && !hasOthers ? { orderId, body } : { body }
}

/** Ignores that a text does not have the form of an identifier, because it may be another identifier. */
function nothingIfInvalid(error: unknown): { data?: never } {
  if (error instanceof UsageError) return {}
  throw error
}
