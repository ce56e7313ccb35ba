import { createBankDays, type Days } from '../../src/books/ledger/bank-days.ts'
import { type Discrepancy, resolverOf } from '../../src/books/ledger/discrepancies.ts'
import type { Facts, MoneyException } from '../../src/books/ledger/facts.ts'
import { judge, payoutFacts, sumsAt } from '../../src/books/ledger/judge.ts'
import type { Item, ItemRow } from '../../src/books/ledger/judge-item.ts'
import {
  daysOfPayouts,
  type JudgedPayout,
  judgePayouts,
  type PayoutForm,
  payoutKey,
  undecidedPayouts,
} from '../../src/books/ledger/judge-payouts.ts'
import {
  type Deduction,
  groupBy,
  matchDeductions,
  type SuccessfulRefund,
} from '../../src/books/ledger/match-deductions.ts'
import { addResolved, type Sums } from '../../src/books/ledger/sums.ts'
import { DAY_MS } from '../../src/platform/time.ts'
import { istMoment } from './rows.ts'

/*
 * The story of one merchant's money: each fact is known from one day until before another. A story is turned into facts for the
 * judge, or stored in the database.
 */

export const ALWAYS = '9999-12-31'

/** Known at the end of each day from `from` until before `until`. */
export type Known = { from: string; until?: string | undefined }
export const isKnownAt = ({ from, until = ALWAYS }: Known, today: string) => from <= today && today < until

export type Payment = Known & {
  utr: string
  orderId: string
  amount: number
  day: string
  at: Date
  kind: 'first' | 'late' | 'second'
  madeAt: Date
  acquirer: string
}

/**
 * `utr` is the line's own UTR. With `repeats`, the file repeats the payment's UTR, and the line is stored under `utr`. From
 * `failedOn` on it is FAILED.
 */
export type Line = Known & {
  utr: string
  paymentUtr?: string | undefined
  repeats?: boolean
  day: string
  time?: string
  gross: number
  fee?: number | undefined
  tax?: number | undefined
  reference?: string
  failedOn?: string | undefined
  acquirer?: string | null
  event?: string
}

export type Refund = Known & {
  refundId: string
  orderId: string
  utr: string
  amount: number
  day: string
  at: Date
  reference: string
  /** The day on which the bank returns the refund, known from the next day. */
  returnedOn?: string
}

export type Reported = Known & {
  kind: string
  orderId: string
  utr: string
  amount: number
  day: string
  at: Date
  receivedAt: Date
  resolvedOn: string
  /** The day on which its order was created; empty for an unknown order. */
  createdOn: string
}

/** A dispute that is reported as open on `from`. */
export type DisputeStory = Pick<Payment, 'from' | 'orderId' | 'utr' | 'amount' | 'acquirer'> & {
  disputeId: string
  verdict?: { status: 'won' | 'lost' | 'accepted'; from: string } | undefined
}

export type Story = {
  mid: string
  payments: Payment[]
  lines: Line[]
  refunds: Refund[]
  exceptions: Reported[]
  disputes?: DisputeStory[]
}

export const HOLIDAYS = ['2026-04-03', '2026-04-14', '2026-05-01', '2026-05-27']
/** Holidays that the operator enters after they have passed: before a fourth Saturday, and before a second one. */
export const LATE_HOLIDAYS = [
  { days: ['2026-04-23', '2026-04-24'], reportedOn: '2026-04-29' },
  { days: ['2026-06-12'], reportedOn: '2026-06-17' },
]
const calendars = new Map<number, ReturnType<typeof createBankDays>>()
/** Returns the calendar as known at the end of the day. */
export function bankDaysAt(today: string) {
  const late = LATE_HOLIDAYS.filter(({ reportedOn }) => reportedOn <= today).flatMap(({ days }) => days)
  const calendar = calendars.get(late.length) ?? createBankDays(new Set([...HOLIDAYS, ...late]))
  calendars.set(late.length, calendar)
  return calendar
}

const isUnknownOrder = ({ kind }: { kind: string }) => kind === 'unknown order'
const isFailure = ({ kind }: { kind: string }) => kind === 'failure after success'

/** Returns the facts about a merchant at the end of `today`, as the database queries return them. */
export function knownAt(story: Story, today: string) {
  const isKnown = (one: Known) => isKnownAt(one, today)
  const { mid } = story
  const bankDays = bankDaysAt(today)
  const payments = story.payments.filter(isKnown)
  const lines = story.lines
    .filter(isKnown)
    .map((line) => lineOf(line, today))
    .sort(byTime)
  const linesOf = groupBy(lines, ({ item }) => item)
  const reported = story.exceptions
    .filter(isKnown)
    .map((one) => reportedOf(one, today))
    .sort(openFirst)
  const exceptions = reported.filter((one) => !isUnknownOrder(one))
  const explaining = reported.filter((one) => !isUnknownOrder(one) || linesOf.has(one.utr))
  const named = new Set([...payments, ...explaining.filter((one) => !isFailure(one))].map(({ utr }) => utr))
  const namesNothing = ({ namesPayment, item }: (typeof lines)[number]) => !namesPayment && !named.has(item)
  const settledBy = ({ utr, at }: Payment) =>
    linesOf.get(utr)?.find((line) => isPaidOut(line) && line.at.getTime() >= at.getTime() - DAY_MS)
  const paidBy = new Map(payments.map((payment) => [payment.utr, payment]))
  const refunds = story.refunds.filter(isKnown).map((refund): SuccessfulRefund => {
    const payment = paidBy.get(refund.utr) as Payment
    const { day: paidOn, amount: paid } = payment
    const returnedOn = refund.returnedOn !== undefined && refund.returnedOn < today ? refund.returnedOn : null
    return {
      ...refund,
      returnedOn,
      acquirer: payment.acquirer,
      paidOn,
      paid,
      settled: settledBy(payment)?.gross ?? null,
    }
  })
  const successful = lines.filter(({ status }) => status === 'SUCCESS')
  const rows = successful
    .filter(({ isDeduction }) => isDeduction)
    .map((line): Deduction => ({ ...line, isNamed: !namesNothing(line) }))
  const failed = exceptions.flatMap((one) => {
    const payment = payments.find(({ orderId, kind }) => orderId === one.orderId && kind !== 'second')
    const isOver = isFailure(one) && one.resolution !== null && payment !== undefined && !settledBy(payment)
    return isOver ? [payment] : []
  })
  const namedSince = new Map<string, string>()
  for (const { acquirer, day } of successful)
    if (acquirer !== null && !namedSince.has(acquirer)) namedSince.set(acquirer, bankDays.bankDayFrom(day))
  const matched = matchDeductions(refunds, rows, bankDays)
  const merchant = { mid, today, bankDays, refunds, exceptions, failed, disputes: [], namedSince, matched }
  const forms = new Map<string, PayoutForm>()
  const refundsOf = groupBy(refunds, ({ utr }) => utr)
  const items = [...new Set([...paidBy.keys(), ...linesOf.keys()])].map((utr): Item => {
    const payment = paidBy.get(utr)
    return {
      ...{ mid, utr, payment, rows: linesOf.get(utr) ?? [] },
      refunds: payment === undefined ? [] : (refundsOf.get(utr) ?? []),
      exception: explaining.find((one) => one.utr === utr && !isFailure(one)),
      failure: exceptions.find((one) => {
        return payment?.kind !== 'second' && one.orderId === payment?.orderId && isFailure(one)
      }),
    }
  })

  return {
    items,
    factsOf(days: Days): Facts {
      const read = factsWithoutForms(days)
      const undecided = undecidedPayouts(payoutFacts(read), bankDays)
      for (const one of undecided) if (!forms.has(payoutKey(one))) forms.set(payoutKey(one), formOf(one))
      return { ...read, knownForms: forms }
    },
  }

  /** Returns the facts of these days, but for the forms of other payouts. */
  function factsWithoutForms(days: Days) {
    const window = daysOfPayouts(days, bankDays)
    const inWindow = ({ day }: { day: string }) => day >= window.from && day <= window.to
    return {
      ...{ ...merchant, days, window },
      paid: sumBy(payments.filter(inWindow), (payment) => ({
        ...{ acquirer: payment.acquirer, day: payment.day, settledDay: settledBy(payment)?.day ?? null },
        ...{ isDuplicate: payment.kind === 'second', count: 1, paid: payment.amount },
      })),
      settled: sumBy(successful.filter(inWindow), (line) => {
        const { acquirer, day, gross, isDeduction } = line
        const [fee, tax] = [line.fee ?? 0, line.tax ?? 0]
        const isUnnamed = !isDeduction && namesNothing(line)
        return {
          ...{ acquirer, day, settledCount: 1, paidOut: isDeduction ? 0 : 1, gross, fee, tax, net: gross - fee - tax },
          ...{ unnamedRows: isUnnamed ? 1 : 0, unnamed: isUnnamed ? gross : 0, disputed: 0 },
        }
      }),
      reversed: lines.filter((line) => inWindow(line) && line.wasPaidOut && namesNothing(line)),
    }
  }

  /** Returns the form of a payout, found among all payouts of the story, each judged by itself. */
  function formOf({ acquirer, day }: { acquirer: string | null; day: string }): PayoutForm {
    const paidOut = successful.filter(isPaidOut)
    const ofAcquirer = paidOut.filter((line) => line.acquirer === acquirer)
    const source =
      ofAcquirer.findLast((line) => bankDays.bankDayFrom(line.day) <= day) ??
      ofAcquirer[0] ??
      paidOut.toSorted(
        (a, b) => a.at.getTime() - b.at.getTime() || ((a.acquirer ?? '') < (b.acquirer ?? '') ? -1 : 1),
      )[0]
    if (source === undefined) return 'by sums'
    const on = bankDays.bankDayFrom(source.day)
    const facts = { ...payoutFacts(factsWithoutForms({ from: on, to: on })), undeducted: [], returned: [] }
    const isSource = (one: JudgedPayout) => one.acquirer === source.acquirer && one.day === on
    const anyForm = new Map(undecidedPayouts(facts, bankDays).map((one) => [payoutKey(one), 'by sums' as const]))
    return (judgePayouts(facts, anyForm, bankDays).payouts.find(isSource) as JudgedPayout).form
  }
}

/** Groups rows that differ only in numbers, and adds those up. */
function sumBy<T, Row extends object>(all: readonly T[], rowOf: (one: T) => Row): Row[] {
  const rows = new Map<string, Row>()
  for (const row of all.map(rowOf)) {
    const numbers = Object.entries(row).filter(([, value]) => typeof value === 'number')
    const key = Object.values(row)
      .filter((value) => typeof value !== 'number')
      .join(' ')
    const sum = rows.get(key)
    if (sum === undefined) rows.set(key, row)
    else for (const [name, value] of numbers) (sum as Record<string, number>)[name] += value
  }
  return [...rows.values()]
}

const isPaidOut = ({ status, isDeduction }: ItemRow) => status === 'SUCCESS' && !isDeduction

function lineOf({ utr, paymentUtr, day, gross, ...line }: Line, today: string) {
  const isFailed = line.failedOn !== undefined && line.failedOn <= today
  const reference = (line.reference ?? 'BRN').toUpperCase()
  return {
    ...{
      utr,
      item: (paymentUtr ?? utr).toUpperCase(),
      day,
      at: istMoment(day, line.time ?? '11:00:00'),
      acquirer: line.acquirer ?? null,
    },
    ...{ status: isFailed ? ('FAILED' as const) : ('SUCCESS' as const), wasPaidOut: isFailed, isDeduction: gross < 0 },
    ...{
      isDisputed: null,
      gross,
      fee: line.fee ?? null,
      tax: line.tax ?? null,
      namesPayment: paymentUtr !== undefined,
    },
    ...{ importId: Number(line.from.replaceAll('-', '')), references: [utr.toUpperCase(), reference] },
  }
}
type KnownLine = ReturnType<typeof lineOf>
const byTime = (a: KnownLine, b: KnownLine) => a.at.getTime() - b.at.getTime() || (a.utr < b.utr ? -1 : 1)

/** Identifies an exception by its UTR. */
const reportedOf = ({ utr, resolvedOn, ...one }: Reported, today: string): MoneyException & { receivedAt: Date } => ({
  ...{ ...one, utr, exceptionId: `of ${utr}`, resolution: resolvedOn <= today ? 'seen to' : null },
})
const openFirst = (a: ReturnType<typeof reportedOf>, b: ReturnType<typeof reportedOf>) =>
  Number(a.resolution !== null) - Number(b.resolution !== null) || a.receivedAt.getTime() - b.receivedAt.getTime()

/** Returns the judged sums and discrepancies of these days at the end of `today`, without an operator's entries. */
export function judgeStory(
  story: Story,
  days: Days,
  today: string,
): { byDay: Map<string, Sums>; found: Discrepancy[] } {
  const { byDay, found } = judgeFacts(story, knownAt(story, today), days)
  for (const { day, resolution, owed } of found) {
    if (resolution === null) sumsAt(byDay, day).differences += 1
    else addResolved(sumsAt(byDay, day), -owed)
  }
  return { byDay, found }
}

/** Returns the discrepancies of these days. */
export const judgeKnown = (story: Story, known: ReturnType<typeof knownAt>, days: Days): Discrepancy[] =>
  judgeFacts(story, known, days).found

function judgeFacts({ mid }: Story, { items, factsOf }: ReturnType<typeof knownAt>, days: Days) {
  const facts = factsOf(days)
  const { byDay, findings, judgeItems, isMissed } = judge(facts)
  const failed = new Set(facts.failed.map(({ utr }) => utr))
  // As in the database queries, a payment without other movements is judged only if it is missed.
  const judged = items.filter(({ utr, payment, rows, refunds }) => {
    const isWaiting = payment && refunds.length === 0 && rows.every(({ status }) => status !== 'SUCCESS')
    return !isWaiting || isMissed(payment) || failed.has(utr)
  })
  return { byDay, found: resolverOf(mid, []).resolve([...findings, ...judgeItems(judged)]) }
}
