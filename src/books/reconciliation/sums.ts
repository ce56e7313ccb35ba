import { type Paise, toDecimalText } from '../../platform/money.ts'

/** Counts and amounts of one or more days. Amounts are in paise. */
export const COUNTS = [
  'paidCount',
  'settledCount',
  /** Number of differences, without those that a person has resolved. */
  'differences',
] as const

export const AMOUNTS = [
  'paid',
  /** Settled, with fee and tax. */
  'gross',
  'fee',
  'tax',
  /** What stands in the bank statement: without fee and tax. */
  'net',
  /** Sent back to customers. */
  'refunded',
  /** What the bank owes more by the differences that a person has ended; negative where it owes less. */
  'resolved',
  /** Of `resolved` what the bank owes more. */
  'resolvedPlus',
  /** Paid on these days and not settled yet. Where the bank's file has sums only: paid, and not due yet. */
  'awaited',
] as const

export type Sums = Record<(typeof COUNTS)[number], number> & Record<(typeof AMOUNTS)[number], Paise>

/** What the bank owes the merchant before and after: `brought + paid - gross - refunded + resolved = carried`. */
export type Balance = { brought: Paise; carried: Paise }

export type Totals = Sums & Balance & { openExceptions: number }

export const noSums = (): Sums => ({
  ...(Object.fromEntries(COUNTS.map((name) => [name, 0])) as Record<(typeof COUNTS)[number], number>),
  ...(Object.fromEntries(AMOUNTS.map((name) => [name, 0])) as Record<(typeof AMOUNTS)[number], Paise>),
})

/** Totals that begin with what the bank owes already. */
export const totalsFrom = (brought: Paise): Totals => ({ ...noSums(), openExceptions: 0, brought, carried: brought })

export const carriedBy = (brought: Paise, { paid, gross, refunded, resolved }: Sums): Paise =>
  brought + paid - gross - refunded + resolved

/** Enters what the bank owes more by a resolution; less where it is negative. */
export function addResolved(sums: Sums, paise: Paise): void {
  sums.resolved += paise
  if (paise > 0) sums.resolvedPlus += paise
}

/** Adds the counts and amounts of `sums`. */
export function addSums(total: Sums, sums: Sums): void {
  for (const name of COUNTS) total[name] += sums[name]
  for (const name of AMOUNTS) total[name] += sums[name]
}

/** Adds the totals of a merchant to those of all. */
export function addTotals(all: Totals, one: Totals): void {
  addSums(all, one)
  all.openExceptions += one.openExceptions
  all.brought += one.brought
  all.carried += one.carried
}

/** Sums by the names under which they are printed and kept; amounts in rupees. Only totals have `openExceptions`. */
export const spellSums = (sums: Sums & Balance & { openExceptions?: number }) => ({
  broughtForward: toDecimalText(sums.brought),
  payments: sums.paidCount,
  paid: toDecimalText(sums.paid),
  settlements: sums.settledCount,
  settled: toDecimalText(sums.gross),
  fee: toDecimalText(sums.fee),
  tax: toDecimalText(sums.tax),
  net: toDecimalText(sums.net),
  refunded: toDecimalText(sums.refunded),
  resolved: toDecimalText(sums.resolved),
  resolvedPlus: toDecimalText(sums.resolvedPlus),
  resolvedMinus: toDecimalText(sums.resolved - sums.resolvedPlus),
  carriedForward: toDecimalText(sums.carried),
  awaited: toDecimalText(sums.awaited),
  differences: sums.differences,
  openExceptions: sums.openExceptions,
})
