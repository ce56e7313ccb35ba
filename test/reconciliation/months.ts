import { Readable } from 'node:stream'
import type { Asked } from '../../src/books/reconciliation/reconcile.ts'
import { enterResolution } from '../../src/books/reconciliation/resolutions.ts'
import { importSettlements } from '../../src/books/settlements/import.ts'
import { orderIdsBegin } from '../../src/gateway/payments/intent.ts'
import { type Database, inTransaction } from '../../src/platform/db/pool.ts'
import { findingsOf } from './findings.ts'

/*
 * Three months of payments and of the bank's files, with a ledger of their own: integers in paise, and bank days counted here.
 */

export const MONTHS = [
  { from: '2026-01-01', to: '2026-01-31' },
  { from: '2026-02-01', to: '2026-02-28' },
  { from: '2026-03-01', to: '2026-03-31' },
] as const
const DAYS = 90
/** A Wednesday; the Monday after a fourth Saturday; the Friday before a second Saturday; the Monday before the last day. */
export const HOLIDAYS = ['2026-01-14', '2026-01-26', '2026-02-13', '2026-03-30']

/** How the bank's file speaks of a merchant's payments, the share of all payments that are his, and whether faults are planted. */
export const MERCHANTS = [
  // Each row names its payment beside the UTR of its own, and says what the bank kept.
  { mid: 'M1_NAMED', file: 'named', share: 0.1 },
  // The UTR of a row is the payment's, in upper or lower case.
  { mid: 'M2_OWN', file: 'own', share: 0.1 },
  { mid: 'M3_SUMS', file: 'sums', share: 0.1 },
  // Sums until the middle of February, then named.
  { mid: 'M4_TURNS', file: 'turns', share: 0.1 },
  // Sums, and now and then one payment by its name.
  { mid: 'M5_SINGLE', file: 'single', share: 0.1 },
  // Gets what the bank owes to the next.
  { mid: 'M6_NEIGHBOUR', file: 'named', share: 0.05 },
  { mid: 'M7_FAULTS', file: 'named', share: 0.25, faults: true },
  { mid: 'M8_FAULTS', file: 'own', share: 0.1, faults: true },
  { mid: 'M9_FAULTS', file: 'sums', share: 0.1, faults: true },
] as const
type Merchant = { mid: string; file: (typeof MERCHANTS)[number]['file']; share: number; faults?: boolean }

export const CLEAN = ['M1_NAMED', 'M2_OWN', 'M3_SUMS', 'M4_TURNS', 'M5_SINGLE']
const NEIGHBOUR = 'M6_NEIGHBOUR'
const TURNS_ON = '2026-02-17'

/** What is wrong with one payment of a hundred each, where the file has a row for each payment. */
const PLANTS = {
  3: 'learned from the day file',
  11: 'double payment',
  19: 'amount differs',
  23: 'settled later',
  31: 'duplicate settlement',
  41: 'missing settlement',
  47: 'of the neighbour',
  59: 'fee mismatch',
  61: 'refund',
  67: 'chargeback',
  71: 'late payment',
  83: 'failed after success',
} as const
type Plant = (typeof PLANTS)[keyof typeof PLANTS] | 'left out' | undefined

/** The file of this day is cut: its last rows are missing, and never come. */
const CUT = { day: '2026-02-05', rows: 3 }

/** What is wrong with the payout of a day where the file has sums. */
const FAULTS_OF_SUMS: Record<string, 'nothing' | 'short' | 'double' | 'reversed' | 'failed' | 'deducted'> = {
  // The payments of a Friday and of the second Saturday, which is no bank day, and the Sunday after it.
  '2026-01-12': 'nothing',
  '2026-01-20': 'short',
  // After a holiday.
  '2026-01-27': 'double',
  '2026-02-16': 'double',
  '2026-02-19': 'reversed',
  '2026-03-05': 'failed',
  '2026-03-10': 'deducted',
}

/** A difference that the report has to name. Amounts are in paise, `owed` positive where the bank owes. */
export type Difference = {
  day: string
  kind: string
  orderId: string | null
  utr: string | null
  settlementUtr: string | null
  paid: number | null
  settled: number | null
  owed: number
  /** Exceptions stand in it as `exception of UTR`. */
  cause: string
}

const NOTHING = { payments: 0, paid: 0, settlements: 0, settled: 0, fee: 0, tax: 0 }
export type Day = typeof NOTHING

/** What is known of a merchant. */
export type Ledger = Merchant & {
  days: Map<string, Day>
  differences: Difference[]
  exceptions: { day: string; madeOn: string; orderId: string; kind: string; utr: string; amount: number }[]
  /** Payments that the bank pays out, or would have, each with the bank day on which it is due and the day on which it was paid out. */
  payments: { day: string; amount: number; due: string; outOn: string | null; bySums: boolean }[]
  /** Parts of a payout of `due` that the bank dated before it. */
  early: { day: string; due: string; amount: number }[]
}

/** What the service and the operator learn in one day. */
export type Facts = Record<'intents' | 'exceptions' | 'payments', unknown[][]> & { rows: Row[] }

export type Row = {
  mid: string
  amount: number
  utr: string
  day: string
  /** Time of India. */
  time?: string
  status?: string
  fee?: number | undefined
  tax?: number | undefined
  paymentUtr?: string | undefined
  reference?: string
}

export type Months = { ledgers: Ledger[]; facts: Map<string, Facts> }

const isBankDay = (day: string) => {
  const date = new Date(`${day}T00:00:00Z`)
  const isSaturday = date.getUTCDay() === 6
  const dayOfMonth = date.getUTCDate()
  if (isSaturday && ((dayOfMonth > 7 && dayOfMonth < 15) || (dayOfMonth > 21 && dayOfMonth < 29))) return false
  return date.getUTCDay() !== 0 && !HOLIDAYS.includes(day)
}
export const dayAfter = (day: string, days = 1) =>
  new Date(Date.parse(`${day}T00:00:00Z`) + days * 86_400_000).toISOString().slice(0, 10)
const dueDay = (day: string): string => (isBankDay(dayAfter(day)) ? dayAfter(day) : dueDay(dayAfter(day)))
const bankDayBefore = (day: string): string =>
  isBankDay(dayAfter(day, -1)) ? dayAfter(day, -1) : bankDayBefore(dayAfter(day, -1))

export const rupees = (paise: number) => {
  const digits = String(Math.abs(paise)).padStart(3, '0')
  return `${paise < 0 ? '-' : ''}${digits.slice(0, -2)}.${digits.slice(-2)}`
}

/** Numbers from 0 to before `below`, the same for each seed. */
function randomFrom(seed: number) {
  let state = seed
  return (below: number) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below)
  }
}

export const istMoment = (day: string, time: string) => new Date(`${day}T${time}+05:30`)
const istDay = (moment: Date) => new Date(moment.getTime() + 330 * 60_000).toISOString().slice(0, 10)

/** Makes three months of `payments` in all, and what the books have to say of each merchant. */
export function makeMonths(payments: number, seed: number): Months {
  const facts = new Map<string, Facts>()
  const ledgers = MERCHANTS.map((merchant) => ({
    ...{ ...merchant, days: new Map(), differences: [], exceptions: [], payments: [], early: [] },
  })) as Ledger[]
  const neighbour = ledgers.find(({ mid }) => mid === NEIGHBOUR) as Ledger
  for (const [index, ledger] of ledgers.entries()) {
    makeMerchant(ledger, {
      facts,
      neighbour,
      count: Math.round(payments * ledger.share),
      random: randomFrom(seed + index),
    })
  }
  return { ledgers, facts }
}

type Order = { orderId: string; utr: string; amount: number; paidAt: Date }
type Making = { facts: Map<string, Facts>; neighbour: Ledger; count: number; random: (below: number) => number }

function makeMerchant(ledger: Ledger, { facts, neighbour, count, random }: Making): void {
  const { mid, file, faults = false } = ledger
  const learned = (day: string) => {
    const known = facts.get(day) ?? { intents: [], exceptions: [], payments: [], rows: [] }
    facts.set(day, known)
    return known
  }
  const dayOf = (owner: Ledger, day: string) => {
    const sums = owner.days.get(day) ?? { ...NOTHING }
    owner.days.set(day, sums)
    return sums
  }
  const differ = (owner: Ledger, difference: Omit<Difference, 'owed'> & { owed?: number }) =>
    owner.differences.push({ owed: (difference.paid ?? 0) - (difference.settled ?? 0), ...difference })
  /** Writes a row into the file of `knownOn`. What does not stand as SUCCESS at last is in no sum. */
  const settle = (row: Row, { owner = ledger, knownOn = row.day, stands = row.status === undefined } = {}) => {
    learned(knownOn).rows.push(row)
    if (!stands) return
    const sums = dayOf(owner, row.day)
    sums.settlements += 1
    sums.settled += row.amount + (row.fee ?? 0) + (row.tax ?? 0)
    sums.fee += row.fee ?? 0
    sums.tax += row.tax ?? 0
  }
  const except = (kind: string, orderId: string, utr: string, amount: number, paidAt: Date, madeAt = paidAt) => {
    const day = istDay(paidAt)
    learned(day).exceptions.push([mid, orderId, kind, utr, rupees(amount), paidAt.toISOString()])
    ledger.exceptions.push({ day, madeOn: istDay(madeAt), orderId, kind, utr, amount })
  }

  const sums = new Map<string, { amount: number; orders: Order[] }>()
  const cut: string[] = []
  for (let k = 0; k < count; k++) {
    const isByRow = file === 'named' || file === 'own'
    const day = dayAfter(MONTHS[0].from, random(DAYS))
    const due = dueDay(day)
    let plant: Plant = faults && isByRow ? PLANTS[(k % 100) as keyof typeof PLANTS] : undefined
    if (plant === 'of the neighbour' && file !== 'named') plant = 'missing settlement'
    if (faults && file === 'named' && plant === undefined && due === CUT.day && cut.length < CUT.rows) {
      plant = 'left out'
      cut.push(day)
    }
    const paidAt = new Date(istMoment(day, '00:00:00').getTime() + random(86_400_000))
    const createdAt = new Date(paidAt.getTime() - (plant === 'late payment' ? 72 : 0) * 3_600_000)
    // After its settlement has come, which named nothing until then.
    const toldAt = new Date(paidAt.getTime() + (plant === 'learned from the day file' ? 120 : 0) * 3_600_000)
    const told = istDay(toldAt)
    const orderId = orderIdsBegin(createdAt) + `${mid[1]}${k}`.padStart(20, '0')
    const utr = file === 'own' ? `${mid.replace('_', '')}U${k}` : `5${mid[1]}${String(k).padStart(10, '0')}`
    const amount = 10_000 + random(900_000)
    const isPaid = plant !== 'amount differs'
    learned(told).intents.push([
      ...[mid, orderId, Math.floor(amount / 100), amount % 100, createdAt.toISOString()],
      ...(isPaid ? ['SUCCESS', utr] : ['PENDING', null]),
    ])
    if (isPaid) {
      const reason = plant === 'learned from the day file' ? 'day file' : 'notification'
      learned(told).payments.push([
        mid,
        utr,
        orderId,
        amount,
        paidAt.toISOString(),
        toldAt.toISOString(),
        'first',
        reason,
      ])
      const paid = dayOf(ledger, day)
      paid.payments += 1
      paid.paid += amount
    }

    const isByName = isByRow || (file === 'turns' && due >= TURNS_ON)
    if (!isByName) {
      const sum = sums.get(due) ?? { amount: 0, orders: [] }
      sums.set(due, sum)
      sum.amount += amount
      sum.orders.push({ orderId, utr, amount, paidAt })
      continue
    }
    const fee = file === 'own' ? undefined : Math.floor(amount / 50)
    const tax = fee === undefined ? undefined : Math.floor((fee * 18) / 100)
    const rowOf = (of: string, gross = amount): Row => ({
      ...{ mid, day: due, amount: gross - (fee ?? 0) - (tax ?? 0), fee, tax },
      ...(file === 'own'
        ? { utr: k % 2 === 0 ? of : of.toLowerCase(), paymentUtr: undefined }
        : { utr: `9${of}`, paymentUtr: of }),
    })
    const own = rowOf(utr)
    const found = { orderId, utr, settlementUtr: null, paid: amount, settled: null }
    const pay = (outOn: string | null) => ledger.payments.push({ day, amount, due, outOn, bySums: false })
    const isUnsettled = (cause: string, kind = 'missing settlement') => {
      pay(null)
      differ(ledger, { ...found, day, kind, cause })
    }
    switch (plant) {
      case 'double payment':
      case 'amount differs': {
        const other = { utr: `X${utr}`, gross: amount + 100 }
        except(plant, orderId, other.utr, other.gross, paidAt)
        const row = rowOf(other.utr, other.gross)
        settle(row)
        const cause = `exception of ${other.utr}: ${plant}, of order ${orderId}`
        const names = { orderId, utr: other.utr, settlementUtr: row.utr, paid: null, settled: other.gross }
        differ(ledger, { ...names, day: due, kind: 'unknown payment', cause })
        if (!isPaid) break
        settle(own)
        pay(due)
        break
      }
      case 'settled later': {
        const later = dueDay(dueDay(due))
        settle({ ...own, day: later })
        pay(later)
        break
      }
      case 'duplicate settlement': {
        settle(own)
        pay(due)
        // Under a name of its own; a file without such names cannot say it.
        if (file === 'own') break
        const again = { ...own, utr: `Z${utr}`, time: '18:00:00' }
        settle(again)
        const cause = `settlement ${own.utr} of ${due} has paid it before`
        differ(ledger, {
          ...{ ...found, day: due, kind: plant, settlementUtr: again.utr, settled: amount, owed: -amount, cause },
        })
        break
      }
      case 'missing settlement': {
        const tried = [undefined, 'FAILED', 'PENDING'][Math.floor(k / 100) % 3]
        if (tried) settle({ ...own, status: tried })
        isUnsettled(
          tried ? `settlement ${own.utr} of ${due} is ${tried}` : `no payout row shows its UTR; it was due on ${due}`,
        )
        break
      }
      case 'left out':
        isUnsettled(`no payout row shows its UTR; it was due on ${due}`)
        break
      case 'of the neighbour': {
        settle({ ...own, mid: neighbour.mid }, { owner: neighbour })
        isUnsettled(`no payout row shows its UTR; it was due on ${due}`)
        const cause = 'no order and no exception of this merchant carries its UTR'
        const names = { orderId: null, utr, settlementUtr: own.utr, paid: null, settled: amount }
        differ(neighbour, { ...names, day: due, kind: 'unknown payment', cause })
        break
      }
      case 'fee mismatch': {
        settle({ ...own, amount: own.amount - 1 })
        pay(due)
        const [kind, cause] =
          file === 'own'
            ? ['amount mismatch', 'the amount is not what was paid, and the file states no fee and tax']
            : [plant, `the amount with fee ${rupees(fee ?? 0)} and tax ${rupees(tax ?? 0)} is not what was paid`]
        differ(ledger, { ...found, day: due, kind, settlementUtr: own.utr, settled: amount - 1, cause })
        break
      }
      case 'refund':
      case 'chargeback': {
        settle(own)
        pay(due)
        const back = dueDay(dueDay(due))
        const takes = { mid, day: back, amount: -amount }
        // A chargeback repeats the UTR of its payment, and is stored under a name of its own.
        const row = plant === 'refund' ? { ...takes, utr: `R${utr}`, paymentUtr: utr } : { ...takes, utr }
        settle(row)
        const names = { orderId, utr, settlementUtr: plant === 'refund' ? `R${utr}` : `${utr}R1`, paid: null }
        const cause = 'the bank has deducted it from a payout: a refund or a chargeback'
        differ(ledger, { ...names, day: back, kind: 'reversal', settled: -amount, cause })
        break
      }
      case 'failed after success':
        settle(own, { stands: false })
        settle({ ...own, status: 'FAILED' }, { knownOn: dueDay(due) })
        isUnsettled(`settlement ${own.utr} of ${due} was SUCCESS and is FAILED`, 'reversal')
        break
      default:
        settle(own)
        pay(due)
        if (plant === 'late payment') except(plant, orderId, utr, amount, paidAt, createdAt)
    }
  }

  for (const [index, [due, sum]] of [...sums].sort(([a], [b]) => (a < b ? -1 : 1)).entries()) {
    const [first, last] = [bankDayBefore(due), dayAfter(due, -1)]
    const days = first === last ? first : `${first} to ${last}`
    const row = { mid, day: due, utr: `S${mid[1]}${due.replaceAll('-', '')}`, reference: `PAYOUT ${mid[1]} ${index}` }
    const fault = faults ? FAULTS_OF_SUMS[due] : undefined
    const order = sum.orders[0] as (typeof sum.orders)[number]
    // More payments are left than named: a sum stays a sum.
    const named = file === 'single' && index % 3 === 0 && sum.orders.length > 2 ? order : undefined
    for (const one of sum.orders) {
      const outOn = fault === 'nothing' || fault === 'failed' ? null : due
      ledger.payments.push({ day: istDay(one.paidAt), amount: one.amount, due, outOn, bySums: one !== named })
    }
    const sumsDiffer = (settled: number, cause: string) =>
      differ(ledger, {
        ...{ day: due, kind: 'payout total', orderId: null, utr: null, settlementUtr: null },
        ...{ paid: sum.amount, settled, cause },
      })
    /** The row of `amount`; what the bank kept of it stands apart. */
    const pay = (amount: number, more: Partial<Row> = {}) =>
      settle({ ...row, amount: amount - 590, fee: 500, tax: 90, ...more })
    switch (fault) {
      case 'nothing':
        sumsDiffer(0, `nothing was settled of the payments of ${days}`)
        break
      case 'short':
        pay(sum.amount - 12_345)
        sumsDiffer(sum.amount - 12_345, `123.45 less than the payments of ${days}`)
        break
      case 'double': {
        // Two customers have paid twice, and the bank pays out all of it.
        const doubles = sum.orders.slice(0, 2).map((one) => ({ ...one, utr: `X${one.utr}`, amount: one.amount + 100 }))
        const more = doubles.reduce((total, { amount }) => total + amount, 0)
        for (const one of doubles) {
          except('double payment', one.orderId, one.utr, one.amount, one.paidAt)
        }
        pay(sum.amount + more)
        const likely = [...doubles]
          .sort((a, b) => a.paidAt.getTime() - b.paidAt.getTime())
          .map(({ utr, amount }) => `exception of ${utr} (double payment of ${rupees(amount)}, open)`)
          .join(' and ')
        sumsDiffer(sum.amount + more, `${rupees(more)} more than the payments of ${days}; likely ${likely}`)
        break
      }
      case 'reversed': {
        const { orderId, utr, amount, paidAt } = order
        except('failure after success', orderId, utr, amount, paidAt)
        pay(sum.amount - amount)
        const likely = `likely exception of ${utr} (failure after success of ${rupees(amount)}, open)`
        sumsDiffer(sum.amount - amount, `${rupees(amount)} less than the payments of ${days}; ${likely}`)
        break
      }
      case 'failed': {
        settle({ ...row, amount: sum.amount }, { stands: false })
        settle({ ...row, amount: sum.amount, status: 'FAILED' }, { knownOn: dueDay(due) })
        const names = { orderId: null, utr: null, settlementUtr: row.utr, paid: sum.amount, settled: null }
        differ(ledger, { ...names, day: due, kind: 'reversal', cause: 'the settlement was SUCCESS and is FAILED' })
        break
      }
      case 'deducted': {
        pay(sum.amount)
        const back = { ...row, utr: `${row.utr}D`, amount: -20_000, fee: -100, tax: -18 }
        settle(back)
        const names = { orderId: null, utr: back.utr, settlementUtr: back.utr, paid: null, settled: -20_118 }
        const cause = 'the bank has deducted it, and no order of this merchant carries its UTR'
        differ(ledger, { ...names, day: due, kind: 'reversal', cause })
        break
      }
      default:
        if (named) {
          settle({ mid, day: due, amount: named.amount, utr: `9${named.utr}`, paymentUtr: named.utr })
          pay(sum.amount - named.amount)
        } else if (!isBankDay(last) && sum.orders.length > 1) {
          // The bank pays a part already while it is closed.
          settle({ ...row, day: last, utr: `${row.utr}A`, amount: order.amount })
          ledger.early.push({ day: last, due, amount: order.amount })
          pay(sum.amount - order.amount)
        } else pay(sum.amount)
    }
  }
}

/** The sums of a merchant's days from `from` to `to`. */
export function sumOf(ledgers: readonly Ledger[], from: string, to: string): Day {
  const total = { ...NOTHING }
  for (const { days } of ledgers) {
    for (const [day, sums] of days) {
      if (day < from || day > to) continue
      for (const key of Object.keys(total) as (keyof Day)[]) total[key] += sums[key]
    }
  }
  return total
}

/** Paid from `from` to `to`, and settled by no row of its own; where the file has sums, and not due until `to`. */
export const openOf = ({ payments }: Ledger, from: string, to: string) =>
  payments
    .filter(({ day, due, outOn, bySums }) => day >= from && day <= to && (bySums ? due > to : outOn === null))
    .reduce((sum, { amount }) => sum + amount, 0)

/** What the bank has still to pay at the end of `to`, as it should: it was paid out later, or is not due before `to`. */
export const notYetDue = ({ payments, early }: Ledger, to: string) =>
  payments
    .filter(({ day, due, outOn, bySums }) => day <= to && (outOn === null ? bySums && due > to : outOn > to))
    .reduce((sum, { amount }) => sum + amount, 0) -
  early.filter(({ day, due }) => day <= to && due > to).reduce((sum, { amount }) => sum + amount, 0)

/** Stores the facts day by day, as the service and the operator's command would; `atEnd` runs when a day is over. */
export async function storeMonths(
  db: Database,
  { facts }: Months,
  atEnd: (day: string, imported: number | undefined) => Promise<void> = async () => undefined,
): Promise<void> {
  for (const { mid } of MERCHANTS) {
    await db.query(
      `insert into merchants (mid, name, vpa, mcc, dynamic_qr, created_at)
       values ($1, 'Chai Point', 'chaipoint@examplebank', '5814', 'link', '2025-01-01')`,
      [mid],
    )
  }
  await db.query(`insert into bank_holiday_changes select unnest($1::date[]), 1, 'closed', 'Asha', '2025-12-01'`, [
    HOLIDAYS,
  ])
  for (const [day, known] of [...facts].sort(([a], [b]) => (a < b ? -1 : 1))) {
    await storeReports(db, known)
    await atEnd(day, known.rows.length > 0 ? await importRows(db, known.rows, istMoment(day, '20:00:00')) : undefined)
  }
  await db.query('vacuum analyze')
}

/** Stores what was heard of payments: the first value of each is the mid. */
export async function storeReports(db: Database, known: Omit<Facts, 'rows'>): Promise<void> {
  const insert = async (sql: string, rows: unknown[][]) => {
    const [first] = rows
    if (first)
      await db.query(
        sql,
        first.map((_, at) => rows.map((row) => row[at])),
      )
  }
  await insert(
    `insert into payment_intents (mid, order_id, merchant_order_id, amount_paise, created_at, expires_at, status, utr,
       redirect_url, note, customer_name, customer_email, customer_mobile, payee_vpa, payee_name, payee_mcc)
     select mid, order_id, order_id, amount * 100 + paise, made, made, status, utr, 'https://shop.example/', 'Order', 'Asha Rao',
            'asha@shop.example', '9876543210', 'chaipoint@examplebank', 'Chai Point', '5814'
       from unnest($1::text[], $2::text[], $3::integer[], $4::integer[], $5::timestamptz[], $6::text[], $7::text[])
            as one (mid, order_id, amount, paise, made, status, utr)`,
    known.intents,
  )
  await insert(
    `insert into payments (mid, utr, order_id, amount_paise, paid_at, received_at, kind, source, acquirer)
     select *, 'direct'
       from unnest($1::text[], $2::text[], $3::text[], $4::integer[], $5::timestamptz[], $6::timestamptz[], $7::text[],
                   $8::text[])`,
    known.payments,
  )
  await insert(
    `insert into payment_exceptions (status, mid, order_id, kind, utr, amount_paise, paid_at, received_at)
     select case kind when 'failure after success' then 'FAIL' else 'SUCCESS' end, mid, order_id, kind, utr, rupees * 100, paid_at, paid_at
       from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::numeric[], $6::timestamptz[])
            as one (mid, order_id, kind, utr, rupees, paid_at)`,
    known.exceptions,
  )
}

/** Imports a file of these rows, in which the last merchant's come last. Returns the number of the import. */
export async function importRows(db: Database, rows: readonly Row[], now: Date): Promise<number> {
  const head = 'mid,amount,utr,bank_reference_number,status,initiation_date,fee,tax,payment_utr'
  const lines = rows.map(({ mid, amount, utr, day, time = '11:00:00', status = 'SUCCESS', fee, tax, ...row }) =>
    [
      ...[mid, rupees(amount), utr, row.reference ?? 'BRN', status, `${day}T${time}+05:30`],
      ...[fee === undefined ? '' : rupees(fee), tax === undefined ? '' : rupees(tax), row.paymentUtr ?? ''],
    ].join(','),
  )
  const importing = { now, person: 'test', file: 'payouts.csv' }
  const csv = Readable.from([Buffer.from([head, ...lines, ''].join('\n'))])
  return (await inTransaction(db, (client) => importSettlements(client, csv, importing))).import
}

/** Resolves the first `exceptions` exceptions, and enters a resolution of the first two open differences of the days. */
export async function resolveSome(db: Database, days: Asked, exceptions: number): Promise<void> {
  await db.query(
    `insert into payment_resolutions
     select mid, exception_id, 'refunded', 'asha', $1 from payment_exceptions order by exception_id limit $2
     on conflict do nothing`,
    [days.now, exceptions],
  )
  const found = []
  for (const one of await findingsOf(db, days)) {
    if (one.type === 'difference' && one.resolution === null && found.length < 2) found.push(one)
  }
  const now = new Date(days.now.getTime() + 30 * 60_000)
  for (const one of found) await enterResolution(db, one, { reason: 'seen', by: 'asha', now })
}
