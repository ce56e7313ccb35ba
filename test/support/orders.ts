import { expect } from 'vitest'
import { type Notification, notification, notify } from './acquirer.ts'
import { post } from './inject.ts'
import { CREATE, intentFields } from './requests.ts'
import type { TestService } from './service.ts'
import type { NewMerchant } from './tenants.ts'

/** Creates an order for ₹200, with `changes`, as the merchant's shop would. Returns our orderId. */
export async function createOrder(
  { app }: TestService,
  { mid, key }: NewMerchant,
  changes: Record<string, string> = {},
): Promise<string> {
  const { status, body } = await post(app, CREATE, intentFields(mid, changes), key)
  expect(status).toBe(200)
  return body.data.orderId
}

/** Tells the service, as the acquirer would, that an order for ₹200 is paid, or what `changes` make of it. */
export async function reportPayment(service: TestService, orderId: string, changes: Notification = {}): Promise<void> {
  expect((await notify(service, notification(orderId, changes))).status).toBe(200)
}
