import type { PaymentHistory } from '../../books/reconciliation/payment-history.ts'
import type { PaymentException } from '../../gateway/payments/read-exceptions.ts'
import { type Html, html } from '../../platform/html.ts'
import { counted, toDecimalText, toIndianRupees, toPaise } from '../../platform/money.ts'
import type { Command } from '../cli/command.ts'
import { type Cell, type Data, Money, RecordData, type TableData } from '../cli/data.ts'
import { CommandError, UsageError } from '../cli/errors.ts'
import { paymentTable, type ShownPayment } from '../cli/find-payments.ts'
import type { Output } from '../cli/output.ts'
import type { Today } from '../cli/read-today.ts'
import type { PendingChange } from './confirmations.ts'
import { changeForm, confirmationForm, filterForm, type Page, sameCommand, withLabels } from './layout.ts'
import { orderPage } from './order-page.ts'
import { changeLink, fieldList, inWords, renderData } from './render.ts'
import { todayPage } from './today-page.ts'
import type { Upload } from './uploads.ts'
import {
  addressOf,
  changesBeside,
  commandLine,
  isRefund,
  type OperatorView,
  type PageFields,
  pageName,
  pageOfRecord,
  recordOf,
  titleOf,
  toArguments,
} from './view.ts'

/** Returns the page of a command that reads: its filters and its result. */
export async function readPage(command: Command, fields: PageFields, view: OperatorView): Promise<Page> {
  const args = toArguments(command, fields)
  const filters = filterForm(command, fields)
  const title = titleOf(command)
  const output = await view.run(command, args)
  const { data = '' } = output
  const same = sameCommand(commandLine(command, args))
  if (command.name === 'payments show' && data instanceof RecordData) {
    return orderPage(data.fields as ShownPayment, view, same)
  }
  if (command.name === 'today' && data instanceof RecordData) {
    const page = await todayPage(data.fields as Today, fields, view)
    return { ...page, body: html`${page.body}${same}` }
  }
  const toCsv = html`<a href="${view.here}${view.here.includes('?') ? '&' : '?'}csv=on">CSV of all rows</a>`
  const changes = changesBeside(view, command).map((one) => changeLink(one, {}, view))
  const links = html`<p class="actions">${changes}${command.flags.includes('csv') ? toCsv : undefined}</p>\n`
  return { title, body: html`${filters}${links}${notesOf(output)}${await renderData(data, view)}${same}`, view }
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
  if (!command.changes && error instanceof UsageError && Object.keys(fields).length === 0)
    return { title, body: form, view }
  const lines = [error.message, ...error.details].map((line) => html`<p>${withLabels(line, command)}</p>\n`)
  return { title, status: 400, body: html`<div class="error" role="alert">${lines}</div>\n${form}`, view }
}

/** Returns the page with the empty form of a change, and the record that it changes. */
export async function formPage(command: Command, fields: PageFields, view: OperatorView): Promise<Page> {
  const form = changeForm(command, fields, pageBefore(fields, view).page)
  const body = html`<div class="columns"><div>${form}</div>\n${await before(command, fields, view)}</div>\n`
  return { title: command.summary, body, view }
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
  const whole = isRefund(command) && !fields.amount ? (record?.refundable ?? record?.amount) : undefined
  // Signs the amount that the page shows, because another amount may be refundable when the operator confirms. The
  // amount of an exception does not change.
  const shown = whole instanceof Money && record?.refundable && { amount: toDecimalText(whole.paise) }
  const flags = toArguments(command, { ...fields, ...shown })
  const args = upload === undefined ? flags : [...flags, '-']
  command.prepare(args)
  const isTried = command.flags.includes('dry-run')
  const dryRun = isTried ? await view.run(command, ['--dry-run', ...args], upload) : undefined
  const figures = dryRun && html`<h2>Dry run</h2>\n${notesOf(dryRun)}${await renderData(dryRun.data ?? '', view)}`
  const file = upload && { file: upload.name, size: counted(upload.bytes, 'byte'), 'SHA-256': upload.sha256 }
  const { amount: given, ...others } = Object.fromEntries(flags.map(toField))
  const money = given === undefined ? whole : new Money(toPaise(given.join()))
  const amount = money instanceof Money ? toIndianRupees(money.paise) : undefined
  const signed = sign({ command: command.name, args, back, sha256: upload?.sha256 })
  const line = commandLine(command, upload ? [`./${upload.name}`, ...flags] : flags)
  const body = html`<div class="columns"><section class="card">
${amount && html`<p class="amount">${amount}</p>\n`}${fieldList({ ...file, ...others })}${figures}<p class="quiet">Nothing is changed until you confirm. The audit stores the change under ${view.operator.operator}.</p>
${confirmationForm(command, signed, { back, amount })}</section>
<div>${await before(command, fields, view)}${sameCommand(line)}</div></div>
`
  return { title: `${command.summary}?`, body, view }
}

/** Returns the record that a change names as it is, or the rows of the page before that the change is about. */
async function before(command: Command, fields: PageFields, view: OperatorView): Promise<Html | undefined> {
  const record = await recordBefore(command, fields, view)
  const { run } = pageBefore(fields, view)
  const shown = record ? fieldList(record) : await renderData((await run?.())?.data ?? '', { ...view, only: fields })
  if (shown.toString() === '') return undefined
  return html`<section class="card"><h2>Before the change</h2>\n${shown}</section>\n`
}

/** Returns the page that the field `back` names, with its command, or the start page if it names no page that reads. */
function pageBefore({ back }: PageFields, view: OperatorView) {
  const [name = '', query = ''] = String(back ?? '').split('?')
  const command = view.commands.find((one) => pageName(one.name) === name && !one.changes)
  if (command === undefined) return { page: '.' }
  const fields = Object.fromEntries(new URLSearchParams(query))
  return { page: addressOf(command.name, fields), run: () => view.run(command, toArguments(command, fields)) }
}

/** Returns the fields of the record that a change names; undefined if the change names no record with a page. */
async function recordBefore(change: Command, fields: PageFields, view: OperatorView) {
  const flag = recordOf(change, fields) ?? ''
  const page = pageOfRecord(flag, view)
  let data: Data | undefined = page && (await view.run(page, [`--${flag}=${fields[flag]}`])).data
  if (flag === 'exception' && data instanceof RecordData) {
    const { payments, exceptions } = data.fields as Found
    const ofOrder = Array.from(payments.rows as Iterable<PaymentHistory>, (payment) => payment.exceptions)
    const all = [...ofOrder.flat(), ...(exceptions.rows as Iterable<PaymentException>)]
    return exceptions.cells(all.find(({ id }) => id === fields.exception) ?? {})
  }
  while (data instanceof RecordData && data.parts) data = data.parts.find((part) => part instanceof RecordData)
  return data instanceof RecordData ? (data.fields as Record<string, Cell>) : undefined
}

/** Renders the result of a change. */
export const renderResult = async (output: Output, view: OperatorView) =>
  html`<section class="card done" role="status">${notesOf(output)}${await renderData(output.data ?? '', view)}</section>\n`

const notesOf = ({ warnings = [] }: Output) => html`${warnings.map((one) => html`<p class="note">${one}</p>\n`)}`

/** Returns the name of an argument's flag, and all values of the flag in `args`. */
function toField(arg: string, _index: number, args: readonly string[]): [string, readonly string[]] {
  const [flag = ''] = arg.split('=')
  const values = args.filter((one) => one.split('=')[0] === flag).map((one) => one.slice(flag.length + 1) || 'yes')
  return [flag.replace(/^--/, ''), values]
}

/** The fields of `payments find`. */
type Found = Readonly<Record<'payments' | 'exceptions' | 'settlements', TableData>>

/** The flags of `payments find` that may identify a payment by one text. */
const SEARCHED = ['utr', 'order-id', 'merchant-order-id', 'refund', 'exception']

/** Searches by every identifier that the text may be. `orderId` is defined if the only result is this order. */
export async function search(text: string, view: OperatorView): Promise<{ orderId?: string; body: Html }> {
  const find = view.commands.find(({ name }) => name === 'payments find') as Command
  const payments = new Map<string, PaymentHistory>()
  const others: Html[] = []
  const searched: string[] = []
  let hasOthers = false
  for (const flag of SEARCHED) {
    const { data } = await view.run(find, [`--${flag}=${text}`]).catch(nothingIfInvalid)
    if (!(data instanceof RecordData)) continue
    const found = data.fields as Found
    for (const payment of found.payments.rows as Iterable<PaymentHistory>) payments.set(payment.orderId, payment)
    for (const table of [found.exceptions, found.settlements]) others.push(await renderData(table, view))
    hasOthers ||= Array.from(found.exceptions.rows as Iterable<object>).length > 0
    searched.push(inWords(flag))
  }
  const [orderId] = payments.keys()
  const list = payments.size > 0 ? await renderData(paymentTable([...payments.values()], view.now), view) : undefined
  const nothing = html`<p class="empty">Nothing was found. Check the number, or <a href="payments-find">find payments by amount and day</a>.</p>\n`
  const body = html`<p class="quiet">Searched for “${text}” as ${searched.join(', ')}.</p>
${list}${others}${list === undefined && others.join('') === '' ? nothing : undefined}`
  return orderId !== undefined && payments.size === 1 && !hasOthers ? { orderId, body } : { body }
}

/** Ignores that a text does not have the form of an identifier, because it may be another identifier. */
function nothingIfInvalid(error: unknown): { data?: never } {
  if (error instanceof UsageError) return {}
  throw error
}
