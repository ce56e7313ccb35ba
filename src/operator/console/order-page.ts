import type { PaymentException } from '../../gateway/payments/read-exceptions.ts'
import { type Html, html } from '../../platform/html.ts'
import { toDecimalText, toIndianRupees } from '../../platform/money.ts'
import { toIstTime } from '../../platform/time.ts'
import type { Command } from '../cli/command.ts'
import type { TableData } from '../cli/data.ts'
import type { ShownPayment } from '../cli/find-payments.ts'
import { cellText } from '../cli/write-text.ts'
import { changeForm } from './layout.ts'
import { changeLinks, fieldList, renderData } from './render.ts'
import { changesOf, type OperatorView } from './view.ts'

/** Returns the title and the page of an order, from the fields of `ops payments show`. */
export async function orderPage(order: ShownPayment, view: OperatorView): Promise<{ title: string; body: Html }> {
  const { status, mid, merchantOrderId, orderId, createdAt, exceptions, refunds, settlements, steps } = order
  const body = html`<p><span class="status ${status}">${status}</span> <span class="quiet">${merchantOrderId} · ${mid} · ${toIstTime(createdAt)}</span></p>
${actions(order, view)}<div class="columns">
<div>
${openExceptions(exceptions, view)}<h2>What happened</h2>
<ol class="timeline">
${[...(steps.rows as Iterable<{ at: Date; by: string | null; what: string }>)].map(({ at, by, what }) => html`<li><span>${cellText(what)}${by === null ? undefined : html` <span class="quiet">by ${cellText(by)}</span>`}</span> <small class="quiet">${toIstTime(at)}</small></li>\n`)}</ol>
${await renderData(refunds, view)}${await renderData(settlements, view)}</div>
<div>
<section class="card"><h2>Money</h2>
${fieldList({ amount: order.amount, refundable: order.refundable })}</section>
<section class="card"><h2>Identifiers</h2>
${fieldList({ 'order number': merchantOrderId, orderId, UTR: order.utr, 'bank reference': order.bankReference, acquirer: order.acquirer, 'acquirer’s order': order.acquirerId })}</section>
</div>
</div>
`
  return { title: `Order of ${cellText(order.amount)}`, body }
}

/** Returns the open exceptions, each with links to the changes that resolve it. */
const openExceptions = ({ rows }: TableData, view: OperatorView): Html[] =>
  [...(rows as Iterable<PaymentException>)]
    .filter(({ resolution }) => resolution === null)
    .map(
      ({
        id,
        kind,
        amount,
        utr,
        receivedAt,
      }) => html`<section class="note"><h2>${kind}${amount === null ? undefined : ` of ${toIndianRupees(amount)}`}</h2>
<p>UTR ${cellText(utr)}, received ${toIstTime(receivedAt)}</p>
<p>${changeLinks(changesOf(view, 'exception'), { exception: id }, view)}</p></section>\n`,
    )

/** Returns the form of a refund, filled in with the amount that can still be refunded, and links to all other changes. */
function actions({ orderId, refundable }: ShownPayment, view: OperatorView): Html {
  const changes = changesOf(view, 'order-id')
  const isRefund = ({ name }: Command) => name === 'refunds create'
  const refund = refundable.paise > 0 ? changes.find(isRefund) : undefined
  const others = changes.filter((command) => !isRefund(command))
  const fields = { 'order-id': orderId, amount: toDecimalText(refundable.paise) }
  return html`${refund && changeForm(refund, fields, { back: view.here, send: 'Refund…' })}<p>${changeLinks(others, { 'order-id': orderId }, view)}</p>
`
}
