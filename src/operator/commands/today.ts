import { setTimeout as sleep } from 'node:timers/promises'
import { LIMITS } from '../../limits.ts'
import { cached } from '../../platform/db/cached.ts'
import { isOutage } from '../../platform/db/outage.ts'
import { toIndianDigits, toIndianRupees } from '../../platform/money.ts'
import { toIstTime } from '../../platform/time.ts'
import { HOURS } from '../monitoring/order-counts.ts'
import { KEY_EXPIRY_NOTICE_DAYS, readBooks, readToday, type ShownCounts, type Today } from '../support/today.ts'
import { factsOf } from '../support/today-facts.ts'
import { shareText } from '../texts.ts'
import { type Context, read } from './command.ts'
import { optional, toggle } from './field.ts'
import { type Data, document, table } from './result.ts'

const REFRESH_MS = 5_000
/** Largest number of rows of a table in text output. `--json` lists all rows. */
const ROWS_SHOWN = 20

export const showToday = read('today', 'Show today’s orders and what needs attention', {
  title: 'Today',
  fields: {
    byMerchant: optional(toggle('Figures of each merchant')),
    watch: optional(toggle('Refresh the screen every 5 seconds until Ctrl-C')),
  },
  async run({ byMerchant = false, watch }, context) {
    const { config, db, now } = context
    const books = cached(() => readBooks(db, watch ? new Date() : now), LIMITS.today.books)
    const show = async (at: Date) => {
      const today = await readToday({ config, db, at, byMerchant }, await books())
      return document(today, ...toParts(today))
    }
    return watch ? { screens: again(context, show) } : { data: await show(now) }
  },
})

/** Yields the result of `look` every REFRESH_MS until Ctrl-C, and continues during a database outage. */
async function* again({ note, stopSignal }: Context, look: (now: Date) => Promise<Data>): AsyncGenerator<Data> {
  const signal = stopSignal()
  while (!signal.aborted) {
    try {
      yield await look(new Date())
    } catch (error) {
      if (!isOutage(error)) throw error
      const cause = (error as Error).message
      note(`database unavailable: ${cause}; retrying in ${REFRESH_MS / 1000} s`)
    }
    await sleep(REFRESH_MS, undefined, { signal }).catch(() => undefined)
  }
}

function toParts(today: Today): Data[] {
  const { at, hours, expiringKeys, merchants } = today
  return [
    `${toIstTime(at)}: orders created today`,
    ordersText(today),
    hoursText(hours),
    table('severity, subject, status', factsOf(today), {}),
    ...firstRows(expiringKeys, keyTable),
    ...(merchants ? firstRows(merchants, merchantTable) : []),
  ]
}

const BAR_CELLS = 20
const EIGHTHS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉']

/**
 * Returns a bar whose length is `share` (0 to 1) of 20 characters. The bar is at least an eighth of a character long
 * for a share above 0.
 */
function bar(share: number): string {
  const eighths = share > 0 ? Math.max(1, Math.round(share * BAR_CELLS * 8)) : 0
  return `${'█'.repeat(Math.floor(eighths / 8))}${EIGHTHS[eighths % 8]}`
}

function ordersText(all: ShownCounts): string {
  const line = (name: string, count: string, rest: string) =>
    `${name.padEnd(11)}${count.padStart(11)}  ${rest}`.trimEnd()
  const lineOf = (name: 'orders' | (typeof STATES)[number], amount = '') =>
    line(name, toIndianDigits(all[name]), `${bar(all[name] / Math.max(1, all.orders)).padEnd(BAR_CELLS)}  ${amount}`)
  return [
    lineOf('orders', toIndianRupees(all.amount.paise)),
    ...STATES.map((state) => lineOf(state, state === 'paid' ? toIndianRupees(all.paidAmount.paise) : '')),
    line('conversion', conversionText(all.conversion), 'of orders with a final status'),
  ].join('\n')
}

const STATES = ['paid', 'waiting', 'failed', 'expired', 'cancelled'] as const

/** Formats the share of paid orders; `-` before the first order is final. */
export const conversionText = (conversion: number | null): string => (conversion === null ? '-' : shareText(conversion))

const LEVELS = '▁▂▃▄▅▆▇█'

function hoursText(hours: Today['hours']): string {
  const most = Math.max(0, ...hours.map(({ orders }) => orders))
  const levels = Array.from({ length: HOURS }, () => ' ')
  for (const { hour, orders } of hours) levels[hour] = LEVELS[Math.ceil((orders / most) * LEVELS.length) - 1] as string
  return [
    `by hour       ${levels.join('')}`.trimEnd(),
    `              0     6     12    18     peak ${toIndianDigits(most)} per hour`,
  ].join('\n')
}

function firstRows<Row>(rows: readonly Row[], toTable: (rows: readonly Row[]) => Data): Data[] {
  const more = rows.length - ROWS_SHOWN
  return [toTable(rows.slice(0, ROWS_SHOWN)), ...(more > 0 ? [`and ${more} more: use --json to list all`] : [])]
}

/** Returns the table of keys that expire soon. */
export const keyTable = (keys: readonly Today['expiringKeys'][number][]) =>
  table('publicKey, mid, pid, operator, label, expiresOn', keys, {
    title: `Keys that expire within ${KEY_EXPIRY_NOTICE_DAYS} days`,
  })

/** Returns the table of the orders by merchant. */
export const merchantTable = (merchants: readonly (ShownCounts & { mid: string })[]) =>
  table('mid, orders, paid, waiting, failed, expired, cancelled, conversion, amount, paidAmount', merchants, {
    title: 'Orders by merchant',
    empty: 'No orders today.',
    cells: (one) => ({ ...one, conversion: conversionText(one.conversion) }),
  })
