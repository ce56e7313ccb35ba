import { unavailable } from '../../errors.ts'
import type { Limits } from '../../limits.ts'
import { isDistributed } from '../../platform/db/distribution.ts'
import { DEADLOCK_DETECTED, hasState, isRefusedRow } from '../../platform/db/outage.ts'
import { type Database, inTransaction, type Queryable } from '../../platform/db/pool.ts'
import { prepared } from '../../platform/db/prepared.ts'
import { firstEnquiry } from './enquiries.ts'
import type { Intent } from './intent.ts'

/** Largest number of rows in a batch, which takes a few milliseconds, for which the next requests wait. */
const BATCH_ROWS = 200
/** Retries after a deadlock: two statements that insert the same keys in different orders may deadlock. */
const DEADLOCK_RETRIES = 5

type Waiting = { intent: Intent; since: number; resolve: (stored: boolean) => void; reject: (error: unknown) => void }

/**
 * Returns a function that stores an intent. The function resolves to false if a unique constraint keeps the row out.
 * Calls that arrive while a batch is stored share the next batch, to save round trips and waits for the disk. A refused
 * row fails only its own call.
 */
export function createInsert(
  db: Database,
  onBatch: (rows: number, stored: number) => void,
  { waitingMs }: Limits['inserts'],
): (intent: Intent) => Promise<boolean> {
  const waiting: Waiting[] = []
  let busy = false
  let distributed: boolean | undefined

  async function storeNext(): Promise<void> {
    // Calls that have waited longer than `waitingMs` get 503. The oldest calls are at the front of the queue.
    const oldest = performance.now() - waitingMs
    while (waiting[0] && waiting[0].since < oldest) waiting.shift()?.reject(unavailable())
    if (waiting.length > 0) await storeBatch(waiting.splice(0, BATCH_ROWS), DEADLOCK_RETRIES)
    busy = waiting.length > 0
    // setImmediate starts the next batch as soon as the event loop has read all requests that have arrived.
    if (busy) setImmediate(storeNext)
  }

  async function storeBatch(batch: Waiting[], retries: number): Promise<void> {
    try {
      distributed ??= await isDistributed(db)
      const intents = batch.map(({ intent }) => intent)
      const stored = await insertRows(db, intents, distributed)
      onBatch(batch.length, stored.size)
      for (const { intent, resolve } of batch) resolve(stored.has(intent.orderId))
    } catch (error) {
      if (hasState(error, DEADLOCK_DETECTED) && retries > 0) return storeBatch(batch, retries - 1)
      if (batch.length > 1 && isRefusedRow(error)) {
        // Each row is stored by itself, because PostgreSQL has stored none and does not say which one it refuses.
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

/** Stores intents with their links. Returns the orderIds of the intents that were new. */
async function insertRows(db: Database, intents: Intent[], distributed: boolean): Promise<Set<string>> {
  // Sorted to avoid deadlocks between two instances that insert the same keys.
  intents.sort((a, b) => compare(a.mid, b.mid) || compare(a.merchantOrderId, b.merchantOrderId))
  const withLink = intents.filter((intent) => intent.paymentLink)
  if (withLink.length === 0) return INTENTS(db, intents, distributed)
  return inTransaction(db, async (client) => {
    const stored = await INTENTS(client, intents, distributed)
    const links = withLink.filter(({ orderId }) => stored.has(orderId))
    if (links.length > 0) await LINKS(client, links, distributed)
    return stored
  })
}

/** Guards the uniqueness of order_ids: of any number of simultaneous rows with one key, PostgreSQL stores one. */
const UNIQUE_ORDER_GUARD = 'on conflict do nothing returning order_id'

/**
 * Returns a function that stores a row for each intent, and returns the orderIds of new rows. A single server gets
 * arrays, because one statement then serves any number of rows and is prepared once per connection. Distributed tables
 * get `values`, because `insert … select` takes 5 to 18 times as long there: its rows go through one node. Each parameter
 * has a type, because PostgreSQL repeats untyped ones, such as a note, in errors.
 */
function describeRows(
  table: string,
  columns: readonly (readonly [name: string, type: string, take: (intent: Intent) => unknown])[],
) {
  const into = `insert into ${table} (${columns.map(([name]) => name)})`
  const arrays = columns.map(([, type], place) => `$${place + 1}::${type}[]`)
  const insertArrays = prepared(`${into} select * from unnest(${arrays}) ${UNIQUE_ORDER_GUARD}`)

  function insertValues(intents: readonly Intent[]) {
    const row = (first: number) => `(${columns.map(([, type], place) => `$${first + place}::${type}`)})`
    const rows = intents.map((_, place) => row(place * columns.length + 1))
    const values = intents.flatMap((intent) => columns.map(([, , take]) => take(intent)))
    return { text: `${into} values ${rows} ${UNIQUE_ORDER_GUARD}`, values }
  }

  return async (db: Queryable, intents: readonly Intent[], distributed: boolean): Promise<Set<string>> => {
    const { rows } = await db.query<{ order_id: string }>(
      distributed ? insertValues(intents) : insertArrays(...columns.map(([, , take]) => intents.map(take))),
    )
    return new Set(rows.map(({ order_id }) => order_id))
  }
}

const INTENTS = describeRows('payment_intents', [
  ['mid', 'text', ({ mid }) => mid],
  ['order_id', 'text', ({ orderId }) => orderId],
  ['merchant_order_id', 'text', ({ merchantOrderId }) => merchantOrderId],
  ['amount_paise', 'bigint', ({ amount }) => amount],
  ['redirect_url', 'text', ({ redirectUrl }) => redirectUrl],
  ['note', 'text', ({ note }) => note],
  ['customer_name', 'text', ({ customer }) => customer.name],
  ['customer_email', 'text', ({ customer }) => customer.email],
  ['customer_mobile', 'text', ({ customer }) => customer.mobile],
  ['payee_vpa', 'text', ({ payee }) => payee.vpa],
  ['payee_name', 'text', ({ payee }) => payee.name],
  ['payee_mcc', 'text', ({ payee }) => payee.mcc],
  ['created_at', 'timestamptz', ({ createdAt }) => createdAt],
  ['expires_at', 'timestamptz', ({ expiresAt }) => expiresAt],
  ['idempotency_key', 'text', ({ idempotency }) => idempotency?.key],
  ['idempotency_fingerprint', 'bytea', ({ idempotency }) => idempotency?.fingerprint],
])

const LINKS = describeRows('acquirer_intents', [
  ['mid', 'text', ({ mid }) => mid],
  ['order_id', 'text', ({ orderId }) => orderId],
  ['acquirer', 'text', ({ paymentLink }) => paymentLink?.acquirer],
  ['acquirer_merchant_id', 'text', ({ paymentLink }) => paymentLink?.merchantId],
  ['acquirer_order_id', 'text', ({ paymentLink }) => paymentLink?.id],
  ['reference', 'text', ({ paymentLink }) => paymentLink?.reference],
  ['link', 'text', ({ paymentLink }) => paymentLink?.link],
  ['by_fallback', 'boolean', ({ paymentLink }) => paymentLink?.isByFallback ?? false],
  ['status_checks', 'smallint', () => 0],
  ['status_check_at', 'timestamptz', firstEnquiry],
])

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
