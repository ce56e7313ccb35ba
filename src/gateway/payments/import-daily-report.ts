import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { PoolClient } from 'pg'
import { from as copyFrom } from 'pg-copy-streams'
import { type OnWarning, storeBatches } from '../../platform/csv/csv.ts'
import { type Layout, PAYMENT_COLUMNS } from '../../platform/csv/layouts.ts'
import type { Database, Queryable } from '../../platform/db/pool.ts'
import { plannedQuery } from '../../platform/db/query.ts'
import { counted } from '../../platform/money.ts'
import { dailyReport } from './daily-report-format.ts'
import { type FailureReason, failureIn } from './failure-reasons.ts'
import type { Contradiction, FinalStatus, PaymentReport } from './outcome.ts'
import { createPreview } from './preview-reports.ts'
import { createReports, type Recorded, type Reporting, type Reports } from './reports.ts'

/** Number of lines that one query reads from the temporary table. */
const BATCH_LINES = 2_000

/** Number of lines that are recorded concurrently, each in its own transaction. */
const LINES_PER_BATCH = 8

/** Numbers of lines by result. The line of a late payment is counted twice: as recorded, and as an exception. */
export type DailyReportResult = {
  recorded: number
  unchanged: number
  exceptions: Record<Contradiction | 'late payment', number>
}

/**
 * Records each line of the acquirer's daily transaction report like a notification, in the order of the lines. The file
 * may have any size. Orders of an acquirer account other than `acquirer` are treated as unknown, because an acquirer
 * reports only its own orders. The whole file is checked first: an invalid line throws a CsvFileError, and nothing is
 * stored. Each batch then stays stored even if the next batch fails, because a repeated import changes nothing. `db`
 * must not limit the time of a query, and needs more than one connection.
 */
export async function importDailyReport(
  db: Database,
  csv: Readable,
  { acquirer, layout, person, now, barrier, isDry, onChecked, onRecorded, onWarning }: Importing,
): Promise<DailyReportResult> {
  const client = await db.connect()
  try {
    await saveLines(client, csv, layout, { onChecked, onWarning })
    const result: DailyReportResult = {
      recorded: 0,
      unchanged: 0,
      exceptions: {
        'unknown order': 0,
        'amount differs': 0,
        'UTR of another order': 0,
        'double payment': 0,
        'failure after success': 0,
        'late payment': 0,
      },
    }
    let impossible = 0
    const source = 'day file' as const
    const onImpossibleTime = () => (impossible += 1)
    const preview = createPreview(client, { source, now, onImpossibleTime })
    const reports = createReports(db, { onImpossibleTime })
    const record = (all: readonly Line[]) =>
      isDry ? inOrder(all, preview) : recordLines(reports, all, { source, person, now, barrier })
    if (isDry) await client.query('set default_transaction_read_only = on')
    const nextLines = (after: number) => readLines(client, acquirer, after)
    let lines = await nextLines(0)
    for (let last = lines.at(-1)?.line; last !== undefined; last = lines.at(-1)?.line) {
      const newLines = await withoutRecorded(client, acquirer, lines)
      result.unchanged += lines.length - newLines.length
      for (const one of await record(newLines)) {
        if ('exception' in one) result.exceptions[one.exception] += 1
        else result[one.changed ? 'recorded' : 'unchanged'] += 1
        if ('late' in one && one.late) result.exceptions['late payment'] += 1
      }
      onRecorded?.(last)
      lines = await nextLines(last)
    }
    if (impossible > 0) {
      const which = counted(impossible, 'line has', 'lines have')
      onWarning?.(
        `${which} a paid_at that is before the order was created or in the future: the payment is dated today`,
      )
    }
    return result
  } finally {
    // Closing the connection removes the temporary table and the settings.
    client.release(true)
  }
}

/** A callback for progress, called with the number of lines that are finished. */
type OnProgress = ((lines: number) => void) | undefined

/**
 * `acquirer` is the acquirer account of the file; undefined if no account exists, which accepts every order. `layout`
 * describes the acquirer's own format. `person` is the operator who imports the file. `barrier` runs in the transaction
 * of each line. With `isDry`, each line is judged without locks, and nothing is stored.
 */
type Importing = Pick<Reporting, 'now' | 'barrier'> & {
  acquirer?: string | undefined
  layout?: Layout | undefined
  person?: string | undefined
  isDry?: boolean | undefined
  onChecked?: OnProgress
  onRecorded?: OnProgress
  onWarning?: OnWarning
}

/**
 * Checks the whole file and stores its lines in a temporary table. The import uses no transaction, because during such
 * a long transaction PostgreSQL could not remove deleted rows from any table.
 */
async function saveLines(
  client: PoolClient,
  csv: Readable,
  layout: Layout | undefined,
  { onChecked, onWarning }: Pick<Importing, 'onChecked' | 'onWarning'>,
): Promise<void> {
  // Removes the time limits, because a file may arrive slowly through a pipe, and the connection is idle while a batch
  // is recorded.
  await client.query('set statement_timeout = 0; set idle_session_timeout = 0')
  await client.query(`
    create temporary table daily_report (
      line bigint primary key,
      order_id text,
      acquirer_reference text,
      acquirer_payment_id text,
      status text not null,
      utr text,
      amount bigint not null,
      paid_at timestamptz,
      reason text,
      code text
    )`)
  let checked = 0
  await storeBatches(
    csv,
    dailyReport(layout),
    async ({ rows, lineCount }) => {
      const lines = client.query(copyFrom(`copy daily_report (line, ${PAYMENT_COLUMNS}) from stdin`))
      await pipeline([rows], lines)
      checked += lineCount
      onChecked?.(checked)
      return []
    },
    onWarning,
  )
  // Collects statistics, because PostgreSQL would otherwise sort the whole table for each batch.
  await client.query('analyze daily_report')
}

/** `isUnderWay` is true if the code of a failed attempt indicates that it may still succeed. */
type Line = PaymentReport & { line: number; isUnderWay: boolean }

type StoredLine = { [Column in keyof Line]: Line[Column] | null } & {
  status: FinalStatus
  reference: string | null
  paymentId: string | null
  reason: FailureReason | null
  code: string | null
}

/**
 * Returns the next lines after line number `after`. A line without order_id belongs to the intent whose link has the
 * line's acquirer_reference, or to the order whose payment has the line's acquirer_payment_id. An identifier that
 * matches no order, or several orders, is used as an unknown orderId.
 */
async function readLines(client: PoolClient, acquirer: string | undefined, after: number): Promise<Line[]> {
  const rows = await LINES(client, { after })
  const unnamed = rows.filter(({ orderId }) => orderId === null)
  const orders = await findOrders(
    client,
    OF_LINKS,
    acquirer,
    unnamed.flatMap(({ reference }) => reference ?? []),
  )
  const ofPayments = await ordersOfPayments(
    client,
    acquirer,
    unnamed.flatMap(({ paymentId }) => paymentId ?? []),
  )
  return rows.map(({ utr, paidAt, orderId, reference, paymentId, reason, code, ...line }) => {
    const failure = failureIn({ status: line.status, reason: reason ?? undefined, code: code ?? undefined })
    const isUnderWay = failure === 'under way'
    return {
      ...line,
      orderId: orderId ?? orders.get(reference ?? '') ?? ofPayments.get(paymentId ?? '') ?? reference ?? paymentId,
      names: paymentId === null ? undefined : { id: paymentId },
      utr: utr ?? undefined,
      paidAt: paidAt ?? undefined,
      acquirer: acquirer === undefined ? undefined : { name: acquirer },
      failure: isUnderWay ? undefined : failure,
      isUnderWay,
    } as Line
  })
}

const LINES = plannedQuery<StoredLine, { after: number }>(`
  select line, status, utr, amount, paid_at, order_id, acquirer_reference as reference,
         acquirer_payment_id as payment_id, reason, code
    from daily_report
   where line > :after
   order by line
   limit ${BATCH_LINES}`)

/** Maps identifiers to orderIds, except those that several orders share. */
async function findOrders(
  db: Queryable,
  find: typeof OF_LINKS,
  acquirer: string | undefined,
  names: string[],
): Promise<Map<string, string>> {
  if (names.length === 0) return new Map()
  const rows = await find(db, { names, acquirer })
  return new Map(rows.map(({ name, orderId }) => [name, orderId]))
}

/** Finds orders by the references of acquirers' links. */
const OF_LINKS = plannedQuery<{ name: string; orderId: string }, { names: string[]; acquirer: string | undefined }>(`
  select reference as name, min(order_id) as order_id
    from acquirer_intents
   where reference = any (:names) and (:acquirer::text is null or acquirer = :acquirer)
   group by reference
  having count(*) = 1`)

/** Maps the acquirer's ids of payments to orderIds, except those that several payments share. */
export const ordersOfPayments = (db: Queryable, acquirer: string | undefined, paymentIds: string[]) =>
  findOrders(db, OF_PAYMENTS, acquirer, paymentIds)

const OF_PAYMENTS: typeof OF_LINKS = plannedQuery(`
  select acquirer_payment_id as name, min(order_id) as order_id
    from payments
   where acquirer_payment_id = any (:names) and (:acquirer::text is null or acquirer = :acquirer)
   group by acquirer_payment_id
  having count(*) = 1`)

/** Returns the lines of final payments that are not recorded yet, or are recorded with other facts. */
async function withoutRecorded(db: Queryable, acquirer: string | undefined, lines: readonly Line[]): Promise<Line[]> {
  const rows = await PAID(db, { orderIds: lines.map(({ orderId }) => orderId), acquirer })
  const paid = new Map(rows.map((row) => [row.orderId, row]))
  return lines.filter(({ orderId, status, utr, amount, isUnderWay }) => {
    const payment = paid.get(orderId)
    const isSame = payment !== undefined && payment.utr === utr && payment.amount === amount
    return status === 'SUCCESS' ? !isSame : !isUnderWay
  })
}

type Paid = { orderId: string; utr: string; amount: number }

const PAID = plannedQuery<Paid, { orderIds: string[]; acquirer: string | undefined }>(`
  select i.order_id, i.utr, i.amount_paise as amount
    from payment_intents i
    left join acquirer_intents a on a.mid = i.mid and a.order_id = i.order_id
   where i.order_id = any (:orderIds) and i.status = 'SUCCESS'
     and (:acquirer::text is null or coalesce(a.acquirer, 'direct') = :acquirer)`)

/**
 * Records lines with the same results as if they were recorded one after the other. Lines that share no order, UTR or
 * payment id with another line are recorded first and concurrently, because the sequence of these lines makes no
 * difference.
 */
async function recordLines(reports: Reports, lines: readonly Line[], reporting: Reporting): Promise<Recorded[]> {
  const orders = countOf(lines.map(({ orderId }) => orderId))
  const utrs = countOf(lines.map(({ utr }) => utr))
  const ids = countOf(lines.map(({ names }) => names?.id))
  const isAlone = ({ orderId, utr, names }: Line) =>
    orders.get(orderId) === 1 &&
    (utr === undefined || utrs.get(utr) === 1) &&
    (names === undefined || ids.get(names.id) === 1)
  const alone = lines.filter(isAlone).values()
  const record = (line: Line) => reports.record(line, reporting)
  // The concurrent loops share one iterator, so that each line is recorded once.
  const recorded = await Promise.all(Array.from({ length: LINES_PER_BATCH }, () => inOrder(alone, record)))
  const others = lines.filter((line) => !isAlone(line))
  return [...recorded.flat(), ...(await inOrder(others, record))]
}

/** Returns the results of `record` for these lines, one after the other. */
async function inOrder(lines: Iterable<Line>, record: (line: Line) => Promise<Recorded>): Promise<Recorded[]> {
  const recorded: Recorded[] = []
  for (const line of lines) recorded.push(await record(line))
  return recorded
}

function countOf<T>(values: readonly T[]): Map<T, number> {
  const counts = new Map<T, number>()
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1)
  return counts
}
