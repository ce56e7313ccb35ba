import type { Queryable } from '../db/pool.ts'
import { DEADLOCK_DETECTED, hasState, isRefusedRow } from '../db/sqlstates.ts'
import { unavailable } from '../errors.ts'
import type { Limits } from '../limits.ts'
import { firstEnquiry } from './enquiries.ts'
import type { Intent } from './intent.ts'

type Waiting = { intent: Intent; since: number; resolve: (stored: boolean) => void; reject: (error: unknown) => void }

/**
 * Returns a function that stores one intent; it resolves to false when a unique constraint kept the row out. Calls that come at
 * the same time share one statement: one round trip and one wait for the disk. A single call does not wait for
 * others, each call has its own result, and a row that PostgreSQL refuses fails only its own call.
 */
export function batchInserts(
  db: Queryable,
  onBatch: (rows: number, stored: number) => void,
  { batchesInFlight, batchRows, waiting: waitingLimit, waitingMs, deadlockRetries }: Limits['inserts'],
): (intent: Intent) => Promise<boolean> {
  const waiting: Waiting[] = []
  let inFlight = 0
  let scheduled = false

  /** Starts a batch after the event loop has read everything that has arrived, not on a timer. */
  function schedule() {
    if (scheduled || waiting.length === 0 || inFlight >= batchesInFlight) return
    scheduled = true
    setImmediate(() => {
      scheduled = false
      refuseLate()
      const batch = waiting.splice(0, batchRows)
      if (batch.length === 0) return
      inFlight++
      storeBatch(batch).finally(() => {
        inFlight--
        schedule()
      })
      schedule()
    })
  }

  /** The first one has waited the longest. */
  function refuseLate() {
    const oldest = performance.now() - waitingMs
    while (waiting[0] && waiting[0].since < oldest) waiting.shift()?.reject(unavailable())
  }

  async function storeBatch(batch: Waiting[]): Promise<void> {
    try {
      const stored = await insertRows(
        db,
        batch.map(({ intent }) => intent),
        deadlockRetries,
      )
      onBatch(batch.length, stored.size)
      for (const { intent, resolve } of batch) resolve(stored.has(intent.orderId))
    } catch (error) {
      if (batch.length === 1 || !isRefusedRow(error)) {
        for (const { reject } of batch) reject(error)
        return
      }
      // One row is wrong, PostgreSQL does not say which, and nothing was stored: insert them one by one.
      for (const one of batch) await storeBatch([one])
    }
  }

  return (intent) =>
    new Promise((resolve, reject) => {
      if (waiting.length >= waitingLimit) return reject(unavailable())
      waiting.push({ intent, since: performance.now(), resolve, reject })
      schedule()
    })
}

/** The orderIds of the rows that are new. Sorted, so that two instances meet on shared keys in the same order. */
async function insertRows(db: Queryable, intents: Intent[], retries: number): Promise<Set<string>> {
  intents.sort((a, b) => compare(a.mid, b.mid) || compare(a.merchantOrderId, b.merchantOrderId))
  try {
    const values = [
      intents.map((intent) => intent.mid),
      intents.map((intent) => intent.orderId),
      intents.map((intent) => intent.merchantOrderId),
      intents.map((intent) => intent.amount),
      intents.map((intent) => intent.redirectUrl),
      intents.map((intent) => intent.note),
      intents.map((intent) => intent.customer.name),
      intents.map((intent) => intent.customer.email),
      intents.map((intent) => intent.customer.mobile),
      intents.map((intent) => intent.payee.vpa),
      intents.map((intent) => intent.payee.name),
      intents.map((intent) => intent.payee.mcc),
      intents.map((intent) => intent.createdAt),
      intents.map((intent) => intent.expiresAt),
      intents.map((intent) => intent.idempotency?.key),
      intents.map((intent) => intent.idempotency?.fingerprint),
    ]
    const issued = intents.filter((intent) => intent.issued)
    const { rows } =
      issued.length === 0
        ? await db.query<{ order_id: string }>(INSERT, values)
        : await db.query<{ order_id: string }>(INSERT_WITH_ISSUED, [
            ...values,
            issued.map((intent) => intent.orderId),
            issued.map((intent) => intent.issued?.acquirer),
            issued.map((intent) => intent.issued?.merchantId),
            issued.map((intent) => intent.issued?.id),
            issued.map((intent) => intent.issued?.reference),
            issued.map((intent) => intent.issued?.link),
            issued.map((intent) => firstEnquiry(intent)),
          ])
    return new Set(rows.map((row) => row.order_id))
  } catch (error) {
    if (!hasState(error, DEADLOCK_DETECTED) || retries === 0) throw error
    return insertRows(db, intents, retries - 1)
  }
}

const INSERT = `
  insert into payment_intents
    (mid, order_id, merchant_order_id, amount, paise, redirect_url, note, customer_name, customer_email, customer_mobile,
     payee_vpa, payee_name, payee_mcc, created_at, expires_at, idempotency_key, idempotency_fingerprint)
  select mid, order_id, merchant_order_id, amount / 100, amount % 100, redirect_url, note, customer_name, customer_email,
         customer_mobile, payee_vpa, payee_name, payee_mcc, created_at, expires_at, idempotency_key, fingerprint
    from unnest(
           $1::text[], $2::text[], $3::text[], $4::integer[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[],
           $10::text[], $11::text[], $12::text[], $13::timestamptz[], $14::timestamptz[], $15::text[], $16::bytea[])
           as i (mid, order_id, merchant_order_id, amount, redirect_url, note, customer_name, customer_email,
                 customer_mobile, payee_vpa, payee_name, payee_mcc, created_at, expires_at, idempotency_key, fingerprint)
  on conflict do nothing
  returning order_id`

/** One statement, so that an intent is never stored without its link. */
const INSERT_WITH_ISSUED = `
  with stored as (${INSERT}, mid), issued as (
    insert into acquirer_intents
      (mid, order_id, acquirer, acquirer_merchant_id, acquirer_id, reference, link, enquiries, enquire_at)
    select stored.mid, stored.order_id, acquirer, merchant_id, id, reference, link, 0, enquire_at
      from stored
      join unnest($17::text[], $18::text[], $19::text[], $20::text[], $21::text[], $22::text[], $23::timestamptz[])
             as prepared (order_id, acquirer, merchant_id, id, reference, link, enquire_at)
        using (order_id)
  )
  select order_id from stored`

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
