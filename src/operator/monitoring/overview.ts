import type { FailureReason } from '../../gateway/payments/failure-reasons.ts'
import { orderIdsBegin } from '../../gateway/payments/intent.ts'
import { RETURN_URL_CALLBACK } from '../../gateway/payments/outbox.ts'
import type { ExceptionKind } from '../../gateway/payments/outcome.ts'
import { overdueBefore } from '../../gateway/refunds/store.ts'
import { appliedMigrations } from '../../platform/db/migrate.ts'
import type { Queryable } from '../../platform/db/pool.ts'
import type { Paise } from '../../platform/money.ts'
import { HOUR_MS, istDayOf } from '../../platform/time.ts'

/** Age groups of open exceptions and open refunds. */
export const AGES = ['under 1 day', '1 to 2 days', 'over 2 days'] as const
export type Age = (typeof AGES)[number]

/** Returns the number of open items of all ages. */
export const countOpen = (open: Readonly<Record<Age, number>>): number => AGES.reduce((sum, age) => sum + open[age], 0)

/** An open exception. `mid` and `orderId` are empty if the order is unknown. */
type OldestException = {
  id: string
  kind: ExceptionKind
  mid: string
  orderId: string
  /** Amount in paise; null for an unreadable report. */
  amount: Paise | null
  receivedAt: Date
}

/**
 * A webhook endpoint that has been failing or late for at least 15 minutes, whose last 10 deliveries failed, or that the
 * service disabled.
 */
export type OverdueWebhook = {
  mid: string
  endpointId: string
  /** Time for which the oldest pending delivery is scheduled; null if no delivery is pending. */
  dueSince: Date | null
  /** Time from which every delivery has failed; null if the last delivery succeeded. */
  failingSince: Date | null
  /** Time at which the service disabled the endpoint; null if the endpoint is enabled. */
  switchedOffAt: Date | null
}

/** A paid order whose return-URL callback was abandoned after its last attempt at `givenUpAt`. */
type ReturnUrlCallbackAbandoned = { mid: string; orderId: string; givenUpAt: Date }

/** A refund without a final status. */
type OpenRefund = {
  mid: string
  refundId: string
  orderId: string
  acquirer: string
  amount: Paise
  madeAt: Date
}

type FirstDeadline = { first: string | null; respondBy: Date | null }

/** Numbers of open exceptions and open refunds by age, and of open disputes by deadline. */
export type OpenCounts = Record<'exceptions' | 'refunds' | 'disputes', Record<string, number>>

/** The operator's open tasks, the last import and the state of the database, without customer data. */
export type Overview = {
  /**
   * `open` counts open exceptions by age, and `amount` is the sum of all open exceptions in paise. The sum may be beyond
   * 2^53, because anyone with an acquirer's signing secret can report amounts.
   */
  exceptions: { open: Record<Age, number>; amount: bigint; oldest: OldestException[] }
  /** `overdue` counts refunds older than T+5 days. `amount` is the sum of all open refunds in paise. */
  refunds: { open: number; overdue: number; amount: Paise; oldest: OpenRefund[] }
  /**
   * Numbers of open disputes by deadline: within 48 hours (`awaiting`), passed in the last 30 days, and unknown. `amount`
   * is the sum of the awaiting ones in paise, in which a payment replaces an unknown amount. `first` is the id of the one
   * with the first deadline, which is `respondBy`.
   */
  disputes: Record<'awaiting' | 'passed' | 'unknown' | 'amount', number> & FirstDeadline
  /** Failed payment attempts for orders created today (IST), by reason. The most frequent reason comes first. */
  failures: { reason: FailureReason; count: number }[]
  /** Number of today's orders that were created at the fallback acquirer. */
  byNextAcquirer: number
  webhooks: { behind: number; longest: OverdueWebhook[] }
  /** Callbacks that were abandoned in the last 7 days, newest first. */
  returnCalls: { givenUp: number; newest: ReturnUrlCallbackAbandoned[] }
  settlementImport: { importedAt: Date; file: string } | null
  /** The newest applied migration. */
  migration: string | null
  databaseBytes: number
}

/**
 * Time in milliseconds after which a late or failing webhook endpoint counts as behind. The service usually attempts a
 * scheduled delivery within seconds, and retries of a short failure need no operator.
 */
const BEHIND_MS = 15 * 60_000
/** Number of deliveries that all fail before an endpoint that failed for a shorter time counts as behind. */
const FAILED_DELIVERIES = 10
const ABANDONED_SHOWN_HOURS = 7 * 24
/** Largest number of rows per list. `ops` has commands that list all rows. */
const LISTED = 20

/** Reads the data other than orders that `ops today` shows. */
export function createOverview(db: Queryable) {
  async function exceptions(now: Date): Promise<Overview['exceptions']> {
    const { rows } = await db.query<OldestException & { first: number; second: number; all: number; sum: string }>(
      `select exception_id as id, kind, mid, order_id as "orderId", case when kind <> 'unreadable' then amount_paise end as amount,
              received_at as "receivedAt", sum(amount_paise) over ()::text as sum,
              count(*) filter (where received_at > $1) over () as first,
              count(*) filter (where received_at > $2) over () as second,
              count(*) over () as all
         from payment_exceptions e
        where not exists (select from payment_resolutions r where r.mid = e.mid and r.exception_id = e.exception_id)
        order by received_at, mid, exception_id
        limit $3`,
      [hoursBefore(now, 24), hoursBefore(now, 48), LISTED],
    )
    const { first, second, all, sum } = rows[0] ?? { first: 0, second: 0, all: 0, sum: '0' }
    return {
      open: { 'under 1 day': first, '1 to 2 days': second - first, 'over 2 days': all - second },
      amount: BigInt(sum),
      oldest: rows.map(({ first, second, all, sum, ...exception }) => exception),
    }
  }

  async function refunds(now: Date): Promise<Overview['refunds']> {
    const { rows } = await db.query<OpenRefund & { open: number; overdue: number; sum: number }>(
      `select mid, our_refund_id as "refundId", order_id as "orderId", acquirer, amount_paise as amount,
              created_at as "madeAt", count(*) over () as open, (sum(amount_paise) over ())::bigint as sum,
              count(*) filter (where created_at < $1) over () as overdue
         from refunds
        where status = 'PENDING'
        order by created_at, mid, our_refund_id
        limit $2`,
      [overdueBefore(now), LISTED],
    )
    const { open, overdue, sum } = rows[0] ?? { open: 0, overdue: 0, sum: 0 }
    return { open, overdue, amount: sum, oldest: rows.map(({ open, overdue, sum, ...refund }) => refund) }
  }

  async function disputes(now: Date): Promise<Overview['disputes']> {
    const { rows } = await db.query<Overview['disputes']>(
      `select count(*) filter (where respond_by > $1) as awaiting, count(*) filter (where respond_by <= $1) as passed,
              count(*) filter (where respond_by is null) as unknown,
              coalesce(sum(coalesce(d.amount_paise, p.amount_paise)) filter (where respond_by > $1), 0)::bigint as amount,
              (array_agg(dispute_id order by respond_by) filter (where respond_by > $1))[1] as first,
              min(respond_by) filter (where respond_by > $1) as "respondBy"
         from disputes d
         join payments p on p.mid = d.mid and p.utr = d.utr
        where status = 'open' and (respond_by is null or (respond_by > $1::timestamptz - interval '30 days'
                                                          and respond_by <= $1::timestamptz + interval '48 hours'))`,
      [now],
    )
    return rows[0] as Overview['disputes']
  }

  async function failures(now: Date): Promise<Overview['failures']> {
    const { rows } = await db.query<Overview['failures'][number]>(
      `select coalesce(t.failure_reason, 'other') as reason, count(*) as count
         from merchants m
         join payment_attempts t on t.mid = m.mid and t.order_id >= $1
        group by 1
        order by 2 desc, 1`,
      [orderIdsBegin(istDayOf(now))],
    )
    return rows
  }

  async function countByNext(now: Date): Promise<number> {
    const { rows } = await db.query<{ count: number }>(
      `select count(*) as count
         from merchants m
         join acquirer_intents a on a.mid = m.mid and a.by_fallback and a.order_id >= $1`,
      [orderIdsBegin(istDayOf(now))],
    )
    return rows[0]?.count ?? 0
  }

  async function overdueWebhooks(now: Date): Promise<Overview['webhooks']> {
    const { rows } = await db.query<OverdueWebhook & { behind: number }>(
      `select e.mid, e.endpoint_id as "endpointId", d.due_at as "dueSince", e.failing_since as "failingSince",
              e.disabled_at as "switchedOffAt", count(*) over () as behind
         from webhook_endpoints e
         -- The limit of 1 makes this a single index look-up per endpoint, no matter how many deliveries are pending.
         left join lateral (
           select due_at
             from webhook_deliveries
            where mid = e.mid and endpoint_id = e.endpoint_id and due_at is not null
            order by due_at
            limit 1) d on true
         -- Only deliveries since the last success, and only of endpoints that began to fail within 15 minutes.
         left join lateral (
           select count(*) as failed
             from (select from webhook_deliveries
                    where mid = e.mid and endpoint_id = e.endpoint_id and due_at is not null
                      and e.failing_since > $1 and attempted_at >= e.failing_since
                    limit $3) one) f on true
        -- Excludes endpoints that the operator disabled. Also excludes failing return-URL callbacks, because they fail
        -- for single orders.
        where case when e.disabled_at is not null then e.disabled_reason <> 'operator'
                   else ((e.failing_since <= $1 or f.failed = $3) and e.kind = 'webhook') or d.due_at <= $1 end
        order by least(d.due_at, e.failing_since, e.disabled_at), e.mid, e.endpoint_id
        limit $2`,
      [new Date(now.getTime() - BEHIND_MS), LISTED, FAILED_DELIVERIES],
    )
    return { behind: rows[0]?.behind ?? 0, longest: rows.map(({ behind, ...webhook }) => webhook) }
  }

  /**
   * Returns abandoned return-URL callbacks. Excludes orders that checkPaymentStatus has returned as paid after the last
   * attempt, because their merchants have the result.
   */
  async function returnUrlCallbacksAbandoned(now: Date): Promise<Overview['returnCalls']> {
    const { rows } = await db.query<ReturnUrlCallbackAbandoned & { givenUp: number }>(
      `select mid, order_id as "orderId", attempted_at as "givenUpAt", count(*) over () as "givenUp"
         from webhook_deliveries
        where endpoint_id = '${RETURN_URL_CALLBACK}' and due_at is null and delivered_at is null and attempted_at > $1
        order by attempted_at desc, mid, order_id
        limit $2`,
      [hoursBefore(now, ABANDONED_SHOWN_HOURS), LISTED],
    )
    return { givenUp: rows[0]?.givenUp ?? 0, newest: rows.map(({ givenUp, ...one }) => one) }
  }

  async function lastSettlementImport(): Promise<Overview['settlementImport']> {
    const { rows } = await db.query<{ importedAt: Date; file: string }>(
      `select imported_at as "importedAt", file
         from settlement_imports
        where undone_at is null and sha256 is not null
        order by imported_at desc
        limit 1`,
    )
    return rows[0] ?? null
  }

  async function databaseBytes(): Promise<number> {
    const { rows } = await db.query<{ bytes: number }>('select pg_database_size(current_database()) as bytes')
    return rows[0]?.bytes ?? 0
  }

  return {
    /** Returns the numbers of open exceptions and open refunds by age, and of open disputes by deadline. */
    async openCounts(now: Date): Promise<OpenCounts> {
      const { open, overdue } = await refunds(now)
      const { awaiting, passed, unknown } = await disputes(now)
      return {
        exceptions: (await exceptions(now)).open,
        refunds: { 'up to T+5 days': open - overdue, 'over T+5 days': overdue },
        disputes: { 'within 48 hours': awaiting, passed, unknown },
      }
    },

    async read(now: Date): Promise<Overview> {
      return {
        exceptions: await exceptions(now),
        refunds: await refunds(now),
        disputes: await disputes(now),
        failures: await failures(now),
        byNextAcquirer: await countByNext(now),
        webhooks: await overdueWebhooks(now),
        returnCalls: await returnUrlCallbacksAbandoned(now),
        settlementImport: await lastSettlementImport(),
        migration: [...(await appliedMigrations(db))].sort().at(-1) ?? null,
        databaseBytes: await databaseBytes(),
      }
    },
  }
}

const hoursBefore = (moment: Date, hours: number) => new Date(moment.getTime() - hours * HOUR_MS)
