import { expect, it } from 'vitest'
import { EXPIRY_GRACE_MINUTES } from '../../src/gateway/payments/outcome.ts'
import { createReports } from '../../src/gateway/payments/reports.ts'
import type { Database } from '../../src/platform/db/pool.ts'
import { newUtr, notification, notify } from '../support/acquirer.ts'
import { createOrder } from '../support/orders.ts'
import { newMerchant, startService, unique } from '../support/service.ts'

const EXPIRY_MINUTES = 15
const service = await startService({ expiryMinutes: EXPIRY_MINUTES })
const merchant = await newMerchant(service.db)

const newOrders = (count: number) => Promise.all(Array.from({ length: count }, () => createOrder(service, merchant)))

const success = (orderId: string, utr = newUtr()) => ({
  orderId,
  status: 'SUCCESS' as const,
  utr,
  amount: 200_00,
  paidAt: undefined,
  acquirer: { name: 'direct' },
})

async function paymentsOf(orderIds: string[]) {
  const { rows } = await service.db.query('select order_id, utr, kind from payments where order_id = any ($1)', [
    orderIds,
  ])
  return rows
}

it('stores 50 concurrent payments through one acquirer account with fewer statements than payments', async () => {
  const orderIds = await newOrders(50)
  let statements = 0
  const count = () => void statements++
  service.pools.reports.on('acquire', count)
  const responses = await Promise.all(orderIds.map((orderId) => notify(service, notification(orderId))))
  service.pools.reports.off('acquire', count)
  expect(responses.map(({ status }) => status)).toEqual(Array(50).fill(200))
  expect(await paymentsOf(orderIds)).toHaveLength(50)
  expect(statements).toBeLessThan(50)
})

it('rejects only the payment that PostgreSQL rejects, and stores all others of its batch', async () => {
  const orderIds = await newOrders(3)
  const utrs = orderIds.map(() => newUtr())
  await service.db.query(`alter table payments add constraint rejects check (utr <> '${utrs[1]}') not valid`)
  const { recordFirst } = createReports(service.db)
  const recorded = await Promise.allSettled(
    orderIds.map((orderId, index) => recordFirst(success(orderId, utrs[index]), service.clock.now, () => undefined)),
  )
  await service.db.query('alter table payments drop constraint rejects')
  expect(recorded).toEqual([
    { status: 'fulfilled', value: true },
    { status: 'rejected', reason: expect.objectContaining({ code: '23514' }) },
    { status: 'fulfilled', value: true },
  ])
  expect((await paymentsOf(orderIds)).map(({ utr }) => utr).sort()).toEqual([utrs[0], utrs[2]])
})

it('stores each payment of a batch that PostgreSQL ends because of a deadlock', async () => {
  const orderIds = await newOrders(3)
  const utrs = orderIds.map(() => newUtr())
  // A sequence is not rolled back, so only the first insert fails.
  await service.db.query(`
    create sequence inserts;
    create function fail_once() returns trigger language plpgsql as $$
    begin
      if nextval('inserts') = 1 then raise exception using errcode = 'deadlock_detected'; end if;
      return new;
    end $$;
    create trigger fail_once before insert on payments for each row when (new.utr = '${utrs[1]}') execute function fail_once()`)
  const responses = await Promise.all(
    orderIds.map((orderId, index) => notify(service, notification(orderId, { UTR: utrs[index] }))),
  )
  await service.db.query('drop trigger fail_once on payments')
  expect(responses.map(({ status }) => status)).toEqual([200, 200, 200])
  expect((await paymentsOf(orderIds)).map(({ utr }) => utr).sort()).toEqual(utrs)
})

it('returns 409 for a UTR that became the bank reference of another order’s payment', async () => {
  const [paid = '', other = ''] = await newOrders(2)
  const [names, utr] = [{ id: unique('pay') }, newUtr()]
  const reports = createReports(service.db)
  for (const reference of [undefined, utr])
    await reports.record({ ...success(paid), utr: reference, names }, { source: 'enquiry', now: service.clock.now })
  expect(await notify(service, notification(other, { UTR: utr }))).toMatchObject({ status: 409 })
  expect(await paymentsOf([other])).toEqual([])
})

it('stores no payment in a batch in the last minute before the order’s final status', async () => {
  const [orderId = ''] = await newOrders(1)
  const { recordFirst } = createReports(service.db)
  const finalAt = service.clock.now().getTime() + (EXPIRY_MINUTES + EXPIRY_GRACE_MINUTES) * 60_000
  const inLastMinute = () => new Date(finalAt - 60_000)
  expect(await recordFirst(success(orderId), inLastMinute, () => undefined)).toBe(false)
  expect(await paymentsOf([orderId])).toEqual([])
})

it.each([
  ['cancelled', `update payment_intents set status = 'CANCELLED', cancelled_at = now() where order_id = $1`],
  ['marked as unreadable', 'update payment_intents set unreadable_at = now() where order_id = $1'],
])('stores no payment in a batch if the order is %s after it was judged', async (_name, change) => {
  const [orderId = ''] = await newOrders(1)
  let queries = 0
  const db = Object.create(service.db) as Database
  db.query = (async (...query: Parameters<Database['query']>) => {
    const result = await service.db.query(...query)
    // The first query checks whether tables are distributed, the second one finds the orders.
    if (++queries === 2) await service.db.query(change, [orderId])
    return result
  }) as unknown as Database['query']
  const { recordFirst } = createReports(db)
  expect(await recordFirst(success(orderId), service.clock.now, () => undefined)).toBe(false)
  expect([queries, await paymentsOf([orderId])]).toEqual([3, []])
})
