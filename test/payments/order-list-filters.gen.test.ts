import fc from 'fast-check'
import { expect, it } from 'vitest'
import { saveException } from '../../src/gateway/payments/exceptions.ts'
import { endUnreadable, saveUnreadable } from '../../src/gateway/payments/unreadable.ts'
import { newUtr } from '../support/acquirer.ts'
import { runs } from '../support/generated.ts'
import { checkedFields, listedFields } from '../support/order-states.ts'
import { createOrder, reportPayment } from '../support/orders.ts'
import { CANCEL, newMerchant, OWN_ORDERS, post, startService } from '../support/service.ts'
import type { NewMerchant } from '../support/tenants.ts'

/** One service that sends these lists in one piece, and one that streams even an empty list. */
const service = await startService()
const streaming = await startService({
  replicated: { url: service.databaseUrl },
  limits: { lists: { shortRows: -1, firstRecordMs: 60_000 } },
})

const NOW_MS = Date.parse('2026-10-20T12:00:00+05:30')
const DAY_MINUTES = 24 * 60
const LONGEST_MINUTES = 30 * DAY_MINUTES
const STATUSES = ['PENDING', 'SUCCESS', 'FAIL', 'REJECT'] as const
const EVENTS = ['SUCCESS', 'FAIL', 'REJECT', 'REJECT', 'cancel', 'unreadable', 'readable', 'unreadable body'] as const

const PART = fc.double({ min: 0, max: 1, noNaN: true })

type Order = { ageMinutes: number; expiryMinutes: number; events: { kind: (typeof EVENTS)[number]; part: number }[] }

/** An order that is new, that becomes final about now, or of any age. `part` is the part of its age at which an event occurs. */
const ORDER: fc.Arbitrary<Order> = fc
  .record({
    expiryMinutes: fc.oneof(
      fc.integer({ min: 5, max: 30 }),
      fc.integer({ min: DAY_MINUTES - 2, max: DAY_MINUTES + 2 }),
      fc.integer({ min: 5, max: LONGEST_MINUTES }),
    ),
    age: fc.constantFrom('new', 'at expiry', 'at expiry', 'any'),
    minutes: fc.integer({ min: 0, max: 15 }),
    part: PART,
    events: fc.array(fc.record({ kind: fc.constantFrom(...EVENTS), part: fc.oneof(PART, fc.constantFrom(0, 0.9)) }), {
      maxLength: 4,
    }),
  })
  .map(({ expiryMinutes, age, minutes, part, events }) => {
    const ages = { new: minutes, 'at expiry': expiryMinutes + minutes - 2, any: Math.round(part * LONGEST_MINUTES) }
    return { ageMinutes: ages[age], expiryMinutes, events }
  })

const dayBefore = (days: number) =>
  new Date(NOW_MS - days * DAY_MINUTES * 60_000 + 330 * 60_000)
    .toISOString()
    .slice(0, 10)
    .split('-')
    .reverse()
    .join('-')

/** The first and the last day of a list, counted back from today. */
const DAYS = fc
  .tuple(fc.integer({ min: 0, max: 32 }), fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 32 })))
  .map(([from, to]) => ({ s_date: dayBefore(Math.max(from, to)), e_date: dayBefore(Math.min(from, to)) }))

const moveTo = (ms: number) => {
  for (const { clock } of [service, streaming]) clock.set(new Date(ms).toISOString())
}

async function store(merchant: NewMerchant, { ageMinutes, expiryMinutes, events }: Order): Promise<string> {
  const created = NOW_MS - ageMinutes * 60_000
  moveTo(created)
  const orderId = await createOrder(service, merchant, { expiry_minutes: String(expiryMinutes) })
  for (const { kind, part } of events.toSorted((one, other) => one.part - other.part)) {
    moveTo(Math.round(created + part * ageMinutes * 60_000))
    await happen(merchant, orderId, kind)
  }
  return orderId
}

async function happen({ mid, key }: NewMerchant, orderId: string, kind: (typeof EVENTS)[number]) {
  const { app, clock, db } = service
  const now = clock.now()
  const order = { mid, orderId }
  if (kind === 'cancel') await post(app, CANCEL, { mid, order_id: orderId }, key)
  else if (kind === 'unreadable') await saveUnreadable(db, { ...order, isBesidePayment: false }, 'setu', now)
  else if (kind === 'readable') await endUnreadable(db, order, { by: 'enquiry', now })
  else if (kind === 'unreadable body') await saveException(db, 'unreadable', { ...order, amount: 0, status: '' }, now)
  else await reportPayment(service, orderId, { status: kind, UTR: newUtr(), paidAt: now.toISOString() })
}

it('fetchOrderList with a status returns the bytes of the list without it, filtered by what checkPaymentStatus returns', async () => {
  const found = new Set<string>()
  await fc.assert(
    fc.asyncProperty(fc.array(fc.noBias(ORDER), { minLength: 12, maxLength: 12 }), DAYS, async (orders, days) => {
      const merchant = await newMerchant(service.db, { maxExpiryMinutes: LONGEST_MINUTES })
      const orderIds: string[] = []
      for (const order of orders) orderIds.push(await store(merchant, order))
      moveTo(NOW_MS)
      const ranges = [
        { s_date: '01-01-0001', e_date: '31-12-9999' },
        days,
        { s_date: dayBefore(0), e_date: dayBefore(0) },
      ]
      for (const range of ranges) for (const status of await compare(merchant, range)) found.add(status)
      const { body } = await post(service.app, OWN_ORDERS, { mid: merchant.mid, ...ranges[0] }, merchant.key)
      const checked = await Promise.all(orderIds.toSorted().map((id) => checkedFields(service, merchant, id)))
      expect(body.data.map(listedFields)).toEqual(checked)
    }),
    { numRuns: runs(300, 4) },
  )
  expect(found.size).toBe(STATUSES.length)
})

/** Compares the filtered lists of both services with the whole list. Returns the statuses with orders. */
async function compare({ mid, key }: NewMerchant, range: Record<string, string>) {
  const listOf = async ({ app }: typeof service, fields = {}, accept = 'application/json') =>
    (await post(app, OWN_ORDERS, { mid, ...range, ...fields }, key, { accept })).text
  const whole = JSON.parse(await listOf(service))
  const [header, ...lines] = (await listOf(service, {}, 'text/csv')).split('\r\n')
  for (const status of STATUSES) {
    const isOf = (index: number) => whole.data[index]?.status === status
    const data = whole.data.filter((_: unknown, index: number) => isOf(index))
    const json = { ...whole, msg: data.length > 0 ? 'Orders found' : 'No orders found', data }
    const csv = [header, ...lines.filter((_, index) => isOf(index)), ''].join('\r\n')
    for (const each of [service, streaming]) {
      expect(await listOf(each, { status })).toBe(JSON.stringify(json))
      expect(await listOf(each, { status }, 'text/csv')).toBe(csv)
    }
  }
  return STATUSES.filter((status) => whole.data.some((order: { status: string }) => order.status === status))
}
