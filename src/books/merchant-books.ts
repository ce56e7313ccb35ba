import type { PoolClient } from 'pg'
import { startOfDay } from '../ist.ts'
import { orderIdsBegin } from '../payments/intent.ts'
import { EXPIRY_GRACE_MINUTES, LONGEST_EXPIRY_MINUTES } from '../payments/outcome.ts'
import { addDays } from './bank-days.ts'
import type { FoundDifference } from './differences.ts'

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

/** Days are `YYYY-MM-DD`, IST, both included. */
export type Days = { from: string; to: string }

export type MerchantBooks = ReturnType<typeof createMerchantBooks>

/** An order is paid within its time and the grace, or late, which is an exception. The hour is for clocks that differ. */
const PAID_WITHIN_MS = (LONGEST_EXPIRY_MINUTES + EXPIRY_GRACE_MINUTES + 60) * 60_000
/** A settlement of a payment may be dated by its day alone, so that it seems to come before it. */
const SETTLED_BEFORE = `interval '1 day'`
/** How far around the days settlements show whether the bank's file is by payment. Longer than banks are ever closed. */
const LOOKED_AROUND_DAYS = 7
/** Rows of a long answer that are in memory at once. */
const FETCHED_ROWS = 1_000
/** Settlements that tell how a merchant's file is made, where it has none around the days. */
const NEWEST_ROWS = 100

const IST = `interval '330 minutes'`
const dayOf = (moment: string) => `(${moment} at time zone ${IST})::date`
const textOf = (day: string) => `to_char(${day}, 'YYYY-MM-DD')`
const paiseOf = (rupees: string) => `(${rupees} * 100)::numeric(40, 0)`

/**
 * The payments of merchant $1 from day $2 to day $3; $4 and $5 limit their orderIds, which begin with the time of the order.
 * A payment counts on the day on which the bank says that it was made, which cannot be before the order or after we were told.
 */
const PAID = `
  with paid as (
    select o.order_id, upper(i.utr) collate "C" as utr, i.amount * 100 + i.paise as paid, i.created_at, c.reason,
           ${dayOf('greatest(i.created_at, least(coalesce(c.paid_at, c.changed_at), c.changed_at))')} as day
      from (select order_id
              from payment_intents
             where mid = $1 and order_id >= $4 and order_id < $5 and status = 'SUCCESS'
             union all
            select distinct order_id
              from payment_exceptions
             where mid = $1 and order_id < $4 and kind = 'late payment') o
      join payment_intents i on i.mid = $1 and i.order_id = o.order_id
      join payment_changes c on c.mid = $1 and c.order_id = o.order_id and c.status = 'SUCCESS'
  )`

/** The settlements of merchant $1, with the UTR of the payment that each one carries. */
const SETTLEMENT = `
  select utr, amount, fee, tax, status, initiated_at, upper(coalesce(payment_utr, utr)) as key,
         amount + coalesce(fee, 0) + coalesce(tax, 0) as gross
    from settlements
   where mid = $1`

/** The settlements that may carry one of the payments `paid`. */
const SETTLED_SINCE = `
  ${SETTLEMENT} and initiated_at >= (select min(created_at) - ${SETTLED_BEFORE} from paid)`

const IN_DAYS = `day >= $2::date and day <= $3::date`

/** What is known of one merchant's payments and payouts. `client` is in a transaction, whose snapshot all answers share. */
export function createMerchantBooks(client: PoolClient, mid: string) {
  const boundsOf = ({ from, to }: Days) => ({
    begin: startOfDay(from),
    end: startOfDay(addDays(to, 1)),
    firstOrderId: orderIdsBegin(new Date(startOfDay(from).getTime() - PAID_WITHIN_MS)),
    endOrderId: orderIdsBegin(startOfDay(addDays(to, 1))),
  })
  /** The values of PAID. */
  const ofPayments = (days: Days) => {
    const { firstOrderId, endOrderId } = boundsOf(days)
    return [mid, days.from, days.to, firstOrderId, endOrderId]
  }
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
        ofPayments(days),
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
        ofPayments(days),
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

    /**
     * Payments by payment against settlements: payments of the days, at the latest of `lastOverdue`, that no settlement
     * carries, and settlements of the days that carry no payment, one that was settled before, or another amount. By day.
     */
    async *differences(days: Days, lastOverdue: string): AsyncGenerator<FoundDifference> {
      const { begin, end } = boundsOf(days)
      const rows = rowsOf<Texts<FoundDifference>>(
        client,
        `${PAID}, settled as (
           select key, max(initiated_at) as settled_at from (${SETTLED_SINCE}) s where status = 'SUCCESS' group by key
         ), failed as (
           select distinct on (key) key, utr, status, initiated_at
             from (${SETTLED_SINCE}) s
            where status <> 'SUCCESS'
            order by key, initiated_at desc, utr
         ), unsettled as (
           select p.*, f.utr as failed_utr, f.status as failed_status, f.initiated_at as failed_at
             from paid p
             left join settled s on s.key = p.utr and s.settled_at >= p.created_at - ${SETTLED_BEFORE}
             left join failed f on f.key = p.utr
            where ${IN_DAYS} and day <= $6::date and s.key is null
         ), matched as materialized (
           select s.*, i.order_id, i.created_at, (i.amount * 100 + i.paise) as paid
             from (${SETTLEMENT} and initiated_at >= $7 and initiated_at < $8) s
             left join payment_intents i on i.mid = $1 and i.utr = s.key collate "default"
                                         and s.initiated_at >= i.created_at - ${SETTLED_BEFORE}
            where s.status = 'SUCCESS'
         ), first as (
           -- Of the payment of an order, the first that can be of it.
           (select distinct on (s.key) s.key, m.order_id, s.utr, s.initiated_at
              from (${SETTLEMENT}
                      and initiated_at >= (select min(created_at) - ${SETTLED_BEFORE} from matched)
                      and initiated_at < $8) s
              join matched m on m.key = s.key and s.initiated_at >= m.created_at - ${SETTLED_BEFORE}
             where s.status = 'SUCCESS'
             order by s.key, s.initiated_at, s.utr)
            union all
           -- Of an unknown payment, the first of all times, by an index each.
           (select distinct on (m.key) m.key, null, s.utr, s.initiated_at
              from matched m
             cross join lateral (
                   select utr, initiated_at
                     from settlements
                    where mid = $1 and utr in (m.utr, m.key, lower(m.key)) and payment_utr is null and status = 'SUCCESS'
                    union all
                   select utr, initiated_at
                     from settlements
                    where mid = $1 and payment_utr = m.key and status = 'SUCCESS') s
             where m.order_id is null
             order by m.key, s.initiated_at, s.utr)
         ), told as (
           select distinct on (upper(e.utr)) upper(e.utr) collate "C" as utr, e.mid, e.kind, e.order_id, e.exception_id,
                  e.amount, r.reason
             from payment_exceptions e
             left join payment_resolutions r on r.mid = e.mid and r.exception_id = e.exception_id
            where e.mid in ($1, '') and e.utr <> '' and e.status in ('SUCCESS', '') and e.kind <> 'late payment'
              and upper(e.utr) collate "C" in (select key from matched where order_id is null)
            -- Those of a merchant's order say more than one of no known order.
            order by upper(e.utr), e.mid = '', r.reason is not null, e.received_at
         ), taken_back as (
           select distinct on (e.order_id) e.order_id, e.exception_id, e.kind, r.reason
             from payment_exceptions e
             left join payment_resolutions r on r.mid = e.mid and r.exception_id = e.exception_id
            where e.mid = $1 and e.kind = 'failure after success'
            order by e.order_id, r.reason is not null, e.received_at
         ), difference as (
           select day, 'not settled' as kind, order_id, utr, null as settlement_utr, paid, null::numeric as settled,
                  null::numeric as fee, null::numeric as tax, failed_utr as other_utr, failed_status as other_status,
                  ${dayOf('failed_at')} as other_day, b.exception_id, b.kind as exception_kind, b.reason as resolution
             from unsettled
             left join taken_back b using (order_id)
            union all
           select ${dayOf('m.initiated_at')},
                  case when f.utr <> m.utr then 'settled twice'
                       when m.order_id is null then 'no known payment'
                       when coalesce(m.fee, m.tax) is not null then 'fee differs'
                       else 'amount differs' end,
                  coalesce(m.order_id, nullif(t.order_id, '')), m.key, m.utr, m.paid, ${paiseOf('m.gross')},
                  ${paiseOf('m.fee')}, ${paiseOf('m.tax')}, f.utr, 'SUCCESS', ${dayOf('f.initiated_at')},
                  t.exception_id, t.kind,
                  -- What a person has resolved is the money of the exception, once, and at the merchant who got it first.
                  case when t.reason is not null and f.utr = m.utr and m.gross <= t.amount
                            and (t.mid <> '' or not exists (
                                  select
                                    from merchants o
                                    join settlements s on s.mid = o.mid
                                   where o.mid <> $1 and s.status = 'SUCCESS' and s.payment_utr is null
                                     and s.utr in (m.utr, m.key, lower(m.key)) and (s.initiated_at, o.mid) < (m.initiated_at, $1)
                                   union all
                                  select
                                    from merchants o
                                    join settlements s on s.mid = o.mid
                                   where o.mid <> $1 and s.status = 'SUCCESS' and s.payment_utr = m.key
                                     and (s.initiated_at, o.mid) < (m.initiated_at, $1)))
                       then t.reason end
             from matched m
             left join first f on f.key = m.key and f.order_id is not distinct from m.order_id
             left join told t on m.order_id is null and t.utr = m.key
            where m.order_id is null or f.utr <> m.utr or m.gross * 100 <> m.paid
         )
         select $1 as mid, ${textOf('day')} as day, kind, order_id as "orderId", utr, settlement_utr as "settlementUtr", paid,
                settled, fee, tax, other_utr as "otherUtr", other_status as "otherStatus",
                ${textOf('other_day')} as "otherDay", exception_id as "exceptionId", exception_kind as "exceptionKind",
                resolution
           from difference
          order by difference.day, kind, order_id, settlement_utr`,
        [...ofPayments(days), lastOverdue, begin, end],
      )
      for await (const { paid, settled, fee, tax, ...row } of rows) {
        yield { ...row, paid: toPaise(paid), settled: toPaise(settled), fee: toPaise(fee), tax: toPaise(tax) }
      }
    },

    /** What nobody has resolved: exceptions that came on these days or are of an order that was made on them. */
    async *openExceptions(days: Days): AsyncGenerator<OpenException> {
      const { begin, end, endOrderId } = boundsOf(days)
      const rows = rowsOf<Texts<OpenException>>(
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
      for await (const { amount, ...row } of rows) yield { ...row, amount: toPaise(amount) }
    },
  }
}

/** As the driver gives them: what has more digits than a number holds comes as text. */
type Texts<T> = { [Key in keyof T]: bigint extends T[Key] ? Exclude<T[Key], bigint> | string : T[Key] }

const toPaise = (text: string | null) => (text === null ? null : BigInt(text))

/** The rows of a query, however many there are, of which few are in memory at once. One at a time on a client. */
async function* rowsOf<Row extends object>(client: PoolClient, query: string, values: unknown[]): AsyncGenerator<Row> {
  await client.query(`declare found no scroll cursor for ${query}`, values)
  for (;;) {
    const { rows } = await client.query<Row>(`fetch ${FETCHED_ROWS} from found`)
    yield* rows
    if (rows.length < FETCHED_ROWS) break
  }
  await client.query('close found')
}
