import { createHash } from 'node:crypto'
import { DEADLOCK_DETECTED, hasState, isRefusedRow } from '../db/outage.ts'
import { type Database, inTransaction, type Queryable } from '../db/pool.ts'
import { hasCitus } from '../db/spread.ts'
import { unavailable } from '../errors.ts'
import type { Limits } from '../limits.ts'
import { firstEnquiry } from './enquiries.ts'
import type { Intent } from './intent.ts'

/** A full batch takes a few milliseconds, by which a request behind it waits longer. */
const BATCH_ROWS = 200
/** Two statements that meet on a unique constraint, each in its own order, deadlock, and PostgreSQL ends one of them. */
const DEADLOCK_RETRIES = 5

type Waiting = { intent: Intent; since: number; resolve: (stored: boolean) => void; reject: (error: unknown) => void }

/**
 * Returns a function that stores one intent; it resolves to false when a unique constraint kept the row out. Calls that come
 * while a batch is stored share the next one: one round trip and one wait for the disk. Each call has its own result, and a
 * row that PostgreSQL refuses fails only its own call.
 */
export function createInsert(
  db: Database,
  onBatch: (rows: number, stored: number) => void,
  { waitingMs }: Limits['inserts'],
): (intent: Intent) => Promise<boolean> {
  const waiting: Waiting[] = []
  let busy = false
  let isSpread: boolean | undefined
  let mayPrepare = true

  async function storeNext(): Promise<void> {
    // Calls that have waited longer than `waitingMs` get 503. The queue is in order of arrival, so they are at its
    // front.
    const oldest = performance.now() - waitingMs
    while (waiting[0] && waiting[0].since < oldest) waiting.shift()?.reject(unavailable())
    if (waiting.length > 0) await storeBatch(waiting.splice(0, BATCH_ROWS), DEADLOCK_RETRIES)
    busy = waiting.length > 0
    // setImmediate instead of a timer: the next batch starts as soon as the event loop has read everything that has
    // arrived.
    if (busy) setImmediate(storeNext)
  }

  async function storeBatch(batch: Waiting[], retries: number): Promise<void> {
    try {
      isSpread ??= await hasCitus(db)
      const intents = batch.map(({ intent }) => intent)
      const stored = await insertRows(db, intents, isSpread ? 'values' : mayPrepare ? 'prepared' : 'arrays')
      onBatch(batch.length, stored.size)
      for (const { intent, resolve } of batch) resolve(stored.has(intent.orderId))
    } catch (error) {
      if (hasState(error, DEADLOCK_DETECTED) && retries > 0) return storeBatch(batch, retries - 1)
      if (mayPrepare && hasState(error, ...NOT_PREPARED_HERE)) {
        mayPrepare = false
        return storeBatch(batch, retries)
      }
      if (batch.length > 1 && isRefusedRow(error)) {
        // PostgreSQL refused one row, does not say which, and stored none: each row is now stored by itself.
        for (const one of batch) await storeBatch([one], retries)
        return
      }
      for (const { reject } of batch) reject(error)
    }
  }

  return (intent) =>
    new Promise((resolve, reject) => {
      waiting.push({ intent, since: performance.now(), resolve, reject })
      if (!busy) setImmediate(storeNext)
      busy = true
    })
}

/** SQLSTATEs from a PgBouncer without prepared statements: older than 1.21, or with max_prepared_statements unset. */
const NOT_PREPARED_HERE = ['26000', '42P05', '08P01']

/**
 * How the rows of a statement are sent. On a single server they go as arrays: one text serves any number of rows and is
 * prepared once on each connection, which saves a tenth of the processor time of the service and of PostgreSQL. On
 * Citus they go as `values`, because Citus fetches the rows of `insert … select` to one node and sends them on from
 * there: 20 times the time.
 */
type Shape = 'prepared' | 'arrays' | 'values'

/** Stores intents, with their links, and returns the orderIds of those that are new. */
async function insertRows(db: Database, intents: Intent[], shape: Shape): Promise<Set<string>> {
  // The rows are sorted, so that two instances that store the same keys meet them in the same order.
  intents.sort((a, b) => compare(a.mid, b.mid) || compare(a.merchantOrderId, b.merchantOrderId))
  const issued = intents.filter((intent) => intent.issued)
  if (issued.length === 0) return insert(db, 'payment_intents', intents.map(toIntentRow), shape)
  return inTransaction(db, async (client) => {
    const stored = await insert(client, 'payment_intents', intents.map(toIntentRow), shape)
    const links = issued.filter(({ orderId }) => stored.has(orderId))
    if (links.length > 0) await insert(client, 'acquirer_intents', links.map(toLinkRow), shape)
    return stored
  })
}

type Row = Record<string, unknown>

const toIntentRow = ({ customer, payee, idempotency, ...intent }: Intent): Row => ({
  mid: intent.mid,
  order_id: intent.orderId,
  merchant_order_id: intent.merchantOrderId,
  amount: Math.floor(intent.amount / 100),
  paise: intent.amount % 100,
  redirect_url: intent.redirectUrl,
  note: intent.note,
  customer_name: customer.name,
  customer_email: customer.email,
  customer_mobile: customer.mobile,
  payee_vpa: payee.vpa,
  payee_name: payee.name,
  payee_mcc: payee.mcc,
  created_at: intent.createdAt,
  expires_at: intent.expiresAt,
  idempotency_key: idempotency?.key,
  idempotency_fingerprint: idempotency?.fingerprint,
})

const toLinkRow = (intent: Intent): Row => ({
  mid: intent.mid,
  order_id: intent.orderId,
  acquirer: intent.issued?.acquirer,
  acquirer_merchant_id: intent.issued?.merchantId,
  acquirer_id: intent.issued?.id,
  reference: intent.issued?.reference,
  link: intent.issued?.link,
  enquiries: 0,
  enquire_at: firstEnquiry(intent),
})

/**
 * Types of the columns that are not text. Every parameter has its type: PostgreSQL repeats one without a type in its
 * error, and it may be a note.
 */
const TYPES: Record<string, string> = {
  amount: 'integer',
  paise: 'smallint',
  created_at: 'timestamptz',
  expires_at: 'timestamptz',
  idempotency_fingerprint: 'bytea',
  enquiries: 'smallint',
  enquire_at: 'timestamptz',
}

/** Stores rows, all with the columns of the first one, and returns the orderIds of those that are new. */
async function insert(db: Queryable, table: string, rows: readonly Row[], shape: Shape): Promise<Set<string>> {
  const columns = Object.keys(rows[0] ?? {})
  const { rows: stored } = await db.query<{ order_id: string }>(
    shape === 'values'
      ? { text: insertValues(table, columns, rows.length), values: rows.flatMap(Object.values) }
      : {
          ...insertArrays(table, columns, shape === 'prepared'),
          values: columns.map((column) => rows.map((row) => row[column])),
        },
  )
  return new Set(stored.map(({ order_id }) => order_id))
}

const insertText = (table: string, columns: readonly string[], source: string) =>
  `insert into ${table} (${columns}) ${source} on conflict do nothing returning order_id`

const typeOf = (column: string) => TYPES[column] ?? 'text'

function insertValues(table: string, columns: readonly string[], count: number): string {
  const row = (first: number) => `(${columns.map((column, place) => `$${first + place}::${typeOf(column)}`)})`
  const rows = Array.from({ length: count }, (_, place) => row(place * columns.length + 1))
  return insertText(table, columns, `values ${rows}`)
}

const statements = new Map<string, { text: string; name: string }>()

/**
 * Returns the insert statement of a table. A prepared one is named by a hash of its text, because behind PgBouncer a
 * connection may still have the statement of another version.
 */
function insertArrays(table: string, columns: readonly string[], named: boolean): { text: string; name?: string } {
  let statement = statements.get(table)
  if (!statement) {
    const arrays = columns.map((column, place) => `$${place + 1}::${typeOf(column)}[]`)
    const text = insertText(table, columns, `select * from unnest(${arrays})`)
    statement = { text, name: createHash('sha256').update(text).digest('hex').slice(0, 16) }
    statements.set(table, statement)
  }
  return named ? statement : { text: statement.text }
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
