import type { Readable } from 'node:stream'
import { setImmediate as turnOfTheLoop } from 'node:timers/promises'
import type { QueryConfig } from 'pg'
import { to as copyTo } from 'pg-copy-streams'
import type { Database, Pools } from '../db/pool.ts'
import { prepared } from '../db/prepared.ts'
import type { List, ListValues, ShortLimits } from './list.ts'

export type Lists = ReturnType<typeof createLists>

export function createLists({ lists, replica }: Pick<Pools, 'lists' | 'replica'>) {
  /**
   * Reads from the replica, or from the primary if no replica is configured, or if the replica fails or was promoted.
   */
  const onEither = async <T>(read: (db: Database) => T | Promise<T>): Promise<T> =>
    replica === undefined
      ? read(lists)
      : checkThatItFollows(replica)
          .then(() => read(replica))
          .catch(() => read(lists))

  return {
    /** Callers to whom this instance is sending a long list, each with its list. */
    longReaders: new Map<string, List>(),

    /**
     * Returns the lines in the order of the list, or undefined for a list that exceeds `limits`. `short` sends a single
     * statement, whereas `long` needs seven round trips.
     */
    async short(list: List, values: ListValues, limits: ShortLimits): Promise<string[] | undefined> {
      const query = { ...list.short(values, limits), ...IN_TIME }
      const { rows } = await onEither((db) => db.query<{ lines: string | null }>(query))
      const lines = rows[0]?.lines
      if (typeof lines !== 'string') return undefined
      return lines === '' ? [] : Buffer.from(lines).toString('latin1').split('\n')
    },

    /**
     * Yields any number of lines in batches at the reader's pace, from one snapshot and in constant memory. Stops
     * immediately when `signal` aborts. Throws the errors that the database returns.
     */
    async *long(list: List, values: ListValues, signal: AbortSignal): AsyncGenerator<string[]> {
      yield* copy(await onEither((db) => db), list, values, signal)
    },
  }
}

/** Longest wait for the replica's first response, short enough for the primary to respond in time afterwards. */
const REPLICA_MS = 400

const FOLLOWS = prepared('select pg_is_in_recovery() as follows')

/** Throws if the replica does not respond or was promoted, because a promoted replica lacks the primary's new rows. */
async function checkThatItFollows(replica: Database): Promise<void> {
  const { rows } = await replica.query<{ follows: boolean }>({ ...FOLLOWS(), query_timeout: REPLICA_MS } as QueryConfig)
  if (!rows[0]?.follows) throw new Error('the replica of DATABASE_READ_URL does not follow the primary')
}

/**
 * Begins the transaction of a list. Sorting is off, so that PostgreSQL reads the list's index in order: a plan with a
 * sort sends nothing before the sort is complete, and PostgreSQL would choose such a plan for a merchant with many rows
 * or without statistics. Compilation and parallel workers are off, because both delay the first row. Time limits are
 * off, because the reader sets the pace; the service itself disconnects slow readers. The transaction is idle while a
 * slow reader receives buffered rows after PostgreSQL has sent everything. PostgreSQL checks whether the connection is
 * closed, because it otherwise notices only when it sends a row, and a filter may find none.
 */
const BEGIN = `
  begin read only;
  set local enable_sort = off;
  set local jit = off;
  set local max_parallel_workers_per_gather = 0;
  set local datestyle = 'ISO';
  set local statement_timeout = 0;
  set local idle_in_transaction_session_timeout = 0;
  set local client_connection_check_interval = '100ms'`

/**
 * Yields lines from COPY, which needs less processor time than a query. Only closing the connection stops a COPY early,
 * because PostgreSQL obeys neither statement_timeout nor pg_cancel_backend while a slow reader receives nothing.
 */
async function* copy(db: Database, list: List, values: ListValues, signal: AbortSignal): AsyncGenerator<string[]> {
  const client = await db.connect()
  let held = true
  const release = (close: boolean) => {
    if (held) client.release(close)
    held = false
  }
  // The signal releases the connection, because this loop, and so `finally`, is never resumed once the reader has
  // disconnected.
  const abort = () => release(true)
  signal.addEventListener('abort', abort, { once: true })
  try {
    signal.throwIfAborted()
    await client.query(inTime(BEGIN))
    const rows = client.query(copyTo(list.copy(values)))
    for await (const lines of linesOf(rows, abort, list.isFiltered ? FILTER_SILENCE_MS : SILENCE_MS)) {
      yield lines
      // The pause lets other requests run between two batches.
      await turnOfTheLoop()
    }
    await client.query(inTime('commit'))
    release(false)
  } finally {
    signal.removeEventListener('abort', abort)
    release(true)
  }
}

/**
 * Longest wait for bytes from PostgreSQL. Without this limit, a silent network interruption would block the connection
 * and the reader.
 */
const SILENCE_MS = 5_000
/** The same while PostgreSQL may read many rows without finding a record: about 100 million orders. */
const FILTER_SILENCE_MS = 60_000

/** The type is cast, because pg's types lack the option `query_timeout`. */
const IN_TIME = { query_timeout: SILENCE_MS } as object

const inTime = (text: string) => ({ text, ...IN_TIME })

/**
 * Number of lines that are converted to JSON in one step. More lines would use more memory and block the event loop
 * longer.
 */
const LINES_PER_BATCH = 250

/**
 * Yields at most LINES_PER_BATCH lines at a time. Calls `onSilence`, which must close the connection, if no bytes arrive
 * for `silenceMs`. The time that the reader takes is not included.
 */
async function* linesOf(rows: Readable, onSilence: () => void, silenceMs: number): AsyncGenerator<string[]> {
  // Without a listener, the process would exit if the connection was lost after the last row but before the COPY is
  // complete.
  rows.on('error', () => undefined)
  let begun = ''
  let silence = setTimeout(onSilence, silenceMs)
  try {
    for await (const chunk of rows) {
      clearTimeout(silence)
      // Latin 1 preserves the bytes until a record is built, because a chunk may stop within a UTF-8 character.
      const lines = (begun + (chunk as Buffer).toString('latin1')).split('\n')
      begun = lines.pop() as string
      for (let i = 0; i < lines.length; i += LINES_PER_BATCH) yield lines.slice(i, i + LINES_PER_BATCH)
      silence = setTimeout(onSilence, silenceMs)
    }
  } finally {
    clearTimeout(silence)
  }
}
