import { isRefusedRow } from '../db/sqlstates.ts'
import { unavailable } from '../errors.ts'
import type { Limits } from '../limits.ts'
import type { Intent } from './intent.ts'

type Waiting = { intent: Intent; since: number; resolve: (stored: boolean) => void; reject: (error: unknown) => void }

/** Stores intents in one statement and returns the orderIds of those that are new. */
type InsertRows = (intents: Intent[]) => Promise<Set<string>>

/**
 * Returns a function that stores one intent; it resolves to false when a unique constraint kept the row out. Calls that come at
 * the same time and with the same `lane` share one statement: one round trip and one wait for the disk. A single call does
 * not wait for others, each call has its own result, and a row that PostgreSQL refuses fails only its own call.
 */
export function batchInserts(
  insertRows: InsertRows,
  onBatch: (rows: number, stored: number) => void,
  { batchesInFlight, batchRows, waiting: waitingLimit, waitingMs }: Limits['inserts'],
): (intent: Intent, lane: string) => Promise<boolean> {
  /** Lanes in which somebody waits, in the order of their turns. */
  const lanes = new Map<string, Waiting[]>()
  let waiting = 0
  let inFlight = 0
  let scheduled = false

  /** Starts a batch after the event loop has read everything that has arrived, not on a timer. */
  function schedule() {
    if (scheduled || waiting === 0 || inFlight >= batchesInFlight) return
    scheduled = true
    setImmediate(() => {
      scheduled = false
      const batch = takeBatch()
      if (batch.length > 0) {
        inFlight++
        storeBatch(batch).finally(() => {
          inFlight--
          schedule()
        })
      }
      schedule()
    })
  }

  /** Of the lane whose turn it is, which then waits behind the others. Those who waited too long are refused. */
  function takeBatch(): Waiting[] {
    const [lane, queue] = lanes.entries().next().value as [string, Waiting[]]
    lanes.delete(lane)
    const oldest = performance.now() - waitingMs
    // The first one has waited the longest.
    const late = queue.findIndex(({ since }) => since >= oldest)
    const refused = queue.splice(0, late === -1 ? queue.length : late)
    for (const { reject } of refused) reject(unavailable())
    const batch = queue.splice(0, batchRows)
    waiting -= refused.length + batch.length
    if (queue.length > 0) lanes.set(lane, queue)
    return batch
  }

  async function storeBatch(batch: Waiting[]): Promise<void> {
    try {
      const stored = await insertRows(batch.map(({ intent }) => intent))
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

  return (intent, lane) =>
    new Promise((resolve, reject) => {
      if (waiting >= waitingLimit) return reject(unavailable())
      const queue = lanes.get(lane) ?? []
      lanes.set(lane, queue)
      queue.push({ intent, since: performance.now(), resolve, reject })
      waiting++
      schedule()
    })
}
