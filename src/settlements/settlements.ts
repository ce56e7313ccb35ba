import type { Readable } from 'node:stream'
import { setImmediate as turnOfTheLoop } from 'node:timers/promises'
import { escapeLiteral } from 'pg'
import { to as copyTo } from 'pg-copy-streams'
import type { Database, Pools } from '../db/pool.ts'

export type SettlementStatus = 'SUCCESS' | 'PENDING' | 'FAILED'

/** One payout of the bank. Amounts are decimal text in rupees with two decimals; moments are ISO 8601 in UTC. */
export type Settlement = {
  amount: string
  utr: string
  bankReferenceNumber: string
  status: SettlementStatus
  mid: string
  initiatedAt: string
  createdAt: string
}

export type Settlements = ReturnType<typeof createSettlements>

/** Reads the bank's payouts, from the replica if there is one. The operator's import writes them; see import.ts. */
export function createSettlements({ lists, replica }: Pick<Pools, 'lists' | 'replica'>) {
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
    /**
     * Returns the settlements of `mid` initiated from `from` until before `until`, oldest first, then by UTR in byte
     * order; undefined when there are more than `most`. It takes one statement: for 30 rows the seven round trips of
     * `list` took Node.js one and a half times the processor time.
     */
    async short(mid: string, from: Date, until: Date, most: number): Promise<Settlement[] | undefined> {
      const statement = `${select(FIELDS, mid, from, until)} limit ${most + 1}`
      const { rows } = await onEither((db) => db.query<Row>(inTime(statement)))
      if (rows.length > most) return undefined
      return rows.map(({ initiatedAt, createdAt, ...row }) => ({
        ...row,
        initiatedAt: initiatedAt.toISOString(),
        createdAt: createdAt.toISOString(),
      }))
    },

    /**
     * Yields the same settlements, however many there are, in batches as the reader takes them, from one snapshot and
     * in constant memory. Aborting `signal` ends the list at once. An error of the database is thrown to the reader.
     */
    async *list(mid: string, from: Date, until: Date, signal: AbortSignal): AsyncGenerator<Settlement[]> {
      const statement = `copy (${select(COPIED, mid, from, until)}) to stdout`
      yield* copy(await onEither((db) => db), statement, signal)
    },
  }
}

type Row = Omit<Settlement, 'initiatedAt' | 'createdAt'> & { initiatedAt: Date; createdAt: Date }

const FIELDS = `amount, utr, bank_reference_number as "bankReferenceNumber", status, mid,
                initiated_at as "initiatedAt", created_at as "createdAt"`

/** Moments as text in UTC, in the style that BEGIN names: to_json took PostgreSQL 0.3 µs longer for each. */
const COPIED = `amount, utr, bank_reference_number, status, mid, initiated_at at time zone 'UTC', created_at at time zone 'UTC'`

/** Makes a query with literals, because COPY takes no parameters. */
const select = (columns: string, mid: string, from: Date, until: Date) => `
  select ${columns}
    from settlements
   where mid = ${escapeLiteral(mid)} and initiated_at >= ${toTimestamp(from)} and initiated_at < ${toTimestamp(until)}
   order by initiated_at, utr`

/**
 * Moments are passed as a number of seconds, because a list may begin in the year 1, whose dates ISO 8601 and
 * PostgreSQL spell differently in UTC.
 */
const toTimestamp = (moment: Date) => `to_timestamp(${moment.getTime() / 1000})`

/** Longest wait for the first word of a replica, so that the primary can still answer in time. */
const REPLICA_MS = 400

/**
 * Throws when the replica is silent or was promoted: a promoted one knows nothing new, so a list would lack later
 * payouts.
 */
async function checkThatItFollows(replica: Database): Promise<void> {
  const asked = inTime('select pg_is_in_recovery() as follows', REPLICA_MS)
  const { rows } = await replica.query<{ follows: boolean }>(asked)
  if (!rows[0]?.follows) throw new Error('the replica of DATABASE_READ_URL does not follow the primary')
}

/**
 * Begins the transaction of a list. Sorting is off, so that PostgreSQL uses the index (mid, initiated_at, utr), which
 * holds the list in its order: a plan that sorts sends nothing before it has sorted. PostgreSQL prefers such a plan for
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
 * Reads settlements by COPY, which took Node.js 1.8 µs a row; a query took 3.2 µs. Only closing the connection ends a
 * COPY early: while a slow reader takes nothing, PostgreSQL heeds neither statement_timeout nor pg_cancel_backend.
 */
async function* copy(db: Database, statement: string, signal: AbortSignal): AsyncGenerator<Settlement[]> {
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
      yield lines.map(toSettlement)
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

const inTime = (text: string, limitMs = SILENCE_MS) => ({ text, ...({ query_timeout: limitMs } as object) })

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
      // Every column is ASCII by its check.
      const lines = (begun + (chunk as Buffer).toString('latin1')).split('\n')
      begun = lines.pop() as string
      for (let i = 0; i < lines.length; i += LINES_AT_ONCE) yield lines.slice(i, i + LINES_AT_ONCE)
      silence = setTimeout(onSilence, SILENCE_MS)
    }
  } finally {
    clearTimeout(silence)
  }
}

/**
 * Reads one line of COPY. Nothing in it is escaped: the text format escapes only backslashes and control characters,
 * and the table's checks allow neither. With `line.split` a long list took a quarter more processor time.
 */
function toSettlement(line: string): Settlement {
  // Where each column begins.
  const utr = line.indexOf('\t') + 1
  const bankReferenceNumber = line.indexOf('\t', utr) + 1
  const status = line.indexOf('\t', bankReferenceNumber) + 1
  const mid = line.indexOf('\t', status) + 1
  const initiatedAt = line.indexOf('\t', mid) + 1
  const createdAt = line.indexOf('\t', initiatedAt) + 1
  return {
    amount: line.slice(0, utr - 1),
    utr: line.slice(utr, bankReferenceNumber - 1),
    bankReferenceNumber: line.slice(bankReferenceNumber, status - 1),
    status: line.slice(status, mid - 1) as SettlementStatus,
    mid: line.slice(mid, initiatedAt - 1),
    initiatedAt: toUtcIso(line.slice(initiatedAt, createdAt - 1)),
    createdAt: toUtcIso(line.slice(createdAt)),
  }
}

/** `2026-01-02 03:04:05.6` as `2026-01-02T03:04:05.600Z`; beyond milliseconds it is cut. */
function toUtcIso(text: string): string {
  const day = text.slice(0, 10)
  // Nearly all are whole seconds.
  if (text.length === WHOLE_SECONDS) return `${day}T${text.slice(11)}.000Z`
  return `${day}T${text.slice(11, 19)}.${text.slice(20, 23).padEnd(3, '0')}Z`
}

const WHOLE_SECONDS = '2026-01-02 03:04:05'.length
