import { undoImport } from '../../src/books/settlements/imports.ts'
import { orderIdsBegin } from '../../src/gateway/payments/intent.ts'
import { type Database, inTransaction } from '../../src/platform/db/pool.ts'
import { dayAfter, importRows, istMoment, type Row, rupees, storeReports } from './months.ts'

/*
 * A quarter of payments and of the bank's files with planted faults, and an own ledger of it in paise. Each plant says what it
 * moves, from which day on that is known, which difference the reports have to name while, and what is owed meanwhile.
 */

export const QUARTER = { from: '2026-04-01', to: '2026-06-30' } as const
/** The last one holds only what came of the quarter. */
export const MONTHS = [
  { from: '2026-04-01', to: '2026-04-30' },
  { from: '2026-05-01', to: '2026-05-31' },
  { from: '2026-06-01', to: '2026-06-30' },
  { from: '2026-07-01', to: '2026-07-31' },
] as const
/** On this day every exception that is still open comes to an end, long after the last row of the bank. */
export const LAST_WORD = '2026-07-24'
const ALWAYS = '9999-12-31'

/** Holidays that are known from the beginning. */
const HOLIDAYS = ['2026-04-03', '2026-04-14', '2026-05-01', '2026-05-27']
/** Holidays of which the operator hears after them: before a fourth Saturday, and before a second one. */
const LATE_HOLIDAYS = [
  { days: ['2026-04-23', '2026-04-24'], toldOn: '2026-04-29' },
  { days: ['2026-06-12'], toldOn: '2026-06-17' },
]
/** Days on which the calendar without the late holidays is wrong, with some days before and after. */
const UNSETTLED_DAYS = [
  ['2026-04-20', '2026-04-29'],
  ['2026-06-09', '2026-06-17'],
] as const

/** Of the file of this day the rows of most payments come some days later. */
const PARTIAL = '2026-05-13'

type Calendar = (day: string) => boolean
const calendar =
  (holidays: readonly string[]): Calendar =>
  (day) => {
    const date = new Date(`${day}T00:00:00Z`)
    if (date.getUTCDay() === 0 || holidays.includes(day)) return false
    if (date.getUTCDay() !== 6) return true
    let saturdays = 0
    for (let one = 1; one <= date.getUTCDate(); one++)
      if (new Date(`${day.slice(0, 8)}${String(one).padStart(2, '0')}T00:00:00Z`).getUTCDay() === 6) saturdays += 1
    return saturdays !== 2 && saturdays !== 4
  }
const isBankDay = calendar([...HOLIDAYS, ...LATE_HOLIDAYS.flatMap(({ days }) => days)])
const isBankDayUntold = calendar(HOLIDAYS)

/** The `count`th bank day after `day`. */
function later(day: string, count = 1, isOpen: Calendar = isBankDay): string {
  const next = dayAfter(day)
  if (!isOpen(next)) return later(next, count, isOpen)
  return count === 1 ? next : later(next, count - 1, isOpen)
}
function before(day: string, isOpen: Calendar = isBankDay): string {
  const previous = dayAfter(day, -1)
  return isOpen(previous) ? previous : before(previous, isOpen)
}
const lastOf = (...days: string[]) => days.sort().at(-1) as string

/** A difference that the reports as of the days from `from` until before `until` have to name. Amounts are in paise. */
export type Difference = {
  mid: string
  day: string
  kind: string
  orderId: string | null
  utr: string | null
  settlementUtr: string | null
  paid: number | null
  settled: number | null
  owed: number
  /** Exceptions stand in it as `exception of UTR`, imports as `import of DAY`. */
  cause: string
  from: string
  until: string
  /** From when on its exception, or a refund, accounts for it. */
  resolvedFrom: string
}

/** Money that moved on `day`, as it is known from `from` until before `until`. */
type Movement = {
  day: string
  what: 'paid' | 'settled' | 'refunded'
  gross: number
  fee: number
  tax: number
  from: string
  until: string
}

export type PlantedException = {
  mid: string
  kind: string
  orderId: string
  utr: string
  amount: number
  madeOn: string
  receivedOn: string
  resolvedOn: string
}

export type Form = 'named' | 'own' | 'sums' | 'mixed'
export type Book = {
  mid: string
  form: Form
  movements: Movement[]
  differences: Difference[]
  exceptions: PlantedException[]
  /** What is owed from one day until before another, as it should: it was not due yet, or came to an end by itself. */
  spans: { from: string; until: string; amount: number; what: string }[]
}

type Order = { orderId: string; utr: string; amount: number; day: string; due: string; at: Date; number: number }
type File = { importedOn: string; time: string; rows: Row[]; undoneOn?: string | undefined }
type Reports = Parameters<typeof storeReports>[1]
type Facts = Reports & { told: unknown[][]; refunds: unknown[][]; ended: unknown[][] }
const noFacts = (): Facts => ({
  ...{ intents: [], payments: [], exceptions: [] },
  ...{ told: [], refunds: [], ended: [] },
})

export type Planted = {
  books: Book[]
  facts: Map<string, Facts>
  files: Map<string, File>
  plants: Map<string, number>
}

/** Numbers from 0 to before `below`; the same for each seed. */
function randomFrom(seed: number) {
  let state = (seed * 2_654_435_761 + 1) % 4_294_967_296
  return (below: number) => {
    state = (state * 1_664_525 + 1_013_904_223) % 4_294_967_296
    return Math.floor((state / 4_294_967_296) * below)
  }
}

const daysOf = (from: string, to: string): string[] => (from > to ? [] : [from, ...daysOf(dayAfter(from), to)])
const isUnsettled = (day: string) => UNSETTLED_DAYS.some(([from, to]) => day >= from && day <= to)
const withFees = (gross: number) => {
  const fee = Math.floor(gross / 50)
  const tax = Math.floor((fee * 18) / 100)
  return { amount: gross - fee - tax, fee, tax }
}

type Planting = { sets: number; perDay: number; seed: number }

const FORMS = ['named', 'own', 'sums', 'mixed', 'sums', 'mixed'] as const

/** Makes the quarter of `sets` times six merchants, each with `perDay` payments a day, of which two have a plant. */
export function plantFaults({ sets, perDay, seed }: Planting): Planted {
  const planted: Planted = { books: [], facts: new Map(), files: new Map(), plants: new Map() }
  const turns = new Map<Form, number>()
  // Merchants of one form go on where the last one has ended, so that every plant has its turn.
  const nextPlant = (form: Form) => {
    turns.set(form, (turns.get(form) ?? seed) + 1)
    return turns.get(form) as number
  }
  for (let set = 0; set < sets; set++) {
    for (const [index, form] of FORMS.entries()) {
      const number = set * FORMS.length + index
      const mid = `Q${String(number).padStart(2, '0')}_${form.toUpperCase()}`
      const book: Book = { mid, form, movements: [], differences: [], exceptions: [], spans: [] }
      planted.books.push(book)
      const making = { planted, book, number, nextPlant: () => nextPlant(form), random: randomFrom(seed + 7 * number) }
      if (form === 'named' || form === 'own') plantByPayment(makerOf(making), perDay)
      else plantBySums(makerOf(making), perDay)
    }
  }
  return planted
}

type Making = {
  planted: Planted
  book: Book
  number: number
  random: (below: number) => number
  /** A number that is one more than the last one of a merchant of this form. */
  nextPlant: () => number
}
type Maker = ReturnType<typeof makerOf>

/** What a plant is made of: each writes the facts that the service learns, and the own ledger. */
function makerOf({ planted, book, number, random, nextPlant }: Making) {
  const { mid, form } = book
  let count = 0
  const factsOf = (day: string) => {
    const known = planted.facts.get(day) ?? noFacts()
    planted.facts.set(day, known)
    return known
  }
  const move = (one: Pick<Movement, 'day' | 'what' | 'gross' | 'from'> & Partial<Movement>) =>
    book.movements.push({ fee: 0, tax: 0, until: ALWAYS, ...one })
  const timeOf = () => {
    const seconds = 60 + random(84_000)
    return new Date(seconds * 1000).toISOString().slice(11, 19)
  }
  const nextOf = (day: string) => {
    count += 1
    const at = istMoment(day, timeOf())
    const utr =
      form === 'own'
        ? `Q${number}UP${String(count).padStart(6, '0')}`
        : `6${String(number).padStart(2, '0')}${String(count).padStart(9, '0')}`
    // No two payments are of one amount, and none is as small as the sum of some refunds.
    return { utr, at, number: count, amount: 400_000 + random(900) * 1_000 + (count % 1_000) }
  }
  let refunded = 0
  let refunds = 0

  function except(
    kind: string,
    { orderId, amount, day, at }: Pick<Order, 'orderId' | 'amount' | 'day' | 'at'>,
    more: { utr: string; receivedAt: Date; resolvedOn?: string; owner?: string; madeOn?: string },
  ) {
    const { utr, receivedAt, resolvedOn = LAST_WORD, owner = mid, madeOn = day } = more
    const receivedOn = new Date(receivedAt.getTime() + 330 * 60_000).toISOString().slice(0, 10)
    const status = kind === 'failure after success' ? 'FAIL' : 'SUCCESS'
    factsOf(receivedOn).told.push([status, owner, orderId, kind, utr, rupees(amount), at, receivedAt])
    factsOf(resolvedOn).ended.push([owner, kind, utr, istMoment(resolvedOn, '19:00:00')])
    book.exceptions.push({ mid: owner, kind, orderId, utr, amount, madeOn, receivedOn, resolvedOn })
  }

  return {
    ...{ book, random, nextPlant, form, mid },
    /** Counts one more of the plant of this name, or none yet. */
    count: (name: string, more = 1) => planted.plants.set(name, (planted.plants.get(name) ?? 0) + more),

    /** A payment, told on `heardOn` by the day file unless it is told at once. */
    pay(day: string, { heardOn, madeOn = day }: { heardOn?: string; madeOn?: string } = {}): Order {
      const { utr, at, number: k, amount } = nextOf(day)
      const madeAt = madeOn === day ? new Date(at.getTime() - 60_000) : istMoment(madeOn, '12:00:00')
      const heardAt = heardOn === undefined ? at : istMoment(heardOn, '15:00:00')
      const orderId = orderIdsBegin(madeAt) + `${number}f${k}`.padStart(20, '0')
      const known = factsOf(heardOn ?? day)
      known.intents.push([mid, orderId, Math.floor(amount / 100), amount % 100, madeAt, 'SUCCESS', utr])
      const kindAndSource = heardOn === undefined ? ['first', 'notification'] : ['late', 'day file']
      known.payments.push([mid, utr, orderId, amount, at, heardAt, ...kindAndSource])
      move({ day, what: 'paid', gross: amount, from: heardOn ?? day })
      return { orderId, utr, amount, day, due: later(day), at, number: k }
    },

    /** A second payment of the order on the same day, of the same amount, with its exception. Returns it as an order. */
    payAgain(order: Order, resolvedOn = LAST_WORD): Order {
      const utr = `X${order.utr}`
      const at = new Date(order.at.getTime() + 20_000)
      factsOf(order.day).payments.push([mid, utr, order.orderId, order.amount, at, at, 'second', 'notification'])
      except('double payment', order, { utr, receivedAt: at, resolvedOn })
      return { ...order, utr, at }
    },

    except,

    /** Writes a row into the file of `importedOn`; `undoneOn` is when that file is taken back. */
    row(row: Omit<Row, 'mid'>, { importedOn = row.day, undoneOn, failedOn, time = '20:00:00' }: RowStory = {}) {
      const key = `${importedOn} ${time} ${undoneOn ?? ''}`
      const file = planted.files.get(key) ?? { importedOn, time, rows: [], undoneOn }
      planted.files.set(key, file)
      file.rows.push({ mid, ...row })
      if (row.status !== undefined) return
      const { amount, fee = 0, tax = 0 } = row
      const until = undoneOn ?? failedOn ?? ALWAYS
      move({ day: row.day, what: 'settled', gross: amount + fee + tax, fee, tax, from: importedOn, until })
      if (failedOn === undefined) return
      const again = `${failedOn} 20:00:00 `
      const failing = planted.files.get(again) ?? { importedOn: failedOn, time: '20:00:00', rows: [] }
      planted.files.set(again, failing)
      failing.rows.push({ mid, ...row, status: 'FAILED' })
    },

    /** A refund that has succeeded at the end of `day`. Returns its name. */
    refund(of: Order, amount: number, day: string, { reference = '', counts = true, time = '23:50:00' } = {}): string {
      refunds += 1
      const id = `RF${number}N${String(refunds).padStart(6, '0')}`
      factsOf(day).refunds.push([mid, id, of.orderId, of.utr, amount, of.at, reference, istMoment(day, time)])
      if (counts) move({ day, what: 'refunded', gross: amount, from: day })
      return id
    },

    /** An amount that no other refund of the merchant has. Its last digit is 1, so that two are never as much as three. */
    refundAmount() {
      refunded += 1
      return 40_001 + 10 * ((refunded * 7) % 5_501)
    },

    differ(
      one: Omit<Difference, 'mid' | 'owed' | 'until' | 'resolvedFrom' | 'utr' | 'orderId' | 'settlementUtr'> &
        Partial<Difference>,
    ) {
      const all: Difference = {
        ...{ mid, orderId: null, utr: null, settlementUtr: null, until: ALWAYS, resolvedFrom: ALWAYS },
        ...{ owed: (one.paid ?? 0) - (one.settled ?? 0), ...one },
      }
      if (all.from < all.until) book.differences.push(all)
    },

    span(what: string, from: string, until: string, amount: number) {
      book.spans.push({ what, from, until, amount })
    },
  }
}
type RowStory = { importedOn?: string; undoneOn?: string; failedOn?: string; time?: string }

const TAKEN = 'the bank has deducted it from a payout: a refund or a chargeback'
const TAKEN_OF_NOBODY = 'the bank has deducted it, and no order of this merchant carries its UTR'
const OF_NOBODY = 'no order and no exception of this merchant carries its UTR'
const notDeducted = (...ids: string[]) =>
  `refund ${ids.sort().join(', ')}: the payment was settled in full, and no row deducts what went back`

/** Rows of a merchant whose file has one for each payment, or for some. */
function rowsOf({ form }: Pick<Maker, 'form'>) {
  const isOwn = form === 'own'
  const amounts = (gross: number) => (isOwn ? { amount: gross } : withFees(gross))
  const deducted = new Map<string, number>()
  return {
    /** The payment's own row: in `own` under its UTR, in upper or lower case. */
    own: ({ utr, number, due }: Order, gross: number, day = due): Omit<Row, 'mid'> => ({
      ...{ day, ...amounts(gross) },
      ...(isOwn ? { utr: number % 2 === 0 ? utr : utr.toLowerCase() } : { utr: `9${utr}`, paymentUtr: utr }),
    }),
    /** A further row that pays the payment out. */
    more: ({ utr }: Order, name: string, gross: number, day: string, time = '11:00:00'): Omit<Row, 'mid'> => ({
      ...{ day, time, utr: `${name}${utr}`, paymentUtr: utr, ...amounts(gross) },
    }),
    /** A row that takes back; in `own` it repeats the payment's UTR, and is stored under another name. */
    back({ utr }: Order, name: string, gross: number, day: string): { row: Omit<Row, 'mid'>; stored: string } {
      if (!isOwn)
        return { row: { day, utr: `${name}${utr}`, paymentUtr: utr, amount: -gross }, stored: `${name}${utr}` }
      deducted.set(utr, (deducted.get(utr) ?? 0) + 1)
      return { row: { day, utr, amount: -gross }, stored: `${utr}R${deducted.get(utr)}` }
    },
  }
}

type Plant = (order: Order) => void

/** The plants of a file with a row for each payment. Each gets a payment, and the bank day on which its row is due. */
function plantsByPayment(maker: Maker) {
  const { pay, payAgain, except, row, refund, refundAmount, differ, span, random, form } = maker
  const { own, more, back } = rowsOf(maker)
  const named = ({ orderId, utr, amount: paid }: Order) => ({ orderId, utr, paid })
  const settle = (order: Order, gross = order.amount, day = order.due) => {
    const made = own(order, gross, day)
    row(made)
    span('not due yet', order.day, day, order.amount)
    return made.utr
  }
  const notSettled = (order: Order, more: Partial<Difference> = {}) =>
    differ({
      ...{ ...named(order), settled: null, day: order.day, kind: 'missing settlement', from: dayAfter(order.due) },
      ...{ cause: `no payout row shows its UTR; it was due on ${order.due}`, ...more },
    })
  const takenBack = (order: Order, settlementUtr: string, day: string, more: Partial<Difference> = {}) =>
    differ({
      ...{ ...named(order), paid: null, settled: -order.amount, settlementUtr, day, kind: 'reversal' },
      ...{ from: day, cause: TAKEN, ...more },
    })
  const twice = (order: Order, settlementUtr: string, first: string, day: string, more: Partial<Difference> = {}) =>
    differ({
      ...{
        ...named(order),
        settled: order.amount,
        settlementUtr,
        day,
        kind: 'duplicate settlement',
        owed: -order.amount,
      },
      ...{ from: day, cause: `settlement ${first} of ${order.due} has paid it before`, ...more },
    })
  const undeducted = (order: Order, ids: string[], amount: number, day: string, more: Partial<Difference> = {}) =>
    differ({
      ...{ ...named(order), paid: null, settled: amount, day, kind: 'refund not deducted', from: dayAfter(later(day)) },
      ...{ cause: notDeducted(...ids), ...more },
    })
  /** Only rows of one kind of bank day name nothing; refunds of the other kind may stay open. */
  const isLeft = (bankDay: string) => daysOf(QUARTER.from, bankDay).filter(isBankDay).length % 3 === 0
  const ANY = () => true
  const NOTHING_NAMED = (bankDay: string) => !isLeft(bankDay)
  const LEFT = isLeft
  /** A day from `after` on whose refunds are deducted on a bank day of this kind. */
  const refundDay = (after: string, isKind: (bankDay: string) => boolean): string =>
    isKind(later(after)) && !isUnsettled(after) ? after : refundDay(dayAfter(after), isKind)
  const taken = new Set<string>()
  /** A bank day on which rows that name nothing deduct the refunds since the one before: each is used once. */
  const bankDayOfNothingNamed = (after: string): string => {
    const day = refundDay(after, NOTHING_NAMED)
    const bankDay = later(day)
    if (taken.has(bankDay)) return bankDayOfNothingNamed(bankDay)
    taken.add(bankDay)
    return bankDay
  }
  const nothingNamed = (name: string, amount: number, day: string, time = '11:00:00') =>
    row({ day, time, utr: `${name}${maker.mid.slice(1, 3)}${day.replaceAll('-', '')}`, amount: -amount })
  /** Three further payments, refunded since the bank day before `bankDay`: one row deducts all of them. */
  const nToOne = (bankDay: string, { time }: { time?: string } = {}) => {
    const days = daysOf(before(bankDay), dayAfter(bankDay, -1))
    const amounts = [0, 1, 2].map((index) => {
      const order = pay(before(before(days[0] as string)))
      settle(order)
      const amount = refundAmount()
      const day = days[index % days.length] as string
      refund(order, amount, day)
      span('deducted by one row', day, bankDay, -amount)
      return amount
    })
    nothingNamed(
      'N',
      amounts.reduce((sum, amount) => sum + amount, 0),
      bankDay,
      time,
    )
  }

  const plants: Record<string, Plant> = {
    'chargeback that is lost'(order) {
      settle(order)
      const day = later(order.due, 2)
      const { row: made, stored } = back(order, 'CB', order.amount, day)
      row(made)
      takenBack(order, stored, day)
    },
    'chargeback that is lost, with its fee'(order) {
      settle(order)
      const day = later(order.due, 3)
      const { row: made, stored } = back(order, 'CB', order.amount, day)
      const { amount, fee, tax } = withFees(order.amount)
      row({ ...made, amount: -amount, fee: -fee, tax: -tax })
      takenBack(order, stored, day)
    },
    'chargeback that is won'(order) {
      settle(order)
      const [day, won] = [later(order.due, 2), later(order.due, 9)]
      const { row: made, stored } = back(order, 'CB', order.amount, day)
      row(made)
      row(more(order, 'W', order.amount, won))
      takenBack(order, stored, day, { until: won })
      span('taken back until won', day, won, order.amount)
    },
    'chargeback that is won and lost again'(order) {
      settle(order)
      const [day, won, lost] = [later(order.due, 2), later(order.due, 5), later(order.due, 8)]
      const first = back(order, 'CB', order.amount, day)
      row(first.row)
      row(more(order, 'W', order.amount, won))
      const second = back(order, 'CC', order.amount, lost)
      row(second.row)
      takenBack(order, first.stored, day, { until: won })
      span('taken back until won', day, won, order.amount)
      const told = [`settled on ${order.due}`, `taken back on ${day}`, `paid again on ${won}`, `taken back on ${lost}`]
      const history = told.map((one) => `${one} by import of ${one.slice(-10)}`).join(', ')
      takenBack(order, second.stored, lost, { cause: `${TAKEN}; ${history}` })
    },
    'duplicate settlement'(order) {
      const first = settle(order)
      const day = later(order.due, random(2) + 1)
      const again = more(order, 'Z', order.amount, day)
      row(again)
      twice(order, again.utr, first, day)
    },
    'settled twice on one day, and taken back'(order) {
      const first = settle(order)
      const again = more(order, 'Z', order.amount, order.due, '18:00:00')
      row(again)
      const day = later(order.due, 4)
      row(back(order, 'ZB', order.amount, day).row)
      twice(order, again.utr, first, order.due, { until: day })
      span('settled twice until taken back', order.due, day, -order.amount)
    },
    'refund deducted by its reference'(order) {
      settle(order)
      const [day, amount, reference] = [refundDay(order.due, ANY), refundAmount(), `ARN${order.utr}`]
      refund(order, amount, day, { reference })
      row({ day: later(day), utr: reference, amount: -amount })
      span('refund', day, later(day), -amount)
    },
    'refund deducted by a row with its reference as the bank’s'(order) {
      settle(order)
      const [day, amount, reference] = [refundDay(order.due, ANY), refundAmount(), `ARN${order.utr}`]
      refund(order, amount, day, { reference })
      row({ day: later(day), utr: `E${order.utr}`, amount: -amount, reference: reference.toLowerCase() })
      span('refund', day, later(day), -amount)
    },
    'refund deducted by payment and amount'(order) {
      settle(order)
      const [day, amount] = [refundDay(order.due, ANY), refundAmount()]
      refund(order, amount, day)
      row(back(order, 'RB', amount, later(day)).row)
      span('refund', day, later(day), -amount)
    },
    'refund deducted by a row that names nothing'(order) {
      settle(order)
      const [bankDay, amount] = [bankDayOfNothingNamed(order.due), refundAmount()]
      const day = before(bankDay)
      refund(order, amount, day)
      nothingNamed('O', amount, bankDay)
      span('refund', day, bankDay, -amount)
    },
    'refunds of one payment deducted by one row'(order) {
      settle(order)
      const [day, amount, rest] = [refundDay(order.due, ANY), refundAmount(), refundAmount()]
      refund(order, amount, day, { time: '10:00:00' })
      refund(order, rest, day)
      row(back(order, 'RB', amount + rest, later(day)).row)
      span('refund', day, later(day), -amount - rest)
    },
    'refunds of one bank day deducted by one row that names nothing'(order) {
      settle(order)
      nToOne(bankDayOfNothingNamed(later(order.due, 3)))
    },
    'refunds of one bank day deducted by one row, and another by a row of its own that names nothing'(order) {
      const bankDay = bankDayOfNothingNamed(later(order.due, 4))
      nToOne(bankDay, { time: '10:00:00' })
      settle(order)
      const [day, amount] = [before(bankDay), refundAmount()]
      refund(order, amount, day)
      nothingNamed('O', amount, bankDay)
      span('refund', day, bankDay, -amount)
    },
    'refunds of one bank day deducted by one row, and another netted'(order) {
      settle(order)
      const bankDay = bankDayOfNothingNamed(later(order.due, 4))
      nToOne(bankDay)
      const other = pay(before(bankDay))
      const amount = refundAmount()
      refund(other, amount, other.day)
      settle(other, other.amount - amount)
      span('netted', other.day, other.due, -amount)
    },
    'refund netted in the payment’s own row'(order) {
      const amount = refundAmount()
      refund(order, amount, order.day)
      settle(order, order.amount - amount)
      span('netted', order.day, order.due, -amount)
    },
    'refund netted, and a later one deducted'(order) {
      const [amount, rest] = [refundAmount(), refundAmount()]
      refund(order, amount, order.day)
      settle(order, order.amount - amount)
      span('netted', order.day, order.due, -amount)
      const day = refundDay(order.due, ANY)
      refund(order, rest, day)
      row(back(order, 'RB', rest, later(day)).row)
      span('refund', day, later(day), -rest)
    },
    'refund netted, and a later one never deducted'(order) {
      const [amount, rest] = [refundAmount(), refundAmount()]
      refund(order, amount, order.day)
      settle(order, order.amount - amount)
      span('netted', order.day, order.due, -amount)
      const day = refundDay(order.due, LEFT)
      undeducted(order, [refund(order, rest, day)], rest, day)
    },
    'refund never deducted'(order) {
      settle(order)
      const [day, amount] = [refundDay(order.due, LEFT), refundAmount()]
      undeducted(order, [refund(order, amount, day)], amount, day)
    },
    'refund deducted some days late'(order) {
      settle(order)
      const [day, amount] = [refundDay(order.due, LEFT), refundAmount()]
      const until = later(day, 4)
      undeducted(order, [refund(order, amount, day)], amount, day, { until })
      row(back(order, 'RB', amount, until).row)
      span('refund', day, until, -amount)
    },
    'refund deducted with another amount'(order) {
      settle(order)
      const [day, amount, reference] = [refundDay(order.due, ANY), refundAmount(), `ARN${order.utr}`]
      const id = refund(order, amount, day, { reference })
      const made = { day: later(day), utr: reference, amount: -amount - 50, paymentUtr: order.utr }
      row(made)
      span('refund', day, later(day), -amount)
      const cause = `refund ${id} is of another amount`
      takenBack(order, reference, made.day, { paid: -amount, settled: made.amount, owed: 50, cause })
    },
    'two open refunds of one amount, and a row that names nothing'(order) {
      const [day, amount] = [refundDay(order.due, LEFT), refundAmount()]
      const orders = [order, pay(order.day)]
      for (const one of orders) {
        settle(one)
        undeducted(one, [refund(one, amount, day)], amount, day)
      }
      const utr = `AM${order.utr}`
      row({ day: later(day), utr, amount: -amount })
      takenBack(order, utr, later(day), { orderId: null, utr, settled: -amount, owed: amount, cause: TAKEN_OF_NOBODY })
    },
    'refunds of two bank days with one sum, and a row that names nothing'(order) {
      const first = bankDayOfNothingNamed(order.due)
      const second = bankDayOfNothingNamed(first)
      const amounts = [refundAmount(), refundAmount()] as const
      const sum = amounts[0] + amounts[1]
      for (const [bankDay, parts] of [
        [first, amounts],
        [second, [amounts[0] - 10_000, amounts[1] + 10_000]],
      ] as const) {
        for (const amount of parts) {
          const one = pay(order.day)
          settle(one)
          const day = before(bankDay)
          undeducted(one, [refund(one, amount, day)], amount, day)
        }
      }
      settle(order)
      const [utr, day] = [`AB${order.utr}`, later(second)]
      row({ day, utr, amount: -sum })
      takenBack(order, utr, day, { orderId: null, utr, settled: -sum, owed: sum, cause: TAKEN_OF_NOBODY })
    },
    'wholly refunded before it was settled, and never settled'(order) {
      refund(order, order.amount, order.day)
    },
    'partly refunded before it was settled, and never settled'(order) {
      const amount = refundAmount()
      refund(order, amount, order.day)
      const cause = `no payout row shows its UTR; it was due on ${order.due}; ${rupees(amount)} of it went back`
      notSettled(order, { paid: order.amount - amount, cause })
    },
    'row that never comes'(order) {
      notSettled(order)
    },
    'row that comes days later with its own day'(order) {
      const importedOn = later(order.due, 3)
      row(own(order, order.amount), { importedOn })
      span('not due yet', order.day, order.due, order.amount)
      notSettled(order, { until: importedOn })
    },
    'row of a later day'(order) {
      const day = later(order.due, 2)
      settle(order, order.amount, day)
      notSettled(order, { until: day })
    },
    'row of a file that is undone and imported again'(order) {
      const [undoneOn, again] = [later(order.due, 2), later(order.due, 4)]
      row(own(order, order.amount), { undoneOn, time: '20:30:00' })
      row(own(order, order.amount), { importedOn: again })
      span('not due yet', order.day, order.due, order.amount)
      notSettled(order, { from: undoneOn, until: again })
    },
    'row of a file that is undone for good'(order) {
      const undoneOn = later(order.due, 2)
      row(own(order, order.amount), { undoneOn, time: '20:30:00' })
      notSettled(order, { from: undoneOn })
    },
    'row of a wrong file that comes again in full'(order) {
      const [undoneOn, again] = [later(order.due, 1), later(order.due, 2)]
      const right = own(order, order.amount)
      row({ ...right, amount: right.amount - 100 }, { undoneOn, time: '20:40:00' })
      row(right, { importedOn: again })
      span('not due yet', order.day, order.due, order.amount)
      const [kind, cause] =
        form === 'own'
          ? ['amount mismatch', 'the amount is not what was paid, and the file states no fee and tax']
          : [
              'fee mismatch',
              `the amount with fee ${rupees(right.fee ?? 0)} and tax ${rupees(right.tax ?? 0)} is not what was paid`,
            ]
      const about = { ...named(order), settlementUtr: right.utr, settled: order.amount - 100 }
      differ({ ...about, day: order.due, kind, cause, from: order.due, until: undoneOn })
      // The day on which the file is undone may be the first on which the payment is awaited in vain.
      notSettled(order, { from: lastOf(undoneOn, dayAfter(order.due)), until: again })
    },
    'late payment that the day file tells of days later'(plain) {
      settle(plain)
      const { day } = plain
      const heardOn = later(plain.due)
      const order = pay(day, { heardOn, madeOn: dayAfter(day, -6) })
      const utr = settle(order)
      const [receivedAt, resolvedOn] = [istMoment(heardOn, '15:00:00'), later(heardOn, 2)]
      except('late payment', order, { utr: order.utr, receivedAt, resolvedOn, madeOn: dayAfter(day, -6) })
      const about = { ...named(order), orderId: null, paid: null, settled: order.amount, settlementUtr: utr }
      differ({ ...about, day: order.due, kind: 'unknown payment', cause: OF_NOBODY, from: order.due, until: heardOn })
    },
    'second payment of an order that the merchant keeps'(order) {
      settle(order)
      settleSecond(order, payAgain(order))
    },
    'second payment of an order that is refunded and deducted'(order) {
      settle(order)
      const day = refundDay(later(order.due), ANY)
      const second = payAgain(order, day)
      settleSecond(order, second, day)
      const reference = `ARN${second.utr}`
      const id = refund(second, second.amount, day, { reference, counts: false })
      row({ day: later(day), utr: reference, amount: -second.amount })
      takenBack(second, reference, later(day), {
        ...{ cause: `refund ${id} of a double payment`, resolvedFrom: later(day) },
      })
    },
    'second payment of an order that is refunded before it is settled'(order) {
      settle(order)
      const second = payAgain(order, order.due)
      refund(second, second.amount, order.due, { counts: false })
    },
    'settlement that was SUCCESS and is FAILED'(order) {
      const failedOn = later(order.due, 2)
      const made = own(order, order.amount)
      row(made, { failedOn })
      const cause = `settlement ${made.utr} of ${order.due} was SUCCESS and is FAILED`
      notSettled(order, { kind: 'reversal', from: failedOn, cause })
    },
    'settlement that was SUCCESS and is FAILED, and is paid again'(order) {
      const [failedOn, again] = [later(order.due, 2), later(order.due, 5)]
      const made = own(order, order.amount)
      row(made, { failedOn })
      row(more(order, 'G', order.amount, again))
      const cause = `settlement ${made.utr} of ${order.due} was SUCCESS and is FAILED`
      notSettled(order, { kind: 'reversal', from: failedOn, until: again, cause })
      span('failed until paid again', order.day, again, order.amount)
    },
    'payment that has failed after its success'(order) {
      fail(order)
    },
    'payment that has failed after its success, which is resolved'(order) {
      fail(order, later(order.due, 3))
    },
    'row of no known payment'(order) {
      settle(order)
      unknown(order)
    },
    'row of no known payment that an exception of no known order explains'(order) {
      settle(order)
      const [received, resolvedOn] = [later(order.due), later(order.due, 3)]
      const [orderId, utr] = [`gone-${order.orderId.slice(-6)}`, `ZZ${order.utr}`]
      unknown(order, { until: received })
      unknown(
        order,
        {
          orderId,
          cause: `exception of ${utr}: unknown order, of order ${orderId}`,
          from: received,
          resolvedFrom: resolvedOn,
        },
        false,
      )
      const receivedAt = istMoment(received, '09:00:00')
      except('unknown order', { ...order, orderId }, { utr, receivedAt, resolvedOn, owner: '', madeOn: '' })
    },
  }

  function settleSecond(order: Order, second: Order, resolvedFrom = LAST_WORD) {
    const made = own(second, second.amount)
    row(made)
    const about = {
      orderId: order.orderId,
      utr: second.utr,
      settlementUtr: made.utr,
      paid: null,
      settled: second.amount,
    }
    const cause = `exception of ${second.utr}: double payment, of order ${order.orderId}`
    differ({ ...about, day: order.due, kind: 'unknown payment', cause, from: order.due, resolvedFrom })
  }
  function fail(order: Order, resolvedOn = LAST_WORD) {
    const receivedAt = new Date(order.at.getTime() + 30_000)
    except('failure after success', order, { utr: order.utr, receivedAt, resolvedOn })
    notSettled(order, { cause: `exception of ${order.utr}: failure after success`, resolvedFrom: resolvedOn })
  }
  function unknown(order: Order, more: Partial<Difference> = {}, isNew = true) {
    const other = { ...order, utr: `ZZ${order.utr}` }
    const made = own(other, other.amount)
    if (isNew) row(made)
    const about = { orderId: null, utr: other.utr, settlementUtr: made.utr, paid: null, settled: other.amount }
    differ({ ...about, day: order.due, kind: 'unknown payment', cause: OF_NOBODY, from: order.due, ...more })
  }
  return { plants, settle, notSettled, own }
}

/** Each day has two plants and else plain payments, so that a payout always names more payments than it leaves out. */
function plantByPayment(maker: Maker, perDay: number): void {
  const { plants, settle, notSettled, own } = plantsByPayment(maker)
  const { pay, row, span, nextPlant } = maker
  const names = Object.keys(plants)
  for (const name of names) maker.count(name, 0)
  for (const day of daysOf(QUARTER.from, QUARTER.to)) {
    for (let index = 0; index < perDay; index++) {
      const order = pay(day)
      const isCalm = !isUnsettled(day) && order.due !== PARTIAL
      if (index < 2 && isCalm) {
        const name = names[nextPlant() % names.length] as string
        maker.count(name)
        ;(plants[name] as Plant)(order)
        continue
      }
      if (order.due === PARTIAL && index % 3 !== 0) {
        const importedOn = later(order.due, 2)
        row(own(order, order.amount), { importedOn })
        span('not due yet', order.day, order.due, order.amount)
        notSettled(order, { until: importedOn })
        continue
      }
      settle(order)
      // Until the holiday is told, the payment seems to be due on it.
      const due = later(day, 1, isBankDayUntold)
      const toldOn = LATE_HOLIDAYS.find(({ days }) => days.includes(due))?.toldOn
      const until = [order.due, toldOn ?? ''].sort()[0] as string
      const cause = `no payout row shows its UTR; it was due on ${due}`
      if (due !== order.due) notSettled(order, { cause, from: dayAfter(due), until })
    }
  }
}

/** What the payout of a bank day is for, and what the bank pays by one row without a payment's name. */
type Payout = { day: string; orders: Order[]; named: Order[]; paid: number; total: number; row: Omit<Row, 'mid'> }
/** How the row of a sum comes; undefined when it does not. */
type SumStory = RowStory | undefined
type SumPlant = {
  /** Without a row of the sum, rows that name payments would decide the form of the payout. */
  isSumAlone?: boolean
  isMixedOnly?: boolean
  /** A fault that the reports do not tell as they should. */
  plant: (payout: Payout, next: readonly [Payout, Payout]) => { story: SumStory } | undefined
}

/** The plants of a file with sums. Each may change its payout and the next two. */
function plantsBySums(maker: Maker) {
  const { payAgain, except, row, refund, refundAmount, differ, span } = maker
  const { own, more, back } = rowsOf(maker)
  const orderOf = ({ orders }: Payout, index = 0) => orders[index] as Order
  const refundOf = (payout: Payout, index = 0, reference = '') => {
    const [order, amount] = [orderOf(payout, index), refundAmount()]
    return { order, amount, id: refund(order, amount, order.day, { reference }), day: order.day }
  }
  const likelyRefund = (id: string, amount: number) => `refund ${id} (of ${rupees(amount)}, not deducted)`
  const sumsDiffer = (
    { day, paid }: Payout,
    settled: number,
    { refunded = 0, likely = '', ...more }: { refunded?: number; likely?: string } & Partial<Difference> = {},
  ) => {
    const expected = paid - refunded
    const [first, last] = [before(day), dayAfter(day, -1)]
    const less = refunded === 0 ? '' : `, less refunds of ${rupees(refunded)}`
    const days = `${first === last ? first : `${first} to ${last}`}${less}`
    const by = `${rupees(Math.abs(settled - expected))} ${settled > expected ? 'more' : 'less'} than the payments of ${days}`
    const cause = settled === 0 ? `nothing was settled of the payments of ${days}` : by
    differ({
      ...{ day, kind: 'payout total', paid: expected, settled, from: dayAfter(day) },
      ...{ cause: likely === '' ? cause : `${cause}; likely ${likely}`, ...more },
    })
  }
  const negative = (day: string, utr: string, amount: number, more: Partial<Row> = {}) =>
    row({ day, utr, amount: -amount, ...more })
  const ofNobody = (day: string, utr: string, amount: number) => {
    negative(day, utr, amount)
    differ({
      ...{ day, kind: 'reversal', utr, settlementUtr: utr, paid: null, settled: -amount, owed: amount },
      ...{ cause: TAKEN_OF_NOBODY, from: day },
    })
  }
  const chargeback = ({ orderId, utr, amount }: Order, day: string, won?: string) => {
    const order = { utr, amount } as Order
    const { row: made, stored } = back(order, 'CB', amount, day)
    row(made)
    differ({
      ...{ day, kind: 'reversal', orderId, utr, settlementUtr: stored, paid: null, settled: -amount, cause: TAKEN },
      ...{ from: day, until: won ?? ALWAYS },
    })
    if (won === undefined) return
    row(more(order, 'W', amount, won))
    span('taken back until won', day, won, amount)
  }
  /** A row that names a payment of the sum: the payout is then more than the payments that it is for. */
  const namedLater = (payout: Payout, name: string, day: string) => {
    const order = orderOf(payout)
    row(more(order, name, order.amount, day))
    sumsDiffer({ ...payout, paid: payout.paid - order.amount }, payout.paid, { from: day })
    span('paid by the sum and by its name', payout.day, day, order.amount)
  }
  const likelyException = (kind: string, { utr, amount }: Order, word: string) =>
    `exception of ${utr} (${kind} of ${rupees(amount)}, ${word})`
  /** A second payment that the payout includes. */
  const double = (payout: Payout, resolvedOn = LAST_WORD) => {
    const second = payAgain(orderOf(payout), resolvedOn)
    payout.total += second.amount
    const settled = payout.paid + second.amount
    const likely = (word: string) => likelyException('double payment', second, word)
    sumsDiffer(payout, settled, { likely: likely('open'), until: resolvedOn })
    sumsDiffer(payout, settled, { likely: likely('resolved'), from: lastOf(resolvedOn, dayAfter(payout.day)) })
    return second
  }
  /** A payment that the bank has taken back, as it says, and that the payout leaves out. */
  const failure = (payout: Payout, resolvedOn = LAST_WORD) => {
    const order = orderOf(payout)
    const receivedAt = new Date(order.at.getTime() + 30_000)
    except('failure after success', order, { utr: order.utr, receivedAt, resolvedOn })
    payout.total -= order.amount
    const likely = likelyException('failure after success', order, 'open')
    sumsDiffer(payout, payout.paid - order.amount, { likely, until: resolvedOn })
    differ({
      ...{
        day: order.day,
        kind: 'missing settlement',
        orderId: order.orderId,
        utr: order.utr,
        paid: order.amount,
        settled: null,
      },
      ...{ cause: `exception of ${order.utr}: failure after success`, from: resolvedOn, resolvedFrom: resolvedOn },
    })
    span('failed after all', order.day, payout.day, -order.amount)
  }
  const unknown = (payout: Payout, more: Partial<Difference> = {}) => {
    const [utr, amount] = [`ZZ${orderOf(payout).utr}`, 123_457]
    row({ day: payout.day, utr, amount })
    sumsDiffer(payout, payout.paid + amount, more)
    return { utr, amount }
  }
  const asPaid = (): undefined => undefined

  const plants: Record<string, SumPlant> = {
    'sum that never comes': {
      isSumAlone: true,
      plant(payout) {
        sumsDiffer(payout, 0)
        return { story: undefined }
      },
    },
    'sum that is short': {
      plant(payout) {
        payout.total -= 12_345
        sumsDiffer(payout, payout.paid - 12_345)
        return asPaid()
      },
    },
    'sum that is paid with the next one': {
      isSumAlone: true,
      plant(payout, [next]) {
        sumsDiffer(payout, 0)
        next.total += payout.paid
        sumsDiffer(next, next.paid + payout.paid)
        return { story: undefined }
      },
    },
    'sum whose file comes days later': {
      isSumAlone: true,
      plant(payout, [, third]) {
        sumsDiffer(payout, 0, { until: third.day })
        return { story: { importedOn: third.day } }
      },
    },
    'sum of a file that is undone and imported again': {
      isSumAlone: true,
      plant(payout, [next, third]) {
        row(payout.row, { importedOn: third.day })
        // The day on which it is undone may be the first after the payout.
        sumsDiffer(payout, 0, { from: lastOf(next.day, dayAfter(payout.day)), until: third.day })
        return { story: { undoneOn: next.day, time: '20:30:00' } }
      },
    },
    'sum that was SUCCESS and is FAILED': {
      isSumAlone: true,
      plant(payout, [next]) {
        const about = { day: payout.day, settlementUtr: payout.row.utr, paid: payout.paid, settled: null }
        const cause = 'the settlement was SUCCESS and is FAILED'
        differ({ ...about, kind: 'reversal', cause, from: next.day })
        return { story: { failedOn: next.day } }
      },
    },
    'sum that is FAILED and paid again by a row of the same day': {
      isSumAlone: true,
      plant(payout, [next]) {
        row({ ...payout.row, utr: `${payout.row.utr}B` }, { importedOn: next.day })
        return { story: { failedOn: next.day } }
      },
    },
    'sum that is FAILED and paid again with the next one': {
      isSumAlone: true,
      plant(payout, [next]) {
        const about = { day: payout.day, settlementUtr: payout.row.utr, paid: payout.paid, settled: null }
        const cause = 'the settlement was SUCCESS and is FAILED'
        differ({ ...about, kind: 'reversal', cause, from: next.day })
        next.total += payout.paid
        sumsDiffer(next, next.paid + payout.paid)
        return { story: { failedOn: next.day } }
      },
    },
    'refund netted in the sum': {
      plant(payout) {
        const { amount, day } = refundOf(payout)
        payout.total -= amount
        span('netted', day, payout.day, -amount)
        return asPaid()
      },
    },
    'refund that no sum deducts': {
      plant(payout) {
        const { amount, id, day } = refundOf(payout)
        sumsDiffer(payout, payout.paid, { refunded: amount, likely: likelyRefund(id, amount) })
        span('refund', day, payout.day, -amount)
        return asPaid()
      },
    },
    'refund netted in the next sum': {
      plant(payout, [next]) {
        const { amount, id, day } = refundOf(payout)
        const likely = likelyRefund(id, amount)
        sumsDiffer(payout, payout.paid, { refunded: amount, likely, until: dayAfter(next.day) })
        next.total -= amount
        span('refund', day, next.day, -amount)
        return asPaid()
      },
    },
    'refund deducted by a row with its reference': {
      plant(payout) {
        const reference = `ARN${orderOf(payout).utr}`
        const { amount, day } = refundOf(payout, 0, reference)
        negative(payout.day, reference, amount)
        span('refund', day, payout.day, -amount)
        return asPaid()
      },
    },
    'refund deducted some days late by a row of its payment and amount': {
      plant(payout, [, third]) {
        const { amount, id, day, order } = refundOf(payout)
        const likely = likelyRefund(id, amount)
        sumsDiffer(payout, payout.paid, { refunded: amount, likely, until: third.day })
        negative(third.day, `RB${order.utr}`, amount, { paymentUtr: order.utr })
        span('refund', day, third.day, -amount)
        return asPaid()
      },
    },
    'refunds of one payment deducted by one row': {
      plant(payout) {
        const [first, second] = [refundOf(payout), refundOf(payout)]
        const amount = first.amount + second.amount
        negative(payout.day, `RB${first.order.utr}`, amount, { paymentUtr: first.order.utr })
        span('refund', first.day, payout.day, -amount)
        return asPaid()
      },
    },
    'refunds of one bank day deducted by one row that names nothing': {
      plant(payout) {
        const refunds = [0, 1, 2].map((index) => refundOf(payout, index))
        negative(
          payout.day,
          `N${orderOf(payout).utr}`,
          refunds.reduce((sum, { amount }) => sum + amount, 0),
        )
        for (const { day, amount } of refunds) span('refund', day, payout.day, -amount)
        return asPaid()
      },
    },
    'two open refunds of one amount, and a row that names nothing': {
      plant(payout) {
        const amount = refundAmount()
        const orders = [0, 1].map((index) => orderOf(payout, index)).sort((a, b) => (a.day < b.day ? -1 : 1))
        const ids = orders.map((order) => refund(order, amount, order.day))
        ofNobody(payout.day, `AM${orderOf(payout).utr}`, amount)
        const likely = ids.map((id) => likelyRefund(id, amount)).join(' and ')
        sumsDiffer(payout, payout.paid, { refunded: 2 * amount, likely })
        for (const { day } of orders) span('refund', day, payout.day, -amount)
        return asPaid()
      },
    },
    'second payment in the sum': {
      plant(payout) {
        double(payout)
        return asPaid()
      },
    },
    'second payment in the sum that is refunded and netted two sums later': {
      plant(payout, [next, third]) {
        const second = double(payout, next.day)
        refund(second, second.amount, next.day, { counts: false })
        third.total -= second.amount
        sumsDiffer(third, third.paid - second.amount)
        return asPaid()
      },
    },
    'second payment in the sum that is refunded and deducted by a row': {
      plant(payout, [next, third]) {
        const second = double(payout, next.day)
        const reference = `ARN${second.utr}`
        const id = refund(second, second.amount, next.day, { reference, counts: false })
        negative(third.day, reference, second.amount)
        differ({
          ...{ day: third.day, kind: 'reversal', orderId: second.orderId, utr: second.utr, settlementUtr: reference },
          ...{ paid: null, settled: -second.amount, cause: `refund ${id} of a double payment`, from: third.day },
        })
        return asPaid()
      },
    },
    'payment that has failed after its success, which the sum leaves out': {
      plant(payout) {
        failure(payout)
        return asPaid()
      },
    },
    'payment that has failed after its success, which is resolved': {
      plant(payout, [, third]) {
        failure(payout, third.day)
        return asPaid()
      },
    },
    'row of no known payment': {
      plant(payout) {
        unknown(payout)
        return asPaid()
      },
    },
    'row of no known payment that an exception of no known order explains': {
      plant(payout, [next, third]) {
        const { utr, amount } = unknown(payout, { until: next.day })
        const order = orderOf(payout)
        const orderId = `gone-${order.orderId.slice(-6)}`
        differ({
          ...{
            day: payout.day,
            kind: 'unknown payment',
            orderId,
            utr,
            settlementUtr: utr,
            paid: null,
            settled: amount,
          },
          ...{
            cause: `exception of ${utr}: unknown order, of order ${orderId}`,
            from: next.day,
            resolvedFrom: third.day,
          },
        })
        const receivedAt = istMoment(next.day, '09:00:00')
        except(
          'unknown order',
          { ...order, amount, orderId },
          { utr, receivedAt, resolvedOn: third.day, owner: '', madeOn: '' },
        )
        return asPaid()
      },
    },
    'chargeback of a payment of the sum that is lost': {
      plant(payout, [, third]) {
        chargeback(orderOf(payout), third.day)
        return asPaid()
      },
    },
    'chargeback of a payment of the sum that is won': {
      plant(payout, [, third]) {
        chargeback(orderOf(payout), third.day)
        namedLater(payout, 'W', later(third.day, 6))
        return asPaid()
      },
    },
    'payment of the sum that is settled again by its name': {
      plant(payout, [, third]) {
        namedLater(payout, 'Z', third.day)
        return asPaid()
      },
    },
    'payment that a later row names, and the sum leaves out': {
      plant(payout, [, third]) {
        const order = orderOf(payout)
        payout.total -= order.amount
        sumsDiffer(payout, payout.paid - order.amount, { until: third.day })
        row(more(order, 'L', order.amount, third.day))
        span('named later', payout.day, third.day, order.amount)
        return asPaid()
      },
    },
    'refund netted in the row that names its payment': {
      isMixedOnly: true,
      plant(payout) {
        const [order, amount] = [payout.named[0] as Order, refundAmount()]
        refund(order, amount, order.day)
        row(own(order, order.amount - amount))
        span('not due yet', order.day, order.due, order.amount)
        span('netted', order.day, order.due, -amount)
        payout.named.shift()
        return asPaid()
      },
    },
    'named payment that is charged back and won': {
      isMixedOnly: true,
      plant(payout, [, third]) {
        chargeback(payout.named[0] as Order, third.day, later(third.day, 6))
        return asPaid()
      },
    },
    'named payment that is settled twice': {
      isMixedOnly: true,
      plant(payout, [next]) {
        const order = payout.named[0] as Order
        const again = more(order, 'Z', order.amount, next.day)
        row(again)
        const cause = `settlement ${own(order, order.amount).utr} of ${order.due} has paid it before`
        const { orderId, utr, amount } = order
        const about = { orderId, utr, settlementUtr: again.utr, paid: amount, settled: amount, owed: -amount }
        differ({ ...about, day: next.day, kind: 'duplicate settlement', cause, from: next.day })
        return asPaid()
      },
    },
  }
  return { plants, sumsDiffer, own }
}

/** Every third payout has a plant, since a plant may change the next two. */
function plantBySums(maker: Maker, perDay: number): void {
  const { plants, sumsDiffer, own } = plantsBySums(maker)
  const { pay, row, span, nextPlant, form, mid } = maker
  const byDue = new Map<string, Order[]>()
  for (const day of daysOf(QUARTER.from, QUARTER.to)) {
    for (let index = 0; index < perDay; index++) {
      const order = pay(day)
      byDue.set(order.due, [...(byDue.get(order.due) ?? []), order])
    }
  }
  const dues = [...byDue.keys()].sort()
  const isOfForm = ({ isMixedOnly }: SumPlant) => form === 'mixed' || !isMixedOnly
  const names = Object.keys(plants).filter((name) => isOfForm(plants[name] as SumPlant))
  for (const name of names) maker.count(name, 0)
  const slots = dues.map((_, index) => {
    const days = dues.slice(index, index + 3)
    // The payments of a payout begin with the bank day before.
    const isCalm = days.length === 3 && !days.some((day) => isUnsettled(day) || isUnsettled(before(day)))
    return index % 3 === 0 && isCalm ? names[nextPlant() % names.length] : undefined
  })
  const payouts = dues.map((day, index): Payout => {
    const all = byDue.get(day) as Order[]
    const plant = plants[slots[index] ?? '']
    const isNamed = form === 'mixed' && !isUnsettled(day) && !plant?.isSumAlone
    const count = isNamed ? Math.floor(all.length / 4) : 0
    const [named, orders] = [all.slice(0, count), all.slice(count)]
    const paid = orders.reduce((sum, { amount }) => sum + amount, 0)
    const made = { day, utr: `S${mid.slice(1, 3)}${day.replaceAll('-', '')}`, reference: `PAYOUT ${mid} ${index}` }
    return { day, orders, named, paid, total: paid, row: { ...made, amount: paid - 590, fee: 500, tax: 90 } }
  })
  for (const [index, payout] of payouts.entries()) {
    const { day, orders, named } = payout
    for (const order of orders) span('not due yet', order.day, day, order.amount)
    const name = slots[index]
    const [next, third] = [payouts[index + 1] as Payout, payouts[index + 2] as Payout]
    let story: SumStory = {}
    if (name !== undefined) {
      maker.count(name)
      const told = (plants[name] as SumPlant).plant(payout, [next, third])
      if (told !== undefined) story = told.story
    }
    for (const order of named) {
      row(own(order, order.amount))
      span('not due yet', order.day, day, order.amount)
    }
    if (story !== undefined) row({ ...payout.row, amount: payout.total - 590 }, story)
  }
  seemUntold(payouts, sumsDiffer)
}

/** Until a late holiday is told, its payout seems to be missing, and the one after it to be too much. */
function seemUntold(payouts: readonly Payout[], sumsDiffer: ReturnType<typeof plantsBySums>['sumsDiffer']): void {
  for (const { days, toldOn } of LATE_HOLIDAYS) {
    const payout = payouts.find(({ day }) => day === later(days[0] as string)) as Payout
    for (const day of [...days, payout.day]) {
      const orders = payout.orders.filter((order) => later(order.day, 1, isBankDayUntold) === day)
      const paid = orders.reduce((sum, { amount }) => sum + amount, 0)
      const settled = day === payout.day ? payout.total : 0
      const [first, last] = [before(day, isBankDayUntold), dayAfter(day, -1)]
      const ofDays = first === last ? first : `${first} to ${last}`
      const cause =
        settled === 0
          ? `nothing was settled of the payments of ${ofDays}`
          : `${rupees(settled - paid)} more than the payments of ${ofDays}`
      sumsDiffer({ ...payout, day, paid }, settled, { cause, until: toldOn })
    }
  }
}

/** Stores the facts day by day, as the service and the operator's commands would; `atEnd` runs when a day is over. */
export async function storePlanted(
  db: Database,
  { books, facts, files }: Planted,
  atEnd: (day: string) => Promise<void>,
): Promise<void> {
  for (const { mid } of books) {
    await db.query(
      `insert into merchants (mid, name, vpa, mcc, dynamic_qr, created_at)
       values ($1, 'Chai Point', 'chaipoint@examplebank', '5814', 'link', '2025-01-01')`,
      [mid],
    )
  }
  const holidays = (days: readonly string[], at: Date) =>
    db.query(`insert into bank_holiday_changes select unnest($1::date[]), 1, 'closed', 'Asha', $2`, [days, at])
  await holidays(HOLIDAYS, new Date('2026-01-01'))
  const undos = new Map<string, number[]>()
  for (const day of daysOf(QUARTER.from, MONTHS[3].to)) {
    for (const late of LATE_HOLIDAYS) if (late.toldOn === day) await holidays(late.days, istMoment(day, '08:00:00'))
    for (const importId of undos.get(day) ?? []) {
      const undo = { now: istMoment(day, '10:00:00'), person: 'asha' }
      const undone = await inTransaction(db, (client) => undoImport(client, importId, undo))
      if ('refused' in undone) throw new Error(`import ${importId} is not undone: ${JSON.stringify(undone)}`)
    }
    const known = facts.get(day)
    if (known !== undefined) await storeFacts(db, known)
    const ofDay = [...files.values()].filter(({ importedOn }) => importedOn === day)
    for (const { time, rows, undoneOn } of ofDay.sort((a, b) => (a.time < b.time ? -1 : 1))) {
      const importId = await importRows(db, rows, istMoment(day, time))
      if (undoneOn !== undefined) undos.set(undoneOn, [...(undos.get(undoneOn) ?? []), importId])
    }
    await atEnd(day)
  }
}

async function storeFacts(db: Database, facts: Facts): Promise<void> {
  await storeReports(db, facts)
  const insert = (sql: string, rows: unknown[][]) =>
    rows.length === 0
      ? undefined
      : db.query(
          sql,
          (rows[0] as unknown[]).map((_, at) => rows.map((row) => row[at])),
        )
  await insert(
    `insert into payment_exceptions (status, mid, order_id, kind, utr, amount_paise, paid_at, received_at)
     select status, mid, order_id, kind, utr, rupees * 100, paid_at, received_at
       from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::numeric[], $7::timestamptz[],
                   $8::timestamptz[]) as one (status, mid, order_id, kind, utr, rupees, paid_at, received_at)`,
    facts.told,
  )
  await insert(
    `insert into refunds (mid, refund_id, our_refund_id, order_id, utr, amount_paise, note, acquirer, created_by, created_at, status,
       reference, ended_at)
     select mid, id, id, order_id, utr, amount, 'cold', 'direct', 'merchant', created_at, 'SUCCESS', reference, ended_at
       from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::integer[], $6::timestamptz[], $7::text[],
                   $8::timestamptz[]) as r (mid, id, order_id, utr, amount, created_at, reference, ended_at)`,
    facts.refunds,
  )
  await insert(
    `insert into payment_resolutions (mid, exception_id, reason, resolved_by, resolved_at)
     select e.mid, e.exception_id, 'seen to', 'asha', o.at
       from unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[]) as o (mid, kind, utr, at)
       join payment_exceptions e on e.mid = o.mid and e.kind = o.kind and e.utr = o.utr`,
    facts.ended,
  )
}

/** What is known at the end of the day `asOf`. */
export const isKnown = ({ from, until }: { from: string; until: string }, asOf: string) => from <= asOf && asOf < until

/** What is owed at the end of `to`, as it should once everything is known and every fault was dealt with. */
export const owedAsItShould = ({ spans }: Book, to: string) =>
  spans.reduce((sum, { from, until, amount }) => sum + (from <= to && to < until ? amount : 0), 0)

/** What the movements until the end of `to` and the faults that were accounted for add up to, as it was known at `asOf`. */
export function carriedForward(
  { movements, differences }: Book,
  to: string,
  asOf: string,
  areAllResolved = false,
): number {
  const moved = movements
    .filter((one) => one.day <= to && isKnown(one, asOf))
    .reduce((sum, { what, gross }) => sum + (what === 'paid' ? gross : -gross), 0)
  const resolved = differences
    .filter((one) => one.day <= to && isKnown(one, asOf) && (areAllResolved || one.resolvedFrom <= asOf))
    .reduce((sum, { owed }) => sum + owed, 0)
  return moved - resolved
}
