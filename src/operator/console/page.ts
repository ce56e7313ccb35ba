import type { RecentBalance } from '../../books/reconciliation/recent-balance.ts'
import { type Html, html } from '../../platform/html.ts'
import { counted, toIndianDigits, toIndianRupees, toIndianText } from '../../platform/money.ts'
import { toIstDay, toIstText, toIstTime } from '../../platform/time.ts'
import { add, conversionOf, NO_ORDERS, type OrderCounts } from '../monitoring/order-counts.ts'
import { countOpen, type Overview } from '../monitoring/overview.ts'
import {
  agesText,
  ageText,
  importText,
  nextAcquirerText,
  openDifferencesText,
  recentBalanceText,
  refundsText,
  returnUrlCallbacksText,
  shareText,
  webhookText,
} from '../texts.ts'
import { type Bar, plot } from './plot.ts'

/** An IST day or hour that starts at `begins`. `counts` is undefined until its orders are counted. */
export type Counted = { begins: Date; counts: OrderCounts | undefined }

type PageOfToday = {
  now: Date
  /** Counts for each hour of today so far, oldest first. */
  hours: readonly Counted[]
  /** Counts for each of the last days, including today. */
  days: readonly Counted[]
  /** Whether the last count of orders failed. The next refresh counts again. */
  failed: boolean
  overview: Overview
  balance: RecentBalance | undefined
  /** Warnings about settings, each in one sentence. */
  warnings: readonly string[]
  publicUrl: string
  /** Seconds until the page refreshes itself; undefined if the operator has turned the refresh off. */
  refreshSeconds: number | undefined
}

/**
 * Returns the operator dashboard and its `refresh` header. The page contains no customer data. Its links are relative,
 * because a proxy may serve the page under a path.
 */
export function pageOfToday({ now, hours, days, failed, publicUrl, refreshSeconds, ...open }: PageOfToday) {
  const today = hours.reduce((sum, { counts }) => add(sum, counts ?? NO_ORDERS), NO_ORDERS)
  const missing = [...hours, ...days].some(({ counts }) => counts === undefined)
  const page = document(html`<main class="guide overview" id="text">
<h1>Today</h1>
<p>${toIstTime(now)}. ${refreshLine(refreshSeconds)}</p>
${missing ? html`<p role="status" class="note">${failed ? NOT_COUNTED : COUNTING}</p>` : undefined}
<div class="columns">
<section class="needs" aria-labelledby="open">
<h2 id="open">Needs attention</h2>
${needs(open, now)}
</section>
<div class="numbers">
<section aria-labelledby="orders">
<h2 id="orders">Orders created today</h2>
${tiles(today)}
<h3>By hour</h3>
${graph(hours, { name: hourName, unit: 'hour', label: 'Today’s orders by hour, with the number paid' })}
</section>
<section aria-labelledby="days">
<h2 id="days">Last ${days.length} days</h2>
${graph(days, { name: dayName, unit: 'day', label: `Orders of the last ${days.length} days, with the number paid` })}
</section>
<section aria-labelledby="service">
<h2 id="service">Service</h2>
${facts(open, now)}
<h3>Guides</h3>
<ul>
<li><a href="docs">Operator manual</a></li>
<li><a href="${publicUrl}/docs">API guides</a> for merchants, partners and acquirers (public)</li>
<li><a href="metrics">Metrics</a> for Prometheus</li>
</ul>
</section>
</div>
</div>
</main>`)
  return { page, refresh: refreshSeconds?.toString() }
}

const COUNTING = 'Counting orders. Missing figures follow, newest first.'
const NOT_COUNTED =
  'The database could not count the missing figures. The service retries in 30 seconds; see its log for the cause.'

/** Returns a page with only a title and a text, for a rejected request or an unavailable dashboard. */
export function messagePage(title: string, text: string): string {
  return document(html`<main class="guide" id="text">
<h1>${title}</h1>
<p>${text}</p>
</main>`)
}

function document(body: Html): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Today · UPI payments</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="docs/guide.css">
<link rel="stylesheet" href="docs/operator.css">
</head>
<body>
<a class="skip" href="#text">Skip to content</a>
<header class="site"><nav aria-label="Pages"><a class="brand" href="." aria-current="page">UPI payments</a>
<a href="docs">Manual</a></nav></header>
${body}
</body>
</html>
`.toString()
}

const refreshLine = (seconds: number | undefined): Html =>
  seconds === undefined
    ? html`<a href=".">Refresh automatically</a>`
    : html`This page refreshes every ${seconds} seconds. <a href="?refresh=off">Stop refreshing</a>`

function tiles(all: OrderCounts): Html {
  const tile = (name: string, value: string, beside?: string) =>
    html`<div><dt>${name}</dt><dd>${value}${beside === undefined ? undefined : html` <small>${beside}</small>`}</dd></div>\n`
  return html`<dl class="tiles">
${tile('Orders', toIndianDigits(all.orders), toIndianText(all.paise))}
${tile('Paid', toIndianDigits(all.paid), toIndianText(all.paidPaise))}
${tile('Conversion', conversionText(all), 'of orders with a final status')}
${tile('Waiting', toIndianDigits(all.waiting))}
${tile('Failed', toIndianDigits(all.failed))}
${tile('Expired', toIndianDigits(all.expired))}
${tile('Cancelled', toIndianDigits(all.cancelled))}
</dl>`
}

const hourName = ({ begins }: Counted) => toIstText(begins).slice(11, 16)
const dayName = ({ begins }: Counted) => toIstDay(begins)

type Graph = { name: (one: Counted) => string; unit: string; label: string }

function graph(parts: readonly Counted[], { name, unit, label }: Graph): Html {
  const names = parts.map(name)
  const bars = parts.map(({ counts }, index): Bar => {
    const text = counts ? `${counted(counts.orders, 'order')}, ${toIndianDigits(counts.paid)} paid` : NOT_YET
    return { whole: counts?.orders, part: counts?.paid ?? 0, text: `${names[index]}: ${text}` }
  })
  const most = Math.max(0, ...bars.map(({ whole = 0 }) => whole))
  return html`<figure>
<figcaption><span class="key part"></span> paid <span class="key whole"></span> not paid; peak ${counted(most, 'order')} per ${unit}</figcaption>
${plot(bars, label)}
<div class="ends"><span>${names[0]}</span><span>${names.length > 1 ? names.at(-1) : undefined}</span></div>
<details>
<summary>Show as a table</summary>
${table(`${label}, as a table`, [unit, 'orders', 'paid', 'conversion', 'paid, ₹'], parts.map((one, index) => [names[index], ...cells(one)]).reverse())}
</details>
</figure>`
}

const NOT_YET = 'not counted yet'

function cells({ counts }: Counted): string[] {
  if (counts === undefined) return [NOT_YET, '', '', '']
  const numbers = [toIndianDigits(counts.orders), toIndianDigits(counts.paid)]
  return [...numbers, conversionText(counts), toIndianText(counts.paidPaise)]
}

function conversionText(counts: OrderCounts): string {
  const conversion = conversionOf(counts)
  return conversion === undefined ? '–' : shareText(conversion)
}

type HtmlCell = Html | string | undefined

/** Returns a table in which each row begins with a header cell. */
const table = (label: string, columns: readonly string[], rows: readonly (readonly HtmlCell[])[]): Html =>
  html`<div class="table" tabindex="0" role="region" aria-label="${label}">
<table>
<thead><tr>${columns.map((column) => html`<th scope="col">${column}</th>`)}</tr></thead>
<tbody>
${rows.map(([of, ...cells]) => html`<tr><th scope="row">${of}</th>${cells.map((cell) => html`<td>${cell}</td>`)}</tr>\n`)}</tbody>
</table>
</div>`

const code = (text: string) => html`<code>${text}</code>`

type Open = Pick<PageOfToday, 'overview' | 'balance' | 'warnings'>

function needs({ overview, balance, warnings }: Open, now: Date): Html {
  const { refunds, webhooks, returnCalls } = overview
  const { open, amount, oldest } = overview.exceptions
  const count = countOpen(open)
  const differs = balance !== undefined && (!balance.balances || balance.open.count > 0)
  if (count + refunds.open + webhooks.behind + returnCalls.givenUp + warnings.length === 0 && !differs) {
    return html`<p>Nothing. No exceptions or refunds are open, no webhooks are behind, and there are no configuration warnings.</p>`
  }
  const exceptions = oldest.map(({ id, kind, mid, orderId, amount, receivedAt }) => {
    const order = orderId && code(orderId)
    return [code(id), kind, mid, order, amount === null ? '–' : toIndianRupees(amount), ageText(receivedAt, now)]
  })
  const waiting = refunds.oldest.map(({ refundId, mid, orderId, acquirer, amount, madeAt: createdAt }) => {
    return [code(refundId), mid, code(orderId), acquirer, toIndianText(amount), ageText(createdAt, now)]
  })
  const behind = webhooks.longest.map((one) => [code(one.endpointId), one.mid, webhookText(one, now)])
  return html`${warnings.map((warning) => html`<p class="note">${warning}</p>\n`)}${
    differs
      ? html`<p>Reconciliation: ${recentBalanceText(balance)}. Discrepancies: ${openDifferencesText(balance)}. <a href="docs/operator/discrepancies">What to do</a></p>`
      : undefined
  }${
    count > 0
      ? html`<h3>Exceptions: ${toIndianDigits(count)} open, ${toIndianRupees(amount)}</h3>
<p>${agesText(open)}. <a href="docs/operator/exceptions">What to do</a></p>
${table('Oldest open exceptions', ['exception', 'kind', 'merchant', 'order', 'amount', 'open for'], exceptions)}
${count > oldest.length ? html`<p>Showing the oldest ${oldest.length}. <code>ops payments exceptions --open</code> lists all.</p>` : undefined}`
      : undefined
  }
${
  refunds.open > 0
    ? html`<h3>Refunds: ${refundsText(refunds)}</h3>
<p><a href="docs/operator/refunds">What to do</a></p>
${table('Oldest open refunds', ['refund', 'merchant', 'order', 'acquirer', 'amount', 'open for'], waiting)}
${refunds.open > waiting.length ? html`<p>Showing the oldest ${waiting.length}. <code>ops refunds list --open</code> lists all.</p>` : undefined}`
    : undefined
}
${
  webhooks.behind > 0
    ? html`<h3>Webhooks: ${toIndianDigits(webhooks.behind)} behind</h3>
<p><a href="docs/operator/webhooks#find-out-why-a-webhook-did-not-arrive">What to do</a></p>
${table('Webhook endpoints that are behind the longest', ['endpoint', 'merchant', 'problem'], behind)}
${webhooks.behind > behind.length ? html`<p>Showing the first ${behind.length}. <code>ops webhooks list</code> lists all.</p>` : undefined}`
    : undefined
}
${returnCalls.givenUp > 0 ? html`<p>Return-URL callbacks: ${returnUrlCallbacksText(returnCalls, now)}. <a href="docs/operator/webhooks#return-url-callbacks">What to do</a></p>` : undefined}`
}

const facts = ({ overview, balance }: Open, now: Date): Html =>
  html`<dl class="facts">
${
  overview.byNextAcquirer > 0
    ? html`<div><dt>Created by fallback acquirer</dt><dd>${nextAcquirerText(overview)}</dd></div>
`
    : undefined
}<div><dt>Settlements</dt><dd>${importText(overview, now)}</dd></div>
<div><dt>Reconciliation</dt><dd>${recentBalanceText(balance)}</dd></div>
<div><dt>Discrepancies</dt><dd>${openDifferencesText(balance)}</dd></div>
<div><dt>Schema</dt><dd>${overview.migration ?? 'none'}</dd></div>
</dl>`
