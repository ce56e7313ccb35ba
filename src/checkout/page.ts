import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type * as z from 'zod'
import { type Html, html, trustedHtml } from '../html.ts'
import { toIstText } from '../ist.ts'
import { toIndianText } from '../money.ts'
import type { Checkout } from '../payments/intents.ts'
import { isGivenUp } from '../payments/outcome.ts'
import { type Platform, upiLinkQuery, type WalletLink, walletLinks } from '../payments/upi-links.ts'
import type { Simulation } from './simulate.ts'

/**
 * What a customer is shown. In `open` and `attemptFailed` the intent can be paid. In `timeUp` it has expired, and the bank may
 * still report a payment for some minutes. The others are final.
 */
export type PageState = 'open' | 'attemptFailed' | 'timeUp' | 'paid' | 'failed' | 'expired' | 'cancelled'

const FINAL: readonly PageState[] = ['paid', 'failed', 'expired', 'cancelled']

export function isFinal(state: PageState): boolean {
  return FINAL.includes(state)
}

/** The stored status of an unpaid intent is that of its last attempt; until expiry the customer may try again. */
export function pageState({ status, expiresAt }: Pick<Checkout, 'status' | 'expiresAt'>, now: Date): PageState {
  if (status === 'SUCCESS') return 'paid'
  if (status === 'CANCELLED') return 'cancelled'
  if (now < expiresAt) return status === 'PENDING' ? 'open' : 'attemptFailed'
  if (!isGivenUp(expiresAt, now)) return 'timeUp'
  return status === 'PENDING' ? 'expired' : 'failed'
}

/** Whether the customer can pay now. */
export function isPayable(state: PageState): state is 'open' | 'attemptFailed' {
  return state === 'open' || state === 'attemptFailed'
}

const CSS = readFileSync(new URL('./page/page.css', import.meta.url), 'utf8')
const JS = readFileSync(new URL('./page/page.js', import.meta.url), 'utf8')
const hashOf = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

/** Headers of every page: only our own style and script, no frames, no Referer, no search engines. */
export const PAGE_HEADERS = {
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
  vary: 'user-agent',
} as const

/** Without JavaScript: seconds until the page is loaded again, or, once paid, until it leads back to the merchant. */
const RELOAD_SECONDS = {
  open: 5,
  attemptFailed: 5,
  timeUp: 15,
  paid: 3,
  failed: undefined,
  expired: undefined,
  cancelled: undefined,
} as const

/** What a page is drawn for. */
type Drawing = { now: Date; sandbox: boolean; platform: Platform }

/** The pay page of one intent. It holds nothing of the customer, and every address in it is relative to /pay/. */
export function payPageText(checkout: Checkout, { now, sandbox, platform }: Drawing): string {
  const { orderId, merchantOrderId, payee, amount, note, redirectUrl, expiresAt, utr } = checkout
  const state = pageState(checkout, now)
  const name = html`<bdi>${payee.name}</bdi>`
  const reload = RELOAD_SECONDS[state]
  const refresh = reload
    ? html`<noscript><meta http-equiv="refresh" content="${reload}${state === 'paid' ? `;url=${redirectUrl}` : ''}"></noscript>`
    : undefined
  const outcome = (of: keyof typeof OUTCOMES, more?: Html) => {
    const { title, text, sign } = OUTCOMES[of]
    return html`<section class="${of}" data-state="${of}" data-title="${pageTitle(title, payee.name)}"${attributeIf(isFinal(of), 'data-final')}${hiddenIf(of !== state)}><svg class="sign" viewBox="0 0 24 24" aria-hidden="true"><path d="${sign}"/></svg><h2 tabindex="-1">${title}</h2>${more}<p class="quiet">${text}</p></section>`
  }
  const title = isPayable(state) ? PAY_TITLE : OUTCOMES[state].title
  // The element with role=status is always there: screen readers announce what appears inside it later.
  return html`${head(pageTitle(title, payee.name), refresh)}
<body data-state="${state}" data-now="${now.getTime()}" data-expires="${expiresAt.getTime()}" data-events="${orderId}/events">
<main class="pay">
<div class="order">
<h1>Payment to ${name}</h1>
<p class="amount">₹${toIndianText(amount)}</p>
<p class="quiet"><bdi>${note}</bdi></p>
<dl>
<div><dt>UPI address</dt><dd><bdi>${payee.vpa}</bdi></dd></div>
<div><dt>Order number</dt><dd><bdi>${merchantOrderId}</bdi></dd></div>
</dl>
</div>
<div role="status"><p class="attempt"${hiddenIf(state !== 'attemptFailed')}>Your last attempt did not go through. You can try again here.</p>
<p class="lost" hidden>No connection. A payment that you have already made is not affected: this page tells you about it as soon as it is connected again.</p></div>
${
  // The script shows the other states; no state leads back to this one.
  title === PAY_TITLE ? openSection(checkout, { now, platform }) : undefined
}
${outcome('paid', html`<p${hiddenIf(utr === null)}>UTR <strong class="utr">${utr ?? ''}</strong></p>`)}
${outcome('failed')}
${outcome('expired')}
${outcome('cancelled')}
${outcome('timeUp')}
${title === PAY_TITLE && sandbox ? sandboxForm(orderId) : undefined}
<a class="button first back" href="${redirectUrl}"${hiddenIf(!isFinal(state))}>Back to ${name}</a>
<a class="unpaid" href="${redirectUrl}"${hiddenIf(isFinal(state))}>Back without paying</a>
</main>
<script>${trustedHtml(JS)}</script>
</body>
</html>
`.toString()
}

const PAY_TITLE = 'Pay'

/** We cannot see the customer's account; the bank and the merchant can. */
const MISSING_MONEY =
  'If money has left your account, keep the reference number (UTR) that your UPI app shows, and ask the merchant or your bank about it.'

/** What a customer reads in each state in which nothing can be paid; `sign` is an SVG path in a square of 24, drawn as a line. */
const OUTCOMES = {
  paid: { title: 'Paid', text: 'Taking you back to the merchant.', sign: 'M6 12.5l4 4 8-9' },
  failed: {
    title: 'Payment failed',
    text: `The last attempt did not go through, and the time is up. ${MISSING_MONEY}`,
    sign: 'M12 6.5v7M12 17.5v0',
  },
  expired: {
    title: 'Not paid in time',
    text: `No payment has arrived. ${MISSING_MONEY}`,
    sign: 'M12 6v6l4 2.5',
  },
  cancelled: {
    title: 'Order closed',
    text: `The merchant has closed this order. Please do not pay any more. ${MISSING_MONEY}`,
    sign: 'M7 7l10 10M17 7L7 17',
  },
  timeUp: {
    title: 'Time is up',
    text: 'Please do not pay any more. If you have just paid, stay here: this page goes on looking for your payment.',
    sign: 'M12 6v6l4 2.5',
  },
} satisfies Record<Exclude<PageState, 'open' | 'attemptFailed'>, { title: string; text: string; sign: string }>

/** A QR for another device to scan, and links that open a wallet on this one; page.css shows what fits the device. */
function openSection(checkout: Checkout, { now, platform }: Pick<Drawing, 'now' | 'platform'>): Html {
  const { orderId, amount, payee, expiresAt } = checkout
  const links = walletLinks(upiLinkQuery(checkout), platform)
  // With loading=lazy a browser does not load the QR where the style hides it.
  const qr = html`<img class="qr" src="${orderId}/qr.svg" alt="QR code to pay ₹${toIndianText(amount)} with a UPI app" width="320" height="320" loading="lazy">`
  const link = ({ app, href }: WalletLink, index: number) => {
    const isFirst = app === 'any' && index === 0
    const text = app === 'any' ? (isFirst ? 'Pay with a UPI app' : 'Another UPI app') : app
    return html`<li><a class="${isFirst ? 'button first' : 'button'}" href="${href}">${text}</a></li>\n`
  }
  return html`<section class="open" data-state="open attemptFailed" data-title="${pageTitle(PAY_TITLE, payee.name)}">
<div class="on-desktop">${qr}<p>Scan with any UPI app</p></div>
<ul class="apps" aria-label="Pay with an app on this device">
${links.map(link)}</ul>
<details class="on-phone"><summary>Show the QR code</summary>${qr}</details>
<p class="quiet left" role="timer">Pay before <time>${istTime(expiresAt, now)}</time> Indian time</p>
<p class="quiet">This page tells you when your payment has arrived.</p>
</section>`
}

const attributeIf = (condition: boolean, name: string) => (condition ? html` ${name}` : undefined)
const hiddenIf = (hidden: boolean) => attributeIf(hidden, 'hidden')

const OTHER_OUTCOMES = {
  FAIL: 'Attempt fails',
  REJECT: 'Attempt is rejected',
  EXPIRE: 'Time is up',
  LATE: 'Pay too late',
  TWICE: 'Pay twice',
  OTHER_AMOUNT: 'Pay ₹1 more',
} satisfies Partial<Record<z.output<typeof Simulation>['status'], string>>

function sandboxForm(orderId: string): Html {
  const button = ([status, text]: string[]) =>
    html`<button class="button" name="status" value="${status}">${text}</button>\n`
  return html`<form class="sandbox" aria-label="Sandbox" method="post" action="${orderId}/simulate">
<p><strong>Sandbox</strong> · no money moves</p>
${button(['SUCCESS', 'Simulate payment'])}<details><summary>Other outcomes</summary>
<div class="outcomes">
${Object.entries(OTHER_OUTCOMES).map(button)}</div>
</details>
</form>`
}

/** What a customer reads where there is no payment to show. */
export function messagePage(text: string): string {
  return html`${head('Payment')}
<body>
<main>
<h1 class="message">${text}</h1>
</main>
</body>
</html>
`.toString()
}

const pageTitle = (title: string, payeeName: string) => `${title} · ${payeeName}`

/** HH:MM in India, after the date where that is not today's. */
function istTime(moment: Date, now: Date): string {
  const [day = '', time = ''] = toIstText(moment).split(' ')
  return `${toIstText(now).startsWith(day) ? '' : `${day} `}${time.slice(0, 5)}`
}

function head(title: string, extra?: Html): Html {
  return html`<!doctype html>
<html lang="en">
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
