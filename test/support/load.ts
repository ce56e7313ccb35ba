import { randomUUID } from 'node:crypto'
import { notificationRequest } from './acquirer.ts'
import { createHttpClient, type HttpClient, type Request } from './http-client.ts'
import type { Entry, Journal, Kind, Names } from './journal.ts'
import { createdOrderId, createRequest, getRequest, statusRequest, withFields } from './requests.ts'
import { longList, shortList } from './settlements.ts'
import type { NewMerchant, Tenant } from './tenants.ts'

/**
 * Low, because client, service and PostgreSQL share two cores. One request every 12.5 ms meets every phase of a fault.
 */
const REQUESTS_PER_SECOND = 80

const OTHERS = [
  'status',
  'readyz',
  'notification',
  'livez',
  'short list',
  'page',
  'notification',
  'long list',
] as const satisfies Kind[]

export type Load = {
  journal: Journal
  client: HttpClient
  /** Stops sending, and resolves once all requests in progress are complete. */
  end: () => Promise<void>
}

type Sent = Pick<Entry, 'kind' | 'names' | 'operation' | 'paid'> & { request: Request }

/**
 * Sends one tenant's traffic at a steady rate, whatever the responses, and stores every response. `url` is called for
 * each request.
 */
export function startLoad(url: () => string, tenant: Tenant, { without }: { without?: Kind } = {}): Load {
  const others = OTHERS.filter((kind) => kind !== without)
  const client = createHttpClient()
  const journal: Journal = []
  const underWay = new Set<Promise<void>>()
  const created: string[] = []
  let turn = 0
  let lastUtr = 0

  const timer = setInterval(() => {
    const sending = send(next()).finally(() => underWay.delete(sending))
    underWay.add(sending)
  }, 1_000 / REQUESTS_PER_SECOND)

  async function send({ request, ...what }: Sent) {
    const entry: Entry = {
      ...what,
      sentAt: performance.now(),
      respondedAt: undefined,
      response: undefined,
      orderIds: new Set(),
    }
    journal.push(entry)
    entry.response = await client.send(url(), request)
    entry.respondedAt = performance.now()
    const orderId = entry.kind === 'create' ? createdOrderId(entry.response) : undefined
    if (orderId === undefined) return
    entry.orderIds.add(orderId)
    created.push(orderId)
  }

  /** Every second request is a create; the other kinds alternate. */
  function next(): Sent {
    turn++
    const orderId = created.at(-1)
    const kind = others[((turn - 1) / 2) % others.length]
    if (kind === undefined || orderId === undefined) return nextCreation()
    switch (kind) {
      case 'notification':
        return nextNotification(created.splice(Math.floor(Math.random() * created.length), 1)[0] ?? orderId)
      case 'status':
        return { kind, request: statusRequest(tenant.merchant, orderId) }
      case 'short list':
        return { kind, request: shortList(tenant.partner, tenant.merchant.mid) }
      case 'long list':
        return { kind, request: longList(tenant.partner, tenant.merchant.mid) }
      case 'page':
        return { kind, request: getRequest(`/pay/${orderId}`) }
      default:
        return { kind, request: getRequest(`/${kind}`) }
    }
  }

  function nextCreation(): Sent {
    const kinds: Names[] = [
      { orderId: randomUUID(), idempotencyKey: randomUUID() },
      { orderId: randomUUID(), idempotencyKey: undefined },
      { orderId: undefined, idempotencyKey: randomUUID() },
    ]
    const names = kinds[(turn / 2) % kinds.length] ?? (kinds[0] as Names)
    const operation = turn % 5 === 0 ? 'createOrderRequest' : 'createPaymentIntent'
    return { kind: 'create', names, operation, request: creation(tenant.merchant, names, operation) }
  }

  function nextNotification(orderId: string): Sent {
    const paid = { orderId, utr: String(++lastUtr).padStart(12, '0') }
    return { kind: 'notification', paid, request: notificationRequest(orderId, paid.utr) }
  }

  return {
    journal,
    client,
    async end() {
      clearInterval(timer)
      await Promise.all(underWay)
    },
  }
}

/** A create request with an order_id, an Idempotency-Key or both, which make it safe to repeat or check. */
export function creation(merchant: NewMerchant, { orderId, idempotencyKey }: Names, operation?: string): Request {
  const request = withFields(createRequest(merchant, { order_id: orderId }), {}, idempotencyKey)
  return operation === undefined ? request : { ...request, path: `/v1/payments/${operation}` }
}
