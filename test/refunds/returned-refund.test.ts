import { beforeEach, describe, expect, it } from 'vitest'
import { createDeliveries } from '../../src/gateway/webhooks/deliveries.ts'
import { toMessage } from '../../src/gateway/webhooks/message.ts'
import { RIGHTS } from '../../src/platform/rights.ts'
import { toIstDay } from '../../src/platform/time.ts'
import { newUtr } from '../support/acquirer.ts'
import { opsOn } from '../support/ops.ts'
import { createOrder, reportPayment } from '../support/orders.ts'
import {
  newKey,
  newMerchant,
  OWN_REFUNDS,
  OWN_TRANSACTIONS,
  post,
  REFUND,
  REFUND_STATUS,
  startService,
  unique,
} from '../support/service.ts'
import type { Key } from '../support/tenants.ts'
import { newWebhook } from '../support/webhooks.ts'

// Commands read the computer's clock, so that the service of this test does too. It delivers no webhooks.
const service = await startService({ asServiceRole: true, limits: { webhooks: { lookIntervalMs: 3_600_000 } } })
const { ops, json } = opsOn(() => service.databaseUrl, [])
let mid: string
let key: Key
let orderId: string
let UTR: string

beforeEach(async () => {
  ;({ mid } = await newMerchant(service.db))
  key = await newKey(service.db, { mid }, RIGHTS)
  UTR = newUtr()
  orderId = await createOrder(service, { mid, key }, { amount: '200' })
  await reportPayment(service, orderId, { UTR })
})

/** Requests a refund as the merchant, and returns the response. */
const request = (refund_id: string, amount: string) =>
  post(service.app, REFUND, { mid, order_id: orderId, refund_id, amount, note: 'One cup was cold' }, key)

/** Refunds this amount, as the merchant and then at the bank. Returns the service's refund id. */
async function refund(amount: string, refund_id = unique('R')): Promise<string> {
  const { body } = await request(refund_id, amount)
  const { refundId } = body.data as { refundId: string }
  await json('refunds', 'done', '--refund', refundId, '--reference', '523504870777')
  return refundId
}

const RETURN = ['--reference', '523504871111', '--reason', 'the account is closed']
const giveBack = (refundId: string) => json('refunds', 'returned', '--refund', refundId, ...RETURN)

const statusOf = async (refund_id: string) => (await post(service.app, REFUND_STATUS, { mid, refund_id }, key)).body

describe('ops refunds returned', () => {
  it('makes the refund FAIL with the reason in every response and list, and its amount refundable', async () => {
    const refundId = await refund('80', 'R1')
    const page = async () => (await service.app.inject(`/pay/${orderId}`)).body
    expect(await page()).toContain('₹80')
    const returned = await giveBack(refundId)
    const data = { amount: 80, txnStatus: 'FAIL', reference: '523504870777', reason: 'the account is closed' }
    expect(returned).toMatchObject({ refundId, refund_id: 'R1', ...data })
    expect(await statusOf('R1')).toMatchObject({ msg: 'Refund failed', data })
    expect((await request('R1', '80')).body).toMatchObject({ status: true, data })
    const day = toIstDay(new Date()).split('-').reverse().join('-')
    const days = { mid, s_date: '01-01-2026', e_date: day }
    const { body } = await post(service.app, OWN_REFUNDS, days, key)
    expect(body.data).toMatchObject([{ status: 'FAIL', reason: data.reason, reference: data.reference }])
    const transactions = await post(service.app, OWN_TRANSACTIONS, days, key)
    expect(transactions.body.data).toMatchObject([{ amount: '200.00', refunded: '0.00' }])
    const shown = await json('payments', 'show', '--order-id', orderId)
    expect(shown).toMatchObject({ refunded: 0, refundable: 200 })
    expect(await page()).not.toContain('₹80')
  })

  it('sends refund.failed with the reason and a higher sequence than refund.succeeded', async () => {
    const { endpointId } = await newWebhook(service.db, { mid, url: 'https://shop.example/hook' }, new Date())
    const refundId = await refund('80')
    await giveBack(refundId)
    const at = new Date(Date.now() + 60_000)
    const deliveries = await createDeliveries(service.db).claim({ mid, endpointId }, 100, at, at)
    const events = deliveries.map((delivery) => JSON.parse(toMessage(delivery).body))
    expect(events).toMatchObject([
      { type: 'refund.succeeded', data: { refundId, txnStatus: 'SUCCESS', reason: '' } },
      { type: 'refund.failed', data: { refundId, txnStatus: 'FAIL', reason: 'the account is closed' } },
    ])
    const [succeeded, failed] = events.map(({ data }) => data.sequence)
    expect(failed).toBe(succeeded + 1)
  })

  it('payments show lists the success and the return in the order’s history', async () => {
    const refundId = await refund('80')
    await giveBack(refundId)
    const { steps } = await json('payments', 'show', '--order-id', orderId)
    expect(steps.map(({ what }: { what: string }) => what)).toEqual(
      expect.arrayContaining([
        `refund ${refundId} SUCCESS, reference 523504870777`,
        `refund ${refundId} returned by the bank, reference 523504871111: the account is closed`,
      ]),
    )
  })

  it('the refunds never exceed the payment while refunds are returned and repeated beside a refund of the rest', async () => {
    const first = await refund('120')
    await refund('80')
    expect((await request('MORE', '1')).body).toMatchObject({ statusCode: 409, msg: 'Refund exceeds what was paid' })
    await giveBack(first)
    // Twenty requests for the returned amount, of which one fits.
    const responses = await Promise.all(Array.from({ length: 20 }, (_, at) => request(`AGAIN-${at}`, '120')))
    expect(responses.map(({ status }) => status).sort()).toEqual([200, ...Array(19).fill(409)])
    const again = responses.find(({ status }) => status === 200)?.body.data as { refundId: string }
    await json('refunds', 'done', '--refund', again.refundId, '--reference', '523504872222')
    await giveBack(again.refundId)
    await refund('120')
    expect((await request('LAST', '1')).status).toBe(409)
    expect(await json('payments', 'show', '--order-id', orderId)).toMatchObject({ refunded: 200, refundable: 0 })
    expect(await json('payments', 'exceptions', '--mid', mid)).toEqual([])
  })

  it('records one return of two that are recorded concurrently', async () => {
    const refundId = await refund('80')
    const both = await Promise.all([1, 2].map(() => ops('refunds', 'returned', '--refund', refundId, ...RETURN)))
    expect(both.map(({ code }) => code).sort()).toEqual([0, 1])
    expect(both.map(({ stderr }) => stderr).join('')).toMatch(
      /already has the final status FAIL since .*: the account is closed/,
    )
  })

  it('rejects a refund that is open, that failed, or that an acquirer sent', async () => {
    const created = (await request('R1', '80')).body.data as { refundId: string }
    const error = async () => (await ops('refunds', 'returned', '--refund', created.refundId, ...RETURN)).stderr
    expect(await error()).toContain(`is still open: run ops refunds fail --refund ${created.refundId}`)
    await json('refunds', 'fail', '--refund', created.refundId, '--reason', 'rejected')
    expect(await error()).toMatch(/already has the final status FAIL since .*: rejected/)
    await service.db.query(`update refunds set acquirer = 'setu', status = 'SUCCESS' where our_refund_id = $1`, [
      created.refundId,
    ])
    expect(await error()).toContain('was sent by setu: only a refund through direct can be recorded as returned')
  })

  it('a duplicate payment whose refund was returned is refunded again by its exception', async () => {
    await reportPayment(service, orderId, { UTR: newUtr() })
    const [{ id }] = await json('payments', 'exceptions', '--mid', mid)
    const { refundId } = await json('refunds', 'create', '--exception', id)
    await json('refunds', 'done', '--refund', refundId, '--reference', '523504870777')
    expect((await ops('refunds', 'create', '--exception', id)).stderr).toContain('was already resolved')
    await giveBack(refundId)
    expect(await json('refunds', 'create', '--exception', id)).toMatchObject({ amount: 200, txnStatus: 'PENDING' })
    expect((await ops('refunds', 'create', '--exception', id)).stderr).toContain('exceeds')
  })
})
