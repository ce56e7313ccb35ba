import type { Days } from '../books/ledger/bank-days.ts'
import type { ArrivalCount, ArrivedPayout } from '../books/reports/arrivals.ts'
import { counted, type Paise, toIndianDigits, toIndianRupees } from '../platform/money.ts'
import { AGES, type Age } from './monitoring/overview.ts'

/** Texts that several commands show. */

/** Formats a share as a percentage such as `82.4 %`, rounded down so that only a share of 1 is shown as 100 %. */
export function shareText(share: number): string {
  return `${(Math.floor(share * 1000) / 10).toFixed(1)} %`
}

const UNITS = [
  ['s', 1_000],
  ['min', 60_000],
  ['h', 60 * 60_000],
  ['days', 24 * 60 * 60_000],
] as const

/**
 * Formats the time since `moment`, rounded down, such as `12 s`, `3 h` or `2 days`. A unit is used only for values of 2
 * or more, to limit the rounding error.
 */
export function ageText(moment: Date, now: Date): string {
  const ms = Math.max(0, now.getTime() - moment.getTime())
  const [unit, unitMs] = UNITS.findLast(([, each]) => ms >= 2 * each) ?? UNITS[0]
  return `${Math.floor(ms / unitMs)} ${unit}`
}

const SIZES = [
  ['MB', 1e6],
  ['GB', 1e9],
  ['TB', 1e12],
] as const

/** Formats a number of bytes, such as `12.3 GB`. */
export function sizeText(bytes: number): string {
  const [unit, unitBytes] = SIZES.findLast(([, each]) => bytes >= each) ?? SIZES[0]
  return `${(bytes / unitBytes).toFixed(1)} ${unit}`
}

/** Formats counts, such as `2 double payment, 1 late payment`, or `none` if all counts are 0. */
export function countsText(counts: Readonly<Record<string, number>>): string {
  const some = Object.entries(counts).filter(([, count]) => count > 0)
  return some.map(([name, count]) => `${count} ${name}`).join(', ') || 'none'
}

/** Formats the number of open items by age, such as `1 for 1 to 2 days, 2 for over 2 days`. */
export function agesText(open: Readonly<Record<Age, number>>): string {
  return AGES.flatMap((age) => (open[age] > 0 ? `${toIndianDigits(open[age])} for ${age}` : [])).join(', ')
}

/** Returns a payout's state for text output. JSON and CSV contain the values of `arrival` instead. */
export const receivedText = (arrival: ArrivalCount['arrival']) =>
  ({ 'taken back': 'reversed', arrived: 'received', 'arrived twice': 'received twice', 'not arrived': 'not received' })[
    arrival as string
  ] ?? arrival

/**
 * Formats an open payout as one line, such as `payout BRN0005 of 2026-11-18 to M1, ₹350.00: amount differs by -₹10.00`.
 */
export function openPayoutText({ day, mid, bankReference, net, arrival, difference }: ArrivedPayout): string {
  const by = arrival === 'amount differs' && difference !== null ? ` by ${toIndianRupees(difference)}` : ''
  return `payout ${bankReference} of ${day} to ${mid}, ${toIndianRupees(net)}: ${receivedText(arrival)}${by}`
}

/**
 * Formats the result of a reconciliation, such as `2026-11-20 to 2026-11-21 does not balance: 2 discrepancies, 1 open
 * exception`, or `…balances, ₹26,409.99 carried forward`.
 */
export function balanceText({
  from,
  to,
  carriedForward,
  ...counts
}: Days & { carriedForward: Paise | bigint } & Parameters<typeof errorsText>[0]): string {
  const days = from === to ? from : `${from} to ${to}`
  const errors = errorsText(counts)
  if (errors !== '') return `${days} does not balance: ${errors}`
  return `${days} balances${carriedForward === 0 ? '' : `, ${toIndianRupees(carriedForward)} carried forward`}`
}

/**
 * Formats numbers of errors, such as `2 discrepancies, 1 open exception`. `errors` is the number of merchants that cannot
 * be reconciled. Returns an empty text if all numbers are 0.
 */
export const errorsText = ({
  errors = 0,
  differences,
  openExceptions = 0,
}: {
  errors?: number
  differences: number
  openExceptions?: number | undefined
}) =>
  [
    ...(errors > 0 ? [`${counted(errors, 'merchant')} not reconciled`] : []),
    ...(differences > 0 ? [counted(differences, 'discrepancy', 'discrepancies')] : []),
    ...(openExceptions > 0 ? [counted(openExceptions, 'open exception')] : []),
  ].join(', ')
