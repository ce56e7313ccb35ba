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

/** What the bank has paid out, from the replica where there is one. The operator's import writes it; see import.ts. */
export function createSettlements({ lists, replica }: Pick<Pools, 'lists' | 'replica'>) {
  /** A replica that is away, was promoted or fails is replaced by the primary. */
  const onEither = async <T>(read: (db: Database) => T | Promise<T>): Promise<T> =>
    replica === undefined
      ? read(lists)
      : checkThatItFollows(replica)
          .then(() => read(replica))
          .catch(() => read(lists))

  return {
    /**
     * The settlements of `mid` initiated from `from` until before `until`, oldest first, then by UTR in byte order; undefined when
     * there are more than `most`. By one statement: for 30 rows the seven round trips of `list` took Node.js one and a half times
     * the processor time.
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
     * The same settlements, however many they are. They come in batches as the reader takes them, from one snapshot and in constant
     * memory. `signal` ends it at once. An error of the database ends the loop with it.
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

/** With literals, because COPY takes no parameters. */
const select = (columns: string, mid: string, from: Date, until: Date) => `
  select ${columns}
    from settlements
   where mid = ${escapeLiteral(mid)} and initiated_at >= ${toTimestamp(from)} and initiated_at < ${toTimestamp(until)}
   order by initiated_at, utr`

/** By number, because a list may begin in the year 1, of which ISO 8601 and PostgreSQL have different spellings in UTC. */
const toTimestamp = (moment: Date) => `to_timestamp(${moment.getTime() / 1000})`

/** Longest wait for the first word of a replica, so that the primary can still answer in time. */
const REPLICA_MS = 400

/** Throws where a replica is silent, or has been promoted and knows nothing new: a list would miss what was paid out since. */
async function checkThatItFollows(replica: Database): Promise<void> {
  const asked = inTime('select pg_is_in_recovery() as follows', REPLICA_MS)
  const { rows } = await replica.query<{ follows: boolean }>(asked)
  if (!rows[0]?.follows) throw new Error('the replica of DATABASE_READ_URL does not follow the primary')
}

/**
 * The index (mid, initiated_at, utr) holds the list in its order; any other plan has to sort, and sends nothing before it has
 * sorted. PostgreSQL prefers such a plan where a merchant has about a seventh of a large table, and for any merchant that is
 * younger than the table's statistics: hence no sort at all. No limit of the time, which is the reader's: the service itself
 * cuts off one that is too slow. Each in a message of its own, since Citus would send all of it to its nodes.
 */
const BEGIN = [
  'begin read only',
  'set local enable_sort = off',
  `set local datestyle = 'ISO'`,
  'set local statement_timeout = 0',
  // What the sockets hold is still to be read when PostgreSQL has sent all.
  'set local idle_in_transaction_session_timeout = 0',
]

/**
 * COPY took Node.js 1.8 µs a row where a query's rows took 3.2. Only the end of its connection ends one early: while a slow
 * reader takes nothing, PostgreSQL heeds neither statement_timeout nor pg_cancel_backend.
 */
async function* copy(db: Database, statement: string, signal: AbortSignal): AsyncGenerator<Settlement[]> {
  const client = await db.connect()
  let held = true
  const release = (close: boolean) => {
    if (held) client.release(close)
    held = false
  }
  // A reader that has left never resumes this loop, so its end cannot be what releases the connection.
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
 * Longest wait for what PostgreSQL sends next, which takes milliseconds: after a silent cut of the network it never comes, and
 * the list would keep its connection, and its partner from the next one, until its reader is taken for a slow one.
 */
const SILENCE_MS = 5_000

const inTime = (text: string, limitMs = SILENCE_MS) => ({ text, ...({ query_timeout: limitMs } as object) })

/** Lines that become JSON at once, in about 0.3 ms: with the 1,000 that often come together a list took 30 MB more. */
const LINES_AT_ONCE = 250

/**
 * A few hundred lines at a time. `onSilence` is called when they do not come in time, and has to close
 * the connection; the time that the reader takes does not count.
 */
async function* linesOf(rows: Readable, onSilence: () => void): AsyncGenerator<string[]> {
  // If the connection is lost after the last row and before the end of the COPY, this event is the only one.
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
 * The text format of COPY escapes only backslashes and control characters; the table's checks let neither in. Not by
 * `line.split`, with which a long list took a quarter more processor time.
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
