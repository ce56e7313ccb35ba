import { newUtr } from '../../support/acquirer.ts'
import { newSetuMerchant, SETU, SETU_SECRETS } from '../../support/fake-setu.ts'
import { newMerchant, post, unique } from '../../support/service.ts'
import { startServiceBeside } from '../../support/service-with-bank.ts'
import type { Driver } from './driver.ts'

const CALLS = {
  link: 'createDqr',
  close: 'expireDqr',
  checkStatus: 'last',
  refund: 'refund',
  findRefund: 'refundsOfPayment',
}

export const setu: Driver = async (options) => {
  const { service, bank } = await startServiceBeside(SETU, options)
  const qrOf = (orderId: string) => {
    const qr = bank.find(orderId)
    if (qr) return qr
    throw new Error(`Setu does not know ${orderId}`)
  }
  const ids = new Map<string, { id: string; txnId: string }>()
  /** Returns the same ids for every report of one payment. */
  function idsOf(orderId: string, rrn: string) {
    const known = bank.find(orderId)?.payments.find((payment) => payment.rrn === rrn) ?? ids.get(`${orderId} ${rrn}`)
    const { id, txnId } = known ?? { id: unique('01'), txnId: unique('SET') }
    ids.set(`${orderId} ${rrn}`, { id, txnId })
    return { id, txnId }
  }
  const sendSigned = (body: string, signature: string | undefined) =>
    post(service.app, SETU.path, body, undefined, {
      'content-type': 'application/json',
      ...(signature !== undefined && { 'x-setu-signature': signature }),
    })
  return {
    name: 'setu',
    service,
    newMerchant: () => newSetuMerchant(service),
    newStranger: () => newMerchant(service.db),
    notification(
      orderId,
      { status = 'SUCCESS', utr, amount = 20_000, paidAt = service.clock.now(), ...reported } = {},
    ) {
      const { instrument, about } = reported
      const state = status === 'SUCCESS' ? ('success' as const) : ('failed' as const)
      const rrn = utr ?? newUtr()
      const names = { ...idsOf(orderId, rrn), txnTs: paidAt.toISOString() }
      const event = bank.eventOf(qrOf(orderId), { ...names, status: state, amount, rrn, instrument })
      return JSON.stringify({ ...event, merchantReferenceId: about ?? orderId })
    },
    send: (body, { secret, signed = body, pathEnd = '' } = {}) =>
      post(service.app, SETU.path + pathEnd, body, undefined, bank.encrypt(signed, secret).headers),
    sendSigned,
    toldBy: 'notification',
    secrets: SETU_SECRETS,
    amountField: 'amount',
    idle: (orderId) =>
      ['payment.initiated', 'payment.pending', 'mandate.live.initiated', 'constructor'].flatMap((eventType) =>
        [{}, { amount: null, rrn: 7, merchantReferenceId: [], txnTs: 'never' }].map((changes) => {
          const event = bank.eventOf(qrOf(orderId), {
            id: '01',
            txnId: 'SET',
            txnTs: '',
            status: 'initiated',
            amount: 1,
            rrn: '',
          })
          return JSON.stringify({ ...event, eventType, ...changes })
        }),
      ),
    settings: SETU.settings(bank),
    // The fake's types are narrower than the changes that a case may apply to any bank.
    bank: Object.assign(bank, {
      calls: CALLS,
      preparing: [CALLS.link],
      linkOf: (orderId: string) => qrOf(orderId).intentLink,
      created: () => [...bank.qrs.values()].map(({ referenceId }) => referenceId),
      isOpen: (orderId: string) => qrOf(orderId).status === 'active',
    }) as never,
  }
}
