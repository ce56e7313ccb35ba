import { isRefusedRow } from '../db/outage.ts'
import { unavailable } from '../errors.ts'
import type { Limits } from '../limits.ts'
import type { Intent } from './intent.ts'

type Waiting = { intent: Intent; since: number; resolve: (stored: boolean) => void; reject: (error: unknown) => void }

/**
 * Returns a function that stores one intent; it resolves to false when a unique constraint kept the row out. Calls that come at
 * the same time share one statement: one round trip and one wait for the disk. A single call does not wait for others, each
 * call has its own result, and a row that PostgreSQL refuses fails only its own call. `insertRows` stores intents in one
 * statement and returns the orderIds of those that are new; `atOnce` of them are under way at most.
 */
export function batchInserts(
  insertRows: (intents: Intent[]) => Promise<Set<string>>,
  onBatch: (rows: number, stored: number) => void,
  atOnce: number,
  { batchRows, waitingMs }: Limits['inserts'],
): (intent: Intent) => Promise<boolean> {
  const waiting: Waiting[] = []
  let underWay = 0
  let scheduled = false

  /** Starts a batch after the event loop has read everything that has arrived, not on a timer. */
  function schedule() {
    if (scheduled || underWay === atOnce || waiting.length === 0) return
    scheduled = true
    setImmediate(() => {
      scheduled = false
      underWay++
      storeBatch(takeBatch()).finally(() => {
        underWay--
        schedule()
      })
      schedule()
    })
  }

  /** Refuses those who waited too long, who are the first ones, and takes the next. */
  function takeBatch(): Waiting[] {
    const oldest = performance.now() - waitingMs
    while (waiting[0] && waiting[0].since < oldest) waiting.shift()?.reject(unavailable())
    return waiting.splice(0, batchRows)
  }

  async function storeBatch(batch: Waiting[]): Promise<void> {
    if (batch.length === 0) return
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

  return (intent) =>
    new Promise((resolve, reject) => {
      waiting.push({ intent, since: performance.now(), resolve, reject })
      schedule()
    })
}
