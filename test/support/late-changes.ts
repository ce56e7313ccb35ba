import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { onTestFinished } from 'vitest'
import { RIGHTS } from '../../src/platform/rights.ts'
import { newUtr } from './acquirer.ts'
import { createOrder, reportPayment } from './orders.ts'
import {
  CANCEL,
  type HttpResponse,
  type LimitChanges,
  newKey,
  newMerchant,
  post,
  REFUND,
  startService,
  unique,
} from './service.ts'

/** A request that changes its own order, and a check whether the change is stored. */
type Change = { orderId: string; send: () => Promise<HttpResponse>; isStored: () => Promise<boolean> }

/**
 * Starts a service with a merchant who may refund, and the two operations that change an order while its row is
 * locked.
 */
export async function startChanges(limits: LimitChanges) {
  const service = await startService({ limits })
  const { mid } = await newMerchant(service.db)
  const key = await newKey(service.db, { mid }, RIGHTS)
  const isFound = async (sql: string, values: unknown[]) => {
    const find = () => service.db.query(sql, values)
    // Tests that terminate the service's connections terminate this one too.
    return (await find().catch(find)).rowCount === 1
  }

  async function paidOrder() {
    const make = async () => {
      const order_id = unique('order-')
      return { order_id, orderId: await createOrder(service, { mid, key }, { order_id }) }
    }
    // Tests that terminate the service's connections may also break this create, which then returns 503.
    const order = await make().catch(make)
    await reportPayment(service, order.orderId, { UTR: newUtr() })
    return order
  }

  const changes: Record<'refundPayment' | 'cancelPayment', () => Promise<Change>> = {
    async refundPayment() {
      const { order_id, orderId } = await paidOrder()
      const refund = { mid, order_id, refund_id: unique('R-'), amount: '50', note: 'One cup was cold' }
      return {
        orderId,
        send: () => post(service.app, REFUND, refund, key),
        isStored: () => isFound('select from refunds where mid = $1 and refund_id = $2', [mid, refund.refund_id]),
      }
    },
    async cancelPayment() {
      const order_id = unique('order-')
      const orderId = await createOrder(service, { mid, key }, { order_id })
      return {
        orderId,
        send: () => post(service.app, CANCEL, { mid, order_id }, key),
        isStored: () => isFound(`select from payment_intents where order_id = $1 and status = 'CANCELLED'`, [orderId]),
      }
    },
  }

  /** Resolves once no statement of these operations is in progress. */
  async function untilQuiet() {
    const { requests } = service.pools
    while (requests.totalCount > requests.idleCount || requests.waitingCount > 0) await sleep(10)
    // The last statement may be followed by another transaction.
    await sleep(20)
  }

  return { service, mid, key, changes, paidOrder, untilQuiet }
}

export const CHANGING = ['refundPayment', 'cancelPayment'] as const

type Connection = { stream: Socket }
type Submit = (this: { text: string }, connection: Connection) => Error | null

/** Calls `instead` for each statement that a service in this process submits, until the test ends. */
export function intercept(instead: (text: string, { stream }: Connection, submit: () => Error | null) => Error | null) {
  const { submit } = pg.Query.prototype as unknown as { submit: Submit }
  const restore = (to: Submit) => Object.assign(pg.Query.prototype, { submit: to })
  onTestFinished(() => void restore(submit))
  restore(function (connection) {
    return instead(this.text, connection, () => submit.call(this, connection))
  })
}
