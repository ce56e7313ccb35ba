import type { LineError } from '../../platform/csv/csv.ts'
import type { Queryable } from '../../platform/db/pool.ts'
import { plannedQuery } from '../../platform/db/query.ts'
import { UNPADDED } from '../../platform/fields.ts'
import type { Paise } from '../../platform/money.ts'
import { useIndexes } from './imports.ts'

/**
 * Rows with a negative amount, by which the bank deducts money from a payout, and rows of disputes. A row may repeat its
 * payment's UTR, which already identifies the settlement of the payment, or the id of its dispute. The import stores this
 * row under the same UTR followed by `R1`, `R2` and so on. Only the end of the file shows which rows repeat a UTR, so deductions wait in the temporary table
 * `deductions`.
 */

/** Number of deductions that one batch moves back into `incoming`. */
const BATCH_ROWS = 10_000

/** Creates the temporary table for deductions with the columns of `incoming`. */
export async function prepareDeductions(client: Queryable): Promise<void> {
  await client.query('create temporary table deductions (like incoming, primary key (line)) on commit drop')
}

/**
 * Moves deductions from `incoming` to `deductions`. Returns the number of deductions, and the sum of all rows in the batch
 * in paise, exact up to 2^53.
 */
export const setDeductionsAside = plannedQuery<{ deductions: number; amount: Paise }, object>(`
  with moved as (
    delete from incoming where is_deduction(amount_paise, event) returning *
  ), stored as (
    insert into deductions select * from moved
  )
  select (select count(*) from moved) as deductions, sum(amount_paise)::float8 as amount from incoming`)

/**
 * Assigns its own UTR to each deduction that repeats its payment's UTR. A row that an earlier import stored gets the
 * same UTR again. Returns an error for each line whose UTR would be too long, and removes the line's row.
 */
export async function nameDeductions(client: Queryable): Promise<LineError[]> {
  await useIndexes(client)
  await client.query(NAME)
  return (await REMOVE_LONG(client, {})).map(({ line }) => ({ line, text: TOO_LONG }))
}

const NAME = `
  with repeating as (
    select line from deductions where payment_utr = upper(utr)
    union
    select d.line
      from deductions d
      join payments p on p.mid = d.mid and p.utr = upper(d.utr)
     where d.payment_utr is null
    union
    -- The deduction repeats the bank reference of a payment that is stored under the acquirer's id.
    select d.line
      from deductions d
      join payments p on p.mid = d.mid and p.utr = d.payment_utr and p.bank_reference = ${UNPADDED('upper(d.utr)')}
    union
    select d.line
      from deductions d
      join settlements s on s.mid = d.mid and s.utr = any (array[d.utr, upper(d.utr), lower(d.utr)])
     where d.payment_utr is null and s.amount_paise >= 0
    union
    -- The lines of a dispute may share its id.
    select d.line
      from deductions d
      join disputes x on x.mid = d.mid and x.dispute_id = d.utr
    except
    -- The deduction was stored under its own UTR before its payment was known.
    select d.line
      from deductions d
      join settlements s using (mid, utr, amount_paise, bank_reference_number, initiated_at)
  ), unnamed as (
    select line, mid, upper(utr) as payment, amount_paise, bank_reference_number, initiated_at
      from deductions
      join repeating using (line)
  ), stored as (
    select s.mid, payment, s.amount_paise, s.bank_reference_number, s.initiated_at,
           substr(s.utr, length(payment) + 2)::integer as number
      from (select distinct mid, payment from unnamed) u
      join settlements s on s.mid = u.mid and s.utr > payment || 'R' and s.utr < payment || 'S'
     where substr(s.utr, length(payment) + 2) ~ '^[1-9][0-9]{0,5}$'
  ), identified as (
    select line, mid, payment, min(number) over same as number, min(line) over same as first_line,
           coalesce(max(number) over (partition by mid, payment), 0) as newest
      from (select *, null::integer as number from unnamed
            union all
            select null, * from stored) known
    window same as (partition by mid, payment, amount_paise, bank_reference_number, initiated_at)
  ), named as (
    select line, payment,
           payment || 'R' || coalesce(number, newest + dense_rank() over (
             partition by mid, payment, number is null order by first_line)) as utr
      from identified
     where line is not null
  )
  update deductions d set utr = n.utr, payment_utr = coalesce(d.payment_utr, n.payment) from named n where n.line = d.line`

const REMOVE_LONG = plannedQuery<{ line: number }, object>(
  'delete from deductions where length(utr) > 35 returning line',
)

const TOO_LONG =
  'utr repeats the UTR of its payment, and exceeds 35 characters with the suffix R and a number: give the row its own utr, and payment_utr'

/**
 * Moves the next batch of deductions, from the lines after line `after`, back into `incoming`. Returns the number of
 * moved deductions (0 at the end) and the last moved line.
 */
export const nextDeductions = plannedQuery<{ rowCount: number; last: number }, { after: number }>(`
  with next as (
    insert into incoming select * from deductions where line > :after order by line limit ${BATCH_ROWS} returning line
  )
  select count(*) as row_count, max(line) as last from next`)
