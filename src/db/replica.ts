import type { Database } from './pool.ts'

/** A replica that has not replayed what the primary had written this long ago is passed over. */
const LAG_LIMIT_MS = 3_000
/** How often the two are compared while lists are asked for. */
const CHECK_INTERVAL_MS = 1_000

/**
 * Answers where a list may be read now: the replica while it is at most a few seconds behind, else the primary. Never a
 * "No settlements found" for what the operator has just imported. Positions in the write-ahead log are compared, since
 * the age of the last replayed transaction grows on an idle primary too.
 */
export function createReadRouter({ primary, replica }: { primary: Database; replica: Database }) {
  // What the primary had written, and when we learned of it, oldest first.
  let written: { at: number; lsn: string }[] = []
  let checked = { until: 0, pool: Promise.resolve(primary) }

  async function choose(): Promise<Database> {
    const at = performance.now()
    const { rows } = await primary.query<{ lsn: string }>('select pg_current_wal_lsn()::text as lsn')
    written = [...written.filter((mark) => at - mark.at <= LAG_LIMIT_MS), { at, lsn: rows[0]?.lsn ?? '' }]
    try {
      const replayed = await replica.query<{ fresh: boolean }>(
        'select coalesce(pg_last_wal_replay_lsn() >= $1::pg_lsn, false) as fresh',
        [written[0]?.lsn],
      )
      return replayed.rows[0]?.fresh ? replica : primary
    } catch {
      return primary
    }
  }

  return (): Promise<Database> => {
    const moment = performance.now()
    if (moment >= checked.until) checked = { until: moment + CHECK_INTERVAL_MS, pool: choose() }
    return checked.pool
  }
}
