import * as z from 'zod'
import { text, UTR } from '../../../platform/fields.ts'
import { toPaise } from '../../../platform/money.ts'
import { readInstrument } from '../../payments/instrument.ts'
import type { ReadSettled, SettledEvent, SettledLine } from '../acquirer.ts'
import { notBelieved, readPage } from '../json-request.ts'
import { paymentId } from '../notification.ts'
import type { CashfreeRequest } from './http.ts'

const PAGE_EVENTS = 1_000
/**
 * Largest number of pages. 500 pages contain 500,000 events. A day has at most 432,000 events, because Cashfree accepts
 * 200 orders and 100 refunds per minute. With PAUSE_MS after each page, 500 pages take 17 minutes.
 */
const MOST_PAGES = 500
/** Time and size limits for one page. An event has 2 to 3 kB. */
const LIMIT = { ms: 30_000, bytes: 16 * 1024 * 1024 }
/** Pause between two pages: Cashfree allows 30 reconciliation calls per minute. */
const PAUSE_MS = 2_000

/** Values that mean an absent field. Cashfree's own samples also contain `null` as text. */
const NOTHING: readonly unknown[] = [null, '', 'null', 'null,']
const orNothing = <S extends z.ZodType>(schema: S) =>
  z.preprocess((value) => (NOTHING.includes(value) ? undefined : value), schema.optional())

const reported = orNothing(text(255))
const word = z
  .string()
  .regex(/^[A-Z_]{1,40}$/)
  .catch('?')

const RUPEES_RULE = 'must be rupees with at most two decimals'
const paise = orNothing(
  z
    .string(RUPEES_RULE)
    .regex(/^-?[0-9]{1,12}(\.[0-9]{1,2})?$/, RUPEES_RULE)
    .transform(toPaise),
)

const Event = z
  .object({
    event_details: z.object({
      event_id: reported,
      event_type: word,
      event_status: word,
      sale_type: word,
      event_amount: paise,
      event_settlement_amount: paise,
      event_service_charge: paise,
      event_service_tax: paise,
    }),
    order_details: z.object({ order_id: reported }).nullish(),
    payment_details: z
      .object({ bank_reference: reported, cf_payment_id: paymentId, payment_mode: z.unknown().optional() })
      .nullish(),
    refund_details: z.object({ refund_arn: reported }).nullish(),
    settlement_details: z
      .object({ utr: reported, settlement_initiated_on: reported, settlement_date: reported })
      .nullish(),
  })
  .refine(
    ({ event_details: event, settlement_details: payout }) =>
      event.event_settlement_amount !== undefined || !payout?.utr,
    { path: ['event_settlement_amount'], error: 'is required with utr' },
  )

const Page = z
  .object({ cursor: orNothing(z.string()), limit: z.unknown().optional(), data: z.array(Event).nullish() })
  .refine((page) => Object.keys(page).length > 0)

type EventDetails = z.output<typeof Event>['event_details']

export function cashfreeSettled(request: CashfreeRequest): ReadSettled {
  return async function* ({ from, to }, pause) {
    const filters = { start_date: `${from}T00:00:00+05:30`, end_date: `${to}T23:59:59+05:30` }
    const cursors = new Set<string>()
    for (let cursor: string | undefined; ; await pause(PAUSE_MS)) {
      const body = { pagination: { limit: PAGE_EVENTS, cursor }, filters }
      const page = { method: 'POST', path: 'settlement/recon', body, limit: LIMIT } as const
      const response = await request(page, AbortSignal.timeout(LIMIT.ms), [200])
      const { data, cursor: next } = readPage(Page, response, 'Cashfree', idOf)
      if (!data || data.length === 0) return
      yield data.map(toSettled)
      if (next === undefined) return
      if (cursors.has(next))
        throw notBelieved(response, 'Cashfree returned the same page of settlements twice: its pages do not end')
      if (cursors.add(next).size === MOST_PAGES) throw notBelieved(response, TOO_MANY)
      cursor = next
    }
  }
}

const idOf = (event: unknown) => Object(Object(event).event_details).event_id

const TOO_MANY = `Cashfree returned ${MOST_PAGES} pages or more: pull fewer days per command; for a single day, contact Cashfree`

/** Event types of deductions, which become lines with a negative amount. */
const DEDUCTIONS = ['REFUND', 'DISPUTE', 'CHARGEBACK']

/**
 * Event types of returned deductions, such as after a won dispute, which become lines with a positive amount. Cashfree's
 * API and Cashfree's reports use different suffixes.
 */
const RETURNS = DEDUCTIONS.flatMap((type) => [`${type}_REVERSAL`, `${type}_REVERSE`])

function toSettled({ event_details: event, ...details }: z.output<typeof Event>): SettledEvent {
  const { event_type: type, event_status: status } = event
  const isDeduction = DEDUCTIONS.includes(type) && event.sale_type !== 'CREDIT'
  const isDebit = isDeduction || event.sale_type === 'DEBIT'
  const reported = event.event_settlement_amount ?? event.event_amount ?? 0
  // Cashfree formats the amount of a debit with or without a minus sign, so the sign is set here.
  const amount = isDebit ? -Math.abs(reported) : reported
  const kind = status === 'SUCCESS' ? type : `${type} ${status}`
  const name = namesOf(event, details.refund_details?.refund_arn)
  // Only a name of its own distinguishes the line of a returned deduction from the line of the payment.
  const isReturn = RETURNS.includes(type) && amount > 0 && UTR.test(name.utr ?? '')
  // A pending refund or chargeback may already be deducted, so the event becomes a settlement line even while the
  // deduction is pending.
  const isLine = isDeduction
    ? amount < 0 && !['FAILED', 'CANCELLED'].includes(status)
    : (isReturn || (type === 'PAYMENT' && amount >= 0)) && status === 'SUCCESS' && !isDebit
  const payout = details.settlement_details
  const payoutUtr = isLine || status === 'SUCCESS' ? payout?.utr : undefined
  const paidOutAt = payout?.settlement_initiated_on ?? payout?.settlement_date
  if (!isLine) return { kind, amount, payoutUtr, paidOutAt }
  const { bank_reference: reference, cf_payment_id: id, payment_mode: mode } = details.payment_details ?? {}
  const line = {
    orderId: details.order_details?.order_id,
    ...(type !== 'PAYMENT' && name),
    event: eventOf(type),
    payment: { id, utr: reference },
    instrument: readInstrument(PAYMENT_MODES, mode),
    ...chargesOf(event, isDeduction),
    initiatedAt: payout?.settlement_initiated_on,
    createdAt: payout?.settlement_date,
  }
  return { kind, amount, payoutUtr, paidOutAt, line }
}

/** Cashfree documents no values of the mode. `UPI` names the method, not the instrument. */
const PAYMENT_MODES = { 'credit card': /^upi_credit_card$/i, wallet: /^upi_ppi/i }

function eventOf(type: string): SettledLine['event'] {
  if (type === 'PAYMENT') return 'payment'
  if (type === 'REFUND') return 'refund'
  if (DEDUCTIONS.includes(type)) return 'dispute'
  return type.startsWith('REFUND') ? 'other' : 'dispute reversal'
}

/**
 * Names a deduction or its return in its `utr`: the refund's bank reference if known, otherwise Cashfree's identifier of
 * the event.
 */
function namesOf({ event_type: type, event_id: id }: EventDetails, arn = '') {
  const own = id && `E${id}`
  return type === 'REFUND' && UTR.test(arn) ? { utr: arn, earlierUtr: own } : { utr: own }
}

/**
 * Fee and tax that this payout deducted, derived from the two amounts. Fee and tax are negative if a refund returned
 * them, and 0 if Cashfree bills them separately. The settled amount plus fee and tax equals the amount that was paid or
 * refunded.
 */
function chargesOf({ event_amount: whole, ...event }: EventDetails, isDeduction: boolean) {
  const { event_settlement_amount: settled = 0, event_service_charge: fee, event_service_tax: tax } = event
  const charged = Math.abs(fee ?? 0) + Math.abs(tax ?? 0)
  const stored = whole === undefined ? charged : (Math.abs(whole) - Math.abs(settled)) * (isDeduction ? -1 : 1)
  // Charges that are returned with a deduction are part of the line's amount, because only a deduction may have a
  // negative fee.
  const otherwise = RETURNS.includes(event.event_type) ? 0 : 1
  const times = [1, 0, ...(isDeduction ? [-1] : [])].find((times) => stored === times * charged) ?? otherwise
  return { fee: fee && Math.abs(fee) * times, tax: tax && Math.abs(tax) * times }
}
