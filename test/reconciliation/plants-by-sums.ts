import { addDays } from '../../src/books/ledger/bank-days.ts'
import { groupBy } from '../../src/books/ledger/match-deductions.ts'
import {
  before,
  type Difference,
  daysOf,
  type Form,
  isUnsettled,
  lastOf,
  later,
  type Maker,
  type NewLine,
  type Order,
  type Plan,
  rupees,
  type Sent,
  type Unknown,
} from './plants.ts'
import { ALWAYS, bankDaysAt, LATE_HOLIDAYS, type Line } from './story.ts'

/* Discrepancies in a file with totals. Each may change its payout and the next two. */

/** A payout's orders and the unnamed line that pays `total`; null if the line is missing. */
type Payout = {
  day: string
  orders: Order[]
  named: Order[]
  paid: number
  total: number
  line: NewLine | null
}
type BySums = Maker & { sumsDiffer: ReturnType<typeof ofTotals> }
type SumPlant = (maker: BySums, payout: Payout, next: Payout, third: Payout) => unknown

type About = { refunded?: number; likely?: string; previous?: (day: string) => string } & Partial<Difference>

function ofTotals({ differ }: Maker) {
  return (
    { day, paid }: Pick<Payout, 'day' | 'paid'>,
    settled: number,
    { refunded = 0, likely = '', previous = before, ...more }: About = {},
  ) => {
    const expected = paid - refunded
    const [first, last] = [previous(day), addDays(day, -1)]
    const less = refunded === 0 ? '' : `, less refunds of ${rupees(refunded)}`
    const days = `${first === last ? first : `${first} to ${last}`}${less}`
    const by = `${rupees(Math.abs(settled - expected))} ${settled > expected ? 'more' : 'less'} than the payments of ${days}`
    const cause = settled === 0 ? `nothing was settled for the payments of ${days}` : by
    differ('payout total', null, {
      ...{ day, paid: expected, settled, from: addDays(day, 1) },
      ...{ cause: likely === '' ? cause : `${cause}; likely ${likely}`, ...more },
    })
  }
}

const likelyRefund = ({ id, amount }: Sent) => `refund ${id} (of ${rupees(amount)}, not deducted)`
const likelyException = (kind: string, { utr, amount }: Order, word: string) =>
  `exception of ${utr} (${kind} of ${rupees(amount)}, ${word})`

const refundOf = ({ refund }: BySums, { orders }: Payout, index = 0, reference = '') => {
  const order = orders[index] as Order
  return refund(order, order.day, { reference })
}

/** A payment that failed according to the bank and that the payout leaves out. */
function failInTotal({ fail, missing, sumsDiffer }: BySums, payout: Payout, resolvedFrom: string) {
  const order = payout.orders[0] as Order
  const cause = fail(order, resolvedFrom)
  payout.total -= order.amount
  const likely = likelyException('failure after success', order, 'open')
  sumsDiffer(payout, payout.total, { likely, until: resolvedFrom })
  missing(order, { cause, from: resolvedFrom, resolvedFrom })
}

/** Adds a second payment to the total. Returns the arguments of its refund. */
function inTotal({ payAgain }: BySums, payout: Payout, day: string): [Order, string, Order] {
  const second = payAgain(payout.orders[0] as Order, day)
  payout.total += second.amount
  return [second, day, second]
}

/** Adds a line that names no payment and increases the payout. */
function unknownInTotal({ line, sumsDiffer }: BySums, payout: Payout, until = ALWAYS): Unknown {
  const [utr, amount] = [`ZZ${payout.orders[0]?.utr}`, 123_457]
  line({ day: payout.day, utr, gross: amount })
  sumsDiffer(payout, payout.paid + amount, { until })
  return { utr, settlementUtr: utr, amount, day: payout.day }
}

const change = ({ line }: Payout, more: Partial<Line>) => Object.assign(line as Line, more)

function failTotal({ differ }: BySums, payout: Payout, from: string) {
  const { line, day, paid } = payout
  const cause = 'the settlement changed from SUCCESS to FAILED'
  differ('reversal', null, { day, settlementUtr: line?.utr ?? '', paid, cause, from })
  change(payout, { failedOn: from })
}

/**
 * Discrepancies of payouts that consist of the total alone: if the total were missing, lines that name payments would decide
 * the payout's form.
 */
const TOTAL_ALONE: Record<string, SumPlant> = {
  'missing total'({ sumsDiffer }, payout) {
    sumsDiffer(payout, 0)
    payout.line = null
  },
  'total paid together with the next one'({ sumsDiffer }, payout, next) {
    sumsDiffer(payout, 0)
    payout.line = null
    next.total += payout.paid
    sumsDiffer(next, next.total)
  },
  'total imported days later'({ sumsDiffer }, payout, _next, third) {
    sumsDiffer(payout, 0, { until: third.day })
    change(payout, { from: third.day })
  },
  'total of a file that is undone and imported again'({ line, sumsDiffer }, payout, next, third) {
    line({ ...(payout.line as Line), gross: payout.total, from: third.day })
    change(payout, { until: next.day })
    // The file may be undone on the first day after the payout.
    sumsDiffer(payout, 0, { from: lastOf(next.day, addDays(payout.day, 1)), until: third.day })
  },
  'total that changes from SUCCESS to FAILED': (maker, payout, next) => failTotal(maker, payout, next.day),
  'failed total, paid again by a line of the same day'({ line }, payout, next) {
    const again = { ...(payout.line as Line), utr: `${payout.line?.utr}B`, gross: payout.total, from: next.day }
    line(again)
    change(payout, { failedOn: next.day })
  },
  'failed total, paid again with the next one'(maker, payout, next) {
    failTotal(maker, payout, next.day)
    next.total += payout.paid
    maker.sumsDiffer(next, next.total)
  },
}

const BY_SUMS: Record<string, SumPlant> = {
  ...TOTAL_ALONE,
  'short total'({ sumsDiffer }, payout) {
    payout.total -= 12_345
    sumsDiffer(payout, payout.total)
  },
  'refund netted in the total'(maker, payout) {
    payout.total -= refundOf(maker, payout).amount
  },
  'refund that no total deducts'(maker, payout) {
    const sent = refundOf(maker, payout)
    maker.sumsDiffer(payout, payout.paid, { refunded: sent.amount, likely: likelyRefund(sent) })
  },
  'refund netted in the next total'(maker, payout, next) {
    const sent = refundOf(maker, payout)
    const until = addDays(next.day, 1)
    maker.sumsDiffer(payout, payout.paid, { refunded: sent.amount, likely: likelyRefund(sent), until })
    next.total -= sent.amount
  },
  'refund deducted by a line with its reference'(maker, payout) {
    const reference = `ARN${payout.orders[0]?.utr}`
    maker.line({ day: payout.day, utr: reference, gross: -refundOf(maker, payout, 0, reference).amount })
  },
  'refund deducted days late by a line with its payment and amount'(maker, payout, _next, third) {
    const sent = refundOf(maker, payout)
    maker.sumsDiffer(payout, payout.paid, { refunded: sent.amount, likely: likelyRefund(sent), until: third.day })
    maker.reverse(sent.order, 'RB', sent.amount, third.day)
  },
  'refunds of one payment deducted by one line'(maker, payout) {
    const [one, other] = [refundOf(maker, payout), refundOf(maker, payout)]
    maker.reverse(one.order, 'RB', one.amount + other.amount, payout.day)
  },
  'refunds of one bank day deducted by one unnamed line'(maker, payout) {
    const sum = [0, 1, 2].reduce((sum, index) => sum + refundOf(maker, payout, index).amount, 0)
    maker.line({ day: payout.day, utr: `N${payout.orders[0]?.utr}`, gross: -sum })
  },
  'two open refunds of one amount, and one unnamed line'(maker, payout) {
    const one = refundOf(maker, payout)
    const order = payout.orders[1] as Order
    const both = [one, maker.refund(order, order.day, one)].sort((a, b) => (a.day < b.day ? -1 : 1))
    maker.ofNoMerchant(`AM${one.order.utr}`, payout.day, one.amount)
    const likely = both.map(likelyRefund).join(' and ')
    maker.sumsDiffer(payout, payout.paid, { refunded: 2 * one.amount, likely })
  },
  'second payment in the total': (maker, payout) => inTotal(maker, payout, maker.lastWord),
  'second payment left out of the total'({ payAgain, sumsDiffer }, payout, next) {
    const second = payAgain(payout.orders[0] as Order, next.day)
    const paid = payout.paid + second.amount
    const likely = (word: string) => likelyException('double payment', second, word)
    sumsDiffer({ ...payout, paid }, payout.paid, { likely: likely('open'), until: next.day })
    const from = lastOf(next.day, addDays(payout.day, 1))
    sumsDiffer({ ...payout, paid }, payout.paid, { likely: likely('resolved'), from })
  },
  'second payment in the total, refunded and netted two totals later'(maker, payout, next, third) {
    third.total -= maker.refund(...inTotal(maker, payout, next.day)).amount
  },
  'second payment in the total, refunded and deducted by a line'(maker, payout, next, third) {
    const [second, day, { amount }] = inTotal(maker, payout, next.day)
    const reference = `ARN${second.utr}`
    maker.line({ day: third.day, utr: reference, gross: -maker.refund(second, day, { amount, reference }).amount })
  },
  'payment that failed after its success, left out of the total': (maker, payout) =>
    failInTotal(maker, payout, maker.lastWord),
  'payment that failed after its success, resolved': (maker, payout, _next, third) =>
    failInTotal(maker, payout, third.day),
  'line of an unknown payment': (maker, payout) => unknownInTotal(maker, payout),
  'line of an unknown payment that an unknown-order exception explains': (maker, payout, next) =>
    maker.explain(payout.orders[0] as Order, unknownInTotal(maker, payout, next.day)),
  'chargeback of a payment in the total': ({ charge }, { orders }, _next, third) =>
    charge(orders[0] as Order, third.day),
  'line that names a payment already paid in a total'({ again, sumsDiffer }, payout, _next, third) {
    const order = payout.orders[0] as Order
    again(order, 'Z', third.day)
    sumsDiffer({ ...payout, paid: payout.paid - order.amount }, payout.paid, { from: third.day })
  },
  'payment left out of the total and named by a later line'({ again, sumsDiffer }, payout, _next, third) {
    const order = payout.orders[0] as Order
    payout.total -= order.amount
    sumsDiffer(payout, payout.total, { until: third.day })
    again(order, 'L', third.day)
  },
}

/** Discrepancies in a file that also names some payments. */
const MIXED: Record<string, SumPlant> = {
  ...BY_SUMS,
  'refund netted in the line that names its payment'({ settle, refund }, payout) {
    const order = payout.named.shift() as Order
    settle(order, order.amount - refund(order, order.day).amount)
  },
  'named payment with a won chargeback'({ charge, again }, { named }, _next, third) {
    const order = named[0] as Order
    const until = later(third.day, 6)
    charge(order, third.day, { until })
    again(order, 'W', until)
  },
  'named payment with a duplicate settlement': ({ twice }, { named }, next) =>
    twice(named[0] as Order, `9${named[0]?.utr}`, next.day),
}

const plantsOf = (form: Form) => (form === 'mixed' ? MIXED : BY_SUMS)
export const namesBySums = (form: Form) => Object.keys(plantsOf(form))

/** Every third payout at most has a discrepancy, since one may change the next two payouts. */
export function plantBySums(created: Maker, { days, perDay, plants, form }: Plan): void {
  const maker = { ...created, sumsDiffer: ofTotals(created) }
  const orders = daysOf(days.from, days.to).flatMap((day) => Array.from({ length: perDay }, () => maker.pay(day)))
  const byPending = [...groupBy(orders, ({ due }) => due)].sort(([a], [b]) => (a < b ? -1 : 1))
  const slots = byPending.map((_, index) => {
    const due = byPending.slice(index, index + 3).map(([day]) => day)
    // The payments of a payout begin on the previous bank day.
    const isCalm = due.length === 3 && !due.some((day) => isUnsettled(day) || isUnsettled(before(day)))
    return index % 3 === 0 && isCalm ? plants.get(index / 3) : undefined
  })
  const payouts = byPending.map(([day, all], index): Payout => {
    const isNamed = form === 'mixed' && !isUnsettled(day) && !((slots[index] ?? '') in TOTAL_ALONE)
    const named = isNamed ? all.slice(0, Math.floor(all.length / 4)) : []
    const rest = all.slice(named.length)
    const paid = rest.reduce((sum, { amount }) => sum + amount, 0)
    const { mid } = maker.story
    const line = { day, utr: `S${mid.slice(1, 3)}${day.replaceAll('-', '')}`, reference: `PAYOUT ${mid} ${index}` }
    return { day, orders: rest, named, paid, total: paid, line: { ...line, gross: paid, fee: 500, tax: 90 } }
  })
  for (const [index, payout] of payouts.entries()) {
    const [next, third] = [payouts[index + 1] as Payout, payouts[index + 2] as Payout]
    plantsOf(form)[slots[index] ?? '']?.(maker, payout, next, third)
    for (const order of payout.named) maker.settle(order)
    if (payout.line) maker.line({ ...payout.line, gross: payout.total })
  }
  seemUnreported(payouts, maker.sumsDiffer)
}

/** Until a late holiday is entered, its payout appears to be missing, and the next one too large. */
function seemUnreported(payouts: readonly Payout[], sumsDiffer: BySums['sumsDiffer']): void {
  const { previousBankDay: previous, nextBankDay: nextUnreported } = bankDaysAt('2026-01-01')
  for (const { days, reportedOn: until } of LATE_HOLIDAYS) {
    const payout = payouts.find(({ day }) => day === later(days[0] as string))
    for (const day of payout === undefined ? [] : [...days, payout.day]) {
      const orders = payout?.orders.filter((order) => nextUnreported(order.day) === day) ?? []
      const paid = orders.reduce((sum, { amount }) => sum + amount, 0)
      sumsDiffer({ day, paid }, day === payout?.day ? payout.total : 0, { previous, until })
    }
  }
}
