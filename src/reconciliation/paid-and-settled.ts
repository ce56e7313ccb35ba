import { startOfDay } from '../ist.ts'
import { addDays } from '../ledger/bank-days.ts'
import { orderIdsBegin } from '../payments/intent.ts'
import { EXPIRY_GRACE_MINUTES, LONGEST_EXPIRY_MINUTES } from '../payments/outcome.ts'

/** Days are `YYYY-MM-DD`, IST, both included. */
export type Days = { from: string; to: string }

/**
 * Longest time from an order to its payment: expiry, grace, and an hour for clocks that differ. A later payment is an
 * exception.
 */
const PAID_WITHIN_MS = (LONGEST_EXPIRY_MINUTES + EXPIRY_GRACE_MINUTES + 60) * 60_000
/** Time by which a settlement may seem to come before its payment: it may be dated by its day alone. */
export const SETTLED_BEFORE = `interval '1 day'`

const IST = `interval '330 minutes'`
export const dayOf = (moment: string) => `(${moment} at time zone ${IST})::date`
export const textOf = (day: string) => `to_char(${day}, 'YYYY-MM-DD')`
export const paiseOf = (rupees: string) => `((${rupees}) * 100)::numeric(40, 0)`

/** Orders that were made long before they were paid. */
const PAID_LATE = `
  select order_id
    from payments
   where mid = $1 and order_id < $5 and kind <> 'second'
     and coalesce(paid_at, heard_at) >= $3::date::timestamp at time zone ${IST}
     and coalesce(paid_at, heard_at) < ($4::date + 1)::timestamp at time zone ${IST}`

/**
 * The payments of merchant $1, as they were known at $2, from day $3 to day $4; $5 and $6 limit their orderIds, which
 * begin with the time of the order. A payment counts on the day on which the bank says that it was made, which cannot
 * be before the order or after we were told.
 */
export const PAID = `
  with paid as (
    select i.order_id, upper(i.utr) collate "C" as utr, i.amount * 100 + i.paise as paid, i.created_at, c.reason,
           ${dayOf('greatest(i.created_at, least(coalesce(c.paid_at, c.changed_at), c.changed_at))')} as day
      from (select order_id, utr, amount, paise, created_at
              from payment_intents
             where mid = $1 and order_id >= $5 and order_id < $6 and status = 'SUCCESS'
             union all
            select order_id, utr, amount, paise, created_at
              from payment_intents
             where mid = $1 and order_id in (${PAID_LATE})) i
      join payment_changes c
        on c.mid = $1 and c.order_id = i.order_id and c.status = 'SUCCESS' and c.changed_at <= $2
  )`

/** The UTR of the payment that a settlement carries. It has an index. */
export const CARRIED_UTR = 'upper(coalesce(payment_utr, utr))'

/** The settlements of merchant $1 that meet `condition`. */
export const settlementsKnown = (condition: string) => settlementsOfAll(`mid = $1 and ${condition}`)

/**
 * The settlements of all merchants that meet `condition`, as they were known at $2, with the UTR of the payment that each
 * one carries.
 */
export const settlementsOfAll = (condition: string) => {
  const from = (table: string) => `
    select mid, utr, amount, fee, tax, status, initiated_at, payment_utr, import_id, bank_reference_number,
           ${CARRIED_UTR} as key,
           amount + coalesce(fee, 0) + coalesce(tax, 0) as gross
      from ${table}
     where (known_at is null or known_at <= $2) and ${condition}`
  return `${from('settlements')} union all ${from('settlement_versions')} and replaced_at > $2`
}

/** Condition for settlements that pay something out. A negative one takes money back. */
export const PAID_OUT = `status = 'SUCCESS' and amount >= 0`

/**
 * The days that were read last: sums by day and by the day of the last settlement; and each payment that no settlement
 * carries, with its order_id.
 */
export const CREATE_READ_DAYS = `
  create temporary table read_days (
    day date, settled_day date, count integer, paid bigint, from_day_file integer, order_id text, utr text collate "C",
    created_at timestamptz
  ) on commit drop`

/** What read_days holds, in one statement: to find what is not settled again took a fifth of the whole comparison. */
export const READ_DAYS = `${PAID}, settled as (
    select key, max(initiated_at) as settled_at
      from (${settlementsKnown(`${PAID_OUT} and initiated_at >= (select min(created_at) - ${SETTLED_BEFORE} from paid)`)}) s
     group by key
  ), each_paid as (
    select p.day, ${dayOf('s.settled_at')} as settled_day, p.paid, p.reason, p.order_id, p.utr, p.created_at
      from paid p
      left join settled s on s.key = p.utr and s.settled_at >= p.created_at - ${SETTLED_BEFORE}
     where p.day >= $3::date and p.day <= $4::date
  )
  select day, settled_day, count(*)::integer as count, sum(paid)::bigint as paid,
         count(*) filter (where reason = 'day file')::integer as from_day_file, null as order_id,
         null::text collate "C" as utr, null::timestamptz as created_at
    from each_paid
   group by day, settled_day
   union all
  select day, null, 1, paid, 0, order_id, utr, created_at from each_paid where settled_day is null`

/** The sums of `readDays`, by day. */
export const sumsOf = (readDays: string) => `
  select ${textOf('day')} as day, ${textOf('settled_day')} as "settledDay", count, paid, from_day_file as "fromDayFile"
    from ${readDays}
   where order_id is null
   order by read_days.day`

/** READ_DAYS within a statement with parameters of its own, from $3 to $9: its values from the third on follow them. */
export const READ_DAYS_WITHIN = READ_DAYS.replace(/\$([3-6])/g, (_, number) => `$${Number(number) + 7}`)

/** Begin and end of `days`, and the range of orderIds whose payments may be made on them. */
export const boundsOf = ({ from, to }: Days) => ({
  begin: startOfDay(from),
  end: startOfDay(addDays(to, 1)),
  firstOrderId: orderIdsBegin(new Date(startOfDay(from).getTime() - PAID_WITHIN_MS)),
  endOrderId: orderIdsBegin(startOfDay(addDays(to, 1))),
})

/** The values of PAID. */
export function valuesOfPaid(mid: string, known: Date, days: Days) {
  const { firstOrderId, endOrderId } = boundsOf(days)
  return [mid, known, days.from, days.to, firstOrderId, endOrderId]
}

/** A row as the driver returns it: columns with more digits than a number holds are text. */
export type Texts<T> = { [Key in keyof T]: bigint extends T[Key] ? Exclude<T[Key], bigint> | string : T[Key] }

/** The row with these of its columns in paise. */
export function withPaise<T extends object>(row: Texts<T>, ...names: (keyof T & string)[]): T {
  const toPaise = (text: unknown) => (text === null ? null : BigInt(text as string))
  return { ...row, ...Object.fromEntries(names.map((name) => [name, toPaise(row[name])])) } as T
}
