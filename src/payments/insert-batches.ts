import { countShares, type Key, queueByKey } from '../db/few-at-once.ts'
import { isRefusedRow } from '../db/sqlstates.ts'
import { unavailable } from '../errors.ts'
import type { Limits } from '../limits.ts'
import type { Intent } from './intent.ts'

type Waiting = { intent: Intent; since: number; resolve: (stored: boolean) => void; reject: (error: unknown) => void }

type Lane = { name: string; node: Key; queue: Waiting[] }

/** Stores intents in one statement and returns the orderIds of those that are new. */
type InsertRows = (intents: Intent[]) => Promise<Set<string>>

/** Where an intent is stored: those of a `lane` share statements, and those of a `node` leave places for the others'. */
type Place = { lane: string; node: Key }

/**
 * Returns a function that stores one intent; it resolves to false when a unique constraint kept the row out. Calls that come at
 * the same time and with the same lane share one statement: one round trip and one wait for the disk. A single call does
 * not wait for others, each call has its own result, and a row that PostgreSQL refuses fails only its own call.
 */
export function batchInserts(
  insertRows: InsertRows,
  onBatch: (rows: number, stored: number) => void,
  { batchesInFlight, batchRows, waiting: waitingLimit, waitingMs }: Limits['inserts'],
): (intent: Intent, place: Place) => Promise<boolean> {
  /** Those in which somebody waits, by name. */
  const lanes = new Map<string, Lane>()
  const turns = queueByKey<Lane>(batchesInFlight)
  const waiting = countShares(waitingLimit)
  let scheduled = false

  /** Starts a batch after the event loop has read everything that has arrived, not on a timer. */
  function schedule() {
    if (scheduled || !turns.isReady()) return
    scheduled = true
    setImmediate(() => {
      scheduled = false
      const next = turns.take()
      if (next === undefined) return
      const { item: lane, key: node } = next
      storeBatch(takeBatch(lane)).finally(() => {
        turns.giveBack(node)
        schedule()
      })
      schedule()
    })
  }

  /** Of those who wait in a lane. Those who waited too long are refused. */
  function takeBatch(lane: Lane): Waiting[] {
    const { name, node, queue } = lane
    const oldest = performance.now() - waitingMs
    // The first one has waited the longest.
    const late = queue.findIndex(({ since }) => since >= oldest)
    const refused = queue.splice(0, late === -1 ? queue.length : late)
    for (const { reject } of refused) reject(unavailable())
    const batch = queue.splice(0, batchRows)
    waiting.add(-refused.length - batch.length, node)
    if (queue.length > 0) turns.add(lane, node)
    else lanes.delete(name)
    return batch
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

  return (intent, place) =>
    new Promise((resolve, reject) => {
      const known = lanes.get(place.lane)
      const lane = known ?? { name: place.lane, node: place.node, queue: [] }
      if (!waiting.hasRoom(lane.node)) return reject(unavailable())
      waiting.add(1, lane.node)
      lane.queue.push({ intent, since: performance.now(), resolve, reject })
      if (known === undefined) {
        lanes.set(lane.name, lane)
        turns.add(lane, lane.node)
      }
      schedule()
    })
}
