import type { Readable } from 'node:stream'
import { setImmediate as turnOfTheLoop } from 'node:timers/promises'
import { escapeLiteral, type QueryConfig } from 'pg'
import { to as copyTo } from 'pg-copy-streams'
import type { Database, Pools } from '../db/pool.ts'
import { prepared } from '../db/prepared.ts'
import type { List } from './list.ts'

export type Lists = ReturnType<typeof createLists>

export function createLists({ lists, replica }: Pick<Pools, 'lists' | 'replica'>) {
  /** Reads from the replica; from the primary if there is no replica, or if it is away, was promoted or fails. */
  const onEither = async <T>(read: (db: Database) => T | Promise<T>): Promise<T> =>
    replica === undefined
      ? read(lists)
      : checkThatItFollows(replica)
          .then(() => read(replica))
          .catch(() => read(lists))

  return {
    /** Callers that are reading a long list from this instance. */
    longReaders: new Set<string>(),

    /**
     * Returns the lines of `mid` from `from` until before `until`, oldest first, then by UTR in byte order; undefined for more than
     * `most` lines. One statement, because `long` has seven round trips.
     */
    async short(list: List, mid: string, from: Date, until: Date, most: number): Promise<string[] | undefined> {
      const query = { ...list.short(mid, secondsOf(from), secondsOf(until), most), ...IN_TIME }
      const { rows } = await onEither((db) => db.query<{ count: number; lines: string | null }>(query))
      const [{ count, lines } = { count: 0, lines: null }] = rows
      if (count > most) return undefined
      return lines === null ? [] : Buffer.from(lines).toString('latin1').split('\n')
    },

    /**
     * Yields any number of lines in batches as the reader takes them, from one snapshot and in constant memory. Aborting `signal`
     * ends the list at once. An error of the database is thrown to the reader.
     */
    async *long(list: List, mid: string, from: Date, until: Date, signal: AbortSignal): AsyncGenerator<string[]> {
      const statement = list.copy(escapeLiteral(mid), secondsOf(from), secondsOf(until))
      yield* copy(await onEither((db) => db), statement, signal)
    },
  }
}

const secondsOf = (moment: Date) => moment.getTime() / 1000

/** Longest wait for a replica's first answer, so that the primary can still answer in time. */
const REPLICA_MS = 400

const FOLLOWS = prepared('select pg_is_in_recovery() as follows')

/** Throws when the replica is silent or was promoted: a promoted one gets no new rows, so a list would lack later payouts. */
async function checkThatItFollows(replica: Database): Promise<void> {
  const { rows } = await replica.query<{ follows: boolean }>({ ...FOLLOWS(), query_timeout: REPLICA_MS } as QueryConfig)
  if (!rows[0]?.follows) throw new Error('the replica of DATABASE_READ_URL does not follow the primary')
}

/**
 * Begins the transaction of a list. Sorting is off, so that PostgreSQL reads the list's index in its order: a plan that sorts sends
 * nothing before it has sorted. PostgreSQL would sort for a merchant with much of a large table, and for a merchant that is younger
 * than the table's statistics. Time limits are off, because the reader sets the pace; the service itself cuts off slow readers. Each
 * statement is a message of its own, since Citus would send a combined one to all its nodes.
 */
const BEGIN = [
  'begin read only',
  'set local enable_sort = off',
  `set local datestyle = 'ISO'`,
  'set local statement_timeout = 0',
  // When PostgreSQL has sent everything, the reader may still be taking buffered rows while the transaction is idle.
  'set local idle_in_transaction_session_timeout = 0',
]

/**
 * Yields lines of COPY, which cost less processor time than rows of a query. Only closing the connection ends a COPY early: while a
 * slow reader takes nothing, PostgreSQL heeds neither statement_timeout nor pg_cancel_backend.
 */
async function* copy(db: Database, statement: string, signal: AbortSignal): AsyncGenerator<string[]> {
  const client = await db.connect()
  let held = true
  const release = (close: boolean) => {
    if (held) client.release(close)
    held = false
  }
  // The signal must release the connection: when the reader has left, this loop is never resumed, so `finally` never runs.
  const abort = () => release(true)
  signal.addEventListener('abort', abort, { once: true })
  try {
    signal.throwIfAborted()
    for (const setting of BEGIN) await client.query(inTime(setting))
    for await (const lines of linesOf(client.query(copyTo(statement)), abort)) {
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
 * Longest wait for the next bytes from PostgreSQL, which take milliseconds. Without this limit a silent cut of the network would hold
 * the list's connection, and its reader's next list, until the reader counts as too slow.
 */
const SILENCE_MS = 5_000

/** The types of pg lack this option. */
const IN_TIME = { query_timeout: SILENCE_MS } as object

const inTime = (text: string) => ({ text, ...IN_TIME })

/** Lines that become JSON at once. More of them take more memory, and block the event loop longer. */
const LINES_AT_ONCE = 250

/**
 * Yields at most LINES_AT_ONCE lines at a time. `onSilence` is called when no bytes come for SILENCE_MS, and has to
 * close the connection. The time that the reader takes does not count.
 */
async function* linesOf(rows: Readable, onSilence: () => void): AsyncGenerator<string[]> {
  // Without a listener the process would end when the connection is lost after the last row and before the end of the COPY.
  rows.on('error', () => undefined)
  let begun = ''
  let silence = setTimeout(onSilence, SILENCE_MS)
  try {
    for await (const chunk of rows) {
      clearTimeout(silence)
      // A chunk may end within a UTF-8 character. Latin 1 preserves the bytes until a record is made.
      const lines = (begun + (chunk as Buffer).toString('latin1')).split('\n')
      begun = lines.pop() as string
      for (let i = 0; i < lines.length; i += LINES_AT_ONCE) yield lines.slice(i, i + LINES_AT_ONCE)
      silence = setTimeout(onSilence, SILENCE_MS)
    }
  } finally {
    clearTimeout(silence)
  }
}
