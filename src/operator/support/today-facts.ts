import { counted, toIndianDigits } from '../../platform/money.ts'
import { errorsLine } from '../commands/merchant-errors.ts'
import { cellText } from '../commands/result.ts'
import { countOpen, type OverdueWebhook } from '../monitoring/overview.ts'
import { agesText, ageText, balanceText, receivedText, sizeText } from '../texts.ts'
import type { Today } from './today.ts'

/**
 * How soon an operator must act. With `now`, money or merchants are waiting for a person; `today` is work of the day;
 * `information` needs no work.
 */
export const SEVERITIES = ['now', 'today', 'information'] as const
export type Severity = (typeof SEVERITIES)[number]

/** One line of `ops today`. */
export type Fact = {
  severity: Severity
  subject: string
  status: string
  /** The command that lists the work, with its flags as in a form of the console: `on` for a flag without a value. */
  command?: { name: string; flags: Readonly<Record<string, string>> } | undefined
  /** The chapter of the operator manual that explains the work. */
  chapter?: string
}

/** A fact whose severity is `now`, `today` or `information`, whichever holds first. It is omitted without a status. */
type Candidate = Omit<Fact, 'severity' | 'status'> & { status: string | undefined; now?: boolean; today?: boolean }

/** Time in milliseconds after which a failing or late webhook endpoint needs an operator now. */
const LONG_FAILING_MS = 2 * 60 * 60_000

/** States of payouts that an operator must check. */
const OPEN_ARRIVALS: readonly string[] = ['taken back', 'arrived twice', 'amount differs', 'perhaps', 'not arrived']

/** Returns the fact about open disputes with one kind of deadline. */
const disputeFact = (count: number, text: string): Candidate => ({
  ...{ subject: 'disputes', status: count > 0 ? `${toIndianDigits(count)} ${text}` : undefined, today: true },
  ...{ command: { name: 'disputes list', flags: { open: 'on' } }, chapter: 'disputes' },
})

const awaitingText = ({ amount, first, respondBy }: Today['disputes']) =>
  `awaiting a response, ${cellText(amount)}; first: ${first} by ${cellText(respondBy)}`

const LOOK_UP = 'look it up in the acquirer’s dashboard, then run ops disputes update'

/** Returns the facts of today with their severity, the most urgent first. */
export function factsOf(all: Today): Fact[] {
  const { at, exceptions, refunds, webhooks, balance, arrivals, expiringKeys, failures, byNextAcquirer } = all
  const openExceptions = countOpen(exceptions.open)
  const candidates: Candidate[] = [
    {
      ...{ subject: 'merchants', status: errorsLine([...(balance?.errors ?? []), ...all.arrivalErrors]), now: true },
      ...{ command: { name: 'reconcile', flags: balance ? { from: balance.from, to: balance.to } : {} } },
      chapter: 'reconciliation',
    },
    ...all.warnings.map((status) => ({ subject: 'configuration', status, now: true, chapter: 'acquirers' })),
    {
      ...{ subject: 'exceptions', status: exceptionsText(exceptions), chapter: 'exceptions' },
      ...{ now: openExceptions > exceptions.open['under 1 day'], today: openExceptions > 0 },
      command: { name: 'payments exceptions', flags: { open: 'on' } },
    },
    {
      ...{ subject: 'refunds', status: refundsText(refunds), chapter: 'refunds' },
      ...{ now: refunds.overdue > 0, today: refunds.open > 0 },
      command: { name: 'refunds list', flags: { open: 'on' } },
    },
    { ...disputeFact(all.disputes.awaiting, awaitingText(all.disputes)), now: true },
    { ...disputeFact(all.disputes.passed, `open, deadline passed, status unknown: ${LOOK_UP}`), now: true },
    disputeFact(all.disputes.unknown, `open, deadline unknown: ${LOOK_UP}`),
    {
      ...{ subject: 'webhooks', status: webhooksText(webhooks, at), chapter: 'webhooks' },
      ...{ now: webhooks.longest.some((endpoint) => isUrgent(endpoint, at)), today: webhooks.behind > 0 },
      command: { name: 'webhooks list', flags: {} },
    },
    {
      ...{ subject: 'reconciliation', status: recentBalanceText(balance), chapter: 'reconciliation' },
      now: balance?.balances === false,
      command: balance ? { name: 'reconcile', flags: { from: balance.from, to: balance.to } } : undefined,
    },
    {
      ...{ subject: 'discrepancies', status: openDifferencesText(balance), chapter: 'discrepancies' },
      today: balance !== null && balance.open.count > 0,
      command: { name: 'reconcile differences', flags: {} },
    },
    {
      ...{ subject: 'payouts', status: payoutsText(arrivals), chapter: 'bank-statements' },
      today: arrivals.some(({ arrival }) => OPEN_ARRIVALS.includes(arrival)),
      command: { name: 'reconcile differences', flags: {} },
    },
    { subject: 'keys', status: keysText(expiringKeys), today: true, chapter: 'keys' },
    { subject: 'failed attempts', status: failuresText(failures) },
    { subject: 'failover', status: failoverText(byNextAcquirer), chapter: 'acquirers' },
    { subject: 'return-URL callbacks', status: callbacksText(all), chapter: 'webhooks' },
    { subject: 'settlements', status: importText(all), chapter: 'settlements' },
    { subject: 'database', status: databaseText(all), chapter: 'capacity' },
  ]
  const facts = candidates.flatMap(({ now, today, status, ...fact }): Fact[] =>
    status === undefined ? [] : [{ ...fact, status, severity: now ? 'now' : today ? 'today' : 'information' }],
  )
  return SEVERITIES.flatMap((severity) => facts.filter((fact) => fact.severity === severity))
}

function exceptionsText({ open, amount, oldest: [oldest] }: Today['exceptions']): string {
  if (oldest === undefined) return 'none open'
  return `${toIndianDigits(countOpen(open))} open, ${cellText(amount)}: ${agesText(open)}; oldest: ${oldest.kind}`
}

function refundsText({ open, overdue, amount }: Today['refunds']): string {
  if (open === 0) return 'none open'
  return `${toIndianDigits(open)} open, ${cellText(amount)}; ${toIndianDigits(overdue)} older than T+5 days`
}

function webhooksText({ behind, longest: [worst] }: Today['webhooks'], now: Date): string {
  if (worst === undefined) return 'none behind'
  return `${toIndianDigits(behind)} behind; longest: ${worst.mid} ${worst.endpointId}, ${webhookText(worst, now)}`
}

/** Whether the service disabled the endpoint, or it has been failing or late for 2 hours. */
function isUrgent({ switchedOffAt, failingSince, dueSince }: OverdueWebhook, now: Date): boolean {
  const since = Math.min(failingSince?.getTime() ?? Infinity, dueSince?.getTime() ?? Infinity)
  return switchedOffAt !== null || now.getTime() - since >= LONG_FAILING_MS
}

/** Describes the payouts of the last month by their state in bank statements; undefined if no statement covers any. */
function payoutsText(arrivals: Today['arrivals']): string | undefined {
  if (arrivals.length === 0) return undefined
  const texts = arrivals.map(({ arrival, payouts, net }) => `${payouts} ${receivedText(arrival)} (${cellText(net)})`)
  return `${texts.join(', ')} (ops reconcile differences)`
}

const keysText = ([first, ...others]: Today['expiringKeys']) =>
  first && `${counted(others.length + 1, 'key')} to replace, the first by ${first.expiresOn}`

const failuresText = (failures: Today['failures']) =>
  failures.length === 0 ? undefined : failures.map(({ reason, count }) => `${count} ${reason}`).join(', ')

const failoverText = (orders: number) => (orders === 0 ? undefined : `${toIndianDigits(orders)} of today’s orders`)

const databaseText = ({ databaseBytes, migration }: Today) =>
  `${sizeText(databaseBytes)}, schema ${migration ?? 'none'}`

function importText({ settlementImport, at }: Today): string {
  if (settlementImport === null) return 'none imported yet'
  return `${settlementImport.file} imported ${ageText(settlementImport.importedAt, at)} ago`
}

function callbacksText({ returnCalls: { givenUp, newest }, at }: Today): string {
  const [last] = newest
  if (last === undefined) return 'none abandoned in the last 7 days'
  return `${toIndianDigits(givenUp)} abandoned in the last 7 days; latest: ${last.mid} ${last.orderId}, ${ageText(last.givenUpAt, at)} ago`
}

/** Describes the problem with a webhook endpoint. */
function webhookText({ switchedOffAt, failingSince, dueSince }: OverdueWebhook, now: Date): string {
  if (switchedOffAt) return `disabled ${ageText(switchedOffAt, now)} ago`
  if (failingSince) return `failing for ${ageText(failingSince, now)}`
  return `delivery pending for ${dueSince ? ageText(dueSince, now) : '-'}`
}

/** Describes the balance of the last days, and names the command for details. */
export function recentBalanceText(balance: Today['balance']): string {
  if (balance === null) return 'not available yet: run ops reconcile'
  const { from, to, balances, open, carriedForward } = balance
  const days = balanceText({ ...balance, errors: balance.errors.length, carriedForward: carriedForward.paise })
  if (!balances) return `${days} (ops reconcile --from ${from} --to ${to})`
  return carriedForward.paise === 0 || open.count > 0 ? days : `${days}, none of it due yet`
}

/** Describes the open discrepancies of all days, and names the command that lists them. */
export function openDifferencesText(balance: Today['balance']): string {
  if (balance === null) return 'not available yet: run ops reconcile differences'
  const { count, owed, oldest } = balance.open
  const unread = balance.errors.length > 0 ? `, without ${counted(balance.errors.length, 'merchant')}` : ''
  if (count === 0) return `none open${unread}`
  return `${toIndianDigits(count)} open, total ${cellText(owed)}, oldest ${oldest}${unread} (ops reconcile differences)`
}
