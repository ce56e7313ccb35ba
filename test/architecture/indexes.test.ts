import { expect, it } from 'vitest'
import { createTestDatabase } from '../support/database.ts'

/** The columns that a payment of an order changes. An index with one of these columns makes every payment write all indexes. */
const CHANGED = ['status', 'utr', 'event_sequence', 'failure_reported_at', 'unreadable_at']

/** The indexes of payment_intents with a changed column in their key, or in an expression or a condition. */
const WITH_CHANGED_COLUMN = `
  select distinct x.indexrelid::regclass::text as index
    from pg_index x
    left join pg_depend d on d.classid = 'pg_class'::regclass and d.objid = x.indexrelid
                         and d.refclassid = 'pg_class'::regclass and d.refobjid = x.indrelid
    join pg_attribute a on a.attrelid = x.indrelid and (a.attnum = any (x.indkey) or a.attnum = d.refobjsubid)
   where x.indrelid = 'payment_intents'::regclass and a.attname = any ($1)
   order by index`

const { db } = await createTestDatabase()
const indexes = async () =>
  (await db.query<{ index: string }>(WITH_CHANGED_COLUMN, [CHANGED])).rows.map(({ index }) => index)

it('a payment changes no column of an index of payment_intents', async () => {
  expect(await indexes()).toEqual([])
})

it.each([
  'on payment_intents (mid, status)',
  'on payment_intents (mid) include (event_sequence)',
  'on payment_intents (mid, (failure_reported_at is null))',
  'on payment_intents (mid) where unreadable_at is not null',
])('the check of indexes finds a column that a payment changes: %s', async (definition) => {
  await db.query(`create index an_index ${definition}`)
  expect(await indexes()).toEqual(['an_index'])
  await db.query('drop index an_index')
})
