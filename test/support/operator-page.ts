import { setTimeout as sleep } from 'node:timers/promises'
import fastify, { type FastifyInstance } from 'fastify'
import { expect } from 'vitest'
import { operatorGuideRoutes } from '../../src/docs/routes.ts'
import { LIMITS } from '../../src/limits.ts'
import { operatorPageRoutes, operatorsOnly } from '../../src/operator/console/routes.ts'
import { newUtr, notification, notify } from './acquirer.ts'
import { testPool } from './database.ts'
import { asRole } from './database-url.ts'
import { CREATE, intentFields, newMerchant, post, type TestService } from './service.ts'

export const PUBLIC_URL = 'https://pay.example.in/upi'

/** Limits with which every reader gets a fresh page. */
export const UNCACHED = { ...LIMITS, lookUps: { ...LIMITS.lookUps, cachedMs: 1 } }

/** Texts that a customer or a merchant wrote. */
export const CANARIES = {
  customer_name: 'Canaryname Rao',
  customer_email: 'canarymail@example.in',
  customer_mobile: '9137460285',
  note: 'Canarynote 77',
  redirect_url: 'https://canaryshop.example/',
}

/** Serves the operator dashboard of a service with the database role of an installation, at the service's own time. */
export async function startPage(
  { databaseUrl, clock, log }: TestService,
  limits = UNCACHED,
  warnings: string[] = [],
): Promise<FastifyInstance> {
  const app = fastify()
  // Waits until the cached page has expired.
  app.addHook('onRequest', () => sleep(5))
  operatorsOnly(app, { password: undefined, allowedHosts: [] })
  const db = testPool(asRole(databaseUrl, 'upi_service'), 2)
  const warn = (facts: unknown) => void log.push(JSON.stringify(facts))
  const readWarnings = async () => warnings
  const options = {
    db,
    log: { warn } as never,
    now: clock.now,
    publicUrl: PUBLIC_URL,
    readWarnings,
    limits,
  }
  operatorPageRoutes(app, options)
  operatorGuideRoutes(app, { publicUrl: PUBLIC_URL })
  app.addHook('onClose', () => db.end())
  return app
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
