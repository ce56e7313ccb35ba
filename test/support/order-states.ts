import { expect } from 'vitest'
import { saveUnreadable } from '../../src/gateway/payments/unreadable.ts'
import { newUtr } from './acquirer.ts'
import { post } from './inject.ts'
import { createOrder, reportPayment } from './orders.ts'
import { CANCEL, STATUS } from './requests.ts'
import type { TestService } from './service.ts'
import type { NewMerchant } from './tenants.ts'

type Step = (service: TestService, merchant: NewMerchant, orderId: string) => Promise<unknown>

const attempt =
  (status: 'FAIL' | 'REJECT', reason?: string): Step =>
  (service, _, orderId) => {
    const paidAt = service.clock.now().toISOString()
    return reportPayment(service, orderId, { status, reason, UTR: newUtr(), paidAt })
  }
const pay: Step = (service, _, orderId) =>
  reportPayment(service, orderId, { UTR: newUtr(), paidAt: service.clock.now().toISOString() })
const cancel: Step = async ({ app }, { mid, key }, orderId) =>
  expect((await post(app, CANCEL, { mid, order_id: orderId }, key)).status).toBe(200)
const markUnreadable: Step = ({ db, clock }, { mid }, orderId) =>
  saveUnreadable(db, { mid, orderId, isBesidePayment: false }, 'setu', clock.now())

/** What happened to an order, for each stored status, with and without failed attempts and unreadable responses. */
export const HISTORIES: Record<string, readonly Step[]> = {
  open: [],
  'failed attempt': [attempt('FAIL', 'wrong_pin')],
  'failed attempt without a reason': [attempt('FAIL')],
  'rejected attempt': [attempt('REJECT', 'declined_by_customer')],
  'failed, then rejected': [attempt('FAIL', 'wrong_pin'), attempt('REJECT', 'insufficient_funds')],
  paid: [pay],
  'failed, then paid': [attempt('FAIL', 'wrong_pin'), pay],
  cancelled: [cancel],
  'failed, then cancelled': [attempt('FAIL', 'wrong_pin'), cancel],
  'cancelled, then paid': [cancel, pay],
  unreadable: [markUnreadable],
  'failed, then unreadable': [attempt('FAIL', 'wrong_pin'), markUnreadable],
}

/** Creates an order with a history of HISTORIES. Returns the orderId. */
export async function createWithHistory(service: TestService, merchant: NewMerchant, history: string): Promise<string> {
  const orderId = await createOrder(service, merchant)
  for (const step of HISTORIES[history] ?? []) await step(service, merchant, orderId)
  return orderId
}

/** Returns the fields of a record of fetchOrderList that checkPaymentStatus returns for the order too. */
export async function checkedFields({ app }: TestService, { mid, key }: NewMerchant, orderId: string) {
  const { status: code, body } = await post(app, STATUS, { mid, order_id: orderId }, key)
  expect(code).toBe(200)
  const { txnStatus: status, msg, reason = '', data } = body
  return { orderId, status, msg, reason, UTR: data?.UTR ?? '' }
}

export const listedFields = ({ orderId, status, msg, reason, UTR }: Record<string, string>) => ({
  ...{ orderId, status, msg, reason, UTR },
})
