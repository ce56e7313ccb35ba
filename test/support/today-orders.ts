import { expect } from 'vitest'
import { newUtr, notification, notify } from './acquirer.ts'
import { CREATE, intentFields, newMerchant, post, type TestService } from './service.ts'

/** Texts that a customer or a merchant wrote. */
export const CANARIES = {
  customer_name: 'Canaryname Rao',
  customer_email: 'canarymail@example.in',
  customer_mobile: '9137460285',
  note: 'Canarynote 77',
  redirect_url: 'https://canaryshop.example/',
}

/**
 * Creates orders on three days: one that can be paid for 30 days, one, and four of which one is paid, one failed, one
 * pending and one paid twice.
 */
export async function makeOrders(service: TestService): Promise<{ mid: string; paidTwice: string; link: string }> {
  const { app, db, clock } = service
  const { mid, key } = await newMerchant(db, { maxExpiryMinutes: 43_200 })
  const order = async (amount: string, changes = {}): Promise<string> =>
    (await post(app, CREATE, intentFields(mid, { ...CANARIES, amount, ...changes }), key)).body.data.orderId
  const report = async (orderId: string, changes: Parameters<typeof notification>[1]) =>
    expect((await notify(service, notification(orderId, changes))).status).toBe(200)
  clock.set('2026-03-05T05:00:00.000Z')
  const link = await order('3', { expiry_minutes: '43200' })
  clock.set('2026-03-30T05:00:00.000Z')
  await report(await order('1000'), { amount: 1000, UTR: newUtr() })
  clock.set('2026-03-31T03:35:00.000Z')
  await report(await order('250'), { amount: 250, UTR: newUtr() })
  await report(await order('40'), { status: 'FAIL', amount: 40, UTR: undefined })
  clock.set('2026-03-31T05:00:00.000Z')
  await order('7')
  const paidTwice = await order('500')
  for (let i = 0; i < 2; i++) await report(paidTwice, { amount: 500, UTR: newUtr() })
  return { mid, paidTwice, link }
}
