import type { PoolClient } from 'pg'
import { isOutage, isRejectedRow } from '../../platform/db/outage.ts'
import type { Database, Queryable } from '../../platform/db/pool.ts'
import { query } from '../../platform/db/query.ts'
import { toIstDay } from '../../platform/time.ts'
import { type BankDays, createBankDays } from '../ledger/bank-days.ts'
import { holidaysOf } from '../ledger/bank-holidays.ts'
import type { MoneyException } from '../ledger/facts.ts'
import { groupBy } from '../ledger/match-deductions.ts'

/** One transaction that sees the database as of one moment, and the facts that all merchants share. */
export type Snapshot = {
  client: PoolClient
  /** The report ignores facts stored after this time. */
  known: Date
  /** The IST day of `known`. */
  today: string
  bankDays: BankDays
  /**
   * Exceptions for unknown orders whose UTR appears in a settlement line, grouped by the `mid` in the settlement line.
   */
  unknownOrders: ReadonlyMap<string, readonly UnknownOrder[]>
}

/** An exception for an unknown order. `isPaidOut` is true if a settlement line with the same UTR pays money out. */
export type UnknownOrder = MoneyException & { isPaidOut: boolean; receivedAt: Date; resolvedAt: Date | null }

/**
 * SQL condition that a settlement line or movement was valid at this moment. With `is true`, a generic plan does not use
 * the index on `recorded_at`, because nearly all rows fulfil the condition.
 */
export const asOf = (moment: string) => `(recorded_at <= ${moment}) is true and replaced_at > ${moment}`

/** SQL condition that a settlement line or movement was valid at the time of the snapshot. */
export const AS_KNOWN = asOf(':known')

/** SQL condition that a settlement import was stored, and not undone, at the time of the snapshot. */
export const IMPORT_AS_KNOWN = 'imported_at <= :known and (undone_at is null or undone_at > :known)'

/** Selects one merchant, all merchants of a partner, or all merchants. */
export type Merchants = { mid?: string | undefined; pid?: string | undefined }

/**
 * Yields the results of `read` from one snapshot. Disables the limit for idle transactions, because a person may page
 * through the output. Disables parallel workers, so that other processors stay free for payments.
 */
export async function* inSnapshot<T>(
  db: Database,
  known: Date,
  read: (snapshot: Snapshot) => AsyncIterable<T>,
): AsyncGenerator<T> {
  const client = await db.connect()
  try {
    await client.query(`
      begin isolation level repeatable read read only;
      set local jit = off;
      set local work_mem = '64MB';
      set local max_parallel_workers_per_gather = 0;
      set local idle_in_transaction_session_timeout = 0;
      ${SAVEPOINT}`)
    yield* read(await snapshotOf(client, known))
  } finally {
    await client.query('rollback').then(
      () => client.release(),
      () => client.release(true),
    )
  }
}

/**
 * Begins the savepoint to which `readOne` rolls back. One savepoint serves all merchants, because the transaction changes
 * no rows.
 */
export const SAVEPOINT = 'savepoint snapshot'

/** Returns the result of `read` from one snapshot. */
export async function readSnapshot<T>(db: Database, known: Date, read: (snapshot: Snapshot) => Promise<T>): Promise<T> {
  const found = inSnapshot(db, known, async function* (snapshot) {
    yield await read(snapshot)
  })
  const { value } = await found.next()
  await found.return(undefined)
  return value as T
}

/** Reads the shared facts in the transaction of `client`. */
export async function snapshotOf(client: PoolClient, known: Date): Promise<Snapshot> {
  const unknownOrders = groupBy(await UNKNOWN_ORDERS(client, { known }), ({ mid }) => mid)
  return {
    client,
    known,
    today: toIstDay(known),
    bankDays: createBankDays(await holidaysOf(client, known)),
    unknownOrders,
  }
}

/**
 * Returns exceptions for unknown orders. If several exceptions have the same UTR, an open exception takes precedence,
 * otherwise the oldest exception. A resolution explains its money once, for the merchant that was settled first.
 * Exceptions without a settlement line are skipped, because anyone with an acquirer's signing secret can create them.
 */
const UNKNOWN_ORDERS = query<UnknownOrder & { mid: string }, { known: Date }>(`
  -- Materialized, because Citus would otherwise search for these exceptions on the shard of each merchant.
  with unknown as materialized (
    select utr from money_exceptions where mid = '' and received_at <= :known
  ), carried as (
    select mid, item, bool_or(is_paid_out) as is_paid_out, min(at) filter (where is_paid_out) as first_at
      from (select mid, item, at, status = 'SUCCESS' and not is_deduction as is_paid_out
              from settlement_lines
             where item = any (array(select utr from unknown))
               and ${AS_KNOWN}) line
     group by mid, item
  ), reported as materialized (
    select distinct on (utr) exception_id, kind, order_id, utr, amount_paise, day, received_at,
           case when resolved_at <= :known then resolution end as resolution,
           case when resolved_at <= :known then resolved_at end as resolved_at
      from money_exceptions
     where mid = '' and received_at <= :known and utr in (select item from carried)
     order by utr, resolved_at is not null and resolved_at <= :known, received_at, exception_id
  )
  select c.mid, r.exception_id, r.kind, r.order_id, r.utr, r.amount_paise as amount, r.day, r.received_at, r.resolved_at,
         c.is_paid_out,
         case when c.mid = first_value(c.mid) over (partition by c.item order by c.first_at, c.mid) then r.resolution end as resolution
    from carried c
    join reported r on r.utr = c.item`)

/**
 * Returns the `mid`s of these merchants. If all merchants are selected, an empty `mid` follows at the end, which stands
 * for unknown orders.
 */
export async function readMids(db: Queryable, { mid, pid }: Merchants): Promise<string[]> {
  if (mid !== undefined) return [mid]
  const mids = (await MIDS(db, { pid })).map((row) => row.mid)
  return pid === undefined ? [...mids, ''] : mids
}

const MIDS = query<{ mid: string }, { pid: string | undefined }>(`
  select mid
    from merchants
   where :pid::text is null or mid in (select mid from partner_merchants where pid = :pid)
   order by mid`)

/** A merchant that a report cannot include, and the cause for the operator. */
export type MerchantError = { mid: string; error: string }

export const isMerchantError = (one: object): one is MerchantError => 'error' in one

/** Formats the error as one line, such as `M1 cannot be reconciled: bigint out of range`. */
export const merchantErrorText = ({ mid, error }: MerchantError) =>
  `${mid === '' ? 'unknown orders' : mid} cannot be reconciled: ${error}`

/**
 * Returns the result of `read`, or an error if the facts of this merchant cannot be read or judged, such as amounts
 * whose sum is out of range. Throws errors that concern every merchant, such as a lost connection or a time limit.
 */
export async function readOne<T>(
  { client }: Pick<Snapshot, 'client'>,
  mid: string,
  read: () => Promise<T>,
): Promise<T | MerchantError> {
  try {
    return await read()
  } catch (error) {
    if (!isOfMerchant(error)) throw error
    await client.query('rollback to savepoint snapshot').catch(() => {
      throw error
    })
    // The detail of a PostgreSQL error is omitted, because the detail may quote a row.
    return { mid, error: String((error as Error).message.split('\n')[0]) }
  }
}

/** Whether the facts of one merchant have caused the error. Of the errors of PostgreSQL, only those about data can. */
const isOfMerchant = (error: unknown): boolean =>
  error instanceof Error && !isOutage(error) && (!('severity' in error) || isRejectedRow(error))
