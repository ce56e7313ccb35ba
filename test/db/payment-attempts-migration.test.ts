import { readFileSync } from 'node:fs'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestDatabase } from '../support/database.ts'

const migration = (name: string) => readFileSync(new URL(`../../migrations/${name}.sql`, import.meta.url), 'utf8')

let database: { url: string; drop: () => Promise<void> }
let client: pg.Client
beforeAll(async () => {
  database = await createTestDatabase({ empty: true })
  client = new pg.Client({ connectionString: database.url })
  await client.connect()
  await client.query(migration('0001_merchants_keys_intents_settlements'))
  await client.query(migration('0002_payment_states'))
  await client.query(
    `insert into merchants (mid, name, vpa, mcc, dynamic_qr, created_at)
     select mid, 'Chai Point', 'chaipoint@examplebank', '5814', 'link', now() from unnest(array['M1', 'M2']) mid`,
  )
})
afterAll(async () => {
  await client.end()
  await database.drop()
})

/** An intent as version 1 stores it; paid where it has a UTR. */
async function addIntent(mid: string, orderId: string, utr: string | null) {
  await client.query(
    `insert into payment_intents (mid, order_id, merchant_order_id, amount, redirect_url, note, customer_name,
       customer_email, customer_mobile, payee_vpa, payee_name, payee_mcc, created_at, expires_at, status, utr)
     values ($1, $2, $2, 200, '', '', '', '', '', '', '', '5814', now(), now(), $3, $4)`,
    [mid, orderId, utr === null ? 'PENDING' : 'SUCCESS', utr],
  )
}

/** The statements by which version 1 records a report. */
const CHANGE = `
  with changed as (
    update payment_intents
       set status = $4, utr = case when $4 = 'SUCCESS' then $5 end
     where mid = $1 and order_id = $2 and status = $3
    returning mid, order_id, status
  )
  insert into payment_changes (mid, order_id, status, utr, paid_at, reason, changed_at)
  select mid, order_id, status, $5, $6, $7, $8 from changed`
const KEEP_EXCEPTION = `
  insert into payment_exceptions (mid, order_id, kind, utr, amount, paid_at, received_at)
  values ($1, $2, $3, $4, $5, $6, $7)
  on conflict do nothing`

describe('the migration to failed attempts', () => {
  it('writes UTRs in capitals, and tells of those that have paid two orders instead of failing', async () => {
    await addIntent('M1', 'digits', '523504870405')
    await addIntent('M1', 'small', 'abcd1')
    await addIntent('M1', 'capital', 'ABCX1')
    await addIntent('M1', 'mixed', 'abcX1')
    await addIntent('M2', 'other merchant', 'abcX1')
    await addIntent('M1', 'open', null)
    await client.query(KEEP_EXCEPTION, ['M1', 'open', 'amount differs', 'x', 150, null, new Date()])

    await client.query(migration('0003_payment_attempts'))

    const { rows } = await client.query('select order_id, utr from payment_intents order by order_id')
    expect(Object.fromEntries(rows.map(({ order_id, utr }) => [order_id, utr]))).toEqual({
      digits: '523504870405',
      small: 'ABCD1',
      capital: 'ABCX1',
      mixed: 'abcX1',
      'other merchant': 'ABCX1',
      open: null,
    })
    const exceptions = await client.query(
      'select order_id, kind, utr, amount, status from payment_exceptions order by order_id',
    )
    expect(exceptions.rows).toEqual([
      { order_id: 'mixed', kind: 'UTR of another order', utr: 'ABCX1', amount: '200.00', status: '' },
      { order_id: 'open', kind: 'amount differs', utr: 'x', amount: '150.00', status: '' },
    ])
  })

  it('leaves instances of the version before it able to record', async () => {
    const now = new Date()
    for (const [from, to, utr] of [
      ['PENDING', 'FAIL', null],
      ['FAIL', 'SUCCESS', 'lower1'],
    ]) {
      const { rowCount } = await client.query(CHANGE, ['M1', 'open', from, to, utr, now, 'notification', now])
      expect(rowCount).toBe(1)
    }
    for (let i = 0; i < 2; i++) {
      await client.query(KEEP_EXCEPTION, ['M1', 'open', 'double payment', 'X2', 200, now, now])
    }
    const { rowCount } = await client.query(`select from payment_exceptions where kind = 'double payment'`)
    expect(rowCount).toBe(1)
  })
})
