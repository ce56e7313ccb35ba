import { newUtr } from '../../support/acquirer.ts'
import { CASHFREE, CASHFREE_SECRETS, newCashfreeMerchant } from '../../support/fake-cashfree.ts'
import { newMerchant, post } from '../../support/service.ts'
import { startServiceBeside } from '../../support/service-with-bank.ts'
import type { Driver } from './driver.ts'

const CALLS = {
  link: 'openSession',
  close: 'terminate',
  checkStatus: 'payments',
  refund: 'refund',
  findRefund: 'findRefund',
}

let lastPayment = 9_000_000_000_000_000_000n

export const cashfree: Driver = async (options) => {
  const { service, bank } = await startServiceBeside(CASHFREE, options)
  const { sendBack } = bank
  const orderOf = (orderId: string) => {
    const order = bank.orders.get(orderId)
    if (order) return order
    throw new Error(`Cashfree does not know ${orderId}`)
  }
  const ids = new Map<string, string>()
  /** Returns the same payment id for every report of one payment. */
  function idOf(orderId: string, rrn: string): string {
    const known = orderOf(orderId).payments.find((payment) => payment.rrn === rrn)?.id ?? ids.get(`${orderId} ${rrn}`)
    const id = known ?? String(++lastPayment)
    ids.set(`${orderId} ${rrn}`, id)
    return id
  }
  const sendSigned = (body: string, signature: string | undefined) =>
    post(service.app, CASHFREE.path, body, undefined, {
      ...bank.encrypt(body).headers,
      'x-webhook-signature': signature ?? '',
    })
  return {
    name: 'cashfree',
    service,
    newMerchant: () => newCashfreeMerchant(service),
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
      post(service.app, CASHFREE.path + pathEnd, body, undefined, bank.encrypt(signed, secret).headers),
    sendSigned,
    toldBy: 'notification',
    secrets: CASHFREE_SECRETS,
    amountField: 'payment_amount',
    idle: (orderId) => {
      const order = orderOf(orderId)
      const event = bank.eventOf(order, {
        ...(order.payments[0] as NonNullable<(typeof order.payments)[0]>),
        status: 'pending',
      })
      const types = ['PAYMENT_CHARGES_WEBHOOK', 'constructor', undefined]
      return types.flatMap((type) =>
        [event.data, {}, { payment: { payment_status: 'PENDING' } }].map(
          (data) => bank.encrypt({ ...event, type, data }).body,
        ),
      )
    },
    settings: CASHFREE.settings(bank),
    // The fake's types are narrower than the changes that a case may apply to any bank.
    bank: Object.assign(bank, {
      calls: CALLS,
      preparing: ['createOrder', CALLS.link],
      linkOf: (orderId: string) => orderOf(orderId).links.at(-1) ?? '',
      created: () => [...bank.orders.keys()],
      isOpen: (orderId: string) => bank.statusOf(orderOf(orderId)) === 'ACTIVE',
      sendBack(orderId: string) {
        for (const { order, ...payment } of bank.paid()) if (payment.orderId === orderId) sendBack(order, payment)
      },
    }) as never,
  }
}
