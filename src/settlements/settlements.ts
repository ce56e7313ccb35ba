import type { Readable } from 'node:stream'
import { setImmediate as turnOfTheLoop } from 'node:timers/promises'
import { escapeLiteral } from 'pg'
import { to as copyTo } from 'pg-copy-streams'
import { nodesOf } from '../db/nodes.ts'
import { type Database, inTransaction, setLocally } from '../db/pool.ts'
import { LIMITS, type Limits } from '../limits.ts'

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

/** A moment comes as text in UTC, in the style that SETTINGS names; to_json took PostgreSQL 0.3 µs longer for each. */
const COLUMNS = `
  amount, utr, bank_reference_number, status, mid, initiated_at at time zone 'UTC', created_at at time zone 'UTC'`

/**
 * The index (mid, initiated_at, utr) holds the list in its order; any other plan has to sort. PostgreSQL prefers such a plan
 * where a merchant has about a seventh of a large table, and for any merchant that is younger than the table's statistics:
 * it then reads and sorts all rows of the merchant anew for every page. Hence no sort at all.
 */
const SETTINGS = ['enable_sort = off', `datestyle = 'ISO'`]

const locally = (setting: string) => `set local ${setting}`

/**
 * Read only, and one snapshot for all pages. No limit on the time between two pages, which is the reader's: the service
 * itself cuts off one that is too slow. Each in a message of its own, since Citus would send all of it to its nodes.
 */
const beginLongList = (pageMs: number) => [
  'begin isolation level repeatable read, read only',
  ...SETTINGS.map(locally),
  `set local statement_timeout = ${pageMs}`,
  'set local idle_in_transaction_session_timeout = 0',
]

/**
 * What the bank has paid out. The operator's import writes it; see import.ts. `db` is for long lists, each of which holds
 * a connection for as long as its reader takes.
 */
export function createSettlements(
  db: Database,
  shortListDb = db,
  { lists, database: { queryTimeoutMs } }: Pick<Limits, 'lists' | 'database'> = LIMITS,
) {
  const { shortRows, pageRows, batchRows, pageMs } = lists
  const nodes = nodesOf(shortListDb)

  /** One message is one transaction, at whose end the settings end too. On Citus it would be sent to its nodes as a whole. */
  async function readShort(statement: string): Promise<Columns[]> {
    const query = (...statements: string[]) => ({
      text: statements.join('; '),
      rowMode: 'array' as const,
      query_timeout: queryTimeoutMs,
      // Every column as the text that it comes in, as COPY gives it.
      types: { getTypeParser: () => (text: string) => text },
    })
    if (await nodes.isSpread()) {
      return inTransaction(shortListDb, async (client) => {
        await setLocally(client, SETTINGS)
        return (await client.query<Columns>(query(statement))).rows
      })
    }
    const results = (await shortListDb.query(query(...SETTINGS.map(locally), statement))) as unknown as {
      rows: Columns[]
    }[]
    return results.at(-1)?.rows ?? []
  }

  return {
    /** The same list as `list` in one piece, if it has at most `shortRows` rows; else undefined. */
    async shortList(mid: string, from: Date, until: Date): Promise<Settlement[] | undefined> {
      const rows = await nodes.ask(mid, () => readShort(pageStatement(mid, startOf(from), until, shortRows + 1)))
      return rows.length > shortRows ? undefined : rows.map(toSettlement)
    },

    /**
     * The settlements of `mid` initiated from `from` until before `until`, oldest first, then by UTR in byte order.
     * They come in batches as the reader takes them, from one snapshot and in constant memory. `signal` ends it at once:
     * the connection is closed, which alone stops the server's side too. An error of the database ends the loop with it.
     */
    async *list(mid: string, from: Date, until: Date, signal: AbortSignal): AsyncGenerator<Settlement[]> {
      const client = await db.connect()
      let held = true
      const release = (close: boolean) => {
        if (held) client.release(close)
        held = false
      }
      const inTime = (text: string) => ({ text, query_timeout: queryTimeoutMs })
      // A reader that has left never resumes this loop, so its end cannot be what releases the connection.
      const abort = () => release(true)
      signal.addEventListener('abort', abort, { once: true })
      const readPage = (after: Position) =>
        readLines(client.query(copyTo(`copy (${pageStatement(mid, after, until, pageRows)}) to stdout`)), pageMs, abort)
      if (signal.aborted) {
        // Nothing was sent on it: it may serve the next list.
        release(false)
        signal.throwIfAborted()
      }
      try {
        for (const statement of beginLongList(pageMs)) await client.query(inTime(statement))
        signal.throwIfAborted()
        let page: string[] | undefined = await readPage(startOf(from))
        while (page) {
          const last: string | undefined = page.length === pageRows ? page.at(-1) : undefined
          // PostgreSQL reads the next page while the reader takes this one.
          const next: Promise<string[]> | undefined =
            last === undefined ? undefined : readPage(positionOf(parseLine(last)))
          // If the reader leaves first, nobody awaits this promise, and its rejection must not end the process.
          next?.catch(() => undefined)
          for (let i = 0; i < page.length; i += batchRows) {
            yield page.slice(i, i + batchRows).map((line) => toSettlement(parseLine(line)))
            // Without this pause a payment beside four long lists took 200 ms, and new database connections came too late
            // for lists, which were refused.
            await turnOfTheLoop()
          }
          page = await next
        }
        await client.query(inTime('commit'))
        release(false)
      } finally {
        signal.removeEventListener('abort', abort)
        release(true)
      }
    },
  }
}

export type Settlements = ReturnType<typeof createSettlements>

/** A place in a merchant's list: that of a row, or before all rows of a moment. Both as SQL spells them. */
type Position = { initiatedAt: string; utr: string }

/** No UTR is empty, so that every row of the moment comes after it. */
const startOf = (moment: Date): Position => ({ initiatedAt: toTimestamp(moment), utr: `''` })

/** To the microsecond, as it was read. */
const positionOf = ([, utr, , , , initiatedAt]: Columns): Position => ({
  initiatedAt: escapeLiteral(`${initiatedAt}Z`),
  utr: escapeLiteral(utr),
})

/** By number, because a list may begin in the year 1, of which ISO 8601 and PostgreSQL have different spellings in UTC. */
const toTimestamp = (moment: Date) => `to_timestamp(${moment.getTime() / 1000})`

/**
 * At most `limit` rows after `after`. A database that ignores the settings above sees by the limit that only the
 * first rows are needed. With literals, because COPY takes no parameters.
 */
function pageStatement(mid: string, after: Position, until: Date, limit: number): string {
  return `
    select ${COLUMNS}
      from settlements
     where mid = ${escapeLiteral(mid)}
       and (initiated_at, utr) > (${after.initiatedAt}, ${after.utr})
       and initiated_at < ${toTimestamp(until)}
     order by initiated_at, utr
     limit ${limit}`
}

/**
 * The lines of a COPY, which took Node.js 1.8 µs a row where a query's rows took 3.2. `onSilence` is called when they do not
 * come in time, and has to close the connection.
 */
async function readLines(rows: Readable, limitMs: number, onSilence: () => void): Promise<string[]> {
  // If the connection is lost after the last row and before the end of the COPY, this event is the only one.
  rows.on('error', () => undefined)
  const silence = setTimeout(onSilence, limitMs)
  try {
    const chunks: Buffer[] = []
    for await (const chunk of rows) chunks.push(chunk)
    // Every column is ASCII by its check. The last line ends in a line break too.
    return Buffer.concat(chunks).toString('latin1').split('\n').slice(0, -1)
  } finally {
    clearTimeout(silence)
  }
}

/**
 * The text format of COPY escapes only backslashes and control characters; the table's checks let neither in. Not by
 * `line.split`, with which a long list took a quarter more processor time.
 */
function parseLine(line: string): Columns {
  // Where each column begins.
  const utr = line.indexOf('\t') + 1
  const bankReferenceNumber = line.indexOf('\t', utr) + 1
  const status = line.indexOf('\t', bankReferenceNumber) + 1
  const mid = line.indexOf('\t', status) + 1
  const initiatedAt = line.indexOf('\t', mid) + 1
  const createdAt = line.indexOf('\t', initiatedAt) + 1
  return [
    line.slice(0, utr - 1),
    line.slice(utr, bankReferenceNumber - 1),
    line.slice(bankReferenceNumber, status - 1),
    line.slice(status, mid - 1) as SettlementStatus,
    line.slice(mid, initiatedAt - 1),
    line.slice(initiatedAt, createdAt - 1),
    line.slice(createdAt),
  ]
}

type Columns = [string, string, string, SettlementStatus, string, string, string]

function toSettlement([amount, utr, bankReferenceNumber, status, mid, initiatedAt, createdAt]: Columns): Settlement {
  return {
    amount,
    utr,
    bankReferenceNumber,
    status,
    mid,
    initiatedAt: toUtcIso(initiatedAt),
    createdAt: toUtcIso(createdAt),
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
