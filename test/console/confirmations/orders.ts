import { createRefund } from '../../../src/gateway/refunds/create-refund.ts'
import { createRefundUpdates, saveRefundException } from '../../../src/gateway/refunds/record-update.ts'
import type { Refund, RefundUpdate } from '../../../src/gateway/refunds/refund.ts'
import { listRefunds } from '../../../src/gateway/refunds/store.ts'
import { toIndianRupees } from '../../../src/platform/money.ts'
import { RIGHTS } from '../../../src/platform/rights.ts'
import { newUtr, notification, notify } from '../../support/acquirer.ts'
import { opsOn } from '../../support/ops.ts'
import { createOrder } from '../../support/orders.ts'
import { CANCEL, newKey, newMerchant, post, REFUND, unique } from '../../support/service.ts'
import type { NewMerchant } from '../../support/tenants.ts'
import { makeChange, type World } from './history.ts'

/** An order of a merchant of its own, and what happens to it. */
export type Scene = NewMerchant & { orderId: string; utr: string }

export const merchantText = (mid: string) => `Chai Point ${mid}`

/** Creates an order of ₹200, which is not paid. */
export async function newOrder({ service }: World): Promise<Scene> {
  service.clock.set(new Date().toISOString())
  const { mid } = await newMerchant(service.db)
  const merchant = { mid, key: await newKey(service.db, { mid }, RIGHTS) }
  return { ...merchant, orderId: await createOrder(service, merchant), utr: newUtr() }
}

export async function newPaidOrder(world: World): Promise<Scene> {
  const scene = await newOrder(world)
  await actsOn(world, scene).pays(scene.utr)
  return scene
}

/** Acts of the merchant, the acquirer and another operator on an order. */
export function actsOn(world: World, { mid, key, orderId, utr: paid }: Scene) {
  const { service, pick } = world
  const { db, app, clock } = service
  const openRefund = async () => pick((await listRefunds(db, { mid })).filter(({ status }) => status === 'PENDING'))
  return {
    pays: (utr = newUtr(), amount = 200) =>
      notify(service, notification(orderId, { UTR: utr, amount, paidAt: clock.now().toISOString() })),
    fails: (utr = paid) => notify(service, notification(orderId, { status: 'FAIL', UTR: utr })),
    cancels: () => post(app, CANCEL, { mid, order_id: orderId }, key),
    ordersAgain: () => createOrder(service, { mid, key }),
    merchantRefunds: (amount = pick(['20', '50.25', '100', '200'])) =>
      post(app, REFUND, { mid, order_id: orderId, refund_id: unique('R'), amount, note: 'sold out' }, key),
    operatorRefunds: (amount = pick(['', '30', '100'])) =>
      makeChange(world, 'refunds create', { 'order-id': orderId, amount, note: 'One cup was cold' }),
    async operatorRefundsException() {
      const [open] = await openExceptions(world, mid)
      if (open) await makeChange(world, 'refunds create', { exception: open })
    },
    async operatorResolves() {
      const [open] = await openExceptions(world, mid)
      if (open) await makeChange(world, 'payments resolve', { exception: open, reason: 'refunded in cash' })
    },
    async operatorEndsRefund() {
      const refund = (await openRefund())?.ourRefundId
      const end = pick(['refunds done', 'refunds fail'])
      const fields = end === 'refunds done' ? { reference: 'ARN2' } : { reason: 'the account is closed' }
      if (refund) await makeChange(world, end, { refund, ...fields } as Record<string, string>)
    },
    async bankReturnsRefund() {
      const refund = (await listRefunds(db, { mid })).find(({ status }) => status === 'SUCCESS')?.ourRefundId
      const fields = { reference: 'RET2', reason: 'the account is closed' }
      if (refund) await makeChange(world, 'refunds returned', { refund, ...fields })
    },
    async acquirerEndsRefund() {
      const refund = await openRefund()
      if (refund) await endAtAcquirer(world, refund, pick([SUCCESS, FAILURE]))
    },
    /** Another operator, on the command line. */
    typedRefund: () =>
      opsOn(() => service.databaseUrl).ops(
        ...['refunds', 'create', '--order-id', orderId, '--amount', pick(['10', '60']), '--note', 'One cup'],
      ),
  }
}

const SUCCESS: RefundUpdate = { status: 'SUCCESS', reference: '412345678901' }
const FAILURE: RefundUpdate = { status: 'FAIL', reference: '', reason: 'R21' }

/** Reports the final status of a refund as its acquirer does. */
export const endAtAcquirer = ({ service }: World, refund: Refund, update = SUCCESS) =>
  createRefundUpdates(service.db).record(refund, update, {
    source: 'notification',
    by: 'acquirer',
    now: () => new Date(),
  })

/** Stores a refund that an operator has created, and returns its id. */
export async function newRefund({ service }: World, { mid, orderId }: Scene, rupees: number): Promise<Refund> {
  const requested = { mid, orderId, amount: rupees * 100, note: 'One cup', createdBy: 'meera' }
  const created = await createRefund(service.db, requested, new Date())
  if (!('refund' in created)) throw new Error(created.rejected)
  return created.refund
}

/** Makes the outcome of a refund unknown to its acquirer, so that an operator decides. */
export async function makeUnsure({ service: { db } }: World, refund: Refund): Promise<void> {
  await db.query(`update refunds set acquirer = 'setu', due_at = null where our_refund_id = $1`, [refund.ourRefundId])
  await saveRefundException(
    db,
    'refund unsure',
    { ...refund, acquirer: 'setu' },
    { source: 'enquiry', now: new Date() },
  )
}

export async function openExceptions({ service: { db } }: World, mid: string): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>(
    `select exception_id as id from payment_exceptions e
      where mid = $1 and not exists (select from payment_resolutions r where r.mid = e.mid and r.exception_id = e.exception_id)
      order by received_at, exception_id`,
    [mid],
  )
  return rows.map(({ id }) => id)
}

/** Returns the first row of a query. */
export async function rowOf<T extends object>({ service: { db } }: World, sql: string, values: unknown[]) {
  return (await db.query<T>(sql, values)).rows[0]
}

/** Formats an amount as a page does. */
export const money = (paise: number | null) => (paise === null ? null : toIndianRupees(paise))
