import { isDistributed } from '../../platform/db/distribution.ts'
import type { Database } from '../../platform/db/pool.ts'
import { query } from '../../platform/db/query.ts'
import { type Columns, compareKeys, createSharedBatches, toColumns } from '../../platform/db/shared-batches.ts'
import { RETURN_URL_CALLBACK } from '../payments/outbox.ts'
import type { PaymentEvent } from './message.ts'

/** An endpoint with the encrypted secrets that currently sign its webhooks; a return-URL callback has no secrets. */
export type Endpoint = { mid: string; endpointId: string; kind: 'webhook' | 'return call'; secrets: Buffer[] }

export type PendingEndpoint = Endpoint & { dueAt: Date; failing: boolean }

/** A delivery that this instance has claimed. */
export type Delivery = Endpoint &
  PaymentEvent & {
    /** The webhook endpoint's URL, or the redirect_url of the order. */
    url: string
    /** Number of failed attempts. */
    attempts: number
    /**
     * Time at which the delivery is sent again unless its outcome is stored. It is text, because a Date would
     * truncate the microseconds.
     */
    dueAgainAt: string
  }

export type Attempt = {
  delivery: Delivery
  /**
   * Whether the response was a success. After a success, a webhook is not sent again, but a return-URL callback is.
   */
  delivered: boolean
  /** The HTTP status of the response, or the reason why the call failed. */
  outcome: string
  /** The start of the response body, or the reason why no response arrived. */
  response: string
  at: Date
  /** Time of the next attempt; undefined if a webhook was delivered or this was the last attempt. */
  next: Date | undefined
}

type SwitchedOff = 'answered 410' | 'failed for 5 days'

/**
 * Pending deliveries, shared by any number of instances. Every statement except that of findPending selects
 * one mid.
 */
export function createDeliveries(db: Database) {
  let distributed: boolean | undefined
  const settleDelivered = createSharedBatches(storeDelivered, ({ delivery }) => delivery.mid, BATCH_OUTCOMES)

  /** Stores outcomes of successful attempts, in the order of their keys, so that no two batches lock each other. */
  async function storeDelivered(attempts: Attempt[]): Promise<null[]> {
    const sorted = attempts.toSorted((one, other) => compareKeys(keyOf(one.delivery), keyOf(other.delivery)))
    await SETTLE_DELIVERED(db, toColumns(sorted.map(toOutcome)))
    return attempts.map(() => null)
  }

  return {
    /**
     * Returns endpoints with pending deliveries: failing endpoints last, otherwise in random order. If the order were
     * by time, an endpoint with a long queue would always come first.
     */
    findPending: (limit: number, now: Date) => FIND_PENDING(db, { limit, now }),

    /** Claims up to `limit` pending deliveries of an endpoint, oldest first; none if the endpoint is disabled. */
    claim: ({ mid, endpointId }: Pick<Endpoint, 'mid' | 'endpointId'>, limit: number, now: Date, dueAgainAt: Date) =>
      CLAIM(db, { mid, endpointId, limit, now, dueAgainAt }),

    /**
     * Stores the outcome of an attempt, unless the delivery was claimed again or settled in the meantime. Disables a
     * webhook endpoint that returned 410 or has failed for FAILING_DAYS, and then returns the reason, otherwise null.
     * Concurrent successes share statements, except on distributed tables, which an array cannot be joined with.
     */
    async settle(attempt: Attempt): Promise<SwitchedOff | null> {
      distributed ??= await isDistributed(db)
      if (attempt.delivered && !distributed) return settleDelivered(attempt, () => undefined)
      const { delivered, at } = attempt
      const lastGoodDay = new Date(at.getTime() - FAILING_DAYS * 86_400_000)
      const [row] = await SETTLE(db, { ...toOutcome(attempt), delivered, lastGoodDay })
      return row?.switchedOff ?? null
    },
  }
}

/** Days without a success after which an endpoint is disabled. */
const FAILING_DAYS = 5

/** Largest number of outcomes in a batch. */
const BATCH_OUTCOMES = 100

const toOutcome = ({ delivery, delivered, outcome, response, at, next }: Attempt) => ({
  mid: delivery.mid,
  endpointId: delivery.endpointId,
  orderId: delivery.orderId,
  sequence: delivery.sequence,
  attempts: delivery.attempts + 1,
  dueAt: next,
  deliveredAt: delivered && delivery.endpointId !== RETURN_URL_CALLBACK ? at : undefined,
  attemptedAt: at,
  outcome,
  response,
  dueAgainAt: delivery.dueAgainAt,
})

type Outcome = ReturnType<typeof toOutcome>

const keyOf = ({ mid, endpointId, orderId, sequence }: Delivery) => [mid, endpointId, orderId, sequence].join(' ')

export type Deliveries = ReturnType<typeof createDeliveries>

/**
 * Returns SQL for an endpoint's encrypted secrets that sign at `moment`, the current secret first; a return-URL
 * callback has no secrets.
 */
export const secretsAt = (moment: string) =>
  `array_remove(array[secret, case when earlier_secret_until > ${moment} then earlier_secret end], null)`

/** SQL columns of an endpoint `e`. */
const ENDPOINT = `e.mid, e.endpoint_id, e.kind, ${secretsAt(':now')} as secrets`

/**
 * SQL for the reason to disable the endpoint after this attempt. Return-URL callbacks are never disabled, because their
 * address differs for each order.
 */
const REASON = `
  case when kind = 'webhook' and :outcome = '410' then 'answered 410'
       when kind = 'webhook' and not :delivered and failing_since <= :lastGoodDay
       then 'failed for ${FAILING_DAYS} days' end`

/** Largest number of endpoints that DELIVERIES_ARE_PENDING reads. */
const ENDPOINTS_READ = 50

/**
 * SQL condition at the time $1; also true if ENDPOINTS_READ endpoints have scheduled deliveries. Reads the index of
 * scheduled deliveries from one endpoint to the next, because few endpoints have any: 0.06 ms instead of 0.6 ms for a
 * look-up of each of 1,000 endpoints. An endpoint is one step, however many of its deliveries are scheduled.
 */
export const DELIVERIES_ARE_PENDING = `(
  with recursive first as (
    (select 1 as step, mid, endpoint_id, due_at
       from webhook_deliveries
      where due_at is not null
      order by mid, endpoint_id, due_at
      limit 1)
    union all
    select first.step + 1, following.*
      from first
     cross join lateral (
       select mid, endpoint_id, due_at
         from webhook_deliveries
        where (mid, endpoint_id) > (first.mid, first.endpoint_id) and due_at is not null
        order by mid, endpoint_id, due_at
        limit 1) following
     where first.step < ${ENDPOINTS_READ}
  )
  select count(*) = ${ENDPOINTS_READ}
         or coalesce(bool_or(due_at <= $1 and exists (
              select from webhook_endpoints e
               where e.mid = first.mid and e.endpoint_id = first.endpoint_id and e.disabled_at is null)), false)
    from first)`

const FIND_PENDING = query<PendingEndpoint, { limit: number; now: Date }>(`
  select ${ENDPOINT}, d.due_at, e.failing_since is not null as failing
    from webhook_endpoints e
   -- The limit makes each endpoint a single index lookup, however many of its deliveries are pending.
   cross join lateral (
     select due_at
       from webhook_deliveries
      where mid = e.mid and endpoint_id = e.endpoint_id and due_at is not null
      order by due_at
      limit 1) d
   where e.disabled_at is null and d.due_at <= :now
   order by failing, random()
   limit :limit`)

type Claim = Pick<Endpoint, 'mid' | 'endpointId'> & { limit: number; now: Date; dueAgainAt: Date }

/**
 * Joins by endpoint_id instead of comparing it with the parameter: PostgreSQL assumes that endpoints are independent of
 * merchants, so it expects few deliveries of an endpoint and would read all of them, including delivered ones.
 */
const CLAIM = query<Delivery, Claim>(`
  with due as materialized (
    select endpoint_id, order_id, sequence
      from webhook_deliveries
     where mid = :mid and endpoint_id = :endpointId and due_at <= :now
     order by due_at
     limit :limit
       for update skip locked
  ), taken as (
    update webhook_deliveries d
       set due_at = :dueAgainAt
      from due
     where d.mid = :mid and d.endpoint_id = due.endpoint_id and d.order_id = due.order_id and d.sequence = due.sequence
    returning d.*
  )
  select ${ENDPOINT}, coalesce(e.url, i.redirect_url) as url, d.order_id, i.merchant_order_id, d.sequence, d.type,
         d.txn_status, coalesce(r.amount_paise, i.amount_paise) as amount, d.utr, d.our_refund_id, r.refund_id,
         coalesce(d.failure_reason, case when d.txn_status = 'FAIL' then left(r.reason, 200) end) as reason,
         d.data as dispute_data, d.occurred_at, d.attempts, d.due_at::text as due_again_at
    from taken d
    left join current_refunds r on r.mid = :mid and r.our_refund_id = d.our_refund_id
    join payment_intents i on i.mid = :mid and i.order_id = d.order_id
    join webhook_endpoints e on e.mid = :mid and e.endpoint_id = :endpointId and e.disabled_at is null
   order by d.occurred_at, d.order_id, d.sequence`)

const SETTLE = query<{ switchedOff: SwitchedOff | null }, Outcome & { delivered: boolean; lastGoodDay: Date }>(`
  with settled as (
    update webhook_deliveries
       set attempts = :attempts, due_at = :dueAt, delivered_at = :deliveredAt, attempted_at = :attemptedAt,
           outcome = :outcome, response = :response
     where mid = :mid and endpoint_id = :endpointId and order_id = :orderId and sequence = :sequence
       and due_at = :dueAgainAt::timestamptz
  )
  update webhook_endpoints
     set failing_since = case when :delivered then null else coalesce(failing_since, :attemptedAt) end,
         disabled_at = case when ${REASON} is null then disabled_at else coalesce(disabled_at, :attemptedAt) end,
         disabled_reason = coalesce(disabled_reason, ${REASON})
   where mid = :mid and endpoint_id = :endpointId and not (:delivered and failing_since is null)
  returning ${REASON} as switched_off`)

/** SETTLE for successes, which never disable an endpoint. */
const SETTLE_DELIVERED = query<object, Columns<Outcome>>(`
  with given as materialized (
    select *
      from unnest((select :mid::text[]), (select :endpointId::text[]), (select :orderId::text[]),
                  (select :sequence::smallint[]), (select :attempts::integer[]), (select :dueAt::timestamptz[]),
                  (select :deliveredAt::timestamptz[]), (select :attemptedAt::timestamptz[]),
                  (select :outcome::text[]), (select :response::text[]), (select :dueAgainAt::timestamptz[]))
             as g (mid, endpoint_id, order_id, sequence, attempts, due_at, delivered_at, attempted_at, outcome,
                   response, due_again_at)
  ), settled as (
    update webhook_deliveries d
       set attempts = g.attempts, due_at = g.due_at, delivered_at = g.delivered_at, attempted_at = g.attempted_at,
           outcome = g.outcome, response = g.response
      from given g
     where d.mid = g.mid and d.endpoint_id = g.endpoint_id and d.order_id = g.order_id and d.sequence = g.sequence
       and d.due_at = g.due_again_at
  )
  update webhook_endpoints e
     set failing_since = null
    from given g
   where e.mid = g.mid and e.endpoint_id = g.endpoint_id and e.failing_since is not null`)
