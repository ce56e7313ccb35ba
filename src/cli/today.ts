import { setTimeout as sleep } from 'node:timers/promises'
import * as z from 'zod'
import { add, conversionOf, createOrderCounts, NO_ORDERS, type OrderCounts } from '../books/day.ts'
import { countOpen, createOverview, type Overview } from '../books/overview.ts'
import { agesText, importText, returnCallsText, shareText, webhookText } from '../books/spell.ts'
import { isOutage } from '../db/outage.ts'
import type { Database } from '../db/pool.ts'
import { istDayOf, toIstText } from '../ist.ts'
import { toIndianDigits, toIndianText, toJsonNumber } from '../money.ts'
import { command } from './command.ts'
import { clearScreen, note, printable, type Terminal, table } from './output.ts'

const REFRESH_MS = 5_000
/** Of an Indian day. */
const HOURS = 24
/** Merchants in the text; `--json` has all. */
const MERCHANTS_SHOWN = 20

export const todayCommands = [
  command({
    name: 'today',
    usage: '[--by-merchant] [--watch]',
    schema: z.object({ byMerchant: z.boolean().default(false), watch: z.boolean().default(false) }),
    async run({ byMerchant, watch }, { db, now, asJson, terminal }) {
      const show = async (moment: Date) => {
        const today = await readToday(db, moment, byMerchant)
        return { json: toJson(today, byMerchant), text: toText(today, byMerchant) }
      }
      if (!watch) return show(now)
      return {
        chunks: again(terminal, async (moment) => {
          const { json, text } = await show(moment)
          return asJson ? JSON.stringify(json) : text
        }),
      }
    },
  }),
]

/** What `look` returns, every few seconds until Ctrl-C. A database that is away for a while is said, and asked again. */
async function* again(terminal: Terminal, look: (now: Date) => Promise<string>): AsyncGenerator<string> {
  const stopped = new AbortController()
  process.once('SIGINT', () => stopped.abort())
  while (!stopped.signal.aborted) {
    try {
      const screen = await look(new Date())
      clearScreen(terminal)
      yield `${screen}\n`
    } catch (error) {
      if (!isOutage(error)) throw error
      const cause = (error as Error).message
      note(terminal, `the database cannot be used: ${cause}; asked again in ${REFRESH_MS / 1000} s`)
    }
    await sleep(REFRESH_MS, undefined, { signal: stopped.signal }).catch(() => undefined)
  }
}

type OfMerchant = OrderCounts & { mid: string }

type Today = {
  now: Date
  day: Date
  all: OrderCounts
  /** 24 of them. */
  hours: OrderCounts[]
  /** Those with the most orders first; empty unless they were asked for. */
  merchants: OfMerchant[]
  overview: Overview
}

async function readToday(db: Database, now: Date, byMerchant: boolean): Promise<Today> {
  const day = istDayOf(now)
  const [{ hours, merchants }, overview] = await Promise.all([
    (byMerchant ? readByMerchant : readByHour)(db, day, now),
    createOverview(db).read(now),
  ])
  return {
    now,
    day,
    all: hours.reduce(add, NO_ORDERS),
    hours,
    merchants,
    overview,
  }
}

type Orders = Pick<Today, 'hours' | 'merchants'>

async function readByHour(db: Database, since: Date, now: Date): Promise<Orders> {
  return { hours: await createOrderCounts(db).countByHour({ since, hours: HOURS }, now), merchants: [] }
}

async function readByMerchant(db: Database, since: Date, now: Date): Promise<Orders> {
  const hours = Array.from({ length: HOURS }, () => NO_ORDERS)
  const merchants = new Map<string, OrderCounts>()
  for (const { hour, mid, ...counts } of await createOrderCounts(db).countByHourAndMerchant(
    { since, hours: HOURS },
    now,
  )) {
    hours[hour] = add(hours[hour] ?? NO_ORDERS, counts)
    merchants.set(mid, add(merchants.get(mid) ?? NO_ORDERS, counts))
  }
  const counted = [...merchants].map(([mid, counts]) => ({ mid, ...counts }))
  return { hours, merchants: counted.sort((a, b) => b.orders - a.orders || (a.mid < b.mid ? -1 : 1)) }
}

function toJson({ now, day, all, hours, merchants, overview }: Today, byMerchant: boolean) {
  const { exceptions, webhooks, returnCalls, settlementImport, migration } = overview
  return {
    day: toIstText(day).slice(0, 10),
    at: now,
    ...countsToJson(all),
    hours: hours.flatMap((counts, hour) => (counts.orders > 0 ? [{ hour, ...countsToJson(counts) }] : [])),
    ...(byMerchant && { merchants: merchants.map(({ mid, ...counts }) => ({ mid, ...countsToJson(counts) })) }),
    exceptions,
    webhooks,
    returnCalls,
    settlementImport: settlementImport ?? null,
    migration: migration ?? null,
  }
}

/** Amounts in rupees. */
function countsToJson(counts: OrderCounts) {
  const { paise, paidPaise, ...numbers } = counts
  return {
    ...numbers,
    conversion: conversionOf(counts) ?? null,
    amount: toJsonNumber(paise),
    paidAmount: toJsonNumber(paidPaise),
  }
}

function toText({ now, all, hours, merchants, overview }: Today, byMerchant: boolean): string {
  const { open, oldest } = overview.exceptions
  const openCount = countOpen(open)
  const { behind, longest } = overview.webhooks
  const facts = {
    exceptions:
      openCount === 0
        ? 'none open'
        : `${toIndianDigits(openCount)} open: ${agesText(open)}; the oldest: ${oldest[0]?.kind}`,
    webhooks: longest[0]
      ? `${toIndianDigits(behind)} behind; the longest: ${longest[0].mid} ${longest[0].endpointId} ${webhookText(longest[0], now)}`
      : 'none behind',
    'return calls': returnCallsText(overview.returnCalls, now),
    settlements: importText(overview, now),
    schema: overview.migration ?? 'none',
  }
  return [
    `${toIstText(now)} in India: orders made today`,
    '',
    ...ordersText(all),
    '',
    ...hoursText(hours),
    '',
    ...Object.entries(facts).map(([name, fact]) => `${name.padEnd(15)}${printable(fact)}`),
    ...(byMerchant ? ['', merchantsText(merchants)] : []),
  ].join('\n')
}

const BAR_CELLS = 20
const EIGHTHS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉']

/** A bar of at most 20 characters. What is there at all is seen. */
function bar(share: number): string {
  const eighths = share > 0 ? Math.max(1, Math.round(share * BAR_CELLS * 8)) : 0
  return `${'█'.repeat(Math.floor(eighths / 8))}${EIGHTHS[eighths % 8]}`
}

function ordersText(all: OrderCounts): string[] {
  const conversion = conversionOf(all)
  const states = ['paid', 'waiting', 'failed', 'expired', 'cancelled'] as const
  const line = (name: string, count: number, bar: string, rest: string) =>
    `${name.padEnd(11)}${toIndianDigits(count).padStart(11)}  ${bar.padEnd(BAR_CELLS)}  ${rest}`.trimEnd()
  return [
    line('orders', all.orders, bar(all.orders > 0 ? 1 : 0), toIndianText(all.paise)),
    ...states.map((state) =>
      line(
        state,
        all[state],
        bar(all[state] / Math.max(1, all.orders)),
        state === 'paid' ? toIndianText(all.paidPaise) : '',
      ),
    ),
    `${'conversion'.padEnd(11)}${(conversion === undefined ? '-' : shareText(conversion)).padStart(11)}  of the orders that are no longer waiting`,
  ]
}

const LEVELS = '▁▂▃▄▅▆▇█'

function hoursText(hours: readonly OrderCounts[]): string[] {
  const most = Math.max(...hours.map(({ orders }) => orders))
  const level = ({ orders }: OrderCounts) =>
    orders === 0 ? ' ' : LEVELS[Math.ceil((orders / most) * LEVELS.length) - 1]
  return [
    `by hour        ${hours.map(level).join('')}`.trimEnd(),
    `               0     6     12    18     at most ${toIndianDigits(most)} an hour`,
  ]
}

function merchantsText(merchants: readonly OfMerchant[]): string {
  const columns = [
    'mid',
    'orders',
    'paid',
    'waiting',
    'failed',
    'expired',
    'cancelled',
    'conversion',
    'amount',
    'paidAmount',
  ] as const
  const rows = merchants.slice(0, MERCHANTS_SHOWN).map((one) => {
    const conversion = conversionOf(one)
    return {
      ...one,
      conversion: conversion === undefined ? null : shareText(conversion),
      amount: toIndianText(one.paise),
      paidAmount: toIndianText(one.paidPaise),
    }
  })
  const more = merchants.length - rows.length
  return `${table(columns, rows, 'no merchant has orders today')}${more > 0 ? `\nand ${more} more: --json has all` : ''}`
}
