import type { Readable } from 'node:stream'
import { setImmediate as turnOfTheLoop } from 'node:timers/promises'
import { escapeLiteral, type QueryConfig } from 'pg'
import { to as copyTo } from 'pg-copy-streams'
import type { Database, Pools } from '../db/pool.ts'
import { prepared } from '../db/prepared.ts'
import type { List } from './list.ts'

export type Lists = ReturnType<typeof createLists>

/** Reads lists, from the replica if there is one. */
export function createLists({ lists, replica }: Pick<Pools, 'lists' | 'replica'>) {
  /**
   * Reads from the replica; from the primary when there is none, or when the replica is away, was promoted or fails.
   */
  const onEither = async <T>(read: (db: Database) => T | Promise<T>): Promise<T> =>
    replica === undefined
      ? read(lists)
      : checkThatItFollows(replica)
          .then(() => read(replica))
          .catch(() => read(lists))

  return {
    /** Callers who are reading a long list from this instance. */
    longReaders: new Set<string>(),

    /**
     * Returns the lines of `mid` from `from` until before `until`, oldest first, then by UTR in byte order; undefined when there
     * are more than `most`. It takes one statement: for 30 rows the seven round trips of `long` took Node.js one and a half times
     * the processor time.
     */
    async short(list: List, mid: string, from: Date, until: Date, most: number): Promise<string[] | undefined> {
      const query = { ...list.short(mid, secondsOf(from), secondsOf(until), most), ...IN_TIME }
      const { rows } = await onEither((db) => db.query<{ count: number; lines: string | null }>(query))
      const [{ count, lines } = { count: 0, lines: null }] = rows
      if (count > most) return undefined
      return lines === null ? [] : Buffer.from(lines).toString('latin1').split('\n')
    },

    /**
     * Yields the same lines, however many there are, in batches as the reader takes them, from one snapshot and in
     * constant memory. Aborting `signal` ends the list at once. An error of the database is thrown to the reader.
     */
    async *long(list: List, mid: string, from: Date, until: Date, signal: AbortSignal): AsyncGenerator<string[]> {
      const statement = list.copy(escapeLiteral(mid), secondsOf(from), secondsOf(until))
      yield* copy(await onEither((db) => db), statement, signal)
    },
  }
}

const secondsOf = (moment: Date) => moment.getTime() / 1000

/** Longest wait for the first word of a replica, so that the primary can still answer in time. */
const REPLICA_MS = 400

const FOLLOWS = prepared('select pg_is_in_recovery() as follows')

/**
 * Throws when the replica is silent or was promoted: a promoted one knows nothing new, so a list would lack later
 * payouts.
 */
async function checkThatItFollows(replica: Database): Promise<void> {
  const { rows } = await replica.query<{ follows: boolean }>({ ...FOLLOWS(), query_timeout: REPLICA_MS } as QueryConfig)
  if (!rows[0]?.follows) throw new Error('the replica of DATABASE_READ_URL does not follow the primary')
}

/**
 * Begins the transaction of a list. Sorting is off, so that PostgreSQL uses the list's index, which holds it in its
 * order: a plan that sorts sends nothing before it has sorted. PostgreSQL prefers such a plan for
 * a merchant with about a seventh of a large table, and for any merchant that is younger than the table's statistics.
 * Time limits are off, because the reader sets the pace; the service itself cuts off a reader that is too slow. Each
 * statement is a message of its own, since Citus would send a combined one to all its nodes.
 */
const BEGIN = [
  'begin read only',
  'set local enable_sort = off',
  `set local datestyle = 'ISO'`,
  'set local statement_timeout = 0',
  // When PostgreSQL has sent everything, the reader may still have to take what the sockets hold.
  'set local idle_in_transaction_session_timeout = 0',
]

/**
 * Yields lines of COPY, which took Node.js 1.8 µs a row; a query took 3.2 µs. Only closing the connection ends a
 * COPY early: while a slow reader takes nothing, PostgreSQL heeds neither statement_timeout nor pg_cancel_backend.
 */
async function* copy(db: Database, statement: string, signal: AbortSignal): AsyncGenerator<string[]> {
  const client = await db.connect()
  let held = true
  const release = (close: boolean) => {
    if (held) client.release(close)
    held = false
  }
  // The signal must release the connection: when the reader has left, this loop is never resumed and `finally` never
  // runs.
  const abort = () => release(true)
  signal.addEventListener('abort', abort, { once: true })
  try {
    signal.throwIfAborted()
    for (const setting of BEGIN) await client.query(inTime(setting))
    for await (const lines of linesOf(client.query(copyTo(statement)), abort)) {
      yield lines
      // Without this pause a payment beside four long lists took 200 ms.
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
 * Longest wait for the next bytes from PostgreSQL, which come within milliseconds. After a silent cut of the network
 * they never come: without this limit the list would keep its connection, and its partner from the next list, until its
 * reader counts as too slow.
 */
const SILENCE_MS = 5_000

/** pg reads it, and its types do not know it. */
const IN_TIME = { query_timeout: SILENCE_MS } as object

const inTime = (text: string) => ({ text, ...IN_TIME })

/** Lines that become JSON at once, in about 0.3 ms: with the 1,000 that often come together a list took 30 MB more. */
const LINES_AT_ONCE = 250

/**
 * Yields at most LINES_AT_ONCE lines at a time. `onSilence` is called when no bytes come for SILENCE_MS, and has to
 * close the connection. The time that the reader takes does not count.
 */
async function* linesOf(rows: Readable, onSilence: () => void): AsyncGenerator<string[]> {
  // This event needs a listener: it is the only one when the connection is lost after the last row and before the end
  // of the COPY.
  rows.on('error', () => undefined)
  let begun = ''
  let silence = setTimeout(onSilence, SILENCE_MS)
  try {
    for await (const chunk of rows) {
      clearTimeout(silence)
      // A character beyond ASCII may be cut in two: as Latin 1 its bytes stay as they are until a record is made.
      const lines = (begun + (chunk as Buffer).toString('latin1')).split('\n')
      begun = lines.pop() as string
      for (let i = 0; i < lines.length; i += LINES_AT_ONCE) yield lines.slice(i, i + LINES_AT_ONCE)
      silence = setTimeout(onSilence, SILENCE_MS)
    }
  } finally {
    clearTimeout(silence)
  }
}
