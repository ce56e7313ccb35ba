import { LIMITS } from '../../limits.ts'
import { type Html, html } from '../../platform/html.ts'
import { counted, toIndianDigits } from '../../platform/money.ts'
import { toIstTime } from '../../platform/time.ts'
import { table } from '../cli/data.ts'
import { HOURS, type Today } from '../cli/read-today.ts'
import { conversionText, keyTable, merchantTable } from '../cli/today.ts'
import { type Fact, factsOf, type Severity } from '../cli/today-facts.ts'
import { cellText } from '../cli/write-text.ts'
import type { Page } from './layout.ts'
import { plot } from './plot.ts'
import { renderData } from './render.ts'
import { addressOf, type OperatorView, type PageFields } from './view.ts'

/** Returns the page of today, from the fields of `ops today`. It reloads itself unless `refresh` is off. */
export async function todayPage(today: Today, { refresh }: PageFields, view: OperatorView): Promise<Page> {
  const { at, expiringKeys, merchants } = today
  const { refreshSeconds } = LIMITS.today
  const isStill = refresh === 'off'
  const filters = merchants && { 'by-merchant': 'on' }
  const facts = factsOf(today)
  const list = (severity: Severity, title: Html) =>
    factList(
      facts.filter((fact) => fact.severity === severity),
      title,
      view,
    )
  const body = html`<p>${toIstTime(at)}. ${
    isStill
      ? html`<a href="${addressOf('today', { ...filters })}">Refresh automatically</a>`
      : html`This page refreshes every ${refreshSeconds} seconds. <a href="${addressOf('today', { ...filters, refresh: 'off' })}">Stop refreshing</a>`
  }</p>
<section class="needs" aria-labelledby="needs"><h2 id="needs">Needs attention</h2>
${facts.every(({ severity }) => severity === 'information') ? html`<p>Nothing.</p>\n` : undefined}${list('now', html`<h3>Now</h3>`)}${list('today', html`<h3>Today</h3>`)}</section>
<section aria-labelledby="orders"><h2 id="orders">Orders created today</h2>
${tiles(today)}${await hoursGraph(today, view)}</section>
${
  merchants
    ? await renderData(merchantTable(merchants), view)
    : html`<p><a href="${addressOf('today', { 'by-merchant': 'on' })}">Show the orders of each merchant</a></p>\n`
}${await renderData(keyTable(expiringKeys), view)}${list('information', html`<h2>Information</h2>`)}`
  return { title: 'Today', body, ...(!isStill && { refreshSeconds }) }
}

/** Returns a list of facts, each with a link to the page that lists its work, and the chapter that explains it. */
function factList(facts: readonly Fact[], title: Html, { commands }: OperatorView): Html | undefined {
  if (facts.length === 0) return undefined
  const rows = facts.map(({ severity, subject, status, command, chapter }) => {
    const hasPage = commands.some(({ name }) => name === command?.name)
    const linked =
      command && hasPage ? html`<a href="${addressOf(command.name, command.flags)}">${subject}</a>` : subject
    const manual =
      severity !== 'information' && chapter && html` <small class="quiet">Operator manual: ${chapter}</small>`
    return html`<div class="${severity}"><dt>${linked}</dt><dd>${status}${manual || undefined}</dd></div>\n`
  })
  return html`${title}\n<dl class="fields facts">\n${rows}</dl>\n`
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
  const all = Array.from({ length: HOURS }, (_, hour) => {
    const { orders = 0, paid = 0 } = hours.find((one) => one.hour === hour) ?? {}
    return { name: hourName(hour), orders, paid }
  })
  const most = Math.max(...all.map(({ orders }) => orders))
  const bars = all.map(({ name, orders, paid }) => {
    return { whole: orders, part: paid, text: `${name}: ${counted(orders, 'order')}, ${toIndianDigits(paid)} paid` }
  })
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
