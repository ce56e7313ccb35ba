import { type Database, inTransaction, type Queryable } from '../db/pool.ts'
import { RETURN_CALL } from '../payments/events.ts'
import type { PaymentEvent } from './message.ts'

/** An endpoint, named as its deliveries name it. */
export type EndpointName = { mid: string; endpointId: string }

/** An endpoint to which deliveries are due, and since when; `elsewhere` when another instance delivers to it. */
export type DueEndpoint = EndpointName & { dueAt: Date; failing: boolean; elsewhere: boolean }

/** An endpoint that this instance delivers to. Secrets are sealed; a return call has none. */
export type LeasedEndpoint = EndpointName &
  ({ kind: 'webhook'; url: string; secrets: Buffer[] } | { kind: 'return call' })

export type Delivery = PaymentEvent & {
  /** The attempts that have failed. */
  attempts: number
  /** To the microsecond, as PostgreSQL spells it. A Date would cut it, and its outcome would find no row. */
  dueAt: string
  redirectUrl: string
}

/** What came of an attempt. */
export type Attempt = {
  delivery: Delivery
  /** It was answered as it should be. A return call is not over by that. */
  delivered: boolean
  /** The HTTP status, or why there was none. */
  outcome: string
  /** The beginning of what was answered. */
  answer: string
  at: Date
  /** When it is attempted again; undefined when a webhook was delivered, or it is given up. */
  next: Date | undefined
}

export type SwitchedOff = 'answered 410' | 'failed for 5 days'

/**
 * The deliveries that wait. Any number of instances share them: one leases an endpoint for as long as it delivers to it, and
 * when it is killed its lease ends by itself. Every statement but the first names one mid.
 */
export function createDeliveries(db: Database, instance: string) {
  return {
    /** Those that fail come after the others, and those of another instance last: their long queues would take all places. */
    async findDue(limit: number, now: Date): Promise<DueEndpoint[]> {
      const { rows } = await db.query<DueEndpoint>(
        `select e.mid, e.endpoint_id as "endpointId", d.due_at as "dueAt", e.failing_since is not null as failing,
                coalesce(e.leased_by <> $3 and e.leased_until > $1, false) as elsewhere
           from webhook_endpoints e
          -- Limited to one, so that each endpoint is one look-up in the index, however many deliveries wait for it.
          cross join lateral (
            select due_at
              from webhook_deliveries
             where mid = e.mid and endpoint_id = e.endpoint_id and due_at is not null
             order by due_at
             limit 1) d
          where e.disabled_at is null and d.due_at <= $1
          order by elsewhere, failing, d.due_at
          limit $2`,
        [now, limit, instance],
      )
      return rows
    },

    /** Takes the endpoint for this instance, or keeps it. Undefined when another has it, or it is switched off. */
    async lease({ mid, endpointId }: EndpointName, until: Date, now: Date): Promise<LeasedEndpoint | undefined> {
      const { rows } = await db.query<LeasedEndpoint>(
        `update webhook_endpoints
            set leased_by = $3, leased_until = $4
          where mid = $1 and endpoint_id = $2 and disabled_at is null
            and (leased_by is null or leased_by = $3 or leased_until <= $5)
         returning mid, endpoint_id as "endpointId", kind, url, ${secretsAt('$5')} as secrets`,
        [mid, endpointId, instance, until, now],
      )
      return rows[0]
    },

    async release({ mid, endpointId }: EndpointName): Promise<void> {
      await db.query(
        `update webhook_endpoints set leased_by = null, leased_until = null
          where mid = $1 and endpoint_id = $2 and leased_by = $3`,
        [mid, endpointId, instance],
      )
    },

    /** The deliveries to the endpoint that are due, the longest due first. */
    async findDueTo({ mid, endpointId }: EndpointName, limit: number, now: Date): Promise<Delivery[]> {
      const read = async (client: Queryable) => {
        // Of an endpoint that has a larger part of what waits than of all deliveries PostgreSQL expects few to be due, and would
        // read and sort its whole queue for each hundred. Without a bitmap it begins at the queue's end of the index.
        await client.query('set local enable_bitmapscan = off')
        const { rows } = await client.query<Delivery>(
          `select ${EVENT}, d.attempts, d.due_at::text as "dueAt", i.redirect_url as "redirectUrl"
             -- Limited before anything is joined: the orders of those that have to wait are not read.
             from (select *
                     from webhook_deliveries
                    where mid = $1 and endpoint_id = $2 and due_at <= $3
                    order by due_at
                    limit $4) d
            cross join lateral (select * from payment_intents where mid = $1 and order_id = d.order_id limit 1) i
            order by d.due_at, d.order_id, d.sequence`,
          [mid, endpointId, now, limit],
        )
        return rows
      }
      return inTransaction(db, read)
    },

    /**
     * Stores what came of attempts, and keeps the endpoint until `leasedUntil`. With `gone`, or when it has failed since
     * `failingLimit` or longer, a webhook is switched off: returns why. It is `over` when this instance may not go on.
     */
    async settle(
      { mid, endpointId }: EndpointName,
      attempts: readonly Attempt[],
      { leasedUntil, failingLimit, gone, now }: { leasedUntil: Date; failingLimit: Date; gone: boolean; now: Date },
    ): Promise<{ switchedOff: SwitchedOff | null; over: boolean }> {
      const settle = (client: Queryable) =>
        client.query<{ switchedOff: SwitchedOff | null; over: boolean }>(
          `with settled as (
           update webhook_deliveries d
              set attempts = s.attempts, due_at = s.due_at, delivered_at = s.delivered_at, attempted_at = s.attempted_at,
                  outcome = s.outcome, answer = s.answer
             from unnest($3::text[], $4::smallint[], $5::smallint[], $6::timestamptz[], $7::timestamptz[], $8::timestamptz[],
                         $9::text[], $10::text[], $17::timestamptz[])
                    as s (order_id, sequence, attempts, due_at, delivered_at, attempted_at, outcome, answer, was_due_at)
            where d.mid = $1 and d.endpoint_id = $2 and d.order_id = s.order_id and d.sequence = s.sequence
              -- Says it once more, so that they are looked up one by one: all that wait for the endpoint would be read else.
              and d.order_id = any ($3)
              -- Else it was sent again, or settled by another instance, while this call was under way.
              and d.due_at is not distinct from s.was_due_at
         )
         update webhook_endpoints
            set leased_until = case when leased_by = $11 then $12 else leased_until end,
                failing_since = case when $13 then null else coalesce(failing_since, $14) end,
                disabled_at = case when ${REASON} is null then disabled_at else coalesce(disabled_at, $14) end,
                disabled_reason = coalesce(disabled_reason, ${REASON})
          where mid = $1 and endpoint_id = $2
         returning ${REASON} as "switchedOff", disabled_at is not null or leased_by is distinct from $11 as over`,
          [
            mid,
            endpointId,
            attempts.map(({ delivery }) => delivery.orderId),
            attempts.map(({ delivery }) => delivery.sequence),
            attempts.map(({ delivery }) => delivery.attempts + 1),
            attempts.map(({ next }) => next),
            attempts.map(({ delivered, at }) => (delivered && endpointId !== RETURN_CALL ? at : undefined)),
            attempts.map(({ at }) => at),
            attempts.map(({ outcome }) => outcome),
            attempts.map(({ answer }) => answer),
            instance,
            leasedUntil,
            attempts.some(({ delivered }) => delivered),
            now,
            gone,
            failingLimit,
            attempts.map(({ delivery }) => delivery.dueAt),
          ],
        )
      // In a transaction, whose loss Citus tells of.
      const { rows } = await inTransaction(db, settle)
      return rows[0] ?? { switchedOff: null, over: true }
    },
  }
}

export type Deliveries = ReturnType<typeof createDeliveries>

/** The sealed secrets of an endpoint that sign at `moment`, the current one first; none of a return call. In SQL. */
export const secretsAt = (moment: string) =>
  `array_remove(array[secret, case when earlier_secret_until > ${moment} then earlier_secret end], null)`

/** Why the endpoint is switched off by what has just come of it; a return call never is, because its addresses differ. */
const REASON = `
  case when kind = 'webhook' and $15 then 'answered 410'
       when kind = 'webhook' and not $13 and failing_since <= $16 then 'failed for 5 days' end`

const EVENT = `
  d.mid, d.order_id as "orderId", i.merchant_order_id as "merchantOrderId", d.sequence, d.type, d.txn_status as "txnStatus",
  i.amount * 100 + i.paise as amount, d.utr, d.occurred_at as "occurredAt"`
