import { beforeAll, describe, expect, it } from 'vitest'
import { newUtr, notification, notify } from '../support/acquirer.ts'
import { post } from '../support/inject.ts'
import { createOrder } from '../support/orders.ts'
import { storePaidOrder } from '../support/paid-orders.ts'
import { STATUS } from '../support/requests.ts'
import { newMerchant, startService, type TestService } from '../support/service.ts'
import type { NewMerchant } from '../support/tenants.ts'

let service: TestService
let merchant: NewMerchant
beforeAll(async () => {
  service = await startService()
  merchant = await newMerchant(service.db)
})

const exceptionsOf = async (orderId: string) =>
  (await service.db.query('select kind from payment_exceptions where order_id = $1', [orderId])).rows

describe('an RRN that a report pads with zeros to 16 digits', () => {
  it.each([
    ['padded first', (rrn: string) => [`0000${rrn}`, rrn]],
    ['unpadded first', (rrn: string) => [rrn, `0000${rrn}`]],
  ])('is the RRN of one payment, reported %s', async (_, formsOf) => {
    const [rrn, orderId] = [newUtr(), await createOrder(service, merchant)]
    for (const UTR of formsOf(rrn)) expect((await notify(service, notification(orderId, { UTR }))).status).toBe(200)
    const { body } = await post(service.app, STATUS, { mid: merchant.mid, order_id: orderId }, merchant.key)
    expect(body).toMatchObject({ txnStatus: 'SUCCESS', data: { UTR: rrn } })
    expect(await exceptionsOf(orderId)).toEqual([])
  })

  it('pays no second order', async () => {
    const [rrn, first, second] = [newUtr(), await createOrder(service, merchant), await createOrder(service, merchant)]
    expect((await notify(service, notification(first, { UTR: rrn }))).status).toBe(200)
    expect((await notify(service, notification(second, { UTR: `0000${rrn}` }))).status).toBe(409)
    expect(await exceptionsOf(second)).toEqual([{ kind: 'UTR of another order' }])
  })

  it('is the RRN of a payment that an earlier version stored padded', async () => {
    const utr = `0000${newUtr()}`
    const orderId = await storePaidOrder(service.db, { mid: merchant.mid, utr, paidAt: service.clock.now() })
    for (const UTR of [utr, utr.slice(4)]) {
      expect((await notify(service, notification(orderId, { UTR }))).status).toBe(200)
    }
    expect(await exceptionsOf(orderId)).toEqual([])
    const second = await createOrder(service, merchant)
    expect((await notify(service, notification(second, { UTR: utr }))).status).toBe(409)
  })
})
