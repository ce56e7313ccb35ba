import { DEADLOCK_DETECTED, hasState, isRefusedRow } from '../db/outage.ts'
import { type Database, inTransaction, type Queryable } from '../db/pool.ts'
import { prepared } from '../db/prepared.ts'
import { hasCitus } from '../db/spread.ts'
import { unavailable } from '../errors.ts'
import type { Limits } from '../limits.ts'
import { firstEnquiry } from './enquiries.ts'
import type { Intent } from './intent.ts'

/** A full batch takes a few milliseconds, for which the requests behind it wait. */
const BATCH_ROWS = 200
/** Two statements with the same unique keys in different orders deadlock, and PostgreSQL ends one of them. */
const DEADLOCK_RETRIES = 5

type Waiting = { intent: Intent; since: number; resolve: (stored: boolean) => void; reject: (error: unknown) => void }

/**
 * Returns a function that stores one intent, and resolves to false when a unique constraint kept the row out. Calls that arrive while
 * a batch is stored share the next batch: one round trip and one wait for the disk. A row that PostgreSQL refuses fails only its own
 * call.
 */
export function createInsert(
  db: Database,
  onBatch: (rows: number, stored: number) => void,
  { waitingMs }: Limits['inserts'],
): (intent: Intent) => Promise<boolean> {
  const waiting: Waiting[] = []
  let busy = false
  let isSpread: boolean | undefined

  async function storeNext(): Promise<void> {
    // Calls that have waited longer than `waitingMs` get 503. They are at the front, since the queue is in order of arrival.
    const oldest = performance.now() - waitingMs
    while (waiting[0] && waiting[0].since < oldest) waiting.shift()?.reject(unavailable())
    if (waiting.length > 0) await storeBatch(waiting.splice(0, BATCH_ROWS), DEADLOCK_RETRIES)
    busy = waiting.length > 0
    // setImmediate instead of a timer: the next batch starts as soon as the event loop has read all arrived requests.
    if (busy) setImmediate(storeNext)
  }

  async function storeBatch(batch: Waiting[], retries: number): Promise<void> {
    try {
      isSpread ??= await hasCitus(db)
      const intents = batch.map(({ intent }) => intent)
      const stored = await insertRows(db, intents, isSpread)
      onBatch(batch.length, stored.size)
      for (const { intent, resolve } of batch) resolve(stored.has(intent.orderId))
    } catch (error) {
      if (hasState(error, DEADLOCK_DETECTED) && retries > 0) return storeBatch(batch, retries - 1)
      if (batch.length > 1 && isRefusedRow(error)) {
        // PostgreSQL stored no row and does not say which one it refused, so each row is stored by itself.
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

/** Stores intents with their links, and returns the orderIds of new ones. */
async function insertRows(db: Database, intents: Intent[], isSpread: boolean): Promise<Set<string>> {
  // Sorted to avoid deadlocks between two instances that insert the same keys.
  intents.sort((a, b) => compare(a.mid, b.mid) || compare(a.merchantOrderId, b.merchantOrderId))
  const withLink = intents.filter((intent) => intent.paymentLink)
  if (withLink.length === 0) return INTENTS(db, intents, isSpread)
  return inTransaction(db, async (client) => {
    const stored = await INTENTS(client, intents, isSpread)
    const links = withLink.filter(({ orderId }) => stored.has(orderId))
    if (links.length > 0) await LINKS(client, links, isSpread)
    return stored
  })
}

/** Guards unique order_ids: of any number of simultaneous rows with the same key, one is stored. */
const UNIQUE_ORDER_GUARD = 'on conflict do nothing returning order_id'

/**
 * Returns a function that stores a row for each intent, and returns the orderIds of new rows. A single server gets arrays: one text
 * serves any number of rows and is prepared once on each connection. Citus (`isSpread`) gets `values`: it would fetch the rows of
 * `insert … select` to one node and send them on from there, in 20 times the time. Every parameter has a type, because PostgreSQL
 * repeats an untyped one in its error, and it may be a note.
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

  return async (db: Queryable, intents: readonly Intent[], isSpread: boolean): Promise<Set<string>> => {
    const { rows } = await db.query<{ order_id: string }>(
      isSpread ? insertValues(intents) : insertArrays(...columns.map(([, , take]) => intents.map(take))),
    )
    return new Set(rows.map(({ order_id }) => order_id))
  }
}

const INTENTS = describeRows('payment_intents', [
  ['mid', 'text', ({ mid }) => mid],
  ['order_id', 'text', ({ orderId }) => orderId],
  ['merchant_order_id', 'text', ({ merchantOrderId }) => merchantOrderId],
  ['amount', 'integer', ({ amount }) => Math.floor(amount / 100)],
  ['paise', 'smallint', ({ amount }) => amount % 100],
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
  ['acquirer_id', 'text', ({ paymentLink }) => paymentLink?.id],
  ['reference', 'text', ({ paymentLink }) => paymentLink?.reference],
  ['link', 'text', ({ paymentLink }) => paymentLink?.link],
  ['enquiries', 'smallint', () => 0],
  ['enquire_at', 'timestamptz', firstEnquiry],
])

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
