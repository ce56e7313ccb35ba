import type { FailureReason } from '../../gateway/payments/failure-reasons.ts'
import { orderIdsBegin } from '../../gateway/payments/intent.ts'
import { RETURN_URL_CALLBACK } from '../../gateway/payments/outbox.ts'
import type { ExceptionKind } from '../../gateway/payments/outcome.ts'
import { overdueBefore } from '../../gateway/refunds/store.ts'
import { appliedMigrations } from '../../platform/db/migrate.ts'
import type { Queryable } from '../../platform/db/pool.ts'
import { plannedQuery, query } from '../../platform/db/query.ts'
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
type Overview = {
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
    const rows = await EXCEPTIONS(db, { dayAgo: hoursBefore(now, 24), twoDaysAgo: hoursBefore(now, 48) })
    const { first, second, all, sum } = rows[0] ?? { first: 0, second: 0, all: 0, sum: '0' }
    return {
      open: { 'under 1 day': first, '1 to 2 days': second - first, 'over 2 days': all - second },
      amount: BigInt(sum),
      oldest: rows.map(({ first, second, all, sum, ...exception }) => exception),
    }
  }

  async function refunds(now: Date): Promise<Overview['refunds']> {
    const rows = await REFUNDS(db, { overdueBefore: overdueBefore(now) })
    const { open, overdue, sum } = rows[0] ?? { open: 0, overdue: 0, sum: 0 }
    return { open, overdue, amount: sum, oldest: rows.map(({ open, overdue, sum, ...refund }) => refund) }
  }

  async function webhooks(now: Date): Promise<Overview['webhooks']> {
    const rows = await WEBHOOKS(db, { behindSince: new Date(now.getTime() - BEHIND_MS) })
    return { behind: rows[0]?.behind ?? 0, longest: rows.map(({ behind, ...webhook }) => webhook) }
  }

  async function returnCalls(now: Date): Promise<Overview['returnCalls']> {
    const rows = await CALLBACKS_ABANDONED(db, { since: hoursBefore(now, ABANDONED_SHOWN_HOURS) })
    return { givenUp: rows[0]?.givenUp ?? 0, newest: rows.map(({ givenUp, ...one }) => one) }
  }

  return {
    /** Returns the numbers of open exceptions and open refunds by age, and of open disputes by deadline. */
    async openCounts(now: Date): Promise<OpenCounts> {
      const { open, overdue } = await refunds(now)
      const [{ awaiting, passed, unknown }] = (await DISPUTES(db, { now })) as [Overview['disputes']]
      return {
        exceptions: (await exceptions(now)).open,
        refunds: { 'up to T+5 days': open - overdue, 'over T+5 days': overdue },
        disputes: { 'within 48 hours': awaiting, passed, unknown },
      }
    },

    async read(now: Date): Promise<Overview> {
      const today = { first: orderIdsBegin(istDayOf(now)) }
      return {
        exceptions: await exceptions(now),
        refunds: await refunds(now),
        disputes: (await DISPUTES(db, { now }))[0] as Overview['disputes'],
        failures: await FAILURES(db, today),
        byNextAcquirer: (await AT_FALLBACK(db, today))[0]?.count ?? 0,
        webhooks: await webhooks(now),
        returnCalls: await returnCalls(now),
        settlementImport: (await LAST_IMPORT(db, {}))[0] ?? null,
        migration: [...(await appliedMigrations(db))].sort().at(-1) ?? null,
        databaseBytes: (await DATABASE_SIZE(db, {}))[0]?.bytes ?? 0,
      }
    },
  }
}

type ExceptionRow = OldestException & { first: number; second: number; all: number; sum: string }

const EXCEPTIONS = plannedQuery<ExceptionRow, { dayAgo: Date; twoDaysAgo: Date }>(`
  select exception_id as id, kind, mid, order_id, case when kind <> 'unreadable' then amount_paise end as amount,
         received_at, sum(amount_paise) over ()::text as sum,
         count(*) filter (where received_at > :dayAgo) over () as first,
         count(*) filter (where received_at > :twoDaysAgo) over () as second,
         count(*) over () as all
    from payment_exceptions e
   where not exists (select from payment_resolutions r where r.mid = e.mid and r.exception_id = e.exception_id)
   order by received_at, mid, exception_id
   limit ${LISTED}`)

const REFUNDS = query<OpenRefund & { open: number; overdue: number; sum: number }, { overdueBefore: Date }>(`
  select mid, our_refund_id as refund_id, order_id, acquirer, amount_paise as amount, created_at as made_at,
         count(*) over () as open, (sum(amount_paise) over ())::bigint as sum,
         count(*) filter (where created_at < :overdueBefore) over () as overdue
    from refunds
   where status = 'PENDING'
   order by created_at, mid, our_refund_id
   limit ${LISTED}`)

const DISPUTES = plannedQuery<Overview['disputes'], { now: Date }>(`
  select count(*) filter (where respond_by > :now) as awaiting, count(*) filter (where respond_by <= :now) as passed,
         count(*) filter (where respond_by is null) as unknown,
         coalesce(sum(coalesce(d.amount_paise, p.amount_paise)) filter (where respond_by > :now), 0)::bigint as amount,
         (array_agg(dispute_id order by respond_by) filter (where respond_by > :now))[1] as first,
         min(respond_by) filter (where respond_by > :now) as respond_by
    from disputes d
    join payments p on p.mid = d.mid and p.utr = d.utr
   where status = 'open' and (respond_by is null or (respond_by > :now::timestamptz - interval '30 days'
                                                     and respond_by <= :now::timestamptz + interval '48 hours'))`)

const FAILURES = plannedQuery<Overview['failures'][number], { first: string }>(`
  select coalesce(t.failure_reason, 'other') as reason, count(*) as count
    from merchants m
    join payment_attempts t on t.mid = m.mid and t.order_id >= :first
   group by 1
   order by 2 desc, 1`)

const AT_FALLBACK = plannedQuery<{ count: number }, { first: string }>(`
  select count(*) as count
    from merchants m
    join acquirer_intents a on a.mid = m.mid and a.by_fallback and a.order_id >= :first`)

const WEBHOOKS = plannedQuery<OverdueWebhook & { behind: number }, { behindSince: Date }>(`
  select e.mid, e.endpoint_id, d.due_at as due_since, e.failing_since, e.disabled_at as switched_off_at,
         count(*) over () as behind
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
                 and e.failing_since > :behindSince and attempted_at >= e.failing_since
               limit ${FAILED_DELIVERIES}) one) f on true
   -- Excludes endpoints that the operator disabled. Also excludes failing return-URL callbacks, because they fail
   -- for single orders.
   where case when e.disabled_at is not null then e.disabled_reason <> 'operator'
              else ((e.failing_since <= :behindSince or f.failed = ${FAILED_DELIVERIES}) and e.kind = 'webhook')
                   or d.due_at <= :behindSince end
   order by least(d.due_at, e.failing_since, e.disabled_at), e.mid, e.endpoint_id
   limit ${LISTED}`)

/**
 * Excludes orders that checkPaymentStatus has returned as paid after the last attempt, because their merchants have the
 * result.
 */
const CALLBACKS_ABANDONED = plannedQuery<ReturnUrlCallbackAbandoned & { givenUp: number }, { since: Date }>(`
  select mid, order_id, attempted_at as given_up_at, count(*) over () as given_up
    from webhook_deliveries
   where endpoint_id = '${RETURN_URL_CALLBACK}' and due_at is null and delivered_at is null and attempted_at > :since
   order by attempted_at desc, mid, order_id
   limit ${LISTED}`)

const LAST_IMPORT = query<{ importedAt: Date; file: string }, object>(`
  select imported_at, file
    from settlement_imports
   where undone_at is null and sha256 is not null
   order by imported_at desc
   limit 1`)

const DATABASE_SIZE = query<{ bytes: number }, object>('select pg_database_size(current_database()) as bytes')

const hoursBefore = (moment: Date, hours: number) => new Date(moment.getTime() - hours * HOUR_MS)
