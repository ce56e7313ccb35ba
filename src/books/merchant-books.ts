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
  PAID,
  paiseOf,
  SETTLED_BEFORE,
  SETTLED_SINCE,
  SETTLEMENT,
  type Texts,
  textOf,
  toPaise,
  valuesOfPaid,
} from './paid-and-settled.ts'

/** What was paid on one day, in paise, and how many of the payments were learned from a day file only. */
export type PaidDay = { day: string; count: number; sum: bigint; fromDayFile: number }

/** What was settled on one day, in paise. `gross` is with fee and tax. */
export type SettledDay = { day: string; count: number; gross: bigint; fee: bigint; tax: bigint }

/** A report that waits for a person. `mid` is empty where no order is known, `amount` in paise, null of what is unreadable. */
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

/** How far around the days settlements show whether the bank's file is by payment. Longer than banks are ever closed. */
const LOOKED_AROUND_DAYS = 7
/** Settlements that tell how a merchant's file is made, where it has none around the days. */
const NEWEST_ROWS = 100

/** What is known of one merchant's payments and payouts. `client` is in a transaction, whose snapshot all answers share. */
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
    /** Whether there may be anything to tell, in one statement: of many merchants most have nothing on a day. */
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
     * Whether the bank's file names payments: one settlement around the days that says which one it is of, or carries its UTR,
     * decides. Where there is none around them, the newest ones do.
     */
    async isByPayment(days: Days): Promise<boolean> {
      const { rows } = await client.query<{ named: boolean }>(
        `select exists (
                  select from settlements
                   where mid = $1 and initiated_at >= $2 and initiated_at < $3
                     and payment_utr is not null and status = 'SUCCESS')
             or exists (
                  select
                    from settlements s
                    join payment_intents i on i.mid = $1 and i.utr = upper(s.utr) collate "default"
                   where s.mid = $1 and s.initiated_at >= $2 and s.initiated_at < $3)
             or not exists (
                  select from settlements where mid = $1 and initiated_at >= $2 and initiated_at < $3)
                and exists (
                  select
                    from (select utr, payment_utr
                            from settlements
                           where mid = $1 and status = 'SUCCESS'
                           order by initiated_at desc
                           limit ${NEWEST_ROWS}) s
                   where s.payment_utr is not null
                      or exists (
                           select from payment_intents i where i.mid = $1 and i.utr = upper(s.utr) collate "default")
                ) as named`,
        ofSettlements(around(days)),
      )
      return rows[0]?.named ?? false
    },

    async paidDays(days: Days): Promise<PaidDay[]> {
      const { rows } = await client.query<Texts<PaidDay>>(
        `${PAID}
         select ${textOf('day')} as day, count(*)::integer as count, sum(paid) as sum,
                count(*) filter (where reason = 'day file')::integer as "fromDayFile"
           from paid
          where ${IN_DAYS}
          group by paid.day
          order by paid.day`,
        valuesOfPaid(mid, days),
      )
      return rows.map(({ sum, ...row }) => ({ ...row, sum: BigInt(sum) }))
    },

    /** By day, the sum of the payments that no settlement carries. */
    async unsettledDays(days: Days): Promise<Map<string, bigint>> {
      const { rows } = await client.query<{ day: string; sum: string }>(
        `${PAID}, settled as (
           select key, max(initiated_at) as settled_at from (${SETTLED_SINCE}) s where status = 'SUCCESS' group by key
         )
         select ${textOf('p.day')} as day, sum(p.paid) as sum
           from paid p
           left join settled s on s.key = p.utr and s.settled_at >= p.created_at - ${SETTLED_BEFORE}
          where ${IN_DAYS} and s.key is null
          group by p.day`,
        valuesOfPaid(mid, days),
      )
      return new Map(rows.map(({ day, sum }) => [day, BigInt(sum)]))
    },

    async settledDays(days: Days): Promise<SettledDay[]> {
      const { rows } = await client.query<Texts<SettledDay>>(
        `select ${textOf('day')} as day, count(*)::integer as count, ${paiseOf('sum(gross)')} as gross,
                ${paiseOf('coalesce(sum(fee), 0)')} as fee, ${paiseOf('coalesce(sum(tax), 0)')} as tax
           from (select s.*, ${dayOf('initiated_at')} as day
                   from (${SETTLEMENT} and initiated_at >= $2 and initiated_at < $3) s
                  where status = 'SUCCESS') s
          group by s.day
          order by s.day`,
        ofSettlements(days),
      )
      return rows.map(({ gross, fee, tax, ...row }) => ({
        ...row,
        gross: BigInt(gross),
        fee: BigInt(fee),
        tax: BigInt(tax),
      }))
    },

    differences: (days: Days, lastOverdue: string) => findDifferences(client, mid, days, lastOverdue),

    /** What nobody has resolved: exceptions that came on these days or are of an order that was made on them. */
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
      for await (const rows of batches) {
        yield* rows.map(({ amount, ...row }) => ({ ...row, amount: toPaise(amount) }))
      }
    },
  }
}
