import { addPaise, type Paise, toDecimalText } from '../../platform/money.ts'

const COUNTS = [
  'paidCount',
  'settledCount',
  /** Number of open discrepancies. */
  'differences',
] as const

const AMOUNTS = [
  'paid',
  /** Duplicate payments, which count as money that the acquirer received for the merchant. */
  'duplicates',
  /** Settled amount, including fee and tax. */
  'gross',
  'fee',
  'tax',
  /** Amount in the bank statement, without fee and tax. */
  'net',
  /** Amount refunded to customers, less refunds that the bank returned. */
  'refunded',
  /** Amount deducted for disputes, less amounts that the bank returned. */
  'disputed',
  /** Change of the bank's debt through resolved discrepancies; negative if the debt decreases. */
  'resolved',
  /** The part of `resolved` that increases the bank's debt. */
  'resolvedPlus',
  /**
   * Amount paid on these days and not settled yet. For payouts by totals: amount paid whose payout day has not passed
   * yet.
   */
  'awaited',
] as const

/** Counts and amounts of one or more days. Amounts are in paise. */
export type Sums = Record<(typeof COUNTS)[number], number> & Record<(typeof AMOUNTS)[number], Paise>

/**
 * The bank's debt to the merchant before and after these days: `brought + paid + duplicates - gross - refunded -
 * disputed + resolved = carried`.
 */
export type Balance = { brought: Paise; carried: Paise }

export type Totals = Sums & Balance & { openExceptions: number }

export const noSums = (): Sums => ({
  ...(Object.fromEntries(COUNTS.map((name) => [name, 0])) as Record<(typeof COUNTS)[number], number>),
  ...(Object.fromEntries(AMOUNTS.map((name) => [name, 0])) as Record<(typeof AMOUNTS)[number], Paise>),
})

/** Returns totals that start at the balance brought forward. */
export const totalsFrom = (brought: Paise): Totals => ({ ...noSums(), openExceptions: 0, brought, carried: brought })

export const carriedBy = (brought: Paise, { paid, duplicates, gross, refunded, disputed, resolved }: Sums): Paise =>
  [brought, paid, duplicates, -gross, -refunded, -disputed, resolved].reduce(addPaise)

/** Adds the change of the bank's debt through a resolution; negative if the debt decreases. */
export function addResolved(sums: Sums, paise: Paise): void {
  sums.resolved = addPaise(sums.resolved, paise)
  if (paise > 0) sums.resolvedPlus = addPaise(sums.resolvedPlus, paise)
}

export function addSums(total: Sums, sums: Sums): void {
  for (const name of COUNTS) total[name] += sums[name]
  for (const name of AMOUNTS) total[name] = addPaise(total[name], sums[name])
}

/** Returns the totals of all merchants, including one more merchant. */
export function addTotals(all: Totals, one: Totals): Totals {
  const total = { ...all, openExceptions: all.openExceptions + one.openExceptions }
  addSums(total, one)
  total.brought = addPaise(all.brought, one.brought)
  total.carried = addPaise(all.carried, one.carried)
  return total
}

/**
 * Returns the sums under the names that output and closed months use, with amounts in rupees. Only totals have
 * `openExceptions`.
 */
export const formatSums = (sums: Sums & Balance & { openExceptions?: number }) => ({
  broughtForward: toDecimalText(sums.brought),
  payments: sums.paidCount,
  paid: toDecimalText(sums.paid),
  duplicates: toDecimalText(sums.duplicates),
  settlements: sums.settledCount,
  settled: toDecimalText(sums.gross),
  fee: toDecimalText(sums.fee),
  tax: toDecimalText(sums.tax),
  net: toDecimalText(sums.net),
  refunded: toDecimalText(sums.refunded),
  disputed: toDecimalText(sums.disputed),
  resolved: toDecimalText(sums.resolved),
  resolvedPlus: toDecimalText(sums.resolvedPlus),
  resolvedMinus: toDecimalText(sums.resolved - sums.resolvedPlus),
  carriedForward: toDecimalText(sums.carried),
  awaited: toDecimalText(sums.awaited),
  differences: sums.differences,
  openExceptions: sums.openExceptions,
})
