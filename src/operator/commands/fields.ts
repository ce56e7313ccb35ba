import * as z from 'zod'
import { daysOfMonth } from '../../books/closing/closed-months.ts'
import type { Days } from '../../books/ledger/bank-days.ts'
import { ACQUIRER_NAMES } from '../../gateway/acquirers/acquirers.ts'
import { isOrderId } from '../../gateway/payments/intent.ts'
import { createAcquirerAccounts } from '../../gateway/tenants/acquirer-accounts.ts'
import { createMerchants } from '../../gateway/tenants/merchants.ts'
import type { Queryable } from '../../platform/db/pool.ts'
import {
  errorText,
  IDENTIFIER,
  IDENTIFIER_RULE,
  identifier,
  matching,
  pastedReference,
  text,
} from '../../platform/fields.ts'
import { toDecimalText } from '../../platform/money.ts'
import { dayText, momentText, nextDay, startOfDay, toIstDay } from '../../platform/time.ts'
import { flag, oneOf, optional, type RecordFields, toggle } from './field.ts'
import { Money } from './result.ts'

/** Fields that several commands have. */

export const MID = {
  ...flag(identifier, 'MID', 'Merchant'),
  choices: async (db: Queryable) =>
    (await createMerchants(db).list()).map(({ mid, name }) => ({ value: mid, text: name })),
}
export const PID = flag(identifier, 'PID', 'Partner')
export const REASON = flag(text(255), 'TEXT', 'Reason', 'for the record')
export const LABEL = optional(flag(text(100), 'TEXT', 'Label', 'for operators'))
export const OPEN = optional(toggle('Only open ones'))
export const YES = optional(toggle('Do not ask for confirmation'))
export const DRY_RUN = optional(toggle('Print the result and change nothing'))

const ORDER_ID_RULE = 'must be the service’s orderId, 32 hex digits'
const orderId = z.string(errorText(ORDER_ID_RULE)).refine(isOrderId, ORDER_ID_RULE)
const refundId = matching(/^[0-9a-f]{32}$/, 'must be the service’s refundId, 32 hex digits')
const anyCase = matching(/^[0-9a-f]{12}$/i, 'must be the id of an exception, 12 hex digits')
const exceptionId = anyCase.transform((id) => id.toLowerCase())

const shownBy = (page: string, column: string) => ({ record: { page, column } })
export const ORDER_ID = { ...flag(orderId, 'ID', 'orderId', '32 hex digits'), ...shownBy('payments show', 'orderId') }
export const REFUND = { ...flag(refundId, 'ID', 'refundId', '32 hex digits'), ...shownBy('refunds show', 'refundId') }
export const EXCEPTION = {
  ...flag(exceptionId, 'ID', 'Exception', '12 hex digits'),
  ...shownBy('payments find', 'exceptionId'),
}
export const PAYOUT = {
  ...flag(pastedReference, 'UTR|REFERENCE', 'Payout', 'its UTR or bank reference'),
  record: { page: 'reconcile' },
}

/** The fields that name a record with a page of its own, by the flag of links to it. */
export const RECORDS = { 'order-id': ORDER_ID, refund: REFUND, exception: EXCEPTION, payout: PAYOUT }

/** A number that the service has assigned to a record. */
export const numbered = (label: string, rule: string) => ({
  ...flag(matching(/^[1-9][0-9]{0,8}$/, rule).transform(Number), 'N', label),
  record: {},
})

/** A number of days that is at least `least`. */
export const daysFrom = (least: number) => {
  const rule = `must be a whole number of days, ${least} to 36500`
  const isAccepted = (days: number) => days >= least && days <= 36_500
  return matching(/^\d{1,5}$/, rule)
    .transform(Number)
    .refine(isAccepted, rule)
}

/** Formats an amount of a record as the text of an input. */
export const amountText = (cell: unknown) => (cell instanceof Money ? toDecimalText(cell.paise) : undefined)

const ACQUIRERS = `${ACQUIRER_NAMES.join(', ')}, or one of its accounts`
const ACCOUNT_RULE = `must be one of ${ACQUIRER_NAMES.join(', ')}, optionally followed by :ACCOUNT; the account ${IDENTIFIER_RULE}`

/**
 * An acquirer such as `setu`, or an acquirer account such as `setu:acme`. The account `default` is the account in the
 * environment variables.
 */
const acquirerAccount = z
  .string(errorText(ACCOUNT_RULE))
  .refine((typed) => {
    const [name = '', account = name, ...more] = typed.split(':')
    return ACQUIRER_NAMES.includes(name) && IDENTIFIER.test(account) && more.length === 0
  }, ACCOUNT_RULE)
  .transform((typed) => typed.replace(/:default$/, ''))
export const ACQUIRER_ACCOUNT = {
  ...flag(acquirerAccount, 'ACQUIRER[:ACCOUNT]', 'Acquirer', ACQUIRERS),
  choices: async (db: Queryable) => {
    const accounts = (await createAcquirerAccounts(db).list()).map(({ name }) => name)
    return [...new Set([...ACQUIRER_NAMES, ...accounts])].map((value) => ({ value }))
  },
}
export const ACQUIRER_FILTER = optional(flag(text(100), 'ACQUIRER[:ACCOUNT]', 'Acquirer', ACQUIRERS))
export const ANY_ACCOUNT = optional(flag(identifier, 'NAME', 'Acquirer account', 'default: that of the environment'))

const MONTHS_OFFERED = 13
/** Returns the month that is `back` calendar months before that of `now`, as `YYYY-MM`. */
const monthBefore = (now: Date, back: number) => {
  const [year, month] = toIstDay(now).split('-').map(Number) as [number, number]
  return new Date(Date.UTC(year, month - 1 - back, 1)).toISOString().slice(0, 7)
}

const month = matching(/^20\d\d-(0[1-9]|1[0-2])$/, 'must be a month such as 2026-11')
export const DAY = { ...flag(dayText, 'DAY', 'Day', 'IST'), example: '2026-01-26' }
export const FROM = { ...DAY, label: 'First day', example: '2026-11-01' }
export const TO = { ...DAY, label: 'Last day', hint: 'included', example: '2026-11-30' }
export const AS_OF = optional({ ...DAY, label: 'As of', hint: 'ignores everything recorded after this day (IST)' })
export const MONTH = {
  ...flag(month, 'YYYY-MM', 'Month', 'IST'),
  example: '2026-11',
  choices: async (_db: Queryable, now: Date) =>
    Array.from({ length: MONTHS_OFFERED }, (_, back) => ({ value: monthBefore(now, back) })),
}
/** A month whose form begins with the last one. */
export const LAST_MONTH = { ...MONTH, prefill: (_: RecordFields, now: Date) => monthBefore(now, 1) }

/** Accepts a time in IST without seconds, too. */
export const moment = z
  .string()
  .transform((typed) => typed.replace(/^(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d)$/, '$1 $2:00'))
  .pipe(momentText)
export const SINCE = { ...flag(moment, 'TIME', 'Start time', 'IST'), example: '2026-11-26 09:30:00' }
export const UNTIL = optional(flag(moment, 'TIME', 'End time', 'IST, excluded; default: now'))

type GivenDays = { from?: string | undefined; to?: string | undefined; month?: string | undefined }

export const inOrder = ({ from, to }: GivenDays) =>
  from !== undefined && to !== undefined && from > to ? '--from must not be after --to' : undefined

/** A period of IST days: a first and a last day, both included, or a month. */
export const PERIOD = oneOf([{ from: FROM, to: TO }, { month: MONTH }], inOrder)
/** A period whose form begins with the last month. */
export const REPORTED = [{ from: FROM, to: TO }, { month: LAST_MONTH }] as const
export const REPORTED_PERIOD = oneOf(REPORTED, inOrder)
/** A period, or none. */
export const ANY_PERIOD = oneOf([{}, { from: FROM, to: TO }, { month: MONTH }], inOrder)

/** Returns the first and last day of a period. A day is undefined if it was not given. */
export const daysOf = ({ from, to, month }: GivenDays) => (month === undefined ? { from, to } : daysOfMonth(month))

/** Returns the first and last day of PERIOD. */
export const bothDaysOf = (period: GivenDays) => daysOf(period) as Days

/** Returns the end of the day AS_OF; `now` without it, or if it has not ended. A report ignores everything recorded later. */
export function knownAt(asOf: string | undefined, now: Date): Date {
  const end = asOf === undefined ? now : new Date(nextDay(startOfDay(asOf)).getTime() - 1)
  return end < now ? end : now
}
