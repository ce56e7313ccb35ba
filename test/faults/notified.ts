import { EXPIRY_GRACE_MINUTES, STORING_LIMIT_MS } from '../../src/gateway/payments/outcome.ts'
import type { Database } from '../../src/platform/db/pool.ts'
import type { Receiver } from './receivers.ts'

/** The receiver of the events of `mid`: of all events if `isWhole`, otherwise of some. */
export type Notified = { mid: string; receiver: Receiver; isWhole: boolean }

type Order = {
  mid: string
  order_id: string
  status: string
  utr: string | null
  event_sequence: number
  /** The stored changes, without the expiry, which is not stored. */
  changes: string[]
  late: boolean
  is_final: boolean
}

type Event = {
  type: string
  data: { mid: string; orderId: string; txnStatus: string; UTR: string | null; sequence: number }
}

/** Compares the events of every receiver with the stored payments, and returns the contradictions. */
export async function undelivered(db: Database, notified: Notified[]): Promise<{ broken: string[]; events: number }> {
  const { rows } = await db.query<Order>(ORDERS, [
    notified.map(({ mid }) => mid),
    `${EXPIRY_GRACE_MINUTES} minutes`,
    `${STORING_LIMIT_MS} milliseconds`,
  ])
  const faults = new Map<string, { count: number; first: string }>()
  const expect = (holds: boolean, promise: string, what: string) => {
    if (holds) return
    const fault = faults.get(promise) ?? { count: 0, first: what }
    fault.count++
    faults.set(promise, fault)
  }
  let events = 0
  for (const { mid, receiver, isWhole } of notified) {
    const { name } = receiver
    events += receiver.events.size
    for (const fault of receiver.faults)
      expect(false, 'every call is signed and equals its first attempt', `${name}: ${fault}`)
    const byOrder = new Map<string, Event[]>()
    for (const [id, { body }] of receiver.events) {
      const event = JSON.parse(body) as Event
      const { orderId, sequence } = event.data
      expect(id === `msg_${orderId}_${sequence}`, 'the id contains order and sequence', `${name}: ${id}`)
      byOrder.set(orderId, [...(byOrder.get(orderId) ?? []), event])
    }
    const orders = rows.filter((row) => row.mid === mid)
    const known = new Set(orders.map(({ order_id }) => order_id))
    for (const orderId of byOrder.keys())
      expect(known.has(orderId), "no event is about another merchant's order", `${name}: ${orderId}`)
    for (const order of orders) {
      const got = (byOrder.get(order.order_id) ?? []).toSorted((a, b) => a.data.sequence - b.data.sequence)
      const types = got.map(({ type }) => type.replace('payment.', ''))
      const what = `${name}: ${order.order_id} received [${types}], stored are [${order.changes}] and ${order.status}`
      const truth = withExpiry(order, types)
      if (!isWhole) {
        expect(
          types.every((type) => truth.includes(type)),
          'every event has a change',
          what,
        )
        continue
      }
      expect(
        truth.every((type) => types.includes(type)),
        'every change has an event',
        what,
      )
      expect(
        types.every((type) => truth.includes(type)),
        'every event has a change',
        what,
      )
      expect(String(types) === String(truth), 'sequences follow the order of changes', what)
      expect(
        got.every(({ data }, index) => data.sequence === index + 1),
        'sequences are 1, 2, …',
        what,
      )
      expect(order.event_sequence === got.length, "the order's sequence equals its number of events", what)
      const last = got.at(-1)?.data
      expect(
        order.status !== 'SUCCESS' || (last?.txnStatus === 'SUCCESS' && last.UTR === order.utr),
        'the last event contains the final status',
        what,
      )
    }
  }
  const broken = [...faults].map(([promise, { count, first }]) => `${promise}: ${count} violations, such as ${first}`)
  return { broken, events }
}

/** Adds the expiry of an order that was still open. The event of a late success may precede or follow it. */
function withExpiry({ status, changes, late, is_final }: Order, notified: string[]): string[] {
  const expired = 'expired'
  if (['PENDING', 'FAIL', 'REJECT'].includes(status)) return is_final ? [...changes, expired] : changes
  const mayHave = status === 'SUCCESS' && late && !changes.includes('cancelled') && notified.includes(expired)
  return mayHave ? [...changes.slice(0, -1), expired, ...changes.slice(-1)] : changes
}

const ORDERS = `
  select i.mid, i.order_id, i.status, i.utr, i.event_sequence, i.expires_at + $2::interval <= now() as is_final,
         exists (select from payment_exceptions e
                  where e.mid = i.mid and e.order_id = i.order_id and e.kind = 'late payment') as late,
         array(select c.told
                 from (select 'succeeded' as told, received_at as at
                         from payments
                        where mid = i.mid and utr = i.utr
                       union all
                       select 'cancelled', i.cancelled_at where i.cancelled_at is not null
                       union all
                       -- One that was reported when the merchant knew the end is kept, and not told.
                       select 'attempt_failed', received_at
                         from payment_attempts
                        where mid = i.mid and order_id = i.order_id
                          and received_at + $3::interval < i.expires_at + $2::interval) c
                order by c.at) as changes
    from payment_intents i
   where i.mid = any ($1)
   order by i.mid, i.order_id`
