import type * as z from 'zod'
import { type Html, html } from '../../platform/html.ts'
import { toIndianText } from '../../platform/money.ts'
import { FAILURE_REASONS } from '../payments/failure-reasons.ts'
import type { Checkout } from '../payments/intents.ts'
import type { Refund } from '../refunds/refund.ts'
import { isPayable } from './page-state.ts'
import type { Simulation } from './simulate.ts'
import type { PageTexts } from './texts.ts'
import { type Drawing, fill } from './views.ts'

type SimulatedStatus = z.output<typeof Simulation>['status']

const OUTCOMES = [
  'SUCCESS',
  'FAIL',
  'REJECT',
  'OTHER_AMOUNT',
  'EXPIRE',
  'END',
  'CANCEL',
  'LATE',
  'TWICE',
] satisfies SimulatedStatus[]

export type SandboxOptions = {
  sandbox: boolean
  /** The refunds of the order that a sandbox can complete. */
  sandboxRefunds: readonly Refund[]
  /** The language that the page's address requests; undefined if the browser's is used. */
  requestedLanguage: string | undefined
}

/**
 * The bar on top of a sandbox's pay pages, whose forms produce each state of the page.
 */
export function sandboxBar(
  checkout: Checkout,
  { now, texts, linkTo }: Drawing,
  { sandbox, sandboxRefunds, requestedLanguage: lang }: SandboxOptions,
): Html | undefined {
  if (!sandbox) return undefined
  const open = sandboxRefunds.filter(({ endedAt }) => endedAt === null)
  const action = `${checkout.orderId}/simulate${lang === undefined ? '' : `?lang=${lang}`}`
  const label = html`<strong>${texts.sandbox}</strong>: ${texts.noMoney}`
  const payment = checkout.status === 'SUCCESS' || checkout.status === 'CANCELLED' ? undefined : paymentForm()
  if (payment === undefined && open.length === 0) return html`<aside class="test"><p class="label">${label}</p></aside>`
  return html`<aside class="test"><details><summary>${label} · <u>${texts.simulate}</u></summary>
${payment}${open.map((refund) => refundForm(refund, action, texts))}</details></aside>`

  function paymentForm(): Html {
    const button = (status: SimulatedStatus) =>
      html`<button class="button" name="status" value="${status}">${texts[`simulate${status}`]}</button>\n`
    const returned = isPayable(checkout, now)
      ? html`<a class="button" href="${linkTo({ back: now.getTime(), app: 'PhonePe' })}">${texts.simulateReturn}</a>`
      : undefined
    return html`<form class="sandbox" aria-label="${texts.sandbox}" method="post" action="${action}">
<div class="outcomes">${OUTCOMES.map(button)}${returned}</div>
<label>${texts.simulatedReason} <select name="reason">${FAILURE_REASONS.map((reason) => html`<option>${reason}</option>`)}</select></label>
</form>`
  }
}

/** The form that completes an open refund, which the merchant has requested through the interface. */
function refundForm({ refundId, amount }: Refund, action: string, texts: PageTexts): Html {
  const refund = fill(texts.refundOf, { refund: refundId, amount: toIndianText(amount) })
  const button = (status: 'SUCCESS' | 'FAIL') =>
    html`<button class="button" name="status" value="${status}">${texts[`refund${status}`]}</button>\n`
  return html`<form class="sandbox" aria-label="${refund}" method="post" action="${action}">
<p>${refund}</p>
<input type="hidden" name="refund_id" value="${refundId}">
<div class="outcomes">${button('SUCCESS')}${button('FAIL')}</div>
</form>`
}
