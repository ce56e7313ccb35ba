import { addDays, countDays, type Days } from '../../src/books/ledger/bank-days.ts'
import { groupBy } from '../../src/books/ledger/match-deductions.ts'
import { orderIdsBegin } from '../../src/gateway/payments/intent.ts'
import { toDecimalText } from '../../src/platform/money.ts'
import { istMoment } from './rows.ts'
import {
  ALWAYS,
  bankDaysAt,
  type Known,
  LATE_HOLIDAYS,
  type Line,
  type Payment,
  type Story,
  type Told,
} from './story.ts'

/*
 * Stories of payments and of the bank's files with planted faults. Each plant says what the service learns, and which discrepancy the
 * reports have to name, from when until when.
 */

/** A discrepancy that the reports as of the days from `from` until before `until` name. Amounts are in paise. */
export type Difference = Known & {
  kind: string
  day: string
  orderId: string | null
  utr: string | null
  settlementUtr: string | null
  paid: number | null
  settled: number | null
  /** Exceptions stand in it as `exception of UTR`, imports by their day. */
  cause: string
  /** From when on its exception accounts for it. */
  resolvedFrom: string
}

/** How the settlement lines name payments: in a field of their own, by their own UTR, not at all, or some of them. */
export const FORMS = ['named', 'own', 'sums', 'mixed'] as const
export type Form = (typeof FORMS)[number]
export type Planted = { story: Story; days: Days; differences: Difference[] }
/** `plants` are names by the number of the day, or of the payout. */
export type Plan = { number: number; form: Form; days: Days; perDay: number; plants: ReadonlyMap<number, string> }

/** On this day every open exception is resolved, long after the last line of the bank. */
export const lastWord = ({ to }: Days) => addDays(to, 24)

/** Days on which the calendar without the late holidays is wrong, with some days before and after. */
export const isUnsettled = (day: string) =>
  (day >= '2026-04-20' && day <= '2026-04-29') || (day >= '2026-06-09' && day <= '2026-06-17')

const { isBankDay, previousBankDay: before, nextBankDay } = bankDaysAt(ALWAYS)
const { previousBankDay: beforeUntold, nextBankDay: nextUntold } = bankDaysAt('2026-01-01')
/** The `count`th bank day after `day`. */
const later = (day: string, count = 1): string => (count === 1 ? nextBankDay(day) : later(nextBankDay(day), count - 1))
const lastOf = (...days: string[]) => days.sort().at(-1) as string
const daysOf = (from: string, to: string) =>
  Array.from({ length: countDays(from, to) }, (_, index) => addDays(from, index))
const rupees = toDecimalText

type Order = Payment & { due: string; number: number }
type Sent = { id: string; order: Order; amount: number; day: string }
/** It is known on its day, unless it says otherwise. */
type NewLine = Omit<Line, 'from'> & Partial<Line>
type Maker = ReturnType<typeof makerOf>

const TAKEN = 'the bank has deducted it from a payout: a refund or a chargeback'
const TAKEN_OF_NOBODY = 'the bank has deducted it, and no order of this merchant carries its UTR'
const OF_NOBODY = 'no order and no exception of this merchant carries its UTR'

/** What plants are made of. */
function makerOf({ number, form, days }: Plan) {
  const mid = `Q${String(number).padStart(2, '0')}_${form.toUpperCase()}`
  const story: Story = { mid, payments: [], lines: [], refunds: [], exceptions: [] }
  const differences: Difference[] = []
  const used = new Set<string>()
  const amountOf = (count: number) => 400_000 + ((count * 7_919) % 900) * 1_000 + (count % 1_000)

  function pay(day: string, { from = day, madeOn = day } = {}): Order {
    const count = story.payments.length + 1
    const time = new Date((60 + ((count * 7_919) % 84_000)) * 1_000).toISOString().slice(11, 19)
    const at = istMoment(day, time)
    const madeAt = madeOn === day ? new Date(at.getTime() - 60_000) : istMoment(madeOn, '12:00:00')
    const digits = String(count).padStart(9, '0')
    const payment: Payment = {
      ...{ utr: form === 'own' ? `Q${number}UP${digits}` : `6${mid.slice(1, 3)}${digits}`, day, at, from, madeAt },
      ...{ orderId: orderIdsBegin(madeAt) + `${number}f${count}`.padStart(20, '0'), amount: amountOf(count) },
      ...{ kind: from === day ? 'first' : 'late', acquirer: 'direct' },
    }
    story.payments.push(payment)
    return { ...payment, due: later(day), number: count }
  }
  function except(
    kind: string,
    { orderId, utr, amount, day, at }: Pick<Order, 'orderId' | 'utr' | 'amount' | 'day' | 'at'>,
    { receivedAt = at, madeOn = day, ...more }: Partial<Told>,
  ) {
    const from = new Date(receivedAt.getTime() + 330 * 60_000).toISOString().slice(0, 10)
    const about = { kind, orderId, utr, amount, day, at, receivedAt, from, madeOn, resolvedOn: lastWord(days) }
    story.exceptions.push({ ...about, ...more })
  }

  return {
    ...{ form, story, differences, pay, except, lastWord: lastWord(days) },
    line(one: NewLine): string {
      story.lines.push({ from: one.day, ...one })
      return one.utr
    },
    /** A second payment of the order, of the same amount. */
    payAgain(order: Order, resolvedOn = lastWord(days)): Order {
      const at = new Date(order.at.getTime() + 20_000)
      const second = { ...order, utr: `X${order.utr}`, at, kind: 'second' as const }
      const { due: _, number: __, ...payment } = second
      story.payments.push(payment)
      except('double payment', second, { resolvedOn })
      return second
    },
    refund(order: Order, day: string, { amount = 0, reference = '', time = '23:50:00' } = {}): Sent {
      const count = story.refunds.length + 1
      const id = `RF${number}N${String(count).padStart(6, '0')}`
      // No two refunds are of one amount. The last digit is 1, so that two are never as much as three.
      const paise = amount || 40_001 + 10 * ((count * 7) % 5_501)
      const { orderId, utr } = order
      story.refunds.push({
        refundId: id,
        orderId,
        utr,
        amount: paise,
        day,
        from: day,
        at: istMoment(day, time),
        reference,
      })
      return { id, order, amount: paise, day }
    },
    differ(
      kind: string,
      of: { orderId?: string; utr?: string } | null,
      one: Partial<Difference> & { day: string; cause: string },
    ) {
      const about = { kind, orderId: of?.orderId ?? null, utr: of?.utr ?? null, settlementUtr: null }
      const all = { ...about, paid: null, settled: null, from: one.day, until: ALWAYS, resolvedFrom: ALWAYS, ...one }
      if (all.from < (all.until ?? ALWAYS)) differences.push(all)
    },
    /** A bank day that no other plant uses. */
    use: (day: string): boolean => !used.has(day) && used.add(day) !== undefined,
  }
}

/** The lines and discrepancies of one payment. */
function ofPayment(maker: Pick<Maker, 'form' | 'line' | 'differ'>) {
  const { form, line, differ } = maker
  const isOwn = form === 'own'
  const reversals = new Map<string, number>()
  const feesOf = (gross: number) => {
    const fee = Math.floor(gross / 50)
    return { fee, tax: Math.floor((fee * 18) / 100) }
  }
  const fees = (gross: number) => (isOwn ? {} : feesOf(gross))
  return {
    feesOf,
    /** The payment's own line: in `own` under its UTR, in upper or lower case. */
    settle(order: Pick<Order, 'utr' | 'number' | 'due' | 'amount'>, gross = order.amount, more: Partial<Line> = {}) {
      const { utr, number, due } = order
      const own = isOwn ? { utr: number % 2 === 0 ? utr : utr.toLowerCase() } : { utr: `9${utr}`, paymentUtr: utr }
      return line({ day: due, gross, ...fees(gross), ...own, ...more })
    },
    /** A further line that pays the payment out. */
    again: ({ utr, amount }: Order, name: string, day: string, time = '11:00:00') =>
      line({ day, time, utr: `${name}${utr}`, paymentUtr: utr, gross: amount, ...fees(amount) }),
    /** A line that takes money back; in `own` it repeats the payment's UTR. */
    takeBack({ utr }: Order, name: string, gross: number, day: string, withFees = false) {
      const count = (reversals.get(utr) ?? 0) + 1
      reversals.set(utr, count)
      const { fee, tax } = feesOf(gross)
      const charged = withFees ? { fee: -fee, tax: -tax } : {}
      const stored = isOwn ? { utr: `${utr}R${count}`, repeats: true } : { utr: `${name}${utr}` }
      return line({ day, gross: -gross, paymentUtr: utr, ...charged, ...stored })
    },
    missing: (order: Order, more: Partial<Difference> = {}) =>
      differ('missing settlement', order, {
        ...{ day: order.day, paid: order.amount, from: addDays(order.due, 1) },
        ...{ cause: `no payout row shows its UTR; it was due on ${order.due}`, ...more },
      }),
    reversed: (order: Order, settlementUtr: string, day: string, more: Partial<Difference> = {}) =>
      differ('reversal', order, { day, settled: -order.amount, settlementUtr, cause: TAKEN, ...more }),
    twice: (order: Order, settlementUtr: string, day: string, more: { first: string } & Partial<Difference>) => {
      const { first, ...about } = more
      const cause = `settlement ${first} of ${order.due} has paid it before`
      differ('duplicate settlement', order, {
        day,
        paid: order.amount,
        settled: order.amount,
        settlementUtr,
        cause,
        ...about,
      })
    },
    undeducted({ order, id, amount, day }: Sent, until = ALWAYS) {
      const cause = `refund ${id}: the payment was settled in full, and no row deducts what went back`
      differ('refund not deducted', order, { day, settled: amount, cause, from: addDays(later(day), 1), until })
    },
  }
}

type ByPayment = Maker & ReturnType<typeof ofPayment> & ReturnType<typeof refundDays>

/** Lines that name nothing deduct the refunds of two of three bank days; refunds of the others stay open. */
function refundDays(maker: Maker & ReturnType<typeof ofPayment>) {
  const isLeft = (bankDay: string) => daysOf('2026-04-01', bankDay).filter(isBankDay).length % 3 === 0
  const dayBefore = (after: string, isKind: (bankDay: string) => boolean): string =>
    isKind(later(after)) && !isUnsettled(after) ? after : dayBefore(addDays(after, 1), isKind)
  const unnamed = (utr: string, gross: number, day: string, time = '11:00:00') =>
    maker.line({ day, time, utr: `${utr}${maker.story.mid.slice(1, 3)}${day.replaceAll('-', '')}`, gross: -gross })
  const bankDayOfUnnamed = (after: string): string => {
    const bankDay = later(dayBefore(after, (day) => !isLeft(day)))
    return maker.use(bankDay) ? bankDay : bankDayOfUnnamed(bankDay)
  }
  return {
    ...{ unnamed, anyDay: (after: string) => dayBefore(after, () => true) },
    openDay: (after: string) => dayBefore(after, isLeft),
    /** A bank day of which a line deducts the refunds since the one before: each is used once. */
    bankDayOfUnnamed,
    /** Three payments, refunded since the bank day before: one line deducts all of them. */
    manyToOne(bankDay: string, time?: string) {
      const days = daysOf(before(bankDay), addDays(bankDay, -1))
      const refunds = [0, 1, 2].map((index) => {
        const order = maker.pay(before(before(days[0] as string)))
        maker.settle(order)
        return maker.refund(order, days[index % days.length] as string)
      })
      unnamed(
        'N',
        refunds.reduce((sum, { amount }) => sum + amount, 0),
        bankDay,
        time,
      )
    },
  }
}

const failureOf = (utr: string) => `exception of ${utr}: failure after success`

/** The payment is settled, and a refund of it succeeds. */
const refunded = ({ settle, refund, openDay }: ByPayment, order: Order) => {
  settle(order)
  return refund(order, openDay(order.due))
}

function fail({ except, missing }: ByPayment, order: Order, resolvedOn: string) {
  except('failure after success', order, { receivedAt: new Date(order.at.getTime() + 30_000), resolvedOn })
  missing(order, { cause: failureOf(order.utr), resolvedFrom: resolvedOn })
}

/** The plants of a file with a line for each payment. */
const BY_PAYMENT: Record<string, (maker: ByPayment, order: Order) => void> = {
  'chargeback that is lost'({ settle, takeBack, reversed }, order) {
    settle(order)
    const day = later(order.due, 2)
    reversed(order, takeBack(order, 'CB', order.amount, day), day)
  },
  'chargeback that is lost, with its fee'({ settle, takeBack, reversed }, order) {
    settle(order)
    const day = later(order.due, 3)
    reversed(order, takeBack(order, 'CB', order.amount, day, true), day)
  },
  'chargeback that is won'({ settle, takeBack, again, reversed }, order) {
    settle(order)
    const [day, won] = [later(order.due, 2), later(order.due, 9)]
    reversed(order, takeBack(order, 'CB', order.amount, day), day, { until: won })
    again(order, 'W', won)
  },
  'chargeback that is won and lost again'({ settle, takeBack, again, reversed }, order) {
    settle(order)
    const [day, won, lost] = [later(order.due, 2), later(order.due, 5), later(order.due, 8)]
    reversed(order, takeBack(order, 'CB', order.amount, day), day, { until: won })
    again(order, 'W', won)
    const told = [`settled on ${order.due}`, `taken back on ${day}`, `paid again on ${won}`, `taken back on ${lost}`]
    const history = told.map((one) => `${one} by import of ${one.slice(-10)}`).join(', ')
    reversed(order, takeBack(order, 'CC', order.amount, lost), lost, { cause: `${TAKEN}; ${history}` })
  },
  'duplicate settlement'({ settle, again, twice }, order) {
    const first = settle(order)
    const day = later(order.due, (order.number % 2) + 1)
    twice(order, again(order, 'Z', day), day, { first })
  },
  'duplicate settlement on one day, and taken back'({ settle, again, takeBack, twice }, order) {
    const first = settle(order)
    const until = later(order.due, 4)
    twice(order, again(order, 'Z', order.due, '18:00:00'), order.due, { first, until })
    takeBack(order, 'ZB', order.amount, until)
  },
  'refund deducted by its reference'({ settle, refund, line, anyDay }, order) {
    settle(order)
    const [day, reference] = [anyDay(order.due), `ARN${order.utr}`]
    line({ day: later(day), utr: reference, gross: -refund(order, day, { reference }).amount })
  },
  'refund deducted by a line with its reference as the bank’s'({ settle, refund, line, anyDay }, order) {
    settle(order)
    const [day, reference] = [anyDay(order.due), `ARN${order.utr}`]
    const { amount } = refund(order, day, { reference })
    line({ day: later(day), utr: `E${order.utr}`, gross: -amount, reference: reference.toLowerCase() })
  },
  'refund deducted by payment and amount'({ settle, refund, takeBack, anyDay }, order) {
    settle(order)
    const { amount, day } = refund(order, anyDay(order.due))
    takeBack(order, 'RB', amount, later(day))
  },
  'refund deducted by a line that names nothing'({ settle, refund, unnamed, bankDayOfUnnamed }, order) {
    settle(order)
    const bankDay = bankDayOfUnnamed(order.due)
    unnamed('O', refund(order, before(bankDay)).amount, bankDay)
  },
  'refunds of one payment deducted by one line'({ settle, refund, takeBack, anyDay }, order) {
    settle(order)
    const day = anyDay(order.due)
    const amount = refund(order, day, { time: '10:00:00' }).amount + refund(order, day).amount
    takeBack(order, 'RB', amount, later(day))
  },
  'refunds of one bank day deducted by one line'({ settle, manyToOne, bankDayOfUnnamed }, order) {
    settle(order)
    manyToOne(bankDayOfUnnamed(later(order.due, 3)))
  },
  'refunds of one bank day deducted by one line, and another by its own'(maker, order) {
    const bankDay = maker.bankDayOfUnnamed(later(order.due, 4))
    maker.manyToOne(bankDay, '10:00:00')
    maker.settle(order)
    maker.unnamed('O', maker.refund(order, before(bankDay)).amount, bankDay)
  },
  'refunds of one bank day deducted by one line, and another netted'(maker, order) {
    maker.settle(order)
    const bankDay = maker.bankDayOfUnnamed(later(order.due, 4))
    maker.manyToOne(bankDay)
    const other = maker.pay(before(bankDay))
    maker.settle(other, other.amount - maker.refund(other, other.day).amount)
  },
  'refund netted in the payment’s own line'({ settle, refund }, order) {
    settle(order, order.amount - refund(order, order.day).amount)
  },
  'refund netted, and a later one deducted'({ settle, refund, takeBack, anyDay }, order) {
    settle(order, order.amount - refund(order, order.day).amount)
    const { amount, day } = refund(order, anyDay(order.due))
    takeBack(order, 'RB', amount, later(day))
  },
  'refund netted, and a later one never deducted'({ settle, refund, undeducted, openDay }, order) {
    settle(order, order.amount - refund(order, order.day).amount)
    undeducted(refund(order, openDay(order.due)))
  },
  'refund never deducted'(maker, order) {
    maker.undeducted(refunded(maker, order))
  },
  'refund deducted some days late'(maker, order) {
    const sent = refunded(maker, order)
    const until = later(sent.day, 4)
    maker.undeducted(sent, until)
    maker.takeBack(order, 'RB', sent.amount, until)
  },
  'refund deducted with another amount'({ settle, refund, line, reversed, anyDay }, order) {
    settle(order)
    const [day, reference] = [anyDay(order.due), `ARN${order.utr}`]
    const { id, amount } = refund(order, day, { reference })
    line({ day: later(day), utr: reference, gross: -amount - 50, paymentUtr: order.utr })
    const cause = `refund ${id} is of another amount`
    reversed(order, reference, later(day), { paid: -amount, settled: -amount - 50, cause })
  },
  'two open refunds of one amount, and a line that names nothing'(maker, order) {
    const sent = refunded(maker, order)
    const other = maker.pay(order.day)
    maker.settle(other)
    for (const one of [sent, maker.refund(other, sent.day, sent)]) maker.undeducted(one)
    ofNobody(maker, `AM${order.utr}`, later(sent.day), sent.amount)
  },
  'refunds of two bank days with one sum, and a line that names nothing'(maker, order) {
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
    maker.settle(order)
    ofNobody(maker, `AB${order.utr}`, later(second), one + other)
  },
  'wholly refunded before it was settled, and never settled'({ refund }, order) {
    refund(order, order.day, { amount: order.amount })
  },
  'partly refunded before it was settled, and never settled'({ refund, missing }, order) {
    const { amount } = refund(order, order.day)
    const cause = `no payout row shows its UTR; it was due on ${order.due}; ${rupees(amount)} of it went back`
    missing(order, { paid: order.amount - amount, cause })
  },
  'line that never comes'({ missing }, order) {
    missing(order)
  },
  'line that comes days later with its own day'({ settle, missing }, order) {
    const until = later(order.due, 3)
    settle(order, order.amount, { from: until })
    missing(order, { until })
  },
  'line of a later day'({ settle, missing }, order) {
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
  'line of a file that is undone for good'({ settle, missing }, order) {
    const from = later(order.due, 2)
    settle(order, order.amount, { until: from })
    missing(order, { from })
  },
  'line of a wrong file that comes again in full'({ form, settle, missing, differ, feesOf }, order) {
    const [undone, again] = [later(order.due, 1), later(order.due, 2)]
    const { fee, tax } = feesOf(order.amount)
    const short = order.amount - 100
    const settlementUtr = settle(order, short, { until: undone, ...(form === 'named' && { fee, tax }) })
    settle(order, order.amount, { from: again })
    const [kind, cause] =
      form === 'own'
        ? ['amount mismatch', 'the amount is not what was paid, and the file states no fee and tax']
        : ['fee mismatch', `the amount with fee ${rupees(fee)} and tax ${rupees(tax)} is not what was paid`]
    differ(kind, order, { day: order.due, paid: order.amount, settled: short, settlementUtr, cause, until: undone })
    // The day on which the file is undone may be the first on which the payment is awaited in vain.
    missing(order, { from: lastOf(undone, addDays(order.due, 1)), until: again })
  },
  'late payment that the daily report tells of days later'({ pay, settle, except, differ }, plain) {
    settle(plain)
    const until = later(plain.due)
    const madeOn = addDays(plain.day, -6)
    const late = pay(plain.day, { from: until, madeOn })
    const settlementUtr = settle(late)
    except('late payment', late, { receivedAt: istMoment(until, '15:00:00'), resolvedOn: later(until, 2), madeOn })
    const about = { day: late.due, settled: late.amount, settlementUtr, cause: OF_NOBODY, until }
    differ('unknown payment', { utr: late.utr }, about)
  },
  'second payment of an order that the merchant keeps'({ settle, payAgain }, order) {
    settle(order)
    settle(payAgain(order))
  },
  'second payment of an order that is never settled'({ settle, payAgain, missing }, order) {
    settle(order)
    const second = payAgain(order)
    missing(second, { cause: `exception of ${second.utr}: double payment` })
  },
  'second payment of an order that is refunded and deducted'({ settle, payAgain, refund, line, anyDay }, order) {
    settle(order)
    const day = anyDay(later(order.due))
    const second = payAgain(order, day)
    settle(second)
    const reference = `ARN${second.utr}`
    line({ day: later(day), utr: reference, gross: -refund(second, day, { amount: second.amount, reference }).amount })
  },
  'second payment of an order that is refunded and never deducted'(maker, order) {
    maker.settle(order)
    const second = maker.payAgain(order)
    maker.settle(second)
    maker.undeducted(maker.refund(second, maker.openDay(order.due), second))
  },
  'second payment of an order that is refunded before it is settled'({ settle, payAgain, refund }, order) {
    settle(order)
    refund(payAgain(order, order.due), order.due, { amount: order.amount })
  },
  'settlement that was SUCCESS and is FAILED'({ settle, missing }, order) {
    const from = later(order.due, 2)
    const utr = settle(order, order.amount, { failedOn: from })
    missing(order, { kind: 'reversal', from, cause: `settlement ${utr} of ${order.due} was SUCCESS and is FAILED` })
  },
  'settlement that was SUCCESS and is FAILED, and is paid again'({ settle, again, missing }, order) {
    const [from, until] = [later(order.due, 2), later(order.due, 5)]
    const utr = settle(order, order.amount, { failedOn: from })
    again(order, 'G', until)
    const cause = `settlement ${utr} of ${order.due} was SUCCESS and is FAILED`
    missing(order, { kind: 'reversal', from, until, cause })
  },
  'payment that has failed after its success': (maker, order) => fail(maker, order, maker.lastWord),
  'payment that has failed after its success, which is resolved': (maker, order) =>
    fail(maker, order, later(order.due, 3)),
  'line of no known payment'(maker, order) {
    maker.settle(order)
    unknown(maker, order)
  },
  'line of no known payment that an exception of an unknown order explains'(maker, order) {
    maker.settle(order)
    explain(maker, order, { ...unknown(maker, order, later(order.due)), day: order.due })
  },
}

type Lines = Pick<Maker, 'line' | 'differ'>

/** A line that takes back what belongs to no payment. */
function ofNobody({ line, differ }: Lines, utr: string, day: string, amount: number) {
  line({ day, utr, gross: -amount })
  differ('reversal', { utr }, { day, settled: -amount, settlementUtr: utr, cause: TAKEN_OF_NOBODY })
}

/** A line of a payment that is not known, and is a discrepancy of its own until `until`. */
function unknown({ settle, differ }: ByPayment, order: Order, until = ALWAYS) {
  const other = { ...order, utr: `ZZ${order.utr}` }
  const settlementUtr = settle(other)
  const about = { settled: order.amount, settlementUtr, until }
  differ('unknown payment', { utr: other.utr }, { day: order.due, cause: OF_NOBODY, ...about })
  return { utr: other.utr, settlementUtr, amount: order.amount }
}

type Explained = { utr: string; settlementUtr: string; amount: number; day: string }

/** The day after it, an exception of an unknown order explains a line. */
function explain({ except, differ }: Maker, order: Order, { utr, settlementUtr, amount, day }: Explained) {
  const [received, resolvedOn] = [later(day), later(day, 3)]
  const orderId = `gone-${order.orderId.slice(-6)}`
  const about = { ...order, orderId, utr, amount }
  except('unknown order', about, { receivedAt: istMoment(received, '09:00:00'), resolvedOn, madeOn: '' })
  differ('unknown payment', about, {
    ...{ day, settled: amount, settlementUtr, from: received, resolvedFrom: resolvedOn },
    cause: `exception of ${utr}: unknown order, of order ${orderId}`,
  })
}

/** A day may have a plant; else its payments are settled. A payout always names more payments than it leaves out. */
function plantByPayment(maker: ByPayment, { days, perDay, plants }: Plan): void {
  for (const [index, day] of daysOf(days.from, days.to).entries()) {
    const plant = isUnsettled(day) ? undefined : BY_PAYMENT[plants.get(index) ?? '']
    for (let count = 0; count < perDay; count++) {
      const order = maker.pay(day)
      if (count === 0 && plant !== undefined) {
        plant(maker, order)
        continue
      }
      maker.settle(order)
      // Until the holiday is entered, the payment seems to be due on it.
      const due = nextUntold(day)
      const toldOn = LATE_HOLIDAYS.find(({ days }) => days.includes(due))?.toldOn ?? ''
      const until = order.due < toldOn ? order.due : toldOn
      if (due !== order.due) maker.missing({ ...order, due }, { until })
    }
  }
}

/** What the payout of a bank day is for, and the line without a payment's name that pays `total`; null where it never comes. */
type Payout = {
  day: string
  orders: Order[]
  named: Order[]
  paid: number
  total: number
  line: NewLine | null
}
type BySums = Maker & ReturnType<typeof ofPayment> & { sumsDiffer: ReturnType<typeof ofTotals> }
type SumPlant = (maker: BySums, payout: Payout, next: Payout, third: Payout) => void

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
    const cause = settled === 0 ? `nothing was settled of the payments of ${days}` : by
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

/** A payment that the bank has taken back, as it says, and that the payout leaves out. */
function failInTotal({ except, differ, sumsDiffer }: BySums, payout: Payout, resolvedOn: string) {
  const order = payout.orders[0] as Order
  except('failure after success', order, { receivedAt: new Date(order.at.getTime() + 30_000), resolvedOn })
  payout.total -= order.amount
  sumsDiffer(payout, payout.total, {
    likely: likelyException('failure after success', order, 'open'),
    until: resolvedOn,
  })
  differ('missing settlement', order, {
    ...{ day: order.day, paid: order.amount, cause: failureOf(order.utr), from: resolvedOn, resolvedFrom: resolvedOn },
  })
}

/** A line that names nothing, which makes the payout more. */
function unknownInTotal({ line, sumsDiffer }: BySums, payout: Payout, until = ALWAYS) {
  const [utr, amount] = [`ZZ${payout.orders[0]?.utr}`, 123_457]
  line({ day: payout.day, utr, gross: amount })
  sumsDiffer(payout, payout.paid + amount, { until })
  return { utr, settlementUtr: utr, amount, day: payout.day }
}

function failTotal({ differ }: BySums, { line, day, paid }: Payout, from: string) {
  const cause = 'the settlement was SUCCESS and is FAILED'
  differ('reversal', null, { day, settlementUtr: line?.utr ?? '', paid, cause, from })
  if (line) line.failedOn = from
}

/** The plants of a file with totals. Without a line of the total, lines that name payments would decide the form of the payout. */
const TOTAL_ALONE: Record<string, SumPlant> = {
  'total that never comes'({ sumsDiffer }, payout) {
    sumsDiffer(payout, 0)
    payout.line = null
  },
  'total that is paid with the next one'({ sumsDiffer }, payout, next) {
    sumsDiffer(payout, 0)
    payout.line = null
    next.total += payout.paid
    sumsDiffer(next, next.total)
  },
  'total whose file comes days later'({ sumsDiffer }, payout, _next, third) {
    sumsDiffer(payout, 0, { until: third.day })
    Object.assign(payout.line ?? {}, { from: third.day })
  },
  'total of a file that is undone and imported again'({ line, sumsDiffer }, payout, next, third) {
    line({ ...(payout.line as Line), gross: payout.total, from: third.day })
    Object.assign(payout.line ?? {}, { until: next.day })
    // The day on which it is undone may be the first after the payout.
    sumsDiffer(payout, 0, { from: lastOf(next.day, addDays(payout.day, 1)), until: third.day })
  },
  'total that was SUCCESS and is FAILED'(maker, payout, next) {
    failTotal(maker, payout, next.day)
  },
  'total that is FAILED and paid again by a line of the same day'({ line }, payout, next) {
    const again = { ...(payout.line as Line), utr: `${payout.line?.utr}B`, gross: payout.total, from: next.day }
    line(again)
    Object.assign(payout.line ?? {}, { failedOn: next.day })
  },
  'total that is FAILED and paid again with the next one'(maker, payout, next) {
    failTotal(maker, payout, next.day)
    next.total += payout.paid
    maker.sumsDiffer(next, next.total)
  },
}

const BY_SUMS: Record<string, SumPlant> = {
  ...TOTAL_ALONE,
  'total that is short'({ sumsDiffer }, payout) {
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
  'refund deducted some days late by a line of its payment and amount'(maker, payout, _next, third) {
    const sent = refundOf(maker, payout)
    maker.sumsDiffer(payout, payout.paid, { refunded: sent.amount, likely: likelyRefund(sent), until: third.day })
    maker.takeBack(sent.order, 'RB', sent.amount, third.day)
  },
  'refunds of one payment deducted by one line'(maker, payout) {
    const [one, other] = [refundOf(maker, payout), refundOf(maker, payout)]
    maker.takeBack(one.order, 'RB', one.amount + other.amount, payout.day)
  },
  'refunds of one bank day deducted by one line that names nothing'(maker, payout) {
    const sum = [0, 1, 2].reduce((sum, index) => sum + refundOf(maker, payout, index).amount, 0)
    maker.line({ day: payout.day, utr: `N${payout.orders[0]?.utr}`, gross: -sum })
  },
  'two open refunds of one amount, and a line that names nothing'(maker, payout) {
    const one = refundOf(maker, payout)
    const order = payout.orders[1] as Order
    const both = [one, maker.refund(order, order.day, one)].sort((a, b) => (a.day < b.day ? -1 : 1))
    ofNobody(maker, `AM${one.order.utr}`, payout.day, one.amount)
    const likely = both.map(likelyRefund).join(' and ')
    maker.sumsDiffer(payout, payout.paid, { refunded: 2 * one.amount, likely })
  },
  'second payment in the total'({ payAgain }, payout) {
    payout.total += payAgain(payout.orders[0] as Order).amount
  },
  'second payment that the total leaves out'({ payAgain, sumsDiffer }, payout, next) {
    const second = payAgain(payout.orders[0] as Order, next.day)
    const paid = payout.paid + second.amount
    const likely = (word: string) => likelyException('double payment', second, word)
    sumsDiffer({ ...payout, paid }, payout.paid, { likely: likely('open'), until: next.day })
    const from = lastOf(next.day, addDays(payout.day, 1))
    sumsDiffer({ ...payout, paid }, payout.paid, { likely: likely('resolved'), from })
  },
  'second payment in the total that is refunded and netted two totals later'(
    { payAgain, refund },
    payout,
    next,
    third,
  ) {
    const second = payAgain(payout.orders[0] as Order, next.day)
    payout.total += second.amount
    third.total -= refund(second, next.day, second).amount
  },
  'second payment in the total that is refunded and deducted by a line'(
    { payAgain, refund, line },
    payout,
    next,
    third,
  ) {
    const second = payAgain(payout.orders[0] as Order, next.day)
    payout.total += second.amount
    const reference = `ARN${second.utr}`
    const { amount } = second
    line({ day: third.day, utr: reference, gross: -refund(second, next.day, { amount, reference }).amount })
  },
  'payment that has failed after its success, which the total leaves out': (maker, payout) =>
    failInTotal(maker, payout, maker.lastWord),
  'payment that has failed after its success, which is resolved': (maker, payout, _next, third) =>
    failInTotal(maker, payout, third.day),
  'line of no known payment'(maker, payout) {
    unknownInTotal(maker, payout)
  },
  'line of no known payment that an exception of an unknown order explains'(maker, payout, next) {
    explain(maker, payout.orders[0] as Order, unknownInTotal(maker, payout, next.day))
  },
  'chargeback of a payment of the total'({ takeBack, reversed }, { orders }, _next, third) {
    const order = orders[0] as Order
    reversed(order, takeBack(order, 'CB', order.amount, third.day), third.day)
  },
  'line that names a payment which a total has paid'({ again, sumsDiffer }, payout, _next, third) {
    const order = payout.orders[0] as Order
    again(order, 'Z', third.day)
    sumsDiffer({ ...payout, paid: payout.paid - order.amount }, payout.paid, { from: third.day })
  },
  'payment that a later line names, and the total leaves out'({ again, sumsDiffer }, payout, _next, third) {
    const order = payout.orders[0] as Order
    payout.total -= order.amount
    sumsDiffer(payout, payout.total, { until: third.day })
    again(order, 'L', third.day)
  },
}

/** Of a file that names some payments, too. */
const MIXED: Record<string, SumPlant> = {
  ...BY_SUMS,
  'refund netted in the line that names its payment'({ settle, refund }, payout) {
    const order = payout.named.shift() as Order
    settle(order, order.amount - refund(order, order.day).amount)
  },
  'named payment that is charged back and won'({ takeBack, again, reversed }, { named }, _next, third) {
    const order = named[0] as Order
    const until = later(third.day, 6)
    reversed(order, takeBack(order, 'CB', order.amount, third.day), third.day, { until })
    again(order, 'W', until)
  },
  'named payment that is settled twice'({ again, twice }, { named }, next) {
    const order = named[0] as Order
    twice(order, again(order, 'Z', next.day), next.day, { first: `9${order.utr}` })
  },
}

const plantsOf = (form: Form) => (form === 'mixed' ? MIXED : BY_SUMS)
export const namesOf = (form: Form) => Object.keys(form === 'named' || form === 'own' ? BY_PAYMENT : plantsOf(form))

/** At most every third payout has a plant, since a plant may change the next two. */
function plantBySums(maker: BySums, { days, perDay, plants, form }: Plan): void {
  const orders = daysOf(days.from, days.to).flatMap((day) => Array.from({ length: perDay }, () => maker.pay(day)))
  const byDue = [...groupBy(orders, ({ due }) => due)].sort(([a], [b]) => (a < b ? -1 : 1))
  const slots = byDue.map((_, index) => {
    const due = byDue.slice(index, index + 3).map(([day]) => day)
    // The payments of a payout begin with the bank day before.
    const isCalm = due.length === 3 && !due.some((day) => isUnsettled(day) || isUnsettled(before(day)))
    return index % 3 === 0 && isCalm ? plants.get(index / 3) : undefined
  })
  const payouts = byDue.map(([day, all], index): Payout => {
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
  seemUntold(payouts, maker.sumsDiffer)
}

/** Until a late holiday is entered, its payout seems to be missing, and the one after it to be too much. */
function seemUntold(payouts: readonly Payout[], sumsDiffer: BySums['sumsDiffer']): void {
  for (const { days, toldOn: until } of LATE_HOLIDAYS) {
    const payout = payouts.find(({ day }) => day === later(days[0] as string))
    for (const day of payout === undefined ? [] : [...days, payout.day]) {
      const orders = payout?.orders.filter((order) => nextUntold(order.day) === day) ?? []
      const paid = orders.reduce((sum, { amount }) => sum + amount, 0)
      sumsDiffer({ day, paid }, day === payout?.day ? payout.total : 0, { previous: beforeUntold, until })
    }
  }
}

/** Plants the faults of the plan. */
export function plantFaults(plan: Plan): Planted {
  const maker = makerOf(plan)
  const whole = { ...maker, ...ofPayment(maker) }
  if (plan.form === 'named' || plan.form === 'own') plantByPayment({ ...whole, ...refundDays(whole) }, plan)
  else plantBySums({ ...whole, sumsDiffer: ofTotals(maker) }, plan)
  return { story: maker.story, days: plan.days, differences: maker.differences }
}

type Turns = Pick<Plan, 'days' | 'perDay'> & { seed: number; first?: number }

/** A merchant of each form; merchants of one form go on where the last one has ended, so that every plant has its turn. */
export function plantInTurns(forms: readonly Form[], { seed, first = 0, ...plan }: Turns): Planted[] {
  const turns = new Map<Form, number>()
  return forms.map((form, index) => {
    const names = namesOf(form)
    const turn = turns.get(form) ?? seed
    const days = countDays(plan.days.from, plan.days.to)
    const plants = new Map(
      Array.from({ length: days }, (_, slot) => [slot, names[(turn + slot) % names.length] as string]),
    )
    turns.set(form, turn + Math.ceil(days / 4))
    return plantFaults({ ...plan, number: first + index, form, plants })
  })
}
