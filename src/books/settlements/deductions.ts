import type { LineFault } from '../../platform/csv/csv.ts'
import { type Queryable, setLocally } from '../../platform/db/pool.ts'

/**
 * Rows with a negative amount, by which the bank takes a payment back. One that repeats its payment's UTR, which names
 * the payment's own row, is stored under that UTR with `R1`, `R2`, … behind it. Whether it does is known only after the
 * last line, so these rows wait in the temporary table `deductions`.
 */

/** Rows that are stored together. */
const BATCH_ROWS = 10_000

/** Makes the table beside `incoming`, and one for names. */
export async function prepareDeductions(client: Queryable): Promise<void> {
  await client.query('create temporary table deductions (like incoming, primary key (line)) on commit drop')
  await client.query('create temporary table names (line bigint, payment text, utr text) on commit drop')
}

/** Moves negative rows out of `incoming`. Returns their number, and the sum of all rows in paise. */
export async function setDeductionsAside(client: Queryable): Promise<{ deductions: number; amount: bigint }> {
  const { rows } = await client.query<{ deductions: number; paise: string }>(
    `with moved as (
       delete from incoming where amount < 0 returning *
     ), kept as (
       insert into deductions select * from moved
     )
     select (select count(*)::integer from moved) as deductions, trunc(sum(amount) * 100)::text as paise from incoming`,
  )
  const [{ deductions, paise }] = rows as [{ deductions: number; paise: string }]
  return { deductions, amount: BigInt(paise) }
}

/**
 * Gives the rows that repeat their payment's UTR their names. A row that is stored already keeps the name that it has
 * there. Returns a fault for each line whose name would be too long; its row is left out.
 */
export async function nameDeductions(client: Queryable): Promise<LineFault[]> {
  // As in findDifferences: each row is a few look-ups.
  await setLocally(client, ['enable_seqscan = off', 'enable_hashjoin = off', 'enable_mergejoin = off'])
  // Joins, and a table for the result: Citus updates no temporary table from its own, and knows no subquery of each row.
  await client.query(
    `insert into names
     with repeating as (
       select line from deductions where payment_utr = upper(utr)
       union
       select d.line
         from deductions d
         join payments p on p.mid = d.mid and p.utr = upper(d.utr)
        where d.payment_utr is null
       union
       select d.line
         from deductions d
         join settlements s on s.mid = d.mid and s.utr = any (array[d.utr, upper(d.utr), lower(d.utr)])
        where d.payment_utr is null and s.amount >= 0
       except
       -- Stored before its payment was known.
       select d.line
         from deductions d
         join settlements s using (mid, utr, amount, bank_reference_number, initiated_at)
     ), unnamed as (
       select line, mid, upper(utr) as payment, amount, bank_reference_number, initiated_at
         from deductions
         join repeating using (line)
     ), stored as (
       select s.mid, payment, s.amount, s.bank_reference_number, s.initiated_at,
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
       window same as (partition by mid, payment, amount, bank_reference_number, initiated_at)
     )
     select line, payment,
            payment || 'R' || coalesce(number, newest + dense_rank() over (
              partition by mid, payment, number is null order by first_line)) as utr
       from identified
      where line is not null`,
  )
  await client.query(
    `update deductions d set utr = n.utr, payment_utr = n.payment from names n where n.line = d.line and length(n.utr) <= 35`,
  )
  const { rows } = await client.query<{ line: number; length: number }>(
    `delete from deductions d using names n where n.line = d.line and length(n.utr) > 35
     returning d.line::float8 as line`,
  )
  return rows.map(({ line }) => ({ line, text: TOO_LONG }))
}

const TOO_LONG =
  'utr is its payment’s, and with R and a number behind it longer than 35: give the row a utr of its own, and payment_utr'

/**
 * Moves the rows of the next lines after line `after` back into `incoming`. Returns their number, 0 at the end, and the
 * last line.
 */
export async function nextDeductions(client: Queryable, after: number): Promise<{ rowCount: number; last: number }> {
  const { rows } = await client.query<{ rowCount: number; last: number }>(
    `with next as (
       insert into incoming select * from deductions where line > $1 order by line limit ${BATCH_ROWS} returning line
     )
     select count(*)::integer as "rowCount", max(line)::float8 as last from next`,
    [after],
  )
  return rows[0] as { rowCount: number; last: number }
}
