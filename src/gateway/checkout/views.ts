import { type Html, html } from '../../platform/html.ts'
import { toIndianText } from '../../platform/money.ts'
import type { Checkout } from '../payments/intents.ts'
import type { SecondPayment } from '../payments/pay-page-facts.ts'
import { sandboxAddress, upiLinkQuery } from '../payments/upi-links.ts'
import type { Refund } from '../refunds/refund.ts'
import { contactLine } from './contact.ts'
import { groupUtr, headlineOf, nextStep, refundsOf, secondPaymentLines, withoutAdvice } from './customer-text.ts'
import type { DeadEnd, PageState } from './page-state.ts'
import { clockText, dateText, dateTimeText, fillText, type PageTexts } from './texts.ts'
import { APPS, browserLink, type Platform, type WalletLink, walletLinks } from './wallet-links.ts'

export type Drawing = {
  now: Date
  texts: PageTexts
  state: PageState
  /** Whether the page is drawn for a phone, whose screen the customer cannot scan. */
  isPhone: boolean
  platform: Platform
  /** The page's own URL, set only in an in-app browser that cannot open UPI apps. */
  browserAddress: string | undefined
  /** The app that the customer opened, if it is known. */
  app: string | undefined
  /** The QR as PNG, if the state shows one. */
  qr: Buffer | undefined
  /** The refunds of all payments of a paid order, oldest first. */
  refunds: readonly Refund[]
  /** The payments of a paid order besides its own, oldest first. */
  secondPayments: readonly SecondPayment[]
  /** Returns the page's own address with other parameters; undefined removes one. */
  linkTo: (changes: Record<string, string | number | undefined>) => string
}

/** The part of the page that depends on the state. It states what happened, where the money is, and what to do next. */
export function viewOf(checkout: Checkout, drawing: Drawing): Html {
  const { state } = drawing
  switch (state.name) {
    case 'open':
      return waysToPay(checkout, drawing)
    case 'waiting':
      return waitingView(checkout, drawing)
    case 'attemptFailed':
      return attemptView(checkout, drawing, state)
    case 'amountMismatch':
      return mismatchView(checkout, drawing, state)
    case 'timeUp':
      return html`${timeUpCard(drawing)}
${leaveLink(checkout, drawing)}`
    case 'closed':
      return closedView(checkout, drawing)
    case 'paid':
    case 'refunded':
      return receipt(checkout, drawing, state.name)
    case 'failed':
    case 'expired':
    case 'cancelled':
      return deadEnd(checkout, drawing, state)
  }
}

/** The title of the page: the headline without the amount, because a share sheet shows the title. */
export function tabTitleOf(checkout: Checkout, drawing: Drawing): string {
  const { state, texts } = drawing
  switch (state.name) {
    case 'attemptFailed':
      return texts[`${state.tone}Tab`]
    case 'amountMismatch':
    case 'paid':
    case 'refunded':
    case 'failed':
    case 'expired':
      return texts[`${state.name}Tab`]
    default:
      return headline(checkout, drawing)
  }
}

const headline = ({ amount, payee }: Checkout, drawing: Drawing) => headlineOf({ amount, name: payee.name }, drawing)

const heading = (checkout: Checkout, drawing: Drawing): Html =>
  html`<h2 tabindex="-1">${headline(checkout, drawing)}</h2>`

/** The merchant's name within a text. */
const nameOf = ({ payee }: Checkout): Html => html`<bdi>${payee.name}</bdi>`

/** The ways to pay: app links on a phone, a QR on a desktop. A page for an in-app browser offers a way out of it. */
function waysToPay(checkout: Checkout, drawing: Drawing, isAfterFailure = false): Html {
  const { now, texts, isPhone, browserAddress, linkTo } = drawing
  const { payee, expiresAt } = checkout
  const level = isAfterFailure ? 3 : 2
  const ways = browserAddress
    ? html`<section class="card open">${wayToBrowser(browserAddress, drawing)}${qrImage(checkout, drawing)}<p class="else">${texts.scanElsewhere}</p></section>`
    : isPhone
      ? html`<section class="card open">${title(level, texts.chooseApp)}${appTiles(checkout, drawing)}</section>
<details class="card show-qr"><summary>${texts.showQr}</summary>${qrImage(checkout, drawing)}</details>`
      : html`<section class="card open"><div class="scan">${title(level, texts.scan)}${qrImage(checkout, drawing)}</div>
${marks()}
<div class="touch">${title(level, texts.chooseApp)}${appTiles(checkout, drawing)}</div></section>`
  const isToday = dateText(texts, expiresAt) === dateText(texts, now)
  const time = html`<time>${isToday ? clockText(texts, expiresAt) : dateTimeText(texts, expiresAt)}</time>`
  // Without JavaScript the page cannot notice that the customer has returned from an app.
  const returned = isPhone
    ? html`<noscript><a class="button" href="${linkTo({ back: now.getTime(), app: undefined })}">${texts.hasPaid}</a></noscript>`
    : undefined
  return html`<div class="ways">
${ways}
<section class="card time">
<p class="left" role="timer" data-time-left="${texts.timeLeft}" data-hours-left="${texts.hoursLeft}" data-days-left="${texts.daysLeft}">${fill(texts.payBefore, { time })}</p>
<div class="bar"><i></i></div>
<p class="quiet">${isPhone ? html`${texts.appShows} <strong>${nameOf(checkout)}</strong> · <bdi>${payee.vpa}</bdi>. ` : undefined}${texts.pageUpdates}</p>
</section>
${returned}
</div>
<div class="time-up" hidden>${timeUpCard(drawing)}</div>
${leaveLink(checkout, drawing, !isAfterFailure)}`
}

const title = (level: number, text: string): Html =>
  level === 2 ? html`<h2 tabindex="-1">${text}</h2>` : html`<h3>${text}</h3>`

/** The app links: six tiles, or one button for an acquirer's sandbox. */
function appTiles(checkout: Checkout, { texts, platform }: Drawing): Html {
  const address = sandboxAddress(checkout)
  if (address) return html`<div class="apps"><a class="button first" href="${address}">${texts.anyApp}</a></div>`
  const tile = ({ app, href }: WalletLink) =>
    app === 'any'
      ? html`<li><a href="${href}"><span class="any" aria-hidden="true" data-letters="•••"></span>${texts.anotherApp}</a></li>\n`
      : html`<li><a href="${href}" data-app="${app}"><span class="${classOf(app)}" aria-hidden="true" data-letters="${LETTERS[app]}"></span>${app}</a></li>\n`
  return html`<ul class="apps">
${walletLinks(upiLinkQuery(checkout), platform).map(tile)}</ul>`
}

/** The apps' marks below the QR, which open nothing. */
function marks(): Html {
  const mark = (app: (typeof APPS)[number]) =>
    html`<span class="${classOf(app)}" data-letters="${LETTERS[app]}"></span>`
  return html`<p class="marks" aria-hidden="true">${APPS.map(mark)}</p>`
}

/** Letters in place of the apps' icons, which are trademarks. */
const LETTERS = { 'Google Pay': 'G', PhonePe: 'पे', Paytm: 'P', BHIM: 'B', CRED: 'C' }

const classOf = (app: string) => app.toLowerCase().replace(' ', '')

/** What the header of a phone's page may cut off. A customer may need it in every state, to ask the merchant. */
export function details(checkout: Checkout, texts: PageTexts): Html {
  const { note, payee } = checkout
  return html`<details class="more"><summary>${texts.details}</summary><dl>
<div><dt>${texts.note}</dt><dd><bdi>${note}</bdi></dd></div>
<div><dt>${texts.order}</dt><dd><bdi>${orderNumber(checkout)}</bdi></dd></div>
<div><dt>${texts.upiAddress}</dt><dd><bdi>${payee.vpa}</bdi></dd></div></dl></details>`
}

function qrImage({ amount }: Checkout, { qr, texts }: Drawing): Html | undefined {
  if (qr === undefined) return undefined
  const alt = fillText(texts.qrCode, { amount: toIndianText(amount) })
  return html`<img class="qr" src="data:image/png;base64,${qr.toString('base64')}" alt="${alt}" width="264" height="264">`
}

/** The way out of an in-app browser: a link where the system supports one, the app's menu, and the URL to copy. */
function wayToBrowser(address: string, { platform, texts }: Drawing): Html {
  const link = html`<h2 tabindex="-1"><a class="button first" href="${browserLink(address)}">${texts.openBrowser}</a></h2>`
  return html`${platform === 'android' ? link : title(2, texts.openBrowser)}
<p>${fill(texts.browserMenu, { browser: platform === 'android' ? 'Chrome' : 'Safari' })}</p>
<p><bdi class="address">${address}</bdi> ${copyButton(texts)}</p>`
}

/** The link back to the merchant while the order is not final. */
function leaveLink(checkout: Checkout, { texts }: Drawing, isUnpaid = false): Html {
  const text = isUnpaid ? texts.backUnpaid : texts.back
  return html`<p class="leave"><a class="unpaid" href="${checkout.redirectUrl}">${fill(text, { name: nameOf(checkout) })}</a></p>`
}

/** The link back to the merchant as the main button. `seconds` leaves space for the countdown of the script. */
function returnButton(checkout: Checkout, { texts }: Drawing, seconds?: Html): Html {
  const name = nameOf(checkout)
  return html`<a class="button first back" href="${checkout.redirectUrl}">${fill(texts.back, { name })}${seconds}</a>`
}

function waitingView(checkout: Checkout, drawing: Drawing): Html {
  const { texts, app, linkTo } = drawing
  const name = nameOf(checkout)
  const opened = app === undefined ? texts.stepAppOpened : fillText(texts.stepOpened, { app })
  return html`<section class="card waiting"><div class="ring"></div>${heading(checkout, drawing)}
<p class="quiet">${texts.enterPin}</p>
<ol class="steps"><li class="done">${opened}</li><li class="now" aria-current="step">${texts.stepBank}</li><li>${fill(texts.stepBack, { name })}</li></ol></section>
<section class="note warn"><h3>${texts.alreadyPaid}</h3><p>${fill(texts.alreadyPaidText, { name, amount: toIndianText(checkout.amount) })}</p></section>
<a class="button" href="${linkTo({ back: undefined, app: undefined })}">${texts.notPaidYet}</a>
${leaveLink(checkout, drawing)}`
}

function attemptView(checkout: Checkout, drawing: Drawing, state: Extract<PageState, { name: 'attemptFailed' }>): Html {
  const { texts, linkTo } = drawing
  const { reason, tone } = state
  const more = tone === 'wait' ? html`<p>${texts.doNotPayAgain}</p>` : undefined
  const tones = { retry: 'bad', wait: 'warn', stop: 'bad' }
  const contact = tone === 'stop' ? contactLine(checkout.brand) : undefined
  const notice = html`<section class="note ${tones[tone]}">${heading(checkout, drawing)}<p class="attempt">${fill(texts[reason], { name: nameOf(checkout) })}</p>${more}${contact}</section>`
  if (state.offersToPay) return html`${notice}\n${waysToPay(checkout, drawing, true)}`
  const again = checkout.attemptedAt?.getTime()
  const confirm = html`<a class="button" href="${linkTo({ again, back: undefined, app: undefined })}">${texts.payAnotherWay}</a>`
  return html`${notice}
${tone === 'wait' ? html`${confirm}\n${leaveLink(checkout, drawing)}` : returnButton(checkout, drawing)}`
}

function mismatchView(
  checkout: Checkout,
  drawing: Drawing,
  { mismatch }: Extract<PageState, { name: 'amountMismatch' }>,
): Html {
  const { texts } = drawing
  return html`<section class="card amountMismatch">${sign('warn', SIGNS.mark)}${heading(checkout, drawing)}
<p>${fill(texts.amountMismatchText, { name: nameOf(checkout) })}</p>
<dl>${utrRow(mismatch.utr, texts)}</dl>${contactLine(checkout.brand)}</section>
${returnButton(checkout, drawing)}`
}

function timeUpCard({ texts }: Drawing): Html {
  return html`<section class="card timeUp">${sign('', SIGNS.clock)}<h2 tabindex="-1">${texts.timeUpTitle}</h2><p>${texts.timeUpText}</p></section>`
}

/** An order of a disabled merchant that was open: a payment may have been made before. */
function closedView(checkout: Checkout, drawing: Drawing): Html {
  const { texts } = drawing
  const name = nameOf(checkout)
  return html`<section class="card closed">${sign('', SIGNS.cross)}${heading(checkout, drawing)}
<p>${fill(texts.closedText, { name })}</p>
<p class="quiet">${fill(texts.missingMoney, { name })}</p>${contactLine(checkout.brand)}</section>
${leaveLink(checkout, drawing)}`
}

function receipt(checkout: Checkout, drawing: Drawing, of: 'paid' | 'refunded'): Html {
  const { texts, refunds, secondPayments } = drawing
  const { paidAt } = checkout
  const utr = checkout.bankReference ?? checkout.utr
  const name = nameOf(checkout)
  const paid =
    paidAt === null
      ? undefined
      : html` · <time datetime="${paidAt.toISOString()}">${dateTimeText(texts, paidAt)}</time>`
  const about = of === 'refunded' ? html`<p>${texts.refundedText}</p>` : undefined
  return html`<section class="card receipt ${of}">${sign('good', of === 'paid' ? SIGNS.tick : SIGNS.back)}${heading(checkout, drawing)}
<p class="quiet">${fill(texts.paidTo, { name })}${paid}</p>${about}
<dl>${utr === null ? undefined : utrRow(utr, texts)}
<div><dt>${texts.order}</dt><dd><bdi>${orderNumber(checkout)}</bdi></dd></div>
${refundsOf(refunds, checkout.utr).map((refund) => refundRow(refund, texts))}</dl>
${secondPayments.map((payment) => secondPaymentNote(payment, refundsOf(refunds, payment.utr), { name, texts }))}${contactLine(checkout.brand)}</section>
<p class="quiet leaving" hidden>${fill(texts.paidText, { name })}</p>
${returnButton(checkout, drawing, html`<span class="seconds" aria-hidden="true"></span>`)}
<div class="pair"><button class="button stay" type="button" hidden>${texts.stay}</button>
<button class="button save" type="button" hidden>${texts.save}</button></div>`
}

function refundRow({ amount, status, endedAt, reference }: Refund, texts: PageTexts): Html {
  const values = { amount: toIndianText(amount), date: endedAt === null ? '' : dateText(texts, endedAt) }
  const text = status === 'SUCCESS' ? fill(texts.refundOn, values) : fill(texts.refundPending, values)
  const utr = reference === '' ? undefined : html` · UTR ${groupUtr(reference)}`
  return html`<div><dt>${texts.refund}</dt><dd>${text}${utr}</dd></div>\n`
}

/** The note of a second payment with its refunds. */
function secondPaymentNote(
  payment: SecondPayment,
  refunds: readonly Refund[],
  { name, texts }: { name: Html; texts: PageTexts },
): Html {
  const lines = secondPaymentLines(payment, refunds, texts)
  const isWarning = lines.some(({ text }) => text === texts.paidTwice)
  return html`<div class="note${isWarning ? ' warn' : ''}">${lines.map(({ text, values }) => html`<p>${fill(text, { ...values, name })}</p>`)}</div>\n`
}

const utrRow = (utr: string, texts: PageTexts): Html =>
  html`<div><dt>${texts.utr}</dt><dd><strong class="utr" data-text="${utr}">${groupUtr(utr)}</strong> ${copyButton(texts)}</dd></div>`

/** A final state without a payment: it keeps the reason and names the next step. */
function deadEnd(checkout: Checkout, drawing: Drawing, state: DeadEnd): Html {
  const { texts } = drawing
  const name = nameOf(checkout)
  const reason =
    state.name === 'failed'
      ? html`<p class="attempt">${fill(withoutAdvice(texts, state.reason), { name })}</p>`
      : undefined
  const { next, money } = nextStep(state, texts, checkout.merchantDisabled)
  const signs = { failed: SIGNS.mark, expired: SIGNS.clock, cancelled: SIGNS.cross }
  return html`<section class="card ${state.name}">${sign(state.name === 'failed' ? 'bad' : '', signs[state.name])}${heading(checkout, drawing)}
${reason}<p>${fill(texts[`${state.name}Text`], { name })} ${fill(next, { name })}</p>
${money && html`<p class="quiet">${fill(money, { name })}</p>`}${contactLine(checkout.brand)}</section>
${returnButton(checkout, drawing)}`
}

/** Signs as SVG paths in a square of 24 units, drawn as lines. */
export const SIGNS = {
  tick: 'M6 12.5l4 4 8-9',
  back: 'M9 7L4 12l5 5M4 12h16',
  mark: 'M12 6.5v7M12 17.5v0',
  clock: 'M12 6v6l4 2.5',
  cross: 'M7 7l10 10M17 7L7 17',
}

export const sign = (tone: string, path: string): Html =>
  html`<svg class="sign ${tone}" viewBox="0 0 24 24" aria-hidden="true"><path d="${path}" pathLength="1"/></svg>`

/** Copies the element before it. Hidden until the script shows it. */
const copyButton = ({ copy, copied }: PageTexts): Html =>
  html`<button class="copy" type="button" data-copied="${copied}" hidden>${copy}</button>`

/**
 * The merchant's order_id, or the service's orderId if there is none. `<wbr>` lets its 32 characters break in the middle
 * on narrow screens.
 */
export const orderNumber = ({ orderId, merchantOrderId }: Checkout): Html =>
  merchantOrderId === orderId ? html`${orderId.slice(0, 16)}<wbr>${orderId.slice(16)}` : html`${merchantOrderId}`

export const attributeIf = (condition: boolean, name: string) => (condition ? html` ${name}` : undefined)

/** Replaces each `{name}` in a text by its value. */
export function fill(text: string, values: Record<string, Html | string>): Html {
  // Odd parts are names, because split also returns the text that the pattern's group matched.
  return html`${text.split(/\{(\w+)\}/).map((part, index) => (index % 2 === 0 ? part : values[part]))}`
}
