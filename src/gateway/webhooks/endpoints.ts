import type { Queryable } from '../../platform/db/pool.ts'
import { contextOf } from '../../platform/encryption.ts'
import { RETURN_URL_CALLBACK } from '../payments/outbox.ts'
import { secretsAt } from './deliveries.ts'
import type { PaymentEvent } from './message.ts'

type Named = { mid: string; endpointId: string }

/** A webhook endpoint as shown to the operator, without its secrets. */
export type EndpointRecord = Named & {
  url: string
  label: string | null
  createdAt: Date
  disabledAt: Date | null
  disabledReason: string | null
  failingSince: Date | null
  /** Number of pending deliveries. */
  waiting: number
  /** Time since which the oldest pending delivery has been waiting; null if no delivery is pending. */
  dueSince: Date | null
}

/** A delivery as shown to the operator. */
export type DeliveryRecord = Named &
  Pick<PaymentEvent, 'orderId' | 'merchantOrderId' | 'sequence' | 'type' | 'occurredAt'> & {
    attempts: number
    dueAt: Date | null
    deliveredAt: Date | null
    attemptedAt: Date | null
    outcome: string | null
    answer: string | null
  }

/** The fields that identify a delivery in commands. */
type DeliveryName = Pick<DeliveryRecord, 'endpointId' | 'orderId' | 'sequence'>

/** The operator's changes to endpoints and deliveries, and the operator's queries. Secrets are always encrypted. */
export function createEndpoints(db: Queryable) {
  return {
    /** Returns the number of the merchant's enabled webhook endpoints. */
    async countOf(mid: string): Promise<number> {
      const { rows } = await db.query<{ count: number }>(
        `select count(*) as count from webhook_endpoints
          where mid = $1 and kind = 'webhook' and disabled_at is null`,
        [mid],
      )
      return rows[0]?.count ?? 0
    },

    /** Adds a webhook endpoint. Returns false if the mid is unknown. */
    async add(
      { mid, endpointId, url, label, secret }: Named & { url: string; label?: string | undefined; secret: Buffer },
      now: Date,
    ): Promise<boolean> {
      const { rows } = await db.query(
        `insert into webhook_endpoints (mid, endpoint_id, kind, url, label, secret, created_at)
         select mid, $2, 'webhook', $3, $4, $5, $6 from merchants where mid = $1
         returning endpoint_id`,
        [mid, endpointId, url, label, secret, now],
      )
      return rows.length === 1
    },

    /** Returns webhook endpoints, oldest first: all endpoints, the endpoints of one merchant, or a single endpoint. */
    async list({ mid, endpointId }: { mid?: string | undefined; endpointId?: string } = {}): Promise<EndpointRecord[]> {
      const { rows } = await db.query<EndpointRecord>(
        `select e.mid, e.endpoint_id as "endpointId", e.url, e.label, e.created_at as "createdAt", e.disabled_at as "disabledAt",
                e.disabled_reason as "disabledReason", e.failing_since as "failingSince", d.waiting, d.due_since as "dueSince"
           from webhook_endpoints e
          cross join lateral (
            select count(*) as waiting, min(due_at) as due_since
              from webhook_deliveries
             where mid = e.mid and endpoint_id = e.endpoint_id and due_at is not null) d
          where e.kind = 'webhook' and ($1::text is null or e.mid = $1) and ($2::text is null or e.endpoint_id = $2)
          order by e.created_at, e.endpoint_id`,
        [mid, endpointId],
      )
      return rows
    },

    /** Disables a webhook endpoint. A repeat does not change the time of the first call. */
    async disable(endpointId: string, now: Date): Promise<void> {
      await db.query(
        `update webhook_endpoints
            set disabled_at = coalesce(disabled_at, $2), disabled_reason = coalesce(disabled_reason, 'operator')
          where endpoint_id = $1 and kind = 'webhook'`,
        [endpointId, now],
      )
    },

    /** Enables a webhook endpoint. Its pending deliveries are sent from now on. */
    async enable(endpointId: string): Promise<void> {
      await db.query(
        `update webhook_endpoints set disabled_at = null, disabled_reason = null, failing_since = null
          where endpoint_id = $1 and kind = 'webhook'`,
        [endpointId],
      )
    },

    /** Signs webhooks with `secret` from now on, and also with the previous secret until `earlierUntil`. */
    async rotateSecret({ mid, endpointId }: Named, secret: Buffer, earlierUntil: Date): Promise<void> {
      await db.query(
        `update webhook_endpoints
            set earlier_secret = secret, earlier_secret_until = $4, secret = $3
          where mid = $1 and endpoint_id = $2`,
        [mid, endpointId, secret, earlierUntil],
      )
    },

    /** Replaces every encrypted secret with the result of `reencrypt`. Returns the number of webhook endpoints. */
    async reencryptSecrets(reencrypt: (encrypted: Buffer, owner: string) => Buffer): Promise<number> {
      const { rows } = await db.query<Named & { secret: Buffer; earlier: Buffer | null }>(
        `select mid, endpoint_id as "endpointId", secret, earlier_secret as earlier
           from webhook_endpoints
          where kind = 'webhook'`,
      )
      for (const { mid, endpointId, secret, earlier } of rows) {
        const owner = contextOf({ mid, endpointId })
        await db.query(
          // Does not change a secret that was rotated in the meantime, because the newer key has already encrypted this
          // secret.
          `update webhook_endpoints set secret = $4, earlier_secret = $5 where mid = $1 and endpoint_id = $2 and secret = $3`,
          [mid, endpointId, secret, reencrypt(secret, owner), earlier && reencrypt(earlier, owner)],
        )
      }
      return rows.length
    },

    /** Returns the encrypted secrets that sign at `now`. */
    async secretsOf({ mid, endpointId }: Named, now: Date): Promise<Buffer[]> {
      const { rows } = await db.query<{ secrets: Buffer[] }>(
        `select ${secretsAt('$3')} as secrets from webhook_endpoints where mid = $1 and endpoint_id = $2`,
        [mid, endpointId, now],
      )
      return rows[0]?.secrets ?? []
    },

    async setReturnUrlCallback(mid: string, on: boolean, now: Date): Promise<void> {
      await db.query(
        `insert into webhook_endpoints (mid, endpoint_id, kind, created_at, disabled_at, disabled_reason)
         values ($1, '${RETURN_URL_CALLBACK}', 'return call', $2, $3, $4)
         on conflict (mid, endpoint_id)
           do update set disabled_at = excluded.disabled_at, disabled_reason = excluded.disabled_reason`,
        [mid, now, on ? null : now, on ? null : 'operator'],
      )
    },

    /** Returns the merchants whose return-URL callback is enabled. */
    async returnUrlCallbacks(): Promise<Set<string>> {
      const { rows } = await db.query<{ mid: string }>(
        `select mid from webhook_endpoints where kind = 'return call' and disabled_at is null`,
      )
      return new Set(rows.map(({ mid }) => mid))
    },

    /**
     * Returns the deliveries of events since a time, oldest first: all deliveries, or only the undelivered deliveries.
     */
    async deliveries(mid: string, { failed, since }: { failed: boolean; since: Date }): Promise<DeliveryRecord[]> {
      const { rows } = await db.query<DeliveryRecord>(
        `select d.mid, d.endpoint_id as "endpointId", d.order_id as "orderId", i.merchant_order_id as "merchantOrderId",
                d.sequence, d.type, d.occurred_at as "occurredAt", d.attempts, d.due_at as "dueAt",
                d.delivered_at as "deliveredAt", d.attempted_at as "attemptedAt", d.outcome, d.response as answer
           from webhook_deliveries d
           join payment_intents i on i.mid = d.mid and i.order_id = d.order_id
          where d.mid = $1 and d.occurred_at >= $2 and (not $3 or d.delivered_at is null)
          order by d.occurred_at, d.order_id, d.sequence, d.endpoint_id`,
        [mid, since, failed],
      )
      return rows
    },

    /**
     * Restarts the schedule of a delivery. Returns false if the delivery does not exist or its endpoint is disabled.
     */
    async resend({ endpointId, orderId, sequence }: DeliveryName, now: Date): Promise<boolean> {
      const { rows } = await db.query(
        `update webhook_deliveries d
            set attempts = 0, due_at = $4, delivered_at = null
           from webhook_endpoints e
          -- The statement reads the mid from the order, because the return-URL callbacks of all merchants share one
          -- endpoint_id.
          where d.mid = (select mid from payment_intents where order_id = $2)
            and d.endpoint_id = $1 and d.order_id = $2 and d.sequence = $3
            and e.mid = d.mid and e.endpoint_id = d.endpoint_id and e.disabled_at is null
         returning d.order_id`,
        [endpointId, orderId, sequence, now],
      )
      return rows.length === 1
    },

    /**
     * Whether the order has an event of this sequence, and an enabled endpoint of its merchant this id, but no delivery
     * of the event to the endpoint is stored.
     */
    async lacksDelivery({ endpointId, orderId, sequence }: DeliveryName): Promise<boolean> {
      const { rows } = await db.query(
        `select i.mid
           from payment_intents i
           join webhook_endpoints e on e.mid = i.mid and e.endpoint_id = $1 and e.disabled_at is null
          where i.order_id = $2 and i.event_sequence >= $3
            and not exists (select from webhook_deliveries d
                             where d.mid = i.mid and d.endpoint_id = $1 and d.order_id = $2 and d.sequence = $3)`,
        [endpointId, orderId, sequence],
      )
      return rows.length === 1
    },

    /**
     * Restarts the schedule for events from `since` until before `until`: for all webhooks, and for those return-URL
     * callbacks whose event checkPaymentStatus has not returned yet. Skips disabled endpoints. Returns the number of
     * deliveries.
     */
    async resendAll(mid: string, since: Date, until: Date, now: Date): Promise<number> {
      const { rows } = await db.query<{ resent: number }>(
        `with resent as (
           update webhook_deliveries d
              set attempts = 0, due_at = $4, delivered_at = null
             from webhook_endpoints e
            where d.mid = $1 and e.mid = $1 and e.endpoint_id = d.endpoint_id and e.disabled_at is null
              and (e.kind = 'webhook' or d.delivered_at is null)
              and d.occurred_at >= $2 and d.occurred_at < $3
           returning 1
         )
         select count(*) as resent from resent`,
        [mid, since, until, now],
      )
      return rows[0]?.resent ?? 0
    },
  }
}
