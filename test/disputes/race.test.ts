import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { expect, it, onTestFinished, vi } from 'vitest'
import { createDisputes } from '../../src/gateway/disputes/record-dispute.ts'
import { createPendingRefunds } from '../../src/gateway/refunds/pending-refunds.ts'
import { RIGHTS } from '../../src/platform/rights.ts'
import { newUtr } from '../support/acquirer.ts'
import { disputeEvents } from '../support/disputes.ts'
import { newCashfreeMerchant } from '../support/fake-cashfree.ts'
import { storePaidOrder } from '../support/paid-orders.ts'
import { forEach } from '../support/requests.ts'
import { newKey, post, REFUND, startService } from '../support/service.ts'
import { newWebhook } from '../support/webhooks.ts'

const ORDERS = 120
const LIMITS_OF_TESTS = { webhooks: { lookIntervalMs: 3_600_000 } }

const one = await startService({ asServiceRole: true, limits: LIMITS_OF_TESTS })
const other = await startService({
  asServiceRole: true,
  limits: LIMITS_OF_TESTS,
  replicated: { url: one.databaseUrl },
})
const { mid } = await newCashfreeMerchant(one)
const key = await newKey(one.db, { mid }, RIGHTS)
await newWebhook(one.db, { mid, url: 'https://shop.example/' }, one.clock.now())
const { now } = one.clock

/** A paid order of ₹200 at an acquirer that sends refunds by a call. */
async function paidOrder(): Promise<string> {
  const orderId = await storePaidOrder(one.db, { mid, utr: newUtr(), paidAt: now(), acquirer: 'cashfree' })
  await one.db.query(
    `insert into acquirer_intents (mid, order_id, acquirer, acquirer_merchant_id, acquirer_order_id, reference, link,
       status_checks)
     values ($1, $2, 'cashfree', 'CF', $2, $2, 'upi://pay?', 0)`,
    [mid, orderId],
  )
  return orderId
}

/** Refunds that left the service although they have failed, and amounts that no exception names. */
const VIOLATIONS = `
  select d.order_id,
         (select coalesce(sum(amount_paise), 0)::bigint from refunds r
           where r.mid = d.mid and r.order_id = d.order_id and status <> 'FAIL') + d.amount_paise - p.amount_paise as twice,
         (select coalesce(max(amount_paise), 0) from payment_exceptions e
           where e.mid = d.mid and e.order_id = d.order_id and e.kind = 'refund of a disputed payment') as named,
         (select count(*) from refunds r
           where r.mid = d.mid and r.order_id = d.order_id and status = 'FAIL' and sent_at is not null) as failed_but_sent
    from disputes d
    join payments p on p.mid = d.mid and p.utr = d.utr
   where d.mid = $1`

it('never returns more than a payment without an exception that names the amount, whatever two instances do concurrently', async () => {
  const orders = await forEach(Array.from({ length: ORDERS }), 8, paidOrder)
  const outcomes = await forEach(orders, 8, async (orderId, index) => {
    const [service, beside] = index % 2 ? [one, other] : [other, one]
    const dispute = async (delayMs = 0) => {
      await sleep(delayMs)
      const report = { id: `D${index}`, orderId, status: 'open', amount: 150_00 } as const
      await createDisputes(beside.pools.reports).record('cashfree', report, { source: 'notification', now })
    }
    const create = async () => {
      const fields = { mid, order_id: orderId, refund_id: `R${index}`, amount: '100', note: 'sold out' }
      return post(service.app, REFUND, fields, key)
    }
    const send = async ({ status, body }: Awaited<ReturnType<typeof create>>, delayMs = 0) => {
      if (status !== 200) return status
      await sleep(delayMs)
      const pending = createPendingRefunds(service.pools.due)
      return (await pending.markSent({ mid, ourRefundId: body.data.refundId }, now(), true)) ? 'sent' : 'not sent'
    }
    const refund = async () => send(await create())
    // The first orders in each of the three sequences, which chance need not bring.
    if (index === 0) return dispute().then(refund)
    if (index === 1) return create().then((created) => dispute().then(() => send(created)))
    if (index === 2) return refund().then((outcome) => dispute().then(() => outcome))
    if (index % 3 === 0) return (await Promise.all([refund(), dispute()]))[0]
    if (index % 3 === 1) return (await Promise.all([dispute(), refund()]))[1]
    const created = await create()
    return (await Promise.all([send(created, index % 8), dispute(index % 5)]))[0]
  })
  expect(new Set(outcomes)).toEqual(new Set(['sent', 'not sent', 409]))
  const { rows } = await one.db.query(VIOLATIONS, [mid])
  expect(rows).toHaveLength(ORDERS)
  expect(rows.filter(({ failed_but_sent }) => failed_but_sent > 0)).toEqual([])
  expect(rows.filter(({ twice, named }) => twice > 0 && named < twice)).toEqual([])
  for (const orderId of orders) expect(await disputeEvents(one.db, orderId)).toHaveLength(1)
  expect([...one.log, ...other.log].filter((line) => /deadlock|"level":"error"/.test(line))).toEqual([])
})

it('never ends a refund that is marked as sent while the dispute is being stored', async () => {
  const orderId = await paidOrder()
  const fields = { mid, order_id: orderId, refund_id: 'RX', note: 'sold out' }
  const { body } = await post(one.app, REFUND, fields, key)
  const markSent = () =>
    createPendingRefunds(other.pools.due).markSent({ mid, ourRefundId: body.data.refundId }, now(), true)
  let isSent: Promise<boolean> | undefined
  const query = pg.Client.prototype.query as (...args: unknown[]) => Promise<unknown>
  const spy = vi.spyOn(pg.Client.prototype, 'query').mockImplementation(async function (
    this: pg.Client,
    ...args: unknown[]
  ) {
    const found = await query.apply(this, args)
    if (isSent === undefined && JSON.stringify(args[0]).includes('is_unsent')) {
      isSent = markSent()
      // Long enough for the mark to be stored, unless the refund is locked.
      await Promise.race([isSent, sleep(200)])
    }
    return found
  } as never)
  onTestFinished(() => spy.mockRestore())
  const report = { id: 'DX', orderId, status: 'open' } as const
  await createDisputes(one.pools.reports).record('cashfree', report, { source: 'notification', now })
  expect(await isSent).toBe(false)
  const { rows } = await one.db.query('select status, sent_at from refunds where order_id = $1', [orderId])
  expect(rows).toEqual([{ status: 'FAIL', sent_at: null }])
})
