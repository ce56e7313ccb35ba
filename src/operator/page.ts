import { add, conversionOf, NO_ORDERS, type OrderCounts } from '../books/day.ts'
import { countOpen, type Overview } from '../books/overview.ts'
import { agesText, ageText, importText, returnCallsText, shareText, webhookText } from '../books/spell.ts'
import { type Html, html } from '../html.ts'
import { toIstText } from '../ist.ts'
import { toIndianDigits, toIndianText } from '../money.ts'
import { type Bar, plot } from './plot.ts'

/** A day or an hour of Indian time, by its first moment; undefined while its orders are not counted. */
export type Counted = { begins: Date; counts: OrderCounts | undefined }

export type PageOfToday = {
  now: Date
  /** The hours of today so far, and the last days with today; both oldest first. */
  hours: readonly Counted[]
  days: readonly Counted[]
  /** Counting failed, and is tried again only after a pause. */
  failed: boolean
  overview: Overview
  publicUrl: string
  refreshSeconds: number
  refreshes: boolean
}

/** Every address in the page is relative, since a proxy may serve it under a path. Nothing of a customer is in it. */
export function pageOfToday(page: PageOfToday): string {
  const { now, hours, days, failed, overview, publicUrl } = page
  const today = sumOf(hours)
  const missing = [...hours, ...days].some(({ counts }) => counts === undefined)
  return document(html`<main class="guide overview" id="text">
<h1>Today</h1>
<p>${toIstText(now)} in India. ${refreshLine(page)}</p>
${missing ? html`<p role="status" class="note">${failed ? NOT_COUNTED : COUNTING}</p>` : undefined}
<section aria-labelledby="orders">
<h2 id="orders">Orders made today</h2>
${tiles(today)}
<h3>By hour</h3>
${graph(hours, { name: hourName, unit: 'hour', label: 'Orders of today by hour, and how many of them are paid' })}
</section>
<section aria-labelledby="open">
<h2 id="open">What needs a person</h2>
${needs(overview, now)}
</section>
<section aria-labelledby="days">
<h2 id="days">The last ${days.length} days</h2>
${graph(days, { name: dayName, unit: 'day', label: `Orders of the last ${days.length} days, and how many of them are paid` })}
</section>
<section aria-labelledby="service">
<h2 id="service">The service</h2>
${facts(overview, now)}
</section>
<section aria-labelledby="guides">
<h2 id="guides">Guides</h2>
<ul>
<li><a href="docs">For the operator</a>, and <a href="docs/setu">Setu</a></li>
<li><a href="${publicUrl}/docs">For those who call the service</a>, which is public</li>
<li><a href="metrics">Metrics</a>, for Prometheus</li>
</ul>
</section>
</main>`)
}

const COUNTING = 'Still counting: what is missing follows, the newest first.'
const NOT_COUNTED =
  'The database did not count what is missing. It is asked again half a minute later; the log of the service says why.'

/** What is shown instead of the page. */
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
<a class="skip" href="#text">Skip to the text</a>
<header class="site"><nav aria-label="Pages"><a class="brand" href="." aria-current="page">UPI payments</a>
<a href="docs">Guide</a></nav></header>
${body}
</body>
</html>
`.toString()
}

function refreshLine({ refreshes, refreshSeconds }: PageOfToday): Html {
  if (!refreshes) return html`<a href=".">Keep it up to date</a>`
  return html`This page asks again every ${refreshSeconds} seconds: <a href="?refresh=off">stop that</a>`
}

function sumOf(parts: readonly Counted[]): OrderCounts {
  return parts.reduce((sum, { counts }) => add(sum, counts ?? NO_ORDERS), NO_ORDERS)
}

function tiles(all: OrderCounts): Html {
  const conversion = conversionOf(all)
  const tile = (name: string, value: string, beside?: string) =>
    html`<div><dt>${name}</dt><dd>${value}${beside === undefined ? undefined : html` <small>${beside}</small>`}</dd></div>\n`
  return html`<dl class="tiles">
${tile('Orders', toIndianDigits(all.orders), toIndianText(all.paise))}
${tile('Paid', toIndianDigits(all.paid), toIndianText(all.paidPaise))}
${tile('Conversion', conversion === undefined ? '–' : shareText(conversion), 'of those not waiting')}
${tile('Waiting', toIndianDigits(all.waiting))}
${tile('Failed', toIndianDigits(all.failed))}
${tile('Expired', toIndianDigits(all.expired))}
${tile('Cancelled', toIndianDigits(all.cancelled))}
</dl>`
}

const hourName = ({ begins }: Counted) => toIstText(begins).slice(11, 16)
const dayName = ({ begins }: Counted) => toIstText(begins).slice(0, 10)

type Graph = { name: (one: Counted) => string; unit: string; label: string }

/** A plot, and the same as a table. */
function graph(parts: readonly Counted[], { name, unit, label }: Graph): Html {
  const bars = parts.map((one): Bar => {
    const { counts } = one
    const text = counts
      ? `${toIndianDigits(counts.orders)} orders, ${toIndianDigits(counts.paid)} paid`
      : 'not counted yet'
    return { name: name(one), whole: counts?.orders, part: counts?.paid ?? 0, text: `${name(one)}: ${text}` }
  })
  const most = Math.max(0, ...bars.map(({ whole = 0 }) => whole))
  const [first, last] = [bars[0], bars.at(-1)]
  return html`<figure>
<figcaption><span class="key part"></span> paid <span class="key whole"></span> not paid; at most ${toIndianDigits(most)} orders in one ${unit}</figcaption>
${plot(bars, label)}
<div class="ends"><span>${first?.name}</span><span>${last === first ? undefined : last?.name}</span></div>
<details>
<summary>The same as a table</summary>
<div class="table" tabindex="0" role="region" aria-label="${label}, as a table">
<table>
<thead><tr><th scope="col">${unit}</th><th scope="col">orders</th><th scope="col">paid</th><th scope="col">conversion</th><th scope="col">paid, ₹</th></tr></thead>
<tbody>
${parts.toReversed().map((one) => row(name(one), one.counts))}</tbody>
</table>
</div>
</details>
</figure>`
}

function row(name: string, counts: OrderCounts | undefined): Html {
  const conversion = counts && conversionOf(counts)
  const cells = counts
    ? [
        toIndianDigits(counts.orders),
        toIndianDigits(counts.paid),
        conversion === undefined ? '–' : shareText(conversion),
        toIndianText(counts.paidPaise),
      ]
    : ['not counted yet', '', '', '']
  return html`<tr><th scope="row">${name}</th>${cells.map((cell) => html`<td>${cell}</td>`)}</tr>\n`
}

function needs({ exceptions, webhooks, returnCalls }: Overview, now: Date): Html {
  const open = countOpen(exceptions.open)
  const nothing = open + webhooks.behind + returnCalls.givenUp === 0
  if (nothing) return html`<p>Nothing: no exception is open, and no webhook is behind.</p>`
  return html`${open > 0 ? exceptionsTable(exceptions, open, now) : undefined}
${webhooks.behind > 0 ? webhooksTable(webhooks, now) : undefined}
${returnCalls.givenUp > 0 ? html`<p>Return calls: ${returnCallsText(returnCalls, now)}. <a href="docs#shops-that-cannot-receive-webhooks">What to do</a></p>` : undefined}`
}

function exceptionsTable({ open, oldest }: Overview['exceptions'], count: number, now: Date): Html {
  const rows = oldest.map(
    ({ id, kind, mid, orderId, receivedAt }) =>
      html`<tr><th scope="row"><code>${id}</code></th><td>${kind}</td><td>${mid}</td><td><code>${orderId}</code></td><td>${ageText(receivedAt, now)}</td></tr>\n`,
  )
  return html`<h3>Exceptions: ${toIndianDigits(count)} open</h3>
<p>${agesText(open)}. <a href="docs#exceptions">What to do</a></p>
<div class="table" tabindex="0" role="region" aria-label="The exceptions that are open the longest">
<table>
<thead><tr><th scope="col">exception</th><th scope="col">kind</th><th scope="col">merchant</th><th scope="col">order</th><th scope="col">open for</th></tr></thead>
<tbody>
${rows}</tbody>
</table>
</div>
${count > oldest.length ? html`<p>The oldest ${oldest.length}; <code>ops payments exceptions --open</code> lists all.</p>` : undefined}`
}

function webhooksTable({ behind, longest }: Overview['webhooks'], now: Date): Html {
  const rows = longest.map(
    (webhook) =>
      html`<tr><th scope="row"><code>${webhook.endpointId}</code></th><td>${webhook.mid}</td><td>${webhookText(webhook, now)}</td></tr>\n`,
  )
  return html`<h3>Webhooks: ${toIndianDigits(behind)} behind</h3>
<p><a href="docs#a-merchant-hears-nothing">What to do</a></p>
<div class="table" tabindex="0" role="region" aria-label="The webhooks that are behind the longest">
<table>
<thead><tr><th scope="col">address</th><th scope="col">merchant</th><th scope="col">what is wrong</th></tr></thead>
<tbody>
${rows}</tbody>
</table>
</div>
${behind > longest.length ? html`<p>The longest ${longest.length}; <code>ops webhooks list</code> lists all.</p>` : undefined}`
}

function facts(overview: Overview, now: Date): Html {
  const lines = {
    Settlements: importText(overview, now),
    Schema: overview.migration ?? 'none',
  }
  return html`<dl class="facts">
${Object.entries(lines).map(([name, text]) => html`<div><dt>${name}</dt><dd>${text}</dd></div>\n`)}</dl>`
}
