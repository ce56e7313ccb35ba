import { addDays } from '../../src/books/ledger/bank-days.ts'
import {
  before,
  daysOf,
  isBankDay,
  isUnsettled,
  lastOf,
  later,
  type Maker,
  OF_NO_MERCHANT,
  type Order,
  type Plan,
  rupees,
  TAKEN,
  type Unknown,
} from './plants.ts'
import { istMoment } from './rows.ts'
import { ALWAYS, bankDaysAt, LATE_HOLIDAYS } from './story.ts'

/* Discrepancies in a file with one line per payment. Each receives a payment and the line that settled it. */

type ByPayment = Maker & ReturnType<typeof refundDays>

/** Unnamed lines deduct the refunds of two out of three bank days; refunds of the other days stay open. */
function refundDays(maker: Maker) {
  const used = new Set<string>()
  const isLeft = (bankDay: string) => daysOf('2026-04-01', bankDay).filter(isBankDay).length % 3 === 0
  const dayBefore = (after: string, isKind: (bankDay: string) => boolean): string =>
    isKind(later(after)) && !isUnsettled(after) ? after : dayBefore(addDays(after, 1), isKind)
  const unnamed = (utr: string, gross: number, day: string, time = '11:00:00') =>
    maker.line({ day, time, utr: `${utr}${maker.story.mid.slice(1, 3)}${day.replaceAll('-', '')}`, gross: -gross })
  const bankDayOfUnnamed = (after: string): string => {
    const bankDay = later(dayBefore(after, (day) => !isLeft(day)))
    if (used.has(bankDay)) return bankDayOfUnnamed(bankDay)
    used.add(bankDay)
    return bankDay
  }
  return {
    ...{ unnamed, anyDay: (after: string) => dayBefore(after, () => true) },
    openDay: (after: string) => dayBefore(after, isLeft),
    /** Returns a bank day on which one line deducts all refunds since the previous bank day. Each day is used once. */
    bankDayOfUnnamed,
    /** Refunds three payments since the previous bank day, all deducted by one line. */
    manyToOne(bankDay: string, time?: string) {
      const days = daysOf(before(bankDay), addDays(bankDay, -1))
      const sum = [0, 1, 2].reduce((sum, index) => {
        const order = maker.pay(before(before(days[0] as string)))
        maker.settle(order)
        return sum + maker.refund(order, days[index % days.length] as string).amount
      }, 0)
      unnamed('N', sum, bankDay, time)
    },
  }
}

/** Settles the payment less a refund. */
function netted({ settle, refund }: ByPayment, order: Order) {
  settle(order, order.amount - refund(order, order.day).amount)
}

/** Changes the payment's line to FAILED some days later. */
function failLine({ settle, missing }: ByPayment, order: Order, until = ALWAYS) {
  const from = later(order.due, 2)
  const cause = `settlement ${settle(order, order.amount, { failedOn: from })} of ${order.due} changed from SUCCESS to FAILED`
  missing(order, { kind: 'reversal', from, until, cause })
}

/** Adds a line of an unknown payment, which is a discrepancy until `until`. */
function unknown({ settle, differ }: ByPayment, { due: day, amount, ...order }: Order, until = ALWAYS): Unknown {
  const utr = `ZZ${order.utr}`
  const settlementUtr = settle({ ...order, due: day, amount, utr })
  differ('unknown payment', { utr }, { day, settled: amount, settlementUtr, cause: OF_NO_MERCHANT, until })
  return { utr, settlementUtr, amount, day }
}

type Plant = (maker: ByPayment, order: Order, first: string) => unknown

/** Discrepancies of payments that are settled on their due day. */
const SETTLED: Record<string, Plant> = {
  'lost chargeback': ({ charge }, order) => charge(order, later(order.due, 2)),
  'lost chargeback with its fee': ({ charge }, order) => charge(order, later(order.due, 3), { withFees: true }),
  'won chargeback'({ charge, again }, order) {
    const until = later(order.due, 9)
    charge(order, later(order.due, 2), { until })
    again(order, 'W', until)
  },
  'chargeback that is won and then lost'({ charge, again }, order) {
    const [day, won, lost] = [later(order.due, 2), later(order.due, 5), later(order.due, 8)]
    charge(order, day, { until: won })
    again(order, 'W', won)
    const reported = [`settled on ${order.due}`, `reversed on ${day}`, `paid again on ${won}`, `reversed on ${lost}`]
    const history = reported.map((one) => `${one} by import of ${one.slice(-10)}`).join(', ')
    charge(order, lost, { name: 'CC', cause: `${TAKEN}; ${history}` })
  },
  'duplicate settlement': ({ twice }, order, first) => twice(order, first, later(order.due, (order.number % 2) + 1)),
  'duplicate settlement on one day, then reversed'({ reverse, twice }, order, first) {
    const until = later(order.due, 4)
    twice(order, first, order.due, { time: '18:00:00', until })
    reverse(order, 'ZB', order.amount, until)
  },
  'refund deducted by a line with its reference'({ refund, line, anyDay }, order) {
    const [day, reference] = [anyDay(order.due), `ARN${order.utr}`]
    line({ day: later(day), utr: reference, gross: -refund(order, day, { reference }).amount })
  },
  'refund deducted by a line with its reference as bank reference'({ refund, line, anyDay }, order) {
    const [day, reference] = [anyDay(order.due), `ARN${order.utr}`]
    const { amount } = refund(order, day, { reference })
    line({ day: later(day), utr: `E${order.utr}`, gross: -amount, reference: reference.toLowerCase() })
  },
  'refund deducted by a line with its payment and amount'({ refund, reverse, anyDay }, order) {
    const { amount, day } = refund(order, anyDay(order.due))
    reverse(order, 'RB', amount, later(day))
  },
  'refund deducted by an unnamed line'({ refund, unnamed, bankDayOfUnnamed }, order) {
    const bankDay = bankDayOfUnnamed(order.due)
    unnamed('O', refund(order, before(bankDay)).amount, bankDay)
  },
  'refunds of one payment deducted by one line'({ refund, reverse, anyDay }, order) {
    const day = anyDay(order.due)
    const amount = refund(order, day, { time: '10:00:00' }).amount + refund(order, day).amount
    reverse(order, 'RB', amount, later(day))
  },
  'refunds of one bank day deducted by one line': ({ manyToOne, bankDayOfUnnamed }, order) =>
    manyToOne(bankDayOfUnnamed(later(order.due, 3))),
  'refunds of one bank day deducted by one line, another by its own line'(maker, order) {
    const bankDay = maker.bankDayOfUnnamed(later(order.due, 4))
    maker.manyToOne(bankDay, '10:00:00')
    maker.unnamed('O', maker.refund(order, before(bankDay)).amount, bankDay)
  },
  'refunds of one bank day deducted by one line, another netted'(maker, order) {
    const bankDay = maker.bankDayOfUnnamed(later(order.due, 4))
    maker.manyToOne(bankDay)
    const other = maker.pay(before(bankDay))
    maker.settle(other, other.amount - maker.refund(other, other.day).amount)
  },
  'refund deducted with another amount'({ refund, line, reversed, anyDay }, order) {
    const [day, reference] = [anyDay(order.due), `ARN${order.utr}`]
    const { id, amount } = refund(order, day, { reference })
    line({ day: later(day), utr: reference, gross: -amount - 50, paymentUtr: order.utr })
    const cause = `the amount differs from that of refund ${id}`
    reversed(order, reference, later(day), { paid: -amount, settled: -amount - 50, cause })
  },
  'refunds of two bank days with equal sums, and one unnamed line'(maker, order) {
    const first = maker.bankDayOfUnnamed(order.due)
    const second = maker.bankDayOfUnnamed(first)
    const send = (bankDay: string, amount = 0) => {
      const one = maker.pay(order.day)
      maker.settle(one)
      const sent = maker.refund(one, before(bankDay), { amount })
      maker.undeducted(sent)
      return sent.amount
    }
    const [one, other] = [send(first), send(first)]
    send(second, one - 10_000)
    send(second, other + 10_000)
    maker.ofNoMerchant(`AB${order.utr}`, later(second), one + other)
  },
  'late payment that appears in a daily report days later'({ pay, settle, except, differ }, plain) {
    const until = later(plain.due)
    const createdOn = addDays(plain.day, -6)
    const late = pay(plain.day, { from: until, createdOn })
    const settlementUtr = settle(late)
    except('late payment', late, { receivedAt: istMoment(until, '15:00:00'), resolvedOn: later(until, 2), createdOn })
    const about = { day: late.due, settled: late.amount, settlementUtr, cause: OF_NO_MERCHANT, until }
    differ('unknown payment', { utr: late.utr }, about)
  },
  'second payment of an order that is not refunded': ({ settle, payAgain }, order) => settle(payAgain(order)),
  'second payment of an order that is never settled'({ payAgain, missing }, order) {
    const second = payAgain(order)
    missing(second, { cause: `exception of ${second.utr}: double payment` })
  },
  'second payment of an order, refunded and deducted'({ settle, payAgain, refund, line, anyDay }, order) {
    const day = anyDay(later(order.due))
    const { amount, ...second } = payAgain(order, day)
    settle({ amount, ...second })
    const reference = `ARN${second.utr}`
    line({ day: later(day), utr: reference, gross: -refund({ amount, ...second }, day, { amount, reference }).amount })
  },
  'second payment of an order, refunded and never deducted'(maker, order) {
    const second = maker.payAgain(order)
    maker.settle(second)
    maker.undeducted(maker.refund(second, maker.openDay(order.due), second))
  },
  'second payment of an order, refunded before its settlement': ({ payAgain, refund }, order) =>
    refund(payAgain(order, order.due), order.due, order),
  'line of an unknown payment': (maker, order) => unknown(maker, order),
  'line of an unknown payment that an unknown-order exception explains': (maker, order) =>
    maker.explain(order, unknown(maker, order, later(order.due))),
  'refund never deducted': ({ undeducted, refund, openDay }, order) => undeducted(refund(order, openDay(order.due))),
  'refund deducted some days late'({ undeducted, refund, openDay, reverse }, order) {
    const sent = refund(order, openDay(order.due))
    const until = later(sent.day, 4)
    undeducted(sent, until)
    reverse(order, 'RB', sent.amount, until)
  },
  'two open refunds of one amount, and one unnamed line'(maker, order) {
    const sent = maker.refund(order, maker.openDay(order.due))
    const other = maker.pay(order.day)
    maker.settle(other)
    for (const one of [sent, maker.refund(other, sent.day, sent)]) maker.undeducted(one)
    maker.ofNoMerchant(`AM${order.utr}`, later(sent.day), sent.amount)
  },
}

const UNSETTLED: Record<string, Plant> = {
  'refund netted in the line of its payment': netted,
  'refund netted, and a later one deducted'(maker, order) {
    netted(maker, order)
    const { amount, day } = maker.refund(order, maker.anyDay(order.due))
    maker.reverse(order, 'RB', amount, later(day))
  },
  'refund netted, and a later one never deducted'(maker, order) {
    netted(maker, order)
    maker.undeducted(maker.refund(order, maker.openDay(order.due)))
  },
  'payment fully refunded before its settlement, never settled': ({ refund }, order) => refund(order, order.day, order),
  'payment partly refunded before its settlement, never settled'({ refund, missing }, order) {
    const { amount } = refund(order, order.day)
    const cause = `no settlement line has its UTR; its payout was due on ${order.due}; ${rupees(amount)} of it was refunded`
    missing(order, { paid: order.amount - amount, cause })
  },
  'missing line': ({ missing }, order) => missing(order),
  'line imported days later with its original date'({ settle, missing }, order) {
    const until = later(order.due, 3)
    settle(order, order.amount, { from: until })
    missing(order, { until })
  },
  'line with a later date'({ settle, missing }, order) {
    const until = later(order.due, 2)
    settle(order, order.amount, { day: until })
    missing(order, { until })
  },
  'line of a file that is undone and imported again'({ settle, missing }, order) {
    const [undone, again] = [later(order.due, 2), later(order.due, 4)]
    settle(order, order.amount, { until: undone })
    settle(order, order.amount, { from: again })
    missing(order, { from: undone, until: again })
  },
  'line of a file that is undone'({ settle, missing }, order) {
    const from = later(order.due, 2)
    settle(order, order.amount, { until: from })
    missing(order, { from })
  },
  'short line of a file that is undone and imported again in full'({ form, settle, missing, differ, feesOf }, order) {
    const [undone, again] = [later(order.due, 1), later(order.due, 2)]
    const { fee, tax } = feesOf(order.amount)
    const short = order.amount - 100
    const settlementUtr = settle(order, short, { until: undone, ...(form === 'named' && { fee, tax }) })
    settle(order, order.amount, { from: again })
    const [kind, cause] =
      form === 'own'
        ? ['amount mismatch', 'the amount differs from the payment, and the file states no fee or tax']
        : ['fee mismatch', `the amount with fee ${rupees(fee)} and tax ${rupees(tax)} differs from the payment`]
    differ(kind, order, { day: order.due, paid: order.amount, settled: short, settlementUtr, cause, until: undone })
    // The file may be undone on the first day on which the payment is overdue.
    missing(order, { from: lastOf(undone, addDays(order.due, 1)), until: again })
  },
  'settlement that changes from SUCCESS to FAILED': (maker, order) => failLine(maker, order),
  'settlement that changes from SUCCESS to FAILED, then paid again'(maker, order) {
    const until = later(order.due, 5)
    failLine(maker, order, until)
    maker.again(order, 'G', until)
  },
  'payment that failed after its success': ({ fail, missing, lastWord }, order) =>
    missing(order, { cause: fail(order, lastWord), resolvedFrom: lastWord }),
  'payment that failed after its success, resolved'({ fail, missing }, order) {
    const resolvedFrom = later(order.due, 3)
    missing(order, { cause: fail(order, resolvedFrom), resolvedFrom })
  },
}

export const namesByPayment = Object.keys({ ...SETTLED, ...UNSETTLED })

/**
 * Each day has at most one injected discrepancy; its other payments are settled. A payout always names more payments than it
 * leaves out.
 */
export function plantByPayment(created: Maker, { days, perDay, plants }: Plan): void {
  const maker = { ...created, ...refundDays(created) }
  const { nextBankDay: nextUnreported } = bankDaysAt(days.from)
  for (const [index, day] of daysOf(days.from, days.to).entries()) {
    const name = isUnsettled(day) ? '' : (plants.get(index) ?? '')
    for (let count = 0; count < perDay; count++) {
      const order = maker.pay(day)
      const plant = count === 0 ? UNSETTLED[name] : undefined
      const first = plant === undefined ? maker.settle(order) : ''
      if (count === 0) (plant ?? SETTLED[name])?.(maker, order, first)
      if (plant !== undefined) continue
      // The payment appears to be due on the holiday until the holiday is entered.
      const due = nextUnreported(day)
      const reportedOn = LATE_HOLIDAYS.find(({ days }) => days.includes(due))?.reportedOn ?? ''
      const until = order.due < reportedOn ? order.due : reportedOn
      if (due !== order.due) maker.missing({ ...order, due }, { until })
    }
  }
}
