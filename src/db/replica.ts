import { isOutage } from './outage.ts'
import type { Database } from './pool.ts'

/** What the primary had written this long ago is in every list, or the replica is passed over. */
const LAG_LIMIT_MS = 3_000
/** How often the two are compared while lists are asked for. */
const CHECK_INTERVAL_MS = 1_000
/** A choice stands for the interval, so what it was made by must be that much younger. */
const MARK_AGE_LIMIT_MS = LAG_LIMIT_MS - CHECK_INTERVAL_MS
/** The pools of lists have no limit of their own, and a silently cut replica never answers. */
const CHECK_TIMEOUT_MS = 500

const limited = (text: string, values: unknown[] = []) => ({ text, values, query_timeout: CHECK_TIMEOUT_MS })

/**
 * Answers a function that runs a read on the replica while that is at most a few seconds behind, else on the primary.
 * Never a "No settlements found" for what the operator has just imported. Positions in the write-ahead log are compared,
 * since the age of the last replayed transaction grows on an idle primary too.
 */
export function createReadRouter({ primary, replica }: { primary: Database; replica: Database }) {
  // What the primary had written at least, and when, oldest first.
  let written: { at: number; lsn: string }[] = []
  let checked = { until: 0, isFresh: Promise.resolve(false) }
  let wasFresh = false

  async function isFresh(): Promise<boolean> {
    const at = performance.now()
    try {
      const { rows } = await primary.query<{ lsn: string }>(limited('select pg_current_wal_lsn()::text as lsn'))
      written = [...written, ...rows.map(({ lsn }) => ({ at, lsn }))].filter(
        (mark) => at - mark.at <= MARK_AGE_LIMIT_MS,
      )
      const replayed = await replica.query<{ fresh: boolean }>(
        limited('select pg_is_in_recovery() and pg_last_wal_replay_lsn() >= $1::pg_lsn as fresh', [written[0]?.lsn]),
      )
      return replayed.rows[0]?.fresh === true
    } catch {
      // One of them is away, or has changed its role: whether the primary can answer, the read itself shows.
      return false
    }
  }

  return async <T>(read: (db: Database) => Promise<T>): Promise<T> => {
    const moment = performance.now()
    if (moment >= checked.until) {
      checked = { until: moment + CHECK_INTERVAL_MS, isFresh: isFresh() }
      checked.isFresh.then((fresh) => {
        wasFresh = fresh
      })
    }
    // One that was away is looked at in the background: the primary is right at any time, and nobody has to wait.
    if (!wasFresh || !(await checked.isFresh)) return read(primary)
    try {
      return await read(replica)
    } catch (error) {
      // It went away since it was chosen, or cancelled the read to go on replaying.
      if (!isOutage(error)) throw error
      return read(primary)
    }
  }
}
