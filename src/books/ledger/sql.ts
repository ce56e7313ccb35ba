import { startOfDay } from '../../platform/time.ts'
import { addDays, type Days } from './bank-days.ts'

const IST = `interval '330 minutes'`
export const dayOf = (moment: string) => `(${moment} at time zone ${IST})::date`
export const textOf = (day: string) => `to_char(${day}, 'YYYY-MM-DD')`
export const paiseOf = (rupees: string) => `((${rupees}) * 100)::numeric(40, 0)`

/**
 * Condition for rows of the view `ledger` that were known at $2. With "is true" PostgreSQL uses no index for it: almost all rows
 * meet it, but where few are left of many, as after an undone import, the planner would read the whole table for each payment.
 */
export const KNOWN = '(recorded_at <= $2) is true and replaced_at > $2'

/** The UTR of the payment that a settlement carries. It has an index. */
export const CARRIED_UTR = 'upper(coalesce(payment_utr, utr))'

/** Condition for settlements that pay something out. A negative one takes money back. */
export const PAID_OUT = `status = 'SUCCESS' and amount >= 0`

/**
 * The settlements of whatever status, of all merchants, that meet `condition`, as they were known at $2; each with the UTR of
 * the payment that it carries (`key`) and the moment at which it counts.
 */
export const settlementsOfAll = (condition: string) => {
  const from = (table: string) => `
    select mid, utr, amount, fee, tax, status, payment_utr, import_id, bank_reference_number, account, initiated_at, known_at,
           coalesce(value_date::timestamp at time zone ${IST}, initiated_at) as at, ${CARRIED_UTR} as key,
           amount + coalesce(fee, 0) + coalesce(tax, 0) as gross
      from ${table}
     where (known_at <= $2) is true and ${condition}`
  return `${from('settlements')} union all ${from('settlement_versions')} and replaced_at > $2`
}

/** The settlements of merchant $1 that meet `condition`. */
export const settlementsKnown = (condition: string) => settlementsOfAll(`mid = $1 and ${condition}`)

/** Condition for settlements `s` that were SUCCESS before a later file said otherwise. */
export const WAS_PAID_OUT = `exists (
  select from settlement_versions v
   where v.mid = $1 and v.utr = s.utr and v.status = 'SUCCESS' and not v.undone and v.replaced_at <= $2)`

/** Condition for exceptions `e` of money that reached the payee, so that a settlement may carry it. */
export const TELLS_OF_MONEY = `
  e.utr <> '' and e.status in ('SUCCESS', '') and e.kind not in ('late payment', 'UTR of another merchant')
  and e.kind not like 'refund%'`

/** The first moment of the days, and the first after them. */
export const boundsOf = ({ from, to }: Days): [Date, Date] => [startOfDay(from), startOfDay(addDays(to, 1))]

/** A row as the driver returns it: columns with more digits than a number holds are text. */
export type Texts<T> = { [Key in keyof T]: bigint extends T[Key] ? Exclude<T[Key], bigint> | string : T[Key] }

/** The row with these of its columns in paise. */
export function withPaise<T extends object>(row: Texts<T>, ...names: (keyof T & string)[]): T {
  const toPaise = (text: unknown) => (text === null ? null : BigInt(text as string))
  return { ...row, ...Object.fromEntries(names.map((name) => [name, toPaise(row[name])])) } as T
}
