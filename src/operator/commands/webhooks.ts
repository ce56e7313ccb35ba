import { randomBytes } from 'node:crypto'
import * as z from 'zod'
import type { DatabaseConfig } from '../../config.ts'
import { isOrderId } from '../../gateway/payments/intent.ts'
import {
  addEndpoint,
  countEndpoints,
  type DeliveryRecord,
  disableEndpoint,
  type EndpointRecord,
  enableEndpoint,
  findSecrets,
  findUnstoredDelivery,
  listDeliveries,
  listEndpoints,
  resendDeliveries,
  resendDelivery,
  rotateSecret,
} from '../../gateway/webhooks/endpoints.ts'
import { watchOpenOrders } from '../../gateway/webhooks/expiries.ts'
import { isAccepted, toRequest } from '../../gateway/webhooks/message.ts'
import { pruneDeliveries } from '../../gateway/webhooks/prune-deliveries.ts'
import { newSigningSecret } from '../../gateway/webhooks/signature.ts'
import { LIMITS } from '../../limits.ts'
import type { Queryable } from '../../platform/db/pool.ts'
import { contextOf, decryptAll, encryptSecret } from '../../platform/encryption.ts'
import { errorText, matching } from '../../platform/fields.ts'
import { counted } from '../../platform/money.ts'
import { createOutboundClient, urlError } from '../../platform/outbound/http-client.ts'
import { HOUR_MS, toIstText, toIstTime } from '../../platform/time.ts'
import { change, changeInSteps, read } from './command.ts'
import { requireKeys } from './encryption-keys.ts'
import { CommandError, existing } from './errors.ts'
import { flag, oneOf, optional, type RecordFields, toggle } from './field.ts'
import { daysFrom, LABEL, MID, SINCE, UNTIL } from './fields.ts'
import { document, record, table } from './result.ts'

/** Period in which both secrets sign webhooks, because a merchant may not update all its servers at the same time. */
const ROTATION_MS = 24 * HOUR_MS
const SHOWN_BY_DEFAULT_MS = 24 * HOUR_MS
/** A merchant may request a redelivery of the events of a month. */
const LEAST_STORED_DAYS = 31
const URL_RULE = 'must be a URL of at most 2048 characters'
const HTTPS_RULE = '--url must be an https URL: http is accepted only for addresses in WEBHOOK_ALLOWED_NETWORKS'

const url = z
  .string(errorText(URL_RULE))
  .max(2_048, URL_RULE)
  .superRefine((address, context) => {
    const error = urlError(address)
    if (error) context.addIssue(error)
  })

const ENDPOINT_ID = matching(/^ep_\w{1,64}$/, 'must be the id of a webhook endpoint, ep_…')
const ENDPOINT = flag(ENDPOINT_ID, 'ID', 'Webhook endpoint', 'ep_…')

const DELIVERY_RULE = 'must be the id of a delivery, as listed by ops webhooks deliveries'
const delivery = z.string(errorText(DELIVERY_RULE)).transform((id, context) => {
  const [endpointId = '', orderId = '', sequence = '', ...rest] = id.split('.')
  if (rest.length === 0 && isOrderId(orderId) && /^[1-9]\d{0,3}$/.test(sequence))
    return { endpointId, orderId, sequence: Number(sequence) }
  context.addIssue(DELIVERY_RULE)
  return z.NEVER
})
const DELIVERY = { ...flag(delivery, 'ID', 'Delivery', 'as listed by ops webhooks deliveries'), record: {} }
/** A form begins with the current time, because a later event would change the number that is confirmed. */
const UNTIL_NOW = { ...UNTIL, prefill: (_: RecordFields, now: Date) => toIstText(now) }
/** Pause between two transactions of 1,000 deliveries, so that creates beside the command wait little longer. */
const PRUNE_PAUSE_MS = 50

export const webhookCommands = [
  change('webhooks add', 'Add a webhook endpoint for a merchant', {
    fields: { mid: MID, url: flag(url, 'URL', 'https URL that receives the events'), label: LABEL },
    // The audit omits query and fragment, because they may contain a password of the merchant.
    audited: { url: (typed) => typed.replace(/[?#].*$/s, '') },
    async run({ mid, url, label }, { config, client, now }) {
      const { allowedNetworks } = config.webhooks
      if (url.startsWith('http:') && allowedNetworks.webhook.length === 0) throw new CommandError(HTTPS_RULE)
      const endpointId = `ep_${randomBytes(8).toString('hex')}`
      const { secret, encrypted } = newSecret({ mid, endpointId }, config)
      const { ofMerchant } = LIMITS.webhooks
      const [stored] = await countEndpoints(client, { mid })
      if (stored && stored.count >= ofMerchant)
        throw new CommandError(
          `merchant ${mid} already has ${ofMerchant} webhook endpoints, the maximum: disable one first`,
        )
      const added = await addEndpoint(client, { mid, endpointId, url, label, secret: encrypted, now })
      if (added.length === 0) throw new CommandError(`mid ${mid} does not exist: see ops merchants list`)
      await watchOpenOrders(client, mid, now)
      const data = shownOnce({ id: endpointId, mid, url, label: label ?? null, secret })
      return { data, created: { endpoint: endpointId } }
    },
  }),

  read('webhooks list', 'List webhook endpoints and their backlog', {
    title: 'Webhooks',
    fields: { mid: optional(MID) },
    async run({ mid }, { db, now }) {
      const endpoints = (await listEndpoints(db, { mid })).map((one) => toShown(one, now))
      const columns = 'id, mid, url, label, state, failingSince, waiting, behindSeconds, createdAt'
      return table(columns, endpoints, {
        empty: 'No webhook endpoints.',
        links: ({ mid }) => ({ failingSince: { name: 'webhooks deliveries', flags: { mid, failed: 'on' } } }),
      })
    },
  }),

  ...(['disable', 'enable'] as const).map((verb) =>
    change(`webhooks ${verb}`, `${verb === 'enable' ? 'Resume' : 'Stop'} deliveries to a webhook endpoint`, {
      fields: { endpoint: ENDPOINT },
      async run({ endpoint }, { client, now }) {
        const { mid } = await known(endpoint, client)
        await (verb === 'enable' ? enableEndpoint : disableEndpoint)(client, { endpointId: endpoint, now })
        if (verb === 'enable') await watchOpenOrders(client, mid, now)
        return record(toShown(await known(endpoint, client), now))
      },
    }),
  ),

  change('webhooks rotate-secret', 'Replace an endpoint’s signing secret', {
    note: 'For 24 hours, both the old and the new secret sign events.',
    fields: { endpoint: ENDPOINT },
    async run({ endpoint }, { config, client, now }) {
      const { mid, endpointId, url, label } = await known(endpoint, client)
      const { secret, encrypted } = newSecret({ mid, endpointId }, config)
      const earlierUntil = new Date(now.getTime() + ROTATION_MS)
      await rotateSecret(client, { mid, endpointId, secret: encrypted, earlierUntil })
      return shownOnce({ id: endpointId, mid, url, label, secret })
    },
  }),

  read('webhooks ping', 'Send a test event to a webhook endpoint', {
    fields: { endpoint: ENDPOINT },
    async run({ endpoint }, { config, db, now }) {
      const { mid, endpointId, url } = await known(endpoint, db)
      const { allowedNetworks } = config.webhooks
      const [encrypted] = await findSecrets(db, { mid, endpointId, now })
      const secrets = decryptAll(requireKeys(config), encrypted?.secrets ?? [], contextOf({ mid, endpointId }))
      const id = `msg_ping_${randomBytes(8).toString('hex')}`
      const body = JSON.stringify({ type: 'ping', timestamp: now.toISOString(), data: { mid } })
      const http = createOutboundClient({ allowedNetworks, limits: LIMITS.outbound, now: () => new Date() })
      const result = await http.request(toRequest({ id, body }, { url, secrets, sentAt: now }))
      const outcome = 'failure' in result ? result.failure : String(result.status)
      if ('failure' in result || !isAccepted(result.status))
        throw new CommandError(`${url} did not accept the event: ${outcome}${result.text && `: ${result.text}`}`)
      return document({ id: endpointId, outcome, answer: result.text }, `${url} accepted the event: ${outcome}`)
    },
  }),

  read('webhooks deliveries', 'List webhook deliveries to a merchant', {
    title: 'Deliveries',
    note: 'Without --since, the list covers the last 24 hours.',
    fields: { mid: MID, failed: optional(toggle('Only undelivered events')), since: optional(SINCE) },
    async run({ mid, failed = false, since }, { db, now }) {
      const from = since ?? new Date(now.getTime() - SHOWN_BY_DEFAULT_MS)
      const deliveries = (await listDeliveries(db, { mid, failed, since: from })).map(describeDelivery)
      const empty = `No ${failed ? 'undelivered events' : 'deliveries'} since ${toIstTime(from)}.`
      const columns = 'id, order_id, type, occurredAt, state, attempts, dueAt, outcome, answer'
      return table(columns, deliveries, { empty, changes: ({ id }) => [{ delivery: id }] })
    },
  }),

  change('webhooks resend', 'Redeliver webhook events', {
    title: 'Resend webhook',
    note: 'With --mid, every event of the period is sent again, delivered ones included; return-URL callbacks only if undelivered.',
    fields: {
      events: oneOf([{ delivery: DELIVERY }, { mid: MID, since: SINCE, until: UNTIL_NOW }]),
    },
    async run({ events: { delivery, mid, since, until } }, { client, now }) {
      const resent = delivery
        ? (await resendDelivery(client, { ...delivery, now })).length
        : ((await resendDeliveries(client, { mid, since, until: until ?? now, now }))[0]?.resent ?? 0)
      if (delivery && resent === 0)
        throw new CommandError((await findUnstoredDelivery(client, delivery)).length > 0 ? NOT_STORED : NOT_RESENT)
      const deliveries = counted(resent, 'delivery', 'deliveries')
      return { data: document({ resent }, `${deliveries} scheduled for redelivery.`), figures: { deliveries: resent } }
    },
  }),

  changeInSteps('webhooks prune', 'Delete old webhook deliveries', {
    note: 'Deletes deliveries that succeeded or were abandoned, except for payment.expired. A deleted event cannot be sent again.',
    fields: {
      olderThanDays: flag(daysFrom(LEAST_STORED_DAYS), 'N', 'Delete deliveries older than N days', 'at least 31'),
    },
    async run({ olderThanDays }, { db, now, sleep, withProgress }) {
      const before = new Date(now.getTime() - olderThanDays * 24 * HOUR_MS)
      const pruned = await withProgress((progress) => {
        const show = progress('delivery deleted', 'deliveries deleted')
        return pruneDeliveries(db, before, (pruned) => {
          show?.(pruned)
          return sleep(PRUNE_PAUSE_MS)
        })
      })
      const message = `${counted(pruned, 'delivery', 'deliveries')} deleted.`
      return { data: document({ pruned }, message), created: { pruned } }
    },
  }),
]

const NOT_RESENT = 'the delivery does not exist, or its endpoint is disabled: see ops webhooks deliveries'
const NOT_STORED =
  'the delivery is not stored: ops webhooks prune has deleted it, or the endpoint was disabled or did not exist at the ' +
  'time of the event. Ask the merchant to check the payment status'

/** Creates a signing secret and returns it in plain text for the merchant and encrypted for the database. */
function newSecret(endpoint: Pick<EndpointRecord, 'mid' | 'endpointId'>, config: DatabaseConfig) {
  const secret = newSigningSecret()
  return { secret, encrypted: encryptSecret(requireKeys(config), secret, contextOf(endpoint)) }
}

async function known(endpointId: string, db: Queryable): Promise<EndpointRecord> {
  const [found] = await listEndpoints(db, { endpointId })
  return existing(found, `webhook endpoint ${endpointId}`, 'webhooks list')
}

const shownOnce = (endpoint: Record<'id' | 'mid' | 'url' | 'secret', string> & { label: string | null }) =>
  record(endpoint, 'Give the secret to the merchant now. It is not shown again.')

function toShown({ endpointId, disabledReason, failingSince, dueSince, ...endpoint }: EndpointRecord, now: Date) {
  const { mid, url, label, createdAt, disabledAt, waiting } = endpoint
  const state = disabledReason ? `off: ${disabledReason}` : failingSince ? 'failing' : 'on'
  const behindMs = dueSince ? now.getTime() - dueSince.getTime() : 0
  const behindSeconds = Math.max(0, Math.round(behindMs / 1000))
  return { id: endpointId, mid, url, label, state, waiting, behindSeconds, failingSince, disabledAt, createdAt }
}

function describeDelivery({ endpointId, orderId, sequence, merchantOrderId, ...delivery }: DeliveryRecord) {
  const { mid, type, occurredAt, ...attempted } = delivery
  const state = attempted.deliveredAt ? 'delivered' : attempted.dueAt ? 'waiting' : 'given up'
  const event = { mid, orderId, order_id: merchantOrderId, sequence, type, occurredAt }
  return { id: `${endpointId}.${orderId}.${sequence}`, ...event, state, ...attempted }
}
