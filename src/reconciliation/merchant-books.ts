import type { PoolClient } from 'pg'
import { batchesOf } from '../db/batches.ts'
import { orderIdsBegin } from '../payments/intent.ts'
import type { DifferenceKind } from './differences.ts'
import { TELLS_OF_MONEY } from './exceptions-of-no-order.ts'
import {
  boundsOf,
  type Days,
  dayOf,
  PAID_OUT,
  paiseOf,
  READ_DAYS,
  settlementsKnown,
  sumsOf,
  type Texts,
  textOf,
  valuesOfPaid,
  withPaise,
} from './paid-and-settled.ts'
import { REFUNDED } from './refunded.ts'

/**
 * Payments of one day, in paise, whose last settlement is of `settledDay`; null where no settlement carries them.
 */
export type PaidOn = { day: string; settledDay: string | null; count: number; paid: bigint; fromDayFile: number }

/**
 * Settlements of one day, in paise. `gross` is with fee and tax, `net` without. Of the rows that pay something out `named`
 * state the UTR of their payment.
 */
export type SettledOn = {
  day: string
  settledCount: number
  gross: bigint
  fee: bigint
  tax: bigint
  net: bigint
  paidOut: number
  named: number
}

/** Settlements of one day that carry no known payment, and no exception of the merchant explains. */
export type UnnamedOn = { day: string; rows: number; gross: bigint }

/** A settlement of no known payment that was SUCCESS and is FAILED. */
export type TakenBackRow = { day: string; utr: string; gross: bigint }

/**
 * An exception of money on its day, or a refund that no row deducts: `paise` is what the bank pays more by it, if it deducts no
 * refund of a known payment.
 */
export type ExceptionOfMoney = { id: string; kind: string; day: string; paise: bigint; resolved: boolean }

/** What a person has entered to end a difference; `amount` is what it adds to what the bank owes, in paise. */
export type Entry = {
  differenceId: string
  day: string
  kind: DifferenceKind
  orderId: string | null
  utr: string | null
  settlementUtr: string | null
  amount: bigint
  reason: string
}

/**
 * A report that waits for a person. `mid` is empty where no order is known. `amount` is in paise, and null for an
 * unreadable notification.
 */
export type OpenException = {
  mid: string
  exceptionId: string
  kind: string
  orderId: string
  utr: string
  amount: bigint | null
  receivedAt: Date
}

export type MerchantBooks = ReturnType<typeof createMerchantBooks>

/**
 * Condition for settlements `s` that name no payment: neither one of the merchant, nor one of his exceptions, nor one of no
 * known order. The UTRs of the last are $5, because in a Citus cluster they lie on another node.
 */
const namesNothing = (isPast: boolean) => `
  s.payment_utr is null and s.key <> all ($5::text[])
  and not exists (select from payment_intents i
                   where i.mid = $1 and i.utr = s.key collate "default"
                     and not (${isPast} and exists (
                           select from payment_changes c
                            where c.mid = $1 and c.order_id = i.order_id and c.status = 'SUCCESS' and c.changed_at > $2)))
  and not exists (select from payment_exceptions e
                   where e.mid = $1 and upper(e.utr) = s.key and e.received_at <= $2 and ${TELLS_OF_MONEY})`

/** What the books of all merchants share: one snapshot, as it was known at `known`. */
export type Snapshot = {
  client: PoolClient
  known: Date
  /** Whether payments were recorded after `known`. */
  isPast: boolean
  /** Whether a temporary table keeps the days that were read last. The role of the service may make none. */
  keepsDays: boolean
  /** UTRs of exceptions of no known order, in upper case. */
  utrsOfNoOrder: readonly string[]
}

/** Queries of one merchant's payments and payouts. */
export function createMerchantBooks(snapshot: Snapshot, mid: string) {
  const { client, known, isPast, keepsDays, utrsOfNoOrder } = snapshot
  const inDays = (days: Days) => {
    const { begin, end } = boundsOf(days)
    return [mid, known, begin, end]
  }

  return {
    ...snapshot,
    mid,

    /** The first day on which the merchant may have something in the books; undefined when there is none. */
    async firstDay(): Promise<string | undefined> {
      const { rows } = await client.query<{ day: string | null }>(
        `select ${textOf(dayOf('least(ordered, settled, replaced, reported)'))} as day
           from (select (select created_at from payment_intents where mid = $1 order by order_id limit 1) as ordered,
                        (select min(initiated_at) from settlements where mid = $1) as settled,
                        (select min(initiated_at) from settlement_versions where mid = $1) as replaced,
                        (select min(received_at) from payment_exceptions where mid = $1) as reported) first`,
        [mid],
      )
      return rows[0]?.day ?? undefined
    },

    /** Also keeps those that no settlement carries, for `findDifferences`, until other days are read. */
    async paidDays(days: Days): Promise<PaidOn[]> {
      const values = valuesOfPaid(mid, known, days)
      if (keepsDays) {
        await client.query('truncate read_days')
        await client.query(`insert into read_days ${READ_DAYS}`, values)
      }
      const { rows } = keepsDays
        ? await client.query<Texts<PaidOn>>(sumsOf('read_days'))
        : await client.query<Texts<PaidOn>>(sumsOf(`(${READ_DAYS}) read_days`), values)
      return rows.map((row) => withPaise<PaidOn>(row, 'paid'))
    },

    async settledDays(days: Days): Promise<SettledOn[]> {
      const { rows } = await client.query<Texts<SettledOn>>(
        `select ${textOf('day')} as day, count(*)::integer as "settledCount", ${paiseOf('sum(gross)')} as gross,
                ${paiseOf('coalesce(sum(fee), 0)')} as fee, ${paiseOf('coalesce(sum(tax), 0)')} as tax,
                ${paiseOf('sum(amount)')} as net, count(*) filter (where amount >= 0)::integer as "paidOut",
                count(*) filter (where amount >= 0 and payment_utr is not null)::integer as named
           from (select s.*, ${dayOf('initiated_at')} as day
                   from (${settlementsKnown(`status = 'SUCCESS' and initiated_at >= $3 and initiated_at < $4`)}) s) s
          group by s.day
          order by s.day`,
        inDays(days),
      )
      return rows.map((row) => withPaise<SettledOn>(row, 'gross', 'fee', 'tax', 'net'))
    },

    /** Those of the settlements on `days` that name no payment. Days without any are left out. */
    async unnamedDays(days: readonly string[]): Promise<UnnamedOn[]> {
      if (days.length === 0) return []
      const bounds = days.map((day) => boundsOf({ from: day, to: day }))
      const { rows } = await client.query<Texts<UnnamedOn>>(
        `select ${textOf(dayOf('s.initiated_at'))} as day, count(*)::integer as rows, ${paiseOf('sum(s.gross)')} as gross
           from unnest($3::timestamptz[], $4::timestamptz[]) as d (begins, ends)
          cross join lateral (
                ${settlementsKnown(`${PAID_OUT} and initiated_at >= d.begins and initiated_at < d.ends`)}) s
          where ${namesNothing(isPast)}
          group by 1`,
        [mid, known, bounds.map(({ begin }) => begin), bounds.map(({ end }) => end), utrsOfNoOrder],
      )
      return rows.map((row) => withPaise<UnnamedOn>(row, 'gross'))
    },

    /** Settlements of these days that carry no known payment, and were SUCCESS before they were FAILED. */
    async takenBackRows(days: Days): Promise<TakenBackRow[]> {
      const { rows } = await client.query<Texts<TakenBackRow>>(
        `select ${textOf(dayOf('s.initiated_at'))} as day, s.utr, ${paiseOf('s.gross')} as gross
           from (${settlementsKnown(`status = 'FAILED' and initiated_at >= $3 and initiated_at < $4`)}) s
          where ${WAS_PAID_OUT} and ${namesNothing(isPast)}
          order by s.initiated_at, s.utr`,
        [...inDays(days), utrsOfNoOrder],
      )
      return rows.map((row) => withPaise<TakenBackRow>(row, 'gross'))
    },

    /** The day of the last settlement before `day`, else of the first on or after it. */
    async nearestSettledDay(day: string): Promise<string | undefined> {
      const nearest = (from: string, condition: string, order: string) => `
        (select initiated_at as at
           from ${from} and mid = $1 and (known_at is null or known_at <= $2) and ${PAID_OUT} and initiated_at ${condition} $3
          order by initiated_at ${order}, utr ${order}
          limit 1)`
      const both = ['settlements where true', 'settlement_versions where replaced_at > $2'].flatMap((from) => [
        ...[nearest(from, '<', 'desc'), nearest(from, '>=', 'asc')],
      ])
      const { rows } = await client.query<{ day: string | null }>(
        `select ${textOf(dayOf('coalesce(max(at) filter (where at < $3), min(at))'))} as day
           from (${both.join(' union all ')}) nearest`,
        [mid, known, boundsOf({ from: day, to: day }).begin],
      )
      return rows[0]?.day ?? undefined
    },

    /** Exceptions of the merchant's money, and refunds that no row deducts, on these days; at most the first 10,000. */
    async exceptionsOfMoney(days: Days): Promise<ExceptionOfMoney[]> {
      const { rows } = await client.query<Texts<ExceptionOfMoney>>(
        `with ${REFUNDED}
         select id, kind, ${textOf(dayOf('at'))} as day, paise, resolved
           from (select e.exception_id as id, e.kind, coalesce(e.paid_at, e.received_at) as at,
                        ${paiseOf(`case when e.kind = 'failure after success' then -e.amount else e.amount end`)} as paise,
                        r.reason is not null as resolved
                   from payment_exceptions e
                   left join payment_resolutions r
                     on r.mid = e.mid and r.exception_id = e.exception_id and r.resolved_at <= $2
                  where e.mid = $1 and e.received_at <= $2
                    and coalesce(e.paid_at, e.received_at) >= $3 and coalesce(e.paid_at, e.received_at) < $4
                    and (${TELLS_OF_MONEY} or e.kind = 'failure after success')
                  union all
                 select refund_id, 'refund', ended_at, case when second then -amount else amount end, false
                   from refunded
                  where row_utr is null and ended_at >= $3 and ended_at < $4) money
          order by at, id
          limit 10000`,
        inDays(days),
      )
      return rows.map((row) => withPaise<ExceptionOfMoney>(row, 'paise'))
    },

    /** The same differences with the shop's own names of their orders. */
    async withMerchantOrderIds<D extends { orderId: string | null }>(differences: readonly D[]) {
      const { rows } = await client.query<{ orderId: string; merchantOrderId: string }>(
        `select order_id as "orderId", merchant_order_id as "merchantOrderId"
           from payment_intents
          where mid = $1 and order_id = any ($2)`,
        [mid, differences.map(({ orderId }) => orderId)],
      )
      const names = new Map<string | null, string>(rows.map((row) => [row.orderId, row.merchantOrderId]))
      return differences.map((one) => ({ ...one, merchantOrderId: names.get(one.orderId) ?? null }))
    },

    async entries({ from, to }: Days): Promise<Entry[]> {
      const { rows } = await client.query<Texts<Entry>>(
        `select difference_id as "differenceId", ${textOf('day')} as day, kind, order_id as "orderId", utr,
                settlement_utr as "settlementUtr", amount_paise::text as amount, reason
           from difference_resolutions
          where mid = $1 and resolved_at <= $2 and day >= $3 and day <= $4
          order by day, difference_id, entry`,
        [mid, known, from, to],
      )
      return rows.map((row) => withPaise<Entry>(row, 'amount'))
    },

    /** Open exceptions that came on these days, or are of an order that was made on them. */
    async *openExceptions(days: Days): AsyncGenerator<OpenException> {
      const { begin, end, endOrderId } = boundsOf(days)
      const batches = batchesOf<Texts<OpenException>>(
        client,
        `select mid, exception_id as "exceptionId", kind, order_id as "orderId", utr,
                case when kind <> 'unreadable' then ${paiseOf('amount')} end as amount, received_at as "receivedAt"
           from payment_exceptions e
          where mid = $1 and received_at <= $2
            and (received_at >= $3 and received_at < $4 or mid <> '' and order_id >= $5 and order_id < $6)
            and not exists (
                  select from payment_resolutions r
                   where r.mid = e.mid and r.exception_id = e.exception_id and r.resolved_at <= $2)
          order by received_at, order_id, exception_id`,
        [mid, known, begin, end, orderIdsBegin(begin), endOrderId],
      )
      for await (const rows of batches) yield* rows.map((row) => withPaise<OpenException>(row, 'amount'))
    },
  }
}

/** Condition for settlements `s` that were SUCCESS before a later file said otherwise. */
export const WAS_PAID_OUT = `exists (
  select from settlement_versions v
   where v.mid = $1 and v.utr = s.utr and v.status = 'SUCCESS' and not v.undone and v.replaced_at <= $2)`
