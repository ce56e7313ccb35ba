import { setImmediate as turnOfTheLoop } from 'node:timers/promises'
import { escapeLiteral } from 'pg'
import { to as copyTo } from 'pg-copy-streams'
import { type Database, QUERY_TIMEOUT_MS } from '../db/pool.ts'

/** One payout of the bank. Amounts are decimal text in rupees with two decimals; moments are ISO 8601 in UTC. */
export type Settlement = {
  amount: string
  utr: string
  bankReferenceNumber: string
  status: string
  mid: string
  initiatedAt: string
  createdAt: string
}

/** Most rows that are read in one piece. Beyond it a list is streamed, on a connection that its reader holds. */
const SHORT_LIST_ROWS = 1_000

/** Longest wait for the next rows of a list that has begun: after a silent cut of the network they never come. */
const SILENCE_LIMIT_MS = 5_000

/** to_json writes a moment as ISO 8601 whatever the server's DateStyle, and at a third of the cost of to_char. */
const COLUMNS = `
  amount, utr, bank_reference_number, status, mid,
  to_json(initiated_at at time zone 'UTC'), to_json(created_at at time zone 'UTC')`

/**
 * What the bank has paid out. The operator's import writes it; see import.ts. `db` is for long lists, each of which holds
 * a connection for as long as its reader takes.
 */
export function createSettlements(db: Database, shortListDb = db) {
  return {
    /** The same list as `list` in one piece, if it has at most SHORT_LIST_ROWS rows; else undefined. */
    async shortList(mid: string, from: Date, until: Date): Promise<Settlement[] | undefined> {
      const query = {
        text: `
          select ${COLUMNS}
            from settlements
           where mid = $1 and initiated_at >= $2 and initiated_at < $3
           order by mid, initiated_at, utr
           limit ${SHORT_LIST_ROWS + 1}`,
        values: [mid, from, until],
        rowMode: 'array' as const,
        query_timeout: QUERY_TIMEOUT_MS,
        // Every column as the text that it comes in, as COPY gives it.
        types: { getTypeParser: () => (text: string) => text },
      }
      const { rows } = await shortListDb.query<Columns>(query)
      return rows.length > SHORT_LIST_ROWS ? undefined : rows.map(toSettlement)
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
      const inTime = (text: string) => ({ text, query_timeout: QUERY_TIMEOUT_MS })
      let rows: ReturnType<typeof copyTo> | undefined
      // A reader that is gone may never resume this loop, so the connection cannot wait for its end.
      const abort = () => {
        rows?.destroy()
        release(true)
      }
      signal.addEventListener('abort', abort, { once: true })
      try {
        // The operator limits statements by the role; this one takes as long as its reader does.
        await client.query(inTime('begin; set local statement_timeout = 0'))
        signal.throwIfAborted()
        rows = client.query(copyTo(copyStatement(mid, from, until)))
        yield* parseRows(rows, abort)
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

/**
 * COPY, because it was measured at 1.4 s for a million rows where a cursor took 2.1 s. It takes no parameters, hence
 * the literals; its text format escapes only backslashes and control characters, and the table's checks let neither in.
 */
function copyStatement(mid: string, from: Date, until: Date): string {
  return `
    copy (
      select ${COLUMNS}
        from settlements
       where mid = ${escapeLiteral(mid)}
         and initiated_at >= to_timestamp(${from.getTime() / 1000})
         and initiated_at < to_timestamp(${until.getTime() / 1000})
       order by mid, initiated_at, utr
    ) to stdout`
}

/** `onSilence` is called when the next rows do not come, and has to end `chunks`. */
async function* parseRows(chunks: AsyncIterable<Buffer>, onSilence: () => void): AsyncGenerator<Settlement[]> {
  let rest = ''
  let silence = setTimeout(onSilence, SILENCE_LIMIT_MS)
  try {
    for await (const chunk of chunks) {
      // How long the reader takes with them is no silence of the database.
      clearTimeout(silence)
      // Every column is ASCII by its check.
      const lines = (rest + chunk.toString('latin1')).split('\n')
      rest = lines.pop() ?? ''
      yield lines.map(parseLine)
      // Node.js reads what has arrived by the megabyte before it turns to anybody else. Beside four long lists a payment
      // took 200 ms without this and 45 ms with it, and new connections to the database were so late that lists were refused.
      await turnOfTheLoop()
      silence = setTimeout(onSilence, SILENCE_LIMIT_MS)
    }
  } finally {
    clearTimeout(silence)
  }
}

function parseLine(line: string): Settlement {
  return toSettlement(line.split('\t') as Columns)
}

type Columns = [string, string, string, string, string, string, string]

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

/** `"2026-01-02T03:04:05.6"`, quotes included, as `2026-01-02T03:04:05.600Z`; beyond milliseconds it is cut. */
function toUtcIso(json: string): string {
  // Nearly all are whole seconds, or have their three decimals.
  if (json.length === WHOLE_SECONDS) return `${json.slice(1, -1)}.000Z`
  if (json.length === MILLISECONDS) return `${json.slice(1, -1)}Z`
  return `${json.slice(1, 20)}.${json.slice(21, -1).slice(0, 3).padEnd(3, '0')}Z`
}

const WHOLE_SECONDS = '"2026-01-02T03:04:05"'.length
const MILLISECONDS = '"2026-01-02T03:04:05.600"'.length
