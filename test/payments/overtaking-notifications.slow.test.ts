import { expect, it } from 'vitest'
import { CASHFREE, cashfreeSettings, newCashfreeMerchant } from '../support/fake-cashfree.ts'
import { createOrder } from '../support/orders.ts'
import { startService } from '../support/service.ts'
import { startServiceBeside } from '../support/service-with-bank.ts'

const ORDERS = 500
const CONCURRENT = 10
const LIMITS = { webhooks: { lookIntervalMs: 200 }, outbound: { acquirerMs: 30_000 }, acquirers: { requestMs: 30_000 } }

it(`two instances resolve the exceptions of ${ORDERS} notifications that overtake the commit of their order, and record each payment once`, async () => {
  const { service, bank } = await startServiceBeside(CASHFREE, { limits: LIMITS })
  const another = await startService({
    replicated: { url: service.databaseUrl },
    acquirers: { cashfree: cashfreeSettings(bank) },
    limits: LIMITS,
  })
  const urls = [bank.notifyUrl, `${await another.app.listen({ host: '127.0.0.1', port: 0 })}${CASHFREE.path}`]
  let sent = 0
  Object.defineProperty(bank, 'notifyUrl', { get: () => urls[sent++ % urls.length] })
  bank.retriesNotifications = true

  // Each link's response arrives after the notification of its payment, so that no instance has stored the order yet.
  const notified = new Map<string, Promise<unknown>>()
  async function notifyFirst() {
    for (const { orderId, links } of bank.orders.values())
      if (links.length > 0 && !notified.has(orderId)) notified.set(orderId, bank.pay(orderId))
    await Promise.all(notified.values())
  }
  const fault = {
    get until() {
      return notifyFirst()
    },
  }
  bank.faults.push({ call: 'openSession', fault, chance: 1 })

  const merchant = await newCashfreeMerchant(service)
  const orderIds: string[] = []
  const left = Array.from({ length: ORDERS }).keys()
  const create = async () => {
    for (const index of left) orderIds.push(await createOrder(index % 2 ? service : another, merchant))
  }
  await Promise.all(Array.from({ length: CONCURRENT }, create))
  const { rows: before } = await service.db.query(
    `select count(*) as stored from payment_exceptions where mid = '' and kind = 'unknown order' and order_id = any ($1)`,
    [orderIds],
  )
  expect([orderIds.length, before[0].stored]).toEqual([ORDERS, ORDERS])

  await bank.sendWaiting()
  expect(bank.waiting).toEqual([])
  for (const { clock } of [service, another]) clock.advance(61)
  await expect.poll(() => openExceptions(), { timeout: 60_000, interval: 200 }).toEqual([])

  const { rows: paid } = await service.db.query(
    `select p.order_id, p.utr, i.status
       from payments p
       join payment_intents i on i.mid = p.mid and i.order_id = p.order_id and i.utr = p.utr
      where p.mid = $1
      order by p.order_id`,
    [merchant.mid],
  )
  const reported = bank.paid().map(({ orderId, utr }) => ({ order_id: orderId, utr, status: 'SUCCESS' }))
  expect(paid).toEqual(reported.sort((one, other) => (one.order_id < other.order_id ? -1 : 1)))
  expect(paid).toHaveLength(ORDERS)

  async function openExceptions() {
    const { rows } = await service.db.query(
      `select e.order_id, e.kind
         from payment_exceptions e
        where not exists (select from payment_resolutions r where r.mid = e.mid and r.exception_id = e.exception_id)`,
    )
    return rows
  }
})
