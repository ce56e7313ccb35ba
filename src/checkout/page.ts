import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { toIstText } from '../payments/ist.ts'
import type { Checkout } from '../payments/repository.ts'
import { upiLinks } from '../payments/upi-links.ts'

/** What a customer is shown. A failed payment may still be paid, and an expired one may have been: see PaymentWatch. */
export type PageState = 'open' | 'paid' | 'failed' | 'expired'

export function pageState({ status, expiresAt }: Pick<Checkout, 'status' | 'expiresAt'>, now: Date): PageState {
  if (status === 'SUCCESS') return 'paid'
  if (status !== 'PENDING') return 'failed'
  return now >= expiresAt ? 'expired' : 'open'
}

const CSS = readFileSync(new URL('./page/page.css', import.meta.url), 'utf8')
const JS = readFileSync(new URL('./page/page.js', import.meta.url), 'utf8')
const hashOf = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

/** The headers of every page: nothing from elsewhere, nothing inline but our own style and script, no frame, no trace. */
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
} as const

/** The pay page of one intent. It holds nothing of the customer, and every address in it is relative to /pay/. */
export function payPage(checkout: Checkout, { now, sandbox }: { now: Date; sandbox: boolean }): string {
  const { orderId, payee, amount, note, redirectUrl, expiresAt } = checkout
  const state = pageState(checkout, now)
  const links = upiLinks(checkout)
  const back = escapeHtml(redirectUrl)
  const name = `<bdi>${escapeHtml(payee.name)}</bdi>`
  const part = (of: PageState, title: string, body: string) =>
    `<section class="${of}" data-state="${of}" data-title="${title}"${of === state ? '' : ' hidden'}>${body}</section>`
  const message = (of: PageState, sign: string, title: string, text: string, link: string) =>
    part(
      of,
      title,
      `<div class="sign" aria-hidden="true">${sign}</div><h2 tabindex="-1">${title}</h2><p class="quiet">${text}</p><a class="button first" href="${back}">${link}</a>`,
    )
  const openPart = `<div class="on-desktop"><img class="qr" src="${orderId}/qr.svg" alt="QR code for paying ₹${groupIndian(amount)} with a UPI app" width="304" height="304"><p>Scan with any UPI app</p></div>
<ul class="apps on-phone">
<li><a class="button first" href="${escapeHtml(links.intent)}">Pay with a UPI app</a></li>
<li><a class="button" href="${escapeHtml(links.gpay)}">Google Pay</a></li>
<li><a class="button" href="${escapeHtml(links.phonepe)}">PhonePe</a></li>
<li><a class="button" href="${escapeHtml(links.paytm)}">Paytm</a></li>
</ul>
<p class="quiet left" aria-live="off">Pay before ${toIstText(expiresAt).slice(11, 16)} Indian time</p>
${sandbox ? sandboxForm(orderId) : ''}`
  // Without JavaScript the page learns of the payment by being loaded again, and leaves by itself when it is paid.
  const refresh = { open: '5', paid: `2;url=${back}`, failed: '', expired: '' }[state]
  return `${head(state === 'open' ? 'Pay' : 'Payment', refresh && `<noscript><meta http-equiv="refresh" content="${refresh}"></noscript>`)}
<body data-state="${state}" data-now="${now.getTime()}" data-expires="${expiresAt.getTime()}" data-events="${orderId}/events">
<main>
<h1>Pay ${name}</h1>
<p class="amount">₹${groupIndian(amount)}</p>
<p class="note"><bdi>${escapeHtml(note)}</bdi></p>
<div aria-live="polite">
${
  // The others are there for the script to show; nothing leads back to this one.
  state === 'open' ? part('open', 'Pay', openPart) : ''
}
${message('paid', '✓', 'Paid', 'Taking you back to the merchant.', 'Continue')}
${message('failed', '!', 'Payment failed', 'If money was taken, the bank returns it. You can try again from the merchant’s page.', 'Back to the merchant')}
${message('expired', '–', 'Time is up', 'Please do not pay any more. If you have just paid, wait here: it still counts.', 'Back to the merchant')}
</div>
</main>
<script>${JS}</script>
</body>
</html>
`
}

function sandboxForm(orderId: string): string {
  return `<form class="sandbox" method="post" action="${orderId}/simulate">
<p><strong>Sandbox</strong> · no money moves</p>
<button class="button" name="status" value="SUCCESS">Simulate payment</button>
<button class="button" name="status" value="FAIL">Simulate a failure</button>
</form>`
}

/** What a customer reads where there is no payment to show. */
export function messagePage(text: string): string {
  return `${head('Payment', '')}
<body>
<main>
<h2>${escapeHtml(text)}</h2>
</main>
</body>
</html>
`
}

function head(title: string, extra: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex, nofollow">
<link rel="icon" href="data:,">
<title>${title}</title>
${extra}
<style>${CSS}</style>
</head>`
}

/** 100000 is 1,00,000: after the thousands, India groups by two. */
function groupIndian(rupees: number): string {
  return String(rupees).replace(/(\d)(?=(\d\d)+\d$)/g, '$1,')
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`)
}
