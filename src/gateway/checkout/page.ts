import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type * as z from 'zod'
import type { Failure } from '../../errors.ts'
import { COLOURS } from '../../platform/colours.ts'
import { type Html, html, trustedHtml } from '../../platform/html.ts'
import { toIndianText } from '../../platform/money.ts'
import { toIstText } from '../../platform/time.ts'
import { FAILURE_REASONS } from '../payments/failure-reasons.ts'
import type { Checkout } from '../payments/intents.ts'
import { isOver } from '../payments/outcome.ts'
import { sandboxAddress, upiLinkQuery } from '../payments/upi-links.ts'
import type { Refund } from '../refunds/refund.ts'
import type { Simulation } from './simulate.ts'
import { type PageTexts, TEXTS, textsFor } from './texts.ts'
import { browserLink, type Platform, type WalletLink, walletLinks } from './wallet-links.ts'

/**
 * The state that a pay page shows. In `open` and `attemptFailed` the intent can be paid. In `timeUp` the intent has
 * expired, but a payment may still be reported for some minutes. The other states are final.
 */
export type PageState = 'open' | 'attemptFailed' | 'timeUp' | 'paid' | 'refunded' | 'failed' | 'expired' | 'cancelled'

const FINAL: readonly PageState[] = ['paid', 'refunded', 'failed', 'expired', 'cancelled']

export const isFinal = (state: PageState): boolean => FINAL.includes(state)

/** The state of an unpaid intent: it has the status of its last attempt, but can be paid until it expires. */
export function pageState(
  { refunded, ...intent }: Pick<Checkout, 'status' | 'expiresAt' | 'isUnreadable'> & { refunded?: boolean },
  now: Date,
): PageState {
  const { status, expiresAt } = intent
  if (status === 'SUCCESS') return refunded ? 'refunded' : 'paid'
  if (status === 'CANCELLED') return 'cancelled'
  if (now < expiresAt) return status === 'PENDING' ? 'open' : 'attemptFailed'
  if (!isOver(intent, now)) return 'timeUp'
  return status === 'PENDING' ? 'expired' : 'failed'
}

export function isPayable(state: PageState): state is 'open' | 'attemptFailed' {
  return state === 'open' || state === 'attemptFailed'
}

const readPart = (name: string) => withoutComments(readFileSync(new URL(`./page/${name}`, import.meta.url), 'utf8'))
const CSS = (withoutComments(COLOURS) + readPart('page.css'))
  .replace(/\s*([{};,])\s*/g, '$1')
  .replace(/([{;][\w-]+): /g, '$1:')
const JS = readPart('page.js')

/**
 * Removes comments and indentation, so that pages load faster over slow networks. Supports single-line comments only.
 */
function withoutComments(text: string): string {
  return text.replace(/^\s*(?:\/\/.*|\/\*.*\*\/)?\n?/gm, '')
}

const hashOf = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

/** Headers of every page. They allow only the page's own style and script, and forbid frames, Referer and indexing. */
const PAGE_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': [
    "default-src 'none'",
    `style-src ${hashOf(CSS)}`,
    `script-src ${hashOf(JS)}`,
    "img-src 'self' data:",
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'x-frame-options': 'DENY',
  'x-content-type-options': 'nosniff',
  'x-robots-tag': 'noindex, nofollow',
  'referrer-policy': 'no-referrer',
  // The page's texts depend on the language, and its wallet links on the customer's device.
  vary: 'accept-language, user-agent',
} as const

export const pageHeaders = ({ language }: PageTexts) => ({ ...PAGE_HEADERS, 'content-language': language })

/** Seconds after which a page without JavaScript reloads itself. A page in a final state does not reload. */
const RELOAD_SECONDS: { [state in PageState]?: number } = { open: 5, attemptFailed: 5, timeUp: 15 }

/** Everything that a page depends on besides its checkout. `refunds` are the refunds that a sandbox can complete. */
type Drawing = { now: Date; sandbox: boolean; refunds: readonly Refund[]; device: Device; texts: PageTexts }

/** `browserAddress` is the page's own URL, set only in an in-app browser that cannot open UPI apps. */
type Device = { platform: Platform; browserAddress: string | undefined }

/** Returns the HTML of a pay page, without customer data. Its links to the service are relative to /pay/. */
export function payPageText(checkout: Checkout, drawing: Drawing): string {
  const { now, sandbox, refunds, texts } = drawing
  const { orderId, merchantOrderId, payee, amount, note, redirectUrl, expiresAt, utr, failureReason } = checkout
  const state = pageState(checkout, now)
  const name = html`<bdi>${payee.name}</bdi>`
  // The service's orderId has 32 characters; `<wbr>` lets it break in the middle on narrow screens.
  const ours = html`${orderId.slice(0, 16)}<wbr>${orderId.slice(16)}`
  const reload = RELOAD_SECONDS[state]
  // `?reload` distinguishes a page that reloads itself without JavaScript from a customer who reloads it.
  const content = `${reload}; url=?reload`
  const refresh = reload ? html`<noscript><meta http-equiv="refresh" content="${content}"></noscript>` : undefined
  const outcome = (of: EndState, more?: Html) => {
    const { sign, moneyMayBeMissing } = OUTCOMES[of]
    // The text of `paid` announces the redirect to the merchant, so it is hidden until the script starts the redirect.
    const text = `${texts[`${of}Text`]}${moneyMayBeMissing ? ` ${texts.missingMoney}` : ''}`
    return html`<section class="${of}" data-state="${of}"${attributeIf(isFinal(of), 'data-final')}${hiddenIf(of !== state)}><svg class="sign" viewBox="0 0 24 24" aria-hidden="true"><path d="${sign}"/></svg><h2 tabindex="-1">${texts[`${of}Title`]}</h2>${more}<p class="quiet"${hiddenIf(of === 'paid')}>${text}</p></section>`
  }
  const title = isPayable(state) ? texts.pay : texts[`${state}Title`]
  // The element with role=status is always present, because screen readers announce only changes of an existing
  // element.
  return html`${head(texts, `${title} · ${payee.name}`, refresh)}
<body data-state="${state}" data-now="${now.getTime()}" data-expires="${expiresAt.getTime()}" data-events="${orderId}/events">
<main class="pay">
<div class="order">
<h1>${fill(texts.paymentTo, { name })}</h1>
<p class="amount">${toIndianText(amount)}</p>
<p class="quiet"><bdi>${note}</bdi></p>
<dl>
<div><dt>${texts.upiAddress}</dt><dd><bdi>${payee.vpa}</bdi></dd></div>
<div><dt>${texts.orderNumber}</dt><dd><bdi>${merchantOrderId === orderId ? ours : merchantOrderId}</bdi></dd></div>
</dl>
</div>
<div role="status"><p class="attempt"${hiddenIf(state !== 'attemptFailed')}>${texts[failureReason ?? 'other']}</p>
<p class="lost" hidden>${texts.lost}</p>
<p class="hint" data-waiting="${texts.waiting}" data-nothing-opened="${texts.nothingOpened}" hidden></p></div>
${
  // Omits the payment section if the intent can no longer be paid, because it never becomes payable again. The script
  // shows and hides the other sections.
  isPayable(state) ? openSection(checkout, drawing) : undefined
}
${outcome(
  'paid',
  html`<p${hiddenIf(utr === null)}>UTR <strong class="utr">${utr ?? ''}</strong> ${copyButton(texts)}</p>`,
)}
${state === 'refunded' ? outcome('refunded') : undefined}
${outcome('failed')}
${outcome('expired')}
${outcome('cancelled')}
${outcome('timeUp')}
${isPayable(state) && sandbox ? sandboxForm(orderId, texts) : undefined}
${refunds.filter(({ endedAt }) => endedAt === null).map((refund) => refundForm(refund, texts))}
<a class="button first back" href="${redirectUrl}"${hiddenIf(!isFinal(state))}>${fill(texts.back, { name })}</a>
<a class="unpaid" href="${redirectUrl}"${hiddenIf(isFinal(state))}>${texts.backUnpaid}</a>
</main>
<script>${trustedHtml(JS)}</script>
</body>
</html>
`.toString()
}

type EndState = Exclude<PageState, 'open' | 'attemptFailed'>

/**
 * The states in which the intent cannot be paid. `sign` is an SVG path in a square of 24 units, drawn as a line. With
 * `moneyMayBeMissing` the page explains what to do if money has left the customer's account anyway.
 */
const OUTCOMES: Record<EndState, { sign: string; moneyMayBeMissing: boolean }> = {
  paid: { sign: 'M6 12.5l4 4 8-9', moneyMayBeMissing: false },
  refunded: { sign: 'M9 7L4 12l5 5M4 12h16', moneyMayBeMissing: false },
  failed: { sign: 'M12 6.5v7M12 17.5v0', moneyMayBeMissing: true },
  expired: { sign: 'M12 6v6l4 2.5', moneyMayBeMissing: true },
  cancelled: { sign: 'M7 7l10 10M17 7L7 17', moneyMayBeMissing: true },
  timeUp: { sign: 'M12 6v6l4 2.5', moneyMayBeMissing: false },
}

/**
 * The payment section: a QR to scan with another device, and wallet links for this device. page.css shows one or both.
 */
function openSection(checkout: Checkout, { now, device: { platform, browserAddress }, texts }: Drawing): Html {
  const { orderId, amount, expiresAt } = checkout
  const address = sandboxAddress(checkout)
  const links = address ? [{ app: 'any' as const, href: address }] : walletLinks(upiLinkQuery(checkout), platform)
  // With loading=lazy, browsers do not load a QR that page.css hides.
  const qr = html`<img class="qr" src="${orderId}/qr.svg" alt="${fill(texts.qrCode, { amount: toIndianText(amount) })}" width="320" height="320" loading="lazy">`
  const link = ({ app, href }: WalletLink, index: number) => {
    const letters = html`<span aria-hidden="true" data-letters="${app.slice(0, 2)}"></span>`
    const text = app === 'any' ? (index === 0 ? texts.anyApp : texts.anotherApp) : html`${letters}${app}`
    return html`<li><a class="${index === 0 ? 'button first' : 'button'}" href="${href}">${text}</a></li>\n`
  }
  const ways = html`<div class="on-desktop">${qr}<p>${texts.scan}</p></div>
<ul class="apps" aria-label="${texts.apps}">
${links.map(link)}</ul>
<details class="on-phone"><summary>${texts.showQr}</summary>${qr}</details>`
  return html`<section class="open" data-state="open attemptFailed">
${browserAddress ? html`${wayToBrowser(browserAddress, platform, texts)}${qr}<p>${texts.scanElsewhere}</p>` : ways}
<p class="quiet left" role="timer" data-time-left="${texts.timeLeft}" data-hours-left="${texts.hoursLeft}">${fill(texts.payBefore, { time: html`<time>${istTime(expiresAt, now)}</time>` })}</p>
<p class="quiet">${texts.pageUpdates}</p>
</section>`
}

/** The way out of an in-app browser: a link where the system supports one, the app's menu, and the URL to copy. */
function wayToBrowser(address: string, platform: Platform, texts: PageTexts): Html {
  const link = html`<a class="button first" href="${browserLink(address)}">${texts.openBrowser}</a>`
  return html`${platform === 'android' ? link : html`<p><strong>${texts.openBrowser}</strong></p>`}
<p>${fill(texts.browserMenu, { browser: platform === 'android' ? 'Chrome' : 'Safari' })}</p>
<p><bdi class="address">${address}</bdi> ${copyButton(texts)}</p>`
}

/** A button that copies the text of the preceding element. Hidden until the script shows it. */
const copyButton = ({ copy, copied }: PageTexts) =>
  html`<button class="button copy" data-copied="${copied}" hidden>${copy}</button>`

const attributeIf = (condition: boolean, name: string) => (condition ? html` ${name}` : undefined)
const hiddenIf = (hidden: boolean) => attributeIf(hidden, 'hidden')

const OTHER_OUTCOMES = ['FAIL', 'REJECT', 'EXPIRE', 'LATE', 'TWICE', 'OTHER_AMOUNT'] satisfies SimulatedStatus[]

type SimulatedStatus = z.output<typeof Simulation>['status']

function sandboxForm(orderId: string, texts: PageTexts): Html {
  const button = (status: SimulatedStatus) =>
    html`<button class="button" name="status" value="${status}">${texts[`simulate${status}`]}</button>\n`
  return html`<form class="sandbox" aria-label="${texts.sandbox}" method="post" action="${orderId}/simulate">
<p><strong>${texts.sandbox}</strong> · ${texts.noMoney}</p>
${button('SUCCESS')}<details><summary>${texts.otherOutcomes}</summary>
<div class="outcomes">
${OTHER_OUTCOMES.map(button)}<label>${texts.simulatedReason} <select name="reason">${FAILURE_REASONS.map((reason) => html`<option>${reason}</option>`)}</select></label></div>
</details>
</form>`
}

function refundForm({ orderId, refundId, amount }: Refund, texts: PageTexts): Html {
  const refund = fill(texts.refundOf, { refund: refundId, amount: toIndianText(amount) })
  const button = (status: 'SUCCESS' | 'FAIL') =>
    html`<button class="button" name="status" value="${status}">${texts[`refund${status}`]}</button>\n`
  return html`<form class="sandbox" aria-label="${refund}" method="post" action="${orderId}/simulate">
<p><strong>${texts.sandbox}</strong> · ${refund}</p>
<input type="hidden" name="refund_id" value="${refundId}">
<div class="outcomes">${button('SUCCESS')}${button('FAIL')}</div>
</form>`
}

/** The page for an error: in the customer's language if TEXTS has the error's text, otherwise in English. */
export function errorPage({ code, message }: Failure, acceptLanguage: string | undefined) {
  const isOurs = code in TEXTS
  const texts = textsFor(isOurs ? acceptLanguage : undefined)
  const text = isOurs ? texts[code as keyof typeof TEXTS] : message
  const body = html`${head(texts, texts.payment)}
<body>
<main>
<h1 class="message">${text}</h1>
</main>
</body>
</html>
`
  return { headers: pageHeaders(texts), body: body.toString() }
}

/** Replaces each `{name}` in a text by its value. */
function fill(text: string, values: Record<string, Html | string>): Html {
  // Odd parts are names, because split also returns the text that the pattern's group matched.
  return html`${text.split(/\{(\w+)\}/).map((part, index) => (index % 2 === 0 ? part : values[part]))}`
}

/** Formats a time as HH:MM in IST, preceded by the date unless it is today. */
function istTime(moment: Date, now: Date): string {
  const [day = '', time = ''] = toIstText(moment).split(' ')
  return `${toIstText(now).startsWith(day) ? '' : `${day} `}${time.slice(0, 5)}`
}

function head(texts: PageTexts, title: string, extra?: Html): Html {
  return html`<!doctype html>
<html lang="${texts.language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex, nofollow">
<link rel="icon" href="data:,">
<title>${title}</title>
${extra}
<style>${trustedHtml(CSS)}</style>
</head>`
}
