import type { Database } from '../../platform/db/pool.ts'
import { formsOf, unpadded } from '../../platform/fields.ts'
import type { Paise } from '../../platform/money.ts'
import { addDays } from '../ledger/bank-days.ts'
import { createLedger, type Snapshot } from '../ledger/read-ledger.ts'
import { dayOf, settlementsOfAll, textOf } from '../ledger/sql.ts'
import { inSnapshot } from './reconcile.ts'
import { type Rest, readRests } from './rests.ts'

/** One settlement of a payout and the payment that it carries. Amounts are in paise; `gross` is with fee and tax. */
export type PayoutRow = {
  mid: string
  day: string
  /** Null where it carries no known payment: a sum, perhaps. */
  orderId: string | null
  merchantOrderId: string | null
  /** UTR of the payment. */
  utr: string
  settlementUtr: string
  status: string
  paid: Paise | null
  gross: Paise
  fee: Paise
  tax: Paise
  /** What stands in the bank statement. */
  net: Paise
}

/** A payment that a payout by sums is for, since no settlement carries it by name. */
export type PaymentOfSum = {
  mid: string
  day: string
  orderId: string
  merchantOrderId: string | null
  utr: string
  paid: Paise
}

/** `rests` is what the acquirer has added or deducted beside the rows. */
export type Payout = { rows: PayoutRow[]; payments: PaymentOfSum[]; rests: Rest[] }

type Sought = { payout: string; mid?: string | undefined; pid?: string | undefined; now: Date }

/**
 * The settlements whose UTR or bank reference is `payout`, with their payments; for those that carry none, the payments that
 * were due on their day. All merchants' unless `mid` or `pid` is given: then the rest is left out of a payout that others share.
 */
export async function findPayout(db: Database, asked: Sought): Promise<Payout> {
  const read = inSnapshot(db, asked.now, (snapshot) => readPayout(snapshot, asked))
  const { value } = await read.next()
  await read.return(undefined)
  return value as Payout
}

async function* readPayout(snapshot: Snapshot, { payout, mid, pid }: Sought): AsyncGenerator<Payout> {
  const { bankDayFrom, previousBankDay } = snapshot.bankDays
  const references = formsOf(unpadded(payout))
  const { rows } = await snapshot.client.query<PayoutRow>(ROWS, [references, snapshot.known, mid, pid])
  const payments: PaymentOfSum[] = []
  const sums = rows.filter(({ orderId, status }) => orderId === null && status === 'SUCCESS')
  for (const { mid, day } of new Map(sums.map((row) => [`${row.mid} ${bankDayFrom(row.day)}`, row])).values()) {
    const due = bankDayFrom(day)
    const days = { from: previousBankDay(due), to: addDays(due, -1) }
    const { settled, items } = await createLedger(snapshot, mid).readDays({ from: days.from, to: day }, days)
    if (!settled.some((one) => one.day === day && one.unnamedRows > 0)) continue
    for await (const batch of items) {
      const utrs = batch.flatMap(({ utr, waitsOn }) => (waitsOn === undefined ? [] : [utr]))
      const unsettled = await snapshot.client.query<PaymentOfSum>(UNSETTLED, [mid, utrs])
      payments.push(...unsettled.rows)
    }
  }
  const rests = await readRests(snapshot, { references })
  const isOfAsked = (rest: Rest) =>
    mid === undefined && pid === undefined ? true : rows.some((row) => row.mid === rest.mid)
  yield { rows, payments, rests: rests.filter(isOfAsked) }
}

const ROWS = `
  select s.mid, ${textOf(dayOf('s.at'))} as day, i.order_id as "orderId", i.merchant_order_id as "merchantOrderId", s.key as utr, s.utr as "settlementUtr",
         s.status, i.amount_paise as paid, s.gross_paise as gross,
         coalesce(s.fee_paise, 0) as fee, coalesce(s.tax_paise, 0) as tax, s.amount_paise as net
    from (${settlementsOfAll(`(bank_reference_number = any ($1) or utr = any ($1) or utr in (upper($1[1]), lower($1[1])))
             and ($3::text is null or mid = $3)
             and ($4::text is null or mid in (select mid from partner_merchants where pid = $4))`)}) s
    left join payment_intents i on i.mid = s.mid and i.utr = s.key collate "default"
   order by s.mid, s.at, s.utr`

/** Payments by their UTRs. */
const UNSETTLED = `
  select p.mid, ${textOf('p.day')} as day, p.order_id as "orderId", i.merchant_order_id as "merchantOrderId", item as utr,
         p.amount_paise as paid
    from ledger p
    left join payment_intents i on i.mid = $1 and i.order_id = p.order_id
   where p.mid = $1 and kind = 'payment' and item = any ($2)
   order by p.day, p.order_id`
