import type { Failure } from '../../errors.ts'
import { textOn } from '../../platform/contrast.ts'
import { type Html, html, trustedHtml } from '../../platform/html.ts'
import { toIndianText } from '../../platform/money.ts'
import type { Checkout } from '../payments/intents.ts'
import { helpLink, hostOf } from './contact.ts'
import { logoAddress } from './logo.ts'
import { isFinal, type PageState, pageState, stateKey, type Visit } from './page-state.ts'
import {
  brandColour,
  brandStyle,
  CSS,
  DEFAULT_COLOUR,
  JS,
  pageHeaders,
  responseStyle,
  secondsLeft,
} from './page-style.ts'
import { type SandboxOptions, sandboxBar } from './sandbox-bar.ts'
import { LANGUAGE_NAMES, type Language, otherLanguage, type PageTexts, TEXTS, textsFor } from './texts.ts'
import { attributeIf, type Drawing, details, fill, orderNumber, SIGNS, sign, tabTitleOf, viewOf } from './views.ts'

/** Seconds after which a page without JavaScript reloads itself. A page in a final state does not reload. */
const RELOAD_SECONDS: { [state in PageState['name']]?: number } = {
  open: 5,
  waiting: 5,
  attemptFailed: 5,
  amountMismatch: 15,
  closed: 15,
  timeUp: 15,
}

/** Everything that a page depends on besides its checkout. */
type PageOptions = Omit<Drawing, 'state' | 'linkTo'> & SandboxOptions & { visit: Visit; publicUrl: string }

/** Returns a pay page, without customer data. Its links to the service are relative to /pay/. */
export function drawPayPage(
  checkout: Checkout,
  options: PageOptions,
): { headers: Record<string, string>; body: string } {
  const { now, texts, visit, app, requestedLanguage, publicUrl, isPhone } = options
  const { orderId, payee, expiresAt } = checkout
  const state = pageState(checkout, now, visit)
  const { openedAppAt, unpaidAttemptAt } = visit
  const own = { back: openedAppAt?.getTime(), app, again: unpaidAttemptAt?.getTime(), lang: requestedLanguage }
  const linkTo = (changes: Record<string, string | number | undefined>) => orderId + queryOf({ ...own, ...changes })
  const drawing: Drawing = { ...options, state, linkTo }
  const style = responseStyle(checkout, now)
  const reload = RELOAD_SECONDS[state.name]
  // `reload` distinguishes a page that reloads itself without JavaScript from a customer who reloads it.
  const content = `${reload}; url=${queryOf({ ...own, reload: '' })}`
  const refresh = reload ? html`<noscript><meta http-equiv="refresh" content="${content}"></noscript>` : undefined
  const { totalSeconds } = secondsLeft(checkout, now)
  const title = `${tabTitleOf(checkout, drawing)} · ${payee.name}`
  // The element with role=status is outside of the view that the script replaces, because screen readers announce only
  // changes of an existing element.
  const body = html`${head(
    texts,
    title,
    html`${refresh}${preview(checkout, texts, publicUrl)}
<style>${trustedHtml(style)}</style>`,
  )}
<body class="${isPhone ? 'phone' : 'desktop'}" data-events="${orderId}/events">
${sandboxBar(checkout, drawing, options)}
<main>
${band(checkout, drawing)}
<div class="side">
<div role="status"><p class="note lost" hidden>${texts.lost}</p>
<p class="note hint" data-nothing-opened="${texts.nothingOpened}" hidden></p></div>
<div class="view" data-state="${state.name}" data-key="${stateKey(checkout, now)}" data-now="${now.getTime()}" data-expires="${expiresAt.getTime()}" data-seconds="${totalSeconds}"${attributeIf(isFinal(state), 'data-final')}>
${viewOf(checkout, drawing)}
</div>
${isPhone ? details(checkout, texts) : undefined}
<footer><span>${processedBy(checkout, texts)}</span>${helpLink(checkout.brand, texts)}</footer>
</div>
</main>
<script>${trustedHtml(JS)}</script>
</body>
</html>
`
  return { headers: pageHeaders(texts, style), body: body.toString() }
}

/** The query of a page's own address, without parameters that are undefined; `?` alone if there is none. */
function queryOf(parameters: Record<string, string | number | undefined>): string {
  const set = Object.entries(parameters).filter(([, value]) => value !== undefined)
  return `?${set.map(([name, value]) => (value === '' ? name : `${name}=${encodeURIComponent(String(value))}`)).join('&')}`
}

/** The merchant's header: logo, name, website, amount and what is paid. */
function band(checkout: Checkout, { texts, isPhone, linkTo }: Drawing): Html {
  const { payee, amount, note, brand } = checkout
  const number = html`<bdi>${orderNumber(checkout)}</bdi>`
  const language = otherLanguage(texts)
  const website = brand.website === null ? undefined : html`<p class="site"><bdi>${hostOf(brand.website)}</bdi></p>`
  const facts = html`<dl><div><dt>${texts.order}</dt><dd>${number}</dd></div>
<div><dt>${texts.appShows}</dt><dd><bdi>${payee.name}</bdi></dd></div>
<div><dt>${texts.upiAddress}</dt><dd><bdi>${payee.vpa}</bdi></dd></div></dl>`
  const about = html`<div class="about"><p class="cut"><bdi>${note}</bdi></p><p class="cut number">${texts.order} ${number}</p></div>`
  return html`<header>
<div class="merchant">${logo(checkout)}<div class="names"><h1><bdi>${payee.name}</bdi></h1>${website}</div>
${languageLink(linkTo({ lang: language }), language)}</div>
<div class="due"><p class="amount">${toIndianText(amount)}</p>${isPhone ? about : html`<p class="about"><bdi>${note}</bdi></p>`}</div>
${isPhone ? undefined : facts}
</header>`
}

/** The logo, or the name's initials in a tile. */
function logo({ orderId, brand, payee }: Checkout): Html {
  const address = logoAddress(orderId, brand)
  if (address !== undefined) return html`<img class="logo" src="${address}" alt="" width="40" height="40">`
  return html`<span class="logo" aria-hidden="true">${initials(payee.name)}</span>`
}

/** The first characters of the first two words: `CP` for `Chai Point`. Without words, the first character. */
function initials(name: string): string {
  const words = name.split(/[^\p{L}\p{M}\p{N}]+/u).filter((word) => word !== '')
  return (words.length === 0 ? [name] : words)
    .slice(0, 2)
    .map((word) => /^.\p{M}*/u.exec(word)?.[0].toUpperCase() ?? '')
    .join('')
}

/** What other programs show when the page's address is shared: the merchant, no amount, nothing of the customer. */
function preview(checkout: Checkout, texts: PageTexts, publicUrl: string): Html {
  const { orderId, payee, brand } = checkout
  const address = logoAddress(orderId, brand)
  const image =
    address === undefined ? undefined : html`<meta property="og:image" content="${publicUrl}/pay/${address}">\n`
  return html`<link rel="icon" href="${address ?? initialIcon(checkout)}">
<meta property="og:title" content="${fill(texts.payMerchant, { name: payee.name })}">
<meta property="og:type" content="website">
${image}`
}

/** A favicon with the name's first letter on the brand's colour. */
function initialIcon(checkout: Checkout): string {
  const colour = brandColour(checkout)
  const letter = [...initials(checkout.payee.name)][0] ?? ''
  const svg = html`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="${colour}"/><text x="16" y="22" font-size="18" font-family="sans-serif" font-weight="700" text-anchor="middle" fill="${textOn(colour)}">${letter}</text></svg>`
  return `data:image/svg+xml,${encodeURIComponent(svg.toString())}`
}

const ACQUIRER_NAMES: Record<string, string> = { setu: 'Setu', cashfree: 'Cashfree', phonepe: 'PhonePe' }

/** Who processes the payment: the merchant's own bank, or the acquirer of the link. */
function processedBy({ paymentLink }: Checkout, texts: PageTexts): Html {
  const acquirer = ACQUIRER_NAMES[paymentLink?.acquirer.split(':')[0] ?? '']
  return acquirer === undefined ? html`${texts.paidDirectly}` : fill(texts.processedBy, { acquirer })
}

/** The page for an error: in the customer's language if TEXTS has the error's text, otherwise in English. */
export function errorPage({ code, message }: Failure, acceptLanguage: string | undefined, requestedLanguage?: unknown) {
  const isOurs = code in TEXTS
  const texts = textsFor(isOurs ? acceptLanguage : undefined, isOurs ? requestedLanguage : undefined)
  const text = isOurs ? texts[code as keyof typeof TEXTS] : message
  const isUnknown = code === 'order_not_found'
  const next = isUnknown ? html`<p>${texts.notFoundNext}</p>` : undefined
  const language = otherLanguage(texts)
  const style = brandStyle(DEFAULT_COLOUR)
  const extra = html`<link rel="icon" href="data:,">\n<style>${trustedHtml(style)}</style>`
  const body = html`${head(texts, texts.payment, extra)}
<body class="desktop">
<main>
<header><div class="merchant"><p class="names">${texts.payment}</p>${isOurs ? languageLink(`?lang=${language}`, language) : undefined}</div></header>
<div class="side"><div class="view"><section class="card failed">${sign(isUnknown ? '' : 'warn', SIGNS.mark)}<h1 class="message">${text}</h1>
${next}</section></div></div>
</main>
</body>
</html>
`
  return { headers: pageHeaders(texts, style), body: body.toString() }
}

/** The link to the page in its other language. */
function languageLink(href: string, language: Language): Html {
  return html`<a class="lang" href="${href}" lang="${language}" hreflang="${language}">${LANGUAGE_NAMES[language]}</a>`
}

function head(texts: PageTexts, title: string, extra?: Html): Html {
  return html`<!doctype html>
<html lang="${texts.language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex, nofollow">
<title>${title}</title>
<style>${trustedHtml(CSS)}</style>
${extra}
</head>`
}
