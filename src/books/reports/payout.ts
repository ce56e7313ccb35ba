import type { Database } from '../../platform/db/pool.ts'
import { plannedQuery } from '../../platform/db/query.ts'
import { formsOf, unpadded } from '../../platform/fields.ts'
import type { Paise } from '../../platform/money.ts'
import { addDays } from '../ledger/bank-days.ts'
import { readFacts } from '../reading/facts.ts'
import { readMerchant } from '../reading/merchant.ts'
import { type Rest, readRests } from '../reading/rests.ts'
import { readSnapshot, type Snapshot } from '../reading/snapshot.ts'

/** One settlement line in a payout, with its payment. Amounts are in paise; `gross` includes fee and tax. */
export type PayoutRow = {
  mid: string
  day: string
  /** Null if the line names no known payment, for example because the line is a total of many payments. */
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
  /** Amount in the bank statement: gross minus fee and tax. */
  net: Paise
}

/** A payment that no settlement line names and that is therefore part of a payout by totals. */
type PaymentOfSum = {
  mid: string
  day: string
  orderId: string
  merchantOrderId: string | null
  utr: string
  paid: Paise
}

/** A payout. `rests` are amounts that the acquirer added or deducted in addition to settlement lines. */
export type Payout = { rows: PayoutRow[]; payments: PaymentOfSum[]; rests: Rest[] }

type Criteria = { payout: string; mid?: string | undefined; pid?: string | undefined; now: Date }

/**
 * Returns the settlement lines whose UTR or bank reference is `payout`, with their payments. For lines without a
 * payment, returns the payments that were to be paid out on the day of the line. `mid` or `pid` limits the merchants,
 * and excludes the part of a payout that belongs to other merchants.
 */
export const findPayout = (db: Database, requested: Criteria): Promise<Payout> =>
  readSnapshot(db, requested.now, (snapshot) => readPayout(snapshot, requested))

async function readPayout(snapshot: Snapshot, { payout, mid, pid }: Criteria): Promise<Payout> {
  const { bankDayFrom, previousBankDay } = snapshot.bankDays
  const references = formsOf(unpadded(payout))
  const rows = await readRows(snapshot.client, { references, known: snapshot.known, mid, pid })
  const payments: PaymentOfSum[] = []
  const sums = rows.filter(({ orderId, status }) => orderId === null && status === 'SUCCESS')
  for (const { mid, day } of new Map(sums.map((row) => [`${row.mid} ${bankDayFrom(row.day)}`, row])).values()) {
    const pending = bankDayFrom(day)
    const days = { from: previousBankDay(pending), to: addDays(pending, -1) }
    const { facts, uneven, settledLater } = await readFacts(await readMerchant(snapshot, mid), days)
    if (!facts.settled.some((one) => one.day === day && one.unnamedRows > 0)) continue
    const waiting = uneven.flatMap((of) => (of.isWaiting ? of.items.split(' ') : []))
    const utrs = waiting.filter((utr) => !settledLater.has(utr))
    payments.push(...(await readUnsettled(snapshot.client, { mid, utrs })))
  }
  const rests = await readRests(snapshot, { references })
  const isRequested = (rest: Rest) =>
    mid === undefined && pid === undefined ? true : rows.some((row) => row.mid === rest.mid)
  return { rows, payments, rests: rests.filter(isRequested) }
}

type Filter = { references: string[]; known: Date; mid: string | undefined; pid: string | undefined }

// Starts from `merchants`, because the indexes of `settlements` begin with `mid`. A payout has the lines that are valid
// now, so PostgreSQL need not read `settlement_versions`.
const readRows = plannedQuery<PayoutRow, Filter>(`
  select s.mid, s.day, i.order_id, i.merchant_order_id, s.item as utr, s.utr as settlement_utr, s.status, i.amount_paise as paid,
         s.gross_paise as gross, coalesce(s.fee_paise, 0) as fee, coalesce(s.tax_paise, 0) as tax, s.net_paise as net
    from merchants m
    join settlement_lines s on s.mid = m.mid
    left join payments p on p.mid = s.mid and p.utr = s.item and p.kind <> 'second'
    left join payment_intents i on i.mid = p.mid and i.order_id = p.order_id
   where (s.reference = any (:references) or s.utr = any (:references) or s.utr in (upper(:references[1]), lower(:references[1])))
     and (:mid::text is null or s.mid = :mid)
     and (:pid::text is null or s.mid in (select mid from partner_merchants where pid = :pid))
     and (s.recorded_at <= :known) is true and s.replaced_by_import_id is null
   order by s.mid, s.at, s.utr`)

const readUnsettled = plannedQuery<PaymentOfSum, { mid: string; utrs: string[] }>(`
  select p.mid, p.day, p.order_id, i.merchant_order_id, item as utr, p.amount_paise as paid
    from ledger p
    left join payment_intents i on i.mid = :mid and i.order_id = p.order_id
   where p.mid = :mid and kind in ('payment', 'second') and item = any (:utrs)
   order by p.day, p.order_id`)
