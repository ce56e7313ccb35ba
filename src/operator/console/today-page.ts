import { LIMITS } from '../../limits.ts'
import { type Html, html } from '../../platform/html.ts'
import { counted, toIndianDigits } from '../../platform/money.ts'
import { toIstText } from '../../platform/time.ts'
import { cellText, table } from '../commands/result.ts'
import { conversionText, keyTable, merchantTable, showToday } from '../commands/today.ts'
import { HOURS } from '../monitoring/order-counts.ts'
import type { Today } from '../support/today.ts'
import { type Fact, factsOf, SEVERITIES, type Severity } from '../support/today-facts.ts'
import { withLinks } from './command-links.ts'
import type { Page } from './layout.ts'
import { renderData } from './render.ts'
import { addressOf, commandsOf, type OperatorView } from './view.ts'

/** Returns the page of today, from the fields of `ops today`. It reloads itself unless its address has `refresh=off`. */
export async function todayPage(today: Today, view: OperatorView, same: Html): Promise<Page> {
  const { at, expiringKeys, merchants } = today
  const { refreshSeconds } = LIMITS.today
  const filters: Record<string, string> = merchants ? { 'by-merchant': 'on' } : {}
  const [start, stop] = [addressOf(showToday, filters), addressOf(showToday, { ...filters, refresh: 'off' })]
  const isStill = view.here.includes('refresh=off')
  const refreshing = isStill
    ? html`<a href="${start}">Refresh automatically</a>`
    : html`This page refreshes every ${refreshSeconds} seconds. <a href="${stop}">Stop refreshing</a>`
  const facts = factsOf(today)
  const [now, later, information] = SEVERITIES.map((severity) => factList(severity, facts, view))
  const body = html`<p>${toIstText(at)}. ${refreshing}</p>
<section class="needs" aria-labelledby="needs"><h2 id="needs">Needs attention</h2>
${now || later ? undefined : html`<p>Nothing.</p>\n`}${now && html`<h3>Now</h3>\n${now}`}${later && html`<h3>Today</h3>\n${later}`}</section>
<section aria-labelledby="orders"><h2 id="orders">Orders created today</h2>
${tiles(today)}${await hoursGraph(today, view)}</section>
${
  merchants
    ? await renderData(merchantTable(merchants), view)
    : html`<p><a href="${addressOf(showToday, { 'by-merchant': 'on' })}">Show the orders of each merchant</a></p>\n`
}${await renderData(keyTable(expiringKeys), view)}<h2>Information</h2>
${information}${same}`
  return { title: 'Today', body, refreshSeconds: isStill ? undefined : refreshSeconds }
}

/** Returns the facts of one severity, each with a link to the list of its work, and the chapter that explains it. */
function factList(severity: Severity, all: readonly Fact[], view: OperatorView): Html | undefined {
  const facts = all.filter((fact) => fact.severity === severity)
  if (facts.length === 0) return undefined
  const rows = facts.map(({ subject, status, command, chapter }) => {
    const hasPage = commandsOf(view).some(({ name }) => name === command?.name)
    const linked = command && hasPage ? html`<a href="${addressOf(command, command.flags)}">${subject}</a>` : subject
    const manual = severity === 'information' ? undefined : chapter && `Operator manual: ${chapter}`
    return html`<div class="${severity}"><dt>${linked}</dt><dd>${withLinks(status, view)}${manual && html` <small class="quiet">${manual}</small>`}</dd></div>\n`
  })
  return html`<dl class="fields facts">\n${rows}</dl>\n`
}

function tiles({ orders, amount, paid, paidAmount, conversion, waiting, failed, expired, cancelled }: Today): Html {
  const tile = (name: string, value: string | number, beside?: string) =>
    html`<div><dt>${name}</dt><dd>${typeof value === 'number' ? toIndianDigits(value) : value}${beside && html` <small>${beside}</small>`}</dd></div>\n`
  return html`<dl class="tiles">
${tile('Orders', orders, cellText(amount))}${tile('Paid', paid, cellText(paidAmount))}${tile('Conversion', conversionText(conversion), 'of orders with a final status')}${tile('Waiting', waiting)}${tile('Failed', failed)}${tile('Expired', expired)}${tile('Cancelled', cancelled)}</dl>
`
}

/** Draws the orders of each hour of the day, with the number paid, and lists the same figures in a table. */
async function hoursGraph({ hours }: Today, view: OperatorView): Promise<Html> {
  const bars = Array.from({ length: HOURS }, (_, hour) => {
    const { orders = 0, paid = 0 } = hours.find((one) => one.hour === hour) ?? {}
    const text = `${hourName(hour)}: ${counted(orders, 'order')}, ${toIndianDigits(paid)} paid`
    return { whole: orders, part: paid, text }
  })
  const most = Math.max(...bars.map(({ whole }) => whole))
  return html`<figure>
<figcaption><span class="key part"></span> paid <span class="key whole"></span> not paid; peak ${counted(most, 'order')} per hour</figcaption>
${plot(bars, 'Today’s orders by hour, with the number paid')}
<div class="ends"><span>${hourName(0)}</span><span>${hourName(HOURS - 1)}</span></div>
<details>
<summary>Show as a table</summary>
${await renderData(hourTable(hours), view)}</details>
</figure>
`
}

const hourTable = (hours: Today['hours']) =>
  table('hour, orders, paid, conversion, paidAmount', hours, {
    title: 'Orders by hour',
    empty: 'No orders today.',
    cells: (one) => ({ ...one, hour: hourName(one.hour), conversion: conversionText(one.conversion) }),
  })

const hourName = (hour: number) => `${String(hour).padStart(2, '0')}:00`

/** A bar of height `whole` with a part of height `part` in another colour, and a tooltip with `text`. */
type Bar = { whole: number; part: number; text: string }

/**
 * Widths and heights are in SVG units. Only their proportions matter, because CSS stretches the SVG to the width of the
 * page.
 */
const BAR_WIDTH = 10
const GAP = 2
const HEIGHT = 100

/**
 * Draws bars as SVG without script or inline style. CSS colours the classes `whole` and `part`. `label` describes the
 * plot to screen readers, so a table next to the plot must show the numbers.
 */
function plot(bars: readonly Bar[], label: string): Html {
  const most = Math.max(1, ...bars.map(({ whole }) => whole))
  const rect = (kind: string, index: number, count: number) => {
    const height = Math.round((count / most) * HEIGHT * 100) / 100
    return html`<rect class="${kind}" x="${index * BAR_WIDTH + GAP / 2}" y="${HEIGHT - height}" width="${BAR_WIDTH - GAP}" height="${height}"/>`
  }
  const drawn = bars.map(
    ({ whole, part, text }, index) =>
      html`<g><title>${text}</title>${rect('whole', index, whole)}${rect('part', index, part)}</g>\n`,
  )
  const width = bars.length * BAR_WIDTH
  return html`<svg class="plot" role="img" aria-label="${label}" viewBox="0 0 ${width} ${HEIGHT}" preserveAspectRatio="none">
${drawn}</svg>`
}
