import type { Limits } from '../limits.ts'
import { isOutage } from './outage.ts'
import type { Database } from './pool.ts'

/**
 * Returns a function that runs a read on the replica while that is at most a few seconds behind, else on the primary, so
 * that what the operator has just imported is never missing. Positions in the write-ahead log are compared, since the age
 * of the last replayed transaction grows on an idle primary too.
 */
export function createReadRouter(
  { primary, replica }: { primary: Database; replica: Database },
  { lagMs, checkIntervalMs, checkTimeoutMs }: Limits['replica'],
) {
  // A choice may be as old as the interval when it is used, so it is made by a position that is younger by as much.
  const positionAgeMs = lagMs - checkIntervalMs
  const limited = (text: string, values: unknown[] = []) => ({ text, values, query_timeout: checkTimeoutMs })
  // Positions that the primary had written, each with the time before it was read, oldest first.
  let written: { at: number; lsn: string }[] = []
  let checked = { until: 0, isFresh: Promise.resolve(false) }
  let wasFresh = false

  async function isFresh(): Promise<boolean> {
    const at = performance.now()
    try {
      const { rows } = await primary.query<{ lsn: string }>(limited('select pg_current_wal_lsn()::text as lsn'))
      written = [...written, ...rows.map(({ lsn }) => ({ at, lsn }))].filter((mark) => at - mark.at <= positionAgeMs)
      const replayed = await replica.query<{ fresh: boolean }>(
        limited('select pg_is_in_recovery() and pg_last_wal_replay_lsn() >= $1::pg_lsn as fresh', [written[0]?.lsn]),
      )
      return replayed.rows[0]?.fresh === true
    } catch {
      // One of the two is away or has changed its role. If it is the primary, the read itself will fail.
      return false
    }
  }

  return async <T>(read: (db: Database) => Promise<T>): Promise<T> => {
    const moment = performance.now()
    if (moment >= checked.until) {
      checked = { until: moment + checkIntervalMs, isFresh: isFresh() }
      checked.isFresh.then((fresh) => {
        wasFresh = fresh
      })
    }
    // After a replica was away, it is checked in the background while the primary serves, so that no request waits.
    if (!wasFresh || !(await checked.isFresh)) return read(primary)
    try {
      return await read(replica)
    } catch (error) {
      // The replica has gone away since it was chosen, or has cancelled the read to go on replaying.
      if (!isOutage(error)) throw error
      return read(primary)
    }
  }
}
