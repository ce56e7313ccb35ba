import { expect } from 'vitest'
import { type Notification, notification, notify } from './acquirer.ts'
import { post } from './inject.ts'
import { CREATE, intentFields } from './requests.ts'
import type { TestService } from './service.ts'
import type { NewMerchant } from './tenants.ts'

/** Creates an order of ₹200, with `changes`, like the merchant's server. Returns the service's orderId. */
export async function createOrder(
  { app }: TestService,
  { mid, key }: NewMerchant,
  changes: Record<string, string> = {},
): Promise<string> {
  const { status, body } = await post(app, CREATE, intentFields(mid, changes), key)
  expect(status).toBe(200)
  return body.data.orderId
}

/** Reports the payment of a ₹200 order to the service like the acquirer, with `changes`. */
export async function reportPayment(service: TestService, orderId: string, changes: Notification = {}): Promise<void> {
  expect((await notify(service, notification(orderId, changes))).status).toBe(200)
}
