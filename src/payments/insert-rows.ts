import { createHash } from 'node:crypto'
import { DEADLOCK_DETECTED, hasState } from '../db/outage.ts'
import { type Database, inTransaction, type Queryable } from '../db/pool.ts'
import { hasCitus } from '../db/spread.ts'
import { firstEnquiry } from './enquiries.ts'
import type { Intent } from './intent.ts'

/**
 * Returns a function that stores intents in one statement and returns the orderIds of those that are new. It asks once which
 * shape of the statement the database takes. Two instances that meet on shared keys meet in the same order.
 */
export function createInsertRows(db: Database, deadlockRetries: number) {
  let isSpread: boolean | undefined
  /** Prepared once on each connection: a tenth less processor time of the service and of PostgreSQL. */
  let name: string | undefined = INSERT_NAME

  return async function insertRows(intents: Intent[], retries = deadlockRetries): Promise<Set<string>> {
    intents.sort((a, b) => compare(a.mid, b.mid) || compare(a.merchantOrderId, b.merchantOrderId))
    try {
      isSpread ??= await hasCitus(db)
      const rows = isSpread ? await insertValues(db, intents) : await insertArrays(db, intents, name)
      return new Set(rows.map((row) => row.order_id))
    } catch (error) {
      const isUnprepared = name !== undefined && hasState(error, ...NOT_PREPARED_HERE)
      if (isUnprepared) name = undefined
      if ((!isUnprepared && !hasState(error, DEADLOCK_DETECTED)) || retries === 0) throw error
      return insertRows(intents, retries - 1)
    }
  }
}

type Stored = { order_id: string }

/** On one server: one text for any number of rows. */
async function insertArrays(db: Queryable, intents: Intent[], name: string | undefined): Promise<Stored[]> {
  const issued = intents.filter((intent) => intent.issued)
  const values = arraysOf(INTENT_COLUMNS, intents)
  const { rows } =
    issued.length === 0
      ? await db.query<Stored>({ text: INSERT, values, ...(name !== undefined && { name }) })
      : await db.query<Stored>(INSERT_WITH_ISSUED, [...values, ...arraysOf(LINK_COLUMNS, issued)])
  return rows
}

/** On Citus, which fetches the rows of `insert … select` to one node and sends them on from there: 20 times the time. */
async function insertValues(db: Database, intents: Intent[]): Promise<Stored[]> {
  const insert = (client: Queryable) => client.query<Stored>(...toInsert('payment_intents', INTENT_COLUMNS, intents))
  const issued = intents.filter((intent) => intent.issued)
  if (issued.length === 0) return (await insert(db)).rows
  return inTransaction(db, async (client) => {
    const { rows } = await insert(client)
    const stored = new Set(rows.map((row) => row.order_id))
    const links = issued.filter((intent) => stored.has(intent.orderId))
    if (links.length > 0) await client.query(...toInsert('acquirer_intents', LINK_COLUMNS, links))
    return rows
  })
}

/** By column: its type and its value. */
type Columns = Readonly<Record<string, readonly [type: string, value: (intent: Intent) => unknown]>>

const INTENT_COLUMNS: Columns = {
  mid: ['text', (intent) => intent.mid],
  order_id: ['text', (intent) => intent.orderId],
  merchant_order_id: ['text', (intent) => intent.merchantOrderId],
  amount: ['integer', (intent) => Math.floor(intent.amount / 100)],
  paise: ['smallint', (intent) => intent.amount % 100],
  redirect_url: ['text', (intent) => intent.redirectUrl],
  note: ['text', (intent) => intent.note],
  customer_name: ['text', (intent) => intent.customer.name],
  customer_email: ['text', (intent) => intent.customer.email],
  customer_mobile: ['text', (intent) => intent.customer.mobile],
  payee_vpa: ['text', (intent) => intent.payee.vpa],
  payee_name: ['text', (intent) => intent.payee.name],
  payee_mcc: ['text', (intent) => intent.payee.mcc],
  created_at: ['timestamptz', (intent) => intent.createdAt],
  expires_at: ['timestamptz', (intent) => intent.expiresAt],
  idempotency_key: ['text', (intent) => intent.idempotency?.key],
  idempotency_fingerprint: ['bytea', (intent) => intent.idempotency?.fingerprint],
}

const LINK_COLUMNS: Columns = {
  mid: ['text', (intent) => intent.mid],
  order_id: ['text', (intent) => intent.orderId],
  acquirer: ['text', (intent) => intent.issued?.acquirer],
  acquirer_merchant_id: ['text', (intent) => intent.issued?.merchantId],
  acquirer_id: ['text', (intent) => intent.issued?.id],
  reference: ['text', (intent) => intent.issued?.reference],
  link: ['text', (intent) => intent.issued?.link],
  enquiries: ['smallint', () => 0],
  enquire_at: ['timestamptz', (intent) => firstEnquiry(intent)],
}

const namesOf = (columns: Columns) => Object.keys(columns).join(', ')

const arraysOf = (columns: Columns, intents: Intent[]) =>
  Object.values(columns).map(([, value]) => intents.map((intent) => value(intent)))

/** The rows of arrays, one for each column, the first of which is parameter $`first`. */
const unnest = (columns: Columns, first: number) =>
  `unnest(${Object.values(columns).map(([type], place) => `$${first + place}::${type}[]`)}) as i (${namesOf(columns)})`

const INSERT = `
  insert into payment_intents (${namesOf(INTENT_COLUMNS)})
  select ${namesOf(INTENT_COLUMNS)} from ${unnest(INTENT_COLUMNS, 1)}
  on conflict do nothing
  returning order_id`

/** Of its text: behind PgBouncer a connection may have the statement of another version. */
const INSERT_NAME = createHash('sha256').update(INSERT).digest('hex').slice(0, 16)

/** A PgBouncer that carries no prepared statements: those of before 1.21, or without max_prepared_statements. */
const NOT_PREPARED_HERE = ['26000', '42P05', '08P01']

/** One statement, so that an intent is never stored without its link. */
const INSERT_WITH_ISSUED = `
  with stored as (${INSERT}), issued as (
    insert into acquirer_intents (${namesOf(LINK_COLUMNS)})
    select ${namesOf(LINK_COLUMNS)}
      from ${unnest(LINK_COLUMNS, Object.keys(INTENT_COLUMNS).length + 1)}
     where order_id in (select order_id from stored)
  )
  select order_id from stored`

/** Every parameter has its type: PostgreSQL would otherwise repeat a wrong one, which may be a note, in its error. */
function toInsert(table: string, columns: Columns, intents: Intent[]): [text: string, values: unknown[]] {
  const all = Object.values(columns)
  const row = (_: Intent, place: number) =>
    `(${all.map(([type], column) => `$${place * all.length + column + 1}::${type}`)})`
  const text = `
    insert into ${table} (${namesOf(columns)})
    values ${intents.map(row)}
    on conflict do nothing
    returning order_id`
  return [text, intents.flatMap((intent) => all.map(([, value]) => value(intent)))]
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
