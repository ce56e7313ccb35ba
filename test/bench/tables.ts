import type { Database } from '../../src/db/pool.ts'
import { progress } from '../support/workspace.ts'

/** How many merchants the stored rows are spread over. */
export const MERCHANTS = 100

export const merchantId = (number: number) => `M${number}`

/** Merchants M0 to M99. */
export async function addMerchants(db: Database): Promise<void> {
  await db.query(
    `insert into merchants (mid, name, vpa, mcc, dynamic_qr, created_at)
     select 'M' || i, 'Chai Point', 'chaipoint@examplebank', '5814', 'link', now() from generate_series(0, $1::int - 1) i`,
    [MERCHANTS],
  )
}

/** What `fillSettlements` keeps free for rows that are to be found among all the others. */
export const RARE_DAY = '15-08-2026'
export const RARE_ROWS = 30

/**
 * Stores `count` settlements of the merchants in turn. Each merchant has 30 of them on the rare day, spread over the
 * table as the rows of a day are when merchants take turns; the others lie in the 60 days after it.
 */
export function fillSettlements(db: Database, count: number, merchants = MERCHANTS): Promise<void> {
  const perMerchant = count / merchants
  return fill(
    db,
    'settlements',
    count,
    `insert into settlements (mid, utr, amount, bank_reference_number, status, initiated_at, created_at)
     select 'M' || i % ${merchants}, (523500000000 + i)::text, 100 + i % 100000 + 0.5, 'BRN' || i, 'SUCCESS', at, at
       from generate_series(0, ${count} - 1) i,
            lateral (select case when i / ${merchants} % ${Math.floor(perMerchant / RARE_ROWS)} = 0
                                  and i / ${merchants} < ${Math.floor(perMerchant / RARE_ROWS) * RARE_ROWS}
                                 then timestamptz '2026-08-15 06:00:00+00' + interval '1 second' * (i % 3600)
                                 else timestamptz '2026-08-16 00:00:00+00' + interval '60 days' * (i / ${count}.0)
                            end as at) moments`,
  )
}

/** A constraint or an index, and the statements that take it away and bring it back. */
type Part = { drop: string; restore: string }

/**
 * Fills a table that has no indexes and checks meanwhile: measured at a third of the time for a million rows. Row checks
 * and foreign keys hold for what comes later without a look at what the benchmark itself has made.
 */
async function fill(db: Database, table: string, count: number, insert: string): Promise<void> {
  const startedAt = performance.now()
  const { rows: parts } = await db.query<Part>(PARTS, [table])
  const client = await db.connect()
  try {
    for (const { drop } of parts) await client.query(drop)
    await client.query(insert)
    for (const { restore } of parts.toReversed()) await client.query(restore)
    // Now, because autovacuum would do it in the middle of a measurement.
    await client.query(`vacuum (analyze, freeze) ${table}`)
  } finally {
    client.release()
  }
  progress(`${count.toLocaleString('en')} ${table} stored in ${Math.round((performance.now() - startedAt) / 1000)} s`)
}

/** In the order in which they can be dropped. */
const PARTS = `
  select format('alter table %s drop constraint %I', conrelid::regclass, conname) as drop,
         format('alter table %s add constraint %I %s %s', conrelid::regclass, conname, pg_get_constraintdef(oid),
                case when contype in ('f', 'c') and not (conrelid <> confrelid and confrelid = $1::regclass) then 'not valid' end) as restore,
         case contype when 'f' then 1 when 'c' then 2 when 'u' then 4 else 5 end as turn
    from pg_constraint
   where (conrelid = $1::regclass or confrelid = $1::regclass) and contype in ('p', 'u', 'f', 'c')
  union all
  select format('drop index %s', indexrelid::regclass), pg_get_indexdef(indexrelid), 3
    from pg_index
   where indrelid = $1::regclass and not exists (select from pg_constraint where conindid = indexrelid)
   order by turn`
