import { beforeAll, describe, expect, it } from 'vitest'
import { newUtr, notification, notify } from '../support/acquirer.ts'
import { opsOn, runOps } from '../support/ops.ts'
import { createOrder } from '../support/orders.ts'
import { newMerchant, startService, type TestService } from '../support/service.ts'
import type { NewMerchant } from '../support/tenants.ts'

let service: TestService
let merchant: NewMerchant
beforeAll(async () => {
  service = await startService()
  // The command line uses the machine's clock.
  service.clock.set(new Date().toISOString())
  merchant = await newMerchant(service.db)
})

const exceptionsOf = async (orderId: string) =>
  (await service.db.query('select kind from payment_exceptions where order_id = $1', [orderId])).rows

const { json } = opsOn(() => service.databaseUrl, ['payments'])

/**
 * The ways in which an operator or an acquirer reports a payment of ₹200; each returns whether it changed the order.
 */
const WAYS: Record<string, (orderId: string, utr: string) => Promise<boolean>> = {
  'a notification': async (orderId, UTR) => {
    const { status } = await notify(service, notification(orderId, { UTR }))
    expect(status).toBe(200)
    return (await json('show', '--order-id', orderId)).changes.length === 1
  },
  'payments confirm': async (orderId, utr) =>
    (await json('confirm', '--order-id', orderId, '--utr', utr, '--amount', '200')).changed,
  'payments import': async (orderId, utr) => {
    const file = `order_id,status,utr,amount,paid_at\n${orderId},SUCCESS,${utr},200,2026-03-31 23:59:59\n`
    const { code, stdout } = await runOps(service.databaseUrl, ['payments', 'import', '-', '--json'], file)
    expect(code).toBe(0)
    return JSON.parse(stdout).recorded === 1
  },
}

describe('an RRN that a report pads with zeros to 16 digits', () => {
  it.each(Object.keys(WAYS).flatMap((first) => Object.keys(WAYS).map((second) => [first, second] as const)))(
    'the service stores one payment if %s reports an RRN with or without padding and then %s reports the RRN in the other format',
    async (first, second) => {
      for (const pad of [(rrn: string) => [`0000${rrn}`, rrn], (rrn: string) => [rrn, `0000${rrn}`]]) {
        const [rrn, orderId] = [newUtr(), await createOrder(service, merchant)]
        const [reported = '', again = ''] = pad(rrn)
        expect(await WAYS[first]?.(orderId, reported)).toBe(true)
        await WAYS[second]?.(orderId, again)
        expect(await json('show', '--order-id', orderId)).toMatchObject({
          ...{ status: 'SUCCESS', utr: rrn, exceptions: [], changes: [{ utr: rrn }] },
        })
      }
    },
  )

  it('the service accepts a padded RRN for no more than one order', async () => {
    const [rrn, first, second] = [newUtr(), await createOrder(service, merchant), await createOrder(service, merchant)]
    expect((await notify(service, notification(first, { UTR: rrn }))).status).toBe(200)
    expect((await notify(service, notification(second, { UTR: `0000${rrn}` }))).status).toBe(409)
    expect(await exceptionsOf(second)).toEqual([{ kind: 'UTR of another order' }])
  })
})
