import type { Queryable } from '../../platform/db/pool.ts'
import { plannedQuery, query } from '../../platform/db/query.ts'
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

type NewEndpoint = Named & { url: string; label?: string | undefined; secret: Buffer; now: Date }

/** Adds a webhook endpoint, with an encrypted secret. Returns no row if the mid is unknown. */
export const addEndpoint = query<object, NewEndpoint>(`
  insert into webhook_endpoints (mid, endpoint_id, kind, url, label, secret, created_at)
  select mid, :endpointId, 'webhook', :url, :label, :secret, :now from merchants where mid = :mid
  returning 1`)

/** Returns the number of the merchant's enabled webhook endpoints. */
export const countEndpoints = query<{ count: number }, { mid: string }>(`
  select count(*) from webhook_endpoints where mid = :mid and kind = 'webhook' and disabled_at is null`)

/** Returns webhook endpoints, oldest first: all endpoints, the endpoints of one merchant, or a single endpoint. */
export const listEndpoints = plannedQuery<EndpointRecord, { mid?: string | undefined; endpointId?: string }>(`
  select e.mid, e.endpoint_id, e.url, e.label, e.created_at, e.disabled_at, e.disabled_reason, e.failing_since,
         d.waiting, d.due_since
    from webhook_endpoints e
   cross join lateral (
     select count(*) as waiting, min(due_at) as due_since
       from webhook_deliveries
      where mid = e.mid and endpoint_id = e.endpoint_id and due_at is not null) d
   where e.kind = 'webhook' and (:mid::text is null or e.mid = :mid)
     and (:endpointId::text is null or e.endpoint_id = :endpointId)
   order by e.created_at, e.endpoint_id`)

/** Disables a webhook endpoint. A repeat does not change the time of the first call. */
export const disableEndpoint = query<object, { endpointId: string; now: Date }>(`
  update webhook_endpoints
     set disabled_at = coalesce(disabled_at, :now), disabled_reason = coalesce(disabled_reason, 'operator')
   where endpoint_id = :endpointId and kind = 'webhook'`)

/** Enables a webhook endpoint. Its pending deliveries are sent from now on. */
export const enableEndpoint = query<object, { endpointId: string }>(`
  update webhook_endpoints set disabled_at = null, disabled_reason = null, failing_since = null
   where endpoint_id = :endpointId and kind = 'webhook'`)

/** Signs webhooks with the encrypted `secret` from now on, and also with the previous secret until `earlierUntil`. */
export const rotateSecret = query<object, Named & { secret: Buffer; earlierUntil: Date }>(`
  update webhook_endpoints set earlier_secret = secret, earlier_secret_until = :earlierUntil, secret = :secret
   where mid = :mid and endpoint_id = :endpointId`)

/** Replaces every encrypted secret with the result of `reencrypt`. Returns the number of webhook endpoints. */
export async function reencryptSecrets(
  db: Queryable,
  reencrypt: (encrypted: Buffer, owner: string) => Buffer,
): Promise<number> {
  const endpoints = await SECRETS(db, {})
  for (const { secret, earlierSecret: earlier, ...endpoint } of endpoints) {
    const owner = contextOf(endpoint)
    const reencrypted = { new: reencrypt(secret, owner), newEarlier: earlier && reencrypt(earlier, owner) }
    await REPLACE_SECRETS(db, { ...endpoint, secret, ...reencrypted })
  }
  return endpoints.length
}

const SECRETS = query<Named & { secret: Buffer; earlierSecret: Buffer | null }, object>(
  "select mid, endpoint_id, secret, earlier_secret from webhook_endpoints where kind = 'webhook'",
)

/**
 * Does not change a secret that was rotated in the meantime, because the newer key has already encrypted this secret.
 */
const REPLACE_SECRETS = query<object, Named & { secret: Buffer; new: Buffer; newEarlier: Buffer | null }>(`
  update webhook_endpoints set secret = :new, earlier_secret = :newEarlier
   where mid = :mid and endpoint_id = :endpointId and secret = :secret`)

/** Returns the encrypted secrets that sign at `now`. */
export const findSecrets = query<{ secrets: Buffer[] }, Named & { now: Date }>(
  `select ${secretsAt(':now')} as secrets from webhook_endpoints where mid = :mid and endpoint_id = :endpointId`,
)

export const setReturnUrlCallback = query<object, { mid: string; isOn: boolean; now: Date }>(`
  insert into webhook_endpoints (mid, endpoint_id, kind, created_at, disabled_at, disabled_reason)
  values (:mid, '${RETURN_URL_CALLBACK}', 'return call', :now, case when not :isOn then :now::timestamptz end,
          case when not :isOn then 'operator' end)
      on conflict (mid, endpoint_id)
      do update set disabled_at = excluded.disabled_at, disabled_reason = excluded.disabled_reason`)

/** Returns the merchants whose return-URL callback is enabled. */
export const listReturnUrlCallbacks = query<{ mid: string }, object>(
  "select mid from webhook_endpoints where kind = 'return call' and disabled_at is null",
)

/** Returns the deliveries of events since a time, oldest first: all deliveries, or only the undelivered deliveries. */
export const listDeliveries = plannedQuery<DeliveryRecord, { mid: string; failed: boolean; since: Date }>(`
  select d.mid, d.endpoint_id, d.order_id, i.merchant_order_id, d.sequence, d.type, d.occurred_at, d.attempts,
         d.due_at, d.delivered_at, d.attempted_at, d.outcome, d.response as answer
    from webhook_deliveries d
    join payment_intents i on i.mid = d.mid and i.order_id = d.order_id
   where d.mid = :mid and d.occurred_at >= :since and (not :failed or d.delivered_at is null)
   order by d.occurred_at, d.order_id, d.sequence, d.endpoint_id`)

/**
 * Restarts the schedule of a delivery. Returns no row if the delivery does not exist or its endpoint is disabled. The
 * statement reads the mid from the order, because the return-URL callbacks of all merchants share one endpoint_id.
 */
export const resendDelivery = query<object, DeliveryName & { now: Date }>(`
  update webhook_deliveries d
     set attempts = 0, due_at = :now, delivered_at = null
    from webhook_endpoints e
   where d.mid = (select mid from payment_intents where order_id = :orderId)
     and d.endpoint_id = :endpointId and d.order_id = :orderId and d.sequence = :sequence
     and e.mid = d.mid and e.endpoint_id = d.endpoint_id and e.disabled_at is null
  returning 1`)

/**
 * Returns a row if the order has an event of this sequence, and an enabled endpoint of its merchant this id, but no
 * delivery of the event to the endpoint is stored.
 */
export const findUnstoredDelivery = query<object, DeliveryName>(`
  select from payment_intents i
    join webhook_endpoints e on e.mid = i.mid and e.endpoint_id = :endpointId and e.disabled_at is null
   where i.order_id = :orderId and i.event_sequence >= :sequence
     and not exists (
           select from webhook_deliveries d
            where d.mid = i.mid and d.endpoint_id = :endpointId and d.order_id = :orderId and d.sequence = :sequence)`)

/**
 * Restarts the schedule for events from `since` until before `until`: for all webhooks, and for those return-URL
 * callbacks whose event checkPaymentStatus has not returned yet. Skips disabled endpoints. Returns the number of
 * deliveries.
 */
export const resendDeliveries = plannedQuery<{ resent: number }, { mid: string; since: Date; until: Date; now: Date }>(`
  with resent as (
    update webhook_deliveries d
       set attempts = 0, due_at = :now, delivered_at = null
      from webhook_endpoints e
     where d.mid = :mid and e.mid = :mid and e.endpoint_id = d.endpoint_id and e.disabled_at is null
       and (e.kind = 'webhook' or d.delivered_at is null)
       and d.occurred_at >= :since and d.occurred_at < :until
    returning 1
  )
  select count(*) as resent from resent`)
