import { setTimeout as sleep } from 'node:timers/promises'
import type { Queryable } from '../../src/platform/db/pool.ts'

/** Only limits a failing test: the machine may be slow. */
const TIMEOUT_MS = 30_000
const POLL_MS = 20

/** Waits until `holds` is true; throws with `what` if it takes too long. */
export async function until(
  what: string,
  holds: () => boolean | Promise<boolean>,
  { timeoutMs = TIMEOUT_MS, pollMs = POLL_MS }: { timeoutMs?: number; pollMs?: number } = {},
): Promise<void> {
  const deadline = performance.now() + timeoutMs
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`Timed out after ${timeoutMs} ms. Expected: ${what}`)
    await sleep(pollMs)
  }
}

/** Waits until `url` responds with 200; throws if the process behind it has exited. */
export function untilListening(url: string, hasEnded: () => boolean): Promise<void> {
  return until(`${url} responds with 200`, async () => {
    if (hasEnded()) throw new Error(`The process behind ${url} exited before it was ready`)
    const response = await fetch(url).catch(() => undefined)
    await response?.arrayBuffer()
    return response?.status === 200
  })
}

/** Returns the number of transactions in this database that wait for a lock. */
export async function countBlocked(db: Queryable): Promise<number> {
  const { rowCount } = await db.query(
    `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
  )
  return rowCount ?? 0
}

/** Waits until this number of transactions wait for a lock, or until `isOver`. */
export const untilBlocked = (db: Queryable, transactions = 1, isOver = () => false) =>
  until(
    `${transactions} transactions wait for a lock`,
    async () => isOver() || (await countBlocked(db)) >= transactions,
  )
