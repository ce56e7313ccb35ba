import type { Days } from '../books/ledger/bank-days.ts'
import type { ArrivalCount, ArrivedPayout } from '../books/reconciliation/arrivals.ts'
import type { RecentBalance } from '../books/reconciliation/recent-balance.ts'
import { counted, groupRupees, toDecimalText, toIndianDigits, toIndianRupees, toIndianText } from '../platform/money.ts'
import { AGES, type Age, type OverdueWebhook, type Overview } from './monitoring/overview.ts'

/** Texts that both `ops today` and the operator dashboard show. */

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

/** Formats counts, such as `2 double payment, 1 late payment`, or `none` if all counts are 0. */
export function countsText(counts: Readonly<Record<string, number>>): string {
  const some = Object.entries(counts).filter(([, count]) => count > 0)
  return some.map(([name, count]) => `${count} ${name}`).join(', ') || 'none'
}

/** Formats the number of open items by age, such as `1 for 1 to 2 days, 2 for over 2 days`. */
export function agesText(open: Readonly<Record<Age, number>>): string {
  return AGES.flatMap((age) => (open[age] > 0 ? `${toIndianDigits(open[age])} for ${age}` : [])).join(', ')
}

/** Describes the problem with a webhook endpoint. */
export function webhookText({ switchedOffAt, failingSince, dueSince }: OverdueWebhook, now: Date): string {
  if (switchedOffAt) return `disabled ${ageText(switchedOffAt, now)} ago`
  if (failingSince) return `failing for ${ageText(failingSince, now)}`
  return `delivery pending for ${dueSince ? ageText(dueSince, now) : '-'}`
}

/** Describes the refunds without a final status. */
export function refundsText({ open, overdue, amount }: Overview['refunds']): string {
  if (open === 0) return 'none open'
  return `${toIndianDigits(open)} open, ${toIndianText(amount)}; ${toIndianDigits(overdue)} older than T+5 days`
}

/** Describes the abandoned return-URL callbacks by their number and the newest callback. */
export function returnUrlCallbacksText({ givenUp, newest }: Overview['returnCalls'], now: Date): string {
  const [last] = newest
  if (last === undefined) return 'none abandoned in the last 7 days'
  return `${toIndianDigits(givenUp)} abandoned in the last 7 days; latest: ${last.mid} ${last.orderId}, ${ageText(last.givenUpAt, now)} ago`
}

/** Describes the number of today's orders that were created at a fallback acquirer. */
export const nextAcquirerText = ({ byNextAcquirer: byFallbackAcquirer }: Pick<Overview, 'byNextAcquirer'>) =>
  `${toIndianDigits(byFallbackAcquirer)} of today’s orders`

export function importText({ settlementImport }: Pick<Overview, 'settlementImport'>, now: Date): string {
  if (settlementImport === undefined) return 'none imported yet'
  return `${settlementImport.file} imported ${ageText(settlementImport.importedAt, now)} ago`
}

/** Returns a payout's state for text output. JSON and CSV contain the values of `arrival` instead. */
export const receivedText = (arrival: ArrivalCount['arrival']) =>
  ({ 'taken back': 'reversed', arrived: 'received', 'arrived twice': 'received twice', 'not arrived': 'not received' })[
    arrival as string
  ] ?? arrival

/**
 * Describes the payouts of the last month by their state in bank statements, and names the command that lists these
 * payouts.
 */
export function arrivalsText(counts: readonly ArrivalCount[]): string {
  const texts = counts.map(
    ({ arrival, payouts, net }) => `${payouts} ${receivedText(arrival)} (${toIndianRupees(net)})`,
  )
  return `${texts.join(', ')}: ops reconcile payouts`
}

/**
 * Formats an open payout as one line, such as `payout BRN0005 of 2026-11-18 to M1, ₹350.00: amount differs by -₹10.00`.
 */
export function openPayoutText({ day, mid, bankReference, net, arrival, difference }: ArrivedPayout): string {
  const by = arrival === 'amount differs' && difference !== null ? ` by ${toIndianRupees(difference)}` : ''
  return `payout ${bankReference} of ${day} to ${mid}, ${toIndianRupees(net)}: ${receivedText(arrival)}${by}`
}

/**
 * Formats the result of a reconciliation, such as `2026-11-20 to 2026-11-21 does not balance: 2 discrepancies, 1 open
 * exception`, or `…balances, 26409.99 carried forward`.
 */
export function balanceText({
  from,
  to,
  differences,
  openExceptions,
  carriedForward,
}: Days & Pick<RecentBalance, 'differences' | 'openExceptions' | 'carriedForward'>): string {
  const days = from === to ? from : `${from} to ${to}`
  const errors = errorsText({ differences, openExceptions })
  if (errors !== '') return `${days} does not balance: ${errors}`
  return `${days} balances${carriedForward === 0 ? '' : `, ${toDecimalText(carriedForward)} carried forward`}`
}

/**
 * Formats the number of errors, such as `2 discrepancies, 1 open exception`. Returns an empty text if the number of
 * errors is 0.
 */
export const errorsText = ({
  differences,
  openExceptions = 0,
}: {
  differences: number
  openExceptions?: number | undefined
}) =>
  [
    ...(differences > 0 ? [counted(differences, 'discrepancy', 'discrepancies')] : []),
    ...(openExceptions > 0 ? [counted(openExceptions, 'open exception')] : []),
  ].join(', ')

/**
 * Describes the balance of the last days and names the command for details. Without `balance`, names the command to run
 * instead.
 */
export function recentBalanceText(balance: RecentBalance | undefined): string {
  if (balance === undefined) return 'not available yet: run ops reconcile'
  const { from, to, balances, open, carriedForward } = balance
  const days = groupRupees(balanceText(balance))
  if (!balances) return `${days} (ops reconcile --from ${from} --to ${to})`
  return carriedForward === 0 || open.count > 0 ? days : `${days}, none of it due yet`
}

/** Describes the open discrepancies of all days, and names the command that lists these discrepancies. */
export function openDifferencesText(balance: RecentBalance | undefined): string {
  if (balance === undefined) return 'not available yet: run ops reconcile differences'
  const { count, owed, oldest } = balance.open
  if (count === 0) return 'none open'
  const rupees = groupRupees(toDecimalText(owed))
  return `${toIndianDigits(count)} open, total ${rupees}, oldest ${oldest} (ops reconcile differences)`
}
