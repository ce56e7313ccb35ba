import * as z from 'zod'
import { text, utrOfId } from '../../../platform/fields.ts'
import type { ReadSettled, SettledEvent, SettledLine } from '../acquirer.ts'
import { notBelieved, orAbsent, paiseFrom, readPage } from '../json-request.ts'
import { type RazorpayRequest, seconds } from './http.ts'

const PAGE_ROWS = 1_000
/** Largest number of pages of a day: 500,000 rows. */
const MOST_PAGES = 500
/** Time and size limits for one page. A row has about 1 kB, and more with long notes. */
const LIMIT = { ms: 30_000, bytes: 16 * 1024 * 1024 }
/** Pause between two pages, because Razorpay documents no limit of its rate. */
const PAUSE_MS = 1_000

const paise = paiseFrom(0)
const orZero = z.preprocess((value) => value ?? 0, paise)

const Row = z.object({
  entity_id: z.string('must be text').regex(/^[A-Za-z0-9_]{1,34}$/, 'must be a Razorpay identifier'),
  type: z
    .string()
    .regex(/^[a-z_]{1,40}$/)
    .catch('?'),
  debit: orZero,
  credit: orZero,
  amount: paise,
  currency: z.literal('INR', 'must be INR'),
  fee: orZero,
  tax: orZero,
  settled_at: z.preprocess((at) => at || undefined, seconds.transform((at) => at.toISOString()).optional()),
  settlement_utr: orAbsent(text(255)),
  order_receipt: orAbsent(text(255)),
  payment_id: orAbsent(text(255)),
  dispute_id: orAbsent(text(255)),
})

type SettledRow = z.output<typeof Row>

const Page = z.object({ items: z.array(Row) })

export function razorpaySettled(request: RazorpayRequest): ReadSettled {
  return async function* ({ from, to }, pause) {
    for (const day of daysOf(from, to)) {
      const [year, month, date] = day.split('-')
      const read = new Set<string>()
      for (; ; await pause(PAUSE_MS)) {
        const parameters = `year=${year}&month=${month}&day=${date}&count=${PAGE_ROWS}&skip=${read.size * PAGE_ROWS}`
        const page = { method: 'GET', path: `settlements/recon/combined?${parameters}`, limit: LIMIT } as const
        const response = await request(page, AbortSignal.timeout(LIMIT.ms), [200])
        const { items } = readPage(Page, response, 'Razorpay', (row) => Object(row).entity_id)
        const last = items.at(-1)
        if (last === undefined) break
        yield items.map(toSettled)
        if (read.has(last.entity_id))
          throw notBelieved(response, 'Razorpay returned the same page of settlements twice: its pages do not end')
        if (read.add(last.entity_id).size === MOST_PAGES) throw notBelieved(response, TOO_MANY)
        if (items.length < PAGE_ROWS) break
      }
      if (day !== to) await pause(PAUSE_MS)
    }
  }
}

const TOO_MANY = `Razorpay returned ${MOST_PAGES} pages or more for one day: contact Razorpay`

function* daysOf(from: string, to: string): Generator<string> {
  for (const day = new Date(from); day <= new Date(to); day.setUTCDate(day.getUTCDate() + 1))
    yield day.toISOString().slice(0, 10)
}

function toSettled(row: SettledRow): SettledEvent {
  const { entity_id: id, settlement_utr: payoutUtr, settled_at: paidOutAt } = row
  const amount = row.credit - row.debit
  const event = eventOf(row, amount)
  const kind = row.dispute_id === undefined ? row.type : `${row.type} of a dispute`
  if (event === undefined) return { kind, amount, payoutUtr, paidOutAt }
  // Razorpay reports no bank reference. The line of a payment that the service does not know is stored under the id, under
  // which a later pull finds it.
  const isPayment = event === 'payment'
  const line = {
    orderId: row.order_receipt,
    ...(isPayment ? { earlierUtr: utrOfId(id) } : { utr: `E${utrOfId(id)}` }),
    event,
    payment: { id: isPayment ? id : row.payment_id, utr: undefined },
    instrument: undefined,
    ...chargesOf(row, amount),
    initiatedAt: paidOutAt,
    createdAt: undefined,
  }
  return { kind, amount, payoutUtr, paidOutAt, line }
}

/** Returns undefined for a row that is no settlement line. */
function eventOf({ type, dispute_id: dispute }: SettledRow, amount: number): SettledLine['event'] | undefined {
  if (type === 'payment') return amount >= 0 ? 'payment' : undefined
  if (type === 'refund') return amount < 0 ? 'refund' : undefined
  if (type !== 'adjustment' || dispute === undefined || amount === 0) return undefined
  return amount < 0 ? 'dispute' : 'dispute reversal'
}

/**
 * Fee and tax that this payout deducted, 0 if Razorpay bills them separately. Razorpay's fee includes the tax. The settled
 * amount plus fee and tax equals the amount that was paid or refunded.
 */
function chargesOf({ amount: whole, fee, tax }: SettledRow, amount: number) {
  return Math.abs(amount) === whole ? { fee: 0, tax: 0 } : { fee: fee - tax, tax }
}
