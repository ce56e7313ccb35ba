import type { Queryable } from '../db/pool.ts'

/** Creates the table of names that `namePayments` fills. */
export async function preparePaymentNames(client: Queryable): Promise<void> {
  await client.query('create temporary table payment_names (line bigint, utr text) on commit drop')
}

/**
 * Gives the rows of `incoming` that name a payment by its bank reference the UTR under which that payment is stored, so that
 * everything else compares one name. A reference that several payments have names none of them. Joins, and a table for the result: Citus updates no temporary table from a distributed one.
 */
export async function namePayments(client: Queryable): Promise<void> {
  await client.query(
    `insert into payment_names
     select i.line, min(p.utr)
       from incoming i
       join payments p on p.mid = i.mid and p.bank_reference = upper(coalesce(i.payment_utr, i.utr)) collate "C"
       left join payments taken on taken.mid = p.mid and taken.utr = p.bank_reference
      where taken.utr is null
      group by i.line
     having count(*) = 1`,
  )
  await client.query(
    `with named as (
       delete from payment_names returning line, utr
     )
     update incoming i set payment_utr = named.utr from named where named.line = i.line`,
  )
}
