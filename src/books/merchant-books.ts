import type { PoolClient } from 'pg'
import { batchesOf } from '../db/batches.ts'
import { orderIdsBegin } from '../payments/intent.ts'
import { addDays } from './bank-days.ts'
import { findDifferences } from './find-differences.ts'
import {
  boundsOf,
  type Days,
  dayOf,
  IN_DAYS,
  PAID_AND_SETTLED,
  paiseOf,
  SETTLEMENT,
  type Texts,
  textOf,
  valuesOfPaid,
  WITH_SETTLED,
  withPaise,
} from './paid-and-settled.ts'

/** What was paid on one day, in paise; `open` is what no settlement carries. */
export type PaidDay = { day: string; paidCount: number; paid: bigint; fromDayFile: number; open: bigint }

/** What was settled on one day, in paise. `gross` is with fee and tax. */
export type SettledDay = { day: string; settledCount: number; gross: bigint; fee: bigint; tax: bigint }

/**
 * A report that waits for a person. `mid` is empty where no order is known. `amount` is in paise, and null for an
 * unreadable notification.
 */
export type OpenException = {
  mid: string
  exceptionId: string
  kind: string
  orderId: string
  utr: string
  amount: bigint | null
  receivedAt: Date
}

export type MerchantBooks = ReturnType<typeof createMerchantBooks>

/**
 * Days before and after the asked ones whose settlements show whether the bank's file names payments. Banks are never
 * closed for so long.
 */
const LOOKED_AROUND_DAYS = 7
/** Newest settlements that decide it instead, for a merchant with none around the days. */
const NEWEST_ROWS = 100

/** Queries of one merchant's payments and payouts. `client` is in a transaction, so all of them see one snapshot. */
export function createMerchantBooks(client: PoolClient, mid: string) {
  const ofSettlements = (days: Days) => {
    const { begin, end } = boundsOf(days)
    return [mid, begin, end]
  }
  const around = ({ from, to }: Days) => ({
    from: addDays(from, -LOOKED_AROUND_DAYS),
    to: addDays(to, LOOKED_AROUND_DAYS),
  })

  return {
    mid,

    /**
     * True when the merchant may have something to report. One statement, because most merchants have nothing on a day.
     */
    async isActive(days: Days): Promise<boolean> {
      const { begin, end, firstOrderId, endOrderId } = boundsOf(around(days))
      const { rows } = await client.query<{ active: boolean }>(
        `select exists (select from settlements where mid = $1 and initiated_at >= $2 and initiated_at < $3)
             or exists (select from payment_exceptions where mid = $1)
             or exists (
                  select from payment_intents
                   where mid = $1 and order_id >= $4 and order_id < $5 and status = 'SUCCESS') as active`,
        [mid, begin, end, firstOrderId, endOrderId],
      )
      return rows[0]?.active ?? false
    },

    /**
     * True when the bank's file names payments: at least one settlement around the days names its payment, or carries a
     * payment's UTR. A merchant without settlements around the days is judged by the newest ones.
     */
    async isByPayment(days: Days): Promise<boolean> {
      const { rows } = await client.query<{ named: boolean }>(
        `with around as not materialized (
           select utr, payment_utr, status
             from settlements
            where mid = $1 and initiated_at >= $2 and initiated_at < $3
         ), looked_at as not materialized (
           select utr, payment_utr, status from around
            union all
           (select utr, payment_utr, status
              from settlements
             where mid = $1 and status = 'SUCCESS' and not exists (select from around)
             order by initiated_at desc
             limit ${NEWEST_ROWS})
         )
         select exists (select from looked_at where payment_utr is not null and status = 'SUCCESS')
             or exists (
                  select
                    from looked_at s
                    join payment_intents i on i.mid = $1 and i.utr = upper(s.utr) collate "default") as named`,
        ofSettlements(around(days)),
      )
      return rows[0]?.named ?? false
    },

    async paidDays(days: Days): Promise<PaidDay[]> {
      const { rows } = await client.query<Texts<PaidDay>>(
        `${PAID_AND_SETTLED}
         select ${textOf('day')} as day, count(*)::integer as "paidCount", sum(p.paid) as paid,
                count(*) filter (where reason = 'day file')::integer as "fromDayFile",
                coalesce(sum(p.paid) filter (where s.key is null), 0) as open
           from ${WITH_SETTLED}
          where ${IN_DAYS}
          group by p.day
          order by p.day`,
        valuesOfPaid(mid, days),
      )
      return rows.map((row) => withPaise<PaidDay>(row, 'paid', 'open'))
    },

    async settledDays(days: Days): Promise<SettledDay[]> {
      const { rows } = await client.query<Texts<SettledDay>>(
        `select ${textOf('day')} as day, count(*)::integer as "settledCount", ${paiseOf('sum(gross)')} as gross,
                ${paiseOf('coalesce(sum(fee), 0)')} as fee, ${paiseOf('coalesce(sum(tax), 0)')} as tax
           from (select s.*, ${dayOf('initiated_at')} as day
                   from (${SETTLEMENT} and initiated_at >= $2 and initiated_at < $3) s
                  where status = 'SUCCESS') s
          group by s.day
          order by s.day`,
        ofSettlements(days),
      )
      return rows.map((row) => withPaise<SettledDay>(row, 'gross', 'fee', 'tax'))
    },

    differences: (days: Days, lastOverdue: string) => findDifferences(client, mid, days, lastOverdue),

    /** Open exceptions that came on these days, or are of an order that was made on them. */
    async *openExceptions(days: Days): AsyncGenerator<OpenException> {
      const { begin, end, endOrderId } = boundsOf(days)
      const batches = batchesOf<Texts<OpenException>>(
        client,
        `select mid, exception_id as "exceptionId", kind, order_id as "orderId", utr,
                case when kind <> 'unreadable' then ${paiseOf('amount')} end as amount, received_at as "receivedAt"
           from payment_exceptions e
          where mid = $1
            and (received_at >= $2 and received_at < $3 or mid <> '' and order_id >= $4 and order_id < $5)
            and not exists (
                  select from payment_resolutions r where r.mid = e.mid and r.exception_id = e.exception_id)
          order by received_at, order_id, exception_id`,
        [mid, begin, end, orderIdsBegin(begin), endOrderId],
      )
      for await (const rows of batches) yield* rows.map((row) => withPaise<OpenException>(row, 'amount'))
    },
  }
}
