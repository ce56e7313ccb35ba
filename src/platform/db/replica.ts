import { setTimeout as sleep } from 'node:timers/promises'
import { createPool, type Queryable } from './pool.ts'

/** Longest wait for a replica. After this time, the operator receives a warning that the replica lags behind. */
const WAIT_MS = 60_000
const PAUSE_MS = 100

/** Waits until the replica at `url` has replayed all writes of `primary`; resolves to false after `waitMs`. */
export async function waitForReplica(primary: Queryable, url: string, waitMs = WAIT_MS): Promise<boolean> {
  const { rows } = await primary.query<{ lsn: string }>('select pg_current_wal_lsn()::text as lsn')
  const replica = createPool({ url, size: 1, log: { warn: () => undefined } })
  try {
    // The loop is limited by time, not by a number of queries, because a query to an unresponsive replica takes a long
    // time.
    for (const until = performance.now() + waitMs; performance.now() < until; ) {
      const replayed = await replica
        .query<{ done: boolean }>('select not pg_is_in_recovery() or pg_last_wal_replay_lsn() >= $1::pg_lsn as done', [
          rows[0]?.lsn,
        ])
        .catch(() => undefined)
      if (replayed?.rows[0]?.done) return true
      await sleep(PAUSE_MS)
    }
    return false
  } finally {
    await replica.end()
  }
}
