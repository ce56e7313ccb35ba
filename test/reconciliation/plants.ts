import { addDays, countDays, type Days } from '../../src/books/ledger/bank-days.ts'
import { orderIdsBegin } from '../../src/gateway/payments/intent.ts'
import { toDecimalText } from '../../src/platform/money.ts'
import { istMoment } from './rows.ts'
import { ALWAYS, bankDaysAt, type Known, type Line, type Payment, type Reported, type Story } from './story.ts'

/*
 * Stories of payments and settlement files with injected discrepancies. Each defines the facts that become known, and which
 * discrepancy reports must contain, from which day until which day.
 */

/** A discrepancy that reports as of the days from `from` until before `until` must contain. Amounts are in paise. */
export type Difference = Known & {
  kind: string
  day: string
  orderId: string | null
  utr: string | null
  settlementUtr: string | null
  paid: number | null
  settled: number | null
  /** The text refers to exceptions as `exception of UTR` and to imports by day. */
  cause: string
  /** First day on which its exception is resolved. */
  resolvedFrom: string
}

/** How settlement lines name payments: in a separate field, by their own UTR, not at all, or only some of them. */
export const FORMS = ['named', 'own', 'sums', 'mixed'] as const
export type Form = (typeof FORMS)[number]
export type Planted = { story: Story; days: Days; differences: Difference[] }
/** `plants` maps the number of the day, or of the payout, to the name of a discrepancy. */
export type Plan = { number: number; form: Form; days: Days; perDay: number; plants: ReadonlyMap<number, string> }

/** Returns the day on which every open exception is resolved, long after the last settlement line. */
export const lastWord = ({ to }: Days) => addDays(to, 24)

/** Returns whether a day is near the late holidays, where the calendar without them is wrong. */
export const isUnsettled = (day: string) =>
  (day >= '2026-04-20' && day <= '2026-04-29') || (day >= '2026-06-09' && day <= '2026-06-17')

export const { isBankDay, previousBankDay: before, nextBankDay } = bankDaysAt(ALWAYS)
/** Returns the `count`th bank day after `day`. */
export const later = (day: string, count = 1): string =>
  count === 1 ? nextBankDay(day) : later(nextBankDay(day), count - 1)
export const lastOf = (...days: string[]) => days.sort().at(-1) as string
export const daysOf = (from: string, to: string) =>
  Array.from({ length: countDays(from, to) }, (_, index) => addDays(from, index))
export const rupees = toDecimalText

export type Order = Payment & { due: string; number: number }
export type Sent = { id: string; order: Order; amount: number; day: string }
/** A line that becomes known on its own day by default. */
export type NewLine = Omit<Line, 'from'> & Partial<Line>
export type Maker = ReturnType<typeof makerOf>

export const TAKEN = 'the bank deducted it from a payout, for a refund or a chargeback'
export const OF_NO_MERCHANT = 'no order and no exception of this merchant has its UTR'

/** Returns the functions from which discrepancies are built. */
export function makerOf({ number, form, days }: Plan) {
  const created = storyOf({ number, form, days })
  return { ...created, ...ofPayment(created) }
}

function storyOf({ number, form, days }: Pick<Plan, 'number' | 'form' | 'days'>) {
  const mid = `Q${String(number).padStart(2, '0')}_${form.toUpperCase()}`
  const story: Story = { mid, payments: [], lines: [], refunds: [], exceptions: [] }
  const differences: Difference[] = []
  const amountOf = (count: number) => 400_000 + ((count * 7_919) % 900) * 1_000 + (count % 1_000)

  function pay(day: string, { from = day, createdOn = day } = {}): Order {
    const count = story.payments.length + 1
    const time = new Date((60 + ((count * 7_919) % 84_000)) * 1_000).toISOString().slice(11, 19)
    const at = istMoment(day, time)
    const madeAt = createdOn === day ? new Date(at.getTime() - 60_000) : istMoment(createdOn, '12:00:00')
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
    { receivedAt = at, createdOn = day, ...more }: Partial<Reported>,
  ) {
    const from = new Date(receivedAt.getTime() + 330 * 60_000).toISOString().slice(0, 10)
    const about = { kind, orderId, utr, amount, day, at, receivedAt, from, createdOn, resolvedOn: lastWord(days) }
    story.exceptions.push({ ...about, ...more })
  }

  return {
    ...{ form, story, differences, pay, except, lastWord: lastWord(days) },
    line(one: NewLine): string {
      story.lines.push({ from: one.day, ...one })
      return one.utr
    },
    /** Adds a second payment of the order with the same amount. */
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
      // All refunds have different amounts. They end in 1, so that two never add up to the same amount as three.
      const paise = amount || 40_001 + 10 * ((count * 7) % 5_501)
      const { orderId, utr } = order
      const at = istMoment(day, time)
      story.refunds.push({ refundId: id, orderId, utr, amount: paise, day, from: day, at, reference })
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
  }
}

/** A line of an unknown payment. */
export type Unknown = { utr: string; settlementUtr: string; amount: number; day: string }
type Charge = { name?: string; withFees?: boolean } & Partial<Difference>

/** Returns functions that add lines and expected discrepancies of one payment. */
function ofPayment({ form, line, differ, except }: ReturnType<typeof storyOf>) {
  const isOwn = form === 'own'
  const reversals = new Map<string, number>()
  const feesOf = (gross: number) => {
    const fee = Math.floor(gross / 50)
    return { fee, tax: Math.floor((fee * 18) / 100) }
  }
  const fees = (gross: number) => (isOwn ? {} : feesOf(gross))
  /** Adds another line that pays out the payment. */
  const again = ({ utr, amount }: Order, name: string, day: string, time = '11:00:00') =>
    line({ day, time, utr: `${name}${utr}`, paymentUtr: utr, gross: amount, ...fees(amount) })
  /** Adds a deduction; with `own`, it repeats the payment's UTR. */
  function reverse({ utr }: Order, name: string, gross: number, day: string, withFees = false) {
    const count = (reversals.get(utr) ?? 0) + 1
    reversals.set(utr, count)
    const { fee, tax } = feesOf(gross)
    const charged = withFees ? { fee: -fee, tax: -tax } : {}
    const stored = isOwn ? { utr: `${utr}R${count}`, repeats: true } : { utr: `${name}${utr}` }
    return line({ day, gross: -gross, paymentUtr: utr, ...charged, ...stored })
  }
  const reversed = (order: Order, settlementUtr: string, day: string, more: Partial<Difference> = {}) =>
    differ('reversal', order, { day, settled: -order.amount, settlementUtr, cause: TAKEN, ...more })
  return {
    feesOf,
    /** Adds the payment's settlement line; with `own`, under the payment's UTR in upper or lower case. */
    settle(order: Pick<Order, 'utr' | 'number' | 'due' | 'amount'>, gross = order.amount, more: Partial<Line> = {}) {
      const { utr, number, due } = order
      const own = isOwn ? { utr: number % 2 === 0 ? utr : utr.toLowerCase() } : { utr: `9${utr}`, paymentUtr: utr }
      return line({ day: due, gross, ...fees(gross), ...own, ...more })
    },
    ...{ again, reverse },
    missing: (order: Order, more: Partial<Difference> = {}) =>
      differ('missing settlement', order, {
        ...{ day: order.day, paid: order.amount, from: addDays(order.due, 1) },
        ...{ cause: `no settlement line has its UTR; its payout was due on ${order.due}`, ...more },
      }),
    reversed,
    /** Adds a deduction of the whole payment, expected as a reversal. */
    charge: (order: Order, day: string, { name = 'CB', withFees = false, ...more }: Charge = {}) =>
      reversed(order, reverse(order, name, order.amount, day, withFees), day, more),
    /** Adds a line that settles again what the line `first` has settled. */
    twice: (order: Order, first: string, day: string, { time = '11:00:00', until = ALWAYS } = {}) =>
      differ('duplicate settlement', order, {
        ...{ day, paid: order.amount, settled: order.amount, settlementUtr: again(order, 'Z', day, time), until },
        cause: `settlement ${first} of ${order.due} already settled it`,
      }),
    undeducted({ order, id, amount, day }: Sent, until = ALWAYS) {
      const cause = `refund ${id}: the payment was settled in full, and no settlement line deducts the refund`
      differ('refund not deducted', order, { day, settled: amount, cause, from: addDays(later(day), 1), until })
    },
    /** Adds a deduction that belongs to no payment. */
    ofNoMerchant(utr: string, day: string, amount: number) {
      line({ day, utr, gross: -amount })
      const cause = 'the bank deducted it, and no order of this merchant has its UTR'
      differ('reversal', { utr }, { day, settled: -amount, settlementUtr: utr, cause })
    },
    /** Adds the bank's report that the payment failed after its success. */
    fail(order: Order, resolvedOn: string): string {
      except('failure after success', order, { receivedAt: new Date(order.at.getTime() + 30_000), resolvedOn })
      return `exception of ${order.utr}: failure after success`
    },
    /** Adds an exception for an unknown order that explains the line from the next bank day on. */
    explain(order: Order, { utr, settlementUtr, day, amount }: Unknown) {
      const [from, resolvedFrom] = [later(day), later(day, 3)]
      const about = { ...order, amount, utr, orderId: `gone-${order.orderId.slice(-6)}` }
      const receivedAt = istMoment(from, '09:00:00')
      except('unknown order', about, { receivedAt, resolvedOn: resolvedFrom, createdOn: '' })
      const cause = `exception of ${utr}: unknown order, of order ${about.orderId}`
      differ('unknown payment', about, { day, settled: amount, settlementUtr, from, resolvedFrom, cause })
    },
  }
}
