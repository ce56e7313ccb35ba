import { addDays } from '../../books/ledger/bank-days.ts'
import { countArrivals } from '../../books/reports/arrivals.ts'
import { balanceUntilYesterday, type RecentBalance } from '../../books/reports/recent-balance.ts'
import { openAccounts } from '../../gateway/acquirers/stored-accounts.ts'
import { acquirersOfOpenRefunds } from '../../gateway/refunds/store.ts'
import { LIMITS } from '../../limits.ts'
import type { Paise } from '../../platform/money.ts'
import { toIstDay } from '../../platform/time.ts'
import type { Context } from '../commands/command.ts'
import { listKeys } from '../commands/keys.ts'
import { Money, rupees } from '../commands/result.ts'
import { add, countOrdersOfDay, HOURS, NO_ORDERS, type OrderCounts } from '../monitoring/order-counts.ts'
import { createOverview } from '../monitoring/overview.ts'

/** Number of days before its expiry from which a key is listed. */
export const KEY_EXPIRY_NOTICE_DAYS = 14

/** The fields of `ops today`, as in its JSON output. */
export type Today = Awaited<ReturnType<typeof readToday>>

/** Reads the orders of the current IST day by hour and by merchant. The merchant with the most orders comes first. */
export async function readToday(
  { config, db, at, byMerchant }: Pick<Context, 'config' | 'db'> & { at: Date; byMerchant: boolean },
  { balance, arrivals, arrivalErrors }: Awaited<ReturnType<typeof readBooks>>,
) {
  const [counts, overview, expiringKeys] = await Promise.all([
    countOrdersOfDay(db, at),
    createOverview(db).read(at),
    readExpiringKeys(db, at),
  ])
  const hours = Array.from({ length: HOURS }, () => NO_ORDERS)
  const ofMerchants = new Map<string, OrderCounts>()
  for (const { hour, mid, ...counted } of counts) {
    hours[hour] = add(hours[hour] ?? NO_ORDERS, counted)
    ofMerchants.set(mid, add(ofMerchants.get(mid) ?? NO_ORDERS, counted))
  }
  const merchants = [...ofMerchants]
    .map(([mid, counted]) => ({ mid, ...shownCounts(counted) }))
    .sort((a, b) => b.orders - a.orders || (a.mid < b.mid ? -1 : 1))
  const { exceptions, refunds, disputes } = overview
  return {
    ...{ ...overview, day: toIstDay(at), at, ...shownCounts(hours.reduce(add)) },
    hours: hours.flatMap((one, hour) => (one.orders > 0 ? [{ hour, ...shownCounts(one) }] : [])),
    ...(byMerchant && { merchants }),
    refunds: { ...refunds, amount: new Money(refunds.amount, true), oldest: refunds.oldest.map(inNumbers) },
    disputes: { ...disputes, amount: new Money(disputes.amount, true) },
    exceptions: { ...exceptions, amount: new Money(exceptions.amount), oldest: exceptions.oldest.map(inRupees) },
    balance: balance === undefined ? null : shownBalance(balance),
    arrivals: arrivals.map((one) => ({ ...one, net: new Money(one.net) })),
    arrivalErrors,
    expiringKeys,
    warnings: await openAccounts(db, config, LIMITS.lookUps).refundWarnings(await acquirersOfOpenRefunds(db)),
  }
}

/** Returns the valid keys of merchants, partners and operators that expire soon, the earliest first. */
async function readExpiringKeys(db: Context['db'], at: Date) {
  const [first, last] = [toIstDay(at), addDays(toIstDay(at), KEY_EXPIRY_NOTICE_DAYS)]
  return (await listKeys(db, {}))
    .flatMap((key) => (key.revokedAt === null && key.expiresOn !== null ? { ...key, expiresOn: key.expiresOn } : []))
    .filter(({ expiresOn }) => expiresOn >= first && expiresOn <= last)
    .sort((a, b) => (a.expiresOn < b.expiresOn ? -1 : 1))
}

/**
 * Reads the balance until yesterday, and the payouts of the last month by their state in bank statements. `arrivalErrors`
 * lists the merchants whose payouts cannot be read.
 */
export async function readBooks(db: Context['db'], at: Date) {
  const balance = await balanceUntilYesterday(db, at, LIMITS.operatorDatabase.statementTimeoutMs)
  const { arrivals, errors: arrivalErrors } = await countArrivals(db, at)
  return { balance, arrivals, arrivalErrors }
}

/** Converts the amounts of a balance from paise. */
export const shownBalance = ({ carriedForward, open, ...days }: RecentBalance) => ({
  ...days,
  carriedForward: new Money(carriedForward),
  open: { ...open, owed: new Money(open.owed) },
})

const inRupees = <T extends { amount: Paise | null }>(one: T) => ({ ...one, amount: rupees(one.amount) })

const inNumbers = <T extends { amount: Paise }>(one: T) => ({ ...one, amount: new Money(one.amount, true) })

/** Counts of orders with the share of paid ones among those with a final status, which is null before the first. */
export type ShownCounts = ReturnType<typeof shownCounts>

function shownCounts({ paise, paidPaise, ...counts }: OrderCounts) {
  const { orders, waiting, paid } = counts
  const conversion = orders > waiting ? paid / (orders - waiting) : null
  return { ...counts, conversion, amount: new Money(paise, true), paidAmount: new Money(paidPaise, true) }
}
