import { createHttpClient, type HttpClient, type Request } from './http-client.ts'
import { createdOrderId, type Entry, type Journal, type Kind } from './journal.ts'
import { checkStatus, create, get, longList, type Names, newName, notification, shortList } from './operations.ts'
import type { Tenant } from './tenant.ts'

/** Little, since two cores carry the client, the service and PostgreSQL; enough that every moment of a fault is met. */
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
  /** Sends no more, and answers when all that is under way is over. */
  end: () => Promise<void>
}

type Sent = Pick<Entry, 'kind' | 'names' | 'operation' | 'paid'> & { request: Request }

/** The traffic of one tenant, sent in time whatever is answered, and written down. `url` is asked anew for each request. */
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
      answeredAt: undefined,
      answer: undefined,
      orderIds: new Set(),
    }
    journal.push(entry)
    entry.answer = await client.send(url(), request)
    entry.answeredAt = performance.now()
    const orderId = entry.kind === 'create' ? createdOrderId(entry.answer) : undefined
    if (orderId === undefined) return
    entry.orderIds.add(orderId)
    created.push(orderId)
  }

  /** Every second request is a creation; the other kinds take turns. */
  function next(): Sent {
    turn++
    const orderId = created.at(-1)
    const kind = others[((turn - 1) / 2) % others.length]
    if (kind === undefined || orderId === undefined) return nextCreation()
    switch (kind) {
      case 'notification':
        return nextNotification(created.splice(Math.floor(Math.random() * created.length), 1)[0] ?? orderId)
      case 'status':
        return { kind, request: checkStatus(tenant, orderId) }
      case 'short list':
        return { kind, request: shortList(tenant) }
      case 'long list':
        return { kind, request: longList(tenant) }
      case 'page':
        return { kind, request: get(`/pay/${orderId}`) }
      default:
        return { kind, request: get(`/${kind}`) }
    }
  }

  function nextCreation(): Sent {
    const kinds: Names[] = [
      { orderId: newName(), idempotencyKey: newName() },
      { orderId: newName(), idempotencyKey: undefined },
      { orderId: undefined, idempotencyKey: newName() },
    ]
    const names = kinds[(turn / 2) % kinds.length] ?? (kinds[0] as Names)
    const operation = turn % 5 === 0 ? 'createOrderRequest' : 'createPaymentIntent'
    return { kind: 'create', names, operation, request: create(tenant, names, operation) }
  }

  function nextNotification(orderId: string): Sent {
    const paid = { orderId, utr: String(++lastUtr).padStart(12, '0') }
    return { kind: 'notification', paid, request: notification(orderId, paid.utr) }
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
