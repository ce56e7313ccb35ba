import { addDays, countDays, type Days } from '../../src/books/ledger/bank-days.ts'
import { orderIdsBegin } from '../../src/gateway/payments/intent.ts'
import { istMoment } from './rows.ts'
import { ALWAYS, bankDaysAt, type Line, type Payment, type Story } from './story.ts'

/*
 * A merchant whose acquirers change the form of their files and the account that they name, forget lines and pay them later, net
 * refunds or deduct them by a line, import late and undo. The story knows no discrepancies: what it is for are the properties that
 * every ledger has.
 */

const ACQUIRERS = ['direct', 'setu', 'cashfree'] as const
type Acquirer = (typeof ACQUIRERS)[number]
type Form = 'named' | 'own' | 'totals' | 'mixed'

/** Returns a generator of pseudo-random numbers: `chance(p)`, `below(n)` and `pick(list)`. */
function randomOf(seed: number) {
  let state = seed * 2_654_435_761
  const next = () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
  const below = (limit: number) => Math.floor(next() * limit)
  return {
    below,
    chance: (share: number) => next() < share,
    pick: <T>(all: readonly T[]) => all[below(all.length)] as T,
  }
}
type Random = ReturnType<typeof randomOf>

/** Generates the story of one merchant: payments on `days`, and files and refunds until `lastFile`. */
export function randomStory(seed: number, days: Days, lastFile: string): Story {
  const random = randomOf(seed)
  const story: Story = {
    mid: `R${String(seed).padStart(4, '0')}`,
    payments: [],
    lines: [],
    refunds: [],
    exceptions: [],
  }
  for (const acquirer of ACQUIRERS) {
    if (acquirer === 'direct' || random.chance(0.6)) addAcquirer(story, acquirer, { random, days, lastFile })
  }
  return story
}

type Plan = { random: Random; days: Days; lastFile: string }

function addAcquirer(story: Story, acquirer: Acquirer, { random, days, lastFile }: Plan): void {
  const { bankDayFrom, nextBankDay } = bankDaysAt(ALWAYS)
  // The form of the files and the account that they name may change in the middle.
  const forms: Form[] = [random.pick(['named', 'own', 'totals', 'mixed']), random.pick(['named', 'totals', 'mixed'])]
  const account = acquirer === 'direct' && random.chance(0.5) ? null : acquirer
  const begin = addDays(days.from, random.below(20))
  const namedFrom = addDays(days.from, random.below(40) - 10)
  const changeOn = addDays(days.from, random.below(50))
  const payouts = new Map<string, Payment[]>()
  for (let day = begin; day <= days.to; day = addDays(day, 1)) {
    const count = random.chance(0.5) ? 0 : 1 + random.below(2)
    for (let index = 0; index < count; index += 1) {
      const payment = addPayment(story, { day, acquirer, random })
      const due = nextBankDay(day)
      payouts.set(due, [...(payouts.get(due) ?? []), payment])
    }
  }
  for (const [due, payments] of payouts) {
    const form = forms[due < changeOn ? 0 : 1] as Form
    const named = due < namedFrom ? null : account
    // A file may be imported late, or be undone and not come again.
    const from = random.chance(0.15) ? addDays(due, 1 + random.below(25)) : due
    const until = random.chance(0.05) ? addDays(from, 1 + random.below(20)) : undefined
    // A later import gives the account of a payment to a line that has none, and keeps the line's file from being undone.
    const isBuiltOn = named === null && payments.some((payment) => payment.from > from)
    const line: NewLine = { day: due, from, acquirer: named, ...(until && !isBuiltOn && { until }) }
    addPayout(story, payments, { form, line, random, lastFile })
  }
  for (const payment of story.payments.filter((one) => one.acquirer === acquirer)) {
    if (random.chance(0.25)) addRefund(story, payment, { random, bankDayFrom, acquirer: account, lastFile })
    if (random.chance(0.1)) addDispute(story, payment, { random, bankDayFrom, acquirer: account, lastFile })
  }
}

function addPayment(
  story: Story,
  { day, acquirer, random }: { day: string; acquirer: Acquirer; random: Random },
): Payment {
  const number = story.payments.length + 1
  const at = istMoment(day, `${String(random.below(24)).padStart(2, '0')}:30:00`)
  const madeAt = new Date(at.getTime() - 60_000)
  const payment: Payment = {
    ...{ utr: `U${story.mid}N${number}`, day, at, from: day, madeAt, acquirer, kind: 'first' },
    orderId: orderIdsBegin(madeAt) + `${story.mid.slice(1)}f${number}`.padStart(20, '0'),
    amount: 100_00 + 10_00 * random.below(40),
  }
  if (random.chance(0.05)) Object.assign(payment, { from: addDays(day, random.below(20)), kind: 'late' })
  story.payments.push(payment)
  if (random.chance(0.03) && payment.kind === 'first') {
    const second = { ...payment, utr: `${payment.utr}X`, at: new Date(at.getTime() + 20_000), kind: 'second' as const }
    story.payments.push(second)
    const reported = { receivedAt: second.at, createdOn: day, resolvedOn: addDays(day, random.below(30)) }
    story.exceptions.push({ ...second, ...reported, kind: 'double payment' })
  }
  if (random.chance(0.03) && payment.kind === 'first') {
    const reported = { receivedAt: payment.at, createdOn: day, resolvedOn: addDays(day, 1 + random.below(30)) }
    story.exceptions.push({ ...payment, ...reported, kind: 'failure after success' })
  }
  return payment
}

type NewLine = Pick<Line, 'day' | 'from' | 'acquirer' | 'until'>
type Payout = { form: Form; line: NewLine; random: Random; lastFile: string }

/** Adds the lines of one payout: a line for each payment, a total, or a total of the payments that no line names. */
function addPayout(story: Story, payments: readonly Payment[], { form, line, random, lastFile }: Payout): void {
  if (random.chance(0.06)) return
  const add = (one: Omit<Line, keyof NewLine> & Partial<NewLine>) => {
    if (line.from <= lastFile) story.lines.push({ ...line, ...one })
  }
  let total = 0
  for (const { utr, amount } of payments) {
    if (random.chance(0.08)) continue
    if (form === 'totals' || (form === 'mixed' && random.chance(0.5))) total += amount
    else {
      const gross = random.chance(0.05) ? amount - 5_00 : amount
      const isFailed = line.until === undefined && random.chance(0.05)
      add({
        ...(form === 'own' ? { utr } : { utr: `L${utr}`, paymentUtr: utr }),
        ...{ gross, fee: 2_00, tax: 36, ...(isFailed && { failedOn: addDays(line.from, 1 + random.below(15)) }) },
      })
      if (random.chance(0.03)) add({ utr: `Z${utr}`, paymentUtr: utr, gross: amount })
    }
  }
  // A total may be wrong, or change to FAILED.
  if (total === 0) return
  const wrong = random.chance(0.1) ? 1_00 * (1 + random.below(50)) - 25_00 : 0
  const isFailed = line.until === undefined && random.chance(0.08)
  const failedOn = isFailed ? { failedOn: addDays(line.from, 1 + random.below(15)) } : {}
  add({ utr: `T${payments[0]?.utr}`, gross: total + wrong, ...failedOn })
}

type Refunding = {
  random: Random
  bankDayFrom: (day: string) => string
  acquirer: Acquirer | null
  lastFile: string
}

/** Adds a refund of all or a part of a payment. A line deducts it in about half of the cases. */
function addRefund(story: Story, payment: Payment, { random, bankDayFrom, acquirer, lastFile }: Refunding): void {
  const day = addDays(payment.from > payment.day ? payment.from : payment.day, random.below(12))
  const amount = random.chance(0.5) ? payment.amount : 50_00
  const number = story.refunds.length + 1
  const refundId = `F${story.mid}N${number}`
  const reference = random.chance(0.5) ? `A${story.mid}N${number}` : ''
  if (day > lastFile) return
  const { orderId, utr } = payment
  story.refunds.push({ refundId, orderId, utr, amount, day, from: day, at: istMoment(day, '23:00:00'), reference })
  if (!random.chance(0.5)) return
  const on = bankDayFrom(addDays(day, 1 + random.below(3)))
  const line: Line = {
    utr: `D${story.mid}N${number}`,
    day: on,
    from: addDays(on, random.below(3)),
    gross: -amount,
    acquirer,
  }
  if (line.from > lastFile) return
  // A deduction names its payment, the refund's reference, or nothing.
  const named = random.pick([{ paymentUtr: utr }, { utr: reference || line.utr }, {}])
  story.lines.push({ ...line, ...named })
}

/**
 * Adds a dispute of all or a part of a payment. Its deduction may precede its report, and neither the verdict nor the money
 * of a won dispute always comes.
 */
function addDispute(story: Story, payment: Payment, { random, bankDayFrom, acquirer, lastFile }: Refunding): void {
  const { orderId, utr, acquirer: paidAt } = payment
  const from = addDays(payment.from > payment.day ? payment.from : payment.day, 1 + random.below(15))
  if (from > lastFile) return
  const amount = random.chance(0.7) ? payment.amount : 50_00
  story.disputes ??= []
  const disputeId = `B${story.mid}N${story.disputes.length + 1}`
  const status = random.pick(['won', 'lost', 'accepted'] as const)
  const verdict = random.chance(0.8) ? { status, from: addDays(from, 1 + random.below(25)) } : undefined
  story.disputes.push({ from, orderId, utr, amount, acquirer: paidAt, disputeId, verdict })
  const add = (gross: number, near: string, event: string) => {
    const day = bankDayFrom(near)
    const line = { day, from: addDays(day, random.below(3)), gross, acquirer, event }
    const named = random.pick([{ utr: `E${story.lines.length}${disputeId}`, paymentUtr: utr }, { utr: disputeId }])
    if (line.from <= lastFile) story.lines.push({ ...line, ...named })
  }
  if (random.chance(0.8)) add(-amount, addDays(from, random.below(12) - 5), 'CHARGEBACK')
  if (verdict?.status === 'won' && random.chance(0.8))
    add(amount, addDays(verdict.from, random.below(8)), 'CHARGEBACK_REVERSE')
}

/** Returns each day of the period. */
export const daysIn = ({ from, to }: Days) => Array.from({ length: countDays(from, to) }, (_, at) => addDays(from, at))
