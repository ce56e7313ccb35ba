import { createBankDays } from '../../src/books/bank-days.ts'
import type { Database } from '../../src/db/pool.ts'
import { toDecimalText } from '../../src/money.ts'
import { orderIdsBegin } from '../../src/payments/intent.ts'

const { nextBankDay } = createBankDays(new Set())

/** Payments on each of its first 30 days; the bank pays those of the last one on the 31st. */
export const MONTH = { from: '2026-01-01', to: '2026-01-31' }
const DAYS = 30
const HOUR_MS = 3_600_000

/** How the bank's file speaks of a merchant's payments, and the share of the payments that are of that merchant. */
const MERCHANTS = [
  // Each row names its payment beside the UTR of its own, and says what the bank kept.
  { mid: 'M_NAMED', file: 'named', share: 0.45 },
  // The UTR of a row is the payment's, in upper or lower case.
  { mid: 'M_OWN', file: 'own', share: 0.3 },
  // One row for a day's payments.
  { mid: 'M_SUMS', file: 'sums', share: 0.25 },
] as const

type File = (typeof MERCHANTS)[number]['file']

/** What is wrong with one payment of a hundred each. */
const PLANTS = {
  7: 'learned from the day file',
  11: 'double payment',
  23: 'amount differs',
  31: 'settled twice',
  47: 'not settled',
  59: 'fee differs',
  71: 'late payment',
} as const

type Plant = (typeof PLANTS)[keyof typeof PLANTS] | undefined

const NOTHING = {
  ...{ payments: 0, paid: 0, fromDayFile: 0, settlements: 0, settled: 0, fee: 0, tax: 0, open: 0, differences: 0 },
}

export type ExpectedDay = typeof NOTHING

export function sumOf(days: Iterable<ExpectedDay>): ExpectedDay {
  const total = { ...NOTHING }
  for (const day of days) for (const key of Object.keys(total) as (keyof ExpectedDay)[]) total[key] += day[key]
  return total
}

/** What the report has to say of a merchant, added up here and in paise. */
export type Expected = { days: Map<string, ExpectedDay>; differences: string[]; exceptions: string[] }

type Rows = Record<'intents' | 'changes' | 'exceptions' | 'settlements', unknown[][]>

/** Stores a month of `payments` as the service would have, and returns what the books have to say of each merchant. */
export async function storeMonth(db: Database, payments: number): Promise<Map<string, Expected>> {
  const expected = new Map<string, Expected>()
  for (const { mid, file, share } of MERCHANTS) {
    await db.query(
      `insert into merchants (mid, name, vpa, mcc, dynamic_qr, created_at)
       values ($1, 'Chai Point', 'chaipoint@examplebank', '5814', 'link', '2025-01-01')`,
      [mid],
    )
    const { rows, ...says } = makeMonth(mid, file, payments * share)
    expected.set(mid, says)
    const insert = (sql: string, [first = [], ...others]: unknown[][]) =>
      db.query(sql, [mid, ...first.map((value, at) => [value, ...others.map((row) => row[at])])])
    await insert(
      `insert into payment_intents (mid, order_id, merchant_order_id, amount, paise, created_at, expires_at, status, utr,
         redirect_url, note, customer_name, customer_email, customer_mobile, payee_vpa, payee_name, payee_mcc)
       select $1, order_id, order_id, amount, paise, made, made, status, utr, 'https://shop.example/', 'Order', 'Asha Rao',
              'asha@shop.example', '9876543210', 'chaipoint@examplebank', 'Chai Point', '5814'
         from unnest($2::text[], $3::integer[], $4::integer[], $5::timestamptz[], $6::text[], $7::text[])
              as one (order_id, amount, paise, made, status, utr)`,
      rows.intents,
    )
    await insert(
      `insert into payment_changes (mid, status, order_id, utr, paid_at, reason, changed_at)
       select $1, 'SUCCESS', * from unnest($2::text[], $3::text[], $4::timestamptz[], $5::text[], $6::timestamptz[])`,
      rows.changes,
    )
    await db.query(
      `insert into payments (mid, utr, order_id, amount_paise, paid_at, heard_at, kind, acquirer)
       select mid, utr, order_id, i.amount * 100 + i.paise, c.paid_at, c.changed_at, 'first', 'direct'
         from payment_intents i join payment_changes c using (mid, order_id, utr)
        where mid = $1`,
      [mid],
    )
    await insert(
      `insert into payment_exceptions (mid, status, order_id, kind, utr, amount, paid_at, received_at)
       select $1, 'SUCCESS', order_id, kind, utr, amount, paid_at, paid_at
         from unnest($2::text[], $3::text[], $4::text[], $5::numeric[], $6::timestamptz[])
              as one (order_id, kind, utr, amount, paid_at)`,
      rows.exceptions,
    )
    await insert(
      `insert into settlements (mid, bank_reference_number, created_at, initiated_at, utr, payment_utr, status, amount, fee, tax)
       select $1, 'BRN', initiated_at, *
         from unnest($2::timestamptz[], $3::text[], $4::text[], $5::text[], $6::numeric[], $7::numeric[], $8::numeric[])
              as one (initiated_at)`,
      rows.settlements,
    )
  }
  await db.query('vacuum analyze')
  return expected
}

const dayName = (day: number) => `2026-01-${String(day).padStart(2, '0')}`
const rupees = toDecimalText

/** A month of one merchant. */
function makeMonth(mid: string, file: File, payments: number): Expected & { rows: Rows } {
  const rows: Rows = { intents: [], changes: [], exceptions: [], settlements: [] }
  const days = new Map<string, ExpectedDay>()
  const differences: string[] = []
  const exceptions: string[] = []
  const sumsDue = new Map<string, number>()

  const at = (day: string) => {
    const sums = days.get(day) ?? { ...NOTHING }
    days.set(day, sums)
    return sums
  }
  const differ = (day: string, ...facts: unknown[]) => {
    at(day).differences += 1
    differences.push([day, ...facts].join(' '))
  }
  const settle = (
    day: string,
    { utr, paymentUtr, status = 'SUCCESS', gross, fee, tax }: Settling,
    at11 = new Date(`${day}T11:00:00+05:30`),
  ) => {
    const amount = gross - (fee ?? 0) - (tax ?? 0)
    const money = [amount, fee, tax].map((sum) => (sum === undefined ? null : rupees(sum)))
    rows.settlements.push([at11.toISOString(), utr, paymentUtr, status, ...money])
    if (status !== 'SUCCESS') return
    const sums = at(day)
    sums.settlements += 1
    sums.settled += gross
    sums.fee += fee ?? 0
    sums.tax += tax ?? 0
  }

  for (let k = 0; k < payments; k++) {
    const plant: Plant = PLANTS[(k % 100) as keyof typeof PLANTS]
    const day = dayName(1 + (k % DAYS))
    const due = nextBankDay(day)
    const paidAt = new Date(new Date(`${day}T00:00:00+05:30`).getTime() + ((k * 7_919) % 86_400_000))
    const createdAt = new Date(paidAt.getTime() - (plant === 'late payment' ? 72 * HOUR_MS : 0))
    const orderId = orderIdsBegin(createdAt) + `${mid.length}${k}`.padStart(20, '0')
    const utr = `${file.toUpperCase()}${k}`
    const amount = 10_000 + ((k * 7_907) % 900_000)
    const isPaid = plant !== 'amount differs'
    const told = plant === 'learned from the day file' ? new Date(paidAt.getTime() + 10 * HOUR_MS) : paidAt
    const inRupees = [Math.floor(amount / 100), amount % 100]
    const isPaidAs = isPaid ? ['SUCCESS', utr] : ['PENDING', null]
    rows.intents.push([orderId, ...inRupees, createdAt.toISOString(), ...isPaidAs])
    if (isPaid) {
      const reason = plant === 'learned from the day file' ? 'day file' : 'notification'
      rows.changes.push([orderId, utr, paidAt.toISOString(), reason, told.toISOString()])
      const sums = at(day)
      sums.payments += 1
      sums.paid += amount
      if (reason === 'day file') sums.fromDayFile += 1
      sumsDue.set(due, (sumsDue.get(due) ?? 0) + amount)
    }
    if (plant === 'double payment' || plant === 'amount differs' || plant === 'late payment') {
      const other = plant === 'late payment' ? { utr, sum: amount } : { utr: `X${utr}`, sum: amount + 100 }
      rows.exceptions.push([orderId, plant, other.utr, rupees(other.sum), paidAt.toISOString()])
      exceptions.push([plant, orderId, other.utr, rupees(other.sum)].join(' '))
    }
    if (file === 'sums') continue

    const fee = file === 'named' ? Math.floor(amount / 50) : undefined
    const tax = fee === undefined ? undefined : Math.floor((fee * 18) / 100)
    const ownUtr = (of: string) => (file === 'named' ? `N${of}` : k % 2 === 0 ? of : of.toLowerCase())
    const own = (of: string): Settling => ({
      ...{ utr: ownUtr(of), paymentUtr: file === 'named' ? of : undefined, gross: amount, fee, tax },
    })
    if (plant === 'double payment' || plant === 'amount differs') {
      const gross = amount + 100
      settle(due, { ...own(`X${utr}`), gross })
      const named = own(`X${utr}`).utr
      differ(due, 'no known payment', orderId, `X${utr}`, named, null, rupees(gross), `: ${plant}, of order ${orderId}`)
    }
    if (!isPaid) continue
    if (plant === 'not settled') {
      const tried = [undefined, 'FAILED', 'PENDING'][Math.floor(k / 100) % 3]
      if (tried) settle(due, { ...own(utr), status: tried })
      at(day).open += amount
      const cause = tried
        ? `settlement ${own(utr).utr} of ${due} is ${tried}`
        : `no settlement carries it; it was due on ${due}`
      differ(day, 'not settled', orderId, utr, null, rupees(amount), null, cause)
    } else if (plant === 'fee differs') {
      settle(due, { ...own(utr), gross: amount - 1 })
      const [kind, cause] =
        file === 'named'
          ? [plant, `the amount with fee ${rupees(fee ?? 0)} and tax ${rupees(tax ?? 0)} is not what was paid`]
          : ['amount differs', 'the amount is not what was paid, and the file states no fee and tax']
      differ(due, kind, orderId, utr, own(utr).utr, rupees(amount), rupees(amount - 1), cause)
    } else {
      settle(due, own(utr))
    }
    if (plant === 'settled twice' && file === 'named') {
      settle(due, { ...own(utr), utr: `Z${utr}` }, new Date(`${due}T18:00:00+05:30`))
      const cause = `settlement N${utr} of ${due} has paid it before`
      differ(due, plant, orderId, utr, `Z${utr}`, rupees(amount), rupees(amount), cause)
    }
  }

  const payouts = [...sumsDue].sort()
  for (const [index, [due, sum]] of file === 'sums' ? payouts.entries() : []) {
    const facts = (settled: number, cause: string) =>
      differ(due, 'sums differ', null, null, null, rupees(sum), rupees(settled), cause)
    // The payments of a Friday and of the second Saturday, which is no bank day, and the Sunday after it.
    if (due === '2026-01-12') facts(0, 'nothing was settled of the payments of 2026-01-09 to 2026-01-11')
    else if (due === '2026-01-20') {
      settle(due, { utr: `S${index}`, gross: sum - 12_345, fee: 500, tax: 90 })
      facts(sum - 12_345, '123.45 less than the payments of 2026-01-19')
    } else settle(due, { utr: `S${index}`, gross: sum, fee: 500, tax: 90 })
  }
  return { rows, days, differences: differences.sort(), exceptions: exceptions.sort() }
}

type Settling = {
  utr: string
  paymentUtr?: string | undefined
  status?: string
  gross: number
  fee?: number | undefined
  tax?: number | undefined
}
