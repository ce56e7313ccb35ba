import { dayOfDiscrepancy } from '../../books/ledger/discrepancies.ts'
import type { PayoutRow } from '../../books/reports/payout.ts'
import { formsOf, unpadded } from '../../platform/fields.ts'
import { type Html, html } from '../../platform/html.ts'
import { toIndianRupees, toPaise } from '../../platform/money.ts'
import { toIstDay } from '../../platform/time.ts'
import { listPayouts } from '../commands/books.ts'
import type { Command } from '../commands/command.ts'
import { UsageError } from '../commands/errors.ts'
import type { Values } from '../commands/field.ts'
import { findPayments, IDENTIFIERS, listPayments, paymentTable, showPayment } from '../commands/find-payments.ts'
import { listMerchants } from '../commands/merchants.ts'
import { reconciliation } from '../commands/reconcile.ts'
import { RecordData, type TableData } from '../commands/result.ts'
import type { FoundOrder } from '../support/payment-history.ts'
import { renderData } from './render.ts'
import { addressOf, type OperatorView } from './view.ts'

/**
 * What one finder has found; `body` is empty if it has found nothing. `page` is the address of the record if the finder
 * has found exactly one record that has a page.
 */
type Result = { body: Html; page?: string | undefined }

const NOTHING: Result = { body: html`` }

/** Searches for everything that the text may name. Returns the address of the page if the only result is one record. */
export async function search(text: string, view: OperatorView): Promise<{ page: string } | { body: Html }> {
  const identified = await findByIdentifier(text, view)
  const payout = await findPayout(text, view, identified.page !== undefined)
  const others = await Promise.all([findMerchants(text, view), findByAmount(text, view)])
  const found = [identified, payout, ...others].filter(({ body }) => body.toString() !== '')
  // Last, because it judges a day of every merchant, and an order number may have the form of a discrepancy's id.
  const [first, second] = found.length > 0 ? found : [await findDiscrepancy(text, view)]
  if (first?.page !== undefined && second === undefined) return { page: first.page }
  if (found.length === 0) return { body: nothingFound(text) }
  return { body: html`<p class="quiet">Results for “${text}”</p>\n${found.map(({ body }) => body)}` }
}

const nothingFound = (text: string) => html`<p class="empty">Nothing was found for “${text}”.</p>
<p>The search knows the UTR and the order number of a payment, the payment id of an acquirer, the bank reference of a payout, the name or MID of a merchant, and each orderId, refundId, exception and discrepancy. Mobile numbers are not searched.</p>
<form class="filters" action="search"><label>Amount that the customer paid today <input name="q" inputmode="decimal" placeholder="₹499" required></label>
<button>Search payments</button></form>
<p><a href="${addressOf(findPayments)}">Find payments by amount on another day</a></p>
`

/** Runs a command that reads. Returns undefined if a value does not have the form of its flag. */
async function run(command: Command, values: Values, view: OperatorView): Promise<RecordData | undefined> {
  const output = await view.run(command, values).catch((error) => {
    if (!(error instanceof UsageError)) throw error
  })
  return output?.data instanceof RecordData ? output.data : undefined
}

const rowsOf = <R extends object>(table: TableData) => Array.from(table.rows as Iterable<R>)

/** The fields of the data of `payments find`. */
type Found = Readonly<Record<'payments' | 'exceptions' | 'settlements', TableData>> & { more: boolean }

async function findByIdentifier(text: string, view: OperatorView): Promise<Result> {
  const orders = new Map<string, FoundOrder>()
  const [exceptions, settlements]: [TableData[], TableData[]] = [[], []]
  for (const flag of IDENTIFIERS) {
    const found = (await run(findPayments, { [flag]: text }, view))?.fields as Found | undefined
    if (found === undefined) continue
    for (const order of rowsOf<FoundOrder>(found.payments)) orders.set(order.orderId, order)
    exceptions.push(found.exceptions)
    settlements.push(found.settlements)
  }
  const [order, another] = orders.values()
  const hasException = exceptions.some((table) => rowsOf(table).length > 0)
  const payments = order ? [paymentTable([...orders.values()], view.now, 'Orders')] : []
  const lists = [...payments, ...exceptions, ...settlements].map((list) => renderData(list, view))
  const isOnly = order && !another && !hasException
  return {
    body: html`${await Promise.all(lists)}`,
    page: isOnly ? addressOf(showPayment, { 'order-id': order.orderId }) : undefined,
  }
}

/** Finds a payout by its bank reference. The page of an order, `isOrder`, links the payout with its own line. */
async function findPayout(text: string, view: OperatorView, isOrder: boolean): Promise<Result> {
  const { settlements, payout } = (await run(reconciliation, { payout: text }, view))?.fields ?? {}
  const lines = settlements ? rowsOf<PayoutRow>(settlements as TableData) : []
  const forms = formsOf(unpadded(text.toUpperCase()))
  if (lines.length === 0 || (isOrder && lines.every(({ utr }) => forms.includes(utr)))) return NOTHING
  const page = addressOf(reconciliation, { payout: String(payout) })
  return { body: html`<h2>Payouts</h2>\n<p><a href="${page}">Payout ${text}</a></p>\n`, page }
}

/** Finds a discrepancy in the report of its day, or of the payouts of its day. */
async function findDiscrepancy(text: string, view: OperatorView): Promise<{ page?: string }> {
  const id = text.toLowerCase()
  const day = dayOfDiscrepancy(id)
  if (day === undefined) return {}
  const days = { from: day, to: day }
  for (const command of [reconciliation, listPayouts]) {
    const { rows = [] } = (await run(command, days, view))?.csv ?? {}
    for await (const { differenceId, mid } of rows as AsyncIterable<{ differenceId?: string; mid: string }>) {
      if (differenceId === id) return { page: addressOf(command, { ...days, mid }) }
    }
  }
  return {}
}

/** A shorter text would be a part of nearly every name. */
const SHORTEST_NAME = 2

/** Lists merchants by a part of their name, or by their MID, with links to their orders of today. */
async function findMerchants(text: string, view: OperatorView): Promise<Result> {
  const part = text.toLowerCase()
  const { data } = await view.run(listMerchants, {})
  const found = rowsOf<{ mid: string; name: string }>(data as TableData).filter(
    ({ mid, name }) =>
      (part.length >= SHORTEST_NAME && name.toLowerCase().includes(part)) || mid.toLowerCase() === part,
  )
  if (found.length === 0) return NOTHING
  const links = found.slice(0, view.rows).map(({ mid, name }) => {
    return html`<p><a href="${addressOf(listPayments, { mid })}">${name}</a> <span class="quiet">${mid}</span></p>\n`
  })
  return { body: html`<h2>Merchants, with their orders of today</h2>\n${links}` }
}

/** An amount, such as `₹499 today`, `499.00` or `Rs. 1,499`. */
const AMOUNT = /^(?:₹|rs\.?|inr)?\s*(\d[\d,]*(?:\.\d{1,2})?)(?:\s*today)?$/i

/** Lists the payments of today with an amount. Their only one may be that of another customer, so it is not opened. */
async function findByAmount(text: string, view: OperatorView): Promise<Result> {
  const amount = AMOUNT.exec(text)?.[1]?.replaceAll(',', '')
  if (amount === undefined) return NOTHING
  const fields = { amount, on: toIstDay(view.now) }
  const found = (await run(findPayments, fields, view))?.fields as Found | undefined
  if (found === undefined) return NOTHING
  const orders = rowsOf<FoundOrder>(found.payments)
  const title = `Payments of ${toIndianRupees(toPaise(amount))} today, the newest first`
  const payments = orders.length > 0 ? [paymentTable(orders, view.now, title)] : []
  const lists = await Promise.all([...payments, found.exceptions].map((list) => renderData(list, view)))
  const more = html`<p class="note">Only the newest ${orders.length} are shown. <a href="${addressOf(findPayments, fields)}">Select a merchant</a></p>\n`
  return { body: html`${lists}${found.more ? more : undefined}` }
}
