import type { Database } from '../../src/platform/db/pool.ts'
import { type NewMerchant, newMerchant } from '../support/tenants.ts'
import { progress } from '../support/workspace.ts'

/** The number of merchants that share the stored rows. */
export const MERCHANTS = 100

export const merchantId = (number: number) => `M${number}`

/** Creates the merchants M0 to M99. */
export async function addMerchants(db: Database): Promise<void> {
  await db.query(
    `insert into merchants (mid, name, vpa, mcc, dynamic_qr, created_at)
     select 'M' || i, 'Chai Point', 'chaipoint@examplebank', '5814', 'link', now() from generate_series(0, $1::int - 1) i`,
    [MERCHANTS],
  )
}

/** Creates the same merchants, each with an API key. */
export async function newMerchants(db: Database): Promise<NewMerchant[]> {
  const merchants = []
  for (let number = 0; number < MERCHANTS; number++) merchants.push(await newMerchant(db, { mid: merchantId(number) }))
  return merchants
}

/** A day with few settlements: a list of this day has to find them among all others. */
export const RARE_DAY = '15-08-2026'
export const RARE_ROWS = 30

/**
 * Stores `count` settlements, one merchant after the other. Each merchant has 30 on the rare day, spread over the
 * table as on a real day, and the rest in the 60 days after it.
 */
export function fillSettlements(db: Database, count: number, merchants = MERCHANTS): Promise<void> {
  const perMerchant = count / merchants
  return fill(
    db,
    'settlements',
    count,
    `insert into settlements (mid, utr, amount_paise, bank_reference_number, status, initiated_at, created_at)
     select 'M' || i % ${merchants}, (523500000000 + i)::text, 10050 + i % 100000 * 100, 'BRN' || i, 'SUCCESS', at, at
       from generate_series(0, ${count} - 1) i,
            lateral (select case when i / ${merchants} % ${Math.floor(perMerchant / RARE_ROWS)} = 0
                                  and i / ${merchants} < ${Math.floor(perMerchant / RARE_ROWS) * RARE_ROWS}
                                 then timestamptz '2026-08-15 06:00:00+00' + interval '1 second' * (i % 3600)
                                 else timestamptz '2026-08-16 00:00:00+00' + interval '60 days' * (i / ${count}.0)
                            end as at) moments`,
  )
}

/** The `orderId` that `fillOrders` gives to the order of this number, counted from 1. */
export const orderIdOf = (number: number) => number.toString(16).padStart(32, '0')

/** Stores `count` pending orders of ₹200 that are valid for a day, one merchant after the other. */
export const fillOrders = (db: Database, count: number, mids: string[]): Promise<void> =>
  fill(
    db,
    'payment_intents',
    count,
    `insert into payment_intents (mid, order_id, merchant_order_id, amount_paise, redirect_url, note, customer_name, customer_email,
       customer_mobile, payee_vpa, payee_name, payee_mcc, created_at, expires_at)
     select ('{${mids}}'::text[])[1 + (i - 1) % ${mids.length}], lpad(to_hex(i), 32, '0'), 'SHOP-' || i, 20000, 'https://shop.example/', 'Order', 'Asha Rao',
            'asha@shop.example', '9876543210', 'chaipoint@examplebank', 'Chai Point', '5814', now(), now() + interval '1 day'
       from generate_series(1, ${count}) i`,
  )

/**
 * Stores `count` paid orders of the merchant in the 60 days after the rare day; one in a hundred is partly refunded.
 */
export async function fillPayments(db: Database, count: number, mid: string): Promise<void> {
  const orders = `generate_series(1, ${count}) i,
                  lateral (select timestamptz '2026-08-16 00:00:00+00' + interval '60 days' * (i / ${count}.0) as at) moment,
                  lateral (select lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || lpad(to_hex(i), 20, '0') as order_id,
                                  (523500000000 + i)::text as utr) one`
  await fill(
    db,
    'payment_intents',
    count,
    `insert into payment_intents (mid, order_id, merchant_order_id, amount_paise, redirect_url, note, customer_name, customer_email,
       customer_mobile, payee_vpa, payee_name, payee_mcc, created_at, expires_at, status, utr)
     select '${mid}', order_id, 'SHOP-' || i, 100 * (100 + i % 100000), 'https://shop.example/', 'Order', 'Asha Rao',
            'asha@shop.example', '9876543210', 'chaipoint@examplebank', 'Chai Point', '5814', at, at, 'SUCCESS', utr
       from ${orders}`,
  )
  await fill(
    db,
    'payments',
    count,
    `insert into payments (mid, utr, order_id, amount_paise, paid_at, received_at, kind, acquirer, source)
     select '${mid}', utr, order_id, 100 * (100 + i % 100000), at, at, 'first', 'direct', 'notification' from ${orders}`,
  )
  const created = count / 100
  await fill(
    db,
    'refunds',
    created,
    `insert into refunds (mid, refund_id, our_refund_id, order_id, utr, amount_paise, note, acquirer, created_by, created_at, status,
       reference, ended_at)
     select '${mid}', 'R' || i, order_id, order_id, utr, 5000, '', 'direct', 'ops', at, 'SUCCESS', 'ARN' || i, at
       from ${orders} where i % 100 = 0`,
  )
}

/** A constraint or an index, with the statements that drop and restore it. */
type Part = { drop: string; restore: string }

/**
 * Fills a table without its indexes and constraints, which takes a third of the time for a million rows. The restored
 * constraints apply to new rows only, because the benchmark's own rows are valid.
 */
async function fill(db: Database, table: string, count: number, insert: string): Promise<void> {
  const startedAt = performance.now()
  const { rows: parts } = await db.query<Part>(PARTS, [table])
  const client = await db.connect()
  try {
    for (const { drop } of parts) await client.query(drop)
    await client.query(insert)
    for (const { restore } of parts.toReversed()) await client.query(restore)
    // Runs vacuum now, because autovacuum would otherwise run during a measurement.
    await client.query(`vacuum (analyze, freeze) ${table}`)
  } finally {
    client.release()
  }
  progress(`${count.toLocaleString('en')} ${table} stored in ${Math.round((performance.now() - startedAt) / 1000)} s`)
}

/** Ordered for dropping: foreign keys first, because they depend on unique constraints and indexes. */
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
