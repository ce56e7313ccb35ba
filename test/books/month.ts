import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { from as copyFrom } from 'pg-copy-streams'
import { nextBankDay } from '../../src/books/bank-days.ts'
import type { Database } from '../../src/db/pool.ts'
import { toDecimalText } from '../../src/money.ts'
import { orderIdsBegin } from '../../src/payments/intent.ts'

/** Payments on each of its first 30 days; the bank pays those of the last one on the 31st. */
export const MONTH = { from: '2026-01-01', to: '2026-01-31' }
const DAYS = 30
const HOUR_MS = 3_600_000

/** How the bank's file speaks of a merchant's payments, and how many there are. */
export const MERCHANTS = [
  // Each row names its payment beside the UTR of its own, and says what the bank kept.
  { mid: 'M_NAMED', file: 'named', payments: 90_000 },
  // The UTR of a row is the payment's.
  { mid: 'M_OWN', file: 'own', payments: 60_000 },
  // One row for a day's payments.
  { mid: 'M_SUMS', file: 'sums', payments: 50_000 },
] as const

type Merchant = (typeof MERCHANTS)[number]

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

export type ExpectedDay = {
  payments: number
  paid: number
  fromDayFile: number
  settlements: number
  settled: number
  fee: number
  tax: number
  open: number
  differences: number
}

/** What the report has to say of a merchant, added up here and in paise. */
export type Expected = { days: Map<string, ExpectedDay>; differences: string[]; exceptions: string[] }

type Rows = { intents: string[]; changes: string[]; exceptions: string[]; settlements: string[] }

/** Stores the month as the service would have, and returns what the books have to say of each merchant. */
export async function storeMonth(db: Database): Promise<Map<string, Expected>> {
  const expected = new Map<string, Expected>()
  for (const merchant of MERCHANTS) {
    await db.query(
      `insert into merchants (mid, name, vpa, mcc, dynamic_qr, created_at)
       values ($1, 'Chai Point', 'chaipoint@examplebank', '5814', 'link', '2025-01-01')`,
      [merchant.mid],
    )
    const { rows, ...says } = makeMonth(merchant)
    expected.set(merchant.mid, says)
    const copies: [string, string[]][] = [
      [
        `payment_intents (mid, order_id, merchant_order_id, amount, paise, redirect_url, note, customer_name, customer_email,
           customer_mobile, payee_vpa, payee_name, payee_mcc, created_at, expires_at, status, utr)`,
        rows.intents,
      ],
      ['payment_changes (mid, order_id, status, utr, paid_at, reason, changed_at)', rows.changes],
      ['payment_exceptions (mid, order_id, kind, utr, amount, status, paid_at, received_at)', rows.exceptions],
      [
        `settlements (mid, utr, amount, fee, tax, payment_utr, status, initiated_at, bank_reference_number, created_at)`,
        rows.settlements,
      ],
    ]
    for (const [target, lines] of copies) await copy(db, target, lines)
  }
  await db.query('vacuum analyze')
  return expected
}

async function copy(db: Database, target: string, lines: string[]): Promise<void> {
  const client = await db.connect()
  try {
    await pipeline(Readable.from(portions(lines)), client.query(copyFrom(`copy ${target} from stdin`)))
  } finally {
    client.release()
  }
}

function* portions(lines: string[]): Generator<string> {
  for (let i = 0; i < lines.length; i += 5_000) yield `${lines.slice(i, i + 5_000).join('\n')}\n`
}

const dayName = (day: number) => `2026-01-${String(day).padStart(2, '0')}`
const rupees = toDecimalText

/** A month of one merchant. */
function makeMonth({ mid, file, payments }: Merchant): Expected & { rows: Rows } {
  const rows: Rows = { intents: [], changes: [], exceptions: [], settlements: [] }
  const days = new Map<string, ExpectedDay>()
  const differences: string[] = []
  const exceptions: string[] = []
  const sumsDue = new Map<string, number>()

  const at = (day: string) => {
    const sums = days.get(day) ?? {
      ...{ payments: 0, paid: 0, fromDayFile: 0, settlements: 0, settled: 0, fee: 0, tax: 0, open: 0, differences: 0 },
    }
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
    const money = [rupees(gross - (fee ?? 0) - (tax ?? 0)), fee, tax].map((one) =>
      one === undefined ? '\\N' : typeof one === 'number' ? rupees(one) : one,
    )
    const moments = [at11.toISOString(), `BRN${day}`, at11.toISOString()]
    rows.settlements.push([mid, utr, ...money, paymentUtr ?? '\\N', status, ...moments].join('\t'))
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
    rows.intents.push(
      [
        ...[mid, orderId, orderId, Math.floor(amount / 100), amount % 100, 'https://shop.example/', 'Order'],
        ...['Asha Rao', 'asha@shop.example', '9876543210', 'chaipoint@examplebank', 'Chai Point', '5814'],
        ...[createdAt.toISOString(), createdAt.toISOString(), isPaid ? 'SUCCESS' : 'PENDING', isPaid ? utr : '\\N'],
      ].join('\t'),
    )
    if (isPaid) {
      const reason = plant === 'learned from the day file' ? 'day file' : 'notification'
      rows.changes.push([mid, orderId, 'SUCCESS', utr, paidAt.toISOString(), reason, told.toISOString()].join('\t'))
      const sums = at(day)
      sums.payments += 1
      sums.paid += amount
      if (reason === 'day file') sums.fromDayFile += 1
      sumsDue.set(due, (sumsDue.get(due) ?? 0) + amount)
    }
    if (plant === 'double payment' || plant === 'amount differs' || plant === 'late payment') {
      const other = plant === 'late payment' ? { utr, sum: amount } : { utr: `X${utr}`, sum: amount + 100 }
      const moments = [paidAt.toISOString(), paidAt.toISOString()]
      rows.exceptions.push([mid, orderId, plant, other.utr, rupees(other.sum), 'SUCCESS', ...moments].join('\t'))
      exceptions.push([plant, orderId, other.utr, rupees(other.sum)].join(' '))
    }
    if (file === 'sums') continue

    const fee = file === 'named' ? Math.floor(amount / 50) : undefined
    const tax = fee === undefined ? undefined : Math.floor((fee * 18) / 100)
    const own = (of: string): Settling =>
      file === 'named' ? { utr: `N${of}`, paymentUtr: of, gross: amount, fee, tax } : { utr: of, gross: amount }
    if (plant === 'double payment' || plant === 'amount differs') {
      const gross = amount + 100
      settle(due, { ...own(`X${utr}`), gross })
      const named = own(`X${utr}`).utr
      differ(due, 'no known payment', orderId, `X${utr}`, named, null, rupees(gross), `: ${plant}, of order ${orderId}`)
    }
    if (!isPaid) continue
    if (plant === 'not settled') {
      const isTried = k % 200 > 100
      if (isTried) settle(due, { ...own(utr), status: 'FAILED' })
      at(day).open += amount
      const cause = isTried
        ? `settlement ${own(utr).utr} of ${due} is FAILED`
        : `no settlement carries it; it was due on ${due}`
      differ(day, 'not settled', orderId, utr, null, rupees(amount), null, cause)
    } else if (plant === 'fee differs' && file === 'named') {
      settle(due, { ...own(utr), gross: amount - 100, fee })
      const cause = `the amount with fee ${rupees(fee ?? 0)} and tax ${rupees(tax ?? 0)} is not what was paid`
      differ(due, plant, orderId, utr, own(utr).utr, rupees(amount), rupees(amount - 100), cause)
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
