import { describe, expect, it, vi } from 'vitest'
import { newUtr, notification, notify } from '../support/acquirer.ts'
import { opsOn } from '../support/ops.ts'
import { checkedFields, createWithHistory, HISTORIES } from '../support/order-states.ts'
import { createOrder } from '../support/orders.ts'
import { newMerchant, startService } from '../support/service.ts'

const service = await startService()
const commands = opsOn(() => service.databaseUrl)

/** Runs a command at the time of the service's clock. */
async function atServiceTime<T>(run: () => Promise<T>): Promise<T> {
  vi.useFakeTimers({ toFake: ['Date'], now: service.clock.now() })
  return run().finally(() => vi.useRealTimers())
}
const json = (...args: string[]) => atServiceTime(() => commands.json(...args))
const ops = (...args: string[]) => atServiceTime(() => commands.ops(...args))
const show = (orderId: string) => json('payments', 'show', '--order-id', orderId)

describe('the state of an order for support', () => {
  it.each(Object.keys(HISTORIES))(
    'is the status that checkPaymentStatus returns, in show, find and list, with a complete text for the customer: %s',
    async (history) => {
      service.clock.set('2026-11-28T06:30:00.000Z')
      const merchant = await newMerchant(service.db)
      const orderId = await createWithHistory(service, merchant, history)
      let last = ''
      for (const seconds of [0, 15 * 60, 10 * 60]) {
        service.clock.advance(seconds)
        const { status } = await checkedFields(service, merchant, orderId)
        const [listed] = await json('payments', 'list', '--mid', merchant.mid)
        const { payments } = await json('payments', 'find', '--order-id', orderId)
        const shown = await show(orderId)
        expect([shown.status, payments[0].status, listed.status]).toEqual([status, status, status])
        expect(shown.customer.en).toMatch(/^[^{}\u0900-\u097f]+\.$/)
        expect(shown.customer.hi).toMatch(/^[^{}]+।$/)
        last = status
      }
      expect((await ops('payments', 'show', '--order-id', orderId)).stdout).toMatch(
        new RegExp(`^status +${last}$`, 'm'),
      )
    },
  )

  it('says until when an order can be paid, why the last attempt failed, and until when a payment is reported', async () => {
    service.clock.set('2026-11-28T17:02:00.000Z')
    const orderId = await createOrder(service, await newMerchant(service.db))
    const states: string[] = [(await show(orderId)).state]
    await notify(service, notification(orderId, { status: 'FAIL', reason: 'wrong_pin' }))
    const { state, lastAttempt } = await show(orderId)
    expect(lastAttempt).toEqual({ status: 'FAIL', reason: 'wrong_pin', at: service.clock.now().toISOString() })
    states.push(state)
    service.clock.advance(15 * 60)
    states.push((await show(orderId)).state)
    service.clock.advance(10 * 60)
    states.push((await show(orderId)).state)
    expect(states).toEqual([
      'Open · can be paid until 22:47',
      'Open · last attempt failed: wrong PIN · can be paid until 22:47',
      'Expired · last attempt failed: wrong PIN · a payment may still be reported until 22:57',
      'Failed · last attempt failed: wrong PIN',
    ])
    await service.db.query('update payment_intents set unreadable_at = $2 where order_id = $1', [
      orderId,
      service.clock.now(),
    ])
    expect((await show(orderId)).state).toBe('Open · the acquirer’s response could not be read')
    await notify(service, notification(orderId, { UTR: newUtr() }))
    expect(await show(orderId)).toMatchObject({ state: 'Paid', lastAttempt: null })
  })

  it('names the day of an expiry that is not today', async () => {
    service.clock.set('2026-11-28T18:25:00.000Z')
    const orderId = await createOrder(service, await newMerchant(service.db))
    expect((await show(orderId)).state).toBe('Open · can be paid until 2026-11-29 00:10')
  })
})

describe('the text for the customer', () => {
  const customer = async (orderId: string) => (await show(orderId)).customer as { en: string; hi: string }
  const plain = (text: string) => text.replaceAll('\u00a0', ' ')

  it('says what happened, where the money is and what to do, from open to refunded', async () => {
    service.clock.set('2026-11-28T06:30:00.000Z')
    const merchant = await newMerchant(service.db, { name: 'Chai Point' })
    const [orderId, failed, expired] = [
      await createOrder(service, merchant),
      await createOrder(service, merchant),
      await createOrder(service, merchant),
    ]
    expect((await customer(orderId)).en).toBe(
      'No payment was received. If money has left your account, do not pay again: it returns by itself within 5 days. Keep the UTR that your app shows.',
    )
    await notify(service, notification(failed, { status: 'FAIL', reason: 'bank_unavailable' }))
    expect((await customer(failed)).en).toMatch(
      /^₹200 not confirmed\. A bank or UPI was unavailable\. If money has left your account, do not pay again: /,
    )
    const [first, second] = ['523504870441', '523504870442']
    await notify(service, notification(orderId, { UTR: first, paidAt: service.clock.now().toISOString() }))
    const paid = await customer(orderId)
    expect(plain(paid.en)).toBe('₹200 paid. 28 Nov 2026, 12:00 pm IST, UTR 5235 0487 0441.')
    expect(plain(paid.hi)).toBe('₹200 का भुगतान हो गया। 28 नवंबर 2026, दोपहर 12:00 बजे (IST), UTR नंबर 5235 0487 0441।')
    await notify(service, notification(orderId, { UTR: second }))
    expect(plain((await customer(orderId)).en)).toMatch(
      /You paid twice: ₹200 \(UTR 5235 0487 0442\)\. Contact Chai Point for the second payment\.$/,
    )
    const [exception] = (await show(orderId)).exceptions
    await json('refunds', 'create', '--exception', exception.id, '--note', 'paid twice', '--by', 'asha')
    expect(plain((await customer(orderId)).en)).toMatch(
      /UTR 5235 0487 0441\. ₹200 \(UTR 5235 0487 0442\) is being returned\.$/,
    )
    const [{ refundId }] = (await show(orderId)).refunds
    await json('refunds', 'done', '--refund', refundId, '--reference', '195932211699', '--by', 'asha')
    expect(plain((await customer(orderId)).en)).toMatch(
      /UTR 5235 0487 0441\. ₹200 returned on 28 Nov 2026, reference 1959 3221 1699\.$/,
    )
    service.clock.advance(60)
    await json('refunds', 'create', '--order-id', orderId, '--note', 'cold', '--by', 'asha')
    const [, own] = (await show(orderId)).refunds
    await json('refunds', 'done', '--refund', own.refundId, '--reference', '195932211700', '--by', 'asha')
    expect(plain((await customer(orderId)).en)).toMatch(
      /^₹200 refunded\. .* ₹200 returned on 28 Nov 2026, reference 1959 3221 1700\./,
    )
    service.clock.advance(60 * 60)
    expect((await customer(failed)).en).toBe(
      '₹200 not paid. A bank or UPI was unavailable. If money has left your account, do not pay again: it returns by itself within 5 days. Keep the UTR that your app shows.',
    )
    expect((await customer(expired)).en).toBe(
      '₹200 not paid in time. No payment was received. To place the order again, return to Chai Point. If money has left your account, note the reference number (UTR) shown in your UPI app, and contact Chai Point or your bank.',
    )
  })
})
