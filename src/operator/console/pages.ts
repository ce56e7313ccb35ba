import type { PaymentHistory } from '../../books/reconciliation/payment-history.ts'
import type { PaymentException } from '../../gateway/payments/read-exceptions.ts'
import { type Html, html } from '../../platform/html.ts'
import { counted, toIndianRupees, toPaise } from '../../platform/money.ts'
import type { Command } from '../cli/command.ts'
import { type Cell, type Data, Money, RecordData, type TableData } from '../cli/data.ts'
import { UsageError } from '../cli/errors.ts'
import { paymentTable, type ShownPayment } from '../cli/find-payments.ts'
import type { Output } from '../cli/output.ts'
import type { Today } from '../cli/read-today.ts'
import type { PendingChange } from './confirmations.ts'
import { changeForm, confirmationForm, filterForm, type Page, sameCommand } from './layout.ts'
import { orderPage } from './order-page.ts'
import { changeLink, fieldList, inWords, renderData } from './render.ts'
import { todayPage } from './today-page.ts'
import type { Upload } from './uploads.ts'
import {
  addressOf,
  commandLine,
  isRefund,
  needsArguments,
  type OperatorView,
  type PageFields,
  pageName,
  pageOfRecord,
  recordOf,
  toArguments,
} from './view.ts'

/** Returns the page of a command that reads: its filters and its result. */
export async function readPage(command: Command, fields: PageFields, view: OperatorView): Promise<Page> {
  const args = toArguments(command, fields)
  const filters = filterForm(command, fields)
  const title = command.summary
  if (args.length === 0 && needsArguments(command)) return { title, body: filters, view }
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
  const group = `${command.name.split(' ')[0]} `
  const imports = view.commands.filter(({ name, takesFile }) => takesFile && name.startsWith(group))
  const links = html`<p class="actions">${imports.map((one) => changeLink(one, {}, view))}</p>\n`
  return { title, body: html`${filters}${links}${notesOf(output)}${await renderData(data, view)}${same}`, view }
}

/** Returns the page with the empty form of a change, and the record that it changes. */
export async function formPage(command: Command, fields: PageFields, view: OperatorView): Promise<Page> {
  const form = changeForm(command, fields, pageBefore(fields, view))
  const body = html`<div class="columns"><div>${form}</div>\n${before(await recordBefore(command, fields, view))}</div>\n`
  return { title: command.summary, body, view }
}

/** Returns the page on which an operator confirms a change, with its arguments and the record as it is before. */
export async function confirmationPage(
  command: Command,
  { fields, upload }: { fields: PageFields; upload?: Upload },
  view: OperatorView,
  sign: (change: Omit<PendingChange, 'publicKey' | 'shownAt' | 'nonce'>) => Record<string, string>,
): Promise<Page> {
  const back = pageBefore(fields, view)
  const flags = toArguments(command, fields)
  const args = upload === undefined ? flags : [...flags, '-']
  command.prepare(args)
  const dryRun = upload && (await view.run(command, ['--dry-run', ...args], upload))
  const figures = dryRun && html`<h2>Dry run</h2>\n${notesOf(dryRun)}${await renderData(dryRun.data ?? '', view)}`
  const file = upload && { file: upload.name, size: counted(upload.bytes, 'byte'), 'SHA-256': upload.sha256 }
  const record = await recordBefore(command, fields, view)
  const { amount: given, ...others } = Object.fromEntries(flags.map(toField))
  const whole = isRefund(command) ? (record?.refundable ?? record?.amount) : undefined
  const money = given === undefined ? whole : new Money(toPaise(given.join()))
  const amount = money instanceof Money ? toIndianRupees(money.paise) : undefined
  const signed = sign({ command: command.name, args, back, sha256: upload?.sha256 })
  const line = commandLine(command, upload ? [`./${upload.name}`, ...flags] : flags)
  const body = html`<div class="columns"><section class="card">
${amount && html`<p class="amount">${amount}</p>\n`}${fieldList({ ...file, ...others })}${figures}<p class="quiet">Nothing is changed until you confirm. The audit stores the change under ${view.operator.operator}.</p>
${confirmationForm(command, signed, { back, amount })}</section>
<div>${before(record)}${sameCommand(line)}</div></div>
`
  return { title: `${command.summary}?`, body, view }
}

const before = (record: Record<string, Cell> | undefined) =>
  record && html`<section class="card"><h2>Before the change</h2>\n${fieldList(record)}</section>\n`

/** Returns the page that the field `back` names, or the start page if the field names no page that reads. */
function pageBefore({ back }: PageFields, { commands }: OperatorView): string {
  const [name = '', query = ''] = String(back ?? '').split('?')
  const command = commands.find((one) => pageName(one.name) === name && !one.changes)
  return command === undefined ? '.' : addressOf(command.name, Object.fromEntries(new URLSearchParams(query)))
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
