import { newUtr } from '../../support/acquirer.ts'
import { newRazorpayMerchant, RAZORPAY, RAZORPAY_SECRETS } from '../../support/fake-razorpay.ts'
import type { RazorpayPayment } from '../../support/razorpay-bank.ts'
import { newMerchant, post, unique } from '../../support/service.ts'
import { startServiceBeside } from '../../support/service-with-bank.ts'
import type { Driver } from './driver.ts'

const CALLS = { link: 'createPayment', checkStatus: 'payments', refund: 'refund', findRefund: 'findRefund' }

export const razorpay: Driver = async (options) => {
  const { service, bank } = await startServiceBeside(RAZORPAY, options)
  const { sendBack } = bank
  const orderOf = (orderId: string) => {
    const order = bank.orders.get(orderId)
    if (order) return order
    throw new Error(`Razorpay does not know ${orderId}`)
  }
  const ids = new Map<string, string>()
  /** Returns the same payment id for every report of one payment. */
  function idOf(orderId: string, rrn: string): string {
    const known = orderOf(orderId).payments.find((payment) => payment.rrn === rrn)?.id ?? ids.get(`${orderId} ${rrn}`)
    const id = known ?? unique('pay_')
    ids.set(`${orderId} ${rrn}`, id)
    return id
  }
  const sendSigned = (body: string, signature: string | undefined) =>
    post(service.app, RAZORPAY.path, body, undefined, {
      'content-type': 'application/json',
      ...(signature !== undefined && { 'x-razorpay-signature': signature }),
    })
  return {
    name: 'razorpay',
    service,
    newMerchant: () => newRazorpayMerchant(service),
    newStranger: () => newMerchant(service.db),
    notification(
      orderId,
      { status = 'SUCCESS', utr, amount = 20_000, paidAt = service.clock.now(), ...reported } = {},
    ) {
      const { instrument, about } = reported
      const state = status === 'SUCCESS' ? ('success' as const) : ('failed' as const)
      const rrn = utr ?? newUtr()
      const payment = { id: idOf(orderId, rrn), status: state, amount, rrn, instrument }
      const order = { ...orderOf(orderId), orderId: about ?? orderId }
      return bank.encrypt(bank.eventOf(order, { ...payment, begunAt: paidAt, endedAt: paidAt })).body
    },
    send: (body, { secret, signed = body, pathEnd = '' } = {}) =>
      post(service.app, RAZORPAY.path + pathEnd, body, undefined, bank.encrypt(signed, secret).headers),
    sendSigned,
    toldBy: 'notification',
    secrets: RAZORPAY_SECRETS,
    amountField: 'amount',
    idle(orderId) {
      const order = orderOf(orderId)
      const event = bank.eventOf(order, { ...(order.payments[0] as RazorpayPayment), status: 'authorized' })
      // Another program of the merchant's may use the same account.
      const foreign = { payment: { entity: { ...event.payload.payment.entity, notes: [] } } }
      const names = ['payment.authorized', 'refund.speed_changed', 'settlement.processed', 'constructor', undefined]
      const changed = names.flatMap((name) =>
        [event.payload, null, { payment: null }].map((payload) => ({ ...event, event: name, payload })),
      )
      const ofOthers = ['payment.captured', 'payment.failed', 'refund.processed'].map((name) => ({
        ...{ ...event, event: name, payload: { ...foreign, refund: { entity: { id: 'rfnd_1', amount: 1 } } } },
      }))
      return [...changed, ...ofOthers].map((one) => JSON.stringify(one))
    },
    settings: RAZORPAY.settings(bank),
    // The fake's types are narrower than the changes that a case may apply to any bank.
    bank: Object.assign(bank, {
      calls: CALLS,
      preparing: ['createOrder', CALLS.link],
      linkOf: (orderId: string) => orderOf(orderId).links.at(-1) ?? '',
      created: () => [...bank.orders.keys()],
      isOpen: () => true,
      sendBack(orderId: string) {
        for (const { order, ...payment } of bank.paid()) if (payment.orderId === orderId) sendBack(order, payment)
      },
    }) as never,
  }
}
