import { setTimeout as sleep } from 'node:timers/promises'
import * as z from 'zod'
import { type ArrivalCount, countArrivals } from '../../books/reconciliation/arrivals.ts'
import { balanceUntilYesterday, type RecentBalance } from '../../books/reconciliation/recent-balance.ts'
import { openAccounts } from '../../gateway/acquirers/stored-accounts.ts'
import { acquirersOfOpenRefunds } from '../../gateway/refunds/store.ts'
import { createAccessKeys } from '../../gateway/tenants/access-keys.ts'
import { LIMITS } from '../../limits.ts'
import { cached } from '../../platform/db/cached.ts'
import { isOutage } from '../../platform/db/outage.ts'
import type { Database } from '../../platform/db/pool.ts'
import {
  type Paise,
  toDecimalText,
  toIndianDigits,
  toIndianRupees,
  toIndianText,
  toJsonNumber,
} from '../../platform/money.ts'
import { istDayOf, toIstDay, toIstTime } from '../../platform/time.ts'
import { add, conversionOf, createOrderCounts, NO_ORDERS, type OrderCounts } from '../monitoring/order-counts.ts'
import { countOpen, createOverview } from '../monitoring/overview.ts'
import {
  agesText,
  arrivalsText,
  countsText,
  importText,
  nextAcquirerText,
  openDifferencesText,
  recentBalanceText,
  refundsText,
  returnUrlCallbacksText,
  shareText,
  webhookText,
} from '../texts.ts'
import { command } from './command.ts'
import { type Data, document, Money, record, rupees, table } from './data.ts'
import { clearScreen, printNote, type Terminal } from './output.ts'

const REFRESH_MS = 5_000
const HOURS = 24
/** Largest number of rows of a table in text output. `--json` lists all rows. */
const ROWS_SHOWN = 20
const KEY_EXPIRY_NOTICE_DAYS = 14

export const todayCommands = [
  command('today', 'Show today’s orders and what needs attention', {
    usage: '[--by-merchant] [--watch]',
    schema: z.object({ byMerchant: z.boolean().default(false), watch: z.boolean().default(false) }),
    async run({ byMerchant, watch }, { config, db, now, terminal }) {
      const { operatorDatabase, operatorPage } = LIMITS
      const readBooks = cached(async () => {
        const at = watch ? new Date() : now
        const balance = await balanceUntilYesterday(db, at, operatorDatabase.statementTimeoutMs)
        return { balance, arrivals: await countArrivals(db, at) }
      }, operatorPage.balance)
      const show = async (moment: Date) => {
        const today = { ...(await readToday(db, moment)), ...(await readBooks()) }
        const accounts = openAccounts(db, config, LIMITS.lookUps)
        const warnings = await accounts.refundWarnings(await acquirersOfOpenRefunds(db))
        return document({ ...toJson(today, byMerchant), warnings }, ...toParts(today, byMerchant), warnings.join('\n'))
      }
      return watch ? { screens: again(terminal, show) } : { data: await show(now) }
    },
  }),
]

/** Yields the result of `look` every REFRESH_MS until Ctrl-C, and continues during a database outage. */
async function* again(terminal: Terminal, look: (now: Date) => Promise<Data>): AsyncGenerator<Data> {
  const stopped = new AbortController()
  process.once('SIGINT', () => stopped.abort())
  while (!stopped.signal.aborted) {
    try {
      const screen = await look(new Date())
      clearScreen(terminal)
      yield screen
    } catch (error) {
      if (!isOutage(error)) throw error
      const cause = (error as Error).message
      printNote(terminal, `database unavailable: ${cause}; retrying in ${REFRESH_MS / 1000} s`)
    }
    await sleep(REFRESH_MS, undefined, { signal: stopped.signal }).catch(() => undefined)
  }
}

type Today = Awaited<ReturnType<typeof readToday>> & {
  balance: RecentBalance | undefined
  arrivals: ArrivalCount[]
}

/** Reads the orders of the current IST day by hour and by merchant. The merchant with the most orders comes first. */
async function readToday(db: Database, now: Date) {
  const since = istDayOf(now)
  const [counts, overview, expiringKeys] = await Promise.all([
    createOrderCounts(db).countByHourAndMerchant({ since, hours: HOURS }, now),
    createOverview(db).read(now),
    createAccessKeys(db).listExpiring(KEY_EXPIRY_NOTICE_DAYS, now),
  ])
  const hours = Array.from({ length: HOURS }, () => NO_ORDERS)
  const ofMerchants = new Map<string, OrderCounts>()
  for (const { hour, mid, ...counted } of counts) {
    hours[hour] = add(hours[hour] ?? NO_ORDERS, counted)
    ofMerchants.set(mid, add(ofMerchants.get(mid) ?? NO_ORDERS, counted))
  }
  const merchants = [...ofMerchants]
    .map(([mid, counted]) => ({ mid, ...counted }))
    .sort((a, b) => b.orders - a.orders || (a.mid < b.mid ? -1 : 1))
  return { now, all: hours.reduce(add, NO_ORDERS), hours, merchants, overview, expiringKeys }
}

function toJson({ now, all, hours, merchants, overview, expiringKeys, balance, arrivals }: Today, byMerchant: boolean) {
  const { exceptions, refunds, settlementImport = null, migration = null } = overview
  return {
    ...{ ...overview, day: toIstDay(now), at: now, ...countsToJson(all), settlementImport, migration },
    hours: hours.flatMap((counts, hour) => (counts.orders > 0 ? [{ hour, ...countsToJson(counts) }] : [])),
    ...(byMerchant && { merchants: merchants.map(countsToJson) }),
    refunds: { ...refunds, amount: toJsonNumber(refunds.amount), oldest: refunds.oldest.map(asNumber) },
    exceptions: { ...exceptions, amount: toDecimalText(exceptions.amount), oldest: exceptions.oldest.map(withRupees) },
    balance: balance === undefined ? null : balanceToJson(balance),
    arrivals: arrivals.map((one) => ({ ...one, net: rupees(one.net) })),
    expiringKeys,
  }
}

const balanceToJson = ({ carriedForward, open, ...days }: RecentBalance) => ({
  ...days,
  carriedForward: toDecimalText(carriedForward),
  open: { ...open, owed: toDecimalText(open.owed) },
})

const withRupees = <T extends { amount: Paise | null }>(one: T) => ({ ...one, amount: rupees(one.amount) })

const asNumber = <T extends { amount: Paise }>(one: T): T => ({ ...one, amount: toJsonNumber(one.amount) })

function countsToJson<T extends OrderCounts>({ paise, paidPaise, ...counts }: T) {
  const conversion = conversionOf({ paise, paidPaise, ...counts }) ?? null
  return { ...counts, conversion, amount: toJsonNumber(paise), paidAmount: toJsonNumber(paidPaise) }
}

function toParts(
  { now, all, hours, merchants, overview, expiringKeys, balance, arrivals }: Today,
  byMerchant: boolean,
): Data[] {
  const { open, amount, oldest } = overview.exceptions
  const openCount = countOpen(open)
  const { behind, longest } = overview.webhooks
  const [worst] = longest
  const facts = {
    exceptions: openCount
      ? `${toIndianDigits(openCount)} open, ${toIndianRupees(amount)}: ${agesText(open)}; oldest: ${oldest[0]?.kind}`
      : 'none open',
    refunds: refundsText(overview.refunds),
    'failed attempts': countsText(Object.fromEntries(overview.failures.map(({ reason, count }) => [reason, count]))),
    ...(overview.byNextAcquirer > 0 && { failover: nextAcquirerText(overview) }),
    webhooks: worst
      ? `${toIndianDigits(behind)} behind; longest: ${worst.mid} ${worst.endpointId}, ${webhookText(worst, now)}`
      : 'none behind',
    'return-URL callbacks': returnUrlCallbacksText(overview.returnCalls, now),
    settlements: importText(overview, now),
    reconciliation: recentBalanceText(balance),
    discrepancies: openDifferencesText(balance),
    ...(arrivals.length > 0 && { payouts: arrivalsText(arrivals) }),
    schema: overview.migration ?? 'none',
  }
  return [
    `${toIstTime(now)}: orders created today`,
    ordersText(all),
    hoursText(hours),
    record(facts),
    ...firstRows(expiringKeys, expiringTable),
    ...(byMerchant ? firstRows(merchants, merchantTable) : []),
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

function ordersText(all: OrderCounts): string {
  const line = (name: string, count: string, rest: string) =>
    `${name.padEnd(11)}${count.padStart(11)}  ${rest}`.trimEnd()
  const lineOf = (name: 'orders' | (typeof STATES)[number], amount = '') =>
    line(name, toIndianDigits(all[name]), `${bar(all[name] / Math.max(1, all.orders)).padEnd(BAR_CELLS)}  ${amount}`)
  return [
    lineOf('orders', toIndianText(all.paise)),
    ...STATES.map((state) => lineOf(state, state === 'paid' ? toIndianText(all.paidPaise) : '')),
    line('conversion', conversionText(all), 'of orders with a final status'),
  ].join('\n')
}

const STATES = ['paid', 'waiting', 'failed', 'expired', 'cancelled'] as const

const conversionText = (counts: OrderCounts): string => {
  const conversion = conversionOf(counts)
  return conversion === undefined ? '-' : shareText(conversion)
}

const LEVELS = '▁▂▃▄▅▆▇█'

function hoursText(hours: readonly OrderCounts[]): string {
  const most = Math.max(...hours.map(({ orders }) => orders))
  const level = ({ orders }: OrderCounts) =>
    orders === 0 ? ' ' : LEVELS[Math.ceil((orders / most) * LEVELS.length) - 1]
  return [
    `by hour       ${hours.map(level).join('')}`.trimEnd(),
    `              0     6     12    18     peak ${toIndianDigits(most)} per hour`,
  ].join('\n')
}

function firstRows<Row>(rows: readonly Row[], toTable: (rows: Row[]) => Data): Data[] {
  const more = rows.length - ROWS_SHOWN
  return [toTable(rows.slice(0, ROWS_SHOWN)), ...(more > 0 ? [`and ${more} more: use --json to list all`] : [])]
}

const expiringTable = (keys: Today['expiringKeys']) =>
  table('publicKey, mid, pid, label, expiresOn', keys, {
    title: `API keys that expire within ${KEY_EXPIRY_NOTICE_DAYS} days`,
  })

function merchantTable(merchants: Today['merchants']) {
  const columns = 'mid, orders, paid, waiting, failed, expired, cancelled, conversion, amount, paidAmount'
  return table(columns, merchants, {
    empty: 'No orders today.',
    cells: (one: Today['merchants'][number]) => ({
      ...one,
      conversion: conversionText(one),
      amount: new Money(one.paise, true),
      paidAmount: new Money(one.paidPaise, true),
    }),
  })
}
