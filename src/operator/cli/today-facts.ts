import { counted, toIndianDigits } from '../../platform/money.ts'
import { countOpen, type OverdueWebhook } from '../monitoring/overview.ts'
import { agesText, ageText, balanceText, countsText, receivedText } from '../texts.ts'
import type { Today } from './read-today.ts'
import { cellText } from './write-text.ts'

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
  command?: { name: string; flags: Readonly<Record<string, string>> }
  /** The chapter of the operator manual that explains the work. */
  chapter?: string
}

/** Time in milliseconds after which a failing or late webhook endpoint needs an operator now. */
const LONG_FAILING_MS = 2 * 60 * 60_000

/** States of payouts that an operator must check. */
const OPEN_ARRIVALS: readonly string[] = ['taken back', 'arrived twice', 'amount differs', 'perhaps', 'not arrived']

/** Returns the facts of today with their severity, the most urgent first. */
export function factsOf(today: Today): Fact[] {
  const { at, failures, byNextAcquirer, settlementImport, migration, warnings } = today
  const facts: (Fact | undefined)[] = [
    ...warnings.map((status): Fact => ({ severity: 'now', subject: 'configuration', status, chapter: 'acquirers' })),
    exceptions(today),
    refunds(today),
    webhooks(today),
    ...books(today),
    payouts(today),
    expiringKeys(today),
    failures.length > 0
      ? information(
          'failed attempts',
          countsText(Object.fromEntries(failures.map(({ reason, count }) => [reason, count]))),
        )
      : undefined,
    byNextAcquirer > 0
      ? information('failover', `${toIndianDigits(byNextAcquirer)} of today’s orders`, 'acquirers')
      : undefined,
    information('return-URL callbacks', callbacksText(today), 'webhooks'),
    information(
      'settlements',
      settlementImport === null
        ? 'none imported yet'
        : `${settlementImport.file} imported ${ageText(settlementImport.importedAt, at)} ago`,
      'settlements',
    ),
    information('schema', migration ?? 'none'),
  ]
  return SEVERITIES.flatMap((severity) => facts.filter((fact) => fact?.severity === severity) as Fact[])
}

const information = (subject: string, status: string, chapter?: string): Fact => ({
  severity: 'information',
  subject,
  status,
  ...(chapter && { chapter }),
})

function exceptions({ exceptions: { open, amount, oldest } }: Today): Fact {
  const count = countOpen(open)
  const ages = `${toIndianDigits(count)} open, ${cellText(amount)}: ${agesText(open)}`
  return {
    severity: count > open['under 1 day'] ? 'now' : count > 0 ? 'today' : 'information',
    subject: 'exceptions',
    status: count > 0 ? `${ages}; oldest: ${oldest[0]?.kind}` : 'none open',
    command: { name: 'payments exceptions', flags: { open: 'on' } },
    chapter: 'exceptions',
  }
}

function refunds({ refunds: { open, overdue, amount } }: Today): Fact {
  const counts = `${toIndianDigits(open)} open, ${cellText(amount)}; ${toIndianDigits(overdue)} older than T+5 days`
  return {
    severity: overdue > 0 ? 'now' : open > 0 ? 'today' : 'information',
    subject: 'refunds',
    status: open > 0 ? counts : 'none open',
    command: { name: 'refunds list', flags: { open: 'on' } },
    chapter: 'refunds',
  }
}

function webhooks({ webhooks: { behind, longest }, at }: Today): Fact {
  const [worst] = longest
  const isUrgent = longest.some(({ switchedOffAt, failingSince, dueSince }) => {
    const since = Math.min(failingSince?.getTime() ?? Infinity, dueSince?.getTime() ?? Infinity)
    return switchedOffAt !== null || at.getTime() - since >= LONG_FAILING_MS
  })
  return {
    severity: isUrgent ? 'now' : behind > 0 ? 'today' : 'information',
    subject: 'webhooks',
    status: worst
      ? `${toIndianDigits(behind)} behind; longest: ${worst.mid} ${worst.endpointId}, ${webhookText(worst, at)}`
      : 'none behind',
    command: { name: 'webhooks list', flags: {} },
    chapter: 'webhooks',
  }
}

/** Returns the balance until yesterday, and the discrepancies of all days, which a bank or an acquirer must settle. */
function books({ balance }: Today): Fact[] {
  const { balances = true, open = { count: 0 } } = balance ?? {}
  return [
    {
      severity: balances ? 'information' : 'now',
      subject: 'reconciliation',
      status: recentBalanceText(balance),
      ...(balance && { command: { name: 'reconcile', flags: { from: balance.from, to: balance.to } } }),
      chapter: 'reconciliation',
    },
    {
      severity: open.count > 0 ? 'today' : 'information',
      subject: 'discrepancies',
      status: openDifferencesText(balance),
      command: { name: 'reconcile differences', flags: {} },
      chapter: 'discrepancies',
    },
  ]
}

/** Returns the payouts of the last month by their state in bank statements; undefined if no statement covers any. */
function payouts({ arrivals }: Today): Fact | undefined {
  if (arrivals.length === 0) return undefined
  const texts = arrivals.map(({ arrival, payouts, net }) => `${payouts} ${receivedText(arrival)} (${cellText(net)})`)
  return {
    severity: arrivals.some(({ arrival }) => OPEN_ARRIVALS.includes(arrival)) ? 'today' : 'information',
    subject: 'payouts',
    status: `${texts.join(', ')}: ops reconcile payouts`,
    command: { name: 'reconcile payouts', flags: {} },
    chapter: 'bank-statements',
  }
}

function expiringKeys({ expiringKeys: [first, ...others] }: Today): Fact | undefined {
  if (first === undefined) return undefined
  const status = `${counted(others.length + 1, 'key')} to replace, the first by ${first.expiresOn}`
  return { severity: 'today', subject: 'keys', status, chapter: 'keys' }
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
  const days = balanceText({ ...balance, carriedForward: carriedForward.paise })
  if (!balances) return `${days} (ops reconcile --from ${from} --to ${to})`
  return carriedForward.paise === 0 || open.count > 0 ? days : `${days}, none of it due yet`
}

/** Describes the open discrepancies of all days, and names the command that lists them. */
export function openDifferencesText(balance: Today['balance']): string {
  if (balance === null) return 'not available yet: run ops reconcile differences'
  const { count, owed, oldest } = balance.open
  if (count === 0) return 'none open'
  return `${toIndianDigits(count)} open, total ${cellText(owed)}, oldest ${oldest} (ops reconcile differences)`
}
