import { cpSync, mkdtempSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { migrate } from '../../src/db/migrate.ts'
import { createTestDatabase } from '../support/database.ts'

const MIGRATIONS = fileURLToPath(new URL('../../migrations', import.meta.url))
const NAME = '0006_amounts_in_paise'

let database: { url: string; drop: () => Promise<void> }
let db: pg.Pool
let before: { node: string; intents: unknown[] }
beforeAll(async () => {
  database = await createTestDatabase({ empty: true })
  db = new pg.Pool({ connectionString: database.url, max: 2 })
  await migrate(database.url, { folder: migrationsBefore(NAME) })
  await db.query(`insert into merchants (mid, name, vpa, mcc, dynamic_qr, created_at)
                  values ('M1', 'Chai Point', 'chaipoint@examplebank', '5814', 'link', now())`)
  await insertAsBefore('early', 588)
  before = { node: await fileNode(), intents: await read('early') }
  await migrate(database.url, { folder: migrationsBefore('0007') })
})
afterAll(async () => {
  await db.end()
  await database.drop()
})

function migrationsBefore(name: string): string {
  const folder = mkdtempSync(join(inject('runDirectory'), 'migrations-'))
  for (const file of readdirSync(MIGRATIONS).filter((file) => file < name)) {
    cpSync(join(MIGRATIONS, file), join(folder, file))
  }
  return folder
}

/** Where PostgreSQL keeps the rows: another number after they were written anew. */
const fileNode = async () => (await db.query("select pg_relation_filenode('payment_intents') as node")).rows[0].node

const read = async (orderId: string) =>
  (await db.query('select amount, status from payment_intents where order_id = $1', [orderId])).rows

/** The columns that an instance of the version before names. */
function insertAsBefore(orderId: string, amount: number) {
  return db.query(
    `insert into payment_intents
       (mid, order_id, merchant_order_id, amount, redirect_url, note, customer_name, customer_email, customer_mobile,
        payee_vpa, payee_name, payee_mcc, created_at, expires_at)
     values ('M1', $1, $1, $2, '', '', '', '', '', '', '', '5814', now(), now())`,
    [orderId, amount],
  )
}

describe('the migration to paise', () => {
  it('writes no row and reads none, so that it is as quick for ten million', async () => {
    expect(await fileNode()).toBe(before.node)
    const { rows } = await db.query(
      "select convalidated from pg_constraint where conname = 'payment_intents_paise_check'",
    )
    expect(rows).toEqual([{ convalidated: false }])
  })

  it('lets instances of the version before insert and read whole rupees', async () => {
    await insertAsBefore('late', 588)
    expect([await read('early'), await read('late')]).toEqual([before.intents, before.intents])
    const { rows } = await db.query('select amount * 100 + paise as paise from payment_intents order by order_id')
    expect(rows).toEqual([{ paise: 58_800 }, { paise: 58_800 }])
  })

  it.each([
    [588, 100],
    [588, -1],
    [100_000, 1],
    [0, 99],
    [100_001, 0],
  ])('keeps %i rupees and %i paise out', async (amount, paise) => {
    await insertAsBefore(`wrong ${amount} ${paise}`, 1)
    const update = 'update payment_intents set amount = $1, paise = $2 where order_id = $3'
    await expect(db.query(update, [amount, paise, `wrong ${amount} ${paise}`])).rejects.toMatchObject({ code: '23514' })
  })

  it.each([["input = 'loose'"], ['expiry_minutes = 0'], ['expiry_minutes = 1441']])(
    'keeps a merchant with %s out',
    async (change) => {
      await expect(db.query(`update merchants set ${change} where mid = 'M1'`)).rejects.toMatchObject({ code: '23514' })
    },
  )

  it('leaves every merchant strict, and with the service’s own expiry', async () => {
    const { rows } = await db.query("select input, expiry_minutes from merchants where mid = 'M1'")
    expect(rows).toEqual([{ input: 'strict', expiry_minutes: null }])
  })
})
