import { unavailable } from '../../errors.ts'
import type { Limits } from '../../limits.ts'
import { isDistributed } from '../../platform/db/distribution.ts'
import { DEADLOCK_DETECTED, hasState } from '../../platform/db/outage.ts'
import { type Database, inTransaction, type Queryable } from '../../platform/db/pool.ts'
import { prepared } from '../../platform/db/prepared.ts'
import { query } from '../../platform/db/query.ts'
import { compareKeys, createSharedBatches } from '../../platform/db/shared-batches.ts'
import type { Intent } from './intent.ts'
import { isLong } from './order-lifetime.ts'
import { scheduleExpiries } from './outbox.ts'
import { firstStatusCheck } from './status-checks.ts'

/** Largest number of rows in a batch. Later requests wait until a batch is stored, which takes a few milliseconds. */
const BATCH_ROWS = 200
/** Number of retries after a deadlock, which is possible if two statements insert the same keys in different orders. */
const DEADLOCK_RETRIES = 5

/**
 * Returns a function that stores an intent. The function resolves to false if a unique constraint rejects the row.
 * Concurrent calls share batches, which saves round trips and waits for the disk.
 */
export function createInsert(
  db: Database,
  onBatch: (rows: number, stored: number) => void,
  { waitingMs }: Limits['inserts'],
): (intent: Intent) => Promise<boolean> {
  let distributed: boolean | undefined

  async function storeBatch(intents: Intent[], retries = DEADLOCK_RETRIES): Promise<boolean[]> {
    try {
      distributed ??= await isDistributed(db)
      const stored = await insertRows(db, intents, distributed)
      onBatch(intents.length, stored.size)
      return intents.map(({ orderId }) => stored.has(orderId))
    } catch (error) {
      if (hasState(error, DEADLOCK_DETECTED) && retries > 0) return storeBatch(intents, retries - 1)
      throw error
    }
  }

  const store = createSharedBatches(storeBatch, ({ mid }) => mid, BATCH_ROWS)
  return (intent) => {
    const since = performance.now()
    return store(intent, () => {
      if (performance.now() > since + waitingMs) throw unavailable()
    })
  }
}

/** Stores intents with their links and long intents with their expiries. Returns the orderIds of the new intents. */
async function insertRows(db: Database, batch: Intent[], distributed: boolean): Promise<Set<string>> {
  // The intents are sorted, to avoid deadlocks between two instances that insert the same keys.
  const intents = batch.toSorted(
    (a, b) => compareKeys(a.mid, b.mid) || compareKeys(a.merchantOrderId, b.merchantOrderId),
  )
  if (!intents.some((intent) => intent.paymentLink || isLong(intent))) return storeIntents(db, intents, distributed)
  return inTransaction(db, async (client) => {
    const stored = await storeIntents(client, intents, distributed)
    const created = intents.filter(({ orderId }) => stored.has(orderId))
    const links = created.filter((intent) => intent.paymentLink)
    if (links.length > 0) await LINKS(client, links, distributed)
    await scheduleExpiries(client, created.filter(isLong))
    return stored
  })
}

/** Stores intents, and returns the orderIds of the new ones, which are read only if the guard rejected some intents. */
async function storeIntents(db: Queryable, intents: readonly Intent[], distributed: boolean): Promise<Set<string>> {
  const orderIds = intents.map(({ orderId }) => orderId)
  const count = await INTENTS(db, intents, distributed)
  if (count === intents.length) return new Set(orderIds)
  const stored = await STORED(db, { mids: intents.map(({ mid }) => mid), orderIds })
  return new Set(stored.map(({ orderId }) => orderId))
}

const STORED = query<{ orderId: string }, { mids: string[]; orderIds: string[] }>(
  'select order_id from payment_intents where mid = any (:mids) and order_id = any (:orderIds)',
)

/**
 * Guards the uniqueness of order_ids: PostgreSQL stores exactly one of any number of concurrent rows with the same key.
 */
const UNIQUE_ORDER_GUARD = 'on conflict do nothing'

/**
 * Returns a function that stores a row for each intent, and returns the number of new rows. A single server receives
 * arrays, because one statement then serves any number of rows and is prepared once per connection. Distributed tables
 * receive `values`, because `insert … select` takes 5 to 18 times as long on distributed tables: all rows pass through
 * one node. Each parameter has a type, because PostgreSQL repeats the values of untyped parameters, such as a note, in
 * error messages.
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
    const values = intents.flatMap((intent) => columns.map(([, , columnOf]) => columnOf(intent)))
    return { text: `${into} values ${rows} ${UNIQUE_ORDER_GUARD}`, values }
  }

  return async (db: Queryable, intents: readonly Intent[], distributed: boolean): Promise<number | null> => {
    const { rowCount } = await db.query(
      distributed ? insertValues(intents) : insertArrays(...columns.map(([, , columnOf]) => intents.map(columnOf))),
    )
    return rowCount
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
  ['status_check_at', 'timestamptz', firstStatusCheck],
])
