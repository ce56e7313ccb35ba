import { LANGUAGES } from '../../gateway/checkout/texts.ts'
import type { PaymentException } from '../../gateway/payments/read-exceptions.ts'
import { type Html, html } from '../../platform/html.ts'
import { toIndianRupees } from '../../platform/money.ts'
import { toIstText } from '../../platform/time.ts'
import { listPayments, type ShownPayment } from '../commands/find-payments.ts'
import { reconciliation } from '../commands/reconcile.ts'
import { cellText, rupees, type TableData } from '../commands/result.ts'
import type { Step } from '../support/payment-steps.ts'
import { discrepancyText, payoutText } from '../support/payout-of-order.ts'
import { ageText } from '../texts.ts'
import { withLinks } from './command-links.ts'
import type { Page } from './layout.ts'
import { changeLink, changeLinks, fieldList, renderData, statusOf, withUtrs } from './render.ts'
import { addressOf, changesOf, type OperatorView } from './view.ts'

/** Returns the page of an order, from the fields of `ops payments show`. `same` is the section with the command. */
export async function orderPage(order: ShownPayment, view: OperatorView, same: Html): Promise<Page> {
  const { status, mid, merchantOrderId, orderId, createdAt, amount, refunded, refundsOpen, refundable } = order
  const { utr, bankReference, acquirer, acquirerId, acquirerPaymentId, instrument } = order
  const [newest] = [...(order.webhooks.rows as Iterable<{ id: string }>)].slice(-1)
  const name = (await view.namesOf([mid])).get(mid)
  const tables = [order.refunds, order.disputes, order.webhooks, order.settlements].map((one) => renderData(one, view))
  const body = html`<p class="quiet">${merchantOrderId} · <a href="${addressOf(listPayments, { mid })}">${name}</a> ${mid} · ${toIstText(createdAt)}</p>
<p class="actions">${ofExceptions(order.exceptions, view)}${changeLinks({ 'order-id': orderId }, order, view)}${newest && changeLinks({ delivery: newest.id }, newest, view)}</p>
<div class="columns">
<div>${openExceptions(order.exceptions, view)}
<section class="card"><h2>For the customer</h2>
${LANGUAGES.map((language) => html`<p class="say" lang="${language}">${order.customer[language]}</p>\n`)}<p class="quiet">A click selects a text, to copy it.</p></section></div>
<div>
<section class="card"><h2>Money</h2>
${await fieldList({ paid: rupees(status === 'SUCCESS' ? amount.paise : 0), refunded, refundsOpen, 'can still be refunded': refundable }, view)}${payoutOf(order)}</section>
<section class="card"><h2>Identifiers</h2>
${await fieldList({ 'order number': merchantOrderId, 'our orderId': orderId, UTR: utr, bankReference: bankReference === utr ? null : bankReference, acquirer, 'order ID at the acquirer': acquirerId, 'payment ID at the acquirer': acquirerPaymentId, instrument }, view)}</section>
${same}</div>
<div><h2>What happened</h2>
<ol class="timeline">
${timeline(order.steps)}</ol></div>
</div>
${await Promise.all(tables)}`
  const refunds = refunded.paise > 0 ? statusOf('', `${toIndianRupees(refunded.paise)} refunded`) : undefined
  const [state, ...details] = order.state.split(' · ')
  const beside = html`${statusOf(status, state)}${details.map((detail) => html`<span class="quiet">${detail}</span>`)}${refunds}`
  return { title: toIndianRupees(amount.paise), tab: merchantOrderId, beside, body }
}

/** Returns the payout that contains the payment, with links to the payout and to the open discrepancy. */
function payoutOf({ mid, payout, settlementDueOn }: ShownPayment): Html | undefined {
  const text = payoutText(payout, settlementDueOn)
  if (payout === null || text === null) return undefined
  const { bankReference, day, discrepancy } = payout
  const to =
    bankReference !== null
      ? addressOf(reconciliation, { payout: bankReference, mid })
      : day && addressOf(reconciliation, { from: day, to: day, mid })
  const link = to ? html`<a href="${to}">${text}</a>` : html`${text}`
  const found = discrepancy
    ? html`<p class="error"><a href="${addressOf(reconciliation, { from: discrepancy.day, to: discrepancy.day, mid })}">${discrepancyText(discrepancy)}</a></p>\n`
    : undefined
  return html`<dl class="fields"><div><dt>payout</dt><dd>${link}</dd></div></dl>\n${found}`
}

/** Returns the steps. The part of a text after its first `: ` or `, ` has a line of its own. */
const timeline = ({ rows }: TableData): Html[] =>
  [...(rows as Iterable<Step>)].map(({ at, by, what, result }) => {
    const [head, ...details] = [...what.split(/(?:: |, )(.*)/s), by && `by ${by}`].filter((part) => part)
    return html`<li class="${result}"><span>${withIds(head ?? '')}<small>${withIds(details.join(' · '))}</small></span> <small>${toIstText(at)}</small></li>\n`
  })

/** Returns a text in which an orderId or refundId may wrap, and a click selects it. */
const withIds = (text: string) =>
  text
    .split(/\b([0-9a-f]{32})\b/)
    .map((part, index) => (index % 2 ? html`<span class="id">${part}</span>` : withUtrs(part)))

const openOf = ({ rows }: TableData) =>
  [...(rows as Iterable<PaymentException>)].filter(({ resolution }) => resolution === null)

/** Returns links to the usual change of each open exception, which precede the changes of the order. */
const ofExceptions = (exceptions: TableData, view: OperatorView): Html[] =>
  openOf(exceptions).flatMap((exception) => {
    const { kind, id } = exception
    const [usual] = changesOf(view, 'exception', exceptions.cells(exception))
    return usual ? [changeLink(usual, { exception: id }, view, ` ${kind}`)] : []
  })

/** Returns the open exceptions, each with the operator's next step and links to the changes that resolve it. */
export const openExceptions = (exceptions: TableData, view: OperatorView): Html[] =>
  openOf(exceptions).map((exception) => {
    const cells = exceptions.cells(exception)
    const { kind, amount, utr, receivedAt } = exception
    return html`<section class="card warning"><p><strong>${kind}${amount === null ? undefined : ` of ${toIndianRupees(amount)}`}</strong> · open ${ageText(receivedAt, view.now)}</p>
<p>${withLinks(cellText(cells.nextStep), view)}${utr && html` UTR ${withUtrs(utr)}`}</p>
<p class="actions">${changeLinks({ exception: exception.id }, cells, view)}</p></section>\n`
  })
